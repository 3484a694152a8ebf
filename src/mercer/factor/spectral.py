"""Other bases of the same space: rotations of the Cholesky coordinates."""

import numpy as np

from ..engine.arrays import device, eigh, is_numpy, namespace, on_device_of


def eigen_rotation(F):
    """V with F V ordered by eigenvalue: [NPT] Theorem 2. Also the eigenvalues of F F'.

    V comes from the small matrix F'F. It is orthogonal to rounding whatever the condition of F, so
    that inner products keep all their digits; eigenvalues are accurate relative to the largest.
    """
    values, V = eigh(F.T @ F)
    xp = namespace(F)
    values = xp.where(values > 0, values, xp.zeros_like(values))
    return V * signs(F @ V)[None, :], values


def rotation_from_scatter(scatter):
    """The same from sums over rows alone; signs by the vectors themselves."""
    values, V = eigh(scatter)
    xp = namespace(scatter)
    return V * signs(V)[None, :], xp.where(values > 0, values, xp.zeros_like(values))


def symmetric_rotation(F):
    """Q with F Q = K^(1/2): [EXACT] (4), by the pseudo-inverse when K is singular.

    With F = U S V', the root is U S U' = F (V U'). QR first keeps U orthogonal to rounding even
    where singular values vanish in F'F.
    """
    xp = namespace(F)
    Q, R = xp.linalg.qr(F)
    U, _, Vt = xp.linalg.svd(R, full_matrices=False)
    return Vt.T @ (Q @ U).T


def signs(scores, tolerance=1e-6):
    """+1 or -1 for each column, so that its first entry close to the largest |entry| is positive.

    The tolerance decides ties (symmetric data have entries of equal size) the same way every time.
    """
    xp = namespace(scores)
    if scores.shape[1] == 0:
        return xp.zeros((0,), dtype=scores.dtype, device=device(scores))
    size = xp.abs(scores)
    close = size >= (1 - tolerance) * xp.max(size, axis=0)[None, :]
    first = xp.argmax(xp.astype(close, xp.int64), axis=0)
    if is_numpy(scores):
        picked = scores[first, np.arange(scores.shape[1])]
    else:
        picked = xp.stack([scores[int(first[j]), j] for j in range(scores.shape[1])])
    one = on_device_of(np.ones(scores.shape[1]), scores)
    return xp.where(picked < 0, -one, one)
