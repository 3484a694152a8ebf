"""The exact fit and its leave-one-out errors; ridge on landmarks and its uncertainty."""

import numpy as np
import pytest
from mercer.learn.landmark_model import LandmarkModel
from mercer.learn.last_fit import last_fit
from numpy.testing import assert_allclose
from sklearn.datasets import make_friedman1

from mercer import RBF, KernelRegressor, Matern
from mercer.learn.observations import Observations
from oracles import ridge_without_each_row


@pytest.mark.parametrize("alpha", [1e-4, 0.3])
def test_the_exact_fit_and_its_leave_one_out_are_refits(rng, alpha):
    X, T = rng.normal(size=(30, 2)), rng.normal(size=(30, 2))
    kernel = Matern(1.5, 2.0)
    fit = last_fit(kernel, Observations.of(X, T), alpha, rng=rng, choose_alpha=False)
    assert fit.exact
    K = kernel(X)
    system = np.block(
        [[K + alpha * np.eye(30), np.ones((30, 1))], [np.ones((1, 30)), np.zeros((1, 1))]]
    )
    solved = np.linalg.solve(system, np.vstack([T, np.zeros((1, 2))]))
    assert_allclose(fit.coef, solved[:30], rtol=1e-7, atol=1e-9)
    assert_allclose(fit.intercept, solved[30], rtol=1e-7, atol=1e-9)
    C = np.linalg.cholesky(K)
    errors = ridge_without_each_row(C, T, alpha)
    assert_allclose(fit.residuals, errors[fit.judged], rtol=1e-6, atol=1e-8)


def test_landmarks_at_all_rows_are_the_exact_fit(rng):
    X, T = rng.normal(size=(40, 2)), rng.normal(size=(40, 1))
    kernel = Matern(0.5)
    rows = Observations.of(X, T)
    exact = last_fit(kernel, rows, 0.1, rng=rng, choose_alpha=False)
    few = last_fit(kernel, rows, 0.1, rng=rng, memory_limit=1000, choose_alpha=False)
    assert exact.exact
    assert not few.exact
    Z = rng.normal(size=(6, 2))
    assert_allclose(
        kernel(Z, few.S) @ few.coef + few.intercept,
        kernel(Z, exact.S) @ exact.coef + exact.intercept,
        rtol=1e-6,
        atol=1e-8,
    )
    assert_allclose(few.residuals, exact.residuals, rtol=1e-6, atol=1e-8)


def test_variance_is_that_of_a_gaussian_process_with_unknown_mean(rng):
    """k(z, z) - k_z'A^-1 k_z + (1 - 1'A^-1 k_z)^2 / (1'A^-1 1) + noise, to O(1 / n)."""
    X, T = rng.normal(size=(300, 1)), rng.normal(size=(300, 1))
    kernel, alpha, Z = RBF(0.5), 0.3, np.array([[0.0], [1.0], [6.0]])
    model = LandmarkModel.fit(kernel, Observations.of(X, T), alpha, rng, 300)
    A = kernel(X) + alpha * np.eye(300)
    k = kernel(X, Z)
    plain = 1 - (k * np.linalg.solve(A, k)).sum(axis=0) + alpha
    u = np.linalg.solve(A, np.ones(300))
    expected = plain + (1 - u @ k) ** 2 / u.sum()
    assert_allclose(model.variance(Z)[:2], expected[:2], rtol=0.05)
    assert model.variance(Z)[2] > 0.9


@pytest.mark.parametrize("n_landmarks", [2, 20, 39, 40])
def test_rows_that_are_landmarks_are_left_out_as_landmarks(rng, n_landmarks):
    """Against ridge on the other rows, by the coordinates of the other landmarks."""
    X, T = rng.normal(size=(40, 2)), rng.normal(size=(40, 2))
    kernel, alpha, rows = RBF(0.5), 0.02, Observations.of(X, T)
    model = LandmarkModel.fit(kernel, rows, alpha, rng, n_landmarks)
    errors, _, variances = model.left_out(rows, np.arange(40))
    for j in range(40):
        kept, S = np.delete(np.arange(40), j), X[model.indices[model.indices != j]]
        C = np.linalg.cholesky(kernel(S) + 1e-14 * np.eye(len(S)))
        F, f = np.linalg.solve(C, kernel(S, X[kept])).T, np.linalg.solve(C, kernel(S, X[[j]]))[:, 0]
        M = (F - F.mean(axis=0)).T @ (F - F.mean(axis=0)) + alpha * np.eye(len(S))
        w = np.linalg.solve(M, (F - F.mean(axis=0)).T @ T[kept])
        f_centred = f - F.mean(axis=0)
        assert_allclose(
            errors[j], T[j] - f_centred @ w - T[kept].mean(axis=0), rtol=1e-5, atol=1e-6
        )
        open_part = f_centred @ np.linalg.solve(M, f_centred)
        expected = 1 - f @ f + alpha * (1 + open_part + 1 / 39)
        assert_allclose(variances[j], expected, rtol=1e-5)


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
    X, y = make_friedman1(550, 10, noise=0.1, random_state=0)
    Z, truth = make_friedman1(2000, 10, noise=0.1, random_state=50)
    model = KernelRegressor().fit(X, y)
    assert model.alpha_ < 1e-11
    value, std = model.predict(Z, return_std=True)
    assert np.mean(np.abs(value - truth) <= 1.645 * std) == pytest.approx(0.9, abs=0.04)


def test_what_a_factor_adds_is_not_missed():
    """Nearly constant rows: all that the other landmarks miss is far below the jitter."""
    X = 1e-4 * np.random.default_rng(0).normal(size=(30, 2))
    rows = Observations.of(X, X[:, :1])
    model = LandmarkModel.fit(RBF(0.5), rows, 1e-14, np.random.default_rng(0), 30)
    _, _, variances = model.left_out(rows, np.arange(30))
    assert np.median(variances) < 2e-13
    assert np.median(variances) == pytest.approx(np.median(model.variance(X + 1e-6)), rel=3)
