"""k(X, X) V again and again, for methods that need nothing else of a kernel matrix.

An exact product works in double precision whatever the data. A quick one works in single precision:
what it misses is made up for by whoever refines with exact residuals. Each takes the best of the
ways that the memory allows: K stored, tiles of which both halves are used, or fused on a GPU.

Tiles are added up in shares that are computed apart: on threads here, or by the workers of a
cluster. A share is every step-th block of rows with all tiles before it: all cost about the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from . import tiles
from .arrays import Array, as_numpy, is_cpu, is_matrix, is_numpy, namespace, rows_of
from .forms import Form, Leaf
from .memory import coordinates_bytes, matrix_bytes
from .resources import current

# Sums that are added up apart, and then together: as many tasks for threads. Their number follows
# from sizes alone, so that the result does not depend on the number of threads.
_MOST_SUMS = 32
_SUM_BYTES, _SUM_SHARE = 1 << 28, 8  # and one in so many bytes of a memory limit
# Sums that a fused product holds for every row, in double precision.
_FUSED_SUMS = 128
# Rows and columns of a tile of which both halves are used: it stays in cache with what its
# formula writes. Double precision, single precision.
_EXACT_TILE = (256, 512)
_QUICK_TILE = (256, 256)
# The largest error in a squared distance that a quick product is worth.
_QUICK_ERROR = 1e-4
# Columns from which on BLAS multiplies a tile by all of them at once.
_FEW_COLUMNS = 4
# Rows that are copied in double precision at a time.
_ROWS_AT_ONCE = 4096
_EPS32 = float(np.finfo(np.float32).eps)
# NumPy compares an array with another array four times faster than with a number.
_ZEROS = np.zeros(_QUICK_TILE, dtype=np.float32)


def _times(t: np.ndarray, V: np.ndarray) -> Any:
    """t @ V. BLAS is made for many columns: two or three are faster one by one."""
    if not 1 < V.shape[1] < _FEW_COLUMNS:
        return t @ V
    return np.stack([t @ V[:, j] for j in range(V.shape[1])], axis=1)


@dataclass
class _Shares:
    """Shares of K V for a symmetric kernel."""

    values: Callable[[int, int, int, int], Any]  # of a, b, c, d: one tile of K
    n: int
    tile: tuple[int, int]  # its rows and columns
    dtype: Any
    are_stored: bool = False

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """(start, stop) of the rows of every block."""
        return tiles.cuts(self.n, self.tile[0])

    def prepared(self, V: Array) -> np.ndarray:
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
        return [*tiles.cuts(a, self.tile[1]), (a, b)]

    def store(self, kernel: Any) -> None:
        """Evaluate all tiles once and keep them: half of K, never mirrored."""
        kept = {}

        def work(a: int, b: int) -> None:
            for c, d in self.columns(a, b):
                kept[a, c] = self.values(a, b, c, d)

        tiles.run_tasks(work, self.blocks[::-1], kernel, np.empty(0))
        self.values, self.are_stored = lambda a, b, c, d: kept[a, c], True


class _RowShares(_Shares):
    """Shares of whole rows, for similarities that may not be symmetric to the last bit."""

    def add(self, right: np.ndarray, first: int, step: int, total: np.ndarray) -> None:
        for a, b in self.blocks[first::step]:
            for c, d in tiles.cuts(self.n, self.tile[1]):
                total[a:b] += self.values(a, b, c, d) @ right[c:d]


@dataclass
class _KernelValues:
    """Tiles of K by the kernel itself."""

    kernel: Any
    X: Any
    dtype: Any = None

    @cached_property
    def tile(self) -> Any:
        return self.kernel.against(self.kernel.landmarks(self.X))

    def __call__(self, a: int, b: int, c: int, d: int) -> Any:
        values = self.tile(rows_of(self.X, a, b), slice(c, d))
        return values if self.dtype is None else values.astype(self.dtype, copy=False)

    def __getstate__(self) -> dict[str, Any]:
        return {"kernel": self.kernel, "X": self.X, "dtype": self.dtype}


@dataclass
class _SingleValues:
    """Tiles of K in single precision, by the form of the kernel."""

    terms: list[tuple[float, list[tuple[Leaf, np.ndarray, np.ndarray]]]]

    @classmethod
    def of(cls, form: Form, X: Any) -> "_SingleValues | None":
        """None where single precision loses too much."""
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

    def __call__(self, a: int, b: int, c: int, d: int) -> Any:
        total = None
        for coefficient, leaves in self.terms:
            value = None
            for leaf, left, right in leaves:
                t = left[a:b] @ right[c:d].T
                if leaf.of_distance:
                    np.minimum(t, _ZEROS[: b - a, : d - c], out=t)
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


def _sides(leaf: Leaf, X: np.ndarray, centre: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """(left, right) of a leaf in single precision; None where that loses too much. Minus squared
    distances are one product: [2 x, -1, -|x|^2] against [z, |z|^2, 1]."""
    n, d = X.shape
    scale = np.asarray(leaf.scale, dtype=np.float64)
    left = right = np.empty((n, d + 2 if leaf.of_distance else d), dtype=np.float32)
    if leaf.of_distance:
        right = np.empty_like(left)
    for a, b in tiles.cuts(n, _ROWS_AT_ONCE):
        x = X[a:b].astype(np.float64)
        if not leaf.of_distance:
            left[a:b] = x * scale
            continue
        x = (x - centre) * scale
        squares = np.einsum("ij,ij->i", x, x)
        if _EPS32 * float(squares.max()) > _QUICK_ERROR:
            return None
        left[a:b, :d], left[a:b, d], left[a:b, d + 1] = 2.0 * x, -1.0, -squares
        right[a:b, :d], right[a:b, d], right[a:b, d + 1] = x, squares, 1.0
    return left, right


@dataclass
class MatrixProduct:
    """V -> K V, in double precision."""

    times: Callable[[Any], Any]
    way: str  # "stored", "tiles", "fused" or "factored"
    exact: bool  # whether kernel values are in double precision

    def __call__(self, V: Any) -> Any:
        return self.times(V)

    @classmethod
    def of(cls, kernel: Any, X: Array, room: float = 0) -> "MatrixProduct":
        """K V with every kernel value in double precision, for a kernel bound to its data X (in
        double precision where they are numbers); `room`: bytes in which K may be stored."""
        n, form = X.shape[0], _form(kernel, X)
        stored = kernel.layout.stored_rows(kernel, X)
        if stored is not None:
            return cls(_rows_times(stored, X), "stored", True)
        S = kernel.landmarks(X)
        plain = cls(lambda V: tiles.multiply(kernel, X, S, V), "tiles", True)
        if not is_cpu(X):
            return _fused(form, X, True) or plain
        halves = kernel.symmetric and is_numpy(tiles.allocate(X, (0, 0)))
        fits = matrix_bytes(n, 0.5 if halves else 1) <= room
        if halves:
            shares = cls.shares(kernel, X)
            if fits:
                shares.store(kernel)
            return cls(_on_threads(shares, kernel), "stored" if fits else "tiles", True)
        if fits:
            K = tiles.evaluate(kernel, X)
            return cls(lambda V: K @ V, "stored", True)
        return plain

    @classmethod
    def quick(cls, kernel: Any, X: Array, room: float = 0) -> "MatrixProduct | None":
        """K V with kernel values in single precision, or None where that is not worth it.

        It is worth it where K fits the memory in single precision alone, or where the kernel has a
        form that single precision evaluates well: about four times faster than an exact product.
        """
        n, form = X.shape[0], _form(kernel, X)
        if kernel.runs_user_code:
            return None
        if is_cpu(X) and not is_numpy(tiles.allocate(X, (0, 0))):
            return None
        if not is_cpu(X):
            return _fused(form, X, False)
        fits = matrix_bytes(n, size=4) <= room
        shares = cls.quick_shares(kernel, X, stored=fits)
        if shares is None:
            return None
        if fits:
            K = _stored(shares.values, n, kernel)
            return cls(lambda V: (K @ V.astype(np.float32)).astype(np.float64), "stored", False)
        return cls(_on_threads(shares, kernel), "tiles", False)

    @staticmethod
    def shares(kernel: Any, X: Array) -> _Shares:
        """Shares of an exact product, for points that NumPy holds."""
        kind = _Shares if kernel.symmetric else _RowShares
        return kind(_KernelValues(kernel, X), X.shape[0], _EXACT_TILE, np.float64)

    @staticmethod
    def quick_shares(kernel: Any, X: Array, *, stored: bool = False) -> _Shares | None:
        """Shares of a quick product, or None where they would not be quicker; `stored`: as those
        that are computed once and kept."""
        form = _form(kernel, X)
        values: Any = None if form is None or not is_numpy(X) else _SingleValues.of(form, X)
        if values is None and stored and kernel.symmetric:
            values = _KernelValues(kernel, X, np.float32)
        if values is None:
            return None
        return _Shares(values, X.shape[0], _QUICK_TILE, np.float32)

    @staticmethod
    def bytes_beside(kernel: Any, X: Array, n_targets: int = 0) -> int:
        """Bytes that products take beside K and their result: copies of the rows (of an exact
        product, of a quick one, and one on the way there), and sums that are added up apart."""
        n, sums = X.shape[0], 0
        if n_targets and is_cpu(X):
            sums = _sums_apart(n, n_targets) * n_targets
        elif n_targets == 1:
            sums = _FUSED_SUMS
        copies = coordinates_bytes(n, kernel.layout.numbers_per_row(X), copies=3)
        return int(coordinates_bytes(n, sums) + copies)


def _sums_apart(n: int, m: int) -> int:
    """Sums of n rows and m columns that are added up apart: one per block of rows at most."""
    limit = current().memory_limit
    room = _SUM_BYTES if limit is None else min(_SUM_BYTES, current().limit() // _SUM_SHARE)
    blocks = len(tiles.cuts(n, _EXACT_TILE[0]))
    return max(1, min(_MOST_SUMS, blocks, int(room // coordinates_bytes(n, m))))


def _form(kernel: Any, X: Array) -> Any:
    """The kernel's form on dense vectors, where it has a small one."""
    return kernel.fused_form() if is_matrix(X) else None


def _fused(form: Form | None, X: Any, exact: bool) -> MatrixProduct | None:
    """In one pass on a GPU, or None where that is not known for the form or the device."""
    if form is None or not _is_cuda(X):
        return None
    if not all(leaf.function for term in form.terms for leaf in term.leaves):
        return None
    from .fused import FusedProduct

    product = FusedProduct(form, X, exact=exact, squares=_FUSED_SUMS)
    return MatrixProduct(product, "fused", exact)


def _is_cuda(X: Any) -> bool:
    return "torch" in type(X).__module__ and str(X.device).startswith("cuda")


def _rows_times(stored: Callable[[Array], Any], K: Array) -> Callable[[Array], Any]:
    """A Gram matrix times V, a block of rows at a time: it may be a file mapped into memory."""
    xp = namespace(K)

    def times(V: Array) -> Any:
        product = tiles.allocate(V, V.shape)
        for a, b in tiles.row_blocks(K, K.shape[1]):
            product[a:b, :] = xp.astype(stored(rows_of(K, a, b)), V.dtype, copy=False) @ V
        return product

    return times


def _on_threads(shares: _Shares, kernel: Any) -> Callable[[Array], Any]:
    """V -> K V, one thread per share."""

    def times(V: Array) -> Any:
        n, m = V.shape
        right = shares.prepared(V)
        apart = _sums_apart(n, m)
        sums = np.zeros((apart, n, m))

        def work(first: int, step: int) -> None:
            shares.add(right, first, step, sums[first])

        # A few columns times stored tiles: half of the cores can read all that memory gives.
        waits = shares.are_stored and m < _FEW_COLUMNS
        threads = max(1, current().threads // 2) if waits else None
        tiles.run_tasks(work, [(g, apart) for g in range(apart)], kernel, right, threads=threads)
        return sums.sum(axis=0)

    return times


def _stored(values: Callable[[int, int, int, int], Any], n: int, kernel: Any) -> np.ndarray:
    """K in single precision, one half evaluated and mirrored."""
    K = np.empty((n, n), dtype=np.float32)
    height, width = _QUICK_TILE

    def work(a: int, b: int) -> None:
        K[a:b, a:b] = values(a, b, a, b)
        for c, d in tiles.cuts(a, width):
            t = values(a, b, c, d)
            K[a:b, c:d] = t
            K[c:d, a:b] = t.T

    tiles.run_tasks(work, tiles.cuts(n, height)[::-1], kernel, K)
    return K
