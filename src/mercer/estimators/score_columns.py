"""Small things that methods do to columns of scores and to points."""

from typing import Any

import numpy as np
import scipy.sparse

from ..engine.arrays import is_array, is_numpy, namespace, on_device_of
from ..engine.types import Array


def on_host(points: Any):
    return not is_array(points) or is_numpy(points) or scipy.sparse.issparse(points)


def copy(points: Any):
    """The caller may change X after fit."""
    if is_numpy(points) or scipy.sparse.issparse(points):
        return points.copy()
    return points + 0 if is_array(points) else points


def support(values: Array):
    """1 for a component, 0 for a zero eigenvalue."""
    return namespace(values).astype(values > 0, values.dtype)


def inverse_root(values: Array):
    """1 / sqrt(value), 0 for 0."""
    xp = namespace(values)
    safe = xp.where(values > 0, values, xp.ones_like(values))
    return xp.where(values > 0, 1 / xp.sqrt(safe), xp.zeros_like(values))


def pad_columns(A: Array, columns: int):
    """The first columns, with columns of zeros where there are fewer."""
    missing = columns - A.shape[1]
    if missing <= 0:
        return A[:, :columns]
    xp = namespace(A)
    return xp.concat([A, on_device_of(np.zeros((A.shape[0], missing)), A)], axis=1)


def as_points(scores: Array, points: Any):
    """Scores in the precision of the points; objects, and other dtypes, leave them as they are."""
    dtype = getattr(points, "dtype", None)
    if dtype is None or scores.dtype == dtype:
        return scores
    xp = namespace(scores)
    floats = (xp.float32, xp.float64)
    return xp.astype(scores, dtype) if dtype in floats and scores.dtype in floats else scores
