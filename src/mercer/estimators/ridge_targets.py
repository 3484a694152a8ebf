"""What ridge regressions are fitted to: targets as columns, and weights of the rows."""

import numpy as np
from sklearn.utils import check_array, check_consistent_length

from ..engine.arrays import as_host
from ..kernels import points as pts
from ..rows.gather import held_column
from ..rows.source import count_rows, in_pieces
from .targets import n_targets


def read_targets(X, y, sample_weight, name):
    """(targets, weights or None, number of targets, whether y is one-dimensional).

    Arrays, refused early where they make no sense, unless they are read with the rows. `name` is
    the estimator's.
    """
    y = held_column(y, X, in_step=True)
    sample_weight = held_column(sample_weight, X, "sample_weight", in_step=in_pieces(y))
    if in_pieces(y):
        if np.isscalar(sample_weight):  # arrays have one per row
            sample_weight = _weights(sample_weight, count_rows(X))
        columns = n_targets(y)
        return y, sample_weight, columns or 1, columns is None
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    with pts.naming("y"):
        T = check_array(as_host(y), ensure_2d=False, dtype=[np.float64, np.float32], input_name="y")
    if not in_pieces(X):
        check_consistent_length(X, T)
    single = T.ndim == 1
    T = T[:, None] if single else T
    weights = None if sample_weight is None else _weights(sample_weight, T.shape[0])
    return T, weights, T.shape[1], single


def _weights(sample_weight, n):
    with pts.naming("sample_weight"):
        weights = np.asarray(as_host(sample_weight), dtype=float)
    weights = np.full(n, weights) if weights.ndim == 0 else weights
    weights = check_array(weights, ensure_2d=False, dtype=float, input_name="sample_weight")
    if weights.shape != (n,) or np.any(weights < 0) or not np.any(weights > 0):
        raise ValueError(
            f"sample_weight must hold one non-negative number for each of the {n} rows, not all "
            f"zero, got {pts.short(sample_weight)}."
        )
    return weights
