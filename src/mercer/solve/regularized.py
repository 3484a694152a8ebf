"""(A + alpha N) X = B by Cholesky factors, N a diagonal: the equations of every direct solution."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from ..engine import cholesky, eps_of, namespace, put, solve_triangular
from ..kernels import points as pts
from .solver import CannotSolve

# Ten times the smallest alpha that works is tried next.
STEP = 10.0
# Rows of a block, and rows up to which LAPACK takes the matrix as a whole.
BLOCK, WHOLE = 2048, 8192


def by_penalty(alphas: np.ndarray, B: Any, solve: Callable[[float, Any], tuple]) -> tuple:
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
    A: Any, B: Any, alphas: np.ndarray, noise: Any = None, *, in_place: bool = False
) -> tuple[Any, Any, dict]:
    """((A + alpha N)^-1 B, residuals, factors by alpha) with one alpha per column of B.

    N is a diagonal, None for the identity. `in_place`: the factor overwrites A, for one alpha, and
    residuals are None.
    """
    factors = {}

    def solved(alpha: float, part: Any):
        factors[alpha], X, residual = _solution(A, part, alpha, noise, in_place)
        if X is None:
            at_least = "" if in_place else f" of at least {_safe(A, part, alpha, noise):.1g}"
            raise CannotSolve(
                f"alpha={alpha:g} is too small for this kernel: the equations are singular to "
                f"rounding. Use an alpha{at_least}."
            )
        return X, residual

    X, residuals = by_penalty(alphas, B, solved)
    return X, residuals, factors


def factor_shifted(A: Any, alpha: float, noise: Any = None, *, in_place: bool = False):
    """The Cholesky factor of A + alpha N, or None where it is singular to rounding."""
    xp, diagonal = namespace(A), np.arange(A.shape[0])
    own = xp.linalg.diagonal(A)
    shifted = own + alpha * (xp.ones_like(own) if noise is None else noise)
    if in_place:
        return cholesky_in_place(put(A, diagonal, diagonal, shifted))
    return cholesky(put(A + 0, diagonal, diagonal, shifted))


def solve_factored(C: Any, B: Any):
    """(C C')^-1 B."""
    return solve_triangular(C, solve_triangular(C, B), transpose=True)


def _solution(A, B, alpha, noise, in_place=False):
    """(factor, solution, residual), all None where A + alpha N is singular to rounding."""
    C = factor_shifted(A, alpha, noise, in_place=in_place)
    if C is None:
        return None, None, None
    X = solve_factored(C, B)
    if in_place:
        return C, X, None
    # A factorisation can succeed on rounding alone.
    xp = namespace(A)
    residual = B - A @ X - alpha * (X if noise is None else noise[:, None] * X)
    worst = float(xp.max(xp.abs(residual)))
    solves = worst <= (1e-3 if "64" in str(A.dtype) else 0.1) * float(xp.max(xp.abs(B)))
    return (C, X, residual) if solves else (None, None, None)


def _safe(A, B, alpha, noise):
    """An alpha with which the equations can be solved: tried, not guessed."""
    xp = namespace(A)
    trace = float(xp.sum(xp.linalg.diagonal(A)))
    alpha = max(STEP * alpha, trace * eps_of(A))
    if not alpha > 0:  # no row is anywhere: any penalty will do
        return 1.0
    while _solution(A, B, alpha, noise)[1] is None and alpha < max(trace, 1.0):
        alpha *= STEP
    return alpha


def cholesky_in_place(K: np.ndarray, whole: int = WHOLE, block: int = BLOCK) -> np.ndarray | None:
    """C with C C' = K in its lower triangle, over the memory of K; None if K is singular.

    Above the diagonal stand numbers without meaning. Some builds of LAPACK end the process when
    they factor more than 15 000 rows with several threads: blocks are what every build can do.
    """
    C = K.T  # K is symmetric; columns are contiguous for LAPACK
    n = len(C)
    if n <= whole:
        potrf = scipy.linalg.lapack.get_lapack_funcs("potrf", (C,))
        C, info = potrf(C, lower=True, clean=False, overwrite_a=True)
        return C if info == 0 else None
    for a in range(0, n, block):
        b = min(a + block, n)
        try:
            C[a:b, a:b] = np.linalg.cholesky(C[a:b, a:b])
        except np.linalg.LinAlgError:
            return None
        for i in range(b, n, block):
            rows = slice(i, min(i + block, n))
            C[rows, a:b] = scipy.linalg.solve_triangular(
                C[a:b, a:b], C[rows, a:b].T, lower=True, check_finite=False
            ).T
            for j in range(b, i + 1, block):  # tiles up to the diagonal
                columns = slice(j, min(j + block, n))
                C[rows, columns] -= C[rows, a:b] @ C[columns, a:b].T
    return C
