"""K = F F' by Cholesky: LAPACK where K fits the memory, blocked and partial where it does not.

Everything is relative to each point's own k(x, x): the normalised matrix is factored and rows are
scaled back. While K fits: plain Cholesky first, accepted when its smallest pivot proves full rank;
K stays in the other triangle, so that a rejection costs no evaluation; then the pivoted one.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ..engine import tiles
from ..engine.arrays import cholesky, is_numpy, namespace, on_device_of, row_norms
from ..engine.memory import budget
from .base import Factor
from .indefinite import check_diagonal, check_residuals, probe
from .partial import partial_cholesky

# In units of eps, for LAPACK's pivoted Cholesky and for the blocked one (MATH.md section 7).
STORED_TOL = 64
PARTIAL_TOL = 256
FULL_RANK = 640


@dataclass
class Fit:
    """A factor with what the training points say: their coordinates and relative residuals."""

    factor: Factor
    F: object
    residuals: np.ndarray
    diagonal: object
    stored: bool


def factorize(
    kernel,
    X,
    *,
    tol=None,
    max_rank=None,
    pivots="greedy",
    rng=None,
    memory_limit=None,
    n_jobs=None,
    verbose=False,
):
    """Landmarks among X, their factor, and the coordinates of X: n x r."""
    diagonal = kernel.diagonal(X)
    check_diagonal(kernel, diagonal)
    lengths = self_lengths(kernel, diagonal)
    n = X.shape[0]
    eps = float(namespace(lengths).finfo(lengths.dtype).eps)
    limit = budget(memory_limit, lengths)
    # A kernel of unknown validity is compared with its factor afterwards: K is kept.
    copies = 1 if kernel.is_psd is True else 2
    fits = copies * n * n * lengths.dtype.itemsize <= limit
    every_pivot = max_rank is None or max_rank >= n
    if fits and every_pivot and pivots == "greedy" and _has_lapack(lengths):
        return _stored(kernel, X, diagonal, lengths, tol, eps, n_jobs, verbose)
    if fits and every_pivot and pivots == "greedy":
        fit = _plain(kernel, X, diagonal, lengths, tol, eps)
        if fit is not None:
            return fit
    capacity = max(1, limit // (n * lengths.dtype.itemsize))
    floor = PARTIAL_TOL * eps
    part = partial_cholesky(
        kernel,
        X,
        lengths,
        tol=floor if tol is None else max(tol, 4 * eps),
        max_rank=max_rank,
        pivots=pivots,
        rng=rng,
        capacity=capacity,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    check_residuals(kernel, part, eps)
    part.F *= lengths[:, None]
    factor = afresh(kernel, X, part, lengths)
    return Fit(factor, part.F, part.residuals, diagonal, stored=False)


def _has_lapack(lengths):
    return is_numpy(lengths)


def self_lengths(kernel, diagonal):
    """sqrt k(x, x), with a floor where a zero on the diagonal may be rounding."""
    xp = namespace(diagonal)
    d = xp.where(diagonal > 0, diagonal, xp.zeros_like(diagonal))
    if kernel.is_psd is not True and d.shape[0]:
        floor = float(xp.max(d)) * float(xp.finfo(d.dtype).eps)
        d = xp.where(d < floor, xp.ones_like(d) * floor, d)
    return xp.sqrt(d)


def _normalised(K, lengths):
    """K / (l l'), over K; a constant diagonal needs one pass, a diagonal of ones none."""
    inverse = 1 / np.where(lengths > 0, lengths, 1)
    if inverse.min() == inverse.max():
        if inverse[0] != 1:
            K *= inverse[0]
            K *= inverse[0]
    else:
        K *= inverse[:, None]
        K *= inverse[None, :]
    return K


def _stored(kernel, X, diagonal, lengths, tol, eps, n_jobs, verbose):
    K = tiles.evaluate(kernel, X, n_jobs=n_jobs, verbose=verbose)
    K = _normalised(K, lengths)
    unsure = kernel.is_psd is not True
    if unsure:
        K = _symmetrised(K)
        original = K.copy()
    n = len(K)
    potrf, pstrf = scipy.linalg.lapack.get_lapack_funcs(("potrf", "pstrf"), (K,))
    ones = K.diagonal().copy()
    # LAPACK sees the transpose, in Fortran order: "lower" is our upper triangle. (f2py keeps the
    # GIL; BLAS runs on all its threads.)
    A, info = potrf(K.T, lower=1, overwrite_a=1, clean=0)
    pivots_squared = A.diagonal() ** 2
    if (
        info == 0
        and pivots_squared.min() > FULL_RANK * eps
        and (tol is None or tol < FULL_RANK * eps)
    ):
        C = _lower(A)
        C *= lengths[:, None]
        factor = Factor(kernel, kernel.landmarks(X), C, np.arange(n))
        return Fit(factor, C, np.zeros(n), diagonal, stored=True)
    np.fill_diagonal(A, ones)
    noise = max(STORED_TOL, n**0.5 if n > STORED_TOL**2 else 0) * eps
    tol = noise if tol is None else max(tol, eps)
    # Validity is judged at the noise floor, whatever the tolerance; pivots nest, so that a larger
    # tolerance is a cut.
    A, piv, rank, info = pstrf(A, tol=noise if unsure else tol, lower=0, overwrite_a=1)
    piv = piv - 1
    F = np.zeros((n, rank), dtype=K.dtype)
    F[piv[:rank]] = np.triu(A[:rank, :rank]).T
    F[piv[rank:]] = A[:rank, rank:].T
    if unsure:
        probe(kernel, original, F, noise, X)
        del original
        rank = int((A.diagonal()[:rank] ** 2 > tol).sum())
        F = F[:, :rank]
    residuals = np.maximum(ones - row_norms(F, np), 0)
    residuals[piv[:rank]] = 0
    del A, K
    F *= lengths[:, None]
    C = F[piv[:rank]]
    factor = Factor(kernel, kernel.landmarks(X, piv[:rank]), C, piv[:rank])
    return Fit(factor, F, residuals, diagonal, stored=True)


def _plain(kernel, X, diagonal, lengths, tol, eps):
    """Plain Cholesky on a device: None where K is not clearly of full rank."""
    xp = namespace(lengths)
    K = tiles.evaluate(kernel, X)
    if not bool(xp.all(lengths > 0)):
        return None
    K /= lengths[:, None]
    K /= lengths[None, :]
    C = cholesky(K)
    if C is None or (tol is not None and tol >= FULL_RANK * eps):
        return None
    if float(xp.min(xp.linalg.diagonal(C))) ** 2 <= FULL_RANK * eps:
        return None
    C *= lengths[:, None]
    n = X.shape[0]
    factor = Factor(kernel, kernel.landmarks(X), C, np.arange(n))
    return Fit(factor, C, np.zeros(n), diagonal, stored=True)


def afresh(kernel, X, part, lengths):
    """The factor of k(S, S) computed anew: the blocked one has gathered rounding on its way."""
    xp = namespace(lengths)
    indices = part.indices
    where = on_device_of(indices, lengths, dtype=xp.int64)
    S = kernel.landmarks(X, indices)
    from ..kernels.points import take

    if len(indices) == 0:
        return Factor(kernel, S, part.F[:0, :], indices)
    l = xp.take(lengths, where, axis=0)
    K = tiles.allocate(lengths, (len(indices), len(indices)))
    tile, rows = kernel.against(S), take(X, indices)
    K[:, :] = tile(rows)
    K /= l[:, None]
    K /= l[None, :]
    C = cholesky(K)
    if C is None:  # singular to rounding: the factor that chose the pivots is what there is
        C = xp.tril(take(part.F, indices) / l[:, None])
    return Factor(kernel, S, C * l[:, None], indices)


def _lower(A):
    """The lower triangle in place: what is above it becomes zero."""
    for j in range(1, A.shape[1]):
        A[:j, j] = 0
    return A


def _symmetrised(K):
    size = np.abs(K).max()
    difference = np.abs(K - K.T)
    worst = difference.max()
    if worst > 1e3 * np.finfo(K.dtype).eps * max(size, np.finfo(K.dtype).tiny):
        i, j = np.unravel_index(difference.argmax(), K.shape)
        raise ValueError(
            f"the kernel is not symmetric: k(x, z) and k(z, x) differ by {worst:.3g} (relative to "
            f"their lengths) for points {i} and {j}. Use (K + K.T) / 2 if that is what you mean."
        )
    K += K.T.copy() if worst else K.T
    K *= 0.5
    return K
