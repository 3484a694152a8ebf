"""Targets and weights: one value per row, held here, streamed, or in a Dask collection."""

import numpy as np
from sklearn.utils import assert_all_finite, check_array

from ..engine.arrays import as_host
from ..engine.checks import check_classes
from ..kernels.points import naming
from ..rows.interface import Column
from ..rows.source import target_shape


def target_column(y) -> Column:
    return Column(y, "y", as_columns)


def weight_column(weights) -> Column:
    return Column(weights, "sample_weight", as_weights)


def as_columns(block):
    """Targets as columns of numbers."""
    with naming("y"):
        T = check_array(
            np.asarray(block),
            ensure_2d=False,
            dtype=[np.float64, np.float32],
            input_name="y",
            ensure_min_samples=0,
        )
    return T[:, None] if T.ndim == 1 else T


def as_weights(block):
    with naming("sample_weight"):
        w = np.asarray(block, dtype=float)
    if w.ndim != 1 or not np.all(np.isfinite(w) & (w >= 0)):
        raise ValueError("sample_weight must hold one finite, non-negative number per row.")
    return w


def score_weights(sample_weight):
    """The weights of a score, as scikit-learn's metrics take them."""
    if sample_weight is None:
        return None
    with naming("sample_weight"):
        return np.asarray(as_host(sample_weight), dtype=float)


def n_targets(y):
    """Columns of y (None where it is one-dimensional), from no more than its first chunk."""
    return next(iter(target_shape(y)), None)


def labels_of(block):
    """One label per row, as NumPy compares them."""
    labels = np.asarray(block)
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim != 1:
        raise ValueError(f"y must hold one label per row, got shape {labels.shape}.")
    check_classes(labels)
    if labels.dtype.kind == "O" and all(isinstance(v, str) for v in labels):
        labels = labels.astype(str)
    assert_all_finite(labels, input_name="y")
    return labels
