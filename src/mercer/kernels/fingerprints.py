"""Tanimoto: what two non-negative vectors share, of all that they have."""

from typing import Any

import numpy as np
import scipy.sparse

from ..engine import is_symbolic, namespace, require
from .geometry import inner_products, over_columns
from .kernel import ALL, Kernel
from .types import Array, Tile

# Sparse counts up to this one are compared by sparse products, one column per level.
MOST_LEVELS = 64


class Tanimoto(Kernel):
    r"""Compare molecules' fingerprints, or any counts, by the share that they have in common.

    sum_c min(x_c, z_c) / sum_c max(x_c, z_c): for 0 and 1 the size of the intersection over that of
    the union (Jaccard), for counts the min-max kernel. Two rows of zeros are alike (1).

    Values must be >= 0. Rows may be dense or sparse; sparse counts stay sparse.

    Notes
    -----
    .. math::

        k(x, z) = \frac{\sum_c \min(x_c, z_c)}{\sum_c \max(x_c, z_c)}

    - *Valid*: on non-negative vectors (Ralaivola, Swamidass, Saigo and Baldi 2005; for 0 and 1
      already Gower 1971).
    - *Fails*: for values below 0, which are refused; for dense data a matrix product does not
      compute it.
    - *Elsewhere*: RDKit's Tanimoto similarity, GAUCHE's `TanimotoKernel` (which has x.z and |x|^2 +
      |z|^2 - x.z in place of min and max: the same for 0 and 1).

    Examples
    --------
    >>> from mercer import Tanimoto
    >>> Tanimoto()([[1, 1, 0, 1]], [[1, 0, 1, 1], [1, 1, 0, 1], [0, 0, 1, 0]])
    array([[0.5, 1. , 0. ]])
    """

    non_negative_only = True

    is_psd = True

    def against(self, S: Array) -> Tile:
        S = _checked(S)
        common = _sparse_common(S) if scipy.sparse.issparse(S) else _dense_common(S)
        sizes = _sizes(S)

        def tile(rows: Any, columns: slice = ALL) -> Any:
            rows = _checked(rows)
            shared = common(rows, columns)
            union = _sizes(rows)[:, None] + sizes[columns][None, :]
            union -= shared
            xp = namespace(shared)
            empty = union == 0
            if is_symbolic(empty) or bool(xp.any(empty)):
                shared, union = (xp.where(empty, xp.ones_like(a), a) for a in (shared, union))
            shared /= union
            return shared

        return tile

    def diagonal(self, X: Array) -> Array:
        return _sizes(_checked(X)) * 0 + 1

    def largest_terms(self, X: Array) -> Array:
        return 2 * _sizes(_checked(X))  # the sum of two rows is finite too

    def rounding(self, S: Array) -> float:
        # The numerator and the denominator are sums of one sign.
        return 6.0 + S.shape[1]


def _checked(X):
    if is_symbolic(X):
        return X
    smallest = X.data.min(initial=0) if scipy.sparse.issparse(X) else namespace(X).min(X)
    require(
        float(smallest) >= 0,
        f"Negative values in data: Tanimoto compares fingerprints or counts and needs values >= 0; "
        f"the data contain {float(smallest):.4g}.",
    )
    return X


def _sizes(X):
    if scipy.sparse.issparse(X):
        return np.asarray(X.sum(axis=1)).ravel()
    with np.errstate(over="ignore"):  # refused by check_range
        return namespace(X).sum(X, axis=1)


# --- sum of minima --------------------------------------------------------------------------------


def _dense_common(S):
    binary = _is_binary(S)

    def common(rows: Any, columns: slice):
        if binary and not is_symbolic(rows) and _is_binary(rows):  # then min(x, z) = x z
            return rows @ S[columns, :].T
        return over_columns(namespace(rows).minimum, rows, S[columns, :])

    return common


def _sparse_common(S):
    """min(x, z) is the number of levels 1, 2, ... that both reach, where both are counts."""
    levels = _levels(S)
    if levels is not None:
        right = _unary(S, levels)

        def common(rows: Any, columns: slice):
            # Levels beyond those of S are reached by no point of S.
            return inner_products(_unary(rows, levels), right[columns].T)

        def for_counts(rows: Any, columns: slice):
            return (common if _levels(rows) is not None else by_columns)(rows, columns)

    dense = None

    def by_columns(rows: Any, columns: slice):
        nonlocal dense
        if dense is None:
            dense = S.toarray()
        return over_columns(np.minimum, rows.toarray(), dense[columns])

    return by_columns if levels is None else for_counts


def _levels(X):
    """The largest count, or None where values are not whole numbers or too large."""
    largest = X.data.max(initial=1)
    whole = largest <= MOST_LEVELS and bool((X.data == np.floor(X.data)).all())
    return int(largest) if whole else None


def _unary(X, levels):
    """Counts as 0 and 1: column c becomes `levels` columns, the first x_c of them 1."""
    if levels == 1:
        return scipy.sparse.csr_array((np.minimum(X.data, 1), X.indices, X.indptr), shape=X.shape)
    reached = np.minimum(X.data, levels).astype(np.int64)
    first = np.cumsum(reached) - reached
    level = np.arange(reached.sum()) - np.repeat(first, reached)
    columns = np.repeat(X.indices.astype(np.int64) * levels, reached) + level
    starts = np.concatenate([first, [reached.sum()]])[X.indptr]
    shape = (X.shape[0], X.shape[1] * levels)
    return scipy.sparse.csr_array((np.ones(len(columns), dtype=X.dtype), columns, starts), shape)


def _is_binary(X):
    return bool(namespace(X).all((X == 0) | (X == 1)))
