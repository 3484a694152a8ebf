"""OwnFeatures and SparseFeatures: spaces of kernels that have a feature map of their own.

Of a sparse map, wider than any array, the columns that occur in the training data are numbered and
kept; they span the training images, so phi(x) . phi(z) = k(x, z) whenever x is a training point.
What a new point has in other columns is its residual.
"""

from typing import Any

import numpy as np
import scipy.sparse

from ..engine import (
    Array,
    MemoryLimitError,
    coordinates_bytes,
    current,
    eps_of,
    itemsize,
    readable,
    rows_of,
)
from ..kernels import finite_values, hashing
from .certificate import Radii, magnitudes
from .protocol import ClosedSpace


class OwnFeatures(ClosedSpace):
    """The kernel's own feature map: no landmarks, no training data."""

    may_share = True

    def __init__(self, kernel, X):
        self.kernel = kernel
        self.point = rows_of(X, 0, 1)  # rounding depends on its columns
        self.first = features(kernel, self.point)

    @property
    def rank(self) -> int:
        return self.first.shape[1]

    @property
    def example(self) -> Any:
        return self.first

    def check_memory(self, n: int) -> None:
        """Refuse before all coordinates are computed."""
        needed = coordinates_bytes(n, self.rank, 2, itemsize(self.example))
        limit = current().limit(self.example)
        if needed > limit:
            raise MemoryLimitError(
                f"the closed map of {self.kernel!r} has {self.rank} dimensions: {n} points need "
                f"{readable(needed)}, memory_limit allows {readable(limit)}. Use basis='cholesky' "
                "with max_rank, float32, or a larger memory_limit."
            )

    def coordinates(self, X: Array):
        return features(self.kernel, X)

    def roundoff(self):
        return 0.5 * eps_of(self.example) * (self.rank**0.5 + self.kernel.rounding(self.point))


def features(kernel: Any, X: Any):
    """The kernel's own coordinates; sparse rows are filled first, since few of theirs stay zero."""
    X = X.toarray() if scipy.sparse.issparse(X) else X
    return finite_values(kernel, kernel.features, X)


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
        self.columns = hashing.distinct_keys(F.indices)
        self.first = np.zeros((1, 1))  # its dtype is that of the coordinates
        self.nonzeros = F.nnz

    @property
    def rank(self) -> int:
        return len(self.columns)

    def check_memory(self, n: int, *, dense: bool = False) -> None:
        """Refuse coordinates that would not fit: their non-zeros, or all if they are `dense`."""
        # Sparse rows: a number and an index for each value that is not zero.
        needed = coordinates_bytes(n, self.rank, 2) if dense else 2 * 16 * self.nonzeros
        limit = current().limit()
        if needed > limit:
            filled = "centring fills the sparse coordinates: " if dense else ""
            raise MemoryLimitError(
                f"{filled}the closed map of {self.kernel!r} needs {readable(needed)} for {n} "
                f"points in {self.rank} dimensions, memory_limit allows {readable(limit)}. Use "
                "basis='cholesky' with max_rank, or a larger memory_limit."
            )

    def coordinates(self, X: Array):
        """phi(x) for every row, as a sparse matrix."""
        return hashing.numbered(self.kernel.features(X), self.columns)

    def squared_norms(self, X: Array):
        return hashing.squared_lengths(self.coordinates(X))

    def radii(self, X: Any, diagonal: Any) -> Radii:
        squares = magnitudes(self.kernel, X, diagonal) ** 2
        return self.radii_of(None, squares, diagonal - self.squared_norms(X))

    def radii_of(self, Phi: Any, diagonal: Any, rho2: Any) -> Radii:
        rho2 = np.maximum(rho2, 0.0)
        length = np.sqrt(diagonal)
        return Radii(rho2, 2 * length, length, diagonal < 0)
