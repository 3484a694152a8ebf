"""Inner products and Euclidean distances between rows, exact where it matters.

The matrix-product formula |x|^2 + |s|^2 - 2 x.s loses all digits for close points far from the
origin. So points are shifted to a centre (that of the columns' points, fixed once), products run
in double precision whatever the dtype, and the distances that still cancel are recomputed from
differences: identical rows are at distance exactly zero.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from ..engine import device, is_symbolic, namespace, put, row_norms, tiles
from .parameters import weighted_columns
from .points import require_same_storage

# Pairs gathered at once when distances are recomputed by differences.
_GATHERED_VALUES = 1 << 20
# From this number of columns on, those in which all points agree are looked for; in short rows
# looking would cost as much.
_WIDE = 64
# The rounding of one operation in single precision.
_UNIT32 = float(np.finfo(np.float32).eps) / 2


def inner_products(rows: Any, S_transposed: Any):
    """<x, s> for every row x and column s, dense."""
    product = rows @ S_transposed
    return product.toarray() if scipy.sparse.issparse(product) else product


class EuclideanFrame:
    """Squared distances from any rows to fixed points S, coordinates first scaled column by column.
    `cancels` is the share of |x|^2 below which they are recomputed by differences."""

    def __init__(self, S, scale, cancels):
        self.xp = xp = namespace(S)
        self.sparse = scipy.sparse.issparse(S)
        self.cancels = cancels
        self.scale = scale
        self.dtype = S.dtype
        self.points = S
        if self.sparse:
            self.centre = None  # shifting would fill the matrix
            self.S = weighted_columns(S.astype(np.float64), scale)
            self.norms = _finite_sparse_norms(self.S)
            self.right = self.S.T.tocsr()
            return
        agree = None
        if S.shape[1] >= _WIDE:
            # The borders of images, words that no text of a sample has: a sixth of the work.
            agree = xp.min(S, axis=0) == xp.max(S, axis=0)
            agree = agree if bool(xp.any(agree)) else None
        with np.errstate(over="ignore", invalid="ignore"):  # refused by its norms
            self.centre = xp.sum(S, axis=0, dtype=xp.float64) / S.shape[0]
        if agree is not None:
            self.centre = xp.where(agree, xp.astype(S[0, :], xp.float64), self.centre)
        self.differing = None if agree is None else xp.nonzero(xp.logical_not(agree))[0]
        # [2 x, -1, -|x|^2] against [s, |s|^2, 1]: the whole formula in one matrix product.
        width = self.in_products(S[:1, :]).shape[1]
        self.right = xp.empty((S.shape[0], width + 2), dtype=xp.float64, device=device(S))
        for a, b in tiles.row_blocks(S, S.shape[1]):  # a block at a time, in cache
            s, norms = self.centred(S[a:b, :])
            self.right[a:b, :width] = self.in_products(s)
            self.right[a:b, width] = norms
        self.right[:, width + 1] = 1.0
        self.S, self.norms = self.right[:, :width], self.right[:, width]

    def centred(self, points):
        """Points about the centre, scaled, in double precision, and their squared norms."""
        xp = self.xp
        x = xp.astype(points, xp.float64, copy=True)
        with np.errstate(over="ignore", invalid="ignore"):
            x -= self.centre
            x *= self.scale
            return x, _checked_norms(row_norms(x, xp), xp)

    def in_products(self, x):
        """The columns that products need: where all points agree, all are zero about the centre."""
        return x if self.differing is None else self.xp.take(x, self.differing, axis=1)

    def minus_squared_distances(self, rows: Any, columns: slice):
        """-|x - s|^2 for every row and the chosen columns, as exp(-d^2) needs it."""
        if is_symbolic(rows):
            return self._symbolic_distances(rows, self.points[columns, :])
        xp = self.xp
        if self.sparse or scipy.sparse.issparse(rows):
            return self._sparse_distances(rows, columns)
        x, norms = self.centred(rows)
        norms = norms[:, None]
        left = xp.concat([2.0 * self.in_products(x), -xp.ones_like(norms), -norms], axis=1)
        minus_d2 = left @ self.right[columns, :].T
        close = -self.cancels * norms
        # Row maxima first: most rows have no close pair, and a mask is a large thing to make.
        some = xp.nonzero(xp.max(minus_d2, axis=1) >= close[:, 0])[0]
        if some.shape[0] > 0:
            if some.shape[0] == minus_d2.shape[0]:  # rows against themselves: no copy
                near = minus_d2 >= close
            else:
                near = xp.take(minus_d2, some, axis=0) >= xp.take(close, some, axis=0)
            pairs = xp.nonzero(xp.reshape(near, (-1,)))[0]  # ten times faster than in rows
            i, j = pairs // minus_d2.shape[1], pairs % minus_d2.shape[1]
            i = xp.take(some, i, axis=0)
            minus_d2 = self._recomputed(minus_d2, i, j, rows, self.points[columns, :])
        if self.dtype == xp.float64:
            return minus_d2
        with np.errstate(over="ignore"):  # beyond float32 a distance is infinite, its kernel 0
            return xp.astype(minus_d2, self.dtype)

    def _recomputed(self, minus_d2, i, j, rows, S):
        """By differences of the points as they came: centred and scaled ones have been rounded."""
        xp = self.xp
        step = max(1, _GATHERED_VALUES // rows.shape[1])
        for a, b in tiles.cuts(i.shape[0], step):
            ia, ja = i[a:b], j[a:b]
            if self.sparse:
                difference = weighted_columns(rows[ia].astype(np.float64) - S[ja], self.scale)
                norms = _finite_sparse_norms(difference)
            else:
                difference = xp.astype(xp.take(rows, ia, axis=0), xp.float64)
                difference -= xp.astype(xp.take(S, ja, axis=0), xp.float64)
                difference *= self.scale
                norms = row_norms(difference, xp)
            minus_d2 = put(minus_d2, ia, ja, -norms)
        return minus_d2

    def _symbolic_distances(self, rows, points):
        """For rows of a graph: by a product where k is smooth in d^2, else row by row."""
        x, s = (rows - self.centre) * self.scale, (points - self.centre) * self.scale
        if self.cancels > 1e-12:
            return -x.over_columns(s, lambda x, s: (x - s) * (x - s))
        xp = namespace(rows)
        t = x @ (2.0 * s.T) - row_norms(x, xp)[:, None] - row_norms(s, np)
        return xp.minimum(t, 0.0)

    def _sparse_distances(self, rows, columns):
        require_same_storage(rows, self.S)
        x = weighted_columns(rows.astype(np.float64), self.scale)
        every = columns == slice(None)
        right = self.right if every else self.right[:, columns]
        norms = _finite_sparse_norms(x)[:, None]
        minus_d2 = inner_products(x, right)
        minus_d2 *= 2.0
        minus_d2 -= norms
        minus_d2 -= self.norms[columns]
        i, j = np.nonzero(minus_d2 >= -self.cancels * norms)
        points = self.points if every else self.points[columns]
        minus_d2 = self._recomputed(minus_d2, i, j, rows, points)
        return minus_d2 if self.dtype == np.float64 else minus_d2.astype(self.dtype)


class SingleSums:
    """sum_j c_j k(x, s_j) in single precision, for half the time, and how far off that can be.

    With u = 2^-24, width + 2 products of numbers that were rounded once give t = -|x - s|^2 to
    within 2 (width + 4) u N, where N = |x|^2 + |s|^2. Squared lengths are taken that much larger,
    so that t is never positive, and off by twice as much. A function with |k' / k| <= slope turns
    that into a relative error, and adds (16 + 12 N) u by its own operations: logarithms of k have
    errors relative to themselves, and are below N + 3. z of it, in all, is an error of
    exp(z) - 1 <= 1.75 z where z <= 1, and beyond nothing is off by more than 1. Sums of `TERMS`
    values and coefficients, rounded, are off by (TERMS + 4) u.
    """

    TERMS, TILE = 64, (1024, 512)  # of one sum; rows and columns of a tile

    def __init__(self, frame, formula, slope):
        self.frame, self.formula = frame, formula
        self.width = frame.right.shape[1] - 2
        self.grown = 1 + 2 * (self.width + 4) * _UNIT32
        self.per_length = 4 * (self.width + 4) * slope + 12
        right = frame.right.copy()
        right[:, self.width] *= self.grown
        with np.errstate(over="ignore"):
            self.right = np.ascontiguousarray(right.T, dtype=np.float32)

    def __call__(
        self, X: np.ndarray, c: np.ndarray, some: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(sums, bounds of their errors) for some rows of X (None: all); NaN where numbers are too
        large."""
        n = X.shape[0] if some is None else len(some)
        values, lengths = np.empty(n), np.empty(n)
        largest = float(np.abs(c).max())
        w, sizes = (c / largest).astype(np.float32), np.abs(c)

        def work(a: int, b: int) -> None:
            rows = X[a:b] if some is None else X[some[a:b]]
            with np.errstate(over="ignore", invalid="ignore", under="ignore"):
                values[a:b], lengths[a:b] = self._block(rows, w)

        tiles.run_tasks(work, tiles.cuts(n, self.TILE[0]), None, X)
        total, at_length = float(sizes.sum()), float(sizes @ self.frame.norms)
        units = (self.TERMS + 4) * total + 1.75 * (
            16 * total + self.per_length * (lengths * total + at_length)
        )
        # Terms that underflow are below 1e-37 of the sum.
        return largest * values, _UNIT32 * units + 1e-37 * total

    def _block(self, rows, w):
        x, norms = self.frame.centred(rows)
        left = np.empty((x.shape[0], self.width + 2), dtype=np.float32)
        left[:, : self.width] = 2.0 * self.frame.in_products(x)
        left[:, self.width], left[:, self.width + 1] = -1.0, norms * -self.grown
        total = np.zeros(x.shape[0])
        for a, b in tiles.cuts(len(w), self.TILE[1]):
            k = self.formula(left @ self.right[:, a:b], np)
            for c, d in tiles.cuts(b - a, self.TERMS):
                total += k[:, c:d] @ w[a + c : a + d]
        return total, norms


def _finite_sparse_norms(x):
    with np.errstate(over="ignore"):
        return _checked_norms(np.asarray(x.multiply(x).sum(axis=1)).ravel(), np)


def _checked_norms(norms, xp):
    """|x|^2 of centred, scaled rows, refused where distances between them would overflow."""
    largest = float(xp.max(norms))
    if not largest < 1e307:
        raise ValueError(
            f"squared distances overflow: a row is {largest**0.5:.4g} length scales from the "
            "centre. Scale the data (sklearn.preprocessing.MaxAbsScaler) or the parameters."
        )
    return norms


def over_columns(term: Callable[[Any, Any], Any], rows: Any, S: Any, weights: Any = 1.0):
    """sum_c w_c term(x_c, s_c): for distances that no matrix product gives. O(tile) memory."""
    each_its_own = np.ndim(weights) > 0
    if is_symbolic(rows):
        return rows.over_columns(S, lambda x, s: term(x, s) * weights)

    def column(c: int):
        value = term(rows[:, c][:, None], S[:, c][None, :])
        if each_its_own:
            value *= float(weights[c])
        return value

    total = column(0)
    for c in range(1, rows.shape[1]):
        total += column(c)
    if not each_its_own and weights != 1:
        total *= float(weights)
    return total


def dense_rows(X: Any, kernel: object):
    if scipy.sparse.issparse(X):
        raise TypeError(
            f"{type(kernel).__name__} compares points column by column and needs dense rows; pass "
            "X.toarray(), or use a kernel of inner products or Euclidean distances (Linear, "
            "Polynomial, Cosine, RBF, Matern, RationalQuadratic), which take sparse rows."
        )
    return X


def full(like: Any, shape: tuple[int, ...], value: float):
    """A constant array in the namespace and dtype of some points (float64 for objects)."""
    if is_symbolic(like):
        return like.full(shape[1:], value)
    xp = namespace(like)
    if xp is np:
        dtype = np.float64 if like.dtype.kind == "O" else like.dtype
        return np.full(shape, value, dtype=dtype)
    return xp.full(shape, value, dtype=like.dtype, device=device(like))
