"""Powers, and their feature maps: every monomial once."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import scipy.sparse

from ..engine import (
    MemoryLimitError,
    coordinates_bytes,
    free_memory,
    namespace,
    on_device_of,
    readable,
)

# Python's own bytes for one monomial while they are listed.
BYTES_A_MONOMIAL = 300
# Listing more of them takes minutes, before the first row is mapped.
_MOST_MONOMIALS = 5_000_000
# Sparse maps of more columns are not filled.
_FEW_COLUMNS = 1000
# Dimensions beyond are reported as this: exact ones of nested powers have thousands of digits.
LARGEST_DIMENSION = 2**63 - 1


def integer_power(x: Any, exponent: int) -> Any:
    """x ** exponent by repeated squaring, over x: ten times faster than a general power."""
    if exponent == 0:
        return x * 0 + 1
    result = None
    while exponent:
        if exponent & 1:
            if result is None:
                # The last factor needs no copy: x is not squared again.
                result = x if exponent == 1 else x + 0
            else:
                result *= x
        exponent >>= 1
        if exponent:
            x *= x
    return result


def horner(coefficients: Sequence[float], x: Any) -> Any:
    """c0 + c1 x + c2 x^2 + ..."""
    *rest, leading = coefficients
    total = x * 0.0
    total += leading
    for c in reversed(rest):
        total *= x
        total += c
    return total


def symmetric_power(F: Any, p: int):
    """Features of (F F')^p: each monomial of degree p once, by its multinomial weight.

    For F = (x, 1) and p = 2 on the plane: x1^2, sqrt2 x1 x2, sqrt2 x1, x2^2, sqrt2 x2, 1.
    """
    F = require_dense(F)
    xp, d = namespace(F), F.shape[1]
    if p == 0:
        return xp.ones_like(F[:, :1])
    require_room(F, symmetric_power_dim(d, p), BYTES_A_MONOMIAL)
    # Which p of d columns each monomial multiplies, and the root of its multinomial weight.
    monomials = np.array(list(combinations_with_replacement(range(d), p)))
    repeats = [math.prod(map(math.factorial, Counter(row).values())) for row in monomials.tolist()]
    weights = np.sqrt([math.factorial(p) / repeat for repeat in repeats])
    result = on_device_of(weights, F)[None, :] * xp.ones_like(F[:, :1])
    for q in range(p):
        result *= xp.take(F, on_device_of(monomials[:, q], F, dtype=xp.int64), axis=1)
    return result


def dense_features(kernel: Any, X: Any):
    """The map of an operand, to be multiplied: counts of few things, which are sparse, are filled.
    Rows that are sparse themselves are the user's to fill."""
    F = kernel.features(X)
    few = scipy.sparse.issparse(F) and not scipy.sparse.issparse(X) and F.shape[1] <= _FEW_COLUMNS
    return F.toarray() if few else require_dense(F)


def require_dense(F: Any):
    """Products and sums of sparse features would fill up: the user decides."""
    if scipy.sparse.issparse(F):
        raise TypeError(
            "this feature map multiplies features, and products of sparse ones would fill the "
            "memory: use KernelMap(kernel), whose basis='cholesky' finds the same space on your "
            "data, or pass X.toarray() where rows are sparse and have few columns."
        )
    return F


def require_room(F: Any, dimension: int, extra: int = 0):
    """Refuse a feature map that would not fit in memory, before any of it is computed."""
    needed = coordinates_bytes(F.shape[0], dimension, copies=2) + dimension * extra
    free = free_memory(F)
    if needed > free:
        raise MemoryLimitError(
            f"this feature map has {dimension} dimensions and would take {readable(needed)} of "
            f"{readable(free)} free: use KernelMap(kernel), whose dimension is at most the number "
            "of rows."
        )
    if extra and dimension > _MOST_MONOMIALS:
        raise MemoryLimitError(
            f"this feature map has {dimension} monomials, more than {_MOST_MONOMIALS}: use "
            "KernelMap(kernel), whose dimension is at most the number of rows."
        )


def symmetric_power_dim(d: int, p: int):
    """(d + p - 1 choose p), or LARGEST_DIMENSION where it is larger."""
    if p == 0:
        return 1
    if min(p, d - 1) > 33:  # (67 choose 34) is larger
        return LARGEST_DIMENSION
    return min(math.comb(d + p - 1, p), LARGEST_DIMENSION)
