"""Inner products of feature maps: rows against fixed points, dense or sparse."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from .base import ALL
from .hashing import FEW_COLUMNS, distinct_places, numbered, row_numbers
from .types import Tile

# Columns that more than one point in so many has are multiplied as a dense matrix: single precision
# multiplies twice as fast.
FREQUENT = {np.float32: 12, np.float64: 8}
# Values of that dense matrix.
DENSE_VALUES = 1 << 25
# Points that rare columns are multiplied with at a time.
CHUNK = 1024
# Whole numbers up to this one are exact in single precision.
MOST_EXACT = 1 << 24


def map_products(features: Callable, S: Any) -> Tile:
    """A tile of inner products of `features(rows)` with those of the fixed points S."""
    F = features(S)
    if scipy.sparse.issparse(F):
        return SparseProducts(features, S, F)
    return DenseProducts(features, S, F)


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


class DenseProducts:
    """Inner products of dense coordinates."""

    def __init__(self, features: Callable, S: Any, F: np.ndarray):
        self.rows = Remembered(lambda rows: (features(rows),), S, (F,))

    def __call__(self, rows: Any, columns: slice = ALL) -> np.ndarray:
        (left,), (right,) = self.rows(rows), self.rows.of_S
        if left.shape[1] != right.shape[1]:
            raise ValueError(
                "points of two widths cannot be compared: all need the same columns or channels "
                f"(their maps have {left.shape[1]} and {right.shape[1]} coordinates)."
            )
        return left @ right[columns].T


class SparseProducts:
    """Inner products of sparse coordinates, by the columns that occur in S.

    A column belongs to one of three groups. Those that many points of S have are multiplied as a
    dense matrix, those of a few points as a sparse one. Columns that only one point has are merged:
    all of them with the same owner become one column, in which the owner has a 1 and other rows
    have their products with it. Counts are multiplied in single precision while it holds every
    inner product without error.
    """

    # Most of the work holds Python's lock: a second thread would wait, and clear memory twice.
    holds_lock = True

    def __init__(self, features: Callable, S: Any, F: Any):
        self.features, self.n = features, F.shape[0]
        self.columns, places = None, F.indices
        if F.shape[1] > FEW_COLUMNS:
            self.columns, places = distinct_places(F.indices)
        width = F.shape[1] if self.columns is None else len(self.columns)
        frequency = np.bincount(places, minlength=width)
        rows = row_numbers(F)
        dtype = _exact_type(F, rows)
        often = np.flatnonzero(frequency > max(8, self.n // FREQUENT[dtype]))
        often = often[np.argsort(-frequency[often])][: DENSE_VALUES // max(1, self.n)]
        shared = frequency > 1
        shared[often] = False
        self.n_often, self.n_shared = len(often), int(np.count_nonzero(shared))
        # Columns are numbered group by group: often, shared, and one per owner.
        self.number = np.full(width, self.n_often + self.n_shared, dtype=np.int32)
        self.number[often] = np.arange(self.n_often)
        self.number[shared] = np.arange(self.n_often, self.n_often + self.n_shared)
        alone = frequency[places] == 1
        self.number[places[alone]] += rows[alone].astype(np.int32)
        # What a value is multiplied by when columns are merged; 0 where no point has the column.
        self.factor = (frequency > 1).astype(np.float64)
        self.factor[places[alone]] = F.data[alone]
        self.dtype = np.dtype(dtype)
        of_S = self._parts(F, places, rows)
        self.rows = Remembered(self._of_rows, S, of_S)
        owner = scipy.sparse.eye_array(self.n, dtype=dtype, format="csr")
        self.right = scipy.sparse.hstack([of_S[1][:, : self.n_shared], owner], format="csr")
        self.chunks = [self.right[a : a + CHUNK].T.tocsr() for a in range(0, self.n, CHUNK)]
        self.kept = threading.local()

    def __call__(self, rows: Any, columns: slice = ALL) -> np.ndarray:
        return self.stored(rows, columns).astype(np.float64, copy=False)

    def stored(self, rows: Any, columns: slice = ALL) -> np.ndarray:
        """The same values, in single precision where that is exact: to be stored."""
        parts = self.rows(rows)
        a, b, _ = columns.indices(self.n)
        product = parts[0] @ self.rows.of_S[0][a:b].T
        for i in range(a // CHUNK, -(-b // CHUNK)):
            start, stop = max(a, i * CHUNK), min(b, (i + 1) * CHUNK)
            product[:, start - a : stop - a] += self._rare(parts[1], i, start, stop)
        return product

    def _rare(self, sparse, i, start, stop):
        """Products of rare columns with points of chunk i, which is kept until others are asked
        for: a loop over tiles asks for its parts one after the other."""
        first, chunk, kept = i * CHUNK, self.chunks[i], self.kept
        if getattr(kept, "sparse", None) is not sparse or kept.chunk != i:
            if 4 * (stop - start) < chunk.shape[1]:  # too few to compute the others with them
                return dense_product(self.right[start:stop], sparse.T.tocsr()).T
            kept.values = dense_product(sparse, chunk)
            kept.sparse, kept.chunk = sparse, i
        return kept.values[:, start - first : stop - first]

    def _of_rows(self, rows):
        F = self.features(rows)
        F = F if self.columns is None else numbered(F, self.columns)
        return self._parts(F, F.indices, row_numbers(F))

    def _parts(self, F, places, rows):
        """The rows in columns that S often has, and in all others."""
        dtype = np.promote_types(self.dtype, _exact_type(F, rows))
        numbers, values = self.number[places], (F.data * self.factor[places]).astype(dtype)
        is_often = numbers < self.n_often
        often, rare = np.flatnonzero(is_often), np.flatnonzero(~is_often)
        dense = np.zeros((F.shape[0], self.n_often), dtype=dtype)
        dense[rows[often], numbers[often]] = values[often]
        starts = np.searchsorted(rare, F.indptr).astype(F.indptr.dtype)
        entries = values[rare], numbers[rare] - self.n_often, starts
        return dense, scipy.sparse.csr_array(entries, shape=(F.shape[0], self.n_shared + self.n))


def dense_product(A: Any, B: Any) -> np.ndarray:
    """A @ B of two sparse matrices as a dense one, without a sparse product in between."""
    try:
        from sklearn.utils.sparsefuncs import sparse_matmul_to_dense
    except ImportError:  # an older scikit-learn
        return (A @ B).toarray()
    dtype = np.result_type(A, B)
    return sparse_matmul_to_dense(A.astype(dtype, copy=False), B.astype(dtype, copy=False))


def _exact_type(F, rows):
    """Single precision where inner products of such rows are whole numbers that it can hold."""
    if not (F.data == np.rint(F.data)).all():
        return np.float64
    # No partial sum of an inner product is above the product of the lengths.
    squares = np.bincount(rows, weights=F.data**2)
    return np.float32 if squares.max(initial=0) <= MOST_EXACT else np.float64


def _address(X):
    return X.__array_interface__["data"][0]


def _offset(rows, S):
    """Where `rows` begins in S, if it is a view of a part of S's memory."""
    if rows.ndim != 1 or S.ndim != 1 or rows.strides != S.strides or not len(rows):
        return None
    distance = _address(rows) - _address(S)
    inside = 0 <= distance <= (len(S) - len(rows)) * S.strides[0]
    return distance // S.strides[0] if inside and distance % S.strides[0] == 0 else None
