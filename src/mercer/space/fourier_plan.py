"""The cost of a ridge in Fourier coordinates, and the tolerance that its accuracy needs."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine import fourier_fit
from ..kernels import TooManyModesError, common_periods
from .fourier_grid import MOST_COLUMNS, SMALLEST_TOL, Extent

# Tolerances of the map that are tried, the largest first; the last is as good as rounding allows.
TOLERANCES = (*10.0 ** -np.arange(4.0, 13.0, 0.5), SMALLEST_TOL)
# The residual is a multiple of its estimate, where rows crowd.
SAFETY = 0.1
# The estimate takes coefficients to be as large as they can be; less may do, by this factor.
HOPE = 1e3
# Seconds on one core of a common machine: one point in a transform of 14 digits (and, for each
# point of the grid that it is spread to, the second), one frequency in a fast Fourier transform of
# all products, one operation of linear algebra.
POINT, SPREAD, FREQUENCY, OPERATION = 6e-8, 7e-10, 2.5e-8, 5e-11
# Points along a column that a point is spread to, and the products that iterations take.
WIDTH, PRODUCTS = 15, 50
# Coordinates whose equations are solved directly, or which precondition the iterations.
WRITTEN_OUT = 2000


@dataclass(frozen=True)
class FourierPlan:
    """A tolerance of the map, and what a fit with it takes.

    tol : of the map, relative to k(x, x)
    aim : the residual that this should give, relative to the targets
    frequencies : in all columns together
    bytes, seconds : predicted; seconds of one core
    """

    tol: float
    aim: float
    frequencies: float
    bytes: int
    seconds: float


def plan_fourier(
    kernel: Any, extent: Extent, n: Any, n_targets, alpha, aim, most_seconds=math.inf
) -> FourierPlan | None:
    """The largest tolerance with which residuals should be `aim` times the targets.

    The error of a kernel value is tol / sqrt(frequencies) at most pairs of points, times k(x, x),
    and n of them add up with coefficients of t / alpha at most, of any sign. None where the kernel
    has no Fourier series in one to three columns, or not one that is so accurate in so little time.
    """
    form = kernel.fourier_form()
    if form is None or not alpha > 0 or not form.size > 0:
        return None
    low, high = extent.with_margin()
    wanted = SAFETY * aim * alpha / (math.sqrt(n) * form.size)
    found = None
    for tol in TOLERANCES:
        try:
            m = form.modes(common_periods(form, high - low, tol), tol)
        except (TooManyModesError, ValueError):  # or periods that have no common multiple
            break
        d, frequencies = max(1, int(np.count_nonzero(m))), math.prod(2.0 * m + 1)
        if d > MOST_COLUMNS or _seconds(n, d, frequencies, n_targets) > most_seconds:
            return None
        found = float(tol), frequencies, d
        if tol <= wanted * math.sqrt(frequencies):
            break
    if found is None or found[0] > HOPE * wanted * math.sqrt(found[1]):
        return None
    tol, frequencies, d = found
    return FourierPlan(
        tol,
        aim,
        frequencies,
        int(fourier_fit(n, d, frequencies, n_targets)),
        _seconds(n, d, frequencies, n_targets),
    )


def _seconds(n, d, frequencies, n_targets):
    """Three transforms for every target and one for the rows; then the equations."""
    transforms = (1 + 2 * n_targets) * n * (POINT + SPREAD * WIDTH**d)
    written = min(frequencies, WRITTEN_OUT)
    equations = OPERATION * written**3 + 1e-8 * written**2
    if frequencies > WRITTEN_OUT:
        equations += PRODUCTS * n_targets * FREQUENCY * 2**d * frequencies
    return transforms + equations
