"""Predictions of memory: by hand, and against each other."""

import numpy as np
import pytest

from mercer.engine import memory


@pytest.mark.parametrize("n", [100, 10_000, 10_000_000])
@pytest.mark.parametrize("copies", [1, 2, 8])
@pytest.mark.parametrize("size", [4, 8])
def test_the_columns_that_fit_do(n, copies, size):
    limit = 2e9
    r = memory.MapBytes.partial_rank(n, limit, size, copies)
    assert memory.MapBytes.partial(n, r, copies, size) <= limit
    assert memory.MapBytes.partial(n, r + 2, copies, size) > limit


def test_predictions_are_the_sizes_of_arrays():
    K, F = np.empty((5, 5)), np.empty((5, 3), dtype=np.float32)
    assert memory.matrix_bytes(5) == K.nbytes
    assert memory.coordinates_bytes(5, 3, size=4) == F.nbytes
    assert memory.MapBytes.stored(5) == 3 * K.nbytes
    assert memory.MapBytes.stored(5, on_cpu=False) == 2 * K.nbytes
    assert memory.MapBytes.stored(5, proven=False) == 4 * K.nbytes
    assert memory.MapBytes.stored(5, copies=8) == 8 * K.nbytes
    assert memory.MapBytes.partial(5, 3, size=4) == 2 * F.nbytes + 3 * 9 * 4
    assert memory.MapBytes.streamed(3, 20, 100, 4) == 4 * (5 * 9 + 20 * 3 + 400)
