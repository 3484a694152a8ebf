"""The Matern family where nu is large: Bessel's function by Debye's expansion.

K_nu overflows and Gamma(nu) with it long before nu = 200, while the kernel itself tends to
exp(-d^2 / 2). With z^2 = 2 d^2 / nu, w = sqrt(1 + z^2) and the uniform expansion of K_nu(nu z)
(NIST's Digital Library of Mathematical Functions, 10.41.4) the large terms cancel by algebra:

    k(d) = exp(nu (log(1 + s/2) - s)) / sqrt(w) * U(1/w) / U(1),    s = w - 1 = z^2 / (1 + w)
    U(p) = sum_j (-1)^j u_j(p) / nu^j
"""

import math
from fractions import Fraction
from functools import lru_cache

from ..engine.arrays import in_place

# From this nu on, twelve terms leave an error of 4e-17 (all d, against 40 digits).
MANY_DERIVATIVES = 20
TERMS = 12


def matern_of_large_nu(nu, d2, xp):
    """k for squared distances (in length scales) that may be overwritten."""
    if nu == math.inf:
        d2 *= -0.5
        return in_place(xp.exp, d2)
    dtype = d2.dtype
    z2 = xp.astype(d2, xp.float64) * (2 / nu)
    w = xp.sqrt(1 + z2)
    s = z2 / (1 + w)
    p = 1 / w
    value = xp.exp(nu * (xp.log1p(s / 2) - s)) * xp.sqrt(p)
    value *= _horner(_coefficients(nu), p) / _horner(_coefficients(nu), 1.0)
    return xp.astype(xp.clip(value, 0.0, 1.0), dtype)


def _horner(coefficients, p):
    *rest, leading = coefficients
    total = p * 0 + leading
    for c in reversed(rest):
        total *= p
        total += c
    return total


@lru_cache(maxsize=32)
def _coefficients(nu):
    """U as one polynomial in p."""
    total = [0.0] * (3 * TERMS + 1)
    for j, u in enumerate(_debye()):
        for i, c in enumerate(u):
            total[i] += float(c) * (-1 / nu) ** j
    return total


@lru_cache(maxsize=1)
def _debye():
    """u_0, u_1, ...: u' p^2 (1 - p^2) / 2 + (1/8) int_0^p (1 - 5 t^2) u dt, exactly."""
    terms = [[Fraction(1)]]
    for _ in range(TERMS):
        u = terms[-1]
        following = [Fraction(0)] * (len(u) + 3)
        for i, c in enumerate(u):
            following[i + 1] += c * i / 2 + c / (8 * (i + 1))
            following[i + 3] -= c * i / 2 + 5 * c / (8 * (i + 3))
        terms.append(following)
    return terms
