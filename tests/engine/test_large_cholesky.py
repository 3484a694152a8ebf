"""The factor over its own matrix, in one piece and in blocks."""

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

from mercer.engine.arrays import _WHOLE, _cholesky_in_place, cholesky


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("block", [1, 7, 16, 50, 64])
@pytest.mark.parametrize("whole", [0, 100])
def test_it_is_the_cholesky_factor(rng, whole, block, dtype):
    F = rng.normal(size=(50, 60))
    K = (F @ F.T).astype(dtype)
    expected = np.linalg.cholesky(K.astype(float))
    other = K.copy()
    C = _cholesky_in_place(K, whole=whole, block=block)
    assert C.dtype == dtype
    rounding = 100 * np.finfo(dtype).eps * np.abs(expected).max()
    assert_allclose(np.tril(C), expected, rtol=0, atol=rounding)
    assert np.shares_memory(C, K)
    above = np.triu_indices(50, 1)
    assert np.array_equal(C[above], other[above])  # a map whose rank is not full begins again there
    clean = _cholesky_in_place(other, clean=True, whole=whole, block=block)
    assert_allclose(clean, np.tril(C), rtol=0, atol=rounding)


@pytest.mark.parametrize("whole", [0, 100])
def test_a_matrix_without_a_factor_gives_none(whole):
    K = np.eye(30)
    K[20, 20] = -1.0
    assert _cholesky_in_place(K, whole=whole, block=8) is None


def test_large_matrices_are_factored_in_blocks(monkeypatch):
    # SciPy's OpenBLAS ends the process in potrf of more than 16 000 rows with two threads.
    sizes, get = [], scipy.linalg.lapack.get_lapack_funcs

    def watched(name, arrays):
        function = get(name, arrays)

        def called(A, **options):
            sizes.append(len(A))
            return function(A, **options)

        return called if name == "potrf" else function

    monkeypatch.setattr(scipy.linalg.lapack, "get_lapack_funcs", watched)
    monkeypatch.setattr(_cholesky_in_place, "__kwdefaults__", dict(clean=False, whole=40, block=16))
    assert _WHOLE <= 16_000
    K = np.eye(50, dtype=np.float32)
    K[-1, 0] = K[0, -1] = 0.6
    C = cholesky(K)
    assert max(sizes) == 16
    assert C[-1, 0] == np.float32(0.6)
    assert C[0, -1] == 0
    assert_allclose(C[-1, -1], 0.8, rtol=1e-6)
