"""SetOf: a kernel between points becomes one between collections of points."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse

from ..engine import require
from .composite import Unary
from .feature_kernels import ObjectKernel, map_products
from .hashing import rows_of_entries, scaled_rows, squared_lengths
from .kernel import ALL, Kernel
from .points import as_rows, read_each
from .types import Array, Tile

# Longest dense map of the inner kernel that is averaged instead of the kernel's values.
_SHORT = 512
# Values of the inner kernel that are averaged at once.
_INNER_VALUES = 1 << 20


class SetOf(ObjectKernel, Unary):
    r"""Compare sets of points: point clouds, documents as word vectors, samples of distributions.

    k(A, B) is the mean of k(a, b) over all pairs: the inner product of the sets' mean embeddings.
    The empty set is zero. Where the inner kernel has a map of its own, this one's is the mean of
    its rows.

    Parameters
    ----------
    kernel : Kernel or str
        On the members: vectors (a set is then an array with one row per member), or objects such
        as strings (a set is then a list of them).

    Notes
    -----
    .. math::

        k(A, B) = \frac{1}{|A|\, |B|} \sum_{a \in A} \sum_{b \in B} k(a, b)

    - *Valid*: where the inner kernel is: an inner product of means (Gärtner et al. 2002; Smola et
      al. 2007).
    - *Fails*: where single members matter: a mean hides them. Without a finite map a pair of sets
      costs the product of their sizes.
    - *Elsewhere*: the mean map or multi-instance kernel; no common library has it.

    |mean of A - mean of B|^2 in feature space is the squared maximum mean discrepancy.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, SetOf
    >>> clouds = [np.zeros((2, 3)), np.ones((5, 3)), np.zeros((0, 3))]
    >>> SetOf(RBF(0.1))(clouds).round(3)
    array([[1.   , 0.741, 0.   ],
           [0.741, 1.   , 0.   ],
           [0.   , 0.   , 0.   ]])
    """

    _needs_points = True

    @property
    def drawn_as(self) -> str | None:  # type: ignore[override]
        return "sets" if self.kernel.kind == "vectors" else None

    def bind_points(self, X: Array, names: list[str] | None, weights: Array | None = None) -> SetOf:
        self.check_parameters()
        members, starts = self.pooled(X)
        if not len(members):  # nothing that a parameter could be taken from
            return SetOf(self.kernel)
        each = None if weights is None else np.repeat(weights, np.diff(starts))
        return SetOf(self.kernel.bind_points(members, None, each))

    landmarks = Kernel.landmarks

    # --- members ----------------------------------------------------------------------------------

    def pooled(self, X: Array) -> tuple[Array, np.ndarray]:
        """All members one after the other, and where each set begins (and the last one ends)."""
        if self.kernel.kind == "objects":
            sets = read_each(X, _collection)
            members = [member for x in sets for member in x]
            pooled = self.kernel.points(members) if members else np.empty(0, dtype=object)
        else:
            listed = [sorted(x) if isinstance(x, (set, frozenset)) else x for x in X]
            what = "an array of numbers with one row per point"
            sets = read_each(listed, lambda x: as_rows(x, what))
            width = next((x.shape[1] for x in sets if x.ndim == 2 and x.shape[1]), 1)
            for i, x in enumerate(sets):
                require(
                    not len(x) or x.shape[1] == width,
                    f"the points of X[{i}] have {x.shape[-1]} columns, those before it {width}: "
                    "all points need the same columns.",
                )
            pooled = np.concatenate([x if len(x) else np.zeros((0, width)) for x in sets])
        return pooled, np.cumsum([0, *map(len, sets)])

    # --- values -----------------------------------------------------------------------------------

    def against(self, S: Array) -> Tile:
        members, starts = self.pooled(S)
        if self._has_short_map(members):
            return map_products(self.features, S)
        means = _means(starts)
        inner = self.kernel.against(self.kernel.landmarks(members)) if len(members) else None
        width = getattr(members, "shape", (0, 0))[1:]

        def tile(rows: Any, columns: slice = ALL) -> np.ndarray:
            a, b, _ = columns.indices(len(starts) - 1)
            points, row_starts = self.pooled(rows)
            if inner is None or not len(points) or starts[a] == starts[b]:
                return np.zeros((len(rows), b - a))
            require(
                points.shape[1:] == width,
                f"the points of a set have {points.shape[1:]} columns, those of another {width}.",
            )
            averaged = np.empty((len(points), b - a))
            step = max(1, _INNER_VALUES // int(starts[b] - starts[a]))
            right = means[a:b, starts[a] : starts[b]]
            for c in range(0, len(points), step):
                values = inner(points[c : c + step], slice(int(starts[a]), int(starts[b])))
                averaged[c : c + step] = (right @ values.T).T
            return _means(row_starts) @ averaged

        return tile

    def _has_short_map(self, members):
        """Whether means of the members' own coordinates are cheaper than means over pairs."""
        if not len(members):
            return False
        dim = self.kernel.explicit_dim(members.shape[1] if members.ndim == 2 else None)
        if dim is None:
            return False
        try:
            return dim <= _SHORT or scipy.sparse.issparse(self.kernel.features(members[:1]))
        except TypeError:  # a product of sparse maps, which is not written out
            return False

    def diagonal(self, X: Array) -> Array:
        members, starts = self.pooled(X)
        if self._has_short_map(members):
            return squared_lengths(self.features(X))
        values = np.zeros(len(X))
        for i, (a, b) in enumerate(pairwise(starts)):
            if b > a:
                points = self.kernel.landmarks(members[a:b])
                tile = self.kernel.against(points)
                step = max(1, _INNER_VALUES // int(b - a))
                rows = [tile(members[c : min(c + step, b)]).mean(axis=1) for c in range(a, b, step)]
                values[i] = np.concatenate(rows).mean()
        return values

    def features(self, X: Array) -> Array:
        members, starts = self.pooled(X)
        require(len(members) > 0, "SetOf: all sets are empty, so the dimension is not known.")
        F = self.kernel.features(members)
        if not scipy.sparse.issparse(F):
            return _means(starts) @ F
        sizes = np.diff(starts)
        F = scaled_rows(F, np.repeat(1.0 / np.maximum(sizes, 1), sizes))
        return rows_of_entries(F.data, F.indices, F.indptr[starts], F.shape[1])

    has_magnitude = True

    def magnitude(self, X: Array) -> Array:
        """Means of values of both signs cancel: their errors are relative to the mean length of the
        members, and grow as the root of their number."""
        members, starts = self.pooled(X)
        if not len(members):
            return np.zeros(len(X))
        lengths = np.sqrt(np.maximum(self.kernel.magnitude(members), 0.0))
        return np.sqrt(np.diff(starts)) * (_means(starts) @ lengths) ** 2

    def rounding(self, S: Array) -> float:
        members, _ = self.pooled(S)
        return 4.0 + 2.0 * self.kernel.rounding(members) if len(members) else 4.0


def _collection(x):
    if isinstance(x, (str, bytes)) or not hasattr(x, "__iter__"):
        raise TypeError(
            f"is {type(x).__name__} {x!r:.40}, not a collection of points; put a single one into a "
            "list."
        )
    return list(x)


def _means(starts):
    """The sparse matrix that averages the rows of each set."""
    sizes = np.diff(starts)
    weights = np.repeat(1.0 / np.maximum(sizes, 1), sizes)
    shape = (len(sizes), int(starts[-1]))
    return scipy.sparse.csr_array((weights, np.arange(starts[-1]), starts), shape=shape)
