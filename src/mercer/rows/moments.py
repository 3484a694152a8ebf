"""Sums over rows of coordinates, from which maps and methods are solved.

Both kinds can be added, so that rows are passed over once, in panels, in a stream or on a cluster.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..engine import (
    Array,
    gram,
    namespace,
    on_device_of,
    positive_part,
    row_norms,
    transposed_product,
)


@dataclass
class Moments:
    """Weighted sums over rows: n = 1'w, first = Phi'w, second = Phi'WPhi, cross = Phi'WT."""

    n: float
    first: Any
    second: Any
    cross: Any = None
    target: Any = None  # T'w
    squares: Any = None  # of T, one sum per column

    @classmethod
    def of(cls, Phi: Array, T: Array | None = None, weights: Array | None = None):
        xp = namespace(Phi)
        if weights is None:
            total, root = Phi.shape[0], None
            first = xp.sum(Phi, axis=0)
            target = None if T is None else xp.sum(T, axis=0)
        else:
            total, root = float(xp.sum(weights)), xp.sqrt(weights)[:, None]
            first = xp.sum(Phi * weights[:, None], axis=0)
            target = None if T is None else weights @ T
        rooted = Phi if root is None else Phi * root
        cross = squares = None
        if T is not None:
            T = T if root is None else T * root
            cross, squares = transposed_product(rooted, T), _squares(T)
        return cls(total, first, gram(rooted), cross, target, squares)

    def __add__(self, other):
        return Moments(
            self.n + other.n,
            self.first + other.first,
            self.second + other.second,
            None if self.cross is None else self.cross + other.cross,
            None if self.target is None else self.target + other.target,
            None if self.squares is None else self.squares + other.squares,
        )

    @property
    def mean(self):
        return self.first / self.n

    def scatter(self):
        """sum_i (phi_i - mean)(phi_i - mean)'."""
        return self.second - self.first[:, None] * self.mean[None, :]


@dataclass
class Spread:
    """Number, mean, and sums about the mean, added without loss of digits.

    About a common mean m, sum (phi - m)(phi - m)' = scatter + n d d' with d = mean - m, and
    sum (phi - m) t' = cross + d target': nobody needs to know the mean before the pass.
    """

    n: float
    mean: Any
    scatter: Any
    largest: float  # |phi|^2
    cross: Any = None  # sum (phi - mean) t'
    target: Any = None  # sum t
    rho2: float = 0.0  # sum of the residuals
    squares: Any = None  # of t, one sum per column

    @property
    def spread(self):
        return self

    @classmethod
    def of(
        cls,
        Phi: Array,
        T: Array | None = None,
        weights: Array | None = None,
        rho2: Array | None = None,
    ):
        """With weights n is their sum, and every other sum is weighted."""
        xp = namespace(Phi)
        if weights is None:
            n, mean = Phi.shape[0], xp.mean(Phi, axis=0)
            target = None if T is None else xp.sum(T, axis=0)
            centred = Phi - mean[None, :]
        else:
            n, root = float(xp.sum(weights)), xp.sqrt(weights)[:, None]
            mean = weights @ Phi / (n if n > 0 else 1.0)
            target = None if T is None else weights @ T
            centred, T = (Phi - mean[None, :]) * root, None if T is None else T * root
        return cls(
            n,
            mean,
            gram(centred),
            float(xp.max(row_norms(Phi, xp))),
            None if T is None else transposed_product(centred, T),
            target,
            0.0 if rho2 is None else float(xp.sum(positive_part(rho2))),
            None if T is None else _squares(T),
        )

    def __add__(self, other):
        n, apart = self.n + other.n, other.mean - self.mean
        share = other.n / n if n > 0 else 0.0
        mean = self.mean + apart * share
        a, b = self.cross_about(mean), other.cross_about(mean)
        both = apart[:, None] * apart[None, :] * (self.n * share)
        return Spread(
            n,
            mean,
            self.scatter + other.scatter + both,
            max(self.largest, other.largest),
            None if a is None else a + b,
            None if a is None else self.target + other.target,
            self.rho2 + other.rho2,
            None if self.squares is None else self.squares + other.squares,
        )

    def cross_about(self, point: Any):
        """sum (phi - point) t'."""
        if self.cross is None:
            return None
        return self.cross + (self.mean - point)[:, None] * self.target[None, :]

    def rotated(self, V: Array):
        """The same of Phi V."""
        if V is None:
            return self
        cross = None if self.cross is None else V.T @ self.cross
        return replace(self, mean=self.mean @ V, scatter=V.T @ self.scatter @ V, cross=cross)

    def moved(self, origin: Array | None):
        """The same of Phi - origin."""
        return self if origin is None else replace(self, mean=self.mean - origin)

    def moments(self):
        """The same sums about zero."""
        outer = self.mean[:, None] * self.mean[None, :] * self.n
        return Moments(
            self.n,
            self.mean * self.n,
            self.scatter + outer,
            self.cross_about(0 * self.mean),
            self.target,
            self.squares,
        )


def _squares(T):
    with np.errstate(over="ignore"):  # of a bound, which may be infinite
        return namespace(T).sum(T * T, axis=0)


@dataclass
class ByClass:
    """A Spread with one target per class, where the classes are those met so far."""

    labels: Any
    spread: Spread

    @classmethod
    def of(cls, Phi: Any, labels: Any, rho2: Any = None):
        labels, codes = np.unique(labels, return_inverse=True)
        one_hot = on_device_of(np.eye(len(labels))[codes], Phi)
        return cls(labels, Spread.of(Phi, one_hot, rho2=rho2))

    def __add__(self, other):
        labels = np.unique(np.concatenate([self.labels, other.labels]))
        return ByClass(labels, self.over(labels) + other.over(labels))

    def over(self, labels: Any):
        """The sums with one target per label, zero where it was not met."""
        sums = self.spread
        where = np.eye(len(labels))[np.searchsorted(labels, self.labels)]
        where = on_device_of(where, sums.cross)
        sums = replace(sums, cross=sums.cross @ where, target=sums.target @ where)
        return replace(sums, squares=sums.squares @ where)

    def rotated(self, V: Array):
        return ByClass(self.labels, self.spread.rotated(V))

    def moved(self, origin: Array | None):
        return ByClass(self.labels, self.spread.moved(origin))
