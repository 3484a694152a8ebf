"""Iterations before a factorisation: the same solution, where they are faster."""

import math
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..engine.arrays import is_array, is_numpy
from ..engine.memory import MemoryLimitError
from ..engine.products import Product
from ..space.cholesky import Fit
from .iterative import IterativeSolution, solve_iteratively

# Rows from which on iterations are tried before a factorisation, the certified error that they are
# to reach, relative to the function, and the products in which they can be faster.
QUICK_ROWS, QUICK_TOL, QUICK_PRODUCTS = 4000, 1e-8, 60
# Products after which it is clear whether they will be.
JUDGED_AFTER = 10


def may_be_quick(kernel, points) -> bool:
    """Whether iterations are worth a try: many rows, held here in double precision."""
    known = is_array(points) and is_numpy(points) and points.dtype == np.float64
    return known and len(points) >= QUICK_ROWS and kernel.kind != "gram"


def solved_quickly(
    kernel,
    points,
    T,
    alphas,
    weights=None,
    *,
    tol: float = QUICK_TOL,
    center: bool = False,
    landmarks: Fit | None = None,
    product: Product | None = None,
    memory_limit=None,
) -> IterativeSolution | None:
    """The solution to a certified accuracy by iterations, where they beat a factorisation.

    None where they do not: few rows, rows on a device, or equations so badly conditioned that the
    first products bring little.
    """
    if not may_be_quick(kernel, points) or np.min(alphas) <= 0:
        return None
    first: list[float] = []

    def hopeless(step):
        now = max(*step.bounds, np.finfo(float).tiny)
        first.append(now)
        fallen = math.log(first[0] / now)
        needed = -math.log(tol) * step.products / max(fallen, 1e-3)
        return step.products >= JUDGED_AFTER and needed > QUICK_PRODUCTS

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solution = solve_iteratively(
                kernel,
                points,
                T,
                alphas,
                weights,
                tol=tol,
                max_iter=QUICK_PRODUCTS,
                memory_limit=memory_limit,
                random_state=0,
                callback=hopeless,
                center=center,
                landmarks=landmarks,
                product=product,
            )
    except MemoryLimitError:
        return None
    return solution if solution.converged else None
