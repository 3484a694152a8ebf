"""Stored and partial factorisations against the textbook algorithm."""

import numpy as np
import pytest

from mercer import RBF, Linear, Polynomial, Precomputed
from mercer.space import factorize
from mercer.space.cholesky import self_lengths
from mercer.space.partial import partial_cholesky
from test_exactness import digits_like, k1


def textbook(K, tol):
    """Pivoted Cholesky of the normalised matrix, one column after the other."""
    K = K.astype(float)
    lengths = np.sqrt(K.diagonal())
    R = K / np.outer(lengths, lengths)
    np.fill_diagonal(R, 1.0)
    columns, order = [], []
    while R.diagonal().max() > tol and len(order) < len(K):
        i = int(R.diagonal().argmax())
        column = R[:, i] / np.sqrt(R[i, i])
        columns.append(column * lengths)
        order.append(i)
        R = R - np.outer(column, column)
        R[i], R[:, i] = 0.0, 0.0
    return np.column_stack(columns), np.array(order)


@pytest.mark.parametrize("kernel", [RBF(0.3), Polynomial(2), Linear()], ids=repr)
def test_stored_is_the_textbook(rng, kernel):
    X = rng.normal(size=(60, 3))
    F, order = textbook(kernel(X), 1e-6)
    fit = factorize(kernel, X, tol=1e-6)
    np.testing.assert_array_equal(fit.factor.indices, order)
    np.testing.assert_allclose(fit.F, F, atol=1e-9 * np.abs(F).max())
    K = kernel(X)
    np.testing.assert_allclose(fit.residuals, K.diagonal() - (F**2).sum(1), atol=1e-10 * K.max())


def test_plain_cholesky_is_taken_where_it_proves_full_rank(rng, there):
    X = rng.normal(size=(50, 10))
    fit = there(factorize)(RBF(0.5), X)
    np.testing.assert_array_equal(fit.factor.indices, np.arange(50))
    np.testing.assert_allclose(fit.F, np.linalg.cholesky(RBF(0.5)(X)), atol=1e-13)
    # A tolerance asks for a rank, so it is never plain.
    assert there(factorize)(RBF(0.01), X, tol=0.5).factor.rank < 50


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_partial_rank_is_close_to_the_greedy_one(rng, dtype, there):
    X = rng.normal(size=(1000, 2)).astype(dtype)
    tol = 1e-8 if dtype is np.float64 else 1e-3
    stored = there(factorize)(RBF(1.0), X, tol=tol)
    partial = there(factorize)(
        RBF(1.0), X, tol=tol, memory_limit=int(2.9 * X.dtype.itemsize * 1000**2)
    )
    assert partial.factor.rank <= 1.15 * stored.factor.rank
    assert partial.residuals.max() <= tol
    K = RBF(1.0)(X.astype(float))
    error = np.abs(partial.F.astype(float) @ partial.F.astype(float).T - K)
    assert error.max() <= 2 * tol


def test_random_pivots_have_the_smaller_sum(rng, there):
    """On clustered data: most points in one heap, few far away."""
    X = np.vstack([0.1 * rng.normal(size=(2000, 2)), 5 * rng.normal(size=(15, 2))])
    left = {
        pivots: there(factorize)(
            RBF(1.0), X, max_rank=25, pivots=pivots, rng=np.random.default_rng(0)
        ).residuals.sum()
        for pivots in ("random", "uniform")
    }
    assert left["random"] < 0.3 * left["uniform"]


@pytest.mark.parametrize("pivots", ["greedy", "random", "uniform"])
def test_residuals_are_what_is_left(rng, pivots, there):
    X = rng.normal(size=(300, 2))
    fit = there(factorize)(RBF(1.0), X, max_rank=30, pivots=pivots, rng=np.random.default_rng(0))
    assert fit.factor.rank == 30
    assert len(set(fit.factor.indices)) == 30
    np.testing.assert_allclose(fit.residuals, 1 - (fit.F**2).sum(axis=1), atol=1e-12)
    C = fit.factor.C
    np.testing.assert_array_equal(C, np.tril(C))
    S = X[fit.factor.indices]
    np.testing.assert_allclose(C @ C.T, RBF(1.0)(S), atol=1e-12)


@pytest.mark.parametrize("pivots", ["random", "uniform"])
def test_every_rule_ends_on_badly_scaled_points(pivots, there):
    """Tiny points must be explained too, though draws by absolute residual rarely find them."""
    X = digits_like(150)
    fit = there(factorize)(k1(), X, tol=1e-3, pivots=pivots, rng=np.random.default_rng(0))
    assert (fit.residuals / k1().diag(X)).max() <= 1e-3


def test_going_on_from_known_coordinates(rng):
    X = rng.normal(size=(200, 2))
    first = factorize(RBF(1.0), X, max_rank=20)
    part = partial_cholesky(RBF(1.0), X, np.ones(200), tol=1e-6, max_rank=None, start=first.F)
    assert part.F.shape[1] == 20 + len(part.indices)
    np.testing.assert_array_equal(part.F[:, :20], first.F)
    np.testing.assert_allclose(part.F @ part.F.T, RBF(1.0)(X), atol=1e-5)


def test_lengths_of_valid_and_of_doubtful_kernels():
    diagonal = np.array([4.0, 0.0, 1e-30])
    np.testing.assert_array_equal(self_lengths(RBF(1.0), diagonal), [2.0, 0.0, 1e-15])
    floor = 2 * np.sqrt(np.finfo(float).eps)
    np.testing.assert_allclose(self_lengths(Precomputed(), diagonal), [2.0, floor, floor])
