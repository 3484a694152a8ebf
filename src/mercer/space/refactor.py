"""The factor of k(S, S) computed anew, once the landmarks S are chosen.

The blocked algorithm gathers rounding on its way. And a set of landmarks that were not taken
largest residual first has to be put in that order: a tiny pivot before a large one amplifies the
rounding of every column after it, block after block, without a limit.
"""

from typing import Any

import numpy as np
import scipy.linalg

from ..engine import (
    Array,
    as_numpy,
    blas_threads_for,
    cholesky,
    eps_of,
    evenly,
    namespace,
    on_device_of,
    rows_of,
    tiles,
)
from ..kernels import points as pts
from .landmarks import Landmarks
from .pivots import largest_first

# Rounding in one landmark's coordinate, relative to its pivot: about 50 units of roundoff for
# greedy pivots at full rank. Above this limit the order is changed.
MOST_GROWTH = 1e3
# Random products that tell the lengths of rows, each to a factor of two.
PROBES = 32
PROBE_MARGIN = 2.0
# Pivots below this many eps of k(s, s) are rounding (MATH.md section 7).
NOISE = 64
# Landmarks on which two factors are compared.
LOOKED_AT = 64


def refactorized(kernel: Any, X: Any, part: Any, lengths: Any, eps: Any = None):
    """The factor of the landmarks that `part` chose among X, and how much the two disagree."""
    indices = part.indices
    if len(indices) == 0:
        return Landmarks(kernel, kernel.landmarks(X, indices), part.F[:0, :], indices, eps), 0.0
    with blas_threads_for(len(indices)):
        return _refactorized(kernel, X, part, lengths, eps)


def _refactorized(kernel, X, part, lengths, eps):
    xp, indices = namespace(lengths), part.indices
    S, l = kernel.landmarks(X, indices), pts.take(lengths, indices)
    K = normalised_matrix(kernel, S, pts.take(X, indices), l)
    C = cholesky(K)
    if C is None and part.ordered:
        # Singular to rounding: the factor that chose the pivots is what there is.
        C = xp.tril(pts.take(part.F, indices) / l[:, None])
    if C is None or not (part.ordered or is_stable(C)):
        order, C = pivoted(K)
        indices, l = indices[order], pts.take(l, order)
        return Landmarks(kernel, kernel.landmarks(X, indices), C * l[:, None], indices, eps), 0.0
    factor = Landmarks(kernel, S, C * l[:, None], indices, eps)
    if part.ordered:
        return factor, 0.0
    return factor, _disagreement(part.F, indices, l, C, K) / (8 * factor.roundoff())


def _disagreement(F, indices, lengths, C, K):
    """How far the inner products of two factors of K, C and the rows of F, are from it.

    Looked at for the landmarks with the smallest pivots, where rounding shows, and for others
    spread over all. (8 eta is what the certificate allows between landmarks.)
    """
    xp = namespace(C)
    pivots = as_numpy(xp.linalg.diagonal(C))
    small = np.argsort(pivots, kind="stable")[:LOOKED_AT]
    some = np.union1d(small, evenly(len(pivots), 4 * LOOKED_AT))
    found = pts.take(F, indices[some]) / pts.take(lengths, some)[:, None]
    columns = on_device_of(some, C, dtype=xp.int64)
    difference = pts.take(C, small) @ found.T - xp.take(pts.take(K, small), columns, axis=1)
    return float(xp.max(xp.abs(difference)))


def normalised_matrix(kernel: Any, S: Any, points: Any, lengths: Any):
    """k(S, S) / (l l'), where `points` are the landmarks as rows."""
    K = tiles.allocate(lengths, (points.shape[0], points.shape[0]))
    tile = kernel.against(S)

    def work(a, b):
        K[a:b, :] = tile(rows_of(points, a, b))
        K[a:b, :] /= lengths[a:b, None]
        K[a:b, :] /= lengths[None, :]

    tiles.run_tasks(work, tiles.row_blocks(points, points.shape[0]), kernel, lengths)
    return K


def is_stable(C: Array):
    """Whether solves with C amplify rounding no more than those with pivots in order.

    Row j of C^-1, times its pivot, is (-a, 1): the weights of the earlier landmarks in what
    landmark j adds. An error in their kernel values enters with the sum of |a|.
    """
    C = np.asfortranarray(as_numpy(C), dtype=np.float64)  # LAPACK's order
    trtri, trtrs = scipy.linalg.lapack.get_lapack_funcs(("trtri", "trtrs"), (C,))
    n, pivots = len(C), C.diagonal()
    # The sum is at most sqrt(n) times the length of the row, and lengths show in products with
    # random signs: nearly always this settles it, for much less than the inverse.
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(PROBES, n)).T
    products, info = trtrs(C, signs, lower=1)
    if info:
        return False
    lengths = pivots * np.sqrt((products**2).mean(axis=1))
    if PROBE_MARGIN * n**0.5 * lengths.max() <= MOST_GROWTH:
        return True
    inverse, info = trtri(C, lower=1)
    np.abs(inverse, out=inverse)
    return info == 0 and bool((inverse.sum(axis=1) * pivots).max() <= MOST_GROWTH)


def pivoted(K: Array):
    """(order, C): the rows of K that are not rounding, largest residual first, and their factor."""
    n = K.shape[0]
    tol = max(NOISE, n**0.5) * eps_of(K)
    order, C = largest_first(as_numpy(K).astype(np.float64), tol, n)
    return order, on_device_of(C, K)
