"""Estimators that learn one piece of the rows after the other, by partial_fit."""

import inspect
from copy import deepcopy

import numpy as np
from sklearn.base import is_classifier

from ..rows.dask import Partitions, is_dask
from ..rows.in_step import in_step, n_rows
from ..rows.partitioned import check_cut
from ..rows.protocol import Column
from ..rows.tasks import panels, share, task
from .targets import labels_of


def require_parts(estimator):
    """Refuse an estimator without partial_fit, before the map is fitted."""
    if not hasattr(estimator, "partial_fit"):
        raise TypeError(
            f"{type(estimator).__name__} has no partial_fit, and needs all coordinates at once. "
            "Use an estimator that has (SGDClassifier, SGDRegressor, MiniBatchKMeans), or "
            "KernelMap.transform(X), which is lazy, and a Dask estimator on it."
        )


def fit_in_parts(estimator, kernel_map, X, y, params):
    """estimator.partial_fit on the coordinates of one piece of the rows after the other."""
    takes = inspect.signature(estimator.partial_fit).parameters
    if is_classifier(estimator) and "classes" in takes:
        params = {"classes": _labels(X, y)} | params
    columns, params = {"y": y}, dict(params)
    if np.ndim(params.get("sample_weight", 1.0)):  # one number goes along as it is
        columns["sample_weight"] = params.pop("sample_weight")
    if is_dask(X):
        return _chained(estimator, kernel_map, X, columns, params)
    for chunk, blocks in in_step(X, [Column(values, name) for name, values in columns.items()]):
        estimator = _taught(estimator, kernel_map, params, chunk, dict(zip(columns, blocks)))
    return estimator


def _chained(estimator, kernel_map, X, columns, params):
    """The estimator goes to the rows: a chain of tasks, one per partition."""
    parts = Partitions(X)
    shared = share((kernel_map, params, list(columns)), parts.client)
    learned = share(estimator, parts.client)
    for row in parts.aligned_columns(*[(values, name) for name, values in columns.items()]):
        learned = parts.delayed(_partial_fit, learned, shared, row)
    return parts.collect([learned])[0]


@task
def _partial_fit(estimator, shared, row):
    (kernel_map, params, names), (block, *values) = shared, row
    columns = dict(zip(names, values))
    for name, column in columns.items():
        check_cut(block, column, name)
    # A task may run again: it must not change what it was given.
    return _taught(deepcopy(estimator), kernel_map, params, block, columns)


def _taught(estimator, kernel_map, params, block, columns):
    """The estimator after one more block, mapped in panels; columns belong to its rows."""
    columns = {k: None if v is None else np.asarray(v) for k, v in columns.items()}
    for where, rows in panels(block, kernel_map.rank_) if n_rows(block) else ():
        y, *weights = [None if v is None else v[where] for v in columns.values()]
        if weights and not np.any(weights[0]):
            continue  # scikit-learn refuses weights that are all zero
        given = {"sample_weight": weights[0]} if weights else {}
        estimator.partial_fit(kernel_map.transform(rows), y, **given, **params)
    return estimator


def _labels(X, y):
    """The sorted labels in y."""
    if not is_dask(y):
        return np.unique(np.asarray(y))
    parts = Partitions(X)
    found = parts.total(parts.each(_labels_of_block, None, blocks=parts.blocks_of(y, "y")))
    return np.array(sorted(found.labels))


class _Labels:
    def __init__(self, labels):
        self.labels = labels

    def __add__(self, other):
        return _Labels(self.labels | other.labels)


@task
def _labels_of_block(_, block):
    return _Labels(set(np.unique(labels_of(block)).tolist())) if len(block) else None
