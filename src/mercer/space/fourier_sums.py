"""Sums over rows in Fourier coordinates: a few sums of exponentials, which add.

Phi'Phi is Toeplitz up to the weights: its entries depend on j - l and j + l alone, and all of them
follow from g_k = sum_i w_i exp(-2 pi i k . t_i) for k = -2m..2m, one nonuniform transform.
"""

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from ..engine import Array, as_numpy, nufft, on_device_of, rows_of, tiles
from ..rows import Moments, Spread
from .fourier import ROWS, Fourier


@dataclass
class FourierSums:
    """Sums over rows with weights w and targets t; without them w = 1, and there is no t.

    generator : g_k, k = -2m..2m
    cross : sum_i w_i t_i exp(-2 pi i k . t_i), k = -m..m, one array per target
    """

    rows: int
    n: float  # sum w
    generator: np.ndarray
    cross: np.ndarray | None = None
    target: Any = None  # sum w t
    squares: Any = None  # sum w t^2

    def __add__(self, other: "FourierSums") -> "FourierSums":
        def added(a, b):
            return None if a is None else a + b

        return FourierSums(
            self.rows + other.rows,
            self.n + other.n,
            self.generator + other.generator,
            added(self.cross, other.cross),
            added(self.target, other.target),
            added(self.squares, other.squares),
        )

    # --- the sums that other methods know ---------------------------------------------------------

    def first(self, space: Fourier) -> np.ndarray:
        """Phi'w."""
        return space.from_sums(_middle(self.generator, space.reach)[None])[:, 0]

    def second(self, space: Fourier) -> np.ndarray:
        """Phi'W Phi, written out."""
        return all_pairs(space.frequencies, space.amplitudes, self.generator)

    def cross_of(self, space: Fourier) -> np.ndarray | None:
        """Phi'W T."""
        return None if self.cross is None else space.from_sums(self.cross)

    def moments(self, space: Fourier) -> Moments:
        parts = (self.first(space), self.second(space), self.cross_of(space), self.target)
        return Moments(self.n, *_moved(parts, space))

    def spread(self, space: Fourier) -> Spread:
        n, first = int(self.n), self.first(space)
        mean, cross = first / n, self.cross_of(space)
        scatter = self.second(space) - np.outer(first, mean)
        if cross is not None:
            cross = cross - np.outer(mean, self.target)
        mean, scatter, cross, target = _moved((mean, scatter, cross, self.target), space)
        largest = float(np.sum(space.amplitudes**2))
        return Spread(n, mean, scatter, largest, cross, target, n * space.unseen)


def _moved(parts, space):
    """Sums where the coordinates are."""
    return [None if part is None else on_device_of(part, space.example) for part in parts]


@dataclass(frozen=True)
class FourierStep:
    """The step of a fold: sums of a block of rows, its targets and its weights."""

    space: Fourier
    eps: float | None = None  # accuracy of the transforms; None: the space's own

    def __call__(self, points, T=None, weights=None, start=0):
        def part(a: int, b: int):
            mine = (None if v is None else as_numpy(v)[a:b] for v in (T, weights))
            return self._of(rows_of(points, a, b), *mine)

        return reduce(add, (part(a, b) for a, b in tiles.cuts(points.shape[0], ROWS)))

    def _of(self, points, T, weights):
        m, t = self.space.reach, self.space.phases(points)
        T = None if T is None else np.asarray(T, dtype=np.float64)
        v = np.ones((1 if T is None else 1 + T.shape[1], t.shape[0]))  # weights, weighted targets
        if weights is not None:
            v[0] = weights
        n, double = float(v[0].sum()), tuple(2 * k for k in m)
        eps = self.space.accuracy if self.eps is None else self.eps
        if T is None:
            return FourierSums(t.shape[0], n, nufft.sums(t, v, double, eps)[0])
        v[1:] = T.T if weights is None else T.T * v[0]
        target, squares = v[1:].sum(axis=1), np.array([x @ y for x, y in zip(v[1:], T.T)])
        # Weights and targets share transforms, and so the accuracy of the larger of them.
        largest = np.array([max(x.max(), -x.min()) for x in v[1:]])
        scale = np.where(largest > 0, largest, 1.0) / max(float(v[0].max()), 1e-300)
        v[1:] /= scale[:, None]
        F = nufft.sums(t, v, double, eps)
        cross = np.stack([_middle(f, m) * s for f, s in zip(F[1:], scale)])
        return FourierSums(t.shape[0], n, F[0], cross, target, squares)


def all_pairs(frequencies: Array, amplitudes: np.ndarray, generator: np.ndarray) -> np.ndarray:
    """Phi'W Phi in the coordinates of zero and of these frequencies, from g_k, k = -2m..2m.

    `amplitudes` are those of zero and of the frequencies.
    """
    m, h = tuple(k // 2 for k in generator.shape), len(frequencies)
    with_zero = np.concatenate([np.zeros((1, len(m)), dtype=int), frequencies])
    A = np.empty((1 + 2 * h, 1 + 2 * h))
    flat = generator.ravel()
    apart = flat[_pairs(with_zero, -with_zero, m)]  # g at j - l
    along = flat[_pairs(with_zero, with_zero, m)]  # g at j + l
    A[: 1 + h, : 1 + h] = (apart.real + along.real) / 2
    A[1 + h :, 1 + h :] = (apart.real - along.real)[1:, 1:] / 2
    # cos(j) sin(l) = (sin(l + j) + sin(l - j)) / 2, and the sum of sines is -Im g.
    A[: 1 + h, 1 + h :] = (apart.imag - along.imag)[:, 1:] / 2
    A[1 + h :, : 1 + h] = A[: 1 + h, 1 + h :].T
    scale = np.concatenate([amplitudes, amplitudes[1:]])
    A *= scale[:, None]
    A *= scale[None, :]
    return A


def _middle(F, m):
    """Frequencies -m..m of -2m..2m."""
    return F[tuple(slice(k, F.shape[a] - k) for a, k in enumerate(m))]


def _pairs(left, right, m):
    """Positions of left_i + right_j in a flattened grid -m..m."""
    shape = tuple(2 * k + 1 for k in m)
    strides = np.cumprod([1, *shape[:0:-1]])[::-1]
    centre = int(np.dot(m, strides))
    return (left @ strides)[:, None] + (right @ strides)[None, :] + centre
