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
FREQUENT = {np.float32: 24, np.float64: 16}
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
    dense matrix, those of a few points as a sparse one. What only one point has needs no product:
    it is added where that point is. Counts are multiplied in single precision while it holds every
    inner product without error.
    """

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
        # Columns are numbered group by group: often, shared, alone.
        group = np.where(frequency > 1, 1, 2).astype(np.int8)
        group[often] = 0
        self.n_often, self.n_shared, _ = np.bincount(group, minlength=3).tolist()
        self.number = np.empty(width, dtype=np.int32)
        self.number[np.argsort(group, kind="stable")] = np.arange(width)
        numbers = self.number[places]
        # For each column of the last group: which point has it, and its value there.
        alone = numbers >= self.n_often + self.n_shared
        which = numbers[alone] - (self.n_often + self.n_shared)
        self.owner, self.value = np.zeros(width, dtype=np.int32), np.zeros(width)
        self.owner[which], self.value[which] = rows[alone], F.data[alone]
        of_S = self._parts(F, numbers, rows, dtype)
        self.rows = Remembered(self._of_rows, S, of_S)
        self.chunks = [of_S[1][a : a + CHUNK].T.tocsr() for a in range(0, self.n, CHUNK)]
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
            product[:, start - a : stop - a] += self._rare(parts, i, start, stop)
        return product

    def _rare(self, parts, i, start, stop):
        """Products of rare columns with points of chunk i, which is kept until others are asked
        for: a loop over tiles asks for its parts one after the other."""
        first, last = i * CHUNK, min(self.n, (i + 1) * CHUNK)
        if 4 * (stop - start) < last - first:  # too few to compute the others with them
            return _added(parts, self.rows.of_S[1][start:stop].T, start, stop)
        kept = self.kept
        if getattr(kept, "parts", None) is not parts or kept.chunk != i:
            kept.values = _added(parts, self.chunks[i], first, last)
            kept.parts, kept.chunk = parts, i
        return kept.values[:, start - first : stop - first]

    def _of_rows(self, rows):
        F = self.features(rows)
        F = F if self.columns is None else numbered(F, self.columns)
        places = row_numbers(F)
        return self._parts(F, self.number[F.indices], places, _exact_type(F, places))

    def _parts(self, F, numbers, rows, dtype):
        """The rows in columns that S often has, in columns that it shares, and the products of the
        rest with S."""
        values = F.data.astype(dtype)
        often, alone = numbers < self.n_often, numbers >= self.n_often + self.n_shared
        dense = np.zeros((F.shape[0], self.n_often), dtype=dtype)
        dense[rows[often], numbers[often]] = values[often]
        few = ~(often | alone)
        shared = values[few], numbers[few] - self.n_often, _starts(F, few)
        which = numbers[alone] - (self.n_often + self.n_shared)
        rest = values[alone] * self.value[which], self.owner[which], _starts(F, alone)
        return (
            dense,
            scipy.sparse.csr_array(shared, shape=(F.shape[0], self.n_shared)),
            scipy.sparse.csr_array(rest, shape=(F.shape[0], self.n)),
        )


def _added(parts, right, first, last):
    """Products of shared columns, and of those of one point, with the points from first to last."""
    _, shared, alone = parts
    values, alone = (shared @ right).toarray(), alone[:, first:last]
    if alone.nnz:
        values += alone.toarray()
    return values


def _exact_type(F, rows):
    """Single precision where inner products of such rows are whole numbers that it can hold."""
    if not (F.data == np.rint(F.data)).all():
        return np.float64
    # No partial sum of an inner product is above the product of the lengths.
    squares = np.bincount(rows, weights=F.data**2)
    return np.float32 if squares.max(initial=0) <= MOST_EXACT else np.float64


def _starts(F, kept):
    """Where the rows begin when only some entries are kept."""
    return np.concatenate([[0], np.cumsum(kept)])[F.indptr].astype(F.indptr.dtype)


def _address(X):
    return X.__array_interface__["data"][0]


def _offset(rows, S):
    """Where `rows` begins in S, if it is a view of a part of S's memory."""
    if rows.ndim != 1 or S.ndim != 1 or rows.strides != S.strides or not len(rows):
        return None
    distance = _address(rows) - _address(S)
    inside = 0 <= distance <= (len(S) - len(rows)) * S.strides[0]
    return distance // S.strides[0] if inside and distance % S.strides[0] == 0 else None
