"""Kernels on objects, and among them inner products of features, which may be sparse."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg.blas
import scipy.sparse

from ..engine import is_array, is_numpy
from . import hashing
from .kernel import ALL, Kernel
from .types import Array, Data, Tile

# Columns that more than one point in so many has are multiplied as a dense matrix: single precision
# multiplies twice as fast.
_FREQUENT = {np.float32: 12, np.float64: 8}
# Values of that dense matrix.
_DENSE_VALUES = 1 << 25
# Whole numbers up to this one are exact in single precision.
_MOST_EXACT = 1 << 24


class ObjectKernel(Kernel):
    """A kernel on objects, given as a list, an array of objects, or one column of a frame."""

    kind = "objects"

    def points(self, X: Data, name: str = "X") -> Array:
        if is_array(X) and not is_numpy(X):
            raise TypeError(
                f"{name} is an array of {type(X).__module__}: {type(self).__name__} reads objects "
                "on the host; convert it to NumPy first."
            )
        points: Any = super().points(X, name)
        if points.dtype == np.float32:
            points = points.astype(np.float64)  # values of paths may be beyond single precision
        if points.ndim == 2 and getattr(points.dtype, "kind", "") == "O":
            if points.shape[1] > 1:
                raise ValueError(
                    f"{name} is a table of {points.shape[1]} columns, and {type(self).__name__} "
                    f"compares the objects of one: OnColumns({self!r}, column)."
                )
            points = points[:, 0]
        return points


class FeatureKernel(ObjectKernel):
    """k(x, z) = <features of x, features of z>, and so valid: a subclass gives `features`, dense or
    sparse."""

    is_psd = True

    def features(self, X: Array) -> Array:
        raise NotImplementedError(f"{type(self).__name__} must define features(X).")

    def against(self, S: Array) -> Tile:
        return map_products(self.features, S)

    def diagonal(self, X: Array) -> Array:
        return hashing.squared_lengths(self.features(X))


def map_products(features: Callable, S: Any) -> Tile:
    """A tile of inner products of `features(rows)` with those of the fixed points S."""
    F = features(S)
    if scipy.sparse.issparse(F):
        return _SparseProducts(features, S, F)
    known = _Remembered(lambda rows: (features(rows),), S, (F,))

    def tile(rows: Any, columns: slice = ALL) -> np.ndarray:
        (left,) = known(rows)
        if left.shape[1] != F.shape[1]:
            raise ValueError(
                "points of two widths cannot be compared: all need the same columns or channels "
                f"(their maps have {left.shape[1]} and {F.shape[1]} coordinates)."
            )
        return left @ F[columns].T

    return tile


class _Remembered:
    """A memory of results computed from rows: of the fixed points S, and of the last rows.

    A tile loop asks for the same rows once per block of columns, and for parts of S where a matrix
    is symmetric. Values are tuples of arrays with one row per point.
    """

    def __init__(self, compute: Callable, S: Any, of_S: tuple | None = None):
        self.compute, self.S = compute, S
        self.of_S = compute(S) if of_S is None else of_S
        self.last = threading.local()

    def __call__(self, rows: Any) -> tuple:
        where = (_address(rows), rows.shape, rows.strides)
        if getattr(self.last, "where", None) != where:
            a = _offset(rows, self.S)
            self.last.value = (
                self.compute(rows)
                if a is None
                else tuple(part[a : a + len(rows)] for part in self.of_S)
            )
            # The rows are kept, so that no other rows can come to lie at their address.
            self.last.where, self.last.rows = where, rows
        return self.last.value


class _SparseProducts:
    """Inner products of sparse coordinates, by the columns that occur in S.

    Columns that are equal in S are merged: what a row has in them is added up and multiplied once.
    These are most columns of a large map: features that only one point has, and features that
    always occur together. Of the merged columns those that many points have are multiplied as a
    dense matrix, all others as a sparse one. Counts are multiplied in single precision while it
    holds every inner product without error.
    """

    # Most of the work holds Python's lock: a second thread would wait, and clear memory twice.
    holds_lock = True
    # Rows and columns of the tiles that suit it: many rows, for each tile transposes its part of S.
    # Not powers of two, of which a transposed copy would use few lines of the cache.
    shape = (500, 3000)

    def __init__(self, features: Callable, S: Any, F: Any):
        self.features, self.n = features, F.shape[0]
        self.columns, places = None, F.indices
        if F.shape[1] > hashing.FEW_COLUMNS:
            self.columns, places = hashing.distinct_places(F.indices)
        width = F.shape[1] if self.columns is None else len(self.columns)
        self.dtype = np.dtype(_exact_type(F))
        merged, chosen = _equal_columns(F, places, width)
        frequency = np.bincount(places, minlength=width)[chosen]
        often = np.flatnonzero(frequency > max(8, self.n // _FREQUENT[self.dtype.type]))
        often = often[np.argsort(-frequency[often])][: _DENSE_VALUES // max(1, self.n)]
        # Merged columns are hashing.numbered anew, those of the dense matrix first.
        self.n_often = len(often)
        first = np.zeros(len(chosen), dtype=bool)
        first[often] = True
        number = np.empty(len(chosen), dtype=np.int32)
        number[first] = np.arange(self.n_often)
        number[~first] = np.arange(self.n_often, len(chosen))
        self.number, self.n_columns = number[merged], len(chosen)
        times = np.empty(len(chosen), dtype=self.dtype)
        times[number] = np.bincount(merged, minlength=len(chosen))
        # Points of S have the same value in all columns that are merged, so that one is enough.
        is_chosen = np.zeros(width, dtype=bool)
        is_chosen[chosen] = True
        kept = np.flatnonzero(is_chosen[places])
        starts = np.searchsorted(kept, F.indptr)
        self.right = self._parts(F.data[kept], places[kept], starts, self.dtype)
        self.last: tuple[Any, Any] = (None, None)
        dense, sparse = self.right
        summed = sparse.copy()
        summed.data *= times[self.n_often + sparse.indices]
        self.rows = _Remembered(self._of_rows, S, (dense * times[: self.n_often], summed))

    def __call__(self, rows: Any, columns: slice = ALL) -> np.ndarray:
        return self.stored(rows, columns).astype(np.float64, copy=False)

    def stored(self, rows: Any, columns: slice = ALL) -> np.ndarray:
        """The same values, in single precision where that is exact: to be stored."""
        dense, sparse = self.rows(rows)
        a, b, _ = columns.indices(self.n)
        if b - a <= len(rows):
            product = _dense_product(self.right[1][a:b], sparse.T.tocsr())
            return _plus_product(product.T, dense, self.right[0][a:b])
        # The longer side is transposed, and kept until others are asked for: its columns are then
        # added up in longer runs.
        where, part = self.last
        if where != (a, b):
            part = self.right[1][a:b].T.tocsr()
            self.last = (a, b), part
        return _plus_product(_dense_product(sparse, part).T, self.right[0][a:b], dense).T

    def _of_rows(self, rows):
        F = self.features(rows)
        F = F if self.columns is None else hashing.numbered(F, self.columns)
        return self._parts(
            F.data, F.indices, F.indptr, np.promote_types(self.dtype, _exact_type(F))
        )

    def _parts(self, values, places, starts, dtype):
        """Rows in the columns that S often has, and in all others; values of one merged column need
        not be added up before they are multiplied."""
        entries = values.astype(dtype), self.number[places], starts
        F = scipy.sparse.csr_array(entries, shape=(len(starts) - 1, self.n_columns))
        return F[:, : self.n_often].toarray(), F[:, self.n_often :]


def _equal_columns(F: Any, places: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers for the columns of F, the same for equal columns, and one column for each number.

    `places` are the columns of F's entries. Columns are compared by hashes of their entries: two of
    m different columns are taken for equal with a probability of at most m^2 / 2^62.
    """
    bits = F.data.astype(np.float64, copy=False).view(np.uint64)
    entries = hashing.mixed(np.arange(F.shape[0]))[hashing.row_numbers(F)] ^ bits
    hashes = np.zeros(width, dtype=np.uint64)
    np.add.at(hashes, places, hashing.mixed(entries))
    distinct_hashes, merged = hashing.distinct_places(hashing.columns_of(hashes))
    chosen = np.empty(len(distinct_hashes), dtype=np.int64)
    chosen[merged] = np.arange(width)
    return merged, chosen


def _plus_product(C: np.ndarray, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """C + A B', written over C where C is in the order of Fortran."""
    if not A.size or not B.size:
        return C
    gemm = scipy.linalg.blas.get_blas_funcs("gemm", (C,))
    return gemm(1.0, A.T, B.T, beta=1.0, c=C, trans_a=True, overwrite_c=True)


def _dense_product(A: Any, B: Any) -> np.ndarray:
    """A @ B of two sparse matrices as a dense one, without a sparse product in between."""
    try:
        from sklearn.utils.sparsefuncs import sparse_matmul_to_dense
    except ImportError:  # an older scikit-learn
        return (A @ B).toarray()
    dtype = np.result_type(A, B)
    return sparse_matmul_to_dense(A.astype(dtype, copy=False), B.astype(dtype, copy=False))


def _exact_type(F):
    """Single precision where inner products of such rows are whole numbers that it can hold."""
    if not (F.data == np.rint(F.data)).all():
        return np.float64
    # No partial sum of an inner product is above the product of the lengths.
    squares = hashing.squared_lengths(F)
    return np.float32 if squares.max(initial=0) <= _MOST_EXACT else np.float64


def _address(X):
    return X.__array_interface__["data"][0]


def _offset(rows, S):
    """Position of `rows` in S, if it is a view of a part of S's memory."""
    if rows.ndim != 1 or S.ndim != 1 or rows.strides != S.strides or not len(rows):
        return None
    distance = _address(rows) - _address(S)
    inside = 0 <= distance <= (len(S) - len(rows)) * S.strides[0]
    return distance // S.strides[0] if inside and distance % S.strides[0] == 0 else None
