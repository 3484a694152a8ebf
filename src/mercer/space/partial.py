"""Blocked pivoted Cholesky that evaluates only the r columns it needs.

Works on the normalised kernel k(x, z) / sqrt(k(x, x) k(z, z)), so that a residual is relative to
each point's own k(x, x) (MATH.md section 7). The same loop starts from nothing, or goes on from
coordinates that a factor already gives (certify and grow, partial_fit).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from ..engine import (
    MemoryLimitError,
    as_numpy,
    coordinates_bytes,
    is_cpu,
    is_numpy,
    itemsize,
    namespace,
    on_device_of,
    one_blas_thread,
    readable,
    row_norms,
    rows_of,
    tiles,
)
from ..kernels import points as pts
from .pivots import rule

# Pivots within this range are divided out together, by the inverse of their small factor; across a
# wider one an inverse would lose digits.
MOST_RANGE = 10.0
# Rows worked on at once: 5 % faster than the 1024 of other tiles, which are wider than a block.
MOST_ROWS = 2048
# Columns to begin with where memory is taken when asked for; doubled as needed.
FIRST_COLUMNS = 512


@dataclass
class Partial:
    """Coordinates of all points (normalised), pivots, and relative residuals."""

    F: object
    indices: np.ndarray
    residuals: np.ndarray
    ordered: bool = True  # largest residuals first, which keeps triangular solves stable


def partial_cholesky(
    kernel: Any,
    X: Any,
    lengths: Any,
    *,
    tol: Any,
    max_rank: Any,
    pivots: str = "greedy",
    rng: Any = None,
    start: Any = None,
    initial: Any = None,
    capacity: Any = None,
    sampled: bool = False,
):
    """Choose landmarks among X until every relative residual is at most tol.

    Parameters
    ----------
    lengths : sqrt k(x, x), zero for points at the origin of feature space
    start : n x r0 normalised coordinates to go on from
    initial : k(x, x) / lengths^2, where that is not 1 for every point away from the origin
    capacity : most columns that memory allows; reaching it is an error, reaching max_rank is not
    sampled : whether X is a part of the rows, so that its residuals are not those of all
    """
    n = X.shape[0]
    xp = namespace(lengths)
    r = 0 if start is None else start.shape[1]
    first = r
    wanted = min(n, max_rank) + first if max_rank is not None else n + first
    room = wanted if capacity is None else min(wanted, capacity)
    # On the CPU memory that is never written is never taken; a device takes it at once.
    F = _columns(lengths, n, room if is_cpu(lengths) else min(room, r + FIRST_COLUMNS))
    residuals = np.where(as_numpy(lengths) > 0, 1.0, 0.0) if initial is None else initial
    if start is not None:
        F[:, :r] = start
        residuals = residuals * (1.0 - as_numpy(row_norms(start, xp)).astype(np.float64))
    weights = as_numpy(lengths).astype(np.float64) ** 2
    choose = rule(pivots, rng)
    taken: list[int] = []
    inverse_lengths = 1.0 / xp.where(lengths > 0, lengths, xp.ones_like(lengths))
    # Small products between the passes would wake BLAS's own threads, which go on spinning for tens
    # of milliseconds on the cores that the tiles need: one BLAS thread from first to last.
    with one_blas_thread(), tiles.progress_bar("landmarks") as progress:
        while r < wanted and residuals.max() > tol:
            if r >= room:
                raise MemoryLimitError(_too_large(n, r, residuals.max(), tol, F, sampled))
            floor = max(tol, choose.least_share * float(residuals.max()))
            # What is explained is not a candidate, however large its own scale.
            left = np.where(residuals > floor, residuals, 0.0)
            proposed = choose.propose(left, weights, r - first, wanted - first)
            if kernel.one_call_per_value:
                proposed = _one_of(proposed, left, pivots)
            if len(proposed) == 0:
                break
            P = pts.take(F[:, :r], proposed)
            G = _residual_gram(kernel, X, P, proposed, inverse_lengths)
            accepted, L = choose.accept(G, floor, room - r)
            # The proposals' residuals were computed anew: what rounding left stays known.
            if len(accepted) == 0:
                residuals[proposed] = np.minimum(residuals[proposed], np.maximum(G.diagonal(), 0))
                continue
            chosen = proposed[accepted]
            if r + len(chosen) > F.shape[1]:
                wider = _columns(F, n, min(room, 2 * (r + len(chosen))))
                wider[:, :r] = F[:, :r]
                F = wider
            known = pts.take(P, accepted)
            _append(kernel, X, F, known, chosen, L, inverse_lengths, residuals)
            residuals[chosen] = 0.0
            taken.extend(chosen.tolist())
            r += len(chosen)
            progress.set_postfix(rank=r, residual=f"{residuals.max():.1e}")
            progress.update(len(chosen))
    return Partial(F[:, :r], np.array(taken, dtype=int), residuals, choose.ordered)


def _one_of(proposed, left, pivots):
    """One pivot at a time where values are dear: what a block compares and rejects is wasted.

    Uniform pivots stay together: they are not compared, and nearly all are accepted.
    """
    if pivots == "greedy":
        return proposed[[left[proposed].argmax()]]
    return proposed[:1] if pivots == "random" else proposed


def _too_large(n, r, residual, tol, F, sampled):
    held = readable(coordinates_bytes(n, r, size=itemsize(F)))
    tol_that_fits = f"tol={1.01 * residual:.2g}, or " if residual < 0.98 and not sampled else ""
    return (
        f"rank {r} reached with a largest relative residual of {residual:.3g} (tol={tol:.3g}), and "
        f"memory_limit leaves no room for more than {r} columns of {n} points "
        f"({held}, and as much again for the result). What fits: "
        f"max_rank={r}, or {tol_that_fits}float32 data for about twice the rank; else a larger "
        "memory_limit."
    )


def _columns(like, n, room):
    """n x room, column after column: memory never written is never taken, and columns are added."""
    if is_numpy(like):
        return np.empty((n, room), dtype=like.dtype, order="F")
    xp = namespace(like)
    # The transpose of a row-major array.
    return xp.matrix_transpose(xp.empty((room, n), dtype=like.dtype, device=tiles.device(like)))


def _residual_gram(kernel, X, P, proposed, inverse_lengths):
    """The proposals' kernel matrix minus P P' of their coordinates P, on the host."""
    points = kernel.landmarks(X, proposed)
    G = kernel.against(points)(pts.take(X, proposed))
    s = pts.take(inverse_lengths, proposed)
    G, s, P = (np.asarray(as_numpy(v), dtype=np.float64) for v in (G, s, P))
    return G * np.outer(s, s) - P @ P.T


def _runs(pivots):
    """Slices of decreasing pivots, each within MOST_RANGE."""
    start = 0
    for stop in range(1, len(pivots) + 1):
        if stop == len(pivots) or pivots[start] > MOST_RANGE * pivots[stop]:
            yield slice(start, stop)
            start = stop


def _append(kernel, X, F, known, chosen, L, inverse_lengths, residuals):
    """Columns of the chosen pivots: (K[:, chosen] - F F[chosen]') L^-T, and lower residuals.

    `known` are the pivots' coordinates before.
    """
    xp = namespace(F)
    r, b = known.shape[1], len(chosen)
    tile = kernel.against(kernel.landmarks(X, chosen))
    # L = D (I + N) with D its diagonal blocks: pivots of a run are close to each other, so that the
    # inverse of D is harmless, and N is divided out by substitution.
    runs = list(_runs(L.diagonal()))
    inverses = [scipy.linalg.lapack.dtrtri(L[run, run], lower=1)[0] for run in runs]
    D_inverse = scipy.linalg.block_diag(*inverses)
    N = on_device_of(D_inverse @ L, F)
    inverse = on_device_of(D_inverse, F)
    # Transposed, b x rows: BLAS is a third faster with few rows on the left than with few columns
    # on the right.
    known = inverse @ known
    scales = inverse * pts.take(inverse_lengths, chosen)[None, :]
    of_one_length = bool(xp.all(inverse_lengths == 1))

    def work(a, c):
        t = scales @ tile(rows_of(X, a, c)).T
        if not of_one_length:
            t *= inverse_lengths[a:c][None, :]
        t -= known @ F[a:c, :r].T
        for run in runs[1:]:
            t[run, :] -= N[run, : run.start] @ t[: run.start, :]
        F[a:c, r : r + b] = t.T
        residuals[a:c] -= as_numpy(row_norms(t.T, xp))

    tiles.run_tasks(work, tiles.row_blocks(X, max(b, 128), MOST_ROWS), kernel, F)
