"""Kernels as Fourier series on a box: MATH.md section 10.

A stationary kernel with spectral density S is, for periods P and differences r = x - z in a box,

    k(r) + sum over images n != 0 of k(r + n P) = sum_j w_j exp(2 pi i (j / P) . r),
    w_j = S(j / P) / prod P >= 0        (Poisson's summation formula)

and so a finite sum over j is k up to two errors that are known before any data: the images of the
kernel that reach into the box (aliasing), and the weights that are left out (truncation). At r = 0
the formula says what all weights add up to, so that what is left out is a difference, not a guess.

Forms follow the algebra of kernels: series of sums add, those of products are convolved.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np
from scipy.special import ive, poch

from ..engine import current
from .matern import MANY_DERIVATIVES, matern_of_large_nu, matern_of_small_nu

# The rounding error of densities and of sums of weights, in units of k(0).
_ROUNDING = 64 * float(np.finfo(float).eps)
# Shares of the tolerance: images, and weights outside of the grid (in all columns together).
_ALIASING, _OUTSIDE = 1 / 16, 1 / 4
# Frequencies along one column that are looked at in search of a grid.
_MOST_IN_A_COLUMN, _BYTES_OF_A_FREQUENCY = 1 << 22, 64
# Shells of images that are added one by one; a bound of the others follows from the last.
_SHELLS = 32


class TooManyModesError(ValueError):
    """The series would need more frequencies than there is room for."""


@dataclass(frozen=True)
class _Series:
    """Weights w_j >= 0 for j = -m..m in each column, the largest error in the box, and k(x, x)."""

    weights: np.ndarray
    error: float
    size: float = 1.0


class FourierForm(ABC):
    """A kernel that is a Fourier series on a box. Tolerances are relative to `size`, k(x, x)."""

    size: float = 1.0

    @abstractmethod
    def reach(self, extent: np.ndarray, tol: float) -> tuple[np.ndarray, list[list[float]]]:
        """Per column, the smallest period at which images stay out of the box (0 where any will
        do), and the periods that the kernel has itself. `extent` holds the largest difference of
        two points in each column."""

    @abstractmethod
    def modes(self, periods: np.ndarray, tol: float) -> np.ndarray:
        """m per column: frequencies -m/P to m/P hold all but a share of `tol` of the weights."""

    @abstractmethod
    def series(self, periods: np.ndarray, extent: np.ndarray, tol: float) -> _Series:
        """Weights on that grid, and a bound of their error."""

    def periods(self, extent: np.ndarray, tol: float) -> np.ndarray:
        """One per column, long enough for the images and a multiple of the kernel's own ones."""
        reach, own = self.reach(extent, tol)
        return np.array([_multiple(listed, float(r)) for listed, r in zip(own, reach)])


@dataclass(frozen=True)
class ConstantForm(FourierForm):
    """c: the frequency zero."""

    size: float

    def reach(self, extent: np.ndarray, tol: float):
        return np.zeros(len(extent)), [[] for _ in extent]

    def modes(self, periods: np.ndarray, tol: float):
        return np.zeros(len(periods), dtype=int)

    def series(self, periods: np.ndarray, extent: np.ndarray, tol: float):
        return _Series(np.full((1,) * len(periods), self.size), 0.0, self.size)


class _RadialForm(FourierForm):
    """A decreasing function of |scale * (x - z)| that is 1 at zero: a subclass gives its values and
    its spectral density, both for scale 1."""

    scale: Any
    value: Callable[[np.ndarray], Any]
    # k(r + step) <= exp(-rate * step) k(r); infinite where log k is concave, so that the factor
    # from one shell of images to the next is largest at the first of them.
    rate: float = math.inf

    @abstractmethod
    def density(self, squared: np.ndarray, d: int) -> np.ndarray:
        """S at frequencies of these squared lengths, in d columns."""

    def images(self, first: float, step: float, d: int) -> float:
        """At least the sum over shells s = 1, 2, ... of images outside of a box, which is that of
        ((2s+1)^d - (2s-1)^d) k(first + (s-1) step)."""
        if not (first > 0 and step > 0):
            return math.inf
        s = np.arange(1, _SHELLS + 1)
        counts, k = (2.0 * s + 1) ** d - (2.0 * s - 1) ** d, self.value(first + (s - 1) * step)
        return float(counts @ k) + self._beyond(counts, k, first, step, d)

    def _beyond(self, counts, k, first, step, d):
        """The same for all other shells, where k falls by a constant factor per step, or faster."""
        if k[-1] == 0:
            return 0.0
        factor = max(k[-1] / k[-2], math.exp(-self.rate * step)) * counts[-1] / counts[-2]
        return counts[-1] * k[-1] * factor / (1 - factor) if factor < 1 else math.inf

    def reach(self, extent: np.ndarray, tol: float):
        d, target = len(extent), _ALIASING * tol
        free = _smallest(lambda r: self.images(r, r, d) <= target)
        return extent + free / self._scales(d), [[] for _ in extent]

    def modes(self, periods: np.ndarray, tol: float):
        d, target = len(periods), _OUTSIDE * tol / len(periods)
        return np.array([self._needed(u, target) for u in self._scales(d) * periods])

    def series(self, periods: np.ndarray, extent: np.ndarray, tol: float):
        d, scales = len(periods), self._scales(len(periods))
        unit = scales * periods
        m, step = self.modes(periods, tol), float(unit.min())
        squares = [(np.arange(k + 1) / u) ** 2 for k, u in zip(m, unit)]
        squared = reduce(np.add.outer, squares)
        weights = _mirrored(self.density(squared, d) / math.prod(unit))
        aliasing = self.images(float((unit - scales * extent).min()), step, d)
        outside = 1 + self.images(step, step, d) - math.fsum(np.sort(weights, axis=None))
        return _Series(weights, aliasing + max(outside, 0.0) + _ROUNDING)

    def _needed(self, period, target):
        """The fewest frequencies in one column, where the kernel has the density of one column."""

        def weights(most: int):
            return self.density((np.arange(most + 1) / period) ** 2, 1) / period

        return _fewest(weights, 1 + self.images(period, period, 1), target)

    def _scales(self, d):
        return np.broadcast_to(np.asarray(self.scale, dtype=float), (d,))


@dataclass(frozen=True)
class GaussianForm(_RadialForm):
    """exp(-r^2)."""

    scale: Any

    def value(self, r: np.ndarray) -> np.ndarray:
        return np.exp(-(r**2))

    def density(self, squared: np.ndarray, d: int) -> np.ndarray:
        return math.pi ** (d / 2) * np.exp(-(math.pi**2) * squared)


@dataclass(frozen=True)
class MaternForm(_RadialForm):
    """The Matern kernel with length scale 1, whose values are given."""

    scale: Any
    nu: float
    value: Callable[[np.ndarray], Any]

    @property
    def rate(self) -> float:  # type: ignore[override]
        """log k is concave from nu = 1/2 on; below, its slope is at least sqrt(2 nu)."""
        return math.inf if self.nu >= 0.5 else math.sqrt(2 * self.nu)

    def density(self, squared: np.ndarray, d: int) -> np.ndarray:
        nu = self.nu
        if nu == math.inf:
            return (2 * math.pi) ** (d / 2) * np.exp(-2 * math.pi**2 * squared)
        factor = (2 * math.pi / nu) ** (d / 2) * poch(nu, d / 2)
        return factor * np.exp(-(nu + d / 2) * np.log1p(2 * math.pi**2 * squared / nu))


@dataclass(frozen=True)
class RationalForm(_RadialForm):
    """(1 + r^2 / (2a))^-a."""

    scale: Any
    a: float

    def value(self, r: np.ndarray) -> np.ndarray:
        return np.exp(-self.a * np.log1p(r**2 / (2 * self.a)))

    def density(self, squared: np.ndarray, d: int) -> np.ndarray:
        """A mixture of Gaussians: the Matern kernel with nu = p, as a function of frequencies."""
        a, p = self.a, self.a - d / 2
        if p <= 0:
            raise TooManyModesError(
                f"alpha above {d / 2:g} in {d} columns, to have a spectral density"
            )
        d2 = 4 * math.pi**2 * a / p * squared
        large = p >= MANY_DERIVATIVES
        decay = matern_of_large_nu(p, d2, np) if large else matern_of_small_nu(p, np.sqrt(d2))
        return (2 * math.pi * a) ** (d / 2) / poch(p, d / 2) * decay

    def _beyond(self, counts, k, first, step, d):
        """At most 2d (2s+1)^(d-1) <= 2d 3^(d-1) s^(d-1) images at least s * nearest away, where k
        falls at least like the power of s that it falls like at the last shell."""
        r = min(first, step) * _SHELLS
        power = 2 * self.a * r**2 / (2 * self.a + r**2)
        last = float(self.value(np.array(r)))
        return 2 * d * 3 ** (d - 1) * last * _SHELLS**d / (power - d) if power > d else math.inf


@dataclass(frozen=True)
class PeriodicForm(FourierForm):
    """exp(-2 sin^2(pi r / p) / l^2) in one column: weights exp(-z) I_n(z) at n / p, z = 1 / l^2."""

    z: float
    period: float

    def reach(self, extent: np.ndarray, tol: float):
        return np.zeros(1), [[self.period]]

    def modes(self, periods: np.ndarray, tol: float):
        return np.array([self._turns(periods) * self._needed(_OUTSIDE * tol)])

    def series(self, periods: np.ndarray, extent: np.ndarray, tol: float):
        turns, n = self._turns(periods), self._needed(_OUTSIDE * tol)
        weights = np.zeros(turns * n + 1)
        weights[::turns] = ive(np.arange(n + 1), self.z)
        weights = _mirrored(weights)
        return _Series(weights, max(0.0, 1 - math.fsum(weights)) + _ROUNDING)

    def _turns(self, periods):
        return round(float(periods[0]) / self.period)

    def _needed(self, target):
        return _fewest(lambda most: ive(np.arange(most + 1), self.z), 1.0, target)


class ColumnsForm(FourierForm):
    """A form on some of the columns: it is constant in the others."""

    def __init__(self, form: FourierForm, columns: Sequence[int] | np.ndarray):
        self.form, self.columns, self.size = form, np.asarray(columns, dtype=int), form.size

    def reach(self, extent: np.ndarray, tol: float):
        reach, own = self.form.reach(extent[self.columns], tol)
        of_column = dict(zip(self.columns.tolist(), own))
        return self._spread(reach, len(extent)), [of_column.get(a, []) for a in range(len(extent))]

    def modes(self, periods: np.ndarray, tol: float):
        return self._spread(self.form.modes(periods[self.columns], tol), len(periods))

    def series(self, periods: np.ndarray, extent: np.ndarray, tol: float):
        inner = self.form.series(periods[self.columns], extent[self.columns], tol)
        shape = np.ones(len(periods), dtype=int)
        shape[self.columns] = inner.weights.shape
        weights = inner.weights.transpose(np.argsort(self.columns)).reshape(shape)
        return _Series(weights, inner.error, inner.size)

    def _spread(self, values, d):
        spread = np.zeros(d, dtype=values.dtype)
        spread[self.columns] = values
        return spread


class ByColumn(FourierForm):
    """A product over all columns of make(own numbers): each parameter is one number for all, or one
    per column."""

    def __init__(self, make: Callable[..., FourierForm], *parameters: np.ndarray):
        self.make, self.parameters = make, parameters

    def reach(self, extent: np.ndarray, tol: float):
        return self._expanded(extent).reach(extent, tol)

    def modes(self, periods: np.ndarray, tol: float):
        return self._expanded(periods).modes(periods, tol)

    def series(self, periods: np.ndarray, extent: np.ndarray, tol: float):
        return self._expanded(periods).series(periods, extent, tol)

    def _expanded(self, columns):
        own = zip(*(np.broadcast_to(p, len(columns)).tolist() for p in self.parameters))
        return ProductForm([ColumnsForm(self.make(*numbers), [a]) for a, numbers in enumerate(own)])


class SumForm(FourierForm):
    """Series on the same periods add."""

    def __init__(self, parts: Sequence[FourierForm]):
        self.parts, self.size = parts, sum(part.size for part in parts)

    def _share(self, tol):
        """The tolerance of each part."""
        return tol

    def reach(self, extent: np.ndarray, tol: float):
        reach, own = zip(*(part.reach(extent, self._share(tol)) for part in self.parts))
        return np.max(reach, axis=0), [[*chain(*of_column)] for of_column in zip(*own)]

    def modes(self, periods: np.ndarray, tol: float):
        return np.max([part.modes(periods, tol) for part in self.parts], axis=0)

    def series(self, periods: np.ndarray, extent: np.ndarray, tol: float):
        parts = [part.series(periods, extent, tol) for part in self.parts]
        total = np.zeros(np.max([part.weights.shape for part in parts], axis=0))
        for w in (part.weights for part in parts):  # each in the middle of the largest grid
            total += np.pad(w, [((n - k) // 2,) * 2 for n, k in zip(total.shape, w.shape)])
        return _Series(total, sum(part.error for part in parts), self.size)


class ProductForm(SumForm):
    """Series on the same periods are convolved: frequencies add, weights multiply."""

    def __init__(self, parts: Sequence[FourierForm]):
        self.parts, self.size = parts, math.prod(part.size for part in parts)

    def _share(self, tol):
        """(1 + t / (1.05 m))^m - 1 <= t up to t = 0.08; a constant has no error."""
        inexact = sum(not isinstance(part, ConstantForm) for part in self.parts)
        return tol / (1.05 * inexact) if inexact > 1 else tol

    def modes(self, periods: np.ndarray, tol: float):
        return np.sum([part.modes(periods, self._share(tol)) for part in self.parts], axis=0)

    def series(self, periods: np.ndarray, extent: np.ndarray, tol: float):
        parts = (part.series(periods, extent, self._share(tol)) for part in self.parts)
        return reduce(_convolved, parts)


def _convolved(a, b):
    error, size = a.size * b.error + b.size * a.error + a.error * b.error, a.size * b.size
    if all(1 in pair for pair in zip(a.weights.shape, b.weights.shape)):
        return _Series(a.weights * b.weights, error, size)
    from scipy.signal import convolve  # slow to import, and rarely needed

    weights = convolve(a.weights, b.weights)
    # Rounding, by the fast Fourier transform, of all that is added up.
    lost = _ROUNDING * size + float(-weights[weights < 0].sum())
    orthant = weights[tuple(slice(n // 2, None) for n in weights.shape)]
    return _Series(_mirrored(np.maximum(orthant, 0.0)), error + lost, size)


# --- periods and frequencies ----------------------------------------------------------------------


def _fewest(weights, total, target):
    """The smallest m whose w_0 + 2 (w_1 + ... + w_m) is the total but for `target` at most."""
    most = 64
    room = min(_MOST_IN_A_COLUMN, current().limit() // _BYTES_OF_A_FREQUENCY)
    while most <= room:
        w = weights(most)
        outside = total - w[0] - 2 * np.concatenate([[0.0], np.cumsum(w[1:])])
        if outside[-1] <= target:
            return int(np.argmax(outside <= target))
        most *= 4
    raise TooManyModesError(f"more than {room:.1e} frequencies per column")


def _multiple(listed, reach):
    if not listed:
        return reach if reach > 0 else 1.0
    common = listed[0]
    for other in listed[1:]:
        ratio = Fraction(common / other).limit_denominator(10_000)
        if abs(float(ratio) * other - common) > 1e-9 * common:
            raise ValueError(
                f"the periods {common:g} and {other:g} have no small common multiple, and all "
                "frequencies must lie on one grid: round the periods, or use basis='cholesky'."
            )
        common *= ratio.denominator
    return common * max(1, math.ceil(reach / common - 1e-12))


def _smallest(works):
    """The smallest r > 0, to three digits, from which on `works` is true."""
    high = 1e-6
    while not works(high):
        high *= 2
        if high > 1e9:
            raise TooManyModesError("periods without end, since it decays so slowly")
    low = high / 2
    while high > 1.001 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if works(middle) else (middle, high)
    return high


def _mirrored(orthant: np.ndarray):
    """w at j = -m..m from w at j = 0..m."""
    return np.pad(orthant, [(n - 1, 0) for n in orthant.shape], mode="reflect")
