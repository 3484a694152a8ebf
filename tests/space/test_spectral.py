"""Spectra against NumPy's own decomposition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import KernelMap, Linear
from mercer.space.spectra import spectrum


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (5, 2), (40, 3), (300, 7), (300, 200)])
def test_spectrum_equals_the_full_decomposition(n, k, dtype, rng):
    A = rng.normal(size=(n, n))
    A = ((A + A.T) / 2).astype(dtype)
    before, exact = A.copy(), np.linalg.eigvalsh(A.astype(np.float64))[::-1]
    values, V = spectrum(A, k)
    size, eps = np.abs(exact).max(), np.finfo(dtype).eps
    assert values.dtype == V.dtype == dtype
    assert_allclose(values, exact, atol=8 * n * eps * size)
    assert_allclose(V.T @ V, np.eye(k), atol=8 * n * eps)
    assert_allclose(A @ V, V * values[:k], atol=16 * n * eps * size)
    assert A.tobytes() == before.tobytes()


def test_equal_eigenvalues_still_get_orthogonal_vectors(rng):
    Q, _ = np.linalg.qr(rng.normal(size=(200, 200)))
    A = Q[:, :6] @ Q[:, :6].T  # six ones, the rest zeros
    values, V = spectrum((A + A.T) / 2, 4)
    assert_allclose(values[:7], [1, 1, 1, 1, 1, 1, 0], atol=1e-13)
    assert_allclose(V.T @ V, np.eye(4), atol=1e-13)
    assert_allclose(A @ V, V, atol=1e-12)


def test_eigenvalues_beyond_the_numbers_of_the_dtype_are_refused(rng):
    # k(x, x) is 1e38 and fits float32; the sum of 20 of them does not.
    X = (1e19 * rng.choice([-1.0, 1.0], size=(20, 1))).astype(np.float32)
    with pytest.raises(ValueError, match=r"beyond the largest float32.*float64"):
        KernelMap(Linear(), basis="eigen").fit(X)
    assert KernelMap(Linear(), basis="eigen").fit(X.astype(float)).rank_ == 1
