"""How far is a classifier from the exact one? Its duality gap says so, for every point.

Support vector machines and logistic regression minimise P(f, b) = |f|^2 / 2 + sum_i C_i loss(y_i
(f(x_i) + b)) over functions f of the kernel's space and an intercept b that costs nothing. Let
g(f) = min over b of P(f, b). |f|^2 / 2 is strongly convex and the rest is convex in (f, b), so g
is strongly convex as well, and for every feasible dual point a with value D

    |f - f*|^2 <= 2 (g(f) - g(f*)) <= 2 (P(f, b) - D(a)),   so
    |f(z) - f*(z)| <= sqrt(k(z, z)) sqrt(2 (P - D))          for every z.

With f_a = sum_i y_i a_i k(x_i, .) and sum_i y_i a_i = 0 the gap is a sum of terms that are all
positive (no difference of large numbers): |f - f_a|^2 / 2 plus, for each row with margin
m_i = 1 - y_i (f(x_i) + b), C_i max(m_i, 0) - a_i m_i (hinge loss), or C_i times the divergence of
the probability a_i / C_i from the model's (log loss).

**The intercept.** Given f*, the best b* of the hinge loss is a weighted quantile of y_i - f*(x_i),
at the share of C that positive rows have; of the log loss it is the root of an increasing function
of b and of every f*(x_i). Both move by no more than the f*(x_i) do. So every exact b* lies between
the quantiles (roots) of what the f*(x_i) can be at most and at least.

**Rounding.** Values f(x_i) carry errors of eta l(x_i) |l c|, as a rule (l = sqrt k(x, x), c the
coefficients; MATH.md section 8). The terms are convex in m_i: the larger one of both ends of its
interval is an upper bound. A dual point whose coefficients sum to s and not to zero costs at most
|s| |b - b*|, and |b*| <= 1 + max l |f*|, |f*|^2 <= 2 P.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine import as_numpy

EPS = float(np.finfo(np.float64).eps)
# Kinks of losses that are sorted, all of them; of more, one in so many tells which.
MANY_KINKS, SAMPLED = 5000, 50


@dataclass(frozen=True)
class Certificate:
    """Bounds on the distance from the exact solution."""

    gap: float  # P - D at most, rounding included
    # |f(z) - f*(z)| <= sqrt(k(z, z)) * error_norm for every z, rounding included
    error_norm: float
    shift: float  # |b - b*| at most, for every exact intercept b*
    norm: float  # |f|


@dataclass(frozen=True)
class Rounding:
    """Rounding of the values of a kernel sum: eta, and the lengths l(x_i) of the training rows."""

    eta: float
    lengths: np.ndarray

    @classmethod
    def of(cls, kernel: Any, points: Any) -> "Rounding":
        lengths = as_numpy(kernel.layout.lengths(kernel, points)).astype(np.float64)
        n = points.shape[0]
        unit = float(kernel.rounding(kernel.landmarks(points)))
        return cls(2 * EPS * (unit + np.log2(n + 1)), lengths)

    @property
    def longest(self) -> float:
        return float(self.lengths.max(initial=0.0))

    def aim(self, tol: float, norm: float) -> float:
        """The gap at which the error is tol times |f|, or tol where values of f are below 1: the
        margin is 1, and the exact function may be zero."""
        return (tol * max(norm, 1.0 / max(self.longest, 1e-150))) ** 2 / 2

    def take(self, rows: np.ndarray) -> "Rounding":
        """Rounding of some of the rows."""
        return Rounding(self.eta, self.lengths[rows])

    def size_of(self, c: np.ndarray) -> float:
        """|l c| of coefficients, one column per function."""
        return float(np.linalg.norm(c.T * self.lengths))

    def of_sums(self, size: float) -> np.ndarray:
        """Errors of sum_j c_j k(x_j, x_i) for every i, where |l c| added up to `size`."""
        return self.eta * size * self.lengths


def hinge_certificate(
    y: np.ndarray,
    C: np.ndarray,
    c: np.ndarray,
    b: float,
    values: np.ndarray,
    rounding: Rounding,
    size: float,
    error: np.ndarray | None = None,
) -> Certificate:
    """Certificate of a support vector machine.

    y, C : signs and largest coefficients of the rows
    c : a dual point, y_i a_i, within its bounds
    values : f(x_i), without b
    rounding, size : Rounding, and |l c| of all sums that made the values
    error : errors of the values at most; None: those of their sums
    """
    error = rounding.of_sums(size) if error is None else error
    m, a = 1.0 - y * (values + b), y * c
    below, above = m - error, m + error
    terms = np.maximum(
        C * np.maximum(above, 0.0) - a * above, C * np.maximum(below, 0.0) - a * below
    )
    slack = float(np.sum(C * np.maximum(above, 0.0)))
    square = max(float(c @ values), 0.0) + float(np.abs(c) @ error)
    total = abs(float(c.sum())) + EPS * float(np.abs(c).sum())
    unbalanced = total * (abs(b) + 1.0 + rounding.longest * (2 * (square / 2 + slack)) ** 0.5)
    gap = (float(terms.sum()) + unbalanced) * (1 + len(c) * EPS)
    norm_error = float((2 * max(gap, 0.0)) ** 0.5 + rounding.eta * size)
    least, most = _hinge_range(y, C, values, norm_error * rounding.lengths + error)
    shift = max(b - least, most - b, 0.0) + EPS * (1.0 + abs(b))  # y - f(x_i) is rounded, too
    return Certificate(gap, norm_error, shift, square**0.5)


def _hinge_range(
    y: np.ndarray, C: np.ndarray, values: np.ndarray, errors: Any = 0.0
) -> tuple[float, float]:
    """(smallest, largest) b that may be best for values within these errors."""
    level, order_error = float(C[y > 0].sum()), len(y) * EPS
    least, most = _weighted_quantiles(y - values - errors, C, level, order_error)
    if np.any(errors):
        _, most = _weighted_quantiles(y - values + errors, C, level, order_error)
    return least, most


def _weighted_quantiles(
    t: np.ndarray, weights: np.ndarray, level: float, slack: float = 0.0
) -> tuple[float, float]:
    """(smallest, largest) minimiser b of the hinge losses whose kinks are at t: where the weight of
    kinks below b reaches `level`. `slack`: the relative error that a sum of weights may have."""
    slack *= float(weights.sum())
    below = 0.0
    if len(t) > MANY_KINKS:
        below, t, weights = _around(t, weights, level, slack)
    order = np.argsort(t)  # equal ones in any order: one of them is the result
    t, reached = t[order], below + np.cumsum(weights[order])
    first = int(np.searchsorted(reached, level - slack, side="left"))
    last = int(np.searchsorted(reached, level + slack, side="right"))
    return float(t[min(first, len(t) - 1)]), float(t[min(last, len(t) - 1)])


def _around(
    t: np.ndarray, weights: np.ndarray, level: float, slack: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """(weight below, kinks, weights) of the kinks among which the level is reached, as a sample of
    them tells; of all kinks where it does not."""
    some = np.argsort(t[::SAMPLED])
    reached = np.cumsum(weights[::SAMPLED][some])
    at = int(np.searchsorted(reached, level / float(weights.sum()) * reached[-1]))
    sample, reach = t[::SAMPLED][some], 20 + len(some) // 20
    least = sample[at - reach] if at >= reach else -np.inf
    most = sample[at + reach] if at + reach < len(sample) else np.inf
    is_below = t < least
    inside = ~is_below & (t <= most)
    below, within = float(weights[is_below].sum()), float(weights[inside].sum())
    if not below + slack < level - slack <= level + slack < below + within - slack:
        return 0.0, t, weights
    return below, t[inside], weights[inside]


def best_hinge_intercept(y: np.ndarray, C: np.ndarray, values: np.ndarray) -> float:
    """In the middle of all that are best, as libsvm has it."""
    return sum(_hinge_range(y, C, values)) / 2
