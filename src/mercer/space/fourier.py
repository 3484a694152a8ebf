"""Fourier: the space of a stationary kernel in few columns, known before any data.

On a box the kernel is sum_j w_j cos(2 pi (j / P) . (x - z)) up to an error that is known in advance
(kernels/spectral.py). So its coordinates are cosines and sines,

    sqrt(w_0),  sqrt(2 w_j) cos(2 pi (j / P) . x),  sqrt(2 w_j) sin(2 pi (j / P) . x),

one pair for each j and -j together; sums over rows and values of linear functions are nonuniform
Fourier transforms (engine/nufft.py).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import scipy.sparse

from ..engine import (
    Array,
    MemoryLimitError,
    as_numpy,
    current,
    device,
    matrix_bytes,
    namespace,
    nufft,
    on_device_of,
    readable,
    rows_of,
    tiles,
)
from ..kernels import Kernel
from ..rows import Spread
from .certificate import Radii
from .protocol import ClosedSpace

# Transforms are this much more accurate than the map.
_FINER = 1e-3
# Rows that are transformed at once.
_ROWS = 1 << 22


@dataclass(eq=False, repr=False)
class Fourier(ClosedSpace):
    """Cosines and sines on a grid of frequencies."""

    kernel: Kernel  # bound to its data
    columns: np.ndarray  # positions of the columns that the kernel looks at
    # The box, one number per column of these; infinite where the kernel is periodic.
    low: np.ndarray
    high: np.ndarray
    periods: np.ndarray  # P, one per column
    frequencies: np.ndarray  # integers of shape (h, columns): one j of each pair j, -j
    weights_of_modes: np.ndarray  # w_0 and w_j of the frequencies, shape (1 + h,)
    error: float = field()  # |k(x, z) - phi(x) . phi(z)| at most, for any two points of the box
    corners: np.ndarray  # two rows of all columns between which the training rows lie
    empty: Any  # no numbers, on the device of the rows, though frequencies stay on the host

    # The best accuracy of transforms.
    finest = nufft.FINEST

    @property
    def rank(self) -> int:
        return 1 + 2 * len(self.frequencies)

    @property
    def example(self) -> Any:
        return self.empty

    def check_matrix(self) -> None:
        """Refuse before sums of all pairs of coordinates are written out."""
        needed, limit = matrix_bytes(self.rank, copies=4), current().limit()
        if needed > limit:
            raise MemoryLimitError(
                f"the map has {self.rank} Fourier coordinates, and all pairs of them need "
                f"{readable(needed)}; memory_limit allows {readable(limit)}. Use a larger tol "
                "(fewer coordinates); KernelRidge needs no pairs."
            )

    @property
    def reach(self) -> tuple[int, ...]:
        """m: the largest |j| in each column."""
        if not len(self.frequencies):
            return (0,) * len(self.columns)
        return tuple(int(k) for k in np.abs(self.frequencies).max(axis=0))

    @property
    def amplitudes(self) -> np.ndarray:
        """Factors of the constant, and of cosine and sine of each frequency."""
        w = self.weights_of_modes
        roots: np.ndarray = np.sqrt(np.concatenate([w[:1], 2 * w[1:]]))
        return roots

    @property
    def unseen(self) -> float:
        """k(x, x) - |phi(x)|^2, the same at every point."""
        size = float(as_numpy(self.kernel.diagonal(self.corners[:1]))[0])
        return max(0.0, size - math.fsum(self.amplitudes**2))

    @property
    def accuracy(self) -> float:
        """The requested accuracy of transforms: relative to the size of their result."""
        size = math.fsum(self.amplitudes**2)
        return max(self.finest, min(1e-9, _FINER * self.error / size if size else 0.0))

    @property
    def total_error(self) -> float:
        """How far phi(x) . phi(z) can be from k(x, z): with the transforms' error, and angles'."""
        size = float(np.sum(self.amplitudes**2)) + self.unseen
        return self.error + (self.accuracy + self.roundoff()) * size

    # --- coordinates ------------------------------------------------------------------------------

    def phases(self, X: Array) -> Any:
        """The columns in units of their periods; rows outside the box are refused.

        On the host, or on the device of X where transforms run there.
        """
        host = not scipy.sparse.issparse(X) and not nufft.runs_on(X)
        columns = self._columns(as_numpy(X) if host else X)
        xp = namespace(columns[0])
        # Column by column, and stored so: steps over rows of two numbers take ten times as long.
        found = []
        for a, x in enumerate(columns):
            x, period = xp.asarray(x, dtype=xp.float64), float(self.periods[a])
            self._check_inside(x, a, xp)
            if np.isfinite(self.low[a]):
                found.append((x - float(self.low[a] / 2 + self.high[a] / 2)) / period)
            else:  # the remainder is exact; the quotient of a large x is not
                period = xp.asarray(period, dtype=x.dtype, device=device(x))
                t = xp.remainder(x, period) / period
                found.append(t - xp.round(t))
        return xp.stack(found, axis=0).T

    def _columns(self, X: Any) -> list[Any]:
        """The columns that the kernel looks at."""
        if scipy.sparse.issparse(X):
            return list(X[:, self.columns].toarray().T)
        return [X[:, int(column)] for column in self.columns]

    def contains(self, X: Array) -> np.ndarray:
        """Whether each row lies in the box."""
        inside = np.ones(X.shape[0], dtype=bool)
        for x, low, high in zip(map(as_numpy, self._columns(X)), self.low, self.high):
            inside &= (x >= low) & (x <= high)
        return inside

    def _check_inside(self, x: Array, a: int, xp: Any) -> None:
        if not x.shape[0]:
            return
        if float(xp.min(x)) >= self.low[a] and float(xp.max(x)) <= self.high[a]:
            return
        x = as_numpy(x)
        i = int(np.flatnonzero((x < self.low[a]) | (x > self.high[a]))[0])
        raise ValueError(
            f"row {i} has {x[i]:.6g} in column {int(self.columns[a])}, outside of "
            f"[{self.low[a]:.6g}, {self.high[a]:.6g}]: the box of the training rows and its "
            "margin, in which basis='fourier' holds. Fit with rows that reach as far (or "
            "box=[(low, high), ...]), or use basis='cholesky'."
        )

    def panels(self, X: Array) -> Iterator[tuple[Any, slice]]:
        amplitudes, h = self.amplitudes, len(self.frequencies)
        turns = 2 * math.pi * self.frequencies.T
        for where in tiles.panel_slices(X, self.rank):
            t = as_numpy(self.phases(rows_of(X, where.start, where.stop)))
            Phi = np.empty((t.shape[0], self.rank))
            Phi[:, 0] = amplitudes[0]
            angle = t @ turns
            np.cos(angle, out=Phi[:, 1 : 1 + h])
            np.sin(angle, out=Phi[:, 1 + h :])
            Phi[:, 1 : 1 + h] *= amplitudes[1:]
            Phi[:, 1 + h :] *= amplitudes[1:]
            yield on_device_of(Phi, self.empty), where

    def squared_norms(self, X: Array) -> Any:
        self.phases(X)  # which refuses rows outside
        norms = tiles.allocate(self.empty, (X.shape[0],))
        norms[:] = math.fsum(self.amplitudes**2)
        return norms

    # --- linear functions -------------------------------------------------------------------------

    def evaluate(self, X: Array, coef: Array, *, eps: float | None = None) -> Any:
        """coordinates(X) @ coef for a matrix coef, by transforms of this accuracy."""
        C, n = self.coefficients(as_numpy(coef)), X.shape[0]
        eps = self.accuracy if eps is None else eps
        if nufft.runs_on(X):
            return nufft.values(self.phases(X), C, eps).T
        f = np.empty((n, len(C)))
        for a, b in tiles.cuts(n, _ROWS):
            f[a:b] = nufft.values(self.phases(rows_of(X, a, b)), C, eps).T
        return on_device_of(f, self.empty)

    def images(self, X: Array, V: Array, *, eps: float | None = None) -> np.ndarray:
        """coordinates(X).T @ V for a matrix V on the host, by transforms of this accuracy."""
        total, eps = np.zeros((self.rank, V.shape[1])), self.accuracy if eps is None else eps
        for a, b in tiles.cuts(X.shape[0], _ROWS):
            t, v = self.phases(rows_of(X, a, b)), np.ascontiguousarray(V[a:b].T)
            total += self.from_sums(nufft.sums(t, v, self.reach, eps))
        return total

    def coefficients(self, coef: Array) -> np.ndarray:
        """C with phi(x) . coef = sum_j C_j exp(2 pi i j . t), j = -m..m, per column of coef."""
        h, m = len(self.frequencies), self.reach
        C = np.zeros((coef.shape[1], *[2 * k + 1 for k in m]), dtype=complex)
        flat = C.reshape(coef.shape[1], -1)
        middle, places = flat.shape[1] // 2, _places(self.frequencies, m)
        scaled = (coef.T[:, 1 : 1 + h] - 1j * coef.T[:, 1 + h :]) * self.amplitudes[1:] / 2
        flat[:, middle + places], flat[:, middle - places] = scaled, np.conj(scaled)
        flat[:, middle] = coef[0] * self.amplitudes[0]
        return C

    def from_sums(self, F: Any) -> np.ndarray:
        """Phi'v for v with F_k = sum_i v_i exp(-2 pi i k . t_i), k = -m..m; one column per F."""
        flat, a = F.reshape(len(F), -1), self.amplitudes
        middle = flat.shape[1] // 2
        mine = flat[:, middle + _places(self.frequencies, self.reach)]
        zero = flat[:, middle, None].real * a[0]
        return np.concatenate([zero, mine.real * a[1:], -mine.imag * a[1:]], axis=1).T

    # --- sums over rows ---------------------------------------------------------------------------

    # Phi'Phi is Toeplitz up to the weights: its entries depend on j - l and j + l alone, and all
    # follow from g_k = sum_i w_i exp(-2 pi i k . t_i) for k = -2m..2m, one nonuniform transform.

    def accuracy_for(self, alpha: float, n: int) -> float:
        """Accuracy of transforms that leaves the equations of n rows positive definite."""
        size = max(float(np.sum(self.amplitudes**2)), 1e-300)
        needed = 1e-2 * alpha / (n * size) if alpha > 0 else 0.0
        return max(self.finest, min(self.accuracy, needed))

    def sums(
        self, points: Array, T: Any = None, weights: Any = None, start: int = 0, *, eps: Any = None
    ) -> "_FourierSums":
        """Sums of a block of rows, its targets and its weights: the step of a fold."""
        eps = self.accuracy if eps is None else eps

        def part(a: int, b: int) -> _FourierSums:
            mine = (None if v is None else as_numpy(v)[a:b] for v in (T, weights))
            return self._sums(rows_of(points, a, b), eps, *mine)

        return reduce(add, (part(a, b) for a, b in tiles.cuts(points.shape[0], _ROWS)))

    def _sums(self, points: Array, eps: float, T: Any, weights: Any) -> "_FourierSums":
        m, t = self.reach, self.phases(points)
        T = None if T is None else np.asarray(T, dtype=np.float64)
        v = np.ones((1 if T is None else 1 + T.shape[1], t.shape[0]))  # weights, weighted targets
        if weights is not None:
            v[0] = weights
        n, double = float(v[0].sum()), tuple(2 * k for k in m)
        if T is None:
            return _FourierSums(t.shape[0], n, nufft.sums(t, v, double, eps)[0])
        v[1:] = T.T if weights is None else T.T * v[0]
        target, squares = v[1:].sum(axis=1), np.array([x @ y for x, y in zip(v[1:], T.T)])
        # Weights and targets share transforms, and so the accuracy of the larger of them.
        largest = np.array([max(x.max(), -x.min()) for x in v[1:]])
        scale = np.where(largest > 0, largest, 1.0) / max(float(v[0].max()), 1e-300)
        v[1:] /= scale[:, None]
        F = nufft.sums(t, v, double, eps)
        cross = np.stack([_middle(f, m) * s for f, s in zip(F[1:], scale)])
        return _FourierSums(t.shape[0], n, F[0], cross, target, squares)

    def pairs(self, generator: np.ndarray, some: Any = slice(None)) -> np.ndarray:
        """Phi'W Phi in the coordinates of zero and of some frequencies, from g_k, k = -2m..2m."""
        frequencies, own = self.frequencies[some], self.amplitudes
        amplitudes = np.concatenate([own[:1], own[1:][some]])
        m, h = tuple(k // 2 for k in generator.shape), len(frequencies)
        j = np.concatenate([[0], _places(frequencies, m)])
        A = np.empty((1 + 2 * h, 1 + 2 * h))
        flat, middle = generator.ravel(), generator.size // 2
        apart = flat[middle + j[:, None] - j[None, :]]  # g at j - l
        along = flat[middle + j[:, None] + j[None, :]]  # g at j + l
        A[: 1 + h, : 1 + h] = (apart.real + along.real) / 2
        A[1 + h :, 1 + h :] = (apart.real - along.real)[1:, 1:] / 2
        # cos(j) sin(l) = (sin(l + j) + sin(l - j)) / 2, and the sum of sines is -Im g.
        A[: 1 + h, 1 + h :] = (apart.imag - along.imag)[:, 1:] / 2
        A[1 + h :, : 1 + h] = A[: 1 + h, 1 + h :].T
        scale = np.concatenate([amplitudes, amplitudes[1:]])
        A *= scale[:, None]
        A *= scale[None, :]
        return A

    # --- the certificate --------------------------------------------------------------------------

    def radii(self, X: Any, diagonal: Any) -> Radii:
        self.phases(X)  # which refuses rows outside
        return super().radii(X, diagonal)

    def roundoff(self) -> float:
        """Angles lose as many units as there are turns: on average over the weights."""
        w = self.weights_of_modes
        turns = 2 * float(w[1:] @ np.abs(self.frequencies).sum(axis=1)) if len(w) > 1 else 0.0
        turns /= max(math.fsum(self.amplitudes**2), float(np.finfo(float).tiny))
        units: float = self.rank**0.5 + self.kernel.rounding(self.corners) + 2 * math.pi * turns
        return 0.5 * float(np.finfo(float).eps) * units


@dataclass
class _FourierSums:
    """Sums over rows with weights w and targets t; without them w = 1, and there is no t."""

    rows: int
    n: float  # sum w
    generator: np.ndarray  # g_k, k = -2m..2m
    # sum_i w_i t_i exp(-2 pi i k . t_i), k = -m..m, one array per target
    cross: np.ndarray | None = None
    target: Any = None  # sum w t
    squares: Any = None  # sum w t^2

    def __add__(self, other: "_FourierSums") -> "_FourierSums":
        pairs = zip(vars(self).values(), vars(other).values())
        sums: list[Any] = [None if a is None else a + b for a, b in pairs]
        return _FourierSums(*sums)

    def cross_of(self, space: Fourier) -> np.ndarray | None:
        """Phi'W T."""
        return None if self.cross is None else space.from_sums(self.cross)

    def spread(self, space: Fourier) -> Spread:
        """The sums that other methods know, from Phi'w and Phi'W Phi, written out."""
        n = self.rows if self.n == self.rows else self.n
        first = space.from_sums(_middle(self.generator, space.reach)[None])[:, 0]
        mean, cross = first / n, self.cross_of(space)
        scatter = space.pairs(self.generator) - np.outer(first, mean)
        if cross is not None:
            cross = cross - np.outer(mean, self.target)
        largest, parts = float(np.sum(space.amplitudes**2)), (mean, scatter, cross, self.target)
        moved: list[Any] = [None if p is None else on_device_of(p, space.example) for p in parts]
        mean, scatter, cross, target = moved
        return Spread(n, mean, scatter, largest, cross, target, n * space.unseen)


def _middle(F: np.ndarray, m: tuple[int, ...]) -> np.ndarray:
    """Frequencies -m..m of -2m..2m."""
    return F[tuple(slice(k, F.shape[a] - k) for a, k in enumerate(m))]


def _places(frequencies: np.ndarray, m: tuple[int, ...]) -> np.ndarray:
    """Places of frequencies in a flattened grid -m..m, counted from its middle: they add."""
    strides = np.cumprod([1, *(2 * k + 1 for k in m[:0:-1])])[::-1]
    places: np.ndarray = frequencies @ strides
    return places
