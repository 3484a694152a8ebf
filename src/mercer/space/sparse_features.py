"""SparseFeatures: the space of a kernel whose own feature map is sparse, and wider than any array.

The columns that occur in the training data are numbered and kept; they span the training images, so
phi(x) . phi(z) = k(x, z) whenever x is a training point. What a new point has in other columns is
its residual.
"""

from typing import Any

import numpy as np

from ..engine.arrays import rows_of
from ..engine.memory import (
    MemoryLimitError,
    budget,
    coordinates_bytes,
    readable,
    sparse_coordinates,
)
from ..engine.types import Array
from ..kernels.hashing import distinct_keys, numbered, squared_lengths
from .certificate import Radii, magnitudes
from .own_features import OwnFeatures


class SparseFeatures(OwnFeatures):
    """The kernel's own sparse coordinates, in the columns that the training data have.

    Parameters
    ----------
    kernel : Kernel
        Bound to its data.
    X : training points
    F : their features, a sparse matrix
    """

    def __init__(self, kernel, X, F):
        self.kernel = kernel
        self.point = rows_of(X, 0, 1)
        self.columns = distinct_keys(F.indices)
        self.first = np.zeros((1, 1))  # its dtype is that of the coordinates
        self.nonzeros = F.nnz

    @property
    def rank(self) -> int:
        return len(self.columns)

    def check_memory(self, n: int, memory_limit: float | str | None, *, dense: bool = False):
        """Refuse coordinates that would not fit: their non-zeros, or all if they are `dense`."""
        needed = (
            coordinates_bytes(n, self.rank, 2) if dense else sparse_coordinates(self.nonzeros, 2)
        )
        limit = budget(memory_limit)
        if needed > limit:
            filled = "centring fills the sparse coordinates: " if dense else ""
            raise MemoryLimitError(
                f"{filled}the closed map of {self.kernel!r} needs {readable(needed)} for {n} "
                f"points in {self.rank} dimensions, memory_limit allows {readable(limit)}. Use "
                "basis='cholesky' with max_rank, or a larger memory_limit."
            )

    def coordinates(self, X: Array):
        """phi(x) for every row, as a sparse matrix."""
        return numbered(self.kernel.features(X), self.columns)

    def squared_norms(self, X: Array):
        return squared_lengths(self.coordinates(X))

    def radii(self, X: Any, diagonal: Any) -> Radii:
        squares = magnitudes(self.kernel, X, diagonal) ** 2
        return self.radii_of(None, squares, diagonal - self.squared_norms(X))

    def radii_of(self, Phi: Any, diagonal: Any, rho2: Any) -> Radii:
        rho2 = np.maximum(rho2, 0.0)
        length = np.sqrt(diagonal)
        return Radii(rho2, 2 * length, length, diagonal < 0)
