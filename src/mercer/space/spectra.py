"""Eigenpairs of the centred kernel matrix H K H, all of them or the leading ones; and other bases
of the same space: rotations of the coordinates.

The leading pairs are found by block Lanczos with full reorthogonalisation. The basis is multiplied
by K a block at a time, and the projected matrix gives Ritz pairs whose residuals are known without
another product. K is stored where it fits the memory, and evaluated tile by tile where it does not.
"""

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import eigh_tridiagonal, get_lapack_funcs

from ..engine import (
    Array,
    MatrixProduct,
    MemoryLimitError,
    as_numpy,
    coordinates_bytes,
    current,
    device,
    eigh,
    eps_of,
    is_cpu,
    is_numpy,
    itemsize,
    largest_power,
    matrix_bytes,
    namespace,
    on_device_of,
    positive_part,
    readable,
    tiles,
)
from ..kernels import Kernel

# Measured on MNIST, 50 pairs (make bench, rows "pca_5000" and "pca_10000"): wider blocks make fewer
# passes over K but larger bases; checking earlier only costs small eigenproblems.
_BLOCK = 16
# Vectors of the basis that there must be room for.
_LEAST_BASIS = 40 * _BLOCK
# The first Ritz check, in multiples of the number of wanted pairs.
_FIRST_CHECK = 3.0


def eigen_rotation(F: Array) -> tuple[Any, Any]:
    """V with F V ordered by eigenvalue: [NPT] Theorem 2. Also the eigenvalues of F F'.

    V comes from the small matrix F'F. It is orthogonal to rounding whatever the condition of F, so
    that inner products keep all their digits; eigenvalues are accurate relative to the largest.
    """
    with np.errstate(over="ignore"):  # refused by name below
        values, V = eigh(_in_range(F.T @ F))
    return V * signs(F @ V)[None, :], positive_part(values)


def rotation_from_scatter(scatter: Array) -> tuple[Any, Any]:
    """The same from sums over rows alone; signs by the vectors themselves."""
    values, V = eigh(_in_range(scatter))
    return V * signs(V)[None, :], positive_part(values)


def _in_range(scatter: Array) -> Array:
    """The matrix, whose eigenvalues are those of K: they can overflow where no value of k does."""
    xp = namespace(scatter)
    if not bool(xp.all(xp.isfinite(scatter))):
        raise ValueError(
            f"The eigenvalues of the kernel matrix are beyond the largest {scatter.dtype} number "
            f"({xp.finfo(scatter.dtype).max:.2g}). Pass rows in float64, or multiply the kernel by "
            "a small number."
        )
    return scatter


def spectrum(A: Array, k: int) -> tuple[Any, Any]:
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


def symmetric_rotation(F: Array) -> Any:
    """Q with F Q = K^(1/2): [EXACT] (4), by the pseudo-inverse when K is singular.

    With F = U S V', the root is U S U' = F (V U'). QR first keeps U orthogonal to rounding even
    where singular values vanish in F'F.
    """
    xp, dtype = namespace(F), F.dtype
    F = xp.astype(F, xp.float64) if not is_cpu(F) else F  # as in eigh: a device's float32 is coarse
    Q, R = xp.linalg.qr(F)
    U, _, Vt = xp.linalg.svd(R, full_matrices=False)
    return xp.astype(Vt.T @ (Q @ U).T, dtype, copy=False)


def signs(scores: Array) -> Any:
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


# --- eigenpairs of H K H --------------------------------------------------------------------------


@dataclass
class Eigenpairs:
    """Eigenvalues (largest first), orthonormal vectors, and |A v - value v| for each."""

    values: Any
    vectors: Any
    residuals: Any
    row_means: Any = None  # K1/n, which the scores of new points need: MATH.md section 3

    @classmethod
    def leading(
        cls,
        kernel: Kernel,
        X: Array,
        k: int,
        *,
        tol: float | None = 1e-7,
        random_state: Any = None,
    ) -> "Eigenpairs":
        """The k largest eigenvalues of H K H and their vectors.

        tol : largest residual norm, relative to the largest eigenvalue. An eigenvalue's error is of
            the order of its residual squared over the gap.
        """
        product = _product(kernel, X)
        n, like = X.shape[0], tiles.allocate(X, (1, 1))
        k = min(k, n)
        # One product serves two: row means of K, and a start that has seen K once.
        seen = product(_start(n, k, like, random_state, last=1.0))
        pairs = _krylov(product, n, k, like, tol=tol, start=seen[:-1, :])
        pairs.row_means = seen[-1, :] / n
        return pairs

    @classmethod
    def dense(cls, kernel: Kernel, X: Array, k: int | None = None) -> "Eigenpairs":
        """Eigenpairs of H K H by a dense solver, largest first: all, or the k leading ones."""
        K = tiles.evaluate(kernel, X)
        xp, n = namespace(K), K.shape[0]
        # Rounding is relative to the kernel's values; centring leaves less of these than of that.
        size = 0.0 if kernel.symmetric else float(xp.max(xp.abs(K)))
        row_means = xp.mean(K, axis=1)
        K -= xp.mean(K, axis=0)[None, :]
        K -= xp.mean(K, axis=1)[:, None]
        # Centring hides some asymmetry (of rows plus columns); what is left must be rounding.
        worst = 0.0 if kernel.symmetric else float(xp.max(xp.abs(K - K.T)))
        if worst > 1e4 * eps_of(K) * size:
            raise ValueError(
                f"{kernel!r} is not symmetric: centred k(x, z) and k(z, x) differ by {worst:.3g} "
                f"(the largest value is {size:.3g}). Use (K + K.T) / 2 if that is what you mean."
            )
        if isinstance(k, numbers.Integral) and k < n / 2 and is_numpy(K):
            values, U = scipy.linalg.eigh(K, subset_by_index=(n - k, n - 1), check_finite=False)
            values, U = values[::-1], U[:, ::-1]
        else:
            values, U = eigh(K)
        return cls(values, U, None, row_means)


def _start(n: int, k: int, like: Array, random_state: Any, last: float | None = None) -> Any:
    """Random rows to begin with, as many as a block has, and a constant one where asked."""
    rng = np.random.default_rng(random_state if random_state is not None else 0)
    rows = rng.standard_normal((min(n, max(_BLOCK, min(64, k // 4))), n))
    return on_device_of(rows if last is None else np.vstack([rows, np.full((1, n), last)]), like)


def _product(kernel: Kernel, X: Array) -> Callable[[Any], Any]:
    """V -> V K for rows V, with K stored or evaluated."""
    n, size = X.shape[0], itemsize(tiles.allocate(X, (1, 1)))
    limit = current().limit(X)
    if matrix_bytes(n, size=size) <= limit:
        K = tiles.evaluate(kernel, X)
        return lambda V: V @ K  # a few rows on the left: BLAS then reads K once, K V' takes 1.5 x
    needed = coordinates_bytes(n, _LEAST_BASIS, size=size)
    if needed > limit:
        raise MemoryLimitError(
            f"a basis of {_LEAST_BASIS} vectors for {n} points takes {readable(needed)}, more than "
            f"memory_limit ({readable(limit)}). Use KernelMap(kernel, max_rank=...) as the kernel, "
            "or a larger memory_limit."
        )
    if is_numpy(X) and X.dtype == np.float64:
        product = MatrixProduct.of(kernel, X)  # half of the tiles serve both halves
        return lambda V: product(V.T).T
    if not is_cpu(X):  # fused on a GPU where the kernel has a form, in the data's precision
        made = MatrixProduct.of if "64" in str(X.dtype) else MatrixProduct.quick
        fused = made(kernel, X)
        if fused is not None:
            return lambda V: namespace(V).astype(fused(V.T).T, V.dtype, copy=False)
    S = kernel.landmarks(X)
    return lambda V: tiles.multiply(kernel, X, S, V.T).T


def _krylov(
    product: Any, n: int, k: int, like: Any, *, tol: Any = 1e-7, start: Array | None = None
) -> Eigenpairs:
    """Leading eigenpairs of a symmetric matrix A, centred on both sides; `product` is V -> V A.

    Vectors are rows throughout: products with the basis then run along the memory.

    A block of b random vectors finds at most b copies of an eigenvalue. Where b or more of the
    values found are equal, a fresh random block joins the basis, for as many steps as the others
    took: until nothing above the smallest wanted value is new.
    """
    xp = namespace(like)
    k = min(k, n)
    most = min(n, max(20 * k, 400))
    block = _start(n, k, like, None) if start is None else start / largest_power(start)
    width = block.shape[0]
    basis = tiles.allocate(like, (most + width, n))
    T = np.zeros((most + width, most + width))
    check, m = max(int(_FIRST_CHECK * k), 4 * width), 0
    block, _ = _orthonormal(_centred(block), basis[:0, :])
    image = product(block)
    unit = largest_power(image)  # of A: squares of its images must neither vanish nor overflow
    size = 0.0  # of A in this unit, as seen so far
    before = None  # of the last check: dimension and largest residual
    known, steps, fresh_blocks = None, 0, 0  # values at the last fresh block, and steps since then
    with tiles.progress_bar("eigenpairs") as progress:
        while True:
            b = block.shape[0]
            basis, T = _with_room(basis, T, m, m + b)
            basis[m : m + b, :] = block
            image = _centred((image if m == 0 else product(block)) / unit)
            m += b
            Q = basis[:m, :]
            coefficients = image @ Q.T
            T[m - b : m, :m] = _host(coefficients)
            T[:m, m - b : m] = T[m - b : m, :m].T
            rest = image - coefficients @ Q
            last = b
            size = max(size, float(xp.sum(image * image)) / max(b, 1))
            # In an invariant space the rest is the rounding of this product, not a direction.
            noise = 16 * eps_of(image) * (m * size) ** 0.5
            block, gram = _orthonormal(rest, Q, noise, size**0.5)
            if not block.shape[0] and m < k:  # the rank is less than k: any other directions
                block = _fresh(n, k, like, m, Q)
            exhausted = block.shape[0] == 0 or m >= most
            steps += 1
            progress.update(b)
            if m < check and not exhausted:
                continue
            values, S = np.linalg.eigh(T[:m, :m])
            values, S = values[::-1][:k], S[:, ::-1][:, :k]
            tail = S[m - last : m]
            residuals = np.sqrt(np.maximum(np.einsum("ij,ik,kj->j", tail, gram, tail), 0))
            worst, wanted = residuals.max(initial=0.0), tol * np.abs(values[:1]).sum()
            if worst > wanted and not exhausted:
                check, before = _next_check(m, worst, wanted, before, width), (m, worst)
                continue
            unchanged = known is not None and np.all(np.abs(values - known) <= wanted)
            if unchanged or not _may_hide_copies(values, width + fresh_blocks * width, wanted):
                break
            if 2 * m >= n:  # as much work as all eigenvalues, which lose none
                return _all(product, n, k, like)
            fresh = _fresh(n, k, like, m + 1, xp.concat([Q, block], axis=0))
            if not fresh.shape[0]:  # the basis is the whole space
                break
            # More steps than the blocks before took: from a random start they found what there was.
            block = xp.concat([block, fresh], axis=0)
            check = m + (steps + 1) * block.shape[0]
            most = min(n, check + 2 * block.shape[0])
            known, steps, fresh_blocks, before = values, 0, fresh_blocks + 1, None
    vectors = Q.T @ on_device_of(np.ascontiguousarray(S), like)
    values, residuals = (on_device_of(unit * v, like) for v in (values, residuals))
    return Eigenpairs(values, vectors, residuals)


def _all(product: Callable[[Any], Any], n: int, k: int, like: Array) -> Eigenpairs:
    """The same from all eigenvalues, by a dense solver."""
    A = _host(_centred(product(_centred(on_device_of(np.eye(n), like)))))
    unit = largest_power(A)
    A = A / unit
    values, U = np.linalg.eigh((A + A.T) / 2)
    values, U = values[::-1][:k], U[:, ::-1][:, :k]
    residuals = np.linalg.norm(A @ U - U * values, axis=0)
    found = (unit * values, np.ascontiguousarray(U), unit * residuals)
    return Eigenpairs(*(on_device_of(v, like) for v in found))


def _may_hide_copies(values: np.ndarray, found: int, wanted: float) -> bool:
    """Whether as many values are equal as copies of one eigenvalue can have been found."""
    if len(values) < found:
        return False
    close = values[: len(values) - found + 1] - values[found - 1 :]
    return bool(np.any(close <= np.maximum(1e-3 * np.abs(values[found - 1 :]), 10 * wanted)))


def _fresh(n: int, k: int, like: Array, seed: int, Q: Array) -> Any:
    """Random directions that are orthogonal to Q's rows."""
    V = _centred(_start(n, k, like, seed))
    for _ in range(2):
        V = V - (V @ Q.T) @ Q
    return _orthonormal(V, Q, 1e-6 * n**0.5, n**0.5)[0]


def _with_room(basis: Any, T: np.ndarray, m: int, wanted: int) -> tuple[Any, np.ndarray]:
    """The basis and its projected matrix with room for more vectors."""
    if wanted <= T.shape[0]:
        return basis, T
    room = min(2 * wanted, basis.shape[1] + wanted - m)
    larger, wider = tiles.allocate(basis, (room, basis.shape[1])), np.zeros((room, room))
    larger[:m, :], wider[:m, :m] = basis[:m, :], T[:m, :m]
    return larger, wider


def _next_check(
    m: int, worst: float, wanted: float, before: tuple[int, float] | None, width: int
) -> int:
    """After two thirds of the blocks that residuals need, if they go on falling as they did."""
    if before is None or not 0 < worst < before[1]:
        return m + width
    fall = np.log(before[1] / worst) / (m - before[0])  # a dimension
    return m + width * max(1, int(0.67 * np.log(worst / wanted) / (fall * width)))


def _centred(V: Array) -> Any:
    return V - namespace(V).mean(V, axis=1)[:, None]


def _orthonormal(V: Any, Q: Array, noise: float = 0.0, size: float = 0.0) -> tuple[Any, np.ndarray]:
    """An orthonormal basis of V's rows (those above rounding and noise), orthogonal to Q, and V V'.

    `size` is that of the rows from which Q was taken off to give V.
    """
    gram = _host(V @ V.T)
    if not V.shape[0]:
        return V, gram
    squares, U = np.linalg.eigh(gram)
    # V V' tells all directions from rounding, twice over: scale by it, and once more below.
    if squares[0] > max(1e3 * eps_of(V) * squares[-1], (1e-6 * size) ** 2, noise**2):
        V = on_device_of(U.T / np.sqrt(squares)[:, None], V) @ V
    else:  # by QR and the singular values of R, which tell small directions from rounding
        V = V - (V @ Q.T) @ Q
        U, R = namespace(V).linalg.qr(V.T)
        left, sizes, _ = np.linalg.svd(_host(R))
        kept = sizes > max(sizes[0] * eps_of(V) * len(sizes), noise, np.finfo(float).tiny)
        V = on_device_of(np.ascontiguousarray(left[:, kept].T), V) @ U.T
    if V.shape[0]:
        # Once more, since what was left of V may have been small and has now grown, with the
        # rounding in it (along Q and along 1); V stays nearly orthonormal.
        V = _centred(V)
        V = V - (V @ Q.T) @ Q
        squares, U = np.linalg.eigh(_host(V @ V.T))
        if squares[0] > 0.5:
            V = on_device_of((U / np.sqrt(squares)) @ U.T, V) @ V
        else:  # some were rounding, which Q or the centring has taken off
            kept = squares > 0.5
            V = on_device_of((U[:, kept] / np.sqrt(squares[kept])).T, V) @ V
    return V, gram


def _host(A: Array) -> np.ndarray:
    return as_numpy(A).astype(np.float64)
