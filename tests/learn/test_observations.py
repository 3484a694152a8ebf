"""Weights and repeated rows: merged, they give what the repeated rows give."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer import RBF, learn_kernel
from mercer.learn.observations import Observations
from mercer.solve import LandmarkSolver, solve_ridge
from mercer.solve.ridge_path import RidgePath

KERNEL = RBF(0.3)


@pytest.fixture
def repeated(rng):
    """30 rows of which 12 are distinct; copies have targets of their own."""
    X = rng.normal(size=(12, 2))
    which = np.r_[np.arange(12), rng.integers(12, size=18)]
    return X[which], rng.normal(size=(30, 2)), which


def row_by_row(X, T, alpha, weights):
    """Leave-one-out errors of kernel ridge with an intercept: refitted without each row."""
    n, errors = len(X), np.empty_like(T)
    K = KERNEL(X)
    for i in range(n):
        rest = np.arange(n) != i
        m = n - 1
        system = np.zeros((m + 1, m + 1))
        system[:m, :m] = K[np.ix_(rest, rest)] + alpha * np.diag(1 / weights[rest])
        system[m, :m] = system[:m, m] = 1.0
        solved = np.linalg.solve(system, np.vstack([T[rest], np.zeros((1, T.shape[1]))]))
        errors[i] = T[i] - K[i, rest] @ solved[:m] - solved[m]
    return errors


def solved(rows, alpha):
    """Leave-one-out errors of the direct solution."""
    problem = rows.problem(KERNEL, alpha, choose=False)
    return solve_ridge(problem, "direct").left_out(share=rows.share)


def errors_of_rows(found, rows, T):
    which, place, _ = rows.given_rows(np.arange(rows.n))
    own = (T[which] - rows.T[place]) / found.left[place, None]
    errors = np.empty_like(T)
    errors[which] = found.residuals[place] + own
    return errors


def test_rows_without_copies_stay_as_they_are(rng):
    X, T = rng.normal(size=(10, 3)), rng.normal(size=(10, 1))
    rows = Observations.of(X, T, np.full(10, 0.7))  # equal weights say nothing
    assert rows.X is X
    assert rows.weights is rows.share is rows.spread is None


def test_copies_become_weights_and_means(repeated):
    X, T, _ = repeated
    rows = Observations.of(X, T)
    assert rows.n == 12
    assert_array_equal(rows.X[rows.group], X)
    for g in range(12):
        mine = rows.group == g
        assert_allclose(rows.T[g], T[mine].mean(axis=0))
        assert_allclose(rows.share[g], 1 / mine.sum())
        assert_allclose(rows.weights[g], mine.sum() * 12 / 30)
        assert_allclose(rows.spread[g], T[mine].var(axis=0).sum() * mine.sum() * 12 / 30)


@pytest.mark.parametrize("alpha", [1e-3, 0.5])
def test_merged_rows_leave_one_observation_out(repeated, rng, alpha):
    X, T, _ = repeated
    rows = Observations.of(X, T)
    expected = row_by_row(X, T, alpha * 30 / 12, np.ones(30))
    found = solved(rows, alpha)
    assert_allclose(errors_of_rows(found, rows, T), expected, rtol=1e-6, atol=1e-8)
    F = np.linalg.cholesky(KERNEL(rows.X) + 1e-13 * np.eye(12))
    known = {"share": rows.share, "spread": rows.spread}
    path = RidgePath.of_coordinates(F, rows.T, rows.weights, **known)
    assert_allclose(path.errors(np.array([alpha])), (expected**2).sum() / 30, rtol=1e-6)
    model = LandmarkSolver(np.arange(12)).solve(rows.problem(KERNEL, alpha, choose=False))
    by_landmarks = model.left_out(share=rows.share)
    assert_allclose(by_landmarks.residuals, found.residuals, rtol=1e-5, atol=1e-7)
    copied = rows.share < 1  # without the others, the model does not have the row
    assert_allclose(by_landmarks.left[copied], found.left[copied], rtol=1e-5)


def test_other_weights_leave_the_whole_row_out(rng):
    X, T, w = rng.normal(size=(20, 2)), rng.normal(size=(20, 1)), rng.uniform(0.1, 2.0, size=20)
    rows = Observations.of(X, T, w)
    expected = row_by_row(X, T, 0.2, w / w.mean())
    assert_allclose(errors_of_rows(solved(rows, 0.2), rows, T), expected, rtol=1e-6, atol=1e-8)


def test_whole_numbers_are_repeated_rows(rng):
    X, T, counts = rng.normal(size=(12, 2)), rng.normal(size=(12, 1)), rng.integers(1, 4, size=12)
    weighted = Observations.of(X, T, counts * 1.0)
    repeated = Observations.of(X.repeat(counts, axis=0), T.repeat(counts, axis=0))
    assert_array_equal(weighted.X, repeated.X)
    assert_allclose(weighted.T, repeated.T)
    assert_allclose(weighted.weights, repeated.weights)
    assert_allclose(weighted.share, repeated.share)
    assert not weighted.spread.any()
    assert not repeated.spread.any()


def test_a_kernel_learned_with_counts_is_that_of_the_repeated_rows(rng):
    X = rng.normal(size=(60, 3))
    y, counts = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=60), rng.integers(0, 4, size=60)
    weighted = learn_kernel(X, y, sample_weight=counts, n_rounds=2, random_state=0)
    repeated = learn_kernel(X.repeat(counts, axis=0), y.repeat(counts), n_rounds=2, random_state=0)
    assert_allclose(weighted.error, repeated.error, rtol=1e-8)
    assert_allclose(weighted.alpha, repeated.alpha, rtol=1e-8)
    assert_allclose(weighted.importances, repeated.importances, rtol=1e-6)
