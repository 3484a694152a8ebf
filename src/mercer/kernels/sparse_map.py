"""SparseMap: kernels on objects that are inner products of counts, with the counts as their map."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from ..engine.arrays import is_array, is_numpy
from .base import ALL, Kernel
from .hashing import FEW_COLUMNS, numbered, squared_lengths
from .types import Array, Data, Tile

# Columns that more than one row in so many has are multiplied as a dense matrix.
FREQUENT = 16
# Values of that dense matrix.
DENSE_VALUES = 1 << 25


class ObjectKernel(Kernel):
    """A kernel on objects, given as a list, an array of objects, or one column of a frame."""

    @property
    def kind(self) -> str:
        return "objects"

    def points(self, X: Data, name: str = "X") -> Array:
        if is_array(X) and not is_numpy(X):
            raise TypeError(
                f"{name} is an array of {type(X).__module__}: {type(self).__name__} reads objects "
                "on the host; convert it to NumPy first."
            )
        X = super().points(X, name)
        if X.dtype == np.float32:
            X = X.astype(np.float64)  # values of paths may be beyond single precision
        if X.ndim == 2 and getattr(X.dtype, "kind", "") == "O":
            if X.shape[1] > 1:
                raise ValueError(
                    f"{name} is a table of {X.shape[1]} columns, and {type(self).__name__} "
                    f"compares the objects of one: OnColumns({self!r}, column)."
                )
            X = X[:, 0]
        return X


class SparseMap(ObjectKernel):
    """k(x, z) = <counts of x, counts of z>: a subclass gives `features`, sparse rows of counts.

    Valid because it is an inner product.
    """

    @property
    def is_psd(self) -> bool | None:
        return True

    def features(self, X: Array) -> Array:
        raise NotImplementedError(f"{type(self).__name__} must define features(X).")

    def against(self, S: Array) -> Tile:
        return Products(self.features, S)

    def diagonal(self, X: Array) -> Array:
        return squared_lengths(self.features(X))


class Remembered:
    """What is computed from rows: kept for the fixed points S, and for the rows asked for last.

    A tile loop asks for the same rows once per block of columns, and for parts of S where a matrix
    is symmetric. Values are tuples of arrays with one row per point.
    """

    def __init__(self, compute: Callable, S: Any, of_S: tuple | None = None):
        self.compute, self.S = compute, S
        self.of_S = compute(S) if of_S is None else of_S
        self.last = threading.local()

    def __call__(self, rows: Any) -> tuple:
        a = _offset(rows, self.S)
        if a is not None:
            return tuple(part[a : a + len(rows)] for part in self.of_S)
        where = (_address(rows), rows.shape, rows.strides)
        if getattr(self.last, "where", None) != where:
            self.last.value = self.compute(rows)
            # The rows are kept, so that no other rows can come to lie at their address.
            self.last.where, self.last.rows = where, rows
        return self.last.value


class Products:
    """Inner products of rows with fixed points S, by the columns that occur in S.

    Columns that many points share are multiplied by BLAS, the others as sparse matrices.
    """

    def __init__(self, features: Callable, S: Any):
        self.features = features
        F = features(S)
        self.columns = None
        if not scipy.sparse.issparse(F):
            self.rows = Remembered(lambda rows: (features(rows),), S, (F,))
            return
        if F.shape[1] > FEW_COLUMNS:
            self.columns, places = np.unique(F.indices, return_inverse=True)
            shape = (F.shape[0], len(self.columns))
            F = scipy.sparse.csr_array((F.data, places, F.indptr), shape=shape)
        frequency = np.bincount(F.indices, minlength=F.shape[1])
        often = np.flatnonzero(frequency > max(8, F.shape[0] // FREQUENT))
        often = often[np.argsort(-frequency[often])][: DENSE_VALUES // max(1, F.shape[0])]
        self.often, self.rare = np.sort(often), np.ones(F.shape[1], dtype=bool)
        self.rare[self.often] = False
        self.rows = Remembered(self._of_rows, S, self._split(F))

    def __call__(self, rows, columns=ALL):
        left, *rest = self.rows(rows)
        right, *others = self.rows.of_S
        if left.shape[1] != right.shape[1]:
            raise ValueError(
                "points of two widths cannot be compared: all need the same columns or channels "
                f"(their maps have {left.shape[1]} and {right.shape[1]} coordinates)."
            )
        product = left @ right[columns].T
        if rest:
            product += (rest[0] @ others[0][columns].T).toarray()
        return product

    def _of_rows(self, rows):
        F = self.features(rows)
        return self._split(F if self.columns is None else numbered(F, self.columns))

    def _split(self, F):
        """Frequent columns as a dense matrix, and the others."""
        dense = numbered(F, self.often).toarray()
        others = scipy.sparse.csr_array(F)
        if len(self.often):
            rare = self.rare[F.indices]
            starts = np.concatenate([[0], np.cumsum(rare)])[F.indptr].astype(F.indptr.dtype)
            others = scipy.sparse.csr_array((F.data[rare], F.indices[rare], starts), shape=F.shape)
        return dense, others


def _address(X):
    return X.__array_interface__["data"][0]


def _offset(rows, S):
    """Where `rows` begins in S, if it is a view of a part of S's memory."""
    if rows.ndim != 1 or S.ndim != 1 or rows.strides != S.strides or not len(rows):
        return None
    distance = _address(rows) - _address(S)
    inside = 0 <= distance <= (len(S) - len(rows)) * S.strides[0]
    return distance // S.strides[0] if inside and distance % S.strides[0] == 0 else None
