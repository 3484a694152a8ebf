"""KernelSVC and KernelLogistic: scikit-learn's answers, with bounds that hold."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.svm import SVC

from mercer import (
    RBF,
    FromFunction,
    KernelLogistic,
    KernelMap,
    KernelSVC,
    Laplacian,
    Linear,
    NotPSDError,
    Polynomial,
    Sigmoid,
    Spectrum,
    load,
    save,
)
from mercer.engine.arrays import as_numpy
from mercer.engine.memory import MemoryLimitError
from mercer.estimators import logistic, svc
from mercer.rows import Training
from mercer.solve import svm
from mercer.solve.duality import Rounding
from mercer.solve.newton import LogisticProblem, _Workspace

MODELS = [KernelSVC, KernelLogistic]


@pytest.fixture(scope="module")
def moons():
    return make_moons(200, noise=0.25, random_state=0)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


# --- the same as scikit-learn ---------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_a_machine_is_that_of_svc(moons, C):
    X, y = moons
    model, same = KernelSVC(C, RBF(1.0)).fit(X, y), SVC(C=C, gamma=1.0, tol=1e-8).fit(X, y)
    assert_allclose(model.decision_function(X), same.decision_function(X), atol=1e-4)
    assert_array_equal(model.support_, same.support_)
    assert_array_equal(model.n_support_, same.n_support_)
    assert_allclose(model.dual_coef_, same.dual_coef_, atol=1e-3 * C)
    assert_allclose(model.intercept_, same.intercept_, atol=1e-4)
    assert_allclose(model.function_(X), model.decision_function(X), atol=1e-9)


def test_several_classes_are_those_of_svc(iris):
    X, y = iris
    model, same = KernelSVC(10.0, RBF(0.5)).fit(X, y), SVC(C=10.0, gamma=0.5, tol=1e-8).fit(X, y)
    assert_allclose(model.decision_function(X), same.decision_function(X), atol=1e-4)
    assert_array_equal(model.support_, same.support_)
    assert_allclose(model.dual_coef_, same.dual_coef_, atol=1e-3)
    assert_allclose(model.intercept_, same.intercept_, atol=1e-4)
    pairs = clone(same).set_params(decision_function_shape="ovo").fit(X, y).decision_function(X)
    assert_allclose(-model.pair_values(X), pairs, atol=1e-4)
    assert len(model.function_) == 3


@pytest.mark.parametrize("C", [0.5, 20.0])
def test_a_machine_on_coordinates_is_the_kernel_machine(moons, C):
    """[NPT] (17)-(20): the same dual variables and the same intercept."""
    X, y = moons
    on_values = KernelSVC(C, RBF(1.0), tol=1e-5).fit(X, y)
    on_map = KernelSVC(C, KernelMap(RBF(1.0)), tol=1e-5).fit(X, y)
    assert (on_values.solver_, on_map.solver_) == ("dual", "map")
    assert_array_equal(on_values.support_, on_map.support_)
    assert_allclose(on_map.dual_coef_, on_values.dual_coef_, atol=1e-3 * C)
    assert_allclose(on_map.intercept_, on_values.intercept_, atol=1e-4)
    coordinates = on_map.kernel_map_.transform(X[on_map.support_])
    assert_allclose(on_map.coef_[0], on_map.dual_coef_[0] @ coordinates, atol=1e-6 * C)


@pytest.mark.parametrize("class_weight", [None, {0: 5.0}, {0: 0.2, 1: 3.0}])
def test_weights_are_those_of_svc(moons, class_weight):
    X, y = moons
    y = (np.arange(200) % 5 == 0).astype(int) | (y & (X[:, 0] > 1))
    weights = np.random.default_rng(0).uniform(0, 2, size=200)
    options = {"C": 2.0, "class_weight": class_weight}
    model = KernelSVC(kernel=RBF(1.0), **options).fit(X, y, weights)
    same = SVC(gamma=1.0, tol=1e-8, **options).fit(X, y, weights)
    assert_allclose(model.decision_function(X), same.decision_function(X), atol=1e-3)
    assert_array_equal(model.support_, same.support_)


def test_balanced_classes_are_those_of_svc(moons):
    X, y = moons[0], (moons[0][:, 0] > 1.2).astype(int)
    model = KernelSVC(2.0, RBF(1.0), class_weight="balanced").fit(X, y)
    same = SVC(C=2.0, gamma=1.0, class_weight="balanced", tol=1e-8).fit(X, y)
    assert_allclose(model.decision_function(X), same.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("model", MODELS)
def test_rows_of_weight_zero_do_not_matter(model, moons):
    X, y = moons
    weights = np.ones(200)
    weights[::3] = 0.0
    options = {"kernel": RBF(1.0), "class_weight": "balanced"}
    fitted = model(**options).fit(X, y, weights)
    without = model(**options).fit(X[weights > 0], y[weights > 0])
    assert_allclose(fitted.decision_function(X), without.decision_function(X), atol=1e-4)
    if model is KernelSVC:
        assert_array_equal(fitted.support_, np.flatnonzero(weights)[without.support_])
    else:
        assert_allclose(fitted.dual_coef_[:, ::3], 0.0)


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2), Laplacian(0.5), RBF(0.1) + Linear()])
def test_any_kernel(moons, kernel):
    X, y = moons
    model = KernelSVC(1.0, kernel).fit(X, y)
    same = SVC(C=1.0, kernel="precomputed", tol=1e-8).fit(kernel(X), y)
    assert_allclose(model.decision_function(X), same.decision_function(kernel(X)), atol=1e-3)


@pytest.mark.parametrize("weighted", [False, True])
def test_probabilities_are_those_of_logistic_regression(iris, moons, weighted):
    for X, y in (iris, moons):
        weights = np.random.default_rng(0).uniform(0.1, 2, size=len(y)) if weighted else None
        model = KernelLogistic(3.0, RBF(0.5), class_weight="balanced").fit(X, y, weights)
        Phi = KernelMap(RBF(0.5)).fit_transform(X)
        # Written out: scikit-learn 1.6 balances the numbers of rows, not their weights.
        own = np.ones(len(y)) if weights is None else weights
        total = np.bincount(y, own)
        same = LogisticRegression(C=3.0, solver="newton-cholesky", tol=1e-10, max_iter=1000).fit(
            Phi, y, own * (own.sum() / (len(total) * total))[y]
        )
        assert_allclose(model.predict_proba(X), same.predict_proba(Phi), atol=1e-4)
        assert_array_equal(model.predict(X), same.predict(Phi))


def test_dual_coefficients_of_logistic_regression_are_what_is_left(moons):
    X, y = moons
    model = KernelLogistic(2.0, RBF(1.0), tol=1e-6).fit(X, y)
    assert_allclose(model.dual_coef_[0], 2.0 * (y - model.predict_proba(X)[:, 1]), atol=1e-6)


# --- bounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_a_loose_solution_is_within_its_bound(model, moons):
    """The exact solution is that of a tight tolerance."""
    X, y = moons
    Z = np.random.default_rng(0).normal(size=(300, 2)) * 2
    loose = model(10.0, RBF(1.0), tol=0.3).fit(X, y)
    exact = model(10.0, RBF(1.0), tol=1e-5).fit(X, y)
    error = np.abs(loose.decision_function(Z) - exact.decision_function(Z))
    assert np.all(error <= loose.error_bound(Z) + exact.error_bound(Z))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("rank", [5, 20, 60])
def test_landmarks_are_certified_against_the_kernel_itself(model, iris, rank):
    X, y = iris[0][50:], iris[1][50:]
    Z = np.concatenate([X, X + 0.3 * np.random.default_rng(0).normal(size=X.shape)])
    few = model(5.0, KernelMap(RBF(0.5), max_rank=rank)).fit(X, y)
    exact = model(5.0, RBF(0.5), tol=1e-5).fit(X, y)
    error = np.abs(few.decision_function(Z) - exact.decision_function(Z))
    assert error.max() > 1e-7
    assert np.all(error <= few.error_bound(Z) + exact.error_bound(Z))
    sure = few.certain(Z)
    assert_array_equal(few.predict(Z)[sure], exact.predict(Z)[sure])
    assert few.coef_.shape == (1, few.kernel_map_.rank_)


@pytest.mark.parametrize(
    "given",
    [
        KernelMap(Linear(), center=True),
        KernelMap(Sigmoid(0.1, -1.0), indefinite="clip"),
        KernelMap(RBF(0.1), basis="fourier", tol=0.1),
    ],
    ids=["centred", "repaired", "fourier"],
)
@pytest.mark.parametrize("model", MODELS)
def test_a_map_that_is_another_kernel_has_lengths_of_its_own(model, given, rng):
    """Where k(z, z) is zero, the centred kernel is not."""
    X = rng.normal(size=(60, 3)) + (10.0 if given.center else 0.0)
    y = X[:, 0] + 0.5 * rng.normal(size=60) > X[:, 0].mean()
    Z = X if given.basis == "fourier" else np.vstack([np.zeros(3), X])
    loose, exact = model(0.1, given, tol=0.5).fit(X, y), model(0.1, given, tol=1e-6).fit(X, y)
    lengths = np.linalg.norm(loose.kernel_map_.transform(Z), axis=1)
    assert_allclose(
        loose.error_bound(Z), lengths * loose.error_norms_ + loose.intercept_errors_, rtol=1e-6
    )
    difference = abs(loose.decision_function(Z) - exact.decision_function(Z))
    assert np.all(difference <= loose.error_bound(Z) + exact.error_bound(Z))


def test_certain_rows_of_several_classes(iris):
    X, y = iris
    exact = KernelSVC(10.0, RBF(0.5), tol=1e-5).fit(X, y)
    assert exact.certain(X).all()
    few = KernelSVC(10.0, KernelMap(RBF(0.5), max_rank=60)).fit(X, y)
    sure = few.certain(X)
    assert sure.sum() > 0
    assert_array_equal(few.predict(X)[sure], exact.predict(X)[sure])


def test_votes_that_cannot_change(rng):
    """By all signs that the uncertain pairs may have."""
    from itertools import product

    for _ in range(20):
        values = rng.normal(size=(1, 6))
        sure = rng.random((1, 6)) > 0.4
        least, most = svc._vote_range(values > 0, sure, 4)
        seen = []
        for signs in product([-1, 1], repeat=6):
            other = np.where(sure, np.sign(values), np.array([signs]))
            seen.append(np.round(svc._votes(other * 1e-9, 4)))
        seen = np.array(seen)
        assert_array_equal(seen.min(axis=0), least)
        assert_array_equal(seen.max(axis=0), most)


def test_rows_near_the_boundary_are_not_certain():
    """Two points, one on each side: the exact machine is zero in the middle."""
    model = KernelSVC(1.0, Linear()).fit([[-1.0], [1.0]], [0, 1])
    assert_array_equal(model.certain([[0.0], [1.0]]), [False, True])


def test_an_intercept_that_is_not_unique_is_covered():
    """Both coefficients at their bound: every b between -0.8 and 0.8 is exact."""
    model = KernelSVC(0.1, Linear()).fit([[-1.0], [1.0]], [0, 1])
    assert model.intercept_errors_[0] >= 0.8 - 1e-9
    assert not model.certain([[1.0]])[0]


def test_a_function_that_is_zero_has_converged():
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    model = KernelSVC(1.0, RBF(1.0)).fit(X, [0, 1, 0, 1])
    assert model.converged_
    assert np.abs(model.decision_function(X)).max() <= model.error_bound(X).max()


# --- C --------------------------------------------------------------------------------------------


def test_leaving_out_in_closed_form_is_refitting():
    """To second order: log odds of each row without it against refits."""
    X, y = make_moons(60, noise=0.3, random_state=0)
    kernel, C = RBF(0.5), np.full(60, 1.0)
    rounding = Rounding.of(kernel, X)

    def problem_of(rows):
        training = Training.of(kernel, X[rows])
        return LogisticProblem(training, y[rows], 2, C[rows], rounding.take(rows))

    everything = problem_of(np.arange(60))
    space = _Workspace(everything)
    found = everything.solve(1e-8, space)
    got = space.left_out(everything, found)
    expected = []
    for i in range(60):
        others = np.delete(np.arange(60), i)
        without = problem_of(others).solve(1e-8)
        expected.append((kernel(X[[i]], X[others]) @ without.A + without.b)[0, 0])
    in_sample = found.values[:, 0] + found.b[0]
    error, moved = np.abs(got - expected), np.abs(in_sample - expected)
    assert error.max() < 0.1 * moved.max()
    y = np.where(y == 1, 1, -1)
    losses = [np.logaddexp(0, -y * v).mean() for v in (got, np.array(expected))]
    assert losses[0] == pytest.approx(losses[1], rel=0.01)


@pytest.mark.parametrize("model", MODELS)
def test_C_is_chosen(model, iris, moons):
    for X, y in (iris, moons):
        chosen = model("auto", RBF(0.5)).fit(X, y)
        given = model(chosen.C_, RBF(0.5)).fit(X, y)
        assert_allclose(chosen.decision_function(X), given.decision_function(X), atol=1e-9)
        assert 0.01 <= chosen.C_ <= 1000


def test_the_chosen_C_has_the_best_log_loss_of_refits(moons):
    from sklearn.model_selection import cross_val_predict

    X, y = moons
    chosen = KernelLogistic("auto", RBF(1.0)).fit(X, y)
    losses = [
        log_loss(
            y, cross_val_predict(KernelLogistic(C, RBF(1.0)), X, y, cv=10, method="predict_proba")
        )
        for C in (0.01, 1.0, chosen.C_)
    ]
    assert losses[-1] <= min(losses) * 1.05


def test_C_of_a_sample_grows_for_all_rows(monkeypatch):
    """What a sixteenth of the rows chooses is too small for all of them: C is four times that."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(3600, 2))
    y = (np.sin(2 * X[:, 0]) * np.sin(2 * X[:, 1]) > 0).astype(int)
    train, test = slice(0, 1600), slice(1600, None)
    monkeypatch.setattr(logistic, "_ROWS_FOR_C", 100)
    chosen = KernelLogistic("auto", RBF(1.0)).fit(X[train], y[train])
    of_sample = logistic.CANDIDATES[int(np.argmin(chosen.cv_losses_))]
    assert min(4 * of_sample, 1000.0) == chosen.C_
    same = KernelLogistic(of_sample, RBF(1.0)).fit(X[train], y[train])
    losses = [log_loss(y[test], model.predict_proba(X[test])) for model in (chosen, same)]
    assert losses[0] < 0.9 * losses[1]
    monkeypatch.undo()
    every = KernelLogistic("auto", RBF(1.0)).fit(X[:1500], y[:1500])
    assert every.C_ in logistic.CANDIDATES


# --- sources and formats --------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_a_gram_matrix(model, moons):
    X, y = moons
    K = RBF(1.0)(X)
    weights = np.ones(200)
    weights[::10] = 0.0
    for w in (None, weights):
        given = model(1.0, "precomputed").fit(K, y, w)
        same = model(1.0, RBF(1.0)).fit(X, y, w)
        assert_allclose(given.decision_function(K[:20]), same.decision_function(X[:20]), atol=1e-4)
        assert given.certain(K[:20], diag=np.ones(20)).shape == (20,)
        with pytest.raises(ValueError, match="diag="):
            given.error_bound(K[:20])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rank", [15, None])
@pytest.mark.parametrize("model", MODELS)
def test_a_map_of_a_gram_matrix(model, rank, weighted, moons):
    X, y = moons
    K = RBF(1.0)(X)
    weights = np.where(np.arange(200) % 7 == 0, 0.0, 1.0) if weighted else None
    on_matrix = model(1.0, KernelMap("precomputed", max_rank=rank)).fit(K, y, weights)
    on_rows = model(1.0, KernelMap(RBF(1.0), max_rank=rank)).fit(X, y, weights)
    given, same = on_matrix.decision_function(K), on_rows.decision_function(X)
    assert_allclose(given, same, atol=1e-4)
    bound = on_matrix.error_bound(K, diag=np.ones(200))
    assert_allclose(bound, on_rows.error_bound(X), rtol=0.05, atol=1e-3)
    exact = model(1.0, RBF(1.0), tol=1e-6).fit(X, y, weights)
    assert np.all(abs(exact.decision_function(X) - given) <= bound + exact.error_bound(X))


@pytest.mark.parametrize("model", MODELS)
def test_a_gram_matrix_larger_than_the_part_that_is_tested(model, moons, monkeypatch):
    monkeypatch.setattr("mercer.space.choice._TESTED", 50)
    X, y = moons
    fitted = model(kernel="precomputed").fit(RBF(1.0)(X), y)
    same = model(kernel=RBF(1.0)).fit(X, y)
    assert_allclose(fitted.intercept_, same.intercept_, atol=1e-3)


@pytest.mark.parametrize("model", MODELS)
def test_texts(model):
    texts = ["spam spam spam", "ham and eggs", "spam and spam", "eggs and ham", "more spam"]
    fitted = model(10.0, Spectrum(3)).fit(texts, ["bad", "good", "bad", "good", "bad"])
    assert fitted.predict(["spam", "ham"]).tolist() == ["bad", "good"]


@pytest.mark.parametrize("model", MODELS)
def test_saved_and_pickled(model, iris, tmp_path):
    X, y = iris
    for kernel in (RBF(0.5), KernelMap(RBF(0.5), max_rank=20)):
        fitted = model(1.0, kernel).fit(X, y)
        save(fitted, tmp_path / "model.mercer")
        for again in (load(tmp_path / "model.mercer"), pickle.loads(pickle.dumps(fitted))):
            assert_array_equal(again.decision_function(X), fitted.decision_function(X))
            assert_array_equal(again.error_bound(X), fitted.error_bound(X))
            assert_array_equal(again.certain(X), fitted.certain(X))


@pytest.mark.parametrize("model", MODELS)
def test_repaired_similarities_of_single_precision(model, xp, moons):
    """Weights of a repaired similarity are double, wherever its rows are."""
    X, y = xp.asarray(moons[0], dtype=xp.float32), moons[1]
    fitted = model(kernel=KernelMap(Sigmoid(0.1, -1.0), indefinite="clip")).fit(X, y)
    lengths = np.linalg.norm(as_numpy(fitted.kernel_map_.transform(X)), axis=1)
    expected = lengths * as_numpy(fitted.error_norms_) + as_numpy(fitted.intercept_errors_)
    assert_allclose(as_numpy(fitted.error_bound(X)), expected, rtol=1e-4)


@pytest.mark.parametrize("model", MODELS)
def test_arrays_stay_where_they_are(model, xp, iris):
    X, y = iris
    expected = model(1.0, RBF(0.5)).fit(X, y)
    fitted = model(1.0, RBF(0.5)).fit(xp.asarray(X), xp.asarray(y))
    got = fitted.decision_function(xp.asarray(X))
    assert type(got) is type(xp.asarray(X))
    assert_allclose(as_numpy(got), expected.decision_function(X), atol=1e-5)
    assert as_numpy(fitted.certain(xp.asarray(X))).all()


def test_workers_of_a_dask_collection_compute_products(moons, monkeypatch):
    da = pytest.importorskip("dask.array")
    from mercer.rows import gather
    from mercer.rows.workers import Workers
    from mercer.solve import SOLVERS
    from mercer.solve import newton as logistic

    monkeypatch.setattr(gather, "SAMPLE", 50)  # else so few rows are simply gathered
    monkeypatch.setattr(logistic, "_COMPETING", (SOLVERS["iterative"],))
    asked, real = [], Workers.exact_product
    monkeypatch.setattr(Workers, "exact_product", lambda self: asked.append(1) or real(self))
    X, y = moons
    fitted = KernelLogistic(2.0, RBF(1.0)).fit(da.from_array(X, chunks=(70, 2)), y)
    assert asked
    assert fitted.solver_ == "iterative"
    same = KernelLogistic(2.0, RBF(1.0)).fit(X, y)
    assert_allclose(fitted.decision_function(X), same.decision_function(X), atol=1e-3)


def test_more_rows_than_samples_of_the_search(monkeypatch):
    """Nested samples and rows that join later find what all rows at once find."""
    monkeypatch.setattr(svm, "FIRST", 60)
    X, y = load_digits(return_X_y=True)
    y = y % 2
    found = KernelSVC(10.0, RBF(1e-3)).fit(X, y)
    monkeypatch.setattr(svm, "FIRST", 10_000)
    exact = KernelSVC(10.0, RBF(1e-3)).fit(X, y)
    assert_allclose(found.decision_function(X), exact.decision_function(X), atol=1e-3)


def test_beyond_memory_landmarks_take_over(moons):
    X, y = make_moons(1500, noise=0.5, random_state=0)
    model = KernelSVC(1.0, RBF(1.0), memory_limit="6MB").fit(X, y)
    assert model.solver_ == "landmarks"
    exact = KernelSVC(1.0, RBF(1.0)).fit(X, y)
    error = np.abs(model.decision_function(X) - exact.decision_function(X))
    assert np.all(error <= model.error_bound(X) + exact.error_bound(X))
    with pytest.raises(MemoryError, match="solver='landmarks'"):
        KernelSVC(1.0, RBF(1.0), memory_limit="6MB", solver="dual").fit(X, y)


@pytest.mark.parametrize("limit", [1000, 100_000, 500_000])
def test_a_little_memory_is_never_a_sample_without_one_of_the_classes(limit, rng):
    """Room for 40 to 200 rows: the first of a sample are of one class, and there may be none."""
    X = rng.normal(size=(600, 3))
    y = X[:, 0] + rng.normal(size=600) > 0
    assert KernelSVC(1.0, RBF(0.5), memory_limit=limit).fit(X, y).solver_ == "landmarks"
    if limit < 500_000:
        with pytest.raises(MemoryLimitError, match=r"C='auto' solves for 100 rows .*as a number"):
            KernelSVC("auto", RBF(0.5), memory_limit=limit).fit(X, y)


@pytest.mark.parametrize("model", [KernelSVC, KernelLogistic])
def test_coordinates_beyond_the_limit_are_refused_as_such(model, rng, monkeypatch):
    """As by all other estimators: MemoryLimitError, which is a ValueError too."""
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 1000)
    X = rng.normal(size=(12_000, 3))
    kernel_map = KernelMap(RBF(0.1), max_rank=300, memory_limit="20MB")
    with pytest.raises(MemoryLimitError, match=r"all 12000 rows at once: limit the rank"):
        model(kernel=kernel_map).fit(X, X[:, 0] > 0)


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"C": 0.0}, r"C must be a positive number of at most 1e\+100, or 'auto', got 0.0"),
        ({"C": 10**400}, "C must be"),
        ({"C": -1}, "C must be"),
        ({"C": "best"}, "C must be"),
        ({"C": np.nan}, "C must be"),
        ({"tol": 0.0}, "tol must be"),
        ({"class_weight": "even"}, "class_weight must be"),
        ({"class_weight": [1.0, 2.0]}, "class_weight must be"),
        ({"class_weight": 2.0}, "class_weight must be"),
        ({"class_weight": {7: 1.0}}, "class_weight names 7"),
        ({"class_weight": {0: "heavy"}}, "non-negative numbers, got {0: 'heavy'}"),
        ({"class_weight": {0: -1.0}}, "non-negative"),
        ({"class_weight": {0: 0.0}}, "no row of positive weight"),
    ],
)
def test_arguments_that_make_no_sense(model, arguments, message, moons):
    with pytest.raises(ValueError, match=message):
        model(**{"kernel": RBF(1.0)} | arguments).fit(*moons)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y"),
        (np.zeros(200), "at least two classes"),
        (np.full(200, np.nan), "NaN"),
        (np.linspace(0, 1, 200), "continuous"),
        (np.array([1, "a"] * 100, dtype=object), "several types"),
        (np.array([0, 1]), "inconsistent"),
    ],
)
def test_classes_that_make_no_sense(model, y, message, moons):
    with pytest.raises(ValueError, match=message):
        model(kernel=RBF(1.0)).fit(moons[0], y)


@pytest.mark.parametrize("kernel", [Linear(), KernelMap(Linear())])
@pytest.mark.parametrize("model", MODELS)
def test_rows_at_the_origin_have_the_frequent_class(model, kernel):
    """The kernel is zero, and coordinates are none: the intercept is all there is."""
    y = np.repeat([0, 1], [5, 15])
    fitted = model(kernel=kernel).fit(np.zeros((20, 2)), y)
    assert_array_equal(fitted.predict(np.zeros((3, 2))), 1)
    if model is KernelLogistic:
        assert_allclose(fitted.predict_proba(np.zeros((1, 2)))[0], [0.25, 0.75], atol=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_weights_that_make_no_sense(model, moons):
    X, y = moons
    for weights in (-np.ones(200), np.zeros(200), np.ones(3), np.full(200, np.inf)):
        with pytest.raises(ValueError, match="sample_weight must hold"):
            model(kernel=RBF(1.0)).fit(X, y, weights)
    with pytest.raises(ValueError, match="class 0 has no row of positive weight"):
        model(kernel=RBF(1.0)).fit(X, y, (y == 1).astype(float))


@pytest.mark.parametrize("model", MODELS)
def test_similarities_that_are_no_kernel(model, moons):
    X, y = moons
    with pytest.raises(NotPSDError):
        model(kernel=FromFunction(lambda a, b: -float(a @ b))).fit(X, y)
    repaired = KernelMap(FromFunction(lambda a, b: float(np.tanh(a @ b - 1))), indefinite="clip")
    assert model(kernel=repaired).fit(X[:60], y[:60]).score(X[:60], y[:60]) > 0.7


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_that_are_not_numbers(model, bad, moons):
    X, y = moons[0].copy(), moons[1]
    X[3, 1] = bad
    with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
        model(kernel=RBF(1.0)).fit(X, y)


def test_pairs_of_classes_with_their_own_matrix_are_the_same(iris, monkeypatch):
    """Small pairs store their kernel matrix, large ones evaluate what they need."""
    X, y = iris
    stored = KernelSVC(10.0, RBF(0.5)).fit(X, y)
    monkeypatch.setattr(svc, "_STORED", 0)
    evaluated = KernelSVC(10.0, RBF(0.5)).fit(X, y)
    assert_array_equal(stored.support_, evaluated.support_)
    assert_allclose(stored.pair_values(X), evaluated.pair_values(X), atol=1e-4)


def test_two_hundred_classes(rng):
    X = rng.normal(size=(600, 3))
    y = np.arange(600) % 200
    fitted = KernelLogistic(1.0, RBF(1.0), tol=0.1).fit(X[:400], y[:400])
    assert fitted.predict_proba(X).shape == (600, 200)
    model = KernelSVC(10.0, RBF(10.0)).fit(X[:60], y[:60] % 20)
    assert model.dual_coef_.shape == (19, 60)
    assert model.score(X[:60], y[:60] % 20) > 0.9


def test_a_solver_that_does_not_exist(moons):
    with pytest.raises(ValueError, match="solver must be one of"):
        KernelSVC(solver="smo").fit(*moons)
    with pytest.raises(ValueError, match="no use for a KernelMap"):
        KernelSVC(kernel=KernelMap(), solver="dual").fit(*moons)


def test_what_does_not_converge_warns(moons, monkeypatch):
    from mercer.solve import newton

    monkeypatch.setattr(newton, "_MOST_NEWTON", 1)
    with pytest.warns(ConvergenceWarning, match="The bound holds all the same"):
        loose = KernelLogistic(100.0, RBF(1.0)).fit(*moons)
    monkeypatch.undo()
    exact = KernelLogistic(100.0, RBF(1.0)).fit(*moons)
    X = moons[0]
    error = np.abs(loose.decision_function(X) - exact.decision_function(X))
    assert np.all(error <= loose.error_bound(X) + exact.error_bound(X))


def test_a_matrix_on_which_libsvm_does_not_end():
    """Rows close to each other, far from the origin, and a large C: the bound says how far."""
    rng = np.random.default_rng(1)
    X, y = 1000 * rng.normal(size=20) + rng.normal(size=(40, 20)), np.repeat([1, -1], 20)
    with pytest.warns(ConvergenceWarning):
        model = KernelSVC(400.0, Polynomial(3, 0.12) * Polynomial(3, 0.05)).fit(X, y)
    assert model.n_iter_ > 10_000
    assert np.isfinite(model.error_norms_).all()
