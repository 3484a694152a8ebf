"""K V by every way against the plain product."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

from every_kernel import EVERY_KERNEL
from mercer import (
    RBF,
    Constant,
    FromFunction,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    RationalQuadratic,
)
from mercer.engine.products import _QUICK_TILE, MatrixProduct
from mercer.engine.resources import using

FORMED = [
    RBF(0.3),
    RBF([0.1, 0.2, 0.3, 0.4, 0.5]),
    Matern(0.5, 2.0),
    Matern(1.5, 2.0),
    Matern(2.5, [1.0, 2.0, 3.0, 4.0, 5.0]),
    Matern(1.7, 2.0),
    RationalQuadratic(0.7, 2.0),
    Linear(),
    Polynomial(3, 0.2, 0.5),
    2.0 * RBF(0.1) * Matern(1.5) + 0.5 * Polynomial(2, [0.1, 0.2, 0.3, 0.4, 0.5]) + 1.0,
    (RBF(0.1) + Linear()) * (Matern(0.5) + Constant(2.0)),
]
# More rows than two tiles have, and not a multiple of one.
N = 2 * _QUICK_TILE[0] + 77


@pytest.fixture
def X(rng):
    return rng.normal(size=(N, 5)) + 100.0


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("room", [0, 8 * N * N], ids=["tiles", "stored"])
@pytest.mark.parametrize("kernel", FORMED, ids=repr)
def test_exact_products(kernel, room, targets, X, rng):
    V = rng.normal(size=(N, targets))
    product = MatrixProduct.of(kernel, X, room)
    want = kernel(X) @ V
    assert product.way == ("stored" if room else "tiles")
    assert_allclose(product(V), want, rtol=0, atol=1e-13 * np.abs(kernel(X)).sum(axis=1).max())


@pytest.mark.parametrize("room", [0, 4 * N * N], ids=["tiles", "stored"])
@pytest.mark.parametrize("kernel", FORMED, ids=repr)
def test_quick_products(kernel, room, X, rng):
    X = X - 100.0 if kernel.fused_form().terms[-1].leaves[-1:] == () else X - 99.0
    V = rng.normal(size=(N, 2))
    K = kernel(X)
    error = np.abs(MatrixProduct.quick(kernel, X, room)(V) - K @ V)
    scale = np.sqrt(np.outer(kernel.diag(X), kernel.diag(X))) @ np.abs(V)
    assert np.all(error <= 3e-6 * scale)


@pytest.mark.parametrize("kernel", FORMED, ids=repr)
def test_a_form_evaluates_to_the_kernel(kernel, rng):
    """The terms, leaf by leaf, in double precision."""
    X = rng.normal(size=(30, 5))
    total = np.zeros((30, 30))
    for term in kernel.fused_form().terms:
        value = np.full((30, 30), term.coefficient)
        for leaf in term.leaves:
            x = X * leaf.scale
            squares = ((x[:, None, :] - x[None, :, :]) ** 2).sum(axis=2)
            value *= leaf.formula(-squares if leaf.of_distance else x @ x.T, np)
        total += value
    assert_allclose(total, kernel(X), rtol=1e-12)


def test_single_precision_is_not_used_where_it_would_lose_too_much(X):
    assert MatrixProduct.quick(RBF(1e4), X) is None
    assert MatrixProduct.quick(RBF(0.1), X) is not None


def test_kernels_without_a_form_are_stored_or_left_to_exact_products(X, rng):
    sparse = scipy.sparse.csr_array(np.maximum(X - 100.0, 0))
    V = rng.normal(size=(N, 2))
    assert MatrixProduct.quick(RBF(0.1), sparse) is None
    stored = MatrixProduct.quick(RBF(0.1), sparse, 4 * N * N)
    assert_allclose(stored(V), RBF(0.1)(sparse) @ V, atol=1e-4)


def test_a_gram_matrix_of_any_precision(rng):
    K = rng.normal(size=(N, N)).astype(np.float32)
    V = rng.normal(size=(N, 2))
    assert_allclose(MatrixProduct.of(Precomputed(), K)(V), K.astype(float) @ V, rtol=1e-12)
    assert MatrixProduct.quick(Precomputed(), K, 1e12) is None


def test_functions_of_the_user_are_called_for_every_pair(rng):
    X, V = rng.normal(size=(40, 2)), rng.normal(size=(40, 2))
    kernel = FromFunction(lambda x, z: float(x[0] * z[0] + 0.1 * x[1]))  # not symmetric
    assert_allclose(MatrixProduct.of(kernel, X)(V), kernel(X) @ V, rtol=1e-12)
    assert MatrixProduct.quick(kernel, X, 1e12) is None


def test_arrays_of_any_namespace(X, rng, there):
    V = rng.normal(size=(N, 2))
    for room in (0, 8 * N * N):
        product = there(lambda X, V, room=room: MatrixProduct.of(Matern(1.5), X, room)(V))(X, V)
        assert_allclose(product, Matern(1.5)(X) @ V, atol=1e-11)


def test_threads_do_not_change_a_bit(X, rng):
    V = rng.normal(size=(N, 2))
    for make in (MatrixProduct.of, MatrixProduct.quick):
        found = []
        for jobs in (1, 2):
            with using(n_jobs=jobs):
                found.append(make(Matern(1.5, 50.0), X)(V))
        one, two = found
        assert np.array_equal(one, two)


@pytest.mark.parametrize("kernel", EVERY_KERNEL, ids=repr)
def test_every_kernel_has_a_form_that_is_right_or_none(kernel, rng):
    if kernel.kind not in ("vectors", "any"):
        return
    X = np.abs(rng.normal(size=(20, 4))) + 0.1
    bound = kernel.bind(X)
    form = bound.fused_form()
    if form is None:
        return
    product = MatrixProduct.quick(bound, X)
    if product is not None:
        assert_allclose(product(np.eye(20)), bound(X), rtol=1e-4, atol=1e-5)
