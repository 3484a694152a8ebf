"""Shares of a product with the kernel matrix add up to the product, however many there are."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import RBF, FromFunction, Matern
from mercer.engine.products import MatrixProduct

N = 700


def absolute(x, z):
    return float(np.exp(-np.abs(x - z).sum()))


@pytest.fixture
def V(rng):
    return rng.normal(size=(N, 2))


def added(shares, V, step):
    total = np.zeros(V.shape)
    for first in range(step):
        shares.add(shares.prepared(V), first, step, total)
    return total


@pytest.mark.parametrize("step", [1, 2, 5])
@pytest.mark.parametrize("kernel", [Matern(1.5), RBF(0.2) + 0.5], ids=repr)
def test_shares_add_up(kernel, step, V, rng):
    X = rng.normal(size=(N, 3))
    want = kernel(X) @ V
    scale = np.abs(want).max()
    assert_allclose(added(MatrixProduct.shares(kernel, X), V, step), want, atol=1e-12 * scale)
    assert_allclose(added(MatrixProduct.quick_shares(kernel, X), V, step), want, atol=1e-5 * scale)


def test_a_function_is_evaluated_in_whole_rows(V, rng):
    X = rng.normal(size=(60, 2))
    kernel = FromFunction(absolute)
    assert MatrixProduct.quick_shares(kernel, X) is None
    want = kernel(X) @ V[:60]
    assert_allclose(added(MatrixProduct.shares(kernel, X), V[:60], 3), want, atol=1e-12)


def test_shares_travel(V, rng):
    shares = MatrixProduct.shares(Matern(1.5), rng.normal(size=(N, 3)))
    before = added(shares, V, 2)
    again = pickle.loads(pickle.dumps(shares))
    assert np.array_equal(added(again, V, 2), before)


def test_repeated_points_are_at_no_negative_distance(V, rng):
    """In single precision rounding makes some squared distances negative, and roots of them NaN."""
    X, kernel = np.repeat(rng.normal(size=(N // 2, 3)), 2, axis=0), Matern(1.5)
    want = kernel(X) @ V
    assert_allclose(
        added(MatrixProduct.quick_shares(kernel, X), V, 2), want, atol=1e-5 * np.abs(want).max()
    )
