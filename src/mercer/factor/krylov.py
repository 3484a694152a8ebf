"""Leading eigenpairs of the centred kernel matrix H K H, each with the norm of its residual.

Block Lanczos with full reorthogonalisation: the basis is multiplied by K a block at a time, and
the projected matrix gives Ritz pairs whose residuals are known without another product. K is
stored where it fits the memory, and evaluated tile by tile where it does not.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine import tiles
from ..engine.arrays import itemsize, namespace, on_device_of
from ..engine.memory import MemoryLimitError, budget, readable

# Measured on MNIST, 5000 and 10000 digits, 50 pairs (make bench, rows "krylov"): wider blocks
# make fewer passes over K but larger bases; checking earlier only costs small eigenproblems.
BLOCK = 16
# The first Ritz check, in multiples of the number of wanted pairs.
FIRST_CHECK = 3.0


@dataclass
class Eigenpairs:
    """Eigenvalues (largest first), orthonormal vectors, and |A v - value v| for each."""

    values: Any
    vectors: Any
    residuals: Any
    row_means: Any = None  # K1/n, which the scores of new points need: MATH.md section 3


def leading_eigenpairs(
    kernel,
    X,
    k,
    *,
    center=True,
    tol=1e-7,
    random_state=None,
    memory_limit=None,
    n_jobs=None,
    verbose=False,
):
    """The k largest eigenvalues of H K H (of K with center=False) and their vectors.

    Parameters
    ----------
    tol : float
        Largest residual norm, relative to the largest eigenvalue. An eigenvalue's error is of the
        order of its residual squared over the gap.
    """
    product = _product(kernel, X, memory_limit, n_jobs, verbose)
    like = tiles.allocate(X, (1, 1))
    pairs = krylov(
        product,
        X.shape[0],
        k,
        like,
        center=center,
        tol=tol,
        random_state=random_state,
        verbose=verbose,
    )
    ones = on_device_of(np.ones((X.shape[0], 1)), like)
    pairs.row_means = product(ones)[:, 0] / X.shape[0]
    return pairs


def _product(kernel, X, memory_limit, n_jobs, verbose):
    """W -> K W, with K stored or evaluated."""
    n, size = X.shape[0], itemsize(tiles.allocate(X, (1, 1)))
    limit = budget(memory_limit, X)
    if n * n * size <= limit:
        K = tiles.evaluate(kernel, X, n_jobs=n_jobs, verbose=verbose)
        return lambda W: K @ W
    if 40 * BLOCK * n * size > limit:
        needed = readable(40 * BLOCK * n * size)
        raise MemoryLimitError(
            f"a basis of {40 * BLOCK} vectors for {n} points takes {needed}, more than "
            f"memory_limit ({readable(limit)}). Use KernelMap(kernel, max_rank=...) as the kernel, "
            "or a larger memory_limit."
        )
    S = kernel.landmarks(X)
    return lambda W: tiles.multiply(kernel, X, S, W, n_jobs=n_jobs)


def krylov(product, n, k, like, *, center=True, tol=1e-7, random_state=None, verbose=False):
    """Leading eigenpairs of the symmetric `product` on n-vectors, centred on both sides."""
    xp = namespace(like)
    k = min(k, n)
    most = min(n, max(20 * k, 400))
    width = max(BLOCK, min(64, k // 4))
    rng = np.random.default_rng(random_state if random_state is not None else 0)
    block = on_device_of(rng.standard_normal((n, width)), like)
    basis = tiles.allocate(like, (most + width, n))  # one row a basis vector
    T = np.zeros((most + width, most + width))
    check, m = max(int(FIRST_CHECK * k), 4 * width), 0
    block, _ = _orthonormal(_centred(block, center), None, xp, center)
    size = 0.0  # of A, as seen so far
    with tiles.progress_bar(verbose, "eigenpairs") as progress:
        while True:
            b = block.shape[1]
            basis[m : m + b, :] = block.T
            image = _centred(product(block), center)
            m += b
            Q = basis[:m, :]
            coefficients = Q @ image
            T[:m, m - b : m] = _host(coefficients)
            T[m - b : m, :m] = T[:m, m - b : m].T
            rest = image - Q.T @ coefficients
            rest -= Q.T @ (Q @ rest)
            last = b
            size = max(size, float(xp.sum(image * image)) / max(b, 1))
            # Where the space is invariant the rest is the rounding of this product, no direction.
            block, gram = _orthonormal(rest, Q, xp, center, 16 * _eps(image) * (m * size) ** 0.5)
            exhausted = block.shape[1] == 0 or m >= most
            progress.update(b)
            if m >= check or exhausted:
                values, S = np.linalg.eigh(T[:m, :m])
                values, S = values[::-1][:k], S[:, ::-1][:, :k]
                tail = S[m - last : m]
                residuals = np.sqrt(np.maximum(np.einsum("ij,ik,kj->j", tail, gram, tail), 0))
                if exhausted or residuals.max() <= tol * abs(values[0]):
                    break
                check = m + width
    vectors = Q.T @ on_device_of(np.ascontiguousarray(S), like)
    return Eigenpairs(on_device_of(values.copy(), like), vectors, on_device_of(residuals, like))


def _centred(W, center):
    return W - namespace(W).mean(W, axis=0)[None, :] if center else W


def _orthonormal(W, Q, xp, center, noise=0.0):
    """An orthonormal basis of W's columns (those above rounding and noise), and W'W.

    By QR and the singular values of R: W'W alone would not tell small directions from rounding.
    """
    gram = _host(W.T @ W)
    if not W.shape[1]:
        return W, gram
    U, R = xp.linalg.qr(W)
    left, sizes, _ = np.linalg.svd(_host(R))
    kept = sizes > max(sizes[0] * _eps(W) * len(sizes), noise, np.finfo(float).tiny)
    W = U @ on_device_of(np.ascontiguousarray(left[:, kept]), W)
    if Q is not None and W.shape[1]:
        # Once more, since what was left of W may have been small and has now grown, with the
        # rounding in it (along Q and along 1); W stays nearly orthonormal.
        W = _centred(W, center)
        W = W - Q.T @ (Q @ W)
        values, V = np.linalg.eigh(_host(W.T @ W))
        W = W @ on_device_of((V / np.sqrt(values)) @ V.T, W)
    return W, gram


def _eps(A):
    return float(np.finfo(np.float32 if "32" in str(A.dtype) else np.float64).eps)


def _host(A):
    from ..engine.arrays import as_numpy

    return as_numpy(A).astype(np.float64)
