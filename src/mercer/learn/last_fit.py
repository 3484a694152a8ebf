"""The last fit: ridge with an intercept on all rows, exactly wherever that is possible."""

from typing import Any

import numpy as np

from ..engine import tiles
from ..engine.arrays import as_numpy, is_cpu, is_numpy, solve_triangular
from ..engine.memory import budget, coordinates, matrix
from ..engine.threads import one_blas_thread
from ..kernels import Kernel
from ..solve.system import VECTORS
from .exact import CHOICE_ROWS, best_penalty, solved_directly
from .iterative_fit import iterative_fit
from .landmark_model import PANEL_VALUES, LandmarkModel
from .observations import Observations
from .quick_fit import quick_fit
from .ridge_fit import LastFit

SOLVERS = ("auto", "direct", "iterative", "landmarks")
# Rows at which leave-one-out errors are computed: enough to calibrate on.
JUDGED_ROWS = 1000
# Landmarks where no exact solution is possible; fewer where memory is short.
MOST_LANDMARKS, LEAST_LANDMARKS = 4000, 500
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
    judged: np.ndarray | None = None,
) -> LastFit:
    """Fit on all rows: directly where the kernel matrix fits the memory, else by iterations.

    Beyond what iterations can do in reasonable time and memory, through landmarks. `judged` are
    the rows whose leave-one-out errors are wanted; None: some.
    """
    limit = budget(memory_limit, rows.X)
    chosen = chosen_solver(rows, limit) if solver == "auto" else solver
    judged = np.sort(rng.permutation(rows.n)[:JUDGED_ROWS]) if judged is None else judged
    if chosen == "landmarks":
        return _through_landmarks(kernel, rows, alpha, judged, rng, limit, verbose)
    if solver == "auto" and chosen == "direct":
        options: dict[str, Any] = {"limit": limit, "choose_alpha": choose_alpha}
        with one_blas_thread():  # nothing in it is large enough for two
            quick = quick_fit(kernel, rows, alpha, judged, rng=rng.spawn(1)[0], **options)
        if quick is not None:
            return quick
    if choose_alpha:
        alpha = exact_alpha(kernel, rows, alpha, rng)
    if chosen == "direct":
        return _direct(kernel, rows, alpha, judged)
    fit = iterative_fit(kernel, rows, alpha, judged, rng=rng, limit=limit, verbose=verbose)
    if fit is None:
        return _through_landmarks(kernel, rows, alpha, judged, rng, limit, verbose)
    return fit


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
    some = rows.some(np.sort(rng.permutation(rows.n)[:CHOICE_ROWS]))
    return best_penalty(tiles.evaluate(kernel, some.X), some, alpha)[0]


def _direct(kernel, rows, alpha, judged):
    while True:
        solved = solved_directly(tiles.evaluate(kernel, rows.X), rows, alpha, judged)
        if solved is not None:
            coef, intercept, residuals, left = solved
            return LastFit(rows.X, coef, intercept, alpha, "direct", judged, residuals, left)
        alpha *= 10  # singular to rounding: the next penalty that is not


def landmarks_within(n: int, limit: int) -> int:
    """As many landmarks as the memory allows: a few matrices of that size, and a panel of rows."""
    m = MOST_LANDMARKS
    while m > LEAST_LANDMARKS:
        panel = min(n, max(256, PANEL_VALUES // m))
        if matrix(m, 6) + coordinates(panel, m, 3) <= limit:
            break
        m = max(LEAST_LANDMARKS, int(0.8 * m))
    return min(n, m)


def _through_landmarks(kernel, rows, alpha, judged, rng, limit, verbose):
    """The same ridge restricted to functions of landmarks, from sums over panels of rows."""
    m = landmarks_within(rows.n, limit)
    model = LandmarkModel.fit(kernel, rows, alpha, rng, m, verbose=verbose)
    residuals, left, _ = model.left_out(rows.some(judged), judged)
    a = solve_triangular(model.C, model.w, transpose=True)
    intercept = model.offset - model.mean @ model.w
    return LastFit(
        model.S,
        a,
        intercept,
        alpha,
        "landmarks",
        judged,
        as_numpy(residuals),
        as_numpy(left),
        uncertainty=model,
    )
