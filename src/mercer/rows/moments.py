"""Sums over rows of coordinates, from which maps and methods are solved.

They can be added, so that rows are passed over once, in panels, in a stream or on a cluster.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..engine import Array, gram, namespace, on_device_of, positive_part, row_norms


@dataclass
class Spread:
    """Number, mean, and sums about the mean, added without loss of digits; or sums about zero.

    About a common mean m, sum (phi - m)(phi - m)' = scatter + n d d' with d = mean - m, and
    sum (phi - m) t' = cross + d target': nobody needs to know the mean before the pass. With
    weights n is their sum, and every other sum is weighted.
    """

    n: float
    mean: Any  # the point that sums are about; None: zero
    scatter: Any  # sum (phi - mean)(phi - mean)'
    largest: float  # |phi|^2
    cross: Any = None  # sum (phi - mean) t'
    target: Any = None  # sum t
    rho2: float = 0.0  # sum of the residuals
    squares: Any = None  # of t, one sum per column

    @property
    def spread(self) -> "Spread":
        return self

    @staticmethod
    def sum_of_rows(V: Array, weights: Array | None = None) -> Any:
        """The sum of the rows, added in double precision: its rounding grows with their number."""
        xp, V = namespace(V), V if weights is None else V * weights[:, None]
        return xp.astype(xp.sum(V, axis=0, dtype=xp.float64), V.dtype, copy=False)

    @classmethod
    def of(
        cls,
        Phi: Array,
        T: Array | None = None,
        weights: Array | None = None,
        rho2: Array | None = None,
        *,
        centred: bool = True,
    ) -> "Spread":
        xp, mean, rows, target = namespace(Phi), None, Phi, None
        n = Phi.shape[0] if weights is None else float(xp.sum(weights))
        if centred:
            mean = cls.sum_of_rows(Phi, weights) / (n if n > 0 else 1.0)
            rows = Phi - mean[None, :]
        if T is not None:
            target = cls.sum_of_rows(T, weights)
        if weights is not None:
            root = xp.sqrt(weights)[:, None]
            rows, T = rows * root, None if T is None else T * root
        return cls(
            n,
            mean,
            gram(rows),
            float(xp.max(row_norms(Phi, xp))),
            None if T is None else gram(rows, T),
            target,
            0.0 if rho2 is None else float(xp.sum(positive_part(rho2))),
            None if T is None else _squares(T),
        )

    @classmethod
    def uncentred(
        cls, Phi: Array, T: Array | None = None, weights: Array | None = None
    ) -> "Spread":
        """Sums about zero: n, Phi'W Phi and Phi'W T."""
        return cls.of(Phi, T, weights, centred=False)

    def __add__(self, other: "Spread") -> "Spread":
        n, mean, scatter = self.n + other.n, None, self.scatter + other.scatter
        a, b = self.cross, other.cross
        if self.mean is not None:
            apart, share = other.mean - self.mean, other.n / n if n > 0 else 0.0
            mean = self.mean + apart * share
            scatter += (apart * (self.n * share))[:, None] * apart[None, :]
            a, b = self.cross_about(mean), other.cross_about(mean)
        return Spread(
            n,
            mean,
            scatter,
            max(self.largest, other.largest),
            None if a is None else a + b,
            None if a is None else self.target + other.target,
            self.rho2 + other.rho2,
            None if self.squares is None else self.squares + other.squares,
        )

    def cross_about(self, point: Any) -> Any:
        """sum (phi - point) t'."""
        if self.cross is None:
            return None
        return self.cross + (self.mean - point)[:, None] * self.target[None, :]

    def rotated(self, V: Array | None) -> "Spread":
        """The same of Phi V."""
        if V is None:
            return self
        cross = None if self.cross is None else V.T @ self.cross
        return replace(self, mean=self.mean @ V, scatter=V.T @ self.scatter @ V, cross=cross)

    def moved(self, origin: Array | None) -> "Spread":
        """The same of Phi - origin."""
        return self if origin is None else replace(self, mean=self.mean - origin)

    def about_zero(self) -> "Spread":
        """The same sums about zero."""
        if self.mean is None:
            return self
        outer = (self.mean * self.n)[:, None] * self.mean[None, :]
        cross = self.cross_about(0 * self.mean)
        return replace(self, mean=None, scatter=self.scatter + outer, cross=cross)


def _squares(T: Array) -> Any:
    with np.errstate(over="ignore"):  # of a bound, which may be infinite
        return Spread.sum_of_rows(T * T)


@dataclass
class ByClass:
    """A Spread with one target per class, where the classes are those met so far."""

    labels: Any
    spread: Spread

    @classmethod
    def of(cls, Phi: Any, labels: Any, rho2: Any = None) -> "ByClass":
        labels, codes = np.unique(labels, return_inverse=True)
        one_hot = on_device_of(np.eye(len(labels))[codes], Phi)
        return cls(labels, Spread.of(Phi, one_hot, rho2=rho2))

    def __add__(self, other: "ByClass") -> "ByClass":
        labels = np.unique(np.concatenate([self.labels, other.labels]))
        return ByClass(labels, self.over(labels) + other.over(labels))

    def over(self, labels: Any) -> Spread:
        """The sums with one target per label, zero where it was not met."""
        sums = self.spread
        where = np.eye(len(labels))[np.searchsorted(labels, self.labels)]
        where = on_device_of(where, sums.cross)
        sums = replace(sums, cross=sums.cross @ where, target=sums.target @ where)
        return replace(sums, squares=sums.squares @ where)

    def rotated(self, V: Array | None) -> "ByClass":
        return ByClass(self.labels, self.spread.rotated(V))

    def moved(self, origin: Array | None) -> "ByClass":
        return ByClass(self.labels, self.spread.moved(origin))
