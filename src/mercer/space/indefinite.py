"""Similarities that are not kernels: found, with a witness; and repaired on request.

Pivoted Cholesky does not see indefiniteness ([[0, 1], [1, 0]] passes): the factor is compared with
the matrix on a few random vectors, and where they differ the smallest eigenvector is the witness.
"""

from typing import Any, NoReturn

import numpy as np
import scipy.linalg

from ..engine import Array, as_numpy, eps_of, namespace, tiles
from ..kernels import Kernel, NotPSDError

OPTIONS = ("raise", "clip", "flip", "shift")
_ROWS = 256  # of a matrix that is looked at in blocks
_HINT = (
    "Pass indefinite='clip' (drop negative eigenvalues), 'flip' (take absolute values) or 'shift' "
    "(add to the diagonal) to KernelMap, or use a valid kernel."
)
_DISTANCES = (
    "A matrix with zeros on its diagonal and no number below zero looks like distances, not "
    "similarities: ClassicalMDS(metric='precomputed') gives coordinates for these. If they are "
    "similarities, pass indefinite='clip' to KernelMap."
)


def _remedy(diagonal: Array, K: np.ndarray) -> str:
    """The remedy where K is not a kernel: of distances, a method that takes distances."""
    distances = not as_numpy(diagonal).any() and K.min() >= 0
    return _DISTANCES if distances else _HINT


def value_eps(K: Array, eps: float) -> float:
    """The precision that kernel values carry: numbers that single precision holds exactly came
    from it, with its rounding errors. (Whole numbers are exact either way.)
    """
    single = float(np.finfo(np.float32).eps)
    if eps >= single:
        return eps
    blocks = tiles.cuts(K.shape[0], _ROWS)
    with np.errstate(over="ignore", under="ignore"):
        parts = (as_numpy(K[a:b, :]) for a, b in blocks)
        if not all(np.array_equal(k, k.astype(np.float32)) for k in parts):
            return eps
    parts = (as_numpy(K[a:b, :]) for a, b in blocks)
    return eps if all(np.array_equal(k, np.rint(k)) for k in parts) else single


def _noise_floor(n: int, eps: float) -> float:
    """How negative an eigenvalue of n valid kernel values (of size 1) may be computed."""
    return 8 * (n + 32) * eps


def check_symmetric(kernel: Kernel, K: Array, eps: float | None = None) -> bool:
    """Refuse an asymmetry beyond rounding, and say how much and where. Whether there is any."""
    eps = value_eps(K, eps_of(K)) if eps is None else eps
    xp, n = namespace(K), K.shape[0]
    worst, where, size = 0.0, (0, 0), 0.0
    for a, b in tiles.cuts(n, _ROWS):
        size = max(size, float(xp.max(xp.abs(K[a:b, :]))))
        difference = xp.abs(K[a:b, a:] - K[a:, a:b].T)
        if float(xp.max(difference)) > worst:
            worst = float(xp.max(difference))
            i, j = divmod(int(xp.argmax(difference)), n - a)
            where = (a + i, a + j)
    if worst > 1e3 * eps * size:
        i, j = where
        raise ValueError(
            f"{kernel!r} is not symmetric on this data: k(x, z) = {float(K[i, j]):.6g} and "
            f"k(z, x) = {float(K[j, i]):.6g} for points {i} and {j}, a difference of {worst:.3g}. "
            "Use (K + K.T) / 2 if that is what you mean."
        )
    return worst > 0


def symmetrised(kernel: Kernel, K: np.ndarray, eps: float) -> np.ndarray:
    """(K + K') / 2 over K, in blocks; an asymmetry beyond rounding is refused."""
    if check_symmetric(kernel, K, eps):
        for a, b in tiles.cuts(len(K), _ROWS):
            half = 0.5 * K[a:b, a:] + 0.5 * K[a:, a:b].T
            K[a:b, a:], K[a:, a:b] = half, half.T
    return K


def _refute(kernel: Kernel, why: str, witness: np.ndarray, remedy: str = _HINT) -> NoReturn:
    raise NotPSDError(
        f"{kernel!r} is not positive semi-definite on this data: {why}",
        witness=witness / np.linalg.norm(witness),
        remedy=remedy,
    )


def check_diagonal(kernel: Kernel, diagonal: Array, eps: float) -> None:
    if kernel.is_proven:
        return
    xp = namespace(diagonal)
    smallest, largest = float(xp.min(diagonal)), float(xp.max(diagonal))
    if smallest < -_noise_floor(diagonal.shape[0], eps) * max(largest, 0.0):
        i = int(xp.argmin(diagonal))
        witness = np.eye(1, diagonal.shape[0], i)[0]
        _refute(kernel, f"k(x, x) = {smallest:.4g} for point {i}.", witness)


def check_zero_diagonal(kernel: Kernel, diagonal: Any, some: np.ndarray, K: Any) -> None:
    """Refute a kernel whose every k(x, x) is zero by one other value: e_i - e_j or e_i + e_j."""
    xp = namespace(diagonal)
    if float(xp.max(diagonal)) > 0 or not K.any():
        return
    i, j = np.unravel_index(np.abs(K).argmax(), K.shape)
    witness = np.zeros(diagonal.shape[0])
    witness[some[i]], witness[some[j]] = 1.0, -np.sign(K[i, j])
    _refute(
        kernel,
        f"k(x, x) = 0 for every point, and k(x, z) = {K[i, j]:.4g} for points {some[i]} and "
        f"{some[j]}.",
        witness,
        _remedy(diagonal, K),
    )


def probe(
    kernel: Kernel, K: Any, F: Any, lengths: Any, noise: float, eps: float, size: float
) -> None:
    """Raise NotPSDError where K - F F' is more than rounding (normalised, in memory).

    `size` is the largest |k(x, z)|: values of a Gram matrix that were centred or summed elsewhere
    carry errors relative to it, so that points with a small k(x, x) are not judged by less. What a
    kernel computes itself is held to the size of each point.
    """
    n = len(K)
    g = np.random.default_rng(0).standard_normal((n, 4)).astype(K.dtype)
    with np.errstate(over="ignore"):  # a gap beyond all numbers is a gap
        gap = np.linalg.norm(K @ g - F @ (F.T @ g)) / (4 * n) ** 0.5
    # A valid remainder has a diagonal of at most the noise, so |remainder g| <= n noise.
    if gap <= n**0.5 * noise:
        return
    values, vectors = scipy.linalg.eigh(K, subset_by_index=[0, 0])
    value, vector = float(values[0]), vectors[:, 0]
    witness = vector / np.where(lengths > 0, lengths, 1)
    floor = _noise_floor(n, eps)
    least = kernel.layout.absolute_noise(floor * size) * (witness @ witness)
    if value < -floor and value < -least:
        why = f"the smallest eigenvalue of the normalised kernel matrix is {value:.4g}."
        _refute(kernel, why, witness, _remedy(K.diagonal(), K))


def check_residuals(kernel: Kernel, part: Any, diagonal: Array, eps: float) -> None:
    """The partial algorithm sees part of the matrix: a clearly negative residual refutes it."""
    if kernel.is_proven:
        return
    d = as_numpy(diagonal).astype(np.float64)
    n, worst = len(d), int(part.residuals.argmin())
    value = float(part.residuals[worst])
    small = value >= -1e3 * max(1, part.F.shape[1]) ** 0.5 * eps
    if small or value * max(d[worst], eps * d.max()) >= -_noise_floor(n, eps) * d.max():
        return
    # a = (-C^-T phi, 1) on landmarks and the point, scaled back: a'Ka is its residual.
    F, a = as_numpy(part.F).astype(float), np.zeros(n)
    C = np.tril(F[part.indices])
    a[part.indices] = -scipy.linalg.solve_triangular(C, F[worst], lower=True, trans=1)
    a[worst] += 1.0
    a /= np.sqrt(np.maximum(d, np.finfo(float).eps * d.max()))
    _refute(
        kernel,
        f"point {worst} has a relative residual of {value:.4g} after {F.shape[1]} landmarks (only "
        "the landmarks' columns were tested).",
        a,
    )


def corrected(K: np.ndarray, how: str) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Eigenvalues made non-negative: weights W with phi(z) = W' k_z, coordinates F, and a summary.

    clip and flip change k_z as they change K (F = K W); shift adds a constant to k(x, x) alone, so
    new points keep their similarities to the training points. Columns come largest first.
    """
    values, vectors = scipy.linalg.eigh(K)
    size = np.abs(values)
    noise = 8 * len(K) * np.finfo(K.dtype).eps * size.max()
    negative = values < -noise
    summary = {
        "method": how,
        "min_eigenvalue": float(values[0]),
        "n_negative": int(negative.sum()),
        "share": float(size[negative].sum() / size.sum()),
        "shift": max(0.0, -float(values[0])) if how == "shift" else 0.0,
    }
    new = size if how == "flip" else np.maximum(values + summary["shift"], 0)
    order = np.argsort(-new, kind="stable")
    order = order[new[order] > noise]
    root, U = np.sqrt(new[order]), vectors[:, order]
    signs = np.sign(values[order]) if how == "flip" else 1.0
    return U * root, U * (signs / root), summary
