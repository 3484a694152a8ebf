"""Kernels made of Precomputed(): the methods see the matrix that they stand for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import (
    RBF,
    KernelDiscriminant,
    KernelLogistic,
    KernelMap,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    KernelSVC,
    Precomputed,
)

METHODS = {
    "ridge, dual": lambda k: KernelRidge(0.1, k, form="dual"),
    "ridge, primal": lambda k: KernelRidge(0.1, k, form="primal"),
    "ridge, iterative": lambda k: KernelRidge(0.1, k, form="iterative", tol=1e-10),
    "ridge, penalties": lambda k: KernelRidgeCV([0.1, 1.0], k),
    "logistic": lambda k: KernelLogistic(1.0, k),
    "support vectors": lambda k: KernelSVC(1.0, k),
    "discriminant": lambda k: KernelDiscriminant(kernel=k),
    "pca, krylov": lambda k: KernelPCA(2, k, solver="krylov"),
    "pca, dense": lambda k: KernelPCA(2, k, solver="dense"),
    "map": KernelMap,
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_changed_matrix_is_the_matrix_changed(rng, method, n_classes, dtype):
    X = rng.normal(size=(90, 3))
    K = RBF(0.3)(X).astype(dtype)
    y = np.digitize(X[:, 0], [-0.5, 0.5][: n_classes - 1])
    kernel, new = 3 * Precomputed() + 1, K[:20]
    a, b = METHODS[method](kernel).fit(K, y), METHODS[method](Precomputed()).fit(3 * K + 1, y)
    for name in ("decision_function", "predict", "transform"):
        if hasattr(a, name):
            found, expected = getattr(a, name)(new), getattr(b, name)(3 * new + 1)
            assert_allclose(found, expected, atol=1e-8 if dtype == np.float64 else 1e-2)
            break
