"""Ridge by one factorisation: (A + alpha N)^-1 B, for A = Phi'Phi or A = K."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.arrays import cholesky, eps_of, namespace, put, solve_triangular

# Ten times the smallest alpha that works is tried next when an error message looks for one.
STEP = 10.0


@dataclass(frozen=True)
class Shifted:
    """The Cholesky factor of A + alpha N, and the targets (columns) that it serves."""

    alpha: float
    targets: np.ndarray
    C: Any


def solve_regularized(A, B, alphas, noise=None) -> tuple[Any, list[Shifted]]:
    """(A + alpha N)^-1 B with one alpha per column of B and a diagonal N (None: the identity)."""
    xp = namespace(A)
    columns: dict[int, Any] = {}
    factors = []
    for alpha in np.unique(alphas):
        mine = np.flatnonzero(alphas == alpha)
        part = xp.stack([B[:, int(j)] for j in mine], axis=1)
        C, solved = _solution(A, part, float(alpha), noise)
        if solved is None:
            raise ValueError(
                f"alpha={alpha:g} is too small for this kernel: the equations are singular to "
                f"rounding. Use an alpha of at least {_safe(A, part, float(alpha), noise):.1g}."
            )
        columns |= {int(j): solved[:, i] for i, j in enumerate(mine)}
        factors.append(Shifted(float(alpha), mine, C))
    return xp.stack([columns[j] for j in range(B.shape[1])], axis=1), factors


def factor_shifted(A, alpha, noise=None):
    """The Cholesky factor of A + alpha N, or None where it is singular to rounding."""
    xp, diagonal = namespace(A), np.arange(A.shape[0])
    own = xp.linalg.diagonal(A)
    shifted = own + alpha * (xp.ones_like(own) if noise is None else noise)
    return cholesky(put(A + 0, diagonal, diagonal, shifted))


def _solution(A, B, alpha, noise):
    """(factor, solution), both None where A + alpha N is singular to rounding."""
    C = factor_shifted(A, alpha, noise)
    if C is None:
        return None, None
    X = solve_triangular(C, solve_triangular(C, B), transpose=True)
    # A factorisation can succeed on rounding alone.
    xp = namespace(A)
    ridge = alpha * (X if noise is None else noise[:, None] * X)
    left = float(xp.max(xp.abs(A @ X + ridge - B)))
    solves = left <= (1e-3 if "64" in str(A.dtype) else 0.1) * float(xp.max(xp.abs(B)))
    return (C, X) if solves else (None, None)


def _safe(A, B, alpha, noise):
    """An alpha with which the equations can be solved: tried, not guessed."""
    xp = namespace(A)
    trace = float(xp.sum(xp.linalg.diagonal(A)))
    alpha = max(STEP * alpha, trace * eps_of(A))
    while _solution(A, B, alpha, noise)[1] is None and alpha < max(trace, 1.0):
        alpha *= STEP
    return alpha
