"""Eigenpairs by dense solvers, and other bases of the same space: rotations of the coordinates."""

import numpy as np
from scipy.linalg import eigh_tridiagonal, get_lapack_funcs

from ..engine import Array, device, eigh, is_cpu, is_numpy, namespace, positive_part


def eigen_rotation(F: Array):
    """V with F V ordered by eigenvalue: [NPT] Theorem 2. Also the eigenvalues of F F'.

    V comes from the small matrix F'F. It is orthogonal to rounding whatever the condition of F, so
    that inner products keep all their digits; eigenvalues are accurate relative to the largest.
    """
    with np.errstate(over="ignore"):  # refused by name below
        values, V = eigh(_in_range(F.T @ F))
    return V * signs(F @ V)[None, :], positive_part(values)


def rotation_from_scatter(scatter: Array):
    """The same from sums over rows alone; signs by the vectors themselves."""
    values, V = eigh(_in_range(scatter))
    return V * signs(V)[None, :], positive_part(values)


def _in_range(scatter):
    """The matrix, whose eigenvalues are those of K: they can overflow where no value of k does."""
    xp = namespace(scatter)
    if not bool(xp.all(xp.isfinite(scatter))):
        raise ValueError(
            f"The eigenvalues of the kernel matrix are beyond the largest {scatter.dtype} number "
            f"({xp.finfo(scatter.dtype).max:.2g}). Pass rows in float64, or multiply the kernel by "
            "a small number."
        )
    return scatter


def spectrum(A: Array, k: int):
    """All eigenvalues of a symmetric matrix, largest first, and the vectors of the k largest.

    One reduction A = Q T Q' to tridiagonal form serves both, so that vectors nobody asked for cost
    nothing: a third of the full decomposition's time for n = 2000 and small k.
    """
    n = A.shape[0]
    if not is_numpy(A) or 4 * k >= n:
        values, V = eigh(A)
        return values, V[:, :k]
    sytrd, sytrd_lwork, ormqr = get_lapack_funcs(("sytrd", "sytrd_lwork", "ormqr"), (A,))
    reflectors, d, e, tau, _ = sytrd(A, lower=1, lwork=int(sytrd_lwork(n, lower=1)[0]))
    values = eigh_tridiagonal(d, e, eigvals_only=True, check_finite=False)
    _, V = eigh_tridiagonal(d, e, select="i", select_range=(n - k, n - 1), check_finite=False)
    # Q leaves the first coordinate alone; its reflectors lie below the subdiagonal.
    V[1:] = ormqr("L", "N", reflectors[1:, :-1], tau, V[1:], lwork=64 * n)[0]
    return values[::-1], V[:, ::-1]


def symmetric_rotation(F: Array):
    """Q with F Q = K^(1/2): [EXACT] (4), by the pseudo-inverse when K is singular.

    With F = U S V', the root is U S U' = F (V U'). QR first keeps U orthogonal to rounding even
    where singular values vanish in F'F.
    """
    xp, dtype = namespace(F), F.dtype
    F = xp.astype(F, xp.float64) if not is_cpu(F) else F  # as in eigh: a device's float32 is coarse
    Q, R = xp.linalg.qr(F)
    U, _, Vt = xp.linalg.svd(R, full_matrices=False)
    return xp.astype(Vt.T @ (Q @ U).T, dtype, copy=False)


def signs(scores: Array):
    """+1 or -1 for each column, so that its first entry close to the largest |entry| is positive.

    The tolerance decides ties (symmetric data have entries of equal size) the same way every time.
    """
    xp = namespace(scores)
    if scores.shape[1] == 0:
        return xp.zeros((0,), dtype=scores.dtype, device=device(scores))
    size = xp.abs(scores)
    close = size >= (1 - 1e-6) * xp.max(size, axis=0)[None, :]
    first = xp.argmax(xp.astype(close, xp.int64), axis=0)
    rows = xp.arange(scores.shape[0], device=device(scores))[:, None]
    picked = xp.sum(xp.where(rows == first[None, :], scores, xp.zeros_like(scores)), axis=0)
    return xp.where(picked < 0, -xp.ones_like(picked), xp.ones_like(picked))
