"""Blocked pivoted Cholesky that evaluates only the r columns it needs.

Works on the normalised kernel k(x, z) / sqrt(k(x, x) k(z, z)), so that a residual is relative to
each point's own k(x, x) (MATH.md section 7). The same loop starts from nothing, or goes on from
coordinates that a factor already gives (certify and grow, partial_fit).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from ..engine import (
    Array,
    MemoryLimitError,
    as_numpy,
    coordinates_bytes,
    evenly,
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
from ..kernels import Kernel
from ..kernels import points as pts

# --- which points become landmarks ----------------------------------------------------------------

# A block is proposed from the residuals d of all points, and pivoted Cholesky on the block's own
# residual matrix G decides which proposals are accepted, on plain NumPy arrays wherever the data
# live: a block is small.

# Greedy blocks: this many proposals, accepted while within this share of the largest residual.
# Larger blocks save passes, a smaller share costs rank.
_BLOCK = 64
_SHARE = 0.3
# Random proposals come in batches of this share of the wanted rank.
_RANDOM_SHARE = 0.2
_MOST_RANDOM = 512
# Rules that do not take the largest residuals first refuse pivots below this share of the largest:
# a tiny pivot before a large one amplifies rounding in all that follow.
_LEAST_SHARE = 1e-4


class _Greedy:
    """The largest residuals first: the smallest worst residual."""

    ordered = True
    least_share, share = 0.0, _SHARE

    def __init__(self, rng: Any) -> None:
        self.rng: np.random.Generator = rng
        self.order = np.empty(0, dtype=int)  # of uniform pivots

    def propose(self, d: np.ndarray, weights: np.ndarray, rank: int, wanted: int) -> np.ndarray:
        largest = int(d.argmax())
        eligible = np.flatnonzero(d >= _SHARE * d[largest])
        # Spread over all eligible points: the very largest are neighbours of each other, and one
        # of them settles the rest.
        spread = eligible[evenly(len(eligible), _BLOCK)]
        return np.unique(np.append(spread, largest))

    def accept(self, G: np.ndarray, floor: float, most: int) -> tuple[np.ndarray, np.ndarray]:
        return largest_first(G, max(self.share * float(G.diagonal().max()), floor), most)


class _Random(_Greedy):
    """Probability proportional to the residual, by rejection (accelerated RPCholesky)."""

    ordered = False
    least_share = _LEAST_SHARE

    def propose(self, d: np.ndarray, weights: np.ndarray, rank: int, wanted: int) -> np.ndarray:
        p = np.maximum(d * weights, 0)
        # Without a wanted rank, as if twice the present one were wanted.
        count = int(_RANDOM_SHARE * (wanted if wanted < len(d) else 2 * rank + 100))
        count = min(max(count, 8), _MOST_RANDOM)
        chosen = self.rng.choice(len(d), size=count, p=p / p.sum())
        _, first = np.unique(chosen, return_index=True)
        return chosen[np.sort(first)]

    def accept(self, G: np.ndarray, floor: float, most: int) -> tuple[np.ndarray, np.ndarray]:
        before = G.diagonal().copy()
        draws = self.rng.random(len(G))
        # A proposal was drawn by its residual before the block; it stays with the share that is
        # left after the accepted ones.
        drawn = _in_order(G, lambda g, i: draws[i] * before[i] < g[i] and g[i] > floor, most)
        # The order within a block is free, and this one is stable.
        order, L = largest_first(G[np.ix_(drawn, drawn)], floor, most)
        return drawn[order], L


class _Uniform(_Greedy):
    """Every point alike: what most libraries do, kept for comparison.

    Points are visited in a random order. Those that were refused, being nearly explained while
    others were not at all, are visited again once all others have been.
    """

    ordered = False
    least_share, share = _LEAST_SHARE, 0.0

    def propose(self, d: np.ndarray, weights: np.ndarray, rank: int, wanted: int) -> np.ndarray:
        self.order = self.order[d[self.order] > 0]
        if len(self.order) == 0:
            self.order = self.rng.permutation(np.flatnonzero(d > 0))
        count = max(1, min(4 * _BLOCK, wanted - rank))
        chosen, self.order = self.order[:count], self.order[count:]
        return chosen


_RULES = {"greedy": _Greedy, "random": _Random, "uniform": _Uniform}


def largest_first(G: Any, threshold: float, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Cholesky on G, the largest residual first while it is above the threshold.

    Returns (order, L) with L lower triangular, L L' = G[order, order].
    """
    if G.diagonal().max(initial=0) <= threshold:  # LAPACK takes the first pivot without a look
        return np.empty(0, dtype=int), np.empty((0, 0))
    A, order, rank, _ = scipy.linalg.lapack.dpstrf(G, tol=threshold, lower=1)
    rank = min(rank, most)
    return order[:rank] - 1, np.tril(A[:rank, :rank])


def _in_order(G: Any, keeps: Callable[[np.ndarray, int], bool], most: int) -> np.ndarray:
    """The pivots that `keeps(residuals, i)` accepts when they are asked one after the other."""
    residual = G.diagonal().copy()
    L = np.zeros_like(G)
    accepted: list[int] = []
    for i in range(len(G)):
        if len(accepted) == most:
            break
        if keeps(residual, i):
            q = len(accepted)
            L[:, q] = (G[:, i] - L[:, :q] @ L[i, :q]) / np.sqrt(residual[i])
            residual -= L[:, q] ** 2
            accepted.append(i)
    return np.array(accepted, dtype=int)


# --- the blocked algorithm ------------------------------------------------------------------------

# Pivots within this range are divided out together, by the inverse of their small factor; across a
# wider one an inverse would lose digits.
_MOST_RANGE = 10.0
# Rows worked on at once: 5 % faster than the 1024 of other tiles, which are wider than a block.
_MOST_ROWS = 2048
# Columns to begin with where memory is taken when asked for; doubled as needed.
_FIRST_COLUMNS = 512


@dataclass
class Partial:
    """Coordinates of all points (normalised), pivots, and relative residuals."""

    F: Any
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
) -> Partial:
    """Choose landmarks among X until every relative residual is at most tol.

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
    F = _columns(lengths, n, room if is_cpu(lengths) else min(room, r + _FIRST_COLUMNS))
    residuals = np.where(as_numpy(lengths) > 0, 1.0, 0.0) if initial is None else initial
    if start is not None:
        F[:, :r] = start
        residuals = residuals * (1.0 - as_numpy(row_norms(start, xp)).astype(np.float64))
    weights = as_numpy(lengths).astype(np.float64) ** 2
    choose = _RULES[pivots](rng)
    taken: list[int] = []
    inverse_lengths = 1.0 / xp.where(lengths > 0, lengths, xp.ones_like(lengths))
    # Small products between the passes would wake BLAS's own threads, which go on spinning for tens
    # of milliseconds on the cores that the tiles need: one BLAS thread from first to last.
    with one_blas_thread(), tiles.progress_bar("landmarks") as progress:
        while r < wanted and residuals.max() > tol:
            if r >= room:
                raise MemoryLimitError(_too_large(n, r, residuals.max(), tol, F, sampled))
            floor = max(tol, choose.least_share * float(residuals.max()))
            # Rows that are explained are not candidates, however large their own scale.
            left = np.where(residuals > floor, residuals, 0.0)
            proposed = choose.propose(left, weights, r - first, wanted - first)
            if kernel.one_call_per_value and pivots != "uniform":
                # One at a time where values are dear: what a block compares and rejects is wasted.
                # (Uniform pivots are not compared, and nearly all are accepted.)
                one = left[proposed].argmax() if pivots == "greedy" else 0
                proposed = proposed[[one]]
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


def _too_large(n: int, r: int, residual: float, tol: float, F: Array, sampled: bool) -> str:
    held = readable(coordinates_bytes(n, r, size=itemsize(F)))
    fits = [f"max_rank={r}"]
    fits += [f"tol={1.01 * residual:.2g}"] if residual < 0.98 and not sampled else []
    fits += ["float32 data for about twice the rank"] if itemsize(F) == 8 else []
    return (
        f"rank {r} reached with a largest relative residual of {residual:.3g} (tol={tol:.3g}), and "
        f"memory_limit leaves no room for more than {r} columns of {n} points "
        f"({held}, and as much again for the result). What fits: {', or '.join(fits)}; else a "
        "larger memory_limit."
    )


def _columns(like: Array, n: int, room: int) -> Any:
    """n x room, column after column: memory never written is never taken, and columns are added."""
    if is_numpy(like):
        return np.empty((n, room), dtype=like.dtype, order="F")
    xp = namespace(like)
    # The transpose of a row-major array.
    return xp.matrix_transpose(xp.empty((room, n), dtype=like.dtype, device=tiles.device(like)))


def _residual_gram(
    kernel: Kernel, X: Array, P: Array, proposed: np.ndarray, inverse_lengths: Array
) -> np.ndarray:
    """The proposals' kernel matrix minus P P' of their coordinates P, on the host."""
    points = kernel.landmarks(X, proposed)
    G = kernel.against(points)(pts.take(X, proposed))
    s = pts.take(inverse_lengths, proposed)
    G, s, P = (np.asarray(as_numpy(v), dtype=np.float64) for v in (G, s, P))
    return G * np.outer(s, s) - P @ P.T


def _runs(pivots: np.ndarray) -> Iterator[slice]:
    """Slices of decreasing pivots, each within _MOST_RANGE."""
    start = 0
    for stop in range(1, len(pivots) + 1):
        if stop == len(pivots) or pivots[start] > _MOST_RANGE * pivots[stop]:
            yield slice(start, stop)
            start = stop


def _append(
    kernel: Kernel,
    X: Array,
    F: Array,
    known: Array,
    chosen: np.ndarray,
    L: np.ndarray,
    inverse_lengths: Any,
    residuals: np.ndarray,
) -> None:
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

    def work(a: int, c: int) -> None:
        t = scales @ tile(rows_of(X, a, c)).T
        if not of_one_length:
            t *= inverse_lengths[a:c][None, :]
        t -= known @ F[a:c, :r].T
        for run in runs[1:]:
            t[run, :] -= N[run, : run.start] @ t[: run.start, :]
        F[a:c, r : r + b] = t.T
        residuals[a:c] -= as_numpy(row_norms(t.T, xp))

    tiles.run_tasks(work, tiles.row_blocks(X, max(b, 128), _MOST_ROWS), kernel, F)
