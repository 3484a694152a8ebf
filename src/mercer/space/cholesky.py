"""K = F F' by Cholesky: LAPACK where K fits the memory, blocked and partial where it does not.

Everything is relative to each point's own k(x, x): the normalised matrix is factored and rows are
scaled back. While K fits: plain Cholesky first, accepted when its smallest pivot proves full rank;
K stays in the other triangle, so that a rejection costs no evaluation; then the pivoted one.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

from ..engine import (
    Array,
    MapBytes,
    Resources,
    as_numpy,
    cholesky,
    device,
    eps_of,
    evenly,
    is_cpu,
    is_numpy,
    itemsize,
    lower_triangle,
    namespace,
    on_device_of,
    put,
    row_norms,
    solve_triangular,
    tiles,
)
from ..kernels import Kernel, check_own_diagonal, remembering
from ..kernels import points as pts
from .indefinite import (
    check_diagonal,
    check_residuals,
    check_zero_diagonal,
    probe,
    symmetrised,
    value_eps,
)
from .landmarks import Landmarks, normalised_matrix, refactorized
from .partial import partial_cholesky

# In units of eps, for LAPACK's pivoted Cholesky and for the blocked one (MATH.md section 7).
_STORED_TOL = 64
_PARTIAL_TOL = 256
_FULL_RANK = 640
# Coordinates found on the way to the landmarks may differ from those that the factor gives by this
# many times what the certificate allows, and the certificate is widened by it; beyond, they are
# computed again.
_MOST_DISAGREEMENT = 4.0
# Values that tell the precision of a kernel that is not evaluated as a whole.
_SAMPLED_ROWS = 16


@dataclass
class Fit:
    """A factor with what the training points say: their coordinates and residuals rho^2."""

    factor: Landmarks
    F: Any
    residuals: np.ndarray

    @cached_property
    def misplaced(self) -> float:
        """How far rounding has moved F, at most as a rule, relative to the length of all rows.

        F C' = k(X, S) holds to eta l(x) l(s) in every entry; so F is off by that times C^-1.
        """
        factor, xp = self.factor, namespace(self.factor.C)
        if factor.rank == 0:
            return 0.0
        identity = xp.eye(factor.rank, dtype=factor.C.dtype, device=device(factor.C))
        inverse = solve_triangular(factor.C, identity) * factor.rounding_lengths()[None, :]
        length: float = float(xp.sum(row_norms(inverse, xp))) ** 0.5
        return 2 * factor.roundoff() * length


def factorize(
    kernel: Any,
    X: Any,
    *,
    tol: Any = None,
    max_rank: Any = None,
    pivots: str = "greedy",
    rng: Any = None,
    memory_limit: Any = None,
    copies: float = 2,
    squares: int = 0,
) -> Fit:
    """Landmarks among X, their factor, and the coordinates of X: n x r.

    `copies` is how many arrays of that shape the caller will hold at once, `squares` how many of
    r x r numbers.
    """
    with remembering(kernel):
        n, diagonal = X.shape[0], kernel.diagonal(X)
        unsure = not kernel.is_proven
        eps = eps_of(diagonal)
        limit = Resources(memory_limit).limit(diagonal)
        fits = matrix_fits(kernel, diagonal, n, limit, copies, squares)
        every_pivot = max_rank is None or max_rank >= n
        if fits and every_pivot and pivots == "greedy":
            if is_cpu(diagonal):
                return _stored(kernel, X, diagonal, tol, eps)
            fit = _plain(kernel, X, diagonal, tol, eps)
            if fit is not None:
                return fit
        if unsure:
            some = evenly(n, _SAMPLED_ROWS)
            values = as_numpy(kernel.against(kernel.landmarks(X, some))(pts.take(X, some)))
            eps = value_eps(values, eps)
            own = as_numpy(diagonal).astype(np.float64)[some]
            check_own_diagonal(kernel, own, values.diagonal())
            check_zero_diagonal(kernel, diagonal, some, values)
        check_diagonal(kernel, diagonal, eps)
        lengths = self_lengths(kernel, diagonal)
        part = partial_cholesky(
            kernel,
            X,
            lengths,
            initial=_relative(diagonal, lengths) if unsure else None,
            tol=default_tol(eps, tol),
            max_rank=max_rank,
            pivots=pivots,
            rng=rng,
            capacity=MapBytes.partial_rank(n, limit, itemsize(diagonal), copies, squares),
        )
        check_residuals(kernel, part, diagonal, eps)
        part.F = _scaled(part.F, lengths)
        factor, disagreement = refactorized(kernel, X, part, lengths, eps)
        if np.array_equal(factor.indices, part.indices) and disagreement <= _MOST_DISAGREEMENT:
            if factor.rank:  # what the factor knows of its landmarks is more exact
                part.F = put(part.F, part.indices, slice(None), factor.C)
            factor.eps *= max(1.0, 2 * disagreement)
            return Fit(factor, part.F, _absolute(part.residuals, lengths))
        # Another order of the landmarks, or too much rounding: coordinates by the factor.
        part.F = None
        F = factor.coordinates(X)
        residuals = _relative(diagonal, lengths) - _relative(row_norms(F, namespace(F)), lengths)
        residuals[factor.indices] = 0.0
        return Fit(factor, F, _absolute(residuals, lengths))


def default_tol(eps: float, tol: float | None) -> float:
    """The tolerance of the blocked algorithm."""
    return _PARTIAL_TOL * eps if tol is None else max(tol, 4 * eps)


def matrix_fits(
    kernel: Kernel, like: Array, n: int, limit: float, copies: float = 2, squares: int = 0
) -> bool:
    """Whether a fit may store K, for numbers like these."""
    on_cpu, proven = is_cpu(like), kernel.is_proven
    size = itemsize(like)
    needed = MapBytes.stored(n, copies, size, on_cpu=on_cpu, proven=proven, squares=squares)
    return needed <= limit


def self_lengths(kernel: Kernel, diagonal: Array) -> Any:
    """sqrt k(x, x), with a floor where a zero on the diagonal may be rounding."""
    xp = namespace(diagonal)
    # Denormal numbers have few digits: a landmark with such a k(s, s) would spoil all others.
    least = float(xp.finfo(diagonal.dtype).smallest_normal)
    d = xp.where(diagonal >= least, diagonal, xp.zeros_like(diagonal))
    if not kernel.is_proven and d.shape[0]:
        floor = float(xp.max(d)) * eps_of(d)
        d = xp.where(d < floor, xp.ones_like(d) * floor, d)
    return xp.sqrt(d)


def _relative(diagonal: Array, lengths: Array) -> Any:
    d, l = (as_numpy(v).astype(np.float64) for v in (diagonal, lengths))
    return d / np.where(l > 0, l, 1.0) ** 2


def _absolute(residuals: np.ndarray, lengths: Array) -> Any:
    return np.maximum(residuals, 0) * as_numpy(lengths).astype(np.float64) ** 2


def _scaled(F: Any, lengths: Any) -> Any:
    """Normalised coordinates at their own lengths, over F; lengths of one need no pass."""
    if not bool(namespace(lengths).all(lengths == 1)):
        F *= lengths[:, None]
    return F


def _stored(kernel: Kernel, X: Array, diagonal: Array, tol: float | None, eps: float) -> Fit:
    """LAPACK on the whole matrix; arrays of other backends lend it their memory."""
    K = np.require(as_numpy(tiles.evaluate(kernel, X)), None, "W")
    unsure = not kernel.is_proven
    if unsure:
        eps = value_eps(K, eps)
        check_own_diagonal(kernel, as_numpy(diagonal).astype(np.float64), K.diagonal())
        K = symmetrised(kernel, K, eps)
        size = float(np.abs(K).max())
    check_diagonal(kernel, diagonal, eps)
    lengths = as_numpy(self_lengths(kernel, diagonal))
    if unsure and lengths.max() == 0:
        lengths = np.full_like(lengths, size**0.5)
    inverse = 1 / np.where(lengths > 0, lengths, 1)
    if inverse.min() != 1 or inverse.max() != 1:  # a diagonal of ones needs no pass
        K *= inverse[:, None]
        K *= inverse[None, :]
    if not unsure:  # exactly, or rounding chooses the pivots
        np.fill_diagonal(K, np.where(lengths > 0, 1.0, 0.0))
    original = K.copy() if unsure else None
    n = len(K)
    pstrf = scipy.linalg.lapack.get_lapack_funcs("pstrf", (K,))
    ones = K.diagonal().copy()
    A = cholesky(K, in_place=True)  # in the upper triangle of K
    least = _FULL_RANK * eps
    if A is not None and (A.diagonal() ** 2).min() > least and (tol is None or tol < least):
        C = _scaled(lower_triangle(A), lengths)
        C = C if is_numpy(diagonal) else on_device_of(C, diagonal)
        return _of_full_rank(kernel, X, C, eps)
    A = K.T
    np.fill_diagonal(A, ones)
    noise = max(_STORED_TOL, n**0.5 if n > _STORED_TOL**2 else 0) * eps
    tol = noise if tol is None else max(tol, eps)
    # Validity is judged at the noise floor, whatever the tolerance; pivots nest, so that a larger
    # tolerance is a cut.
    A, piv, rank, _ = pstrf(A, tol=min(noise, tol) if unsure else tol, lower=0, overwrite_a=1)
    piv = piv - 1
    # pstrf counts a first pivot however small it is.
    rank = rank if ones.max() > 0 else 0
    F = np.zeros((n, rank), dtype=K.dtype)
    F[piv[:rank]] = lower_triangle(A[:rank, :rank].T)
    F[piv[rank:]] = A[:rank, rank:].T
    if unsure:
        probe(kernel, original, F, lengths, noise, eps, size)
        del original
        rank = int((A.diagonal()[:rank] ** 2 > tol).sum())
        F = F[:, :rank]
    residuals = ones - row_norms(F, np)
    residuals[piv[:rank]] = 0
    del A, K
    F = _scaled(F, lengths)
    F = F if is_numpy(diagonal) else on_device_of(F, diagonal)
    C = pts.take(F, piv[:rank])
    factor = Landmarks(kernel, kernel.landmarks(X, piv[:rank]), C, piv[:rank], eps)
    return Fit(factor, F, _absolute(residuals, lengths))


def _plain(kernel: Kernel, X: Array, diagonal: Array, tol: float | None, eps: float) -> Fit | None:
    """Plain Cholesky on a device: None where K is not clearly of full rank."""
    xp, lengths = namespace(diagonal), self_lengths(kernel, diagonal)
    if not bool(xp.all(diagonal > 0)) or (tol is not None and tol >= _FULL_RANK * eps):
        return None
    C = cholesky(normalised_matrix(kernel, None, X, lengths))
    if C is None or float(xp.min(xp.linalg.diagonal(C))) ** 2 <= _FULL_RANK * eps:
        return None
    return _of_full_rank(kernel, X, _scaled(C, lengths), eps)


def _of_full_rank(kernel: Kernel, X: Array, C: Array, eps: float) -> Fit:
    every = np.arange(X.shape[0])
    factor = Landmarks(kernel, kernel.landmarks(X, every), C, every, eps)
    return Fit(factor, C, np.zeros(len(every)))
