"""Closed forms against fitting again without each row."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import RBF, Laplacian, Linear
from mercer.engine import evenly
from mercer.rows import Training
from mercer.solve import CoordinateRidge, LeaveOneOut, RidgeProblem, solve_ridge
from mercer.solve.regularized import factor_shifted, inverse_diagonal
from mercer.solve.ridge_path import RidgePath, _search, best_alpha
from mercer.space import MapOptions
from oracles import ridge_without_each_row


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [1e-6, 0.1, 10.0])
def test_all_penalties_at_once_are_refits(rng, weighted, alpha):
    F, T = rng.normal(size=(25, 6)), rng.normal(size=(25, 2)) + 5
    weights = rng.uniform(0.2, 3.0, size=25) if weighted else None
    weights = weights / weights.mean() if weighted else None
    path = RidgePath.of_coordinates(F.copy(), T, weights)
    errors = ridge_without_each_row(F, T, alpha, weights)
    assert_allclose(path.residuals(alpha)[0], errors, rtol=1e-8, atol=1e-10)
    losses = (errors**2).sum(axis=1)
    total = np.average(losses, weights=weights)
    assert_allclose(path.errors(np.array([1.0, alpha]))[1], total, rtol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("candidates", [None, np.array([0.1, 1.0, 10.0])])
def test_ridge_on_coordinates_is_that_on_their_map(rng, weighted, candidates):
    F, T = rng.normal(size=(40, 6)) + 3, rng.normal(size=(40, 2)) + 5
    weights = rng.uniform(0.2, 3.0, size=40) if weighted else None
    weights = weights / weights.mean() if weighted else None
    share = rng.uniform(0.3, 1.0, size=40)
    rule = LeaveOneOut(candidates, share=share, spread=rng.uniform(size=40))
    found = CoordinateRidge.of(F, T, rule, weights)
    training, closed = Training.of(Linear(), F), MapOptions(basis="closed")
    problem = RidgeProblem(training, T, rule, weights, intercept=True, map=closed)
    slow = solve_ridge(problem, "primal")
    assert_allclose(found.choice.alpha, slow.choice.alpha, rtol=1e-8)
    assert_allclose(found.choice.error, slow.choice.error, rtol=1e-8)
    Z = rng.normal(size=(5, 6))
    assert_allclose(found(Z), slow.prediction(Z), rtol=1e-8)
    left, other = found.left_out(share), slow.left_out(share=share)
    assert_allclose(left.residuals, other.residuals, rtol=1e-8)
    assert_allclose(left.left, other.left, rtol=1e-8)
    errors = ridge_without_each_row(F, T, found.choice.alpha, weights)
    assert_allclose(found.left_out().residuals, errors, rtol=1e-6)


def test_ridge_on_landmarks_is_a_sum_of_kernels(rng):
    X, T, kernel = rng.normal(size=(40, 2)), rng.normal(size=(40, 1)), RBF(0.5)
    S = X[:15]
    found, a, lengths = CoordinateRidge.on_landmarks(kernel(X, S), kernel(S), T, LeaveOneOut())
    assert_allclose(T - kernel(X, S) @ a - found.b, found.misses, atol=1e-6)
    assert_allclose(lengths[:15], 1.0, atol=1e-6)
    assert np.all(lengths < 1 + 1e-6)


def test_many_targets_are_taken_in_parts(rng, monkeypatch):
    F, T, alphas = rng.normal(size=(25, 6)), rng.normal(size=(25, 5)), np.array([0.1, 1.0])
    expected = RidgePath.of_coordinates(F.copy(), T).errors(alphas)
    monkeypatch.setattr("mercer.solve.ridge_path._HELD_VALUES", 120)
    assert_allclose(RidgePath.of_coordinates(F.copy(), T).errors(alphas), expected, rtol=1e-12)


@pytest.mark.parametrize("kernel", [RBF(0.3), Laplacian(1e-5), Laplacian(50.0)], ids=repr)
def test_a_kernel_matrix_and_small_penalties(rng, kernel):
    """The centred matrix has a null vector whose eigenvalue may be above rounding: 1 - h stays."""
    X, T = rng.normal(size=(30, 3)), rng.normal(size=(30, 1))
    K = kernel(X)
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    values, U = np.linalg.eigh(centred)
    values, U = np.maximum(values[::-1], 0.0), U[:, ::-1]
    Q, scale = U * np.sqrt(values), values.sum() / 30
    left_out = RidgePath(Q, values, T - T.mean(axis=0), in_mean=np.full(30, 1 / 30))
    alphas = scale * np.array([1e-8, 1e-4, 1.0])
    expected = [(ridge_without_each_row(Q, T, alpha) ** 2).sum() for alpha in alphas]
    assert_allclose(30 * left_out.errors(alphas), expected, rtol=1e-4)
    importance = rng.uniform(size=30)
    expected = [importance @ ridge_without_each_row(Q, T, a)[:, 0] ** 2 for a in alphas]
    assert_allclose(importance.sum() * left_out.errors(alphas, importance), expected, rtol=1e-4)


def test_it_never_divides_by_rounding(rng):
    x = np.sort(rng.uniform(0, 4, size=60))[:, None]
    values, U = np.linalg.eigh(RBF(0.5)(x))
    values, U = values[::-1], U[:, ::-1]
    Q = U * np.sqrt(np.maximum(values, 0.0))
    errors = RidgePath(Q, values, np.sin(x)).errors([1e-300, 1e-14])
    assert np.all(np.isfinite(errors))


def test_the_intercept_keeps_a_full_rank_kernel_honest(rng):
    """Without the 1/n of the intercept the smallest penalty always wins: MATH.md section 9."""
    x = rng.normal(size=(40, 3))
    F = np.linalg.cholesky(RBF(0.2)(x) + 1e-10 * np.eye(40))
    alpha, error = RidgePath.of_coordinates(F, rng.normal(size=(40, 1))).best()
    assert alpha > 1.0
    assert error > 0.5


def test_the_penalty_is_never_at_the_end_of_the_grid(rng):
    F = rng.normal(size=(60, 3))
    noise = RidgePath.of_coordinates(F.copy(), rng.normal(size=(60, 1)))
    alpha, error = noise.best()
    assert error <= noise.errors(alpha * np.array([0.5, 2.0])).min() * (1 + 1e-6)
    assert RidgePath.of_coordinates(F.copy(), F[:, :1]).best()[0] < 1e-6


def test_of_equal_errors_the_largest_penalty_is_taken():
    assert best_alpha([0.1, 10.0, 1.0], np.array([1.0, 1.0, 1.0])) == 1
    assert best_alpha([0.1, 10.0, 1.0], np.array([0.5, 1.0, 1.0])) == 0


def test_the_share_that_is_left_has_a_floor(rng):
    """1 - h >= alpha / (k(x, x) + alpha), also where the difference is rounding and below zero."""
    X = rng.normal(size=(60, 30))
    X = np.concatenate([X, X[:3]])  # 60 points that explain themselves alone, three of them twice
    values, U = np.linalg.eigh(RBF(2.0)(X))
    values, U = np.maximum(values[::-1], 0.0), U[:, ::-1]
    left_out = RidgePath(U * np.sqrt(values), values, rng.normal(size=(63, 1)))
    for alpha in (1e-20, 1e-17):
        assert np.all(left_out.residuals(alpha)[1] >= alpha / (1 + alpha) * (1 - 1e-9))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_kernel_matrix_is_its_coordinates(rng, weighted, intercept):
    X, T = rng.normal(size=(30, 3)), rng.normal(size=(30, 2)) + 3
    weights = rng.uniform(0.2, 3.0, size=30) if weighted else None
    K, alphas = RBF(0.3)(X), np.array([1e-3, 0.1, 5.0])
    matrix = RidgePath.of_matrix(K, T, weights, intercept=intercept)
    F = np.linalg.cholesky(K + 1e-13 * np.eye(30))
    coordinates = RidgePath.of_coordinates(F + 0.0, T, weights, intercept=intercept)
    assert_allclose(matrix.errors(alphas), coordinates.errors(alphas), rtol=1e-6)
    a, b = matrix.duals(0.1)
    assert_allclose(K @ a + b, T - coordinates.misses(0.1), rtol=1e-6, atol=1e-8)
    assert_allclose(matrix.misses(0.1), T - K @ a - b, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("share", [1.0, 0.5, 0.1])
def test_diagonal_of_an_inverse_from_its_factor(share, in_place, rng):
    n, shift = 90, 1e-3
    A = rng.normal(size=(n, n))
    A = A @ A.T
    exact = np.diagonal(np.linalg.inv(A + shift * np.eye(n)))
    rows = np.sort(rng.permutation(n)[: int(share * n)])
    C = factor_shifted(A.copy(), shift, in_place=in_place)  # which leaves A above the diagonal
    assert_allclose(inverse_diagonal(C, rows), exact[rows], rtol=1e-8)


@pytest.mark.parametrize("first", [0, 5, 850])
def test_the_diagonal_of_an_inverse_takes_no_copy_of_a_large_factor(first, rng, monkeypatch):
    monkeypatch.setattr("mercer.solve.regularized._HELD_VALUES", 1 << 14)
    n, shift = 900, 1e-2
    A = rng.normal(size=(n, n))
    A = A @ A.T
    exact = np.diagonal(np.linalg.inv(A + shift * np.eye(n)))
    C = factor_shifted(A, shift, in_place=True)
    tracemalloc.start()
    found = inverse_diagonal(C, np.arange(first, n))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert_allclose(found, exact[first:], rtol=1e-8)
    assert peak < 0.5 * C.nbytes


@pytest.mark.parametrize("weighted", [False, True])
def test_a_search_judged_by_some_rows_has_the_errors_of_refits(rng, weighted, monkeypatch):
    monkeypatch.setattr("mercer.solve.ridge_path.JUDGED_ROWS", 15)
    F, T = rng.normal(size=(50, 4)), rng.normal(size=(50, 2)) + 3
    weights = rng.uniform(0.2, 3.0, size=50) if weighted else None
    weights = weights / weights.mean() if weighted else None
    choice = _search(F @ F.T, T, weights, LeaveOneOut(near=0.3), True)
    judged = evenly(50, 15)
    for alpha, error in zip(choice.alphas, choice.errors):
        squares = (ridge_without_each_row(F, T, alpha, weights)[judged] ** 2).sum(axis=1)
        expected = np.average(squares, weights=None if weights is None else weights[judged])
        assert_allclose(error, expected, rtol=1e-7)
