"""Coordinates of rows on some of them: F = k(X, S) C^-T with C C' = k(S, S)."""

from typing import Any

import numpy as np

from ..engine import tiles
from ..engine.arrays import cholesky, namespace, put, solve_triangular
from ..kernels import Kernel

# Added to k(S, S), relative to its mean diagonal: enough for smooth kernels, whose matrices are
# singular to rounding, and far below any penalty that leave-one-out can tell from zero.
FIRST_JITTER = 1e-12
# Landmarks are as good as all rows where what they miss, trace(K - F F') / (n alpha), is at most
# this: the mean leverage of a row in exact ridge is then larger by no more (learn/quick_fit.py).
MISSED = 0.3


def coordinates(kernel: Kernel, Z: Any, S: Any) -> tuple[Any, Any]:
    """(F, C): the rows of F are coordinates of the rows of Z."""
    C = factor(tiles.evaluate(kernel, S))
    return solve_triangular(C, tiles.evaluate(kernel, Z, S).T).T, C


def factor(K: Any) -> Any:
    """C with C C' = K, K shifted by as little as makes it positive definite to rounding."""
    xp, diagonal = namespace(K), np.arange(K.shape[0])
    own = xp.linalg.diagonal(K) + 0
    jitter = FIRST_JITTER * float(xp.mean(own))
    while True:
        C = cholesky(put(K, diagonal, diagonal, own + jitter))
        if C is not None:
            return C
        jitter *= 100
