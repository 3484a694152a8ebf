"""Ridge with an intercept by one Cholesky factor, and its exact leave-one-out errors.

Landmarks judge kernels by what few functions can do: they favour smooth kernels and large
penalties, and the more rows there are the more they do. So the family of a kernel and the penalty
of the last fit are chosen by the exact errors of some thousand rows (MATH.md section 9).
"""

import math
from typing import Any

import numpy as np

from ..engine.arrays import (
    as_numpy,
    cholesky,
    evenly,
    is_numpy,
    namespace,
    on_device_of,
    put,
    row_norms,
    solve_triangular,
)
from .in_place import cholesky_in_place
from .landmark_model import PANEL_VALUES
from .observations import Observations
from .ridge_fit import left_out, noise_of
from .search import bracketed

# Rows whose kernel matrix is factored for a choice, and rows whose errors decide it.
CHOICE_ROWS, JUDGED_ROWS = 4000, 1000


def best_penalty(K: Any, rows: Observations, alpha: float) -> tuple[float, np.ndarray]:
    """(alpha, squared errors of some rows) with the smallest exact leave-one-out error.

    The search begins with the alpha given; no penalty is tried below the rounding of K, eps times
    its trace. The mean of the squared errors, each times its weight, is the error.
    """
    xp, n = namespace(K), rows.n
    least = float(xp.finfo(K.dtype).eps) * float(xp.sum(xp.linalg.diagonal(K)))
    judged = evenly(n, JUDGED_ROWS)
    weights = np.ones(n) if rows.weights is None else as_numpy(rows.weights)
    spread = np.zeros(n) if rows.spread is None else as_numpy(rows.spread)
    weights, spread = weights[judged], spread[judged]
    tried: dict[float, np.ndarray] = {}

    def error(x):
        shifted = max(alpha * math.exp(x), least)
        if shifted not in tried:
            solved = solved_directly(K + 0, rows, shifted, judged)
            tried[shifted] = np.full(len(judged), math.inf)
            if solved is not None:
                _, _, residuals, left = solved
                losses = weights * (residuals**2).sum(axis=1) + spread / left**2
                tried[shifted] = losses / weights.mean()
        return float(tried[shifted].mean())

    found = max(alpha * math.exp(bracketed(error, math.log(4))), least)
    return found, tried[found]


def solved_directly(
    K: Any, rows: Observations, alpha: float, judged: np.ndarray
) -> tuple[Any, Any, np.ndarray, np.ndarray] | None:
    """(a, intercept, residuals, left) with K overwritten; None if it is singular to rounding."""
    xp = namespace(K)
    noise = noise_of(rows)
    diagonal = np.arange(rows.n)
    put(K, diagonal, diagonal, xp.linalg.diagonal(K) + alpha * noise)
    C = cholesky_in_place(K) if is_numpy(K) else cholesky(K)
    if C is None:
        return None
    both = xp.concat([xp.ones_like(rows.T[:, :1]), rows.T], axis=1)
    both = solve_triangular(C, solve_triangular(C, both), transpose=True)
    u, total = both[:, :1], float(xp.sum(both[:, 0]))
    intercept = xp.sum(both[:, 1:], axis=0) / total
    a = both[:, 1:] - u * intercept[None, :]
    inverse = _inverse_diagonal(C, judged)
    residuals, left = left_out(rows, alpha, judged, a, u, total, inverse)
    return (a, intercept, residuals, left) if np.isfinite(residuals).all() else None


def _inverse_diagonal(C, rows):
    """(A^-1)_jj = |C^-1 e_j|^2 for some rows, a block of right-hand sides at a time."""
    xp, n = namespace(C), C.shape[0]
    found, block = np.empty(len(rows)), max(64, PANEL_VALUES // n)
    for a in range(0, len(rows), block):
        some = rows[a : a + block]
        E = np.zeros((n, len(some)), order="F")
        E[some, np.arange(len(some))] = 1.0
        found[a : a + block] = as_numpy(row_norms(solve_triangular(C, on_device_of(E, C)).T, xp))
    return found
