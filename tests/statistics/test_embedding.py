"""mean_embedding and distance_between: values, and a bound that holds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import RBF, Chunks, KernelMap, Laplacian, Polynomial, distance_between, mean_embedding

KERNELS = [RBF(0.4), Laplacian(0.5), Polynomial(2)]


def mmd(kernel, X, Y):
    squared = kernel(X).mean() + kernel(Y).mean() - 2 * kernel(X, Y).mean()
    return max(squared, 0.0) ** 0.5


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_embedding_is_the_mean_similarity(kernel, rng):
    X, Z = rng.normal(size=(50, 3)), rng.normal(size=(10, 3))
    expected = kernel(Z, X).mean(axis=1)
    scale = np.abs(expected).max()
    assert_allclose(mean_embedding(X, kernel)(Z), expected, atol=1e-7 * scale)


def test_the_embedding_averages_functions(rng):
    """<mu, f> is the mean of f over the sample."""
    X = rng.normal(size=(40, 2))
    mu = mean_embedding(X, RBF(0.5))
    f = mean_embedding(X[:7], RBF(0.5))
    assert_allclose(mu.inner(f), f(X).mean(), rtol=1e-8)


@pytest.mark.parametrize("max_rank", [None, 3, 15])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_true_distance_is_within_the_bound(kernel, max_rank, rng):
    X = rng.normal(size=(60, 3))
    for Y in (rng.normal(size=(40, 3)) + 0.5, X[:30], X.copy(), 3 + 0.01 * X):
        found = distance_between(X, Y, KernelMap(kernel, max_rank=max_rank))
        assert abs(found.value - mmd(kernel, X, Y)) <= found.error_bound + 1e-12
        assert float(found) == found.value
    if max_rank is None:
        assert distance_between(X, X + 0.5, kernel).error_bound < 1e-5


def test_the_bound_covers_the_sum_over_all_pairs(rng):
    """The oracle: the certificate of every pair, weighted and added."""
    X, Y = rng.normal(size=(30, 2)), rng.normal(size=(20, 2)) + 1
    kernel_map = KernelMap(RBF(1.0), max_rank=8)
    value, bound = distance_between(X, Y, kernel_map, random_state=0)
    fitted = KernelMap(RBF(1.0), max_rank=8).fit(np.vstack([X, Y]))
    both = np.vstack([X, Y])
    E, w = fitted.error_bound(both), np.r_[np.full(30, 1 / 30), np.full(20, 1 / 20)]
    root = np.sqrt(np.diagonal(E))
    assert (1.001 * np.outer(root, root) >= E).all()
    assert w @ E @ w <= 1.001 * (w @ root) ** 2
    assert value > 0
    assert bound > 0


def test_streams(rng):
    X, Y = rng.normal(size=(60, 2)), rng.normal(size=(50, 2)) + 1
    held = distance_between(X, Y, RBF(0.5))
    streams = [Chunks(lambda A=A: iter(np.array_split(A, 4))) for A in (X, Y)]
    assert_allclose(distance_between(*streams, RBF(0.5)).value, held.value, rtol=1e-9)
    Z = rng.normal(size=(5, 2))
    assert_allclose(mean_embedding(streams[0], RBF(0.5))(Z), RBF(0.5)(Z, X).mean(axis=1), atol=1e-8)
