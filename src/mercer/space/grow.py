"""Landmarks for data larger than memory: certify and grow.

Choose landmarks on a sample, stream all rows computing their residuals, keep the rows above tol,
and continue the factorisation on these alone. Residuals only fall as landmarks are added, so one
pass certifies every row, with memory for a panel, the factor and the kept rows.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..engine import (
    Array,
    MapBytes,
    MemoryLimitError,
    as_numpy,
    coordinates_bytes,
    current,
    eps_of,
    itemsize,
    namespace,
    readable,
    tiles,
)
from ..kernels import Kernel
from ..kernels import points as pts
from ..rows import HeldRows, LargestResidual, Rows, gather, stacked
from .choice import MapOptions, matrix_rows, refute_by_sample
from .cholesky import default_tol, factorize, matrix_fits, self_lengths
from .landmarks import Landmarks, is_stable, normalised_matrix, pivoted, refactorized
from .own_features import OwnFeatures
from .partial import partial_cholesky

# Arrays of coordinates of the drawn rows: those that are known, normalised, and with more columns.
_GROWING = 3
# Rows that are drawn in any case.
_FEWEST = 1000
# Rows whose ranks tell how the rank grows, and how much of the prediction is certain enough to
# refuse by: ranks grow more slowly with more rows, never faster.
_PROBED, _CERTAIN = (1000, 2000), 0.5


@dataclass(frozen=True)
class _Unexplained:
    """Which rows have a relative residual above tol; none once max_rank is reached."""

    space: Landmarks
    tol: float
    max_rank: int | None = None

    def __call__(self, points: Array) -> tuple[np.ndarray, LargestResidual]:
        rho2, share = _relative_residuals(self.space, points)
        full = self.max_rank is not None and self.space.rank >= self.max_rank
        above = np.zeros(len(share), dtype=bool) if full else share > self.tol
        return above, LargestResidual(*(float(v[~above].max(initial=0.0)) for v in (share, rho2)))


def sampled_space(
    kernel: Kernel, points: Array, options: MapOptions
) -> Landmarks | OwnFeatures | None:
    """Landmarks of a sample where the coordinates of all points would not fit; else None."""
    n = points.shape[0]
    if n <= 2 * gather.SAMPLE or options.needs_all_rows(kernel) or not kernel.layout.on_data:
        return None
    if options.basis_for(kernel, points) == "closed":
        return None
    like, limit = tiles.allocate(points, (1, 1)), current().limit(points)
    most = MapBytes.partial_rank(n, limit, itemsize(like), options.copies, options.squares)
    whole = matrix_fits(kernel, like, n, limit, options.copies, options.squares)
    if whole or min(n, options.max_rank or n) <= most:
        return None
    sample = HeldRows(points).sample(gather.SAMPLE, current().rng())
    space = space_of_sample(kernel, sample, options)
    # All rows have a somewhat larger rank than the sample.
    return None if 1.5 * space.rank <= most else space


def space_of_sample(kernel: Kernel, sample: Any, options: MapOptions) -> Landmarks | OwnFeatures:
    """Landmarks among the sample, and their factor; or the kernel's own features."""
    refute_by_sample(kernel, sample.points)
    if options.basis_for(kernel, sample.points) == "closed":
        return OwnFeatures(kernel, sample.points)
    sample = _sample_that_fits(kernel, sample, options)
    points = sample.points
    lengths, limit = self_lengths(kernel, kernel.diagonal(points)), current().limit(points)
    part = partial_cholesky(
        kernel,
        points,
        lengths,
        tol=default_tol(eps_of(points), options.tol),
        max_rank=options.max_rank,
        capacity=MapBytes.streamed_rank(points.shape[0], limit, itemsize(lengths)),
        sampled=True,
    )
    part.F *= lengths[:, None]
    factor, _ = refactorized(kernel, points, part, lengths)
    factor.indices = sample.positions[part.indices]
    return factor


def _sample_that_fits(kernel: Kernel, sample: Any, options: MapOptions) -> Any:
    """The sample, or a part of it: the coordinates of its rows must fit beside the landmarks.

    Where no part is small enough, that is said before minutes are spent. The ranks of two small
    parts tell how the rank grows with the rows.
    """
    points, n = sample.points, sample.points.shape[0]
    limit, size = current().limit(points), itemsize(tiles.allocate(points, (1, 1)))
    most = n if options.max_rank is None else min(n, options.max_rank)
    probed = [min(m, matrix_rows(limit) * m // _PROBED[-1]) for m in _PROBED]
    if most <= MapBytes.streamed_rank(n, limit, size) or n <= probed[-1]:
        return sample
    tol, order = default_tol(eps_of(points), options.tol), current().rng().permutation(n)
    ranks = [factorize(kernel, pts.take(points, order[:m]), tol=tol).factor.rank for m in probed]
    few, many = (max(rank, 1) for rank in ranks)
    growth = np.log(many / few) / np.log(probed[1] / probed[0])
    predicted = min(n, int(many * (n / probed[1]) ** growth))
    rank = min(most, max(many, int(_CERTAIN * predicted)))
    for rows in (n, n // 2, n // 4, n // 8):
        fits = MapBytes.streamed_rank(rows, limit, size)
        if min(most, predicted) <= min(fits, rows // 2):
            break
    if rank <= fits:
        some = np.sort(order[:rows])
        return replace(sample, points=pts.take(points, some), positions=sample.positions[some])
    needed = MapBytes.streamed(rank, rows, 0, size)
    raise MemoryLimitError(
        f"tol={tol:.3g} needs about {predicted} landmarks for a sample of {n} rows ({few} for "
        f"{probed[0]} rows, {many} for {probed[1]}) and more for all rows: at least "
        f"{readable(needed)}; memory_limit allows {readable(limit)}. What fits: max_rank={fits}, "
        "or a larger tol; else a larger memory_limit. KernelRidge(form='iterative') needs no such "
        "map."
    )


def certify_and_grow(
    space: Any, rows: Rows, tol: float | None, max_rank: int | None
) -> tuple[Landmarks, LargestResidual]:
    """Extend the landmarks until every row has a relative residual of at most tol: (landmarks, the
    worst residual that they leave on any row).

    One pass over the rows finds those above tol; landmarks are added from these alone. With
    max_rank, stop there and report what is left.
    """
    tol, limit, rng = default_tol(eps_of(space.C), tol), current().limit(space.C), current().rng()
    kept = rows.filter(_Unexplained(space, tol, max_rank))
    worst, size = kept.worst, itemsize(space.C)
    most = MapBytes.streamed_rank(_FEWEST, limit, size, _GROWING)
    while kept.count:
        if space.rank >= most:
            raise MemoryLimitError(
                f"{space.rank} landmarks leave {kept.count} rows with a relative residual above "
                f"tol={tol:.3g}, and memory_limit={readable(limit)} has no room for more. What "
                f"fits: max_rank={space.rank}, a larger tol, or float32 data; else a larger "
                "memory_limit. KernelRidge(form='iterative') needs no such map."
            )
        # A sixth of the memory is for coordinates of the drawn rows: the fewer, the more landmarks.
        per_row = coordinates_bytes(18, 2 * max(space.rank, 1), size=size)
        drawn = min(gather.SAMPLE, max(_FEWEST, int(limit / per_row)))
        points, positions = kept.draw(drawn, rng)
        room = max(space.rank + 1, MapBytes.streamed_rank(drawn, limit, size, _GROWING))
        stop = min(most, room) if max_rank is None else min(most, room, max_rank)
        before = space.rank
        space, left = _grown(space, points, positions, tol, stop)
        # Rows that no landmark can explain to tol, because of rounding, are reported as they are.
        stuck = space.rank == before
        if len(positions) == kept.count and (left[0] <= tol or stuck or space.rank == max_rank):
            worst = worst + LargestResidual(*left)
            break
        kept = kept.filter(_Unexplained(space, np.inf if stuck else tol, max_rank))
        worst = worst + kept.worst
    return space, worst


def _relative_residuals(factor: Landmarks, X: Array) -> tuple[np.ndarray, np.ndarray]:
    """rho^2 and rho^2 / k(x, x) for every row, on the host."""
    diagonal = as_numpy(factor.kernel.diagonal(X)).astype(np.float64)
    norms = as_numpy(factor.squared_norms(X)).astype(np.float64)
    rho2 = np.maximum(diagonal - norms, 0.0)
    return rho2, rho2 / np.where(diagonal > 0, diagonal, 1.0)


def _grown(
    factor: Landmarks, X: Array, positions: np.ndarray, tol: float, max_rank: int | None
) -> tuple[Landmarks, tuple[float, float]]:
    """The factor with landmarks from X added until X's residuals are at most tol.

    Also returns the largest relative and absolute residual left on X. Landmarks are put in another
    order where the old ones followed by the new ones would amplify rounding.
    """
    larger, worst = _with_landmarks(factor, X, positions, tol, max_rank, None)
    lengths = larger.lengths()
    if larger is factor or factor.rank == 0 or is_stable(larger.C / lengths[:, None]):
        return larger, worst
    order, C = pivoted(normalised_matrix(larger.kernel, larger.S, larger.S, lengths))
    lengths = pts.take(lengths, order)
    reordered = Landmarks(
        larger.kernel,
        pts.take(larger.S, order),
        C * lengths[:, None],
        larger.indices[order],
        larger.eps,
    )
    rho2, share = _relative_residuals(reordered, X)
    return reordered, (float(share.max()), float(rho2.max()))


def extended(
    factor: Any, X: Array, positions: np.ndarray, tol: float | None, max_rank: int | None
) -> tuple[Landmarks, tuple[float, float]]:
    """As `_grown`, and old coordinates keep their values: new landmarks only add columns.

    ([NPT] Lemma 5.) So landmarks stay in the order in which they came, and one with a tiny residual
    would amplify the rounding of all that come later: residuals below sqrt(eps) stay as they are.
    """
    size, limit = itemsize(factor.C), current().limit(factor.C)
    capacity = MapBytes.streamed_rank(X.shape[0], limit, size, _GROWING)
    tol = max(tol or 0.0, eps_of(factor.C) ** 0.5)
    return _with_landmarks(factor, X, positions, tol, max_rank, capacity)


def _with_landmarks(
    factor: Landmarks,
    X: Array,
    positions: np.ndarray,
    tol: float,
    max_rank: int | None,
    capacity: int | None,
) -> tuple[Landmarks, tuple[float, float]]:
    kernel, xp = factor.kernel, namespace(factor.C)
    diagonal = kernel.diagonal(X)
    lengths = self_lengths(kernel, diagonal)
    start = factor.coordinates(X)
    start = start / xp.where(lengths > 0, lengths, xp.ones_like(lengths))[:, None]
    room = None if max_rank is None else max_rank - factor.rank
    if room is not None and room <= 0:
        share = np.maximum(1 - as_numpy(xp.sum(start * start, axis=1)).astype(np.float64), 0)
        return factor, (float(share.max()), float((share * as_numpy(diagonal)).max()))
    part = partial_cholesky(
        kernel, X, lengths, tol=tol, max_rank=room, start=start, capacity=capacity, sampled=True
    )
    chosen, left = part.indices, (part.residuals, part.residuals * as_numpy(diagonal))
    relative, absolute = (float(max(residuals.max(), 0)) for residuals in left)
    if len(chosen) == 0:
        return factor, (relative, absolute)
    rows = pts.take(part.F, chosen) * pts.take(lengths, chosen)[:, None]
    S = stacked(factor.S, kernel.landmarks(X, chosen))
    return factor.grown(S, rows, positions[chosen]), (relative, absolute)


def empty_factor(kernel: Kernel, X: Any) -> Landmarks:
    """No landmarks yet: every residual is k(x, x)."""
    C = tiles.allocate(X, (0, 0))
    return Landmarks(kernel, kernel.landmarks(X, np.empty(0, dtype=int)), C, np.empty(0, dtype=int))
