"""The factor over its own matrix, in one piece and in blocks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer.solve.regularized import cholesky_in_place


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("block", [1, 7, 16, 50, 64])
@pytest.mark.parametrize("whole", [0, 100])
def test_it_is_the_cholesky_factor(rng, whole, block, dtype):
    F = rng.normal(size=(50, 60))
    K = (F @ F.T).astype(dtype)
    expected = np.linalg.cholesky(K.astype(float))
    C = cholesky_in_place(K, whole, block)
    assert C.dtype == dtype
    rounding = 100 * np.finfo(dtype).eps * np.abs(expected).max()
    assert_allclose(np.tril(C), expected, rtol=0, atol=rounding)
    assert np.shares_memory(C, K)


@pytest.mark.parametrize("whole", [0, 100])
def test_a_matrix_without_a_factor_gives_none(whole):
    K = np.eye(30)
    K[20, 20] = -1.0
    assert cholesky_in_place(K, whole, 8) is None
