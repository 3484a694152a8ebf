"""Similarities that are no kernels: found, with a witness; and repaired on request.

Pivoted Cholesky does not see indefiniteness ([[0, 1], [1, 0]] passes): the factor is compared with
the matrix on a few random vectors, and where they differ the smallest eigenvector is the witness.
"""

import numpy as np
import scipy.linalg

from ..engine.arrays import as_numpy, namespace
from ..kernels.validity import NotPSDError

OPTIONS = ("raise", "clip", "flip", "shift")
HINT = (
    "Pass indefinite='clip' (drop negative eigenvalues), 'flip' (take absolute values) or 'shift' "
    "(add to the diagonal) to KernelMap, or use a valid kernel."
)


def check_diagonal(kernel, diagonal):
    if kernel.is_psd is True:
        return
    xp = namespace(diagonal)
    smallest = float(xp.min(diagonal))
    if smallest < 0:
        i = int(xp.argmin(diagonal))
        raise NotPSDError(
            f"{kernel!r} is not positive semi-definite on this data: k(x, x) = {smallest:.4g} for "
            f"point {i}. {HINT}",
            witness=np.eye(1, diagonal.shape[0], i)[0],
        )


def probe(kernel, K, F, tol, X):
    """Raise NotPSDError where K - F F' is more than rounding (normalised, in memory)."""
    n = len(K)
    eps = np.finfo(K.dtype).eps
    g = np.random.default_rng(0).standard_normal((n, 4)).astype(K.dtype)
    gap = np.abs(K @ g - F @ (F.T @ g)).max()
    # What truncation at tol and rounding may leave: |K - FF'| <= n tol, spread over g.
    if gap <= 8 * n * max(tol, 16 * eps):
        return
    value, vector = smallest_eigenpair(K)
    if value < -8 * n * eps * max(1.0, np.abs(K).max()):
        raise NotPSDError(
            f"{kernel!r} is not positive semi-definite on this data: the smallest eigenvalue of the "
            f"normalised kernel matrix is {value:.4g}. {HINT}",
            witness=_unnormalised(vector, kernel, X),
        )


def _unnormalised(vector, kernel, X):
    """A witness for K itself from one for the normalised matrix."""
    d = as_numpy(kernel.diagonal(X)).astype(float)
    scaled = vector / np.sqrt(np.where(d > 0, d, 1))
    return scaled / np.linalg.norm(scaled)


def check_residuals(kernel, part, eps):
    """The partial algorithm sees part of the matrix: a clearly negative residual refutes it."""
    if kernel.is_psd is True:
        return
    worst = int(part.residuals.argmin())
    value = float(part.residuals[worst])
    if value < -1e3 * max(1, part.F.shape[1]) ** 0.5 * eps:
        raise NotPSDError(
            f"{kernel!r} is not positive semi-definite on this data: point {worst} has a relative "
            f"residual of {value:.4g} after {part.F.shape[1]} landmarks (only the landmarks' columns "
            f"were tested). {HINT}",
            witness=_residual_witness(part, worst),
        )


def _residual_witness(part, worst):
    """a = (-C^-T phi, 1) on landmarks and the point: a'Ka is its residual."""
    F = as_numpy(part.F).astype(float)
    C = np.tril(F[part.indices])
    a = np.zeros(len(F))
    a[part.indices] = -scipy.linalg.solve_triangular(C, F[worst], lower=True, trans=1)
    a[worst] += 1.0
    return a / np.linalg.norm(a)


def smallest_eigenpair(K):
    values, vectors = scipy.linalg.eigh(K, subset_by_index=[0, 0])
    return float(values[0]), vectors[:, 0]


def corrected(K, how):
    """Eigenvalues made non-negative: weights W with phi(z) = W' k_z, coordinates F, and a summary.

    clip and flip change k_z as they change K (F = K W); shift adds a constant to k(x, x) alone, so
    new points keep their similarities to the training points.
    """
    values, vectors = scipy.linalg.eigh(K)
    values, vectors = values[::-1], vectors[:, ::-1]
    noise = 8 * len(K) * np.finfo(K.dtype).eps * np.abs(values).max()
    smallest = float(values[-1])
    negative = values[values < -noise]
    summary = {
        "method": how,
        "min_eigenvalue": smallest,
        "n_negative": len(negative),
        "share": float(np.abs(negative).sum() / np.abs(values).sum()),
        "shift": 0.0,
    }
    if how == "shift":
        summary["shift"] = max(0.0, -smallest)
        new = values + summary["shift"]
    else:
        new = np.abs(values) if how == "flip" else np.maximum(values, 0)
    kept = new > noise
    root = np.sqrt(new[kept])
    F = vectors[:, kept] * root
    W = vectors[:, kept] * (np.sign(values[kept]) if how == "flip" else 1.0) / root
    return F, W, new[kept], summary
