"""k(X, X) V again and again, for methods that need nothing else of a kernel matrix.

An exact product works in double precision whatever the data. A quick one works in single precision:
what it misses is made up for by whoever refines with exact residuals. Each takes the best of the
ways that the memory allows: K stored, tiles of which both halves are used, or fused on a GPU.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import tiles
from .arrays import Array, is_cpu, is_matrix, is_numpy, namespace, rows_of
from .memory import coordinates_bytes, matrix_bytes
from .resources import current
from .shares import (
    EXACT_TILE,
    FEW_COLUMNS,
    QUICK_TILE,
    KernelValues,
    RowShares,
    Shares,
    SingleValues,
    StoredValues,
)

# Sums that are added up apart, and then together: as many tasks for threads. Their number follows
# from sizes alone, so that the result does not depend on the number of threads.
MOST_SUMS = 32
SUM_BYTES, SUM_SHARE = 1 << 28, 8  # and one in so many bytes of a memory limit
# Sums that a fused product holds for every row, in double precision.
FUSED_SUMS = 128


@dataclass
class MatrixProduct:
    """V -> K V, in double precision.

    way : "stored", "tiles", "fused" or "factored"
    exact : whether kernel values are in double precision
    """

    times: Callable[[Any], Any]
    way: str
    exact: bool

    def __call__(self, V):
        return self.times(V)

    @classmethod
    def of(cls, kernel: Any, X: Array, room: float = 0) -> "MatrixProduct":
        """K V with every kernel value in double precision.

        Parameters
        ----------
        kernel : Kernel, bound to its data
        X : its points, in double precision where they are numbers
        room : bytes in which K may be stored
        """
        n, form = X.shape[0], _form(kernel, X)
        stored = kernel.layout.stored_rows(kernel, X)
        if stored is not None:
            return cls(_rows_times(stored, X), "stored", True)
        if not is_cpu(X):
            return _fused(form, X, True) or cls(_plain(kernel, X), "tiles", True)
        halves = kernel.symmetric and is_numpy(tiles.allocate(X, (0, 0)))
        fits = matrix_bytes(n, 0.5 if halves else 1) <= room
        if halves:
            shares = cls.shares(kernel, X)
            if fits:
                shares.values = _kept(shares, kernel)
            return cls(_on_threads(shares, kernel), "stored" if fits else "tiles", True)
        if fits:
            K = tiles.evaluate(kernel, X)
            return cls(lambda V: K @ V, "stored", True)
        return cls(_plain(kernel, X), "tiles", True)

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
    def shares(kernel: Any, X: Array) -> Shares:
        """Shares of an exact product, for points that NumPy holds."""
        kind = Shares if kernel.symmetric else RowShares
        return kind(KernelValues(kernel, X), X.shape[0], EXACT_TILE, np.float64)

    @staticmethod
    def quick_shares(kernel: Any, X: Array, *, stored: bool = False) -> Shares | None:
        """Shares of a quick product, or None where they would not be quicker; `stored`: as those
        that are computed once and kept."""
        form = _form(kernel, X)
        values: Any = None if form is None or not is_numpy(X) else SingleValues.of(form, X)
        if values is None and stored and kernel.symmetric:
            values = KernelValues(kernel, X, np.float32)
        if values is None:
            return None
        return Shares(values, X.shape[0], QUICK_TILE, np.float32)

    @staticmethod
    def bytes_beside(kernel: Any, X: Array, n_targets: int = 0) -> int:
        """Bytes that products take beside K and their result: copies of the rows (of an exact
        product, of a quick one, and one on the way there), and sums that are added up apart."""
        n, sums = X.shape[0], 0
        if n_targets and is_cpu(X):
            sums = _sums_apart(n, n_targets) * n_targets
        elif n_targets == 1:
            sums = FUSED_SUMS
        copies = coordinates_bytes(n, kernel.layout.numbers_per_row(X), copies=3)
        return int(coordinates_bytes(n, sums) + copies)


def _sums_apart(n, m):
    """Sums of n rows and m columns that are added up apart: one per block of rows at most."""
    limit = current().memory_limit
    room = SUM_BYTES if limit is None else min(SUM_BYTES, current().limit() // SUM_SHARE)
    blocks = len(tiles.cuts(n, EXACT_TILE[0]))
    return max(1, min(MOST_SUMS, blocks, room // coordinates_bytes(n, m)))


def _form(kernel, X):
    """The kernel's form on dense vectors, where it has a small one."""
    return kernel.fused_form() if is_matrix(X) else None


def _fused(form, X, exact):
    """In one pass on a GPU, or None where that is not known for the form or the device."""
    if form is None or not form.is_fusible or not _is_cuda(X):
        return None
    from .fused import FusedProduct

    product = FusedProduct(form, X, exact=exact, squares=FUSED_SUMS)
    return MatrixProduct(product, "fused", exact)


def _is_cuda(X):
    return "torch" in type(X).__module__ and str(X.device).startswith("cuda")


def _plain(kernel, X):
    S = kernel.landmarks(X)
    return lambda V: tiles.multiply(kernel, X, S, V)


def _rows_times(stored, K):
    """A Gram matrix times V, a block of rows at a time: it may be a file mapped into memory."""
    xp = namespace(K)

    def times(V: Array):
        product = tiles.allocate(V, V.shape)
        for a, b in tiles.row_blocks(K, K.shape[1]):
            product[a:b, :] = xp.astype(stored(rows_of(K, a, b)), V.dtype, copy=False) @ V
        return product

    return times


def _on_threads(shares, kernel):
    """V -> K V, one thread per share."""

    def times(V: Array):
        n, m = V.shape
        right = shares.prepared(V)
        apart = _sums_apart(n, m)
        sums = np.zeros((apart, n, m))

        def work(first: int, step: int) -> None:
            shares.add(right, first, step, sums[first])

        # A few columns times stored tiles: half of the cores can read all that memory gives.
        waits = isinstance(shares.values, StoredValues) and m < FEW_COLUMNS
        threads = max(1, current().threads // 2) if waits else None
        tiles.run_tasks(work, [(g, apart) for g in range(apart)], kernel, right, threads=threads)
        return sums.sum(axis=0)

    return times


def _kept(shares, kernel):
    """The tiles of shares, all evaluated: half of K is stored, and never mirrored."""
    kept = {}

    def work(a: int, b: int) -> None:
        for c, d in shares.columns(a, b):
            kept[a, c] = shares.values(a, b, c, d)

    tiles.run_tasks(work, shares.blocks[::-1], kernel, np.empty(0))
    return StoredValues(kept)


def _stored(values, n, kernel):
    """K in single precision, one half evaluated and mirrored."""
    K = np.empty((n, n), dtype=np.float32)
    height, width = QUICK_TILE

    def work(a: int, b: int) -> None:
        K[a:b, a:b] = values(a, b, a, b)
        for c, d in tiles.cuts(a, width):
            t = values(a, b, c, d)
            K[a:b, c:d] = t
            K[c:d, a:b] = t.T

    tiles.run_tasks(work, tiles.cuts(n, height)[::-1], kernel, K)
    return K
