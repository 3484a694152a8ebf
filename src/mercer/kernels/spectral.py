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
from typing import Any

import numpy as np
from scipy.special import ive

from .densities import TooManyModesError

# What densities and sums of weights lose to rounding, in units of k(0).
ROUNDING = 64 * float(np.finfo(float).eps)
# Shares of the tolerance: images, and weights outside of the grid (in all columns together).
ALIASING, OUTSIDE = 1 / 16, 1 / 4
# Frequencies along one column that are looked at in search of a grid.
MOST_IN_A_COLUMN = 1 << 22


@dataclass(frozen=True)
class Series:
    """Weights w_j >= 0 for j = -m..m in each column, and the largest error in the box."""

    weights: np.ndarray
    error: float


class FourierForm(ABC):
    """Description of a kernel that can be written as a Fourier series.

    `size` is k(x, x). Tolerances are relative to it.
    """

    size: float

    @abstractmethod
    def reach(self, extent: np.ndarray, tol: float) -> np.ndarray:
        """The smallest period per column at which images stay out of the box; 0 where any will do.

        `extent` holds the largest difference of two points in each column.
        """

    def exact_periods(self, d: int) -> list[list[float]]:
        """Per column, periods that the kernel has itself."""
        return [[] for _ in range(d)]

    @abstractmethod
    def modes(self, periods: np.ndarray, tol: float) -> np.ndarray:
        """m per column: frequencies -m/P to m/P hold all but a share of `tol` of the weights."""

    @abstractmethod
    def series(self, periods: np.ndarray, extent: np.ndarray, tol: float) -> Series:
        """Weights on that grid, and a bound of their error."""

    def periods(self, extent: np.ndarray, tol: float) -> np.ndarray:
        """One per column, long enough for the images and a multiple of the kernel's own ones."""
        reach, own = self.reach(extent, tol), self.exact_periods(len(extent))
        return np.array([_multiple(listed, float(r)) for listed, r in zip(own, reach)])

    def __add__(self, other: "FourierForm") -> "FourierForm":
        return SumForm((*_summands(self), *_summands(other)))

    def __mul__(self, other: "FourierForm") -> "FourierForm":
        return ProductForm(self, other)

    def __pow__(self, exponent: int) -> "FourierForm":
        return reduce(ProductForm, [self] * exponent) if exponent else ConstantForm(1.0)


@dataclass(frozen=True)
class ConstantForm(FourierForm):
    """c: the frequency zero."""

    size: float

    def reach(self, extent: np.ndarray, tol: float):
        return np.zeros(len(extent))

    def modes(self, periods: np.ndarray, tol: float):
        return np.zeros(len(periods), dtype=int)

    def series(self, periods: np.ndarray, extent: np.ndarray, tol: float):
        return Series(np.full((1,) * len(periods), self.size), 0.0)


@dataclass(frozen=True)
class RadialForm(FourierForm):
    """A decreasing function of |scale * (x - z)| that is 1 at zero.

    density : (|xi|^2, d) -> S for scale 1 in d columns
    images : (first, step, d) -> at least the sum over shells s = 1, 2, ... of
        ((2s+1)^d - (2s-1)^d) k(first + (s-1) step)
    """

    scale: Any
    density: Callable[[np.ndarray, int], np.ndarray]
    images: Callable[[float, float, int], float]
    size: float = 1.0

    def reach(self, extent: np.ndarray, tol: float):
        d = len(extent)
        target = ALIASING * tol
        free = _smallest(lambda r: self.images(r, r, d) <= target)
        return extent + free / self._scales(d)

    def modes(self, periods: np.ndarray, tol: float):
        d, target = len(periods), OUTSIDE * tol / len(periods)
        return np.array([self._needed(u, target) for u in self._scales(d) * periods])

    def series(self, periods: np.ndarray, extent: np.ndarray, tol: float):
        d, scales = len(periods), self._scales(len(periods))
        unit = scales * periods
        m, step = self.modes(periods, tol), float(unit.min())
        squares = [(np.arange(k + 1) / u) ** 2 for k, u in zip(m, unit)]
        squared = reduce(np.add.outer, squares)
        weights = mirrored(self.density(squared, d) / math.prod(unit))
        aliasing = self.images(float((unit - scales * extent).min()), step, d)
        outside = 1 + self.images(step, step, d) - math.fsum(np.sort(weights, axis=None))
        return Series(weights, aliasing + max(outside, 0.0) + ROUNDING)

    def _needed(self, period, target):
        """The fewest frequencies in one column, where the kernel has the density of one column."""

        def weights(most: int):
            return self.density((np.arange(most + 1) / period) ** 2, 1) / period

        return _fewest(weights, 1 + self.images(period, period, 1), target)

    def _scales(self, d):
        return np.broadcast_to(np.asarray(self.scale, dtype=float), (d,))


@dataclass(frozen=True)
class PeriodicForm(FourierForm):
    """exp(-2 sin^2(pi r / p) / l^2) in one column: weights exp(-z) I_n(z) at n / p, z = 1 / l^2."""

    z: float
    period: float
    size: float = 1.0

    def reach(self, extent: np.ndarray, tol: float):
        return np.zeros(1)

    def exact_periods(self, d: int):
        return [[self.period]]

    def modes(self, periods: np.ndarray, tol: float):
        return np.array([self._turns(periods) * self._needed(OUTSIDE * tol)])

    def series(self, periods: np.ndarray, extent: np.ndarray, tol: float):
        turns, n = self._turns(periods), self._needed(OUTSIDE * tol)
        weights = np.zeros(turns * n + 1)
        weights[::turns] = ive(np.arange(n + 1), self.z)
        weights = mirrored(weights)
        return Series(weights, max(0.0, 1 - math.fsum(weights)) + ROUNDING)

    def _turns(self, periods):
        return round(float(periods[0]) / self.period)

    def _needed(self, target):
        return _fewest(lambda most: ive(np.arange(most + 1), self.z), 1.0, target)


def _fewest(weights, total, target):
    """The smallest m whose w_0 + 2 (w_1 + ... + w_m) is the total but for `target` at most."""
    most = 64
    while most <= MOST_IN_A_COLUMN:
        w = weights(most)
        outside = total - w[0] - 2 * np.concatenate([[0.0], np.cumsum(w[1:])])
        if outside[-1] <= target:
            return int(np.argmax(outside <= target))
        most *= 4
    raise TooManyModesError(f"more than {MOST_IN_A_COLUMN:.1e} frequencies per column")


@dataclass(frozen=True)
class ColumnsForm(FourierForm):
    """A form on some of the columns: it is constant in the others."""

    form: FourierForm
    columns: Sequence[int]

    @property
    def size(self):  # type: ignore[override]
        return self.form.size

    def reach(self, extent: np.ndarray, tol: float):
        return self._spread(self.form.reach(extent[self._own], tol), len(extent))

    def exact_periods(self, d: int):
        found: list[list[float]] = [[] for _ in range(d)]
        for column, periods in zip(self.columns, self.form.exact_periods(len(self.columns))):
            found[column] = periods
        return found

    def modes(self, periods: np.ndarray, tol: float):
        return self._spread(self.form.modes(periods[self._own], tol), len(periods))

    def series(self, periods: np.ndarray, extent: np.ndarray, tol: float):
        inner = self.form.series(periods[self._own], extent[self._own], tol)
        order = np.argsort(self.columns)
        shape = np.ones(len(periods), dtype=int)
        shape[self._own] = inner.weights.shape
        return Series(inner.weights.transpose(order).reshape(shape), inner.error)

    @property
    def _own(self):
        return np.asarray(self.columns, dtype=int)

    def _spread(self, values, d):
        spread = np.zeros(d, dtype=values.dtype)
        spread[self._own] = values
        return spread


@dataclass(frozen=True)
class ByColumn(FourierForm):
    """A product over all columns; of_column(a, d) is the form of column a among d."""

    of_column: Callable[[int, int], FourierForm]
    size: float = 1.0

    def reach(self, extent: np.ndarray, tol: float):
        return self._expanded(len(extent)).reach(extent, tol)

    def exact_periods(self, d: int):
        return self._expanded(d).exact_periods(d)

    def modes(self, periods: np.ndarray, tol: float):
        return self._expanded(len(periods)).modes(periods, tol)

    def series(self, periods: np.ndarray, extent: np.ndarray, tol: float):
        return self._expanded(len(periods)).series(periods, extent, tol)

    def _expanded(self, d) -> FourierForm:
        parts: list[FourierForm] = [ColumnsForm(self.of_column(a, d), [a]) for a in range(d)]
        return reduce(ProductForm, parts)


@dataclass(frozen=True)
class SumForm(FourierForm):
    """Series on the same periods add."""

    terms: tuple[FourierForm, ...]

    @property
    def size(self):  # type: ignore[override]
        return sum(term.size for term in self.terms)

    def reach(self, extent: np.ndarray, tol: float):
        return reduce(np.maximum, (term.reach(extent, tol) for term in self.terms))

    def exact_periods(self, d: int):
        return _of_all(self.terms, d)

    def modes(self, periods: np.ndarray, tol: float):
        return reduce(np.maximum, (term.modes(periods, tol) for term in self.terms))

    def series(self, periods: np.ndarray, extent: np.ndarray, tol: float):
        parts = [term.series(periods, extent, tol) for term in self.terms]
        shape = np.max([part.weights.shape for part in parts], axis=0)
        total = sum(_centred_in(part.weights, shape) for part in parts)
        return Series(total, sum(part.error for part in parts))


def _summands(form):
    return form.terms if isinstance(form, SumForm) else (form,)


@dataclass(frozen=True)
class ProductForm(FourierForm):
    """Series on the same periods are convolved: frequencies add, weights multiply."""

    left: FourierForm
    right: FourierForm

    @property
    def size(self):  # type: ignore[override]
        return self.left.size * self.right.size

    def reach(self, extent: np.ndarray, tol: float):
        tol = self._share(tol)
        return np.maximum(self.left.reach(extent, tol), self.right.reach(extent, tol))

    def exact_periods(self, d: int):
        return _of_all((self.left, self.right), d)

    def modes(self, periods: np.ndarray, tol: float):
        tol = self._share(tol)
        return self.left.modes(periods, tol) + self.right.modes(periods, tol)

    def _share(self, tol):
        """(1 + t)^2 - 1 <= 2.1 t; a constant has no error."""
        constant = any(isinstance(part, ConstantForm) for part in (self.left, self.right))
        return tol if constant else tol / 2.1

    def series(self, periods: np.ndarray, extent: np.ndarray, tol: float):
        tol = self._share(tol)
        a, b = (part.series(periods, extent, tol) for part in (self.left, self.right))
        error = self.left.size * b.error + self.right.size * a.error + a.error * b.error
        if all(1 in pair for pair in zip(a.weights.shape, b.weights.shape)):
            return Series(a.weights * b.weights, error)
        from scipy.signal import convolve  # slow to import, and rarely needed

        weights = convolve(a.weights, b.weights)
        # Rounding, by the fast Fourier transform, of all that is added up.
        lost = ROUNDING * self.size + float(-weights[weights < 0].sum())
        return Series(mirrored(_orthant(np.maximum(weights, 0.0))), error + lost)


# --- periods --------------------------------------------------------------------------------------


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


def _of_all(forms, d):
    """The periods that any of them has itself, per column."""
    columns = zip(*(form.exact_periods(d) for form in forms))
    return [[period for periods in column for period in periods] for column in columns]


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


# --- arrays whose centre is the frequency zero ----------------------------------------------------


def mirrored(orthant: np.ndarray):
    """w at j = -m..m from w at j = 0..m."""
    for axis, length in enumerate(orthant.shape):
        both = np.abs(np.arange(1 - length, length))
        orthant = np.take(orthant, both, axis=axis)
    return orthant


def _orthant(weights):
    return weights[tuple(slice(n // 2, None) for n in weights.shape)]


def _centred_in(weights, shape):
    """The same weights on a larger grid."""
    larger = np.zeros(shape)
    larger[tuple(slice((n - k) // 2, (n + k) // 2) for n, k in zip(shape, weights.shape))] = weights
    return larger
