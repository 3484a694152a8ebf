"""(A + alpha N) X = B by Cholesky factors, N a diagonal: the equations of every direct solution."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from ..engine import (
    Array,
    as_numpy,
    cholesky,
    device,
    eps_of,
    is_numpy,
    namespace,
    on_device_of,
    put,
    row_norms,
    solve_triangular,
    tiles,
)
from ..kernels import points as pts
from .solver import CannotSolve

# Ten times the smallest alpha that works is tried next.
STEP = 10.0
# Rows of a panel of a substitution, and values of an inverse held at once.
_PANEL = 1024
_HELD_VALUES = 1 << 23
# Added to k(S, S), relative to its mean diagonal: enough for smooth kernels, whose matrices are
# singular to rounding, and far below any penalty that leave-one-out can tell from zero.
_FIRST_JITTER = 1e-12


def by_penalty(
    alphas: np.ndarray, B: Any, solve: Callable[[float, Any], tuple[Any, ...]]
) -> tuple[Any, ...]:
    """Arrays with one column (or number) per column of B, from one call for each penalty.

    solve : from a penalty, and the columns of B that have it, to arrays
    """
    columns: dict[int, list[Any]] = {}
    for alpha in map(float, np.unique(alphas)):
        mine = np.flatnonzero(alphas == alpha)
        if len(mine) == B.shape[1]:
            return solve(alpha, B)
        parts = solve(alpha, pts.take(B.T, mine).T)
        columns |= {int(j): [part[..., i] for part in parts] for i, j in enumerate(mine)}
    ordered = zip(*(columns[j] for j in range(B.shape[1])))
    return tuple(namespace(B).stack(list(part), axis=-1) for part in ordered)


def solve_regularized(
    A: Any,
    B: Any,
    alphas: np.ndarray,
    noise: Any = None,
    *,
    in_place: bool = False,
    keep: bool = True,
) -> tuple[Any, Any, dict[float, Any]]:
    """((A + alpha N)^-1 B, residuals, factors by alpha) with one alpha per column of B.

    N is a diagonal, None for the identity. `in_place`: the factor overwrites A, for one alpha, and
    residuals are None. `keep`: whether factors stay, each of the size of A.
    """
    factors: dict[float, Any] = {}

    def solved(alpha: float, part: Any) -> tuple[Any, Any]:
        C, X, residual = _solution(A, part, alpha, noise, in_place)
        factors.update({alpha: C} if keep else {})
        if X is None:
            at_least = "" if in_place else f" of at least {_safe(A, part, alpha, noise):.1g}"
            raise CannotSolve(
                f"alpha={alpha:g} is too small for this kernel: the equations are singular to "
                f"rounding, or indefinite. Use an alpha{at_least}."
            )
        return X, residual

    X, residuals = by_penalty(alphas, B, solved)
    return X, residuals, factors


def factor_shifted(A: Any, alpha: float, noise: Any = None, *, in_place: bool = False) -> Any:
    """The Cholesky factor of A + alpha N, or None where it is singular to rounding."""
    xp, diagonal = namespace(A), np.arange(A.shape[0])
    own = xp.linalg.diagonal(A)
    shifted = own + alpha * (xp.ones_like(own) if noise is None else noise)
    A = put(A if in_place else A + 0, diagonal, diagonal, shifted)
    return cholesky(A, in_place=True, clean=not in_place)  # A is a copy where it must be


def jittered_factor(K: Any, shift: float = 0.0) -> Any:
    """C with C C' = K + shift I, shifted by as little as makes it positive definite to rounding."""
    jitter = _FIRST_JITTER * (float(namespace(K).linalg.trace(K)) / K.shape[0] + shift)
    while (C := factor_shifted(K, shift + jitter)) is None:
        jitter *= 100
    return C


def solve_factored(C: Any, B: Any) -> Any:
    """(C C')^-1 B."""
    return solve_triangular(C, solve_triangular(C, B), transpose=True)


def without_mean(inverse: np.ndarray, u: np.ndarray, total: float) -> np.ndarray:
    """The diagonal of A^-1 - u u' / (1'u)."""
    return np.maximum(inverse - u**2 / total, 1e-3 * inverse)


def inverse_diagonal(C: Any, rows: np.ndarray) -> np.ndarray:
    """(A^-1)_jj = |C^-1 e_j|^2 for some rows, a block of right-hand sides at a time."""
    xp, n = namespace(C), C.shape[0]
    first = int(rows.min()) if len(rows) else 0  # C^-1 e_j is zero above j
    if (n - first) ** 2 <= 2 * _HELD_VALUES:
        C, rows, n = C[first:, first:], rows - first, n - first
    if 3 * len(rows) >= n and n * n <= 2 * _HELD_VALUES:
        return as_numpy(row_norms(_inverse_of_triangle(C).T, xp)).take(rows)
    found, block, order = np.empty(len(rows)), max(64, _HELD_VALUES // n), np.argsort(rows)
    for a in range(0, len(rows), block):
        some = order[a : a + block]
        first = int(rows[some[0]])
        E = xp.zeros((len(some), n - first), dtype=C.dtype, device=device(C))
        columns = on_device_of(rows[some] - first, C, dtype=xp.int64)
        E = put(E, np.arange(len(some)), columns, xp.ones_like(E[:, 0]))
        found[some] = as_numpy(row_norms(_substituted(C, first, E), xp))
    return found


def _substituted(C: Array, first: int, E: Any) -> Any:
    """E C^-T for rows E that are zero before the place `first`; in place for NumPy.

    Panel by panel, of which LAPACK gets a copy.
    """
    if not is_numpy(C):
        return solve_triangular(C[first:, first:], E.T).T
    for a, b in tiles.cuts(E.shape[1], min(_PANEL, max(1, len(C) // 4))):
        rows, panel = slice(first + b, None), slice(first + a, first + b)
        E[:, a:b] = solve_triangular(C[panel, panel], E[:, a:b].T).T
        E[:, b:] -= E[:, a:b] @ C[rows, panel].T
    return E


def left_by(Phi: Array, C: Array, alpha: float, weights: np.ndarray, in_mean: float) -> np.ndarray:
    """1 - leverage of coordinates Phi with these weights, where C C' = Phi'Phi + alpha I.

    in_mean : the leverage that every row has in the mean, for a weight of one
    """
    xp = namespace(Phi)
    leverage = weights * (as_numpy(row_norms(solve_triangular(C, Phi.T).T, xp)) + in_mean)
    # At least what alpha alone leaves: where the difference is rounding.
    least = alpha / (weights * as_numpy(row_norms(Phi, xp)) + alpha)
    left: np.ndarray = np.maximum(1 - leverage, 1e-3 * least)
    return left


def _inverse_of_triangle(C: Array) -> Any:
    """C^-1: half of the work of (C C')^-1."""
    if not is_numpy(C):
        return solve_triangular(C, on_device_of(np.eye(C.shape[0]), C))
    trtri = scipy.linalg.lapack.get_lapack_funcs("trtri", (C,))
    # A factor in the place of its matrix has that matrix above the diagonal.
    return np.tril(trtri(C, lower=True)[0])


def _solution(
    A: Array, B: Array, alpha: float, noise: Array | None, in_place: bool = False
) -> tuple[Any, Any, Any]:
    """(factor, solution, residual), all None where A + alpha N is singular to rounding."""
    C = factor_shifted(A, alpha, noise, in_place=in_place)
    if C is None:
        return None, None, None
    X = solve_factored(C, B)
    if in_place or not C.shape[0]:  # no coordinates: nothing is left
        return C, X, None if in_place else B
    # A factorisation can succeed on rounding alone.
    xp = namespace(A)
    residual = B - A @ X - alpha * (X if noise is None else noise[:, None] * X)
    worst = float(xp.max(xp.abs(residual)))
    solves = worst <= (1e-3 if "64" in str(A.dtype) else 0.1) * float(xp.max(xp.abs(B)))
    return (C, X, residual) if solves else (None, None, None)


def _safe(A: Array, B: Array, alpha: float, noise: Array | None) -> float:
    """An alpha with which the equations can be solved: tried, not guessed."""
    xp = namespace(A)
    trace = float(xp.sum(xp.linalg.diagonal(A)))
    alpha = max(STEP * alpha, trace * eps_of(A))
    if not alpha > 0:  # no row is anywhere: any penalty will do
        return 1.0
    while _solution(A, B, alpha, noise)[1] is None and alpha < max(trace, 1.0):
        alpha *= STEP
    return alpha
