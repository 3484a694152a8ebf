"""Laws over every solver: one answer within the bounds, leave-one-out by refits, GP variance."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import (
    RBF,
    Chunks,
    KernelDiscriminant,
    KernelMap,
    KernelRidge,
    KernelRidgeCV,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
)
from mercer.rows import Training
from mercer.solve import SOLVERS, Given, LeaveOneOut, RidgeProblem, solve_ridge

N = 60
KERNELS = [RBF(0.5), Matern(0.5), Matern(2.5, 2.0), Laplacian(0.3), Linear(), Polynomial(2)]
# Exact ones: landmarks solve another problem, unless every row is one.
EXACT = ["direct", "mixed", "primal", "iterative", "fourier"]
CASES = [(w, b, t) for w in (False, True) for b in (False, True) for t in (1, 2)]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    T = np.column_stack([np.sin(X[:, 0]) + 2, X[:, 1] ** 2]) + 0.1 * rng.normal(size=(N, 2))
    return X, T, rng.uniform(0.2, 2.0, size=N), rng.normal(size=(20, 2))


def problem_of(kernel, X, T, *, weights=None, intercept=False, alphas=(0.1, 0.7), tol=1e-6):
    given = Given(np.array(alphas[: T.shape[1]]))
    return RidgeProblem(Training.of(kernel, X), T, given, weights, intercept, tol=tol)


def oracle(kernel, X, T, Z, weights, intercept, alphas):
    """(values, variances) at Z by one linear system per target, in plain algebra."""
    n = len(X)
    K, k, own = kernel(X), kernel(X, Z), kernel.diag(Z)
    noise = np.ones(n) if weights is None else 1 / weights
    values, variances = [], []
    for t, alpha in zip(T.T, alphas):
        A = K + alpha * np.diag(noise)
        inverse_k = np.linalg.solve(A, k)
        variance = own - np.einsum("ij,ij->j", k, inverse_k)
        if intercept:
            u = np.linalg.solve(A, np.ones(n))
            b = u @ t / u.sum()
            values.append(inverse_k.T @ (t - b) + b)
            variances.append(variance + (1 - u @ k) ** 2 / u.sum())
        else:
            values.append(inverse_k.T @ t)
            variances.append(variance)
    return np.column_stack(values), np.column_stack(variances)


def solved(name, problem):
    reason = SOLVERS[name].refusal(problem)
    if reason is not None:
        assert len(reason) > 20  # in words
        pytest.skip(reason)
    return solve_ridge(problem, name)


@pytest.mark.parametrize(("weighted", "intercept", "targets"), CASES)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("name", EXACT)
def test_all_solvers_agree_within_their_bounds(name, kernel, weighted, intercept, targets, rows):
    X, T, w, Z = rows
    T, weights = T[:, :targets], w if weighted else None
    if name == "fourier":  # one column and smooth kernels: few frequencies
        X, Z = X[:, :1], Z[:, :1]
        if kernel in (Matern(0.5), Laplacian(0.3)):
            pytest.skip("rough: thousands of frequencies")
    alphas = (0.1, 0.1) if name == "mixed" else (0.1, 0.7)  # one factor, one penalty
    problem = problem_of(kernel, X, T, weights=weights, intercept=intercept, alphas=alphas)
    solution = solved(name, problem)
    values, variances = oracle(kernel, X, T, Z, weights, intercept, alphas)
    error = np.abs(np.asarray(solution.prediction(Z)) - values)
    rounding = 1e-11 * np.abs(values).max()  # of the oracle itself
    assert np.all(error <= solution.error_bound(Z) + rounding)
    assert error.max() < 1e-4
    assert np.all(np.isfinite(solution.error_bound(Z)))
    if name == "direct":  # a bound that says something
        assert solution.error_bound(Z).max() < 1e-7 * max(1.0, np.sqrt(kernel.diag(Z).max()))
    with np.errstate(invalid="ignore"):
        found = np.asarray(solution.variance(Z))
    assert_allclose(found, variances, atol=1e-5 * kernel.diag(Z).max())


@pytest.mark.parametrize(("weighted", "intercept"), [(w, b) for w in (0, 1) for b in (0, 1)])
@pytest.mark.parametrize("kernel", [RBF(0.5), Matern(0.5), Linear()], ids=repr)
@pytest.mark.parametrize("name", ["direct", "mixed", "primal", "iterative"])
def test_leave_one_out_is_refitting_without_the_row(name, kernel, weighted, intercept, rows):
    X, T, w, _ = rows
    X, T, weights = X[:25], T[:25], w[:25] if weighted else None
    alphas = (0.1, 0.1)
    problem = problem_of(kernel, X, T, weights=weights, intercept=bool(intercept), alphas=alphas)
    found = solve_ridge(problem, name).left_out(np.array([0, 7, 24])).residuals
    for place, i in enumerate((0, 7, 24)):
        rest = np.arange(25) != i
        left = None if weights is None else weights[rest]
        values, _ = oracle(kernel, X[rest], T[rest], X[[i]], left, bool(intercept), alphas)
        assert_allclose(found[place], T[i] - values[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("asked", [60, 700])
@pytest.mark.parametrize("intercept", [False, True])
def test_errors_of_many_left_out_rows_come_from_one_factor(intercept, asked, rng):
    """Neighbours say how large they are at most; where all rows cost less, they are exact."""
    X, w = rng.normal(size=(700, 2)), rng.uniform(0.5, 2, size=700)
    T = np.sin(2 * X[:, :1]) + 0.3 * rng.normal(size=(700, 1))
    problem = problem_of(Matern(0.5), X, T, weights=w, intercept=intercept, alphas=(0.1,))
    some = np.arange(asked)
    found, exact = (solve_ridge(problem, name).left_out(some) for name in ("iterative", "direct"))
    assert_allclose(found.left, exact.left, rtol=1e-8)
    assert_allclose(found.residuals, exact.residuals, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", ["direct", "primal"])
def test_the_penalty_with_the_smallest_error_of_refits_is_chosen(name, intercept, rows):
    X, T, _, _ = rows
    X, T, candidates = X[:30], T[:30, :1], np.array([1e-4, 1e-2, 1.0, 30.0])
    problem = replace(
        problem_of(RBF(0.5), X, T, intercept=intercept), alpha=LeaveOneOut(candidates)
    )
    choice = solve_ridge(problem, name).choice
    slow = []
    for alpha in candidates:
        errors = []
        for i in range(30):
            rest = np.arange(30) != i
            at = X[[i]]
            values, _ = oracle(RBF(0.5), X[rest], T[rest], at, None, intercept, [alpha])
            errors.append(T[i, 0] - values[0, 0])
        slow.append(np.mean(np.square(errors)))
    assert_allclose(choice.errors, slow, rtol=1e-5)
    assert choice.alpha == candidates[int(np.argmin(slow))]


@pytest.mark.parametrize("form", ["dual", "primal", "iterative"])
@pytest.mark.parametrize("intercept", [False, True])
def test_any_array_namespace(form, intercept, rows, there):
    X, T, w, Z = rows
    values, variances = oracle(Matern(2.5, 2.0), X, T, Z, w, intercept, [0.1, 0.1])
    model = KernelRidge(0.1, Matern(2.5, 2.0), form=form, fit_intercept=intercept, tol=1e-7)
    mean, std = there(model).fit(X, T, w).predict(Z, return_std=True)
    assert_allclose(mean, values, atol=1e-5)
    assert_allclose(std**2, variances[:, 0], atol=1e-5)


@pytest.mark.parametrize("source", ["array", "stream", "dask"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_sources_give_the_same_answer(source, intercept, weighted, rows, monkeypatch):
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 30)
    X, T, w, Z = rows
    given, weights = X, w if weighted else None
    if source == "stream":
        given = Chunks(lambda: (X[a : a + 13] for a in range(0, N, 13)))
    elif source == "dask":
        da = pytest.importorskip("dask.array", reason="pip install mercer[dask]")
        given = da.from_array(X, chunks=(17, 2))
    model = KernelRidge(0.1, KernelMap(RBF(0.5), tol=1e-12), fit_intercept=intercept)
    model.fit(given, T, weights)
    values, variances = oracle(RBF(0.5), X, T, Z, weights, intercept, [0.1, 0.1])
    mean, std = model.predict(Z, return_std=True)
    assert_allclose(mean, values, atol=1e-5)
    assert_allclose(std**2, variances[:, 0], atol=1e-5)
    assert np.all(np.abs(mean - values) <= model.error_bound(Z))
    assert model.error_bound(Z).max() < 0.1
    coarse = KernelRidge(0.1, KernelMap(RBF(0.5), max_rank=8), fit_intercept=intercept)
    coarse.fit(given, T, weights)
    error = np.abs(coarse.predict(Z) - values)
    assert error.max() > 0.01
    assert np.all(error <= coarse.error_bound(Z))


@pytest.mark.parametrize("form", ["dual", "iterative", "fourier", "auto"])
def test_refusals_are_the_same_wherever_the_rows_are(form, rows, monkeypatch):
    """A penalty of zero: the same words for arrays, streams and Dask."""
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 30)
    X, T, _, _ = rows
    da = pytest.importorskip("dask.array", reason="pip install mercer[dask]")
    sources = [
        X,
        Chunks(lambda: (X[a : a + 13] for a in range(0, N, 13))),
        da.from_array(X, chunks=(17, 2)),
    ]
    said = []
    for given in sources:
        model = KernelRidge(-1.0, RBF(0.5), form=form)
        with pytest.raises(ValueError, match="non-negative") as caught:
            model.fit(given, T)
        said.append(str(caught.value))
        if form in ("iterative", "fourier"):
            with pytest.raises(ValueError, match="alpha") as caught:
                KernelRidge(0.0, RBF(0.5), form=form).fit(given, T)
            said[-1] += str(caught.value)
    assert len(set(said)) == 1


def test_a_wrong_solution_is_not_within_its_bound(rows):
    """The bound is not idle: a coefficient that is moved by more than it says is outside."""
    X, T, _, Z = rows
    solution = solve_ridge(problem_of(Matern(0.5), X, T[:, :1]), "direct")
    moved = replace(solution.prediction, W=solution.prediction.W + 1e-6)
    values, _ = oracle(Matern(0.5), X, T[:, :1], Z, None, False, [0.1])
    assert np.any(np.abs(moved(Z) - values) > solution.error_bound(Z))


def test_the_rank_is_at_most_the_dimension_of_the_features(rng):
    """A sample of 400 rows has full rank with 450 columns; all rows have rank 450."""
    X = rng.normal(size=(2000, 450))
    problem = RidgeProblem(Training.of(Linear(), X), X[:, :1], Given(np.ones(1)))
    assert problem.rank == 450


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("form", ["auto", "primal", "dual"])
def test_rows_at_the_origin_of_the_space(form, intercept):
    """Without coordinates nothing but the mean is left."""
    X, y = np.zeros((20, 2)), np.arange(20.0)
    model = KernelRidge(1.0, Linear(), form=form, fit_intercept=intercept).fit(X, y)
    mean, deviation = model.predict(X[:2], return_std=True)
    assert_allclose(mean, y.mean() if intercept else 0.0)
    assert_allclose(deviation, (1.0 / 20) ** 0.5 if intercept else 0.0, atol=1e-12)
    chosen = KernelRidgeCV(kernel=Linear(), fit_intercept=intercept).fit(X, y)
    assert_allclose(chosen.predict(X[:2]), mean)
    classes = KernelDiscriminant(kernel=Linear()).fit(X, y < 15)
    assert_allclose(classes.predict_proba(X[:2]), [[0.25, 0.75]] * 2, atol=1e-12)
