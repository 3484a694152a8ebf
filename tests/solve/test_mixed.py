"""A factor mostly in single precision, refined: the digits of double, in half the memory."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import RBF, FromFunction, KernelRegressor, KernelRidge, Matern, Precomputed
from mercer.engine import tiles
from mercer.rows import Training
from mercer.solve import SOLVERS, CannotSolve, Given, RidgeProblem, mixed, solve_ridge

N = 1000
KERNELS = [Matern(2.5, 4.0), Matern(0.5, 2.0), RBF(0.05) + 0.1 * Matern(1.5)]


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(N, 6))
    T = np.sin(2 * X[:, :1]) + X[:, 1:2] + 5 + 0.1 * rng.normal(size=(N, 1))
    return X, T, rng.uniform(0.1, 3, size=N)


def problem_of(kernel, X, T, alpha=1e-3, weights=None, intercept=True):
    given = Given(np.full(T.shape[1], alpha))
    return RidgeProblem(Training.of(kernel, X), T, given, weights, intercept, tol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [1e-4, 1e-2])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_it_has_the_digits_of_a_factor_in_double_precision(kernel, alpha, weighted, rows, rng):
    X, T, w = rows
    problem = problem_of(kernel, X, np.c_[T, T**2], alpha, w if weighted else None)
    found, exact = (solve_ridge(problem, name) for name in ("mixed", "direct"))
    Z = rng.normal(size=(100, 6))
    error = np.abs(found.prediction(Z) - exact.prediction(Z))
    assert error.max() < 1e-8 * np.abs(T).max() ** 2
    assert np.all(error <= found.error_bound(Z) + exact.error_bound(Z))
    left, known = found.left_out(), exact.left_out()
    assert_allclose(left.left, known.left, rtol=5e-3)
    assert_allclose(left.residuals, known.residuals, rtol=5e-3, atol=1e-6)
    assert_allclose(found.variance(Z), exact.variance(Z), rtol=1e-9)


def test_the_factor_is_that_of_the_matrix_in_another_order(rows):
    X, kernel, noise = rows[0][:300], KERNELS[0], 0.01 * rows[2][:300]
    factor = mixed._MixedFactor.of(kernel, X, noise)
    n, r = 300, len(factor.C)
    assert factor.L.dtype == np.float32
    assert factor.B.dtype == factor.C.dtype == np.float64
    assert r == 300 // 64
    assert factor.L.shape == (n - r, n - r)
    whole = np.zeros((n, n))
    whole[:r, :r], whole[r:, :r], whole[r:, r:] = (
        np.tril(factor.C),
        factor.B,
        factor.D[:, None] * np.tril(factor.L),
    )
    A = kernel(X) + np.diag(noise)
    assert_allclose(whole @ whole.T, A[np.ix_(factor.order, factor.order)], atol=2e-6)
    inverse = np.linalg.inv(A)
    rows = np.r_[factor.order[:2], 7, 299]  # landmarks, and others
    assert_allclose(factor.inverse_diagonal(rows), inverse[rows, rows], rtol=1e-3)
    assert_allclose(factor.solve(np.eye(n)), inverse, atol=1e-3 * np.abs(inverse).max())


def test_landmarks_make_single_precision_exact_enough(rows, monkeypatch):
    """Without them, rounding is relative to K: far more iterations, or none that help."""
    X, T, _ = rows
    problem, products = problem_of(RBF(0.05), X, T, 1e-4), []
    count = mixed.ConjugateGradients.product
    monkeypatch.setattr(
        mixed.ConjugateGradients, "product", lambda self: products.append(1) or count(self)
    )
    solve_ridge(problem, "mixed")
    few = len(products)
    monkeypatch.setattr(mixed, "_landmarks", lambda n: 1)
    monkeypatch.setattr(mixed, "_MOST_ROUNDING", np.inf)
    products.clear()
    solve_ridge(problem, "mixed")
    assert few <= 4 < 6 <= len(products)


@pytest.mark.parametrize("of_kernel", [1e-60, 1e60])
@pytest.mark.parametrize("of_targets", [1e-200, 1e200])
def test_no_scale_is_beyond_single_precision(of_kernel, of_targets, rows):
    X, T, w = (part[:300] for part in rows)
    plain = solve_ridge(problem_of(KERNELS[0], X, T, 0.1, w**8), "mixed").prediction(X)
    problem = problem_of(of_kernel * KERNELS[0], X, of_targets * T, 0.1 * of_kernel, w**8)
    found = solve_ridge(problem, "mixed")
    assert_allclose(found.prediction(X) / of_targets, plain, rtol=1e-6)
    assert np.isfinite(found.left_out().residuals).all()


@pytest.mark.parametrize("alpha", [1e-9, 1e-12])
def test_a_penalty_below_single_precision_is_left_to_others(alpha, rows, monkeypatch):
    X, T, _ = rows
    with pytest.raises(CannotSolve, match="single precision loses"):
        solve_ridge(problem_of(RBF(0.05), X, T, alpha), "mixed")
    monkeypatch.setattr(mixed, "LEAST_ROWS", 500)
    model = KernelRidge(1e-9, Matern(0.5, 50.0), form="auto").fit(X, T)
    assert model.form_ != "mixed"


def test_a_bad_factor_is_noticed(rows, monkeypatch):
    X, T, _ = rows
    unexplained = mixed._unexplained

    def damaged(*given):
        R = unexplained(*given)
        R[np.triu_indices(len(R), 1)] *= 0.5
        return R

    monkeypatch.setattr(mixed, "_unexplained", damaged)
    with pytest.raises(CannotSolve, match="too far from the kernel matrix"):
        solve_ridge(problem_of(RBF(0.05), X, T, 1e-4), "mixed")


def test_auto_takes_it_for_many_rows(rows, monkeypatch, rng):
    X, T, _ = rows
    kernel, Z = Matern(0.5, 5.0), rng.normal(size=(20, 6))
    before = KernelRidge(1e-3, kernel).fit(X, T)
    monkeypatch.setattr(mixed, "LEAST_ROWS", 500)
    monkeypatch.setattr("mercer.solve.auto.QUICKEST_START", 0.0)
    prices = mixed.Mixed.cost
    monkeypatch.setattr(
        mixed.Mixed, "cost", lambda self, problem: type(c := prices(self, problem))(0.0, c.bytes)
    )
    model = KernelRidge(1e-3, kernel).fit(X, T)
    assert (model.form_, before.form_) == ("mixed", "dual")
    assert_allclose(model.predict(Z), before.predict(Z), rtol=1e-8)
    (values, std), (_, known) = (m.predict(Z, return_std=True) for m in (model, before))
    assert_allclose(std, known, rtol=1e-9)
    assert np.all(np.abs(values - before.predict(Z)) <= model.error_bound(Z))
    monkeypatch.setattr("mercer.solve.ridge_path.ROWS_FOR_SEARCH", 500)
    learned = KernelRegressor(kernel="matern", stack=False, random_state=0).fit(X, T[:, 0])
    assert learned.solver_ == "mixed"
    assert 0.05 < learned.leave_one_out_rmse_ < 0.6


def test_what_it_is_not_for_is_refused_in_words(rows):
    X, T, _ = rows
    solver, double = SOLVERS["mixed"], problem_of(KERNELS[0], X, T)
    assert solver.refusal(double) is None
    assert "12,000 rows" in solver.refusal(double, asked=False)
    two = RidgeProblem(Training.of(KERNELS[0], X), np.c_[T, T], Given(np.array([1.0, 2.0])))
    for problem, words in (
        (problem_of(KERNELS[0], X.astype(np.float32), T), "NumPy's doubles"),
        (problem_of(FromFunction(lambda x, z: x @ z), X, T), "whether this kernel is valid"),
        (problem_of(KERNELS[0], X, T, 0.0), "alpha > 0"),
        (two, "penalties of targets differ"),
        (problem_of(Precomputed(), KERNELS[0](X), T), "whether this kernel is valid"),
    ):
        assert words in solver.refusal(problem)


def test_the_matrix_in_double_precision_is_never_stored_where_memory_is_short(rng):
    """Products are made of tiles then; the factor takes four bytes for each pair of rows."""
    X = rng.normal(size=(2000, 6))
    T, kernel, tiny = np.sin(X[:, :1]), KERNELS[0].bind(X), 4 * 2000**2 + 8_000_000
    training = Training.of(kernel, X)
    training = replace(training, resources=replace(training.resources, memory_limit=tiny))
    problem = RidgeProblem(training, T, Given(np.array([1e-3])), intercept=True, tol=1e-8)
    assert SOLVERS["mixed"].refusal(problem) is None
    assert SOLVERS["direct"].refusal(problem) is not None
    tiles.evaluate(kernel, X[:50])
    tracemalloc.start()
    solution = solve_ridge(problem, "mixed")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < tiny
    assert solution.error_norms.max() < 1e-6
