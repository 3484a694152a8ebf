"""Eigenpairs of the centred kernel matrix H K H, and scores of new points from them."""

import numbers

import scipy.linalg

from ..engine import tiles
from ..engine.arrays import eigh, eps_of, is_numpy, namespace
from ..engine.types import Array
from ..kernels.base import Kernel
from .krylov import Eigenpairs


def all_eigenpairs(kernel: Kernel, X: Array, k: int | None = None):
    """Eigenpairs of H K H by a dense solver, largest first: all, or the k leading ones."""
    K = tiles.evaluate(kernel, X)
    xp, n = namespace(K), K.shape[0]
    # Rounding is relative to the kernel's values; centring leaves less of these than of that.
    size = 0.0 if kernel.symmetric else float(xp.max(xp.abs(K)))
    row_means = xp.mean(K, axis=1)
    K -= xp.mean(K, axis=0)[None, :]
    K -= xp.mean(K, axis=1)[:, None]
    _check_symmetric(kernel, K, size)
    if isinstance(k, numbers.Integral) and k < n / 2 and is_numpy(K):
        values, U = scipy.linalg.eigh(K, subset_by_index=(n - k, n - 1), check_finite=False)
        values, U = values[::-1], U[:, ::-1]
    else:
        values, U = eigh(K)
    return Eigenpairs(values, U, None, row_means)


def _check_symmetric(kernel, K, size):
    """Centring hides some asymmetry (of rows plus columns); what is left must be rounding.

    `size` is the largest |k(x, z)| before centring.
    """
    if kernel.symmetric:
        return
    xp = namespace(K)
    worst = float(xp.max(xp.abs(K - K.T)))
    if worst > 1e4 * eps_of(K) * size:
        raise ValueError(
            f"{kernel!r} is not symmetric: centred k(x, z) and k(z, x) differ by {worst:.3g} "
            f"(the largest value is {size:.3g}). Use (K + K.T) / 2 if that is what you mean."
        )


def weights_of_scores(A: Array, row_means: Array) -> tuple[Array, Array]:
    """(W, b) with the scores k_z W + b of a new point z; A: eigenvectors of H K H / sqrt(n lambda).

    [EXACT] (25), k_z'(a - mean(a) 1) - n lambda mean(a) with a - mean(a) 1 = A: the mean of a
    follows from that of K A = n lambda a, and neither a centred kernel row nor the unstable product
    K A / (n lambda) is needed. (23) and Appendix A are the same numbers, since columns of A are
    centred.
    """
    return A, -(row_means @ A)
