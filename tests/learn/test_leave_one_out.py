"""Closed forms against fitting again without each row."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import RBF, Matern
from mercer.learn.landmark_model import LandmarkModel
from mercer.learn.last_fit import last_fit
from mercer.learn.leave_one_out import RidgePath
from mercer.learn.observations import Observations


def refitted_without(F, T, alpha, weights):
    """Errors of each row, predicted by a ridge with intercept fitted on the others."""
    n = len(F)
    scale = weights / weights.mean()
    errors = np.empty_like(T)
    for i in range(n):
        keep = np.arange(n) != i
        w, f, t = scale[keep], F[keep], T[keep]
        mean, offset = w @ f / w.sum(), w @ t / w.sum()
        f, t = f - mean, t - offset
        coef = np.linalg.solve(
            f.T @ (f * w[:, None]) + alpha * np.eye(F.shape[1]), f.T @ (t * w[:, None])
        )
        errors[i] = T[i] - (F[i] - mean) @ coef - offset
    return errors, scale


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [1e-6, 0.1, 10.0])
def test_all_penalties_at_once_are_refits(rng, weighted, alpha):
    F, T = rng.normal(size=(25, 6)), rng.normal(size=(25, 2))
    weights = rng.uniform(0.2, 3.0, size=25) if weighted else np.ones(25)
    path = RidgePath(F.copy(), T, weights if weighted else None)
    errors, scale = refitted_without(F, T, alpha, weights)
    assert_allclose(path.residuals(alpha)[0], errors, rtol=1e-8, atol=1e-10)
    losses = (scale[:, None] * errors**2).sum(axis=1)
    assert_allclose(path.losses(alpha), losses, rtol=1e-8)
    total = losses.sum() / 25
    assert_allclose(path.errors(np.array([alpha])), [total], rtol=1e-8)


def test_losses_with_copies_have_the_error_as_their_mean(rng):
    X = np.repeat(rng.normal(size=(20, 3)), rng.integers(1, 4, size=20), axis=0)
    rows = Observations.of(X, rng.normal(size=(len(X), 2)))
    path = RidgePath(rows.X + 0.0, rows.T, rows.weights, rows.share, rows.spread)
    assert rows.spread is not None
    assert_allclose(path.losses(0.1).mean(), path.errors(np.array([0.1]))[0], rtol=1e-12)


def test_the_intercept_keeps_a_full_rank_kernel_honest(rng):
    """Without the 1/n of the intercept the smallest penalty always wins: MATH.md section 9."""
    x = rng.normal(size=(40, 3))
    F = np.linalg.cholesky(RBF(0.2)(x) + 1e-10 * np.eye(40))
    alpha, error = RidgePath(F, rng.normal(size=(40, 1))).best()
    assert alpha > 1.0
    assert error > 0.5


def test_the_penalty_is_never_at_the_end_of_the_grid(rng):
    F = rng.normal(size=(60, 3))
    noise = RidgePath(F.copy(), rng.normal(size=(60, 1)))
    alpha, error = noise.best()
    assert error <= noise.errors(alpha * np.array([0.5, 2.0])).min() * (1 + 1e-6)
    assert RidgePath(F.copy(), F[:, :1]).best()[0] < 1e-6


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
    errors, _ = refitted_without(C, T, alpha, np.ones(30))
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
