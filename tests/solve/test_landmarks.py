"""Ridge on landmarks: its uncertainty, and rows that are left out as landmarks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import RBF, KernelRegressor, Matern
from mercer.learn.observations import Observations
from mercer.solve import LandmarkSolver, solve_ridge
from mercer.solve.primal import LEAST, MOST, _landmarks_within


def ridge_on(indices, kernel, rows, alpha):
    return LandmarkSolver(np.asarray(indices)).solve(rows.problem(kernel, alpha, choose=False))


def test_landmarks_at_all_rows_are_the_exact_fit(rng):
    X, T = rng.normal(size=(40, 2)), rng.normal(size=(40, 1))
    kernel, Z = Matern(0.5), rng.normal(size=(6, 2))
    rows = Observations.of(X, T)
    problem = rows.problem(kernel, 0.1, choose=False)
    exact, few = solve_ridge(problem, "direct"), ridge_on(rng.permutation(40), kernel, rows, 0.1)
    assert_allclose(few.prediction(Z), exact.prediction(Z), rtol=1e-6, atol=1e-8)
    assert_allclose(few.left_out().residuals, exact.left_out().residuals, rtol=1e-6, atol=1e-8)


def test_variance_is_that_of_a_gaussian_process_with_unknown_mean(rng):
    """k(z, z) - k_z'A^-1 k_z + (1 - 1'A^-1 k_z)^2 / (1'A^-1 1), to O(1 / n)."""
    X, T = rng.normal(size=(300, 1)), rng.normal(size=(300, 1))
    kernel, alpha, Z = RBF(0.5), 0.3, np.array([[0.0], [1.0], [6.0]])
    model = ridge_on(np.arange(300), kernel, Observations.of(X, T), alpha)
    A = kernel(X) + alpha * np.eye(300)
    k = kernel(X, Z)
    u = np.linalg.solve(A, np.ones(300))
    expected = 1 - (k * np.linalg.solve(A, k)).sum(axis=0) + (1 - u @ k) ** 2 / u.sum()
    found = model.variance(Z)[:, 0]
    assert_allclose(found[:2] + alpha, expected[:2] + alpha, rtol=0.05)
    assert found[2] > 0.9


@pytest.mark.parametrize("n_landmarks", [2, 20, 39, 40])
def test_rows_that_are_landmarks_are_left_out_as_landmarks(rng, n_landmarks):
    """Against ridge on the other rows, by the coordinates of the other landmarks."""
    X, T = rng.normal(size=(40, 2)), rng.normal(size=(40, 2))
    kernel, alpha, indices = RBF(0.5), 0.02, rng.permutation(40)[:n_landmarks]
    model = ridge_on(indices, kernel, Observations.of(X, T), alpha)
    found = model.left_out()
    for j in range(40):
        kept, S = np.delete(np.arange(40), j), X[indices[indices != j]]
        C = np.linalg.cholesky(kernel(S) + 1e-14 * np.eye(len(S)))
        F, f = np.linalg.solve(C, kernel(S, X[kept])).T, np.linalg.solve(C, kernel(S, X[[j]]))[:, 0]
        M = (F - F.mean(axis=0)).T @ (F - F.mean(axis=0)) + alpha * np.eye(len(S))
        w = np.linalg.solve(M, (F - F.mean(axis=0)).T @ T[kept])
        f_centred = f - F.mean(axis=0)
        error = T[j] - f_centred @ w - T[kept].mean(axis=0)
        assert_allclose(found.residuals[j], error, rtol=1e-5, atol=1e-6)
        open_part = f_centred @ np.linalg.solve(M, f_centred)
        expected = 1 - f @ f + alpha * (1 + open_part + 1 / 39)
        assert_allclose(found.variances[j], expected, rtol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_first_landmarks_alone_are_ridge_on_them(rng, weighted):
    X, T = rng.normal(size=(80, 2)), rng.normal(size=(80, 2))
    weights = rng.uniform(0.5, 2, size=80) if weighted else None
    rows, kernel, alpha = Observations.of(X, T, weights), Matern(1.5), 0.2
    first = ridge_on(rng.permutation(80)[:30], kernel, rows, alpha).first(8)
    S = first.space.S
    F = np.linalg.solve(np.linalg.cholesky(kernel(S)), kernel(S, rows.X)).T
    w = np.ones(80) if rows.weights is None else rows.weights
    F, T = F - w @ F / w.sum(), rows.T - w @ rows.T / w.sum()
    second = F.T @ (w[:, None] * F)
    expected = np.linalg.solve(second + alpha * np.eye(8), F.T @ (w[:, None] * T))
    assert_allclose(first.coef, expected, rtol=1e-7, atol=1e-9)
    assert_allclose(first.second, second, rtol=1e-7, atol=1e-9)
    assert np.isfinite(first.variance(X)).all()
    assert first.first(8) is first


def test_landmarks_are_as_many_as_the_memory_allows():
    assert _landmarks_within(10**6, 10**10) == MOST
    assert _landmarks_within(10**6, 10**6) == LEAST
    assert _landmarks_within(100, 10**10) == 100
    assert LEAST < _landmarks_within(10**6, 5 * 10**8) < MOST


@pytest.mark.parametrize("max_landmarks", [150, 600, 1200])
def test_intervals_hold_their_share_however_many_rows_are_landmarks(rng, max_landmarks):
    X, Z = rng.normal(size=(1200, 3)), rng.normal(size=(2000, 3))
    y, truth = (np.sin(2 * A).sum(axis=1) for A in (X, Z))
    options = {"kernel": RBF(), "metric": None, "solver": "direct", "random_state": 0}
    model = KernelRegressor(max_landmarks=max_landmarks, **options).fit(X, y)
    value, std = model.predict(Z, return_std=True)
    assert np.mean(np.abs(value - truth) <= 1.645 * std) == pytest.approx(0.9, abs=0.03)


def test_intervals_of_a_kernel_that_is_singular_to_rounding():
    """What a factor needs on its diagonal counted as uncertainty, for rows left out alone: 67 to
    70 % of new rows were inside intervals for 90 %."""
    rng = np.random.default_rng(1)
    X, Z = rng.uniform(size=(550, 3)), rng.uniform(size=(2000, 3))
    y, truth = (np.sin(2 * A.sum(axis=1)) + 1e-6 * rng.normal(size=len(A)) for A in (X, Z))
    model = KernelRegressor(RBF(), metric=None).fit(X, y)
    assert model.alpha_ < 1e-11
    value, std = model.predict(Z, return_std=True)
    assert np.mean(np.abs(value - truth) <= 1.645 * std) == pytest.approx(0.9, abs=0.04)


def test_what_a_factor_adds_is_not_missed():
    """Nearly constant rows: all that the other landmarks miss is far below the jitter."""
    X = 1e-4 * np.random.default_rng(0).normal(size=(30, 2))
    model = ridge_on(np.arange(30), RBF(0.5), Observations.of(X, X[:, :1]), 1e-14)
    variances = model.left_out().variances
    assert np.median(variances) < 2e-13
    new = model.variance(X + 1e-6)[:, 0] + 1e-14
    assert np.median(variances) == pytest.approx(np.median(new), rel=3)
