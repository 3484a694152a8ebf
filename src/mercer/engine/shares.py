"""K V as a sum of shares that are computed apart: on threads here, or by the workers of a cluster.

The tiles of one half of K serve their own rows and, transposed, their columns. A share is every
step-th block of rows with all tiles before it, so that all shares cost about the same.
"""

from functools import cached_property
from typing import Any

import numpy as np

from .arrays import Array, as_numpy, rows_of
from .forms import Form
from .tiles import cuts

# Rows and columns of a tile of which both halves are used: it stays in cache with what its
# formula writes. Double precision, single precision.
EXACT_TILE = (256, 512)
QUICK_TILE = (256, 256)
# The largest error in a squared distance that a quick product is worth.
QUICK_ERROR = 1e-4
# Columns from which on BLAS multiplies a tile by all of them at once.
FEW_COLUMNS = 4
# Rows that are copied in double precision at a time.
ROWS_AT_ONCE = 4096
EPS32 = float(np.finfo(np.float32).eps)
# NumPy compares an array with another array four times faster than with a number.
ZEROS = np.zeros(QUICK_TILE, dtype=np.float32)


def _times(t, V):
    """t @ V. BLAS is made for many columns: two or three are faster one by one."""
    if not 1 < V.shape[1] < FEW_COLUMNS:
        return t @ V
    return np.stack([t @ V[:, j] for j in range(V.shape[1])], axis=1)


class Shares:
    """Shares of K V for a symmetric kernel: `values(a, b, c, d)` is one tile of K."""

    def __init__(self, values, n, tile, dtype):
        self.values, self.n, self.dtype = values, n, np.dtype(dtype)
        self.height, self.width = tile

    @property
    def blocks(self):
        """(start, stop) of the rows of every block."""
        return cuts(self.n, self.height)

    def prepared(self, V: Array):
        """V as shares take it."""
        return np.ascontiguousarray(V, dtype=self.dtype)

    def add(self, right: np.ndarray, first: int, step: int, total: np.ndarray) -> None:
        """Add share `first` of `step` shares to an n x m array."""
        for a, b in self.blocks[first::step]:
            for c, d in self.columns(a, b):
                t = self.values(a, b, c, d)
                total[a:b] += _times(t, right[c:d])
                if c < a:
                    total[c:d] += _times(t.T, right[a:b])

    def columns(self, a: int, b: int) -> list[tuple[int, int]]:
        """(start, stop) of the columns of every tile of a block: those before it, and its own."""
        return [*cuts(a, self.width), (a, b)]


class RowShares(Shares):
    """Shares of whole rows, for similarities that may not be symmetric to the last bit."""

    def add(self, right: np.ndarray, first: int, step: int, total: np.ndarray) -> None:
        for a, b in self.blocks[first::step]:
            for c, d in cuts(self.n, self.width):
                total[a:b] += self.values(a, b, c, d) @ right[c:d]


class KernelValues:
    """Tiles of K by the kernel itself."""

    def __init__(self, kernel, X, dtype=None):
        self.kernel, self.X = kernel, X
        self.dtype = None if dtype is None else np.dtype(dtype)

    @cached_property
    def tile(self):
        return self.kernel.against(self.kernel.landmarks(self.X))

    def __call__(self, a, b, c, d):
        values = self.tile(rows_of(self.X, a, b), slice(c, d))
        return values if self.dtype is None else values.astype(self.dtype, copy=False)

    def __getstate__(self):
        return {"kernel": self.kernel, "X": self.X, "dtype": self.dtype}


class StoredValues:
    """Tiles that are computed once and kept: `tiles` by the first row and column of each."""

    def __init__(self, tiles):
        self.tiles = tiles

    def __call__(self, a, b, c, d):
        return self.tiles[a, c]


class SingleValues:
    """Tiles of K in single precision, by the form of the kernel."""

    def __init__(self, terms):
        self.terms = terms

    @classmethod
    def of(cls, form: Form, X: Any) -> "SingleValues | None":
        """None where single precision loses too much.

        [2 x, -1, -|x|^2] against [z, |z|^2, 1]: minus squared distances as one product.
        """
        X = as_numpy(X)
        centre = X.mean(axis=0, dtype=np.float64)
        terms = []
        for term in form.terms:
            leaves = []
            for leaf in term.leaves:
                sides = _sides(leaf, X, centre)
                if sides is None:
                    return None
                leaves.append((leaf, *sides))
            terms.append((term.coefficient, leaves))
        return cls(terms)

    def __call__(self, a, b, c, d):
        total = None
        for coefficient, leaves in self.terms:
            value = None
            for leaf, left, right in leaves:
                t = left[a:b] @ right[c:d].T
                if leaf.of_distance:
                    np.minimum(t, ZEROS[: b - a, : d - c], out=t)
                    if a == c:
                        np.fill_diagonal(t, 0.0)
                t = leaf.formula(t, np)
                value = t if value is None else np.multiply(value, t, out=value)
            if value is None:
                value = np.full((b - a, d - c), coefficient, dtype=np.float32)
            elif coefficient != 1:
                value *= np.float32(coefficient)
            total = value if total is None else np.add(total, value, out=total)
        return total


def _sides(leaf, X, centre):
    """(left, right) of a leaf in single precision; None where that loses too much."""
    n, d = X.shape
    scale = np.asarray(leaf.scale, dtype=np.float64)
    left = right = np.empty((n, d + 2 if leaf.of_distance else d), dtype=np.float32)
    if leaf.of_distance:
        right = np.empty_like(left)
    for a, b in cuts(n, ROWS_AT_ONCE):
        x = X[a:b].astype(np.float64)
        if not leaf.of_distance:
            left[a:b] = x * scale
            continue
        x = (x - centre) * scale
        squares = np.einsum("ij,ij->i", x, x)
        if EPS32 * float(squares.max()) > QUICK_ERROR:
            return None
        left[a:b, :d], left[a:b, d], left[a:b, d + 1] = 2.0 * x, -1.0, -squares
        right[a:b, :d], right[a:b, d], right[a:b, d + 1] = x, squares, 1.0
    return left, right
