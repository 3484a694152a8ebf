import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer.engine import arrays
from mercer.engine.arrays import as_numpy
from mercer.kernels.monomials import integer_power

rng = np.random.default_rng(0)


@pytest.mark.parametrize("p", range(12))
def test_integer_power(xp, p):
    x = rng.normal(size=(4, 3))
    assert_allclose(as_numpy(integer_power(xp.asarray(x.copy()), p)), x**p, rtol=1e-13)


def test_on_device_of_copies_what_must_not_be_written(xp):
    reference = xp.zeros((2, 2), dtype=xp.float64)
    frozen = np.arange(3.0)
    frozen.flags.writeable = False
    for values in (frozen, np.broadcast_to(np.array([1.0]), 3), [1, 2, 3]):
        moved = arrays.on_device_of(values, reference)
        assert moved.dtype == xp.float64
        assert_array_equal(arrays.as_numpy(moved), values)


def test_put_writes_scattered_values(xp):
    target = xp.zeros((3, 3), dtype=xp.float64)
    i, j = xp.asarray([0, 2]), xp.asarray([1, 2])
    result = arrays.as_numpy(arrays.put(target, i, j, xp.asarray([5.0, 7.0], dtype=xp.float64)))
    assert_array_equal(result, [[0, 5, 0], [0, 0, 0], [0, 0, 7]])


def test_same_kind(xp):
    a = xp.zeros((2, 2))
    assert arrays.same_kind(a, xp.ones((1, 1)))
    assert arrays.same_kind(a, np.ones((1, 1))) == (xp is np)


def test_no_backend_is_imported_to_detect_it():
    import subprocess
    import sys

    code = (
        "import sys, numpy as np, mercer; mercer.RBF()(np.ones((3, 2)));"
        "assert not {'torch', 'cupy', 'dask', 'polars'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
