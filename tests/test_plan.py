"""A plan says what a fit would do: both ask the same functions."""

import numpy as np
import pytest

from mercer import RBF, Linear, Matern
from mercer.engine.memory import columns_that_fit
from mercer.plan import Rates, plan
from mercer.space.cholesky import matrix_fits

RATES = Rates(1e11, 1e9)


def test_what_fourier_transforms_take():
    """Rough kernels take more; those without a series are left out; the route is not changed."""
    plain = plan(10**6, 2, 2000, rates=RATES)
    smooth = plan(10**6, 2, 2000, rates=RATES, kernel=RBF(50.0))
    rough = plan(10**6, 2, 2000, rates=RATES, kernel=Matern(3.5, 0.1), extent=[1.0, 2.0])
    assert smooth.seconds["fourier"] < smooth.seconds["partial"] / 5
    assert rough.memory["fourier"] > smooth.memory["fourier"]
    assert smooth.route == plain.route
    assert "fourier" in str(smooth)
    assert "fourier" not in plan(10**6, 2, rates=RATES, kernel=Linear()).memory
    with pytest.raises(ValueError, match="extent must hold"):
        plan(10, 2, rates=RATES, kernel=RBF(1.0), extent=[-1.0, 1.0])
    with pytest.raises(ValueError, match="alpha must be"):
        plan(10, 2, rates=RATES, kernel=RBF(1.0), alpha=0.0)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("limit", [10**6, 10**8, 10**10])
@pytest.mark.parametrize("n", [100, 3000, 40_000, 10**6])
@pytest.mark.parametrize("rank", [1, 50, 2000])
def test_the_route_is_the_one_that_a_fit_takes(n, rank, limit, dtype):
    found = plan(n, 3, rank, dtype, memory_limit=limit, rates=RATES)
    like = np.empty(1, dtype=dtype)
    expected = "streamed"
    if min(rank, n) <= columns_that_fit(n, limit, like.itemsize):
        expected = "partial"
    if matrix_fits(RBF(1.0), like, n, limit):
        expected = "stored"
    if rank == 1 and expected == "partial":  # columns_that_fit is at least 1, fitting or not
        assert found.route in ("partial", "streamed")
    else:
        assert found.route == expected
