"""k(X, X) V again and again, for methods that need nothing else of a kernel matrix.

An exact product works in double precision whatever the data. A quick one works in single precision:
what it misses is made up for by whoever refines with exact residuals. Each takes the best of the
ways that the memory allows: K stored, tiles of which both halves are used, or fused on a GPU.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from . import tiles
from .arrays import as_numpy, is_array, is_cpu, is_numpy, namespace, rows_of
from .memory import coordinates, matrix

# Rows and columns of a tile of which both halves are used: it stays in cache with what its
# formula writes. Double precision, single precision.
EXACT_TILE = (256, 512)
QUICK_TILE = (256, 256)
# Sums that are added up apart, and then together: as many tasks for threads. Their number follows
# from sizes alone, so that the result does not depend on the number of threads.
MOST_SUMS = 32
SUM_BYTES = 1 << 28
# The largest error in a squared distance that a quick product is worth.
QUICK_ERROR = 1e-4
EPS32 = float(np.finfo(np.float32).eps)


@dataclass
class Product:
    """V -> K V, in double precision.

    way : "stored", "tiles" or "fused"
    exact : whether kernel values are in double precision
    """

    times: Callable[[Any], Any]
    way: str
    exact: bool

    def __call__(self, V):
        return self.times(V)


def exact_product(kernel, X, room=0, *, n_jobs=None):
    """K V with every kernel value in double precision.

    Parameters
    ----------
    kernel : Kernel, bound to its data
    X : its points, in double precision where they are numbers
    room : bytes in which K may be stored
    """
    n, form = X.shape[0], _form(kernel, X)
    if kernel.kind == "gram":
        return Product(_rows_times(X), "stored", True)
    if not is_cpu(X):
        if form is not None and form.is_fusible and _is_cuda(X):
            from .fused import FusedProduct

            return Product(FusedProduct(form, X, exact=True), "fused", True)
        return Product(_plain(kernel, X, n_jobs), "tiles", True)
    if matrix(n) <= room:
        K = tiles.evaluate(kernel, X, n_jobs=n_jobs)
        return Product(lambda V: K @ V, "stored", True)
    if not kernel.symmetric or not is_numpy(tiles.allocate(X, (0, 0))):
        return Product(_plain(kernel, X, n_jobs), "tiles", True)
    tile = kernel.against(kernel.landmarks(X))

    def values(a, b, c, d):
        return tile(rows_of(X, a, b), slice(c, d))

    return Product(_both_halves(values, n, EXACT_TILE, np.float64, kernel, n_jobs), "tiles", True)


def quick_product(kernel, X, room=0, *, n_jobs=None):
    """K V with kernel values in single precision, or None where that is not worth it.

    It is worth it where K fits the memory in single precision alone, or where the kernel has a form
    that single precision evaluates well: about four times faster than an exact product.
    """
    n, form = X.shape[0], _form(kernel, X)
    if kernel.kind == "gram" or kernel.runs_user_code:
        return None
    if is_cpu(X) and not is_numpy(tiles.allocate(X, (0, 0))):
        return None
    if not is_cpu(X):
        if form is None or not form.is_fusible or not _is_cuda(X):
            return None
        from .fused import FusedProduct

        return Product(FusedProduct(form, X), "fused", False)
    leaves = None if form is None or not is_numpy(X) else _single_leaves(form, X)
    fits = matrix(n, size=4) <= room
    if leaves is None and not (fits and kernel.symmetric):
        return None
    if leaves is None:
        tile = kernel.against(kernel.landmarks(X))

        def values(a, b, c, d):
            return tile(rows_of(X, a, b), slice(c, d)).astype(np.float32, copy=False)
    else:

        def values(a, b, c, d):
            return _single_values(leaves, a, b, c, d)

    if fits:
        K = _stored(values, n, kernel, n_jobs)
        return Product(lambda V: (K @ V.astype(np.float32)).astype(np.float64), "stored", False)
    return Product(_both_halves(values, n, QUICK_TILE, np.float32, kernel, n_jobs), "tiles", False)


def _form(kernel, X):
    """The kernel's form on dense vectors, where it has a small one."""
    if scipy.sparse.issparse(X) or not is_array(X) or X.ndim != 2 or X.dtype == object:
        return None
    form = kernel.fused_form()
    return form if form is not None and form.is_small else None


def _is_cuda(X):
    return "torch" in type(X).__module__ and str(X.device).startswith("cuda")


def _plain(kernel, X, n_jobs):
    S = kernel.landmarks(X)
    return lambda V: tiles.multiply(kernel, X, S, V, n_jobs=n_jobs)


def _rows_times(K):
    """A Gram matrix times V, a block of rows at a time: it may be a file mapped into memory."""
    xp = namespace(K)

    def times(V):
        product = tiles.allocate(V, V.shape)
        for a, b in tiles.row_blocks(K, K.shape[1]):
            product[a:b, :] = xp.astype(rows_of(K, a, b), V.dtype, copy=False) @ V
        return product

    return times


def _both_halves(values, n, tile, dtype, kernel, n_jobs):
    """K V from the tiles of one half: each serves its own rows and, transposed, its columns."""
    height, width = tile
    blocks = [(a, min(a + height, n)) for a in range(0, n, height)]

    def times(V):
        m = V.shape[1]
        right = np.ascontiguousarray(V, dtype=dtype)
        apart = max(1, min(MOST_SUMS, SUM_BYTES // coordinates(n, m), len(blocks)))
        sums = np.zeros((apart, n, m))

        def work(first, step):
            total = sums[first]
            for a, b in blocks[first::step]:
                total[a:b] += values(a, b, a, b) @ right[a:b]
                for c in range(0, a, width):
                    d = min(c + width, a)
                    t = values(a, b, c, d)
                    total[a:b] += t @ right[c:d]
                    total[c:d] += t.T @ right[a:b]

        tiles.run(work, [(g, apart) for g in range(apart)], kernel, right, n_jobs=n_jobs)
        return sums.sum(axis=0)

    return times


def _stored(values, n, kernel, n_jobs):
    """K in single precision, one half evaluated and mirrored."""
    K = np.empty((n, n), dtype=np.float32)
    height, width = QUICK_TILE

    def work(a, b):
        K[a:b, a:b] = values(a, b, a, b)
        for c in range(0, a, width):
            d = min(c + width, a)
            t = values(a, b, c, d)
            K[a:b, c:d] = t
            K[c:d, a:b] = t.T

    blocks = [(a, min(a + height, n)) for a in range(0, n, height)]
    tiles.run(work, blocks[::-1], kernel, K, n_jobs=n_jobs)
    return K


def _single_leaves(form, X):
    """Coordinates of every leaf in single precision, or None where they lose too much.

    [2 x, -1, -|x|^2] against [z, |z|^2, 1]: minus squared distances as one product.
    """
    X = as_numpy(X).astype(np.float64)
    centre = X.mean(axis=0)
    terms = []
    for term in form.terms:
        leaves = []
        for leaf in term.leaves:
            x = (X - centre if leaf.of_distance else X) * np.asarray(leaf.scale, dtype=np.float64)
            squares = np.einsum("ij,ij->i", x, x)[:, None]
            if leaf.of_distance and EPS32 * float(squares.max()) > QUICK_ERROR:
                return None
            left = right = x
            if leaf.of_distance:
                ones = np.ones_like(squares)
                left = np.concatenate([2.0 * x, -ones, -squares], axis=1)
                right = np.concatenate([x, squares, ones], axis=1)
            left, right = (np.ascontiguousarray(side, dtype=np.float32) for side in (left, right))
            leaves.append((leaf, left, right))
        terms.append((term.coefficient, leaves))
    return terms


def _single_values(terms, a, b, c, d):
    """Kernel values of rows a to b against rows c to d."""
    total = None
    for coefficient, leaves in terms:
        value = None
        for leaf, left, right in leaves:
            t = left[a:b] @ right[c:d].T
            if leaf.of_distance:
                np.minimum(t, 0.0, out=t)
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
