"""Landmarks for data larger than memory: certify and grow.

Choose landmarks on a sample, stream all rows computing their residuals, keep the rows above tol,
and continue the factorisation on these alone. Residuals only fall as landmarks are added, so one
pass certifies every row, with memory for a panel, the factor and the kept rows.
"""

from dataclasses import dataclass

import numpy as np

from ..engine import tiles
from ..engine.arrays import as_numpy, itemsize, namespace
from ..kernels.points import take
from ..rows.stream import stacked
from .base import Factor
from .cholesky import PARTIAL_TOL, self_lengths
from .partial import partial_cholesky
from .refactor import is_stable, normalised_matrix, pivoted, refactorized

# Rows of the first sample: a larger one costs a longer start and saves rank.
SAMPLE = 20_000


@dataclass
class Certified:
    """A factor with the largest residuals that any row of the stream has left."""

    factor: Factor
    n: int
    largest_relative: float
    largest: float


def sample_factor(kernel, sample, positions, *, tol, max_rank, n_jobs=None, verbose=False):
    """Landmarks among the sample, and their factor."""
    lengths = self_lengths(kernel, kernel.diagonal(sample))
    part = partial_cholesky(
        kernel, sample, lengths, tol=tol, max_rank=max_rank, n_jobs=n_jobs, verbose=verbose
    )
    part.F *= lengths[:, None]
    factor, _ = refactorized(kernel, sample, part, lengths)
    factor.indices = positions[part.indices]
    return factor


def certify_and_grow(factor, rows, *, tol, max_rank, limit, n_jobs=None, verbose=False):
    """Extend the factor until every row has a relative residual of at most tol.

    With max_rank, stop there and report what is left.
    """
    kept, where, left, n = None, [], [], 0
    relative = largest = 0.0
    for start, chunk in rows:
        n = start + chunk.shape[0]
        rho2, share = relative_residuals(factor, chunk, n_jobs)
        # Rows to grow on, unless the rank is reached: then none need be kept.
        full = max_rank is not None and factor.rank >= max_rank
        below = (share <= tol) | full
        above = np.flatnonzero(~below)
        if below.any():
            relative, largest = max(relative, share[below].max()), max(largest, rho2[below].max())
        if len(above) == 0:
            continue
        picked = take(chunk, above)
        kept = picked if kept is None else stacked(kept, picked)
        where.append(start + above)
        left.append(share[above])
        if kept.shape[0] * 2 * factor.rank * itemsize(factor.C) > limit // 3:
            # Too many to hold: grow on them now; rows already seen stay certified.
            factor, worst = grown(
                factor, kept, np.concatenate(where), tol, max_rank, n_jobs, verbose
            )
            relative, largest = max(relative, worst[0]), max(largest, worst[1])
            kept, where, left = None, [], []
    if kept is not None:
        factor, worst = grown(factor, kept, np.concatenate(where), tol, max_rank, n_jobs, verbose)
        relative, largest = max(relative, worst[0]), max(largest, worst[1])
    return Certified(factor, n, float(relative), float(largest))


def relative_residuals(factor, X, n_jobs=None):
    """rho^2 and rho^2 / k(x, x) for every row, on the host."""
    diagonal = as_numpy(factor.kernel.diagonal(X)).astype(np.float64)
    norms = as_numpy(factor.squared_norms(X, n_jobs=n_jobs)).astype(np.float64)
    rho2 = np.maximum(diagonal - norms, 0.0)
    return rho2, rho2 / np.where(diagonal > 0, diagonal, 1.0)


def grown(factor, X, positions, tol, max_rank, n_jobs=None, verbose=False):
    """The factor with landmarks from X added until X's residuals are at most tol.

    Also returns the largest relative and absolute residual left on X. Landmarks are put in another
    order where the old ones followed by the new ones would amplify rounding.
    """
    larger, worst = _with_landmarks(factor, X, positions, tol, max_rank, n_jobs, verbose)
    if larger is factor or factor.rank == 0 or is_stable(larger.normalised()):
        return larger, worst
    lengths = larger.lengths()
    order, C = pivoted(normalised_matrix(larger.kernel, larger.S, larger.S, lengths))
    lengths = take(lengths, order)
    reordered = Factor(
        larger.kernel,
        take(larger.S, order),
        C * lengths[:, None],
        larger.indices[order],
        larger.eps,
    )
    rho2, share = relative_residuals(reordered, X, n_jobs)
    return reordered, (float(share.max()), float(rho2.max()))


def extended(factor, X, positions, tol, max_rank, n_jobs=None, verbose=False):
    """As `grown`, and old coordinates keep their values: new landmarks only add columns.

    ([NPT] Lemma 5.) So landmarks stay in the order in which they came, and one with a tiny residual
    would amplify the rounding of all that come later: residuals below sqrt(eps) stay as they are.
    """
    floor = float(namespace(factor.C).finfo(factor.C.dtype).eps) ** 0.5
    return _with_landmarks(factor, X, positions, max(tol, floor), max_rank, n_jobs, verbose)


def _with_landmarks(factor, X, positions, tol, max_rank, n_jobs, verbose):
    kernel, xp = factor.kernel, namespace(factor.C)
    diagonal = kernel.diagonal(X)
    lengths = self_lengths(kernel, diagonal)
    start = factor.coordinates(X, n_jobs=n_jobs)
    start = start / xp.where(lengths > 0, lengths, xp.ones_like(lengths))[:, None]
    room = None if max_rank is None else max_rank - factor.rank
    if room is not None and room <= 0:
        share = np.maximum(1 - as_numpy(xp.sum(start * start, axis=1)).astype(np.float64), 0)
        return factor, (float(share.max()), float((share * as_numpy(diagonal)).max()))
    part = partial_cholesky(
        kernel, X, lengths, tol=tol, max_rank=room, start=start, n_jobs=n_jobs, verbose=verbose
    )
    chosen = part.indices
    worst = (
        float(max(part.residuals.max(), 0)),
        float(max((part.residuals * as_numpy(diagonal)).max(), 0)),
    )
    if len(chosen) == 0:
        return factor, worst
    rows = take(part.F, chosen) * take(lengths, chosen)[:, None]
    S = stacked(factor.S, kernel.landmarks(X, chosen))
    return factor.grown(S, rows, positions[chosen]), worst


def empty_factor(kernel, X):
    """No landmarks yet: every residual is k(x, x)."""
    C = tiles.allocate(X, (0, 0))
    return Factor(kernel, kernel.landmarks(X, np.empty(0, dtype=int)), C, np.empty(0, dtype=int))


def default_tol(dtype, tol):
    eps = float(np.finfo(np.float32 if "32" in str(dtype) else np.float64).eps)
    return PARTIAL_TOL * eps if tol is None else max(tol, 4 * eps)
