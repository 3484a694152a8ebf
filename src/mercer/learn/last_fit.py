"""The last fit: ridge with an intercept on all rows, exactly wherever that is possible."""

import math
from typing import Any

import numpy as np

from ..engine import tiles
from ..engine.arrays import (
    as_numpy,
    cholesky,
    is_cpu,
    is_numpy,
    namespace,
    on_device_of,
    put,
    row_norms,
    solve_triangular,
)
from ..engine.memory import budget, coordinates, matrix
from ..kernels import Kernel
from ..solve.system import VECTORS
from .in_place import cholesky_in_place
from .iterative_fit import iterative_fit
from .landmark_model import PANEL_VALUES, LandmarkModel
from .observations import Observations
from .ridge_fit import LastFit, left_out, noise_of
from .search import bracketed

SOLVERS = ("auto", "direct", "iterative", "landmarks")
# Rows at which leave-one-out errors are computed: enough to calibrate on.
JUDGED_ROWS = 1000
# Rows on which the penalty is chosen again, exactly.
ALPHA_ROWS = 2000
# Landmarks where no exact solution is possible.
MOST_LANDMARKS = 4000
# Rows up to which products with a matrix that is not stored end in reasonable time.
ITERATIVE_ROWS = {"cpu": 100_000, "device": 2_000_000}


def last_fit(
    kernel: Kernel,
    rows: Observations,
    alpha: float,
    *,
    rng: np.random.Generator,
    solver: str = "auto",
    memory_limit: int | str | None = None,
    choose_alpha: bool = True,
    verbose: bool = False,
) -> LastFit:
    """Fit on all rows: directly where the kernel matrix fits the memory, else by iterations.

    Beyond what iterations can do in reasonable time and memory, through landmarks.
    """
    limit = budget(memory_limit, rows.X)
    chosen = chosen_solver(rows, limit) if solver == "auto" else solver
    judged = np.sort(rng.permutation(rows.n)[:JUDGED_ROWS])
    if chosen == "landmarks":
        return _through_landmarks(kernel, rows, alpha, judged, rng)
    if choose_alpha:
        alpha = exact_alpha(kernel, rows, alpha, rng)
    if chosen == "direct":
        return _direct(kernel, rows, alpha, judged)
    fit = iterative_fit(kernel, rows, alpha, judged, rng=rng, limit=limit, verbose=verbose)
    return _through_landmarks(kernel, rows, alpha, judged, rng) if fit is None else fit


def chosen_solver(rows: Observations, limit: int) -> str:
    """The best solver that the memory allows."""
    n, t = rows.T.shape
    # K is factored in place; NumPy's tiles and LAPACK need little beside it.
    if matrix(n, 1.1 if is_numpy(rows.X) else 2.2) <= limit:
        return "direct"
    # The vectors of the iterations, and as much again for their preconditioner.
    room = 2 * coordinates(n, VECTORS * (t + 1) + 2)
    if room <= limit and n <= ITERATIVE_ROWS["cpu" if is_cpu(rows.X) else "device"]:
        return "iterative"
    return "landmarks"


def exact_alpha(kernel: Kernel, rows: Observations, alpha: float, rng: Any) -> float:
    """The penalty again, by exact leave-one-out: landmarks under-fit, and want a larger one."""
    some = rows.some(np.sort(rng.permutation(rows.n)[:ALPHA_ROWS]))
    K = tiles.evaluate(kernel, some.X)
    least = 100 * float(namespace(K).finfo(K.dtype).eps) * K.shape[0]
    weights = 1.0 if some.weights is None else as_numpy(some.weights)[:, None]
    spread = 0.0 if some.spread is None else as_numpy(some.spread)

    def error(x):
        shifted = max(alpha * math.exp(x), least)
        solved = _solved(K + 0, some, shifted, np.arange(some.n))
        if solved is None:
            return math.inf
        _, _, residuals, left = solved
        return float((weights * residuals**2).sum() + (spread / left**2).sum())

    return max(alpha * math.exp(bracketed(error, math.log(4))), least)


def _direct(kernel, rows, alpha, judged):
    while True:
        solved = _solved(tiles.evaluate(kernel, rows.X), rows, alpha, judged)
        if solved is not None:
            coef, intercept, residuals, left = solved
            return LastFit(rows.X, coef, intercept, alpha, "direct", judged, residuals, left)
        alpha *= 10  # singular to rounding: the next penalty that is not


def _solved(K, rows, alpha, judged):
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


def _through_landmarks(kernel, rows, alpha, judged, rng):
    """The same ridge restricted to functions of landmarks, from sums over panels of rows."""
    model = LandmarkModel.fit(kernel, rows, alpha, rng, min(rows.n, MOST_LANDMARKS))
    residuals, left, _ = model.left_out(rows.some(judged))
    a = solve_triangular(model.C, model.w, transpose=True)
    intercept = model.offset - model.mean @ model.w
    return LastFit(
        model.S, a, intercept, alpha, "landmarks", judged, as_numpy(residuals), as_numpy(left)
    )
