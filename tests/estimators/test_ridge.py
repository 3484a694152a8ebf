"""KernelRidge and KernelRidgeCV against scikit-learn's ridge, Gaussian process and grid search."""

import pickle
import re

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as gp_kernels
from sklearn.kernel_ridge import KernelRidge as Reference
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, LeaveOneOut, cross_val_predict

from mercer import (
    RBF,
    FromFeatures,
    FromFunction,
    KernelMap,
    KernelRidge,
    KernelRidgeCV,
    Linear,
    Matern,
    NotPSDError,
    Polynomial,
    Precomputed,
)
from mercer.engine.arrays import as_numpy
from mercer.rows.moments import Spread
from mercer.solve.regularized import solve_regularized

FORMS = ["primal", "dual"]


@pytest.fixture
def data(rng):
    """Rows in general position: the kernel matrix is regular."""
    X, Z = rng.normal(size=(60, 6)), rng.normal(size=(25, 6))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=60), Z


@pytest.fixture
def smooth(rng):
    """Rows on a line: the kernel matrix is singular to rounding (rank about 30 of 80)."""
    X, Z = rng.uniform(-3, 3, size=(80, 1)), rng.uniform(-4, 4, size=(25, 1))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=80), Z


# --- one function, however computed: [KERNELS] (2)-(8) --------------------------------------------


@pytest.mark.parametrize("form", [*FORMS, "auto"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.1, [0.05, 2.0]], ids=str)
def test_equals_scikit_learns(data, form, weighted, alpha, rng, there):
    X, y, Z = data
    Y = np.column_stack([y, y**2])
    weights = rng.uniform(size=60) * (rng.random(60) > 0.1) if weighted else None
    reference = Reference(alpha=alpha, kernel="rbf", gamma=0.2).fit(X, Y, sample_weight=weights)
    model = there(KernelRidge(alpha, RBF(0.2), form=form)).fit(X, Y, sample_weight=weights)
    assert_allclose(model.predict(Z), reference.predict(Z), atol=1e-11)
    assert_allclose(model.dual_coef_, reference.dual_coef_, atol=1e-10)
    values = np.column_stack([f(Z) for f in model.function_])
    assert_allclose(values, reference.predict(Z), atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_equals_scikit_learns_where_k_is_singular(smooth, form, there):
    X, y, Z = smooth
    reference = Reference(alpha=0.01, kernel="rbf", gamma=0.5).fit(X, y)
    model = there(KernelRidge(0.01, RBF(0.5), form=form)).fit(X, y)
    # A map of a singular K is accurate to sqrt(eps): MATH.md section 7.
    assert_allclose(
        model.predict(Z), reference.predict(Z), atol=1e-7 if form == "primal" else 1e-11
    )
    assert_allclose(model.predict(X), reference.predict(X), atol=1e-7)


@pytest.mark.parametrize(
    "kernel", [RBF(0.2), Matern(1.5, 2.0), Polynomial(2, gamma=0.3), Linear()], ids=repr
)
def test_primal_equals_dual(data, kernel, there):
    X, y, Z = data
    primal = there(KernelRidge(0.3, kernel, form="primal")).fit(X, y)
    dual = there(KernelRidge(0.3, kernel, form="dual")).fit(X, y)
    assert_allclose(primal.predict(Z), dual.predict(Z), atol=1e-9)
    assert_allclose(primal.dual_coef_, dual.dual_coef_, atol=1e-9)
    for a, b in zip(primal.predict(Z, return_std=True), dual.predict(Z, return_std=True)):
        assert_allclose(a, b, atol=1e-7)


def test_dual_solves_the_equations_of_the_document(data, there):
    """a = (K + lambda I)^-1 t (7); a_n = (t_n - w . phi_n) / lambda and w = Phi'a (3)."""
    X, y, Z = data
    K = RBF(0.2)(X)
    a = np.linalg.solve(K + 0.1 * np.eye(60), y)
    model = there(KernelRidge(0.1, RBF(0.2), form="primal")).fit(X, y)
    Phi = model.kernel_map_.transform(X)
    assert_allclose(model.dual_coef_, a, atol=1e-11)
    assert_allclose(model.coef_[:, 0], Phi.T @ a, atol=1e-11)
    assert_allclose(a, -(Phi @ model.coef_[:, 0] - y) / 0.1, atol=1e-9)
    assert_allclose(model.predict(Z), RBF(0.2)(Z, X) @ a, atol=1e-11)


def test_the_two_losses_are_one(data):
    """L_w (2) at w = Phi'a is L_a (5), (6)."""
    X, t, _ = data
    kernel_map = KernelMap(RBF(0.2))
    Phi, K, lam = kernel_map.fit_transform(X), RBF(0.2)(X), 0.1
    a = np.linspace(-1, 1, 60)
    w = Phi.T @ a
    L_w = 0.5 * np.sum((Phi @ w - t) ** 2) + 0.5 * lam * w @ w
    L_a = 0.5 * a @ K @ K @ a - a @ K @ t + 0.5 * t @ t + 0.5 * lam * a @ K @ a
    assert_allclose(L_w, L_a, rtol=1e-12)
    model = KernelRidge(lam, RBF(0.2), form="primal").fit(X, t)
    best = model.coef_[:, 0]
    gradient = Phi.T @ (Phi @ best - t) + lam * best
    assert np.abs(gradient).max() < 1e-10 * np.abs(Phi.T @ t).max()


def test_it_is_ridge_on_the_coordinates(data, there):
    X, y, Z = data
    kernel_map = there(KernelMap(RBF(0.2))).fit(X)
    inner = Ridge(alpha=0.1, fit_intercept=False).fit(kernel_map.transform(X), y)
    model = there(KernelRidge(0.1, KernelMap(RBF(0.2)))).fit(X, y)
    assert_allclose(model.predict(Z), inner.predict(kernel_map.transform(Z)), atol=1e-10)


def test_a_centred_map_makes_a_centred_ridge(data, there):
    X, y, Z = data
    kernel_map = there(KernelMap(RBF(0.2), center=True)).fit(X)
    inner = Ridge(alpha=0.1, fit_intercept=False).fit(kernel_map.transform(X), y)
    model = there(KernelRidge(0.1, KernelMap(RBF(0.2), center=True))).fit(X, y)
    assert_allclose(model.predict(Z), inner.predict(kernel_map.transform(Z)), atol=1e-10)
    assert_allclose(model.function_(Z), model.predict(Z), atol=1e-9)


def test_sums_over_parts_give_the_same_solution(data):
    X, y, Z = data
    model = KernelRidge(0.1, RBF(0.2), form="primal").fit(X, y)
    Phi, T = model.kernel_map_.transform(X), y[:, None]
    parts = Spread.uncentred(Phi[:20], T[:20]) + Spread.uncentred(Phi[20:], T[20:])
    coef, *_ = solve_regularized(parts.scatter, parts.cross, np.array([0.1]))
    predicted = model.kernel_map_.transform(Z) @ coef[:, 0]
    assert_allclose(predicted, model.predict(Z), atol=1e-11)


def test_auto_takes_the_smaller_problem(data, there):
    X, y, _ = data
    assert there(KernelRidge(0.1, RBF(0.2))).fit(X, y).form_ == "dual"
    assert there(KernelRidge(0.1, Linear())).fit(X, y).form_ == "primal"
    assert there(KernelRidge(0.1, KernelMap(RBF(0.2)))).fit(X, y).form_ == "primal"
    x = np.linspace(0, 3, 1500)[:, None]  # few dimensions, and too many rows for a factorisation
    assert there(KernelRidge(0.1, RBF(0.5))).fit(x, x[:, 0]).form_ == "primal"


# --- uncertainty ----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("where", ["data", "smooth"])
@pytest.mark.parametrize("noise", [1e-4, 0.05])
def test_uncertainty_is_the_gaussian_process_one(form, where, noise, request, there):
    X, y, Z = request.getfixturevalue(where)
    Z = np.concatenate([Z, X[:3], Z[:1] + 100])
    process = GaussianProcessRegressor(gp_kernels.RBF(1.3), alpha=noise, optimizer=None).fit(X, y)
    mean, std = process.predict(Z, return_std=True)
    model = there(KernelRidge(noise, RBF(1 / (2 * 1.3**2)), form=form)).fit(X, y)
    mine, my_std = model.predict(Z, return_std=True)
    assert_allclose(my_std, std, atol=1e-6)
    assert_allclose(mine, mean, atol=1e-5 * np.abs(model.dual_coef_).max() ** 0.5)


def test_uncertainty_is_more_than_the_residual(data, there):
    """At training points rho is zero, and the noise still leaves something open."""
    X, y, _ = data
    model = there(KernelRidge(0.1, RBF(0.2), form="primal")).fit(X, y)
    _, std = model.predict(X, return_std=True)
    assert np.all(std > 0.1)
    assert np.all(np.sqrt(model.kernel_map_.residual(X)) < 1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_uncertainty_of_several_targets_and_weights(data, form, there):
    X, y, Z = data
    Y, w = np.column_stack([y, y, -y]), np.linspace(0.5, 2, 60)
    model = there(KernelRidge([0.1, 0.2, 0.1], RBF(0.2), form=form)).fit(X, Y, sample_weight=w)
    _, std = model.predict(Z, return_std=True)
    for j, alpha in enumerate([0.1, 0.2, 0.1]):
        process = GaussianProcessRegressor(
            gp_kernels.RBF(2.5**0.5), alpha=alpha / w, optimizer=None
        ).fit(X, y)
        assert_allclose(std[:, j], process.predict(Z, return_std=True)[1], atol=1e-8)
    one = there(KernelRidge(0.1, RBF(0.2), form=form)).fit(X, Y)
    assert one.predict(Z, return_std=True)[1].shape == (25,)


def test_uncertainty_with_the_residual_coordinate(data, there):
    X, y, Z = data
    plain = there(KernelRidge(0.1, KernelMap(RBF(0.2)))).fit(X, y)
    with_residual = there(KernelRidge(0.1, KernelMap(RBF(0.2), append_residual=True))).fit(X, y)
    for a, b in zip(plain.predict(Z, return_std=True), with_residual.predict(Z, return_std=True)):
        assert_allclose(a, b, atol=1e-8)


@pytest.mark.parametrize("form", FORMS)
def test_precomputed(data, form, there):
    X, y, Z = data
    K, k_z = RBF(0.2)(X), RBF(0.2)(Z, X)
    known = there(KernelRidge(0.1, RBF(0.2))).fit(X, y)
    model = there(KernelRidge(0.1, Precomputed(), form=form)).fit(K, y)
    assert_allclose(model.predict(k_z), known.predict(Z), atol=1e-11)
    mine, reference = (
        model.predict(k_z, return_std=True, diag=np.ones(25))[1],
        known.predict(Z, return_std=True)[1],
    )
    assert_allclose(mine, reference, atol=1e-8)
    with pytest.raises(ValueError, match="pass it as diag="):
        model.predict(k_z, return_std=True)
    assert not hasattr(model, "function_")
    with pytest.raises(ValueError, match="square"):
        there(KernelRidge(0.1, Precomputed(), form=form)).fit(k_z, y[:25])


# --- inputs of every kind -------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_every_namespace(data, form, xp):
    X, y, Z = data
    reference = KernelRidge(0.1, RBF(0.2), form=form).fit(X, y)
    model = KernelRidge(0.1, RBF(0.2), form=form).fit(xp.asarray(X), xp.asarray(y))
    values, std = model.predict(xp.asarray(Z), return_std=True)
    assert type(values) is type(std) is type(xp.asarray(X))
    assert_allclose(as_numpy(values), reference.predict(Z), atol=1e-10)
    assert_allclose(as_numpy(std), reference.predict(Z, return_std=True)[1], atol=1e-10)
    assert_allclose(model.score(xp.asarray(X), xp.asarray(y)), reference.score(X, y))


@pytest.mark.parametrize("form", FORMS)
def test_cv_in_every_namespace(data, xp, form):
    X, y, Z = data
    reference = KernelRidgeCV([0.01, 0.1, 1.0], RBF(0.2), form=form).fit(X, y)
    model = KernelRidgeCV([0.01, 0.1, 1.0], RBF(0.2), form=form).fit(xp.asarray(X), xp.asarray(y))
    assert model.alpha_ == reference.alpha_
    assert_allclose(as_numpy(model.cv_errors_), reference.cv_errors_, rtol=1e-10)
    assert_allclose(as_numpy(model.predict(xp.asarray(Z))), reference.predict(Z), atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_sparse_and_float32(data, form):
    X, y, Z = data
    reference = KernelRidge(0.1, RBF(0.2), form=form).fit(X, y)
    sparse = KernelRidge(0.1, RBF(0.2), form=form).fit(scipy.sparse.csr_array(X), y)
    assert_allclose(sparse.predict(Z), reference.predict(Z), atol=1e-10)
    assert_allclose(sparse.predict(scipy.sparse.csr_array(Z)), reference.predict(Z), atol=1e-10)
    assert_allclose(reference.predict(Z.astype(np.float32)), reference.predict(Z), atol=1e-5)
    single = KernelRidge(0.1, RBF(0.2), form=form).fit(X.astype(np.float32), y)
    assert_allclose(single.predict(Z.astype(np.float32)), reference.predict(Z), atol=1e-3)


def test_words():
    def counts(batch):
        return np.array([[w.count(letter) for letter in "ab"] for w in batch], dtype=float)

    words = ["a", "aa", "b", "ab", "aab", "bb"]
    model = KernelRidge(1e-6, FromFeatures(counts)).fit(words, [1, 2, 0, 1, 2, 0])
    assert_allclose(model.predict(["aaa", "bbb"]), [3, 0], atol=1e-4)
    assert_allclose(model.function_(["aaa"]), [3], atol=1e-4)


def test_tuning_and_pickles(data):
    X, y, Z = data
    search = GridSearchCV(KernelRidge(), {"kernel__gamma": [0.05, 0.2], "alpha": [0.1, 1.0]}, cv=3)
    model = search.fit(X, y).best_estimator_
    copy = pickle.loads(pickle.dumps(model))
    for a, b in zip(copy.predict(Z, return_std=True), model.predict(Z, return_std=True)):
        assert_array_equal(a, b)


def test_refit_in_the_other_form_forgets_the_first(data, there):
    X, y, Z = data
    model = there(KernelRidge(0.1, RBF(0.2), form="primal")).fit(X, y)
    model.set_params(form="dual").fit(X, y)
    assert not hasattr(model, "kernel_map_")
    assert not hasattr(model, "coef_")
    model.set_params(form="primal").fit(X, y)
    assert_allclose(
        model.predict(Z), Reference(alpha=0.1, kernel="rbf", gamma=0.2).fit(X, y).predict(Z)
    )


# --- leave-one-out --------------------------------------------------------------------------------


def errors_of_refits(K, Y, alphas, weights):
    """(K + alpha W^-1) c = y without each row in turn, and its prediction of that row."""
    n, errors = len(Y), np.zeros(len(alphas))
    for i in range(n):
        others = np.arange(n) != i
        for a, alpha in enumerate(alphas):
            penalty = np.diag(alpha / weights[others])
            c = np.linalg.solve(K[np.ix_(others, others)] + penalty, Y[others])
            errors[a] += weights[i] * np.mean((K[i, others] @ c - Y[i]) ** 2)
    return errors / weights.sum()


@pytest.mark.parametrize("where", ["data", "smooth"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_in_closed_form(where, weighted, form, request, rng):
    """Against fitting again without each row, one by one."""
    X, y, _ = request.getfixturevalue(where)
    Y, alphas = np.column_stack([y, y**2]), np.logspace(-4, 2, 7)
    weights = rng.uniform(0.5, 2, size=len(y)) if weighted else np.ones(len(y))
    slow = errors_of_refits(RBF(0.3)(X), Y, alphas, weights)
    model = KernelRidgeCV(alphas, RBF(0.3), form=form).fit(X, Y, sample_weight=weights)
    assert_allclose(model.cv_errors_, slow, rtol=1e-6)
    assert model.alpha_ == alphas[np.argmin(slow)]
    assert model.best_score_ == -model.cv_errors_.min()


@pytest.mark.parametrize("form", FORMS)
def test_the_chosen_model_is_that_ridge(data, there, form):
    X, y, Z = data
    model = there(KernelRidgeCV([1e-3, 0.1, 10.0], RBF(0.2), form=form)).fit(X, y)
    ridge = there(KernelRidge(model.alpha_, RBF(0.2), form=form)).fit(X, y)
    assert_allclose(model.predict(Z), ridge.predict(Z), atol=1e-12)
    assert_allclose(model.dual_coef_, ridge.dual_coef_, atol=1e-12)
    assert_allclose(model.predict(Z, return_std=True)[1], ridge.predict(Z, return_std=True)[1])
    assert_allclose(model.function_(Z), model.predict(Z), atol=1e-9)


def test_choice_is_as_good_as_a_grid_search():
    """On the same alphas, by the error on fresh data."""
    X, y = make_friedman1(1200, n_features=6, noise=1.0, random_state=0)
    X, y, Z, t = X[:300], y[:300], X[300:], y[300:]
    alphas = np.logspace(-4, 2, 12)
    grid = GridSearchCV(Reference(kernel="rbf", gamma=0.5), {"alpha": alphas}, cv=5).fit(X, y)
    mine = KernelRidgeCV(alphas, RBF(0.5)).fit(X, y)
    assert mine.score(Z, t) >= grid.score(Z, t) - 1e-3
    by_hand = cross_val_predict(
        Reference(alpha=mine.alpha_, kernel="rbf", gamma=0.5), X[:80], y[:80], cv=LeaveOneOut()
    )
    closed = KernelRidgeCV([mine.alpha_], RBF(0.5)).fit(X[:80], y[:80])
    assert_allclose(closed.cv_errors_, np.mean((by_hand - y[:80]) ** 2), rtol=1e-8)


def test_real_data():
    X, y = load_diabetes(return_X_y=True)
    X = X / X.std(axis=0)
    model = KernelRidgeCV(np.logspace(-3, 3, 20), KernelMap(RBF(0.01), center=True))
    model.fit(X[::2], y[::2] - y[::2].mean())
    assert model.score(X[1::2], y[1::2] - y[::2].mean()) > 0.4


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"alpha": -1.0}, "alpha must be one non-negative number.*got -1.0"),
        ({"alpha": [1.0, 2.0]}, "one for each of the 1 targets"),
        ({"alpha": float("nan")}, "alpha must be"),
        ({"form": "both"}, "form must be one of auto, .*, fourier, got 'both'"),
        ({"form": "dual", "kernel": KernelMap(RBF(0.2))}, "no use for a KernelMap"),
    ],
    ids=str,
)
def test_bad_parameters(data, changes, match):
    X, y, _ = data
    with pytest.raises(ValueError, match=match):
        KernelRidge(kernel=RBF(0.2)).set_params(**changes).fit(X, y)


@pytest.mark.parametrize("alphas", [[], [0.0, 1.0], [-1.0], [np.nan], [[1.0, 2.0]]], ids=str)
def test_bad_alphas(data, alphas):
    X, y, _ = data
    with pytest.raises(ValueError, match="alphas must be a list of positive numbers"):
        KernelRidgeCV(alphas, RBF(0.2)).fit(X, y)


def test_too_small_an_alpha_says_which_is_safe(smooth):
    X, y, _ = smooth
    with pytest.raises(ValueError, match="alpha=0 is too small") as refused:
        KernelRidge(0.0, RBF(0.01), form="dual").fit(X, y)
    safe = float(re.search(r"at least (\S+)\.$", str(refused.value))[1])
    assert np.all(np.isfinite(KernelRidge(safe, RBF(0.01), form="dual").fit(X, y).predict(X)))


def test_alpha_zero_is_least_squares(data, there):
    X, y, _ = data
    model = there(KernelRidge(0.0, KernelMap(RBF(0.2), max_rank=20))).fit(X, y)
    Phi = model.kernel_map_.transform(X)
    assert_allclose(model.predict(X), Phi @ np.linalg.lstsq(Phi, y)[0], atol=1e-8)
    assert np.count_nonzero(model.dual_coef_) == 20  # on the landmarks
    assert_allclose(RBF(0.2)(X) @ model.dual_coef_, model.predict(X), atol=1e-8)


@pytest.mark.parametrize(
    ("y", "weights", "match"),
    [
        (None, None, "requires y"),
        (np.ones(3), None, "inconsistent numbers of samples"),
        (np.full(60, np.nan), None, "y contains NaN"),
        (np.ones(60), np.ones(3), "one finite, non-negative number for each of the 60 rows"),
        (np.ones(60), -np.ones(60), "one finite, non-negative number for each of the 60 rows"),
        (np.ones(60), np.zeros(60), "not all zero"),
    ],
    ids=["none", "short", "nan", "short weights", "negative weights", "zero weights"],
)
@pytest.mark.parametrize("model", [KernelRidge(), KernelRidgeCV()], ids=["ridge", "cv"])
def test_bad_targets(data, model, y, weights, match):
    with pytest.raises(ValueError, match=match):
        clone(model).fit(data[0], y, sample_weight=weights)


def test_a_failed_fit_leaves_the_old_one(data):
    X, y, Z = data
    model = KernelRidge(0.1, RBF(0.2)).fit(X, y)
    before = model.predict(Z)
    with pytest.raises(ValueError, match="inconsistent"):
        model.fit(X, y[:-1])
    assert_array_equal(model.predict(Z), before)


def test_tables_with_columns_of_several_types():
    """form="auto" looks at the rank of a sample of bound points, which are no frame any more."""
    import pandas as pd

    from mercer import RBF, FromFunction, KernelRidge, OnColumns

    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=60), "place": rng.choice(["sea", "hill"], 60)})
    y = np.sin(table["x"]) + (table["place"] == "sea")
    same = FromFunction(lambda a, b: float(a == b))
    kernel = OnColumns(RBF(1.0), "x") + OnColumns(same, "place")
    model = KernelRidge(1e-6, kernel).fit(table, y)
    assert model.score(table, y) > 0.999
    numbers_only = KernelRidge(1e-6, OnColumns(RBF(1.0), "x")).fit(table, y)
    assert numbers_only.form_ in ("primal", "dual")


def test_small_alphas_are_as_accurate_as_scikit_learns():
    """The coordinates of new points carry rounding of sqrt(eps) |w|: the dual form does not."""
    rng = np.random.default_rng(0)
    X, Z = np.sort(rng.uniform(0, 6, size=(60, 1)), axis=0), np.linspace(0, 6, 200)[:, None]
    y = np.sin(2 * X[:, 0])
    model = KernelRidge(1e-7, RBF(1.0)).fit(X, y)
    theirs = Reference(alpha=1e-7, kernel="rbf", gamma=1.0).fit(X, y)
    assert model.form_ == "dual"
    assert_allclose(model.predict(Z), theirs.predict(Z), atol=1e-6)


@pytest.mark.parametrize("full_rank", [True, False])
def test_leave_one_out_on_a_centred_map_is_that_of_refits(full_rank):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(25, 8 if full_rank else 2))
    y = np.sin(X[:, 0]) + 3.0 + 0.3 * rng.normal(size=25)
    alphas = [1e-8, 1e-3, 0.1, 1.0]
    kernel = KernelMap(RBF(0.2), center=True)
    chosen = KernelRidgeCV(alphas, kernel).fit(X, y)
    refits = []
    for alpha in alphas:
        errors = []
        for i in range(25):
            refit = KernelRidge(alpha, kernel).fit(np.delete(X, i, 0), np.delete(y, i))
            errors.append(y[i] - refit.predict(X[[i]]))
        refits.append(np.mean(np.square(errors)))
    assert_allclose(chosen.cv_errors_[1:], refits[1:], rtol=1e-6)
    assert chosen.alpha_ == alphas[int(np.argmin(refits))]
    assert chosen.cv_errors_[0] > 0.5 * refits[0]  # it must not tend to zero with alpha


def test_weights_on_a_centred_map_are_refused(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="center=False"):
        KernelRidgeCV(kernel=KernelMap(RBF(0.2), center=True)).fit(X, y, np.ones(len(y)))


def test_a_model_keeps_what_prediction_needs(rng):
    """The n x n factor is made again for uncertainty; a file of the model does not hold it."""
    X, y = rng.normal(size=(300, 12)), rng.normal(size=300)
    model = KernelRidge(0.1, RBF(0.2), form="dual").fit(X, y)
    before = len(pickle.dumps(model))
    assert before < 4 * 8 * 300 * (12 + 4)
    model.predict(X[:5], return_std=True)
    assert len(pickle.dumps(model)) == before


def test_uncertainty_asks_the_kernel_once(rng):
    calls = []

    def count(x, z):
        calls.append(1)
        return float(np.exp(-((x - z) ** 2).sum()))

    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    model = KernelRidge(0.1, KernelMap(FromFunction(count))).fit(X, y)
    calls.clear()
    model.predict(X[:10] + 0.1, return_std=True)
    assert len(calls) == 10 * model.kernel_map_.rank_ + 10


@pytest.mark.parametrize("form", FORMS)
def test_alphas_below_rounding_do_not_win(form):
    """With K close to the identity every left-out row is predicted as 0, whatever alpha is."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 100)), rng.normal(size=40)
    alphas = [1e-300, 1e-20, 1e-8]
    model = KernelRidgeCV(alphas, RBF(50.0), form=form).fit(X, y)
    assert_allclose(model.cv_errors_, np.mean(y**2), rtol=1e-6)
    assert model.alpha_ == 1e-8


@pytest.mark.parametrize("alpha", [1e-16, 1e-12, 1e-8])
@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2)], ids=repr)
def test_tiny_penalties_of_kernels_with_few_dimensions(kernel, alpha, rng):
    """K has rank 2 or 6: the dual form would find K + alpha I singular."""
    X = rng.normal(size=(400, 2))
    model = KernelRidge(alpha, kernel).fit(X, X[:, 0])
    assert model.form_ == "primal"
    assert_allclose(model.predict(X), X[:, 0], atol=1e-9)


def test_an_intercept_is_asked_for_by_true_or_false(data):
    X, y, _ = data
    for model in (KernelRidge(fit_intercept="no"), KernelRidgeCV(fit_intercept=None)):
        with pytest.raises(ValueError, match="fit_intercept must be True or False"):
            model.fit(X, y)


@pytest.mark.parametrize(
    "kernel", [Linear(), KernelMap(RBF(0.1), center=True, max_rank=3)], ids=repr
)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [1.0, 1e10])
def test_the_bound_counts_the_rounding_of_large_means(kernel, weighted, alpha, rng):
    # Exact: constant targets are the intercept alone, whatever the kernel.
    X, level = rng.normal(size=(3000, 2)) + 100, 1e9 + 0.1
    weights = rng.uniform(1, 2, size=3000) if weighted else None
    model = KernelRidge(alpha, kernel, form="primal", fit_intercept=True)
    model.fit(X, np.full((3000, 2), level), sample_weight=weights)
    error = np.abs(model.predict(X[:9]) - level)
    assert np.all(error <= model.error_bound(X[:9]))


@pytest.mark.parametrize("weighted", [False, True])
def test_means_of_many_rows_keep_their_digits_in_single_precision(weighted, rng):
    X = rng.normal(size=(100_000, 2)).astype(np.float32)
    y = np.full((100_000, 2), 0.1, dtype=np.float32)
    weights = np.ones(len(X)) if weighted else None
    model = KernelRidge(1.0, KernelMap(Linear(), basis="closed"), fit_intercept=True)
    assert_allclose(model.fit(X, y, weights).predict(X[:5]), 0.1, rtol=1e-6)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_cv_on_a_gram_matrix_knows_what_it_knows_on_the_rows(data, intercept, weighted, rng):
    X, y, Z = data
    weights = rng.uniform(size=60) * (rng.random(60) > 0.1) if weighted else None
    kernel, how = RBF(0.1), {"form": "dual", "fit_intercept": intercept}
    known = KernelRidgeCV([0.1, 1.0], kernel, **how).fit(X, y, weights)
    model = KernelRidgeCV([0.1, 1.0], "precomputed", **how).fit(kernel(X), y, weights)
    own = kernel.diagonal(Z)
    answers = model.predict(kernel(Z, X), return_std=True, diag=own)
    for found, expected in zip(answers, known.predict(Z, return_std=True)):
        assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert model.error_bound(kernel(Z, X), diag=own).max() < 1e-9


@pytest.mark.parametrize("form", ["dual", "primal"])
def test_a_diag_that_cannot_be_k_of_z_and_z_is_said(data, form):
    """It was a standard deviation of 0, and a bound of 0, without a word."""
    X, y, Z = data
    K, k_z, kernel_map = RBF(0.2)(X), RBF(0.2)(Z, X), KernelMap("precomputed")
    model = KernelRidge(0.1, "precomputed", form=form).fit(K, y)
    for wrong in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"diag must hold k\(z, z\), 0 or more"):
            model.error_bound(k_z, diag=np.full(25, wrong))
    ones, small = np.ones(25), np.full(25, 1e-3)
    with pytest.warns(UserWarning, match=r"diag=0.001 of row 0 is not k\(z, z\)"):
        std = model.predict(k_z, return_std=True, diag=small)[1]
    assert np.all(std < model.predict(k_z, return_std=True, diag=ones)[1])
    kernel_map.fit(K)
    with pytest.warns(UserWarning, match="diag=0.001"):
        assert np.all(kernel_map.residual(k_z, diag=small) == 0)
    with pytest.warns(UserWarning, match="diag=0.001"):
        assert kernel_map.distances(k_z, diag=small)[0, 1] > 0


@pytest.mark.parametrize("intercept", [False, True])
def test_what_is_not_a_kernel_has_predictions_and_no_certificate(data, intercept):
    """Next to the smallest eigenvalue errors were 1e10 times the bound."""
    X, y, _ = data
    K = RBF(0.1)(X) - 0.5 * np.eye(60)
    model = KernelRidge(0.6, "precomputed", form="dual", fit_intercept=intercept).fit(K, y)
    if not intercept:
        expected = K @ np.linalg.solve(K + 0.6 * np.eye(60), y)
        assert_allclose(model.predict(K), expected, atol=1e-9)
    with pytest.raises(ValueError, match="the similarity is not a kernel"):
        model.error_bound(K, diag=np.full(60, 0.5))
    with pytest.raises(ValueError, match=r"or indefinite\. Use an alpha"):
        model.set_params(alpha=0.1).fit(K, y)
    function = FromFunction(lambda a, b: float(np.exp(-((a - b) ** 2).sum())))
    assert KernelRidge(0.6, function, form="dual").fit(X, y).error_bound(X).max() < 1e-9


def test_iterations_test_more_than_the_columns_of_landmarks(rng):
    """One small negative eigenvalue among 400: errors were 60 times the bound."""
    Q = np.linalg.qr(rng.normal(size=(400, 400)))[0]
    K = Q @ np.diag([-1e-3, *rng.uniform(0, 3, size=399)]) @ Q.T
    model = KernelRidge(1e-3 * (1 + 1e-6), "precomputed", form="iterative")
    with pytest.raises(NotPSDError, match="indefinite='clip'"):
        model.fit((K + K.T) / 2, rng.normal(size=400))


def test_cv_on_an_indefinite_matrix_says_what_would_have_standard_deviations(data):
    X, y, _ = data
    K = RBF(0.1)(X) - 0.5 * np.eye(60)
    model = KernelRidgeCV([1.0], "precomputed", form="dual").fit(K, y)
    with pytest.raises(ValueError, match="negative eigenvalues, or alpha"):
        model.predict(K, return_std=True, diag=np.full(60, 0.5))


@pytest.mark.parametrize("model", [KernelRidge(RBF()), KernelRidgeCV(RBF())])
def test_a_kernel_in_the_place_of_the_penalty(model, rng):
    X = rng.normal(size=(20, 2))
    name = type(model).__name__
    with pytest.raises(TypeError, match=rf"must be numbers, got RBF\(\): {name}\(kernel=RBF\(\)\)"):
        model.fit(X, X[:, 0])


def test_what_a_form_does_not_have_is_named(rng):
    X = rng.normal(size=(20, 2))
    model = KernelRidge(form="dual").fit(X, X[:, 0])
    for name in ("coef_", "history_"):
        with pytest.raises(AttributeError, match=f"form 'dual' has no {name}: "):
            getattr(model, name)


def test_cv_says_where_the_chosen_penalty_is_lost_in_rounding(rng):
    X = rng.normal(size=(12, 2)) * 100
    model = KernelRidgeCV([1e-16, 1.0], Linear(), form="dual")
    with pytest.warns(UserWarning, match="alpha=1e-16 has the smallest errors, but is lost in"):
        model.fit(X, X[:, 0])
    assert model.alpha_ == 1e-16 < model.alphas_[0] < 1.0
