"""Which frequencies: the Fourier space of a kernel on a box, and what a ridge in it costs."""

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from typing import Any

import numpy as np
import scipy.sparse

from ..engine import (
    MemoryLimitError,
    coordinates_bytes,
    current,
    matrix_bytes,
    namespace,
    on_device_of,
    readable,
    rows_of,
)
from ..kernels import KERNELS, Kernel, TooManyModesError
from .fourier import Fourier

# Relative to k(x, x), where none is asked for; and the smallest that rounding leaves room for.
_DEFAULT_TOL, _SMALLEST_TOL = 1e-8, 1e-13
# The box is wider than the rows, by this share of their extent on each side.
_MARGIN = 0.05
# Nonuniform transforms exist in one to three columns.
_MOST_COLUMNS = 3
# An error message tries these tolerances, and these factors of the length scale.
_LOOSER, _LONGER = 10.0 ** np.arange(-1, -13, -1), 2.0 ** np.arange(20, 0, -1)

# Tolerances of the map that are tried, the largest first; the last is as good as rounding allows.
_TOLERANCES = (*10.0 ** -np.arange(4.0, 13.0, 0.5), _SMALLEST_TOL)
# The residual is a multiple of its estimate, where rows crowd.
_SAFETY = 0.1
# The estimate takes coefficients to be as large as they can be; less may do, by this factor.
_HOPE = 1e3
# Seconds on one core of a common machine: one point in a transform of 14 digits (and, for each
# point of the grid that it is spread to, the second), one frequency in a fast Fourier transform of
# all products, one operation of linear algebra.
_POINT, _SPREAD, _FREQUENCY, _OPERATION = 6e-8, 7e-10, 2.5e-8, 5e-11
# Points along a column that a point is spread to, and the products that iterations take.
_WIDTH, _PRODUCTS = 15, 50
# Coordinates whose equations are solved directly, or which precondition the iterations.
_WRITTEN_OUT = 2000


@dataclass(frozen=True)
class Extent:
    """The smallest and the largest value in each column, and the number of rows; they add."""

    low: np.ndarray
    high: np.ndarray
    n: int
    first: Any  # the first row, which shows where rows live

    @classmethod
    def of(cls, points: Any, start: int = 0) -> "Extent":
        if getattr(points, "ndim", 1) != 2 or getattr(points.dtype, "kind", "f") == "O":
            raise TypeError("basis='fourier' needs points with numbers in every column.")
        values = points.toarray() if scipy.sparse.issparse(points) else points
        xp = namespace(values)
        # Column by column: over rows of two numbers at a time it would take ten times as long.
        columns = [values[:, a] for a in range(values.shape[1])]
        low, high = (np.array([float(end(x)) for x in columns]) for end in (xp.min, xp.max))
        return cls(low, high, points.shape[0], rows_of(points, 0, 1))

    def __add__(self, other: "Extent") -> "Extent":
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return Extent(low, high, self.n + other.n, self.first)

    def with_margin(self) -> tuple[np.ndarray, np.ndarray]:
        width = self.high - self.low
        margin = _MARGIN * np.where(width > 0, width, 1.0)
        return self.low - margin, self.high + margin


def fourier_space(
    kernel: Kernel,
    extent: Extent,
    box: Any = None,
    tol: float | None = None,
    max_rank: int | None = None,
) -> Fourier:
    """The space of a bound kernel on the box of the rows (with a margin), or on the given one."""
    form = kernel.fourier_form()
    if form is None:
        raise ValueError(f"{FourierPlan.no_series(kernel)}. Use basis='cholesky'.")
    tol = _DEFAULT_TOL if tol is None else tol
    if tol < _SMALLEST_TOL:
        raise ValueError(
            f"basis='fourier' is certified to tol={_SMALLEST_TOL:g} at best, got tol={tol:g}."
        )
    low, high = extent.with_margin() if box is None else _checked_box(box, extent)
    width = high - low
    try:
        periods = form.periods(width, tol)
        m = form.modes(periods, tol)
    except TooManyModesError as why:
        raise ValueError(_too_many(kernel, form, width, tol, max_rank, why)) from None
    active = np.flatnonzero(m) if m.any() else np.zeros(1, dtype=int)
    if len(active) > _MOST_COLUMNS:
        raise ValueError(
            f"basis='fourier' is for kernels of one to {_MOST_COLUMNS} columns; {kernel!r} looks "
            f"at {len(active)}. Choose columns with OnColumns, or use basis='cholesky'."
        )
    most = _room(len(active))
    if math.prod(2.0 * m + 1) > most:
        reason = f"about {math.prod(2.0 * m + 1):.2g} frequencies"
        raise MemoryLimitError(_too_many(kernel, form, width, tol, max_rank, reason))
    series = form.series(periods, width, tol)
    kept, error = _pruned(series, tol * form.size)
    frequencies, weights = _halves(kept, active)
    rank = 2 * len(weights) - 1
    if max_rank is not None and rank > max_rank:
        reason = f"{rank} coordinates"
        raise ValueError(_too_many(kernel, form, width, tol, max_rank, reason))
    endless = form.reach(width, tol)[0][active] == 0
    first, empty = extent.first, np.zeros(0)
    if not scipy.sparse.issparse(first):
        empty = on_device_of(empty, first, namespace(first).float64)
    return Fourier(
        kernel,
        active,
        np.where(endless, -np.inf, low[active]),
        np.where(endless, np.inf, high[active]),
        periods[active],
        frequencies,
        weights,
        float(error),
        np.stack([extent.low, extent.high]),
        empty,
    )


def _room(d: int) -> float:
    """Frequencies that fit the memory."""
    return current().limit() / _sums_bytes(1, d)


def _sums_bytes(frequencies: float, d: int) -> float:
    """Sums over rows in Fourier coordinates of d columns: products of frequencies reach twice as
    far in each column, and transforms work on grids of twice that length."""
    return 16 * 2.0 ** max(d, 1) * (2 + 2.0 ** max(d, 1)) * frequencies


def _checked_box(box: Any, extent: Extent) -> tuple[np.ndarray, np.ndarray]:
    """(low, high) from [(low, high), ...], which must hold all rows."""
    d = len(extent.low)
    try:
        ends = np.asarray(box, dtype=float)
    except (TypeError, ValueError):
        ends = np.empty(0)
    if ends.shape != (d, 2) or not np.all(np.isfinite(ends)) or np.any(ends[:, 0] > ends[:, 1]):
        raise ValueError(
            f"box must hold (low, high) for each of the {d} columns, finite and in this order, "
            f"got {box!r}."
        )
    low, high = ends.T
    for a in np.flatnonzero((extent.low < low) | (extent.high > high)):
        raise ValueError(
            f"rows reach from {extent.low[a]:.6g} to {extent.high[a]:.6g} in column {int(a)}, "
            f"outside of box={low[a]:.6g} to {high[a]:.6g}: make the box larger."
        )
    return low, high


def _pruned(series: Any, allowed: float) -> tuple[np.ndarray, float]:
    """Weights without the smallest, whose sum is an error too; frequency zero always stays."""
    w = series.weights
    ordered = np.sort(w, axis=None)
    spare = allowed - series.error
    count = int(np.searchsorted(np.cumsum(ordered), spare)) if spare > 0 else 0
    threshold = ordered[count - 1] if count else 0.0
    if count and count < ordered.size and ordered[count] == threshold:  # all of a tie, or none
        below = int(np.searchsorted(ordered, threshold))
        threshold = ordered[below - 1] if below else 0.0
    keep = w > threshold
    keep[tuple(n // 2 for n in w.shape)] = True
    return np.where(keep, w, 0.0) * keep, series.error + math.fsum(w[~keep])


def _halves(weights: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(one j of each pair, the weights of zero and of these): -j stands before 0, j after it. The
    last column decides: its frequencies are not negative, as fast real transforms have them."""
    flat, zero = weights.ravel(order="F"), weights.size // 2
    kept = zero + 1 + np.flatnonzero(flat[zero + 1 :] > 0)
    places = np.unravel_index(kept, weights.shape, order="F")
    j = np.stack(places, axis=1) - np.array(weights.shape) // 2
    return j[:, active], flat[[zero, *kept]]


def _too_many(
    kernel: Kernel, form: Any, width: np.ndarray, tol: float, max_rank: int | None, reason: object
) -> str:
    """The refusal, with what would fit: a larger tolerance, or a longer length scale."""
    most = _room(int(np.sum(width > 0))) if max_rank is None else max_rank
    advice = []
    # From cheap to dear, as long as it fits.
    looser = [*takewhile(lambda t: _count(form, width, t) <= most, _LOOSER[tol < _LOOSER])]
    if looser:
        advice.append(f"tol={looser[-1]:.0e}")
    # A kernel on a box that is shorter by a factor is one whose length is longer by it.
    longer = [*takewhile(lambda c: _count(form, width / c, tol) <= most, _LONGER)]
    if longer:
        advice.append(f"length scales {longer[-1]:.0f} times as long")
    hint = f"{' or '.join(advice)} would fit" if advice else "use a smoother kernel"
    allowed = f"memory_limit={readable(current().limit())} has room for about {most:.1e}"
    if max_rank is not None:
        allowed = f"max_rank={max_rank}"
    return (
        f"basis='fourier' with tol={tol:g} needs {reason} for {kernel!r} on a box of extent "
        f"{np.array2string(width, precision=3)}; {allowed}. Here {hint}, or basis='cholesky'."
    )


def _count(form: Any, width: np.ndarray, tol: float) -> float:
    try:
        periods = form.periods(width, tol)
        return float(math.prod(2.0 * form.modes(periods, tol) + 1))
    except TooManyModesError:
        return math.inf


# --- what a ridge in these coordinates costs ------------------------------------------------------


@dataclass(frozen=True)
class FourierPlan:
    """A map of a kernel on the box of some rows, and what a fit with it takes."""

    kernel: Kernel
    extent: Extent
    tol: float  # of the map, relative to k(x, x)
    aim: float  # the residual that this should give, relative to the targets
    frequencies: float  # in all columns together
    bytes: int  # predicted, as the seconds of one core are
    seconds: float

    @staticmethod
    def no_series(kernel: Kernel) -> str:
        """The reason why a kernel without a Fourier series has no plan."""
        known = [name for name, k in KERNELS.items() if k.fourier_form is not Kernel.fourier_form]
        return (
            f"{kernel!r} has no Fourier series: those that have one are {', '.join(known)}, and "
            "their sums, scales, products and powers"
        )

    @classmethod
    def of(
        cls, kernel: Kernel, rows: Any, n_targets: int, alpha: float, aim: float
    ) -> "FourierPlan | None":
        """The largest tolerance with which residuals should be `aim` times the targets.

        The error of a kernel value is tol / sqrt(frequencies) at most pairs of points, times
        k(x, x), and n of them add up with coefficients of t / alpha at most, of any sign. None
        where the kernel has no Fourier series in one to three columns, or not one that is so
        accurate. `rows` are points, or their Extent.
        """
        extent = rows if isinstance(rows, Extent) else Extent.of(rows)
        form = kernel.fourier_form()
        if form is None or not alpha > 0 or not form.size > 0:
            return None
        n, (low, high) = extent.n, extent.with_margin()
        wanted = _SAFETY * aim * alpha / (math.sqrt(n) * form.size)

        @cache
        def grid(i: int) -> tuple[float, int] | None:
            """(frequencies, columns) for a tolerance; None where there are too many."""
            try:
                m = form.modes(form.periods(high - low, _TOLERANCES[i]), _TOLERANCES[i])
            except (TooManyModesError, ValueError):  # or periods that have no common multiple
                return None
            return math.prod(2.0 * m + 1), max(1, int(np.count_nonzero(m)))

        def is_enough(i: int) -> bool:
            found = grid(i)
            return found is None or _TOLERANCES[i] <= wanted * math.sqrt(found[0])

        i = bisect_left(range(len(_TOLERANCES)), True, key=is_enough)
        if i == len(_TOLERANCES) or grid(i) is None:
            i -= 1  # less may do
        found = None if i < 0 else grid(i)
        if found is None:
            return None
        (frequencies, d), tol = found, float(_TOLERANCES[i])
        if d > _MOST_COLUMNS or tol > _HOPE * wanted * math.sqrt(frequencies):
            return None
        return cls(
            kernel,
            extent,
            tol,
            aim,
            frequencies,
            int(
                _sums_bytes(frequencies, d)
                + coordinates_bytes(n, 2 * d + 8 * n_targets)
                + matrix_bytes(int(min(frequencies, _WRITTEN_OUT)), copies=3)
            ),
            _seconds(n, d, frequencies, n_targets),
        )

    def finer(self, n_targets: int, alpha: float, aim: float) -> "FourierPlan | None":
        """The same for a smaller residual; None where that takes no smaller tolerance."""
        found = FourierPlan.of(self.kernel, self.extent, n_targets, alpha, aim)
        return None if found is None or found.tol >= self.tol else found

    def space(self) -> Fourier:
        return fourier_space(self.kernel, self.extent, tol=self.tol)


def _seconds(n: int, d: int, frequencies: float, n_targets: int) -> float:
    """Three transforms for every target and one for the rows; then the equations."""
    transforms: float = (1 + 2 * n_targets) * n * (_POINT + _SPREAD * _WIDTH**d)
    written = min(frequencies, _WRITTEN_OUT)
    equations = _OPERATION * written**3 + 1e-8 * written**2
    if frequencies > _WRITTEN_OUT:
        equations += _PRODUCTS * n_targets * _FREQUENCY * 2**d * frequencies
    return transforms + equations
