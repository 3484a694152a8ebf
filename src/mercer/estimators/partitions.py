"""The methods over the partitions of a Dask collection: a map, sums over rows, one small solve.

Workers add up what the solutions need; what comes here is r x r, whatever the number of rows.
"""

import inspect
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import assert_all_finite, check_array

from ..engine.arrays import namespace
from ..rows.dask import Partitions, is_dask
from ..rows.moments import Moments, Spread
from ..rows.stream import is_stream
from ..rows.tasks import panels, share, task
from ..space.spaces import Closed
from .map_partitions import finished, scores, summed


def moments(kernel_map, X, T=None, weights=None, make=None):
    """Moments of the coordinates over all rows; `make` turns a block of T into columns."""
    columns = (T, "y", make or as_columns), (weights, "sample_weight", as_weights)
    return summed(kernel_map, X, Moments.of, *columns)


def spread(kernel_map, X, T=None, make=None, panels=finished):
    """Mean of the coordinates over all rows, and sums about it."""
    return summed(kernel_map, X, Spread.of, (T, "y", make or as_columns), panels=panels)


def spread_by_class(kernel_map, X, y, panels=finished):
    """The same with one target for each label in y, found on the way."""
    return summed(kernel_map, X, ByClass.of, (y, "y", labels_of), panels=panels)


def largest_scores(kernel_map, X, axes, offset):
    """The largest and the smallest score along each axis.

    Few axes need kernel values alone, a fraction of the work that coordinates take.
    """
    if isinstance(kernel_map._space, Closed) or 2 * axes.shape[1] > kernel_map.rank_:
        return summed(kernel_map, X, partial(Range.along, axes=axes, offset=offset))
    return summed(kernel_map, X, Range.of, panels=partial(scores, coef=axes, intercept=offset))


@dataclass
class ByClass:
    """A Spread whose targets are the classes met so far."""

    labels: Any
    spread: Spread

    @classmethod
    def of(cls, Phi, labels, rho2=None):
        labels, codes = np.unique(labels, return_inverse=True)
        return cls(labels, Spread.of(Phi, np.eye(len(labels))[codes], rho2))

    def __add__(self, other):
        labels = np.unique(np.concatenate([self.labels, other.labels]))
        return ByClass(labels, self._over(labels) + other._over(labels))

    def _over(self, labels):
        """The sums with a target for each label, zero where it was not met."""
        where = np.eye(len(labels))[np.searchsorted(labels, self.labels)]
        sums = self.spread
        return replace(sums, cross=sums.cross @ where, target=sums.target @ where)


@dataclass
class Range:
    """The largest and the smallest value in each column."""

    largest: Any
    smallest: Any

    @classmethod
    def of(cls, values):
        xp = namespace(values)
        return cls(xp.max(values, axis=0), xp.min(values, axis=0))

    @classmethod
    def along(cls, Phi, axes, offset):
        return cls.of(Phi @ axes + offset[None, :])

    def __add__(self, other):
        xp = namespace(self.largest)
        return Range(
            xp.maximum(self.largest, other.largest), xp.minimum(self.smallest, other.smallest)
        )

    def signs(self, tolerance=1e-6):
        """-1 where the largest |score| is clearly negative: as factor.spectral.signs."""
        one = namespace(self.largest).ones_like(self.largest)
        negative = -self.smallest * (1 - tolerance) > self.largest
        return namespace(one).where(negative, -one, one)


def in_passes(X):
    """Whether rows are not held here, but passed over: a Dask collection or a stream."""
    return is_dask(X) or is_stream(X)


def held(y):
    """y of a stream as one array: a number a row is small beside the rows."""
    return np.concatenate([np.asarray(chunk) for chunk in y]) if is_stream(y) else y


# --- blocks of y ---------------------------------------------------------------------------------


def as_columns(block):
    """Targets as columns of numbers."""
    T = check_array(
        np.asarray(block),
        ensure_2d=False,
        dtype=[np.float64, np.float32],
        input_name="y",
        ensure_min_samples=0,
    )
    return T[:, None] if T.ndim == 1 else T


def as_weights(block):
    w = np.asarray(block, dtype=float)
    if w.ndim != 1 or not np.all(np.isfinite(w) & (w >= 0)):
        raise ValueError("sample_weight must hold one finite, non-negative number a row.")
    return w


def n_targets(y):
    """Columns of y (None where it is one-dimensional), without reading it."""
    return None if y.ndim == 1 else y.shape[1]


def one_hot(block, classes):
    """One column a class."""
    return np.eye(len(classes))[np.searchsorted(classes, labels_of(block))]


def counted_labels(X, y):
    """The sorted labels in y and how often each comes."""
    if not is_dask(y):
        return np.unique(np.asarray(y), return_counts=True)
    parts = Partitions(X)
    blocks = parts.blocks_of(y, "y")
    counted = parts.total(parts.each(_counted, None, blocks=blocks))
    return counted.labels, counted.counts


@dataclass
class Counted:
    labels: Any
    counts: Any

    def __add__(self, other):
        labels, where = np.unique(np.concatenate([self.labels, other.labels]), return_inverse=True)
        counts = np.bincount(where, weights=np.concatenate([self.counts, other.counts]))
        return Counted(labels, counts.astype(int))


@task
def _counted(_, block):
    return Counted(*np.unique(labels_of(block), return_counts=True)) if len(block) else None


def labels_of(block):
    """One label a row, as NumPy compares them."""
    labels = np.asarray(block)
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim != 1:
        raise ValueError(f"y must hold one label a row, got shape {labels.shape}.")
    if labels.dtype.kind == "O" and all(isinstance(v, str) for v in labels):
        labels = labels.astype(str)
    assert_all_finite(labels, input_name="y")
    return labels


# --- any estimator that learns in parts ----------------------------------------------------------


def require_parts(estimator):
    """Refuse an estimator without partial_fit, before the map is fitted."""
    if not hasattr(estimator, "partial_fit"):
        raise TypeError(
            f"{type(estimator).__name__} has no partial_fit, and needs all coordinates at once. "
            "Use an estimator that has (SGDClassifier, SGDRegressor, MiniBatchKMeans), or "
            "KernelMap.transform(X), which is lazy, and a Dask estimator on it."
        )


def fit_in_parts(estimator, kernel_map, X, y, params):
    """estimator.partial_fit on the coordinates of one partition after the other.

    The estimator goes to the rows: a chain of tasks, each of which maps its partition in panels.
    """
    from dask import delayed

    parts = Partitions(X)
    takes = inspect.signature(estimator.partial_fit).parameters
    if is_classifier(estimator) and "classes" in takes:
        params = {"classes": counted_labels(X, y)[0]} | params
    step = delayed(_partial_fit, pure=False, traverse=False)
    shared, learned = share((kernel_map, params), parts.client), share(estimator, parts.client)
    for row in parts.beside((y, "y")):
        learned = step(learned, shared, row)
    return parts.collect([learned])[0]


@task
def _partial_fit(estimator, shared, row):
    (kernel_map, params), (block, targets) = shared, row
    if block.shape[0] == 0:
        return estimator
    # A task may run again: it must not change what it was given.
    estimator = deepcopy(estimator)
    targets = None if targets is None else np.asarray(targets)
    for where, rows in panels(block, kernel_map.rank_):
        y = None if targets is None else targets[where]
        estimator.partial_fit(kernel_map.transform(rows), y, **params)
    return estimator
