"""A sum of kernels over many points, evaluated by nonuniform Fourier transforms inside a box."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.arrays import as_numpy, namespace, on_device_of
from ..expansion import Expansion
from ..kernels import points as pts
from ..kernels.types import Array
from ..space.fourier import Fourier


@dataclass(frozen=True, eq=False)
class FourierExpansion(Expansion):
    """The functions z -> k(z, S) W + b; inside a box as phi(z) . (Phi'W) + b, which is faster.

    phi are the Fourier coordinates of the kernel, and the two ways differ by at most
    ``space.error * sum |W|``. Rows outside of the box, where phi does not hold, are evaluated as
    the sum that they are: every z has a value.

    Parameters
    ----------
    kernel, S, W, b : as in Expansion
    space : Fourier
        Of this kernel, on a box that holds the points S.
    coef : array of shape (space.rank, n_functions)
        Phi'W, for the coordinates Phi of S.
    """

    space: Fourier
    coef: Any

    def __call__(self, X: Array) -> Array:
        X = pts.as_fitted_points(X, self.S, self.W.dtype)
        inside = self.space.contains(X)
        if not inside.any():
            return self.plain(X)
        if inside.all():
            return self._transformed(X)
        values = np.empty((X.shape[0], self.W.shape[1]))
        for part, evaluate in ((inside, self._transformed), (~inside, self.plain)):
            values[part] = as_numpy(evaluate(pts.take(X, np.flatnonzero(part))))
        return on_device_of(values, self.W)

    def plain(self, X: Array) -> Array:
        """The values as sums of kernels, at every point."""
        return Expansion(self.kernel, self.S, self.W, self.b)(X)

    def difference(self) -> Any:
        """How far the two ways can be apart, rounding included: one number per function."""
        xp = namespace(self.W)
        size = float(as_numpy(self.kernel.diagonal(pts.take(self.S, np.arange(1))))[0])
        return (self.space.error + self.space.rounding(size)) * xp.sum(xp.abs(self.W), axis=0)

    def _transformed(self, X):
        values = self.space.evaluate(X, as_numpy(self.coef))
        return on_device_of(values, self.W) + self.b[None, :]
