"""Space: what every kind of feature space can do.

A space turns points into coordinates whose inner products are the kernel. Landmarks with their
Cholesky factor, a kernel's own finite features, and corrected similarities are spaces. A
FeatureMap adds a rotation and a mean to one.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import scipy.sparse

from ..engine import Array, TravelsAsNumPy, namespace, row_norms, rows_of, tiles
from ..kernels import Kernel
from .certificate import Radii, radii_of_one


class Space(TravelsAsNumPy, ABC):
    """Coordinates phi with phi(x) . phi(z) = k(x, z), before any rotation or centring."""

    kernel: Kernel  # bound to its data
    S: Any = None  # the landmarks, in the form that kernel.against takes; None without any
    indices: Any = None  # positions of the landmarks among the training points
    is_closed: bool = False  # coordinates by a formula: no row of the data can be missing from it
    error: float = 0.0  # the largest error that such a formula has
    may_share: bool = False  # coordinates may be the points themselves, which belong to the user

    @property
    @abstractmethod
    def rank(self) -> int:
        """The number of coordinates."""

    @property
    @abstractmethod
    def example(self) -> Any:
        """An array of the kind, device and dtype that the space computes in."""

    @property
    def dtype(self) -> Any:
        return self.example.dtype

    def panels(self, X: Array) -> Iterator[tuple[Any, slice]]:
        """(coordinates, which rows these are), panel after panel, in O(panel) memory; always dense.

        A space defines this or `coordinates`.
        """
        for where in tiles.panel_slices(X, self.rank):
            Phi = self.coordinates(rows_of(X, where.start, where.stop))
            yield Phi.toarray() if scipy.sparse.issparse(Phi) else Phi, where

    def coordinates(self, X: Array) -> Any:
        """phi(x) for every row: n x rank."""
        Phi = tiles.allocate(self.example, (X.shape[0], self.rank))
        for panel, where in self.panels(X):
            Phi[where, :] = panel
        return Phi

    def squared_norms(self, X: Array) -> Any:
        """|phi(x)|^2 for every row, without storing coordinates."""
        norms = tiles.allocate(self.example, (X.shape[0],))
        for Phi, where in self.panels(X):
            norms[where] = row_norms(Phi, namespace(self.example))
        return norms

    @abstractmethod
    def weights(self, coef: Array) -> Any:
        """Coefficients on the landmarks of z -> coef . phi(z): [NPT] Lemma 6, backwards."""

    @abstractmethod
    def radii(self, X: Any, diagonal: Any) -> Radii:
        """Quantities of every row that the certificate needs; `diagonal` holds k(x, x)."""

    @abstractmethod
    def radii_of_mean(self, second: Array, rho2: float) -> Radii:
        """Radii of the mean of some rows, from second = Phi'Phi / n and the mean rho^2."""

    @abstractmethod
    def roundoff(self) -> float:
        """eta: the relative error of one inner product of coordinates."""


class ClosedSpace(Space):
    """Coordinates by a formula: their error is at most `error`, the same for every pair."""

    is_closed = True

    def weights(self, coef: Array) -> Any:
        raise ValueError(
            f"this map of {self.kernel!r} is a formula and has no landmarks to write a function "
            "on: use basis='cholesky', where every linear function is a sum of kernels."
        )

    def radii(self, X: Any, diagonal: Any) -> Radii:
        """R(x) R(z) with R^2 = error."""
        length = self.kernel.layout.lengths(self.kernel, X, diagonal)
        rho2 = namespace(diagonal).zeros_like(diagonal) + self.error
        return Radii(rho2, 2 * length, length, diagonal < 0)

    def radii_of_mean(self, second: Array, rho2: float) -> Radii:
        length = float(namespace(second).linalg.trace(second)) ** 0.5
        return radii_of_one(self.error, 2 * length, length, self.example)
