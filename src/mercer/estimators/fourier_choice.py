"""Whether "auto" takes form "fourier": where it is clearly cheapest, at the same accuracy."""

import importlib.util
from dataclasses import replace

import numpy as np

from ..engine.arrays import evenly, is_array, is_numpy
from ..engine.memory import budget, readable
from ..kernels import points as pts
from ..solve.quick import QUICK_TOL
from ..solve.system import in_double
from ..space import factorize
from ..space.fourier_grid import Extent
from ..space.fourier_plan import OPERATION, FourierPlan, plan_fourier
from .ridge_by_fourier import ByFourier, solve_by_fourier

# Rows from which on transforms can be cheaper, and by which factor they must be.
LEAST_ROWS, CLEARLY = 4000, 2.0
# Frequencies, in all columns, up to which the better of two accuracies is aimed at.
MOST_FOR_DIGITS = 2e6
# Eight digits are planned with some to spare: outside of the rows, errors are larger.
SPARE = 0.1
# Products after which "auto" gives up: the plan was made for fewer.
MOST_PRODUCTS = 200
# Seconds of one core for one value of a kernel, and for one pair of rows in quick iterations.
VALUE, PAIR = 5e-9, 4e-8
# Rows whose rank says what a map would cost.
SAMPLE = 400


def may_be_cheapest(n) -> bool:
    """Whether a plan is worth making for n rows."""
    return n >= LEAST_ROWS and importlib.util.find_spec("finufft") is not None


def cheaper_plan(form, kernel, points, n_targets, alpha, tol) -> FourierPlan | None:
    """How to solve by Fourier coordinates, or None where `form` should be used.

    What the direct forms promise is eight digits, and the iterative one `tol`: so must this.
    """
    known = is_array(points) and is_numpy(points) and points.dtype == np.float64
    if not known or points.ndim != 2 or kernel.kind == "gram" or kernel.fourier_form() is None:
        return None
    allowed = _seconds(form, kernel, points) / CLEARLY
    aims = (min(QUICK_TOL, tol), tol) if form == "iterative" else (QUICK_TOL,)
    return _first(kernel, points, n_targets, alpha, aims, allowed)


def plan_asked_for(kernel, points, n_targets, alpha, tol) -> FourierPlan:
    """Eight digits where that takes few frequencies, else `tol`; refused where neither fits."""
    if not alpha > 0:
        raise ValueError(f"form='fourier' divides by alpha, which must be positive, got {alpha:g}.")
    if kernel.kind == "gram" or kernel.fourier_form() is None:
        raise ValueError(
            f"{kernel!r} has no Fourier series: form='fourier' takes RBF, Matern, "
            "RationalQuadratic, Laplacian, Periodic and Constant, their sums, scales, products and "
            "powers, and OnColumns of them. Use form='auto'."
        )
    digits = min(QUICK_TOL, tol)
    few = _first(kernel, points, n_targets, alpha, (digits,), most=MOST_FOR_DIGITS)
    plan = few or _first(kernel, points, n_targets, alpha, (tol,))
    if plan is None:
        raise ValueError(
            f"form='fourier' needs too many frequencies for {kernel!r} on these rows, with "
            f"alpha={alpha:g} and tol={tol:g}, in {readable(budget(None))}: raise tol or alpha, "
            "use a smoother kernel of at most three columns, or form='iterative'."
        )
    return plan


def by_fourier(kernel, points, T, alphas, weights, plan, max_iter) -> ByFourier:
    """The solution on the rows with weights; finer coordinates where they cost little more."""
    T, points = np.asarray(T, dtype=np.float64), in_double(kernel, points)
    if weights is not None:
        kept = np.flatnonzero(weights > 0)
        points, T, weights = pts.take(points, kept), T[kept], weights[kept]

    def may_refine(finer):
        return finer.bytes <= budget(None) and finer.seconds <= max(4 * plan.seconds, 1.0)

    return solve_by_fourier(
        kernel, points, T, alphas, weights, plan, max_iter=max_iter, may_refine=may_refine
    )


def _first(kernel, points, n_targets, alpha, aims, most_seconds=np.inf, most=np.inf):
    """The plan of the first aim that takes no more seconds, frequencies and memory than it may."""
    extent = Extent.of(points)
    for aim in aims:
        finer = SPARE * aim if aim <= QUICK_TOL else aim
        plan = plan_fourier(kernel, extent, points.shape[0], n_targets, alpha, finer, most_seconds)
        if plan is not None and plan.frequencies <= most and plan.bytes <= budget(None):
            return replace(plan, aim=aim)
    return None


def _seconds(form, kernel, points):
    """At least what the form will take, of one core."""
    n = points.shape[0]
    if form != "primal":
        direct = n**3 / 3 * OPERATION + VALUE * n**2 / 2
        return min(direct, PAIR * n**2)
    spread = evenly(n, SAMPLE)
    rank = factorize(kernel, pts.take(points, spread)).factor.rank
    rank *= 2 if 2 * rank > len(spread) else 1  # more rows have a larger rank
    return n * (2 * VALUE * rank + 2 * OPERATION * rank**2)
