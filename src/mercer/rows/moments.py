"""Sums over rows of coordinates, from which maps and methods are solved.

Both kinds can be added, so that rows are passed over once, in panels, in a stream or on a cluster.
"""

from dataclasses import dataclass, replace
from typing import Any

from ..engine.arrays import gram, namespace, row_norms, transposed_product


@dataclass
class Moments:
    """Weighted sums over rows: n = 1'w, first = Phi'w, second = Phi'WPhi, cross = Phi'WT."""

    n: float
    first: Any
    second: Any
    cross: Any = None
    target: Any = None  # T'w

    @classmethod
    def of(cls, Phi, T=None, weights=None):
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
        cross = None
        if T is not None:
            cross = transposed_product(rooted, T if root is None else T * root)
        return cls(total, first, gram(rooted), cross, target)

    def __add__(self, other):
        return Moments(
            self.n + other.n,
            self.first + other.first,
            self.second + other.second,
            None if self.cross is None else self.cross + other.cross,
            None if self.target is None else self.target + other.target,
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

    n: int
    mean: Any
    scatter: Any
    largest: float  # |phi|^2
    cross: Any = None  # sum (phi - mean) t'
    target: Any = None  # sum t
    rho2: float = 0.0  # sum of the residuals

    @classmethod
    def of(cls, Phi, T=None, rho2=None):
        xp = namespace(Phi)
        mean = xp.mean(Phi, axis=0)
        centred = Phi - mean[None, :]
        return cls(
            Phi.shape[0],
            mean,
            gram(centred),
            float(xp.max(row_norms(Phi, xp))),
            None if T is None else transposed_product(centred, T),
            None if T is None else xp.sum(T, axis=0),
            0.0 if rho2 is None else float(xp.sum(xp.where(rho2 > 0, rho2, 0 * rho2))),
        )

    def __add__(self, other):
        n, apart = self.n + other.n, other.mean - self.mean
        mean = self.mean + apart * (other.n / n)
        a, b = self._about(mean), other._about(mean)
        both = apart[:, None] * apart[None, :] * (self.n * other.n / n)
        return Spread(
            n,
            mean,
            self.scatter + other.scatter + both,
            max(self.largest, other.largest),
            None if a is None else a + b,
            None if a is None else self.target + other.target,
            self.rho2 + other.rho2,
        )

    def _about(self, point):
        """sum (phi - point) t'."""
        if self.cross is None:
            return None
        return self.cross + (self.mean - point)[:, None] * self.target[None, :]

    def rotated(self, V):
        """The same of Phi V."""
        if V is None:
            return self
        cross = None if self.cross is None else V.T @ self.cross
        return replace(self, mean=self.mean @ V, scatter=V.T @ self.scatter @ V, cross=cross)

    def moved(self, origin):
        """The same of Phi - origin."""
        return self if origin is None else replace(self, mean=self.mean - origin)

    def moments(self):
        """The same sums about zero."""
        outer = self.mean[:, None] * self.mean[None, :] * self.n
        return Moments(
            self.n,
            self.mean * self.n,
            self.scatter + outer,
            self._about(0 * self.mean),
            self.target,
        )
