"""OwnFeatures and SparseFeatures: spaces of kernels that have a feature map of their own.

Of a sparse map, wider than any array, the columns that occur in the training data are numbered and
kept; they span the training images, so phi(x) . phi(z) = k(x, z) whenever x is a training point.
What a new point has in other columns is its residual.
"""

from dataclasses import replace
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
from ..kernels import Kernel, hashing
from .certificate import Radii
from .protocol import ClosedSpace


class OwnFeatures(ClosedSpace):
    """The kernel's own feature map: no landmarks, no training data."""

    may_share = True
    nonzeros: int | None  # of the training coordinates, where these are sparse

    def __init__(self, kernel: Kernel, X: Array) -> None:
        self.kernel = kernel
        self.point = rows_of(X, 0, 1)  # rounding depends on its columns
        self.first = self.coordinates(self.point)
        self.nonzeros = None

    @property
    def rank(self) -> int:
        return int(self.first.shape[1])

    @property
    def example(self) -> Any:
        return self.first

    def check_memory(self, n: int, *, dense: bool = True) -> None:
        """Refuse before all coordinates are computed; of sparse ones the values that are not zero,
        a number and an index each."""
        size = itemsize(self.example)
        needed = coordinates_bytes(n, self.rank, 2, size)
        if self.nonzeros is not None and not dense:
            needed = 2 * 16 * self.nonzeros
        limit = current().limit(self.example)
        if needed > limit:
            sparse = self.nonzeros is not None
            filled = "centring fills the sparse coordinates: " if dense and sparse else ""
            raise MemoryLimitError(
                f"{filled}the closed map of {self.kernel!r} has {self.rank} dimensions: {n} points "
                f"need {readable(needed)}, memory_limit allows {readable(limit)}. Use "
                f"basis='cholesky' with max_rank, {'float32, ' * (size == 8)}or a larger "
                "memory_limit."
            )

    def coordinates(self, X: Any) -> Any:
        """phi(x) for every row; sparse rows are filled first, since few of theirs stay zero."""
        X = X.toarray() if scipy.sparse.issparse(X) else X
        return self.kernel.finite(self.kernel.features, X)

    def roundoff(self) -> float:
        units: float = self.rank**0.5 + self.kernel.rounding(self.point)
        return 0.5 * eps_of(self.example) * units


class SparseFeatures(OwnFeatures):
    """The kernel's own sparse coordinates, in the columns that the training data have."""

    def __init__(self, kernel: Kernel, X: Array, F: Any) -> None:  # F: the sparse features of X
        self.kernel = kernel
        self.point = rows_of(X, 0, 1)
        self.columns = hashing.distinct_keys(F.indices)
        self.first = np.zeros((1, 1))  # its dtype is that of the coordinates
        self.nonzeros = F.nnz

    @property
    def rank(self) -> int:
        return len(self.columns)

    def coordinates(self, X: Array) -> scipy.sparse.csr_array:
        """phi(x) for every row, as a sparse matrix."""
        return hashing.numbered(self.kernel.features(X), self.columns)

    def squared_norms(self, X: Array) -> np.ndarray:
        return hashing.squared_lengths(self.coordinates(X))

    def radii(self, X: Any, diagonal: Any) -> Radii:
        missed = np.maximum(diagonal - self.squared_norms(X), 0.0)
        return replace(super().radii(X, diagonal), rho2=missed)
