"""The feature maps of powers: every monomial once."""

import math
from itertools import combinations_with_replacement

import numpy as np

from ..engine.arrays import namespace, on_device_of


def symmetric_power(F, p):
    """Features of (F F')^p: each monomial of degree p once, by its multinomial weight.

    For F = (x, 1) and p = 2 on the plane: x1^2, sqrt2 x1 x2, sqrt2 x1, x2^2, sqrt2 x2, 1.
    """
    xp, d = namespace(F), F.shape[1]
    if p == 0:
        return xp.ones_like(F[:, :1])
    monomials = np.array(list(combinations_with_replacement(range(d), p)))
    weights = [
        math.sqrt(math.factorial(p) / math.prod(math.factorial(m) for m in _multiplicities(row)))
        for row in monomials.tolist()
    ]
    result = on_device_of(np.array(weights), F)[None, :] * xp.ones_like(F[:, :1])
    for q in range(p):
        result *= xp.take(F, on_device_of(monomials[:, q], F, dtype=xp.int64), axis=1)
    return result


def symmetric_power_dim(d, p):
    return math.comb(d + p - 1, p)


def _multiplicities(row):
    return [row.count(i) for i in set(row)]
