"""The Matern family, 2^(1-nu) / Gamma(nu) t^nu K_nu(t) at t = sqrt(2 nu) d, without closed forms.

Where nu is large, by Debye's expansion: K_nu overflows and Gamma(nu) with it long before nu = 200,
while the kernel itself tends to exp(-d^2 / 2). With z^2 = 2 d^2 / nu, w = sqrt(1 + z^2) and the
uniform expansion of K_nu(nu z) (NIST's Digital Library of Mathematical Functions, 10.41.4) the
large terms cancel by algebra:

    k(d) = exp(nu (log(1 + s/2) - s)) / sqrt(w) * U(1/w) / U(1),    s = w - 1 = z^2 / (1 + w)
    U(p) = sum_j (-1)^j u_j(p) / nu^j
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import kv

from ..engine import in_place
from .monomials import horner

# From this nu on, twelve terms leave an error of 4e-17 (all d, against 40 digits).
MANY_DERIVATIVES = 20
_TERMS = 12
# Up to this nu, SciPy's series for K_nu loses up to three digits as t goes to 2.
_LOSSY_SERIES = 5.0


def matern_of_small_nu(nu: float, d: np.ndarray):
    """k for distances (in length scales).

    Between t = 0.5 and 2 by K_nu(t) = int exp(-t cosh u) cosh(nu u) du: the trapezoidal rule
    converges at the rate exp(-pi^2 / step), and no term is negative.
    """
    t = math.sqrt(2 * nu) * d
    factor = 2 ** (1 - nu) / math.gamma(nu)
    lossy = (t > 0.5) & (t <= 2) if nu < _LOSSY_SERIES else np.zeros(t.shape, bool)
    tiny = t < 1e-9
    bessel = np.empty_like(t)
    regular = ~(lossy | tiny)
    with np.errstate(under="ignore"):
        bessel[regular] = kv(nu, t[regular])
    step, integral = 0.2, 0.5 * np.exp(-t[lossy])
    for u in step * np.arange(1, 29):
        integral += math.cosh(nu * u) * np.exp(-math.cosh(u) * t[lossy])
    bessel[lossy] = step * integral
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        # A product, not the exponential of a sum: logarithms of 100 would cost two digits.
        value = factor * t**nu * bessel
    value[~np.isfinite(value)] = 0.0  # far away: t^nu overflows, K_nu vanishes
    # The first terms of the series: from nu = 0.9 on the second one is below rounding.
    value[tiny] = 1.0
    if nu < 0.9:
        value[tiny] -= math.gamma(1 - nu) / math.gamma(1 + nu) * (t[tiny] / 2) ** (2 * nu)
    return np.minimum(value, 1.0)


def matern_of_large_nu(nu: float, d2: Any, xp: Any):
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
    value *= horner(_coefficients(nu), p) / horner(_coefficients(nu), 1.0)
    return xp.astype(xp.clip(value, 0.0, 1.0), dtype)


@lru_cache(maxsize=32)
def _coefficients(nu):
    """U as one polynomial in p."""
    total = [0.0] * (3 * _TERMS + 1)
    for j, u in enumerate(_debye()):
        for i, c in enumerate(u):
            total[i] += float(c) * (-1 / nu) ** j
    return total


@lru_cache(maxsize=1)
def _debye():
    """u_0, u_1, ...: u' p^2 (1 - p^2) / 2 + (1/8) int_0^p (1 - 5 t^2) u dt, exactly."""
    terms = [[Fraction(1)]]
    for _ in range(_TERMS):
        u = terms[-1]
        following = [Fraction(0)] * (len(u) + 3)
        for i, c in enumerate(u):
            following[i + 1] += c * i / 2 + c / (8 * (i + 1))
            following[i + 3] -= c * i / 2 + 5 * c / (8 * (i + 3))
        terms.append(following)
    return terms
