"""Eigenpairs of the centred kernel matrix H K H, and scores of new points from them."""

import numbers

import scipy.linalg

from ..engine import tiles
from ..engine.arrays import eigh, eps_of, is_numpy, namespace
from ..engine.types import Array
from ..kernels.base import Kernel
from .krylov import Eigenpairs


def all_eigenpairs(kernel: Kernel, X: Array, k=None):
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


# --- scores of new points, k_z W + b; columns of A: eigenvectors of H K H over sqrt(n lambda) ----


def _combined(A, values, row_means):
    """[EXACT] (25): k_z'(a - mean(a) 1) - n lambda mean(a), where a - mean(a) 1 = A.

    The mean of a follows from the mean of K A = n lambda a: neither a centred kernel row nor the
    unstable product K A / (n lambda) is needed.
    """
    return A, -(row_means @ A)


def _dual(A, values, row_means):
    """[EXACT] (23): (k_z - K1/n)' H a with K H a = n lambda a and H a = A."""
    W = A - namespace(A).mean(A, axis=0)[None, :]
    return W, -(row_means @ W)


def _classical(A, values, row_means):
    """[EXACT] Appendix A: A' k_c(z) with k_c(z) = k_z - 1'k_z/n - K1/n + 1'K1/n^2, term by term."""
    xp = namespace(A)
    sums = xp.sum(A, axis=0)
    W = A - sums[None, :] / A.shape[0]
    return W, -(row_means @ A) + xp.mean(row_means) * sums


FORMS = {"combined": _combined, "dual": _dual, "classical": _classical}
