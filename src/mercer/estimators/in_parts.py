"""Estimators that learn one piece of the rows after the other, by partial_fit."""

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ..feature_map import FeatureMap
from ..rows import Column, Training


def require_parts(estimator: Any):
    """Refuse an estimator without partial_fit, before the map is fitted."""
    if not hasattr(estimator, "partial_fit"):
        raise TypeError(
            f"{type(estimator).__name__} has no partial_fit, and needs all coordinates at once. "
            "Use an estimator that has (SGDClassifier, SGDRegressor, MiniBatchKMeans), or "
            "KernelMap.transform(X), which is lazy, and a Dask estimator on it."
        )


def fit_in_parts(estimator: Any, kernel_map: Any, training: Training, params: dict[str, Any]):
    """estimator.partial_fit on the coordinates of one piece of the rows after the other."""
    takes = inspect.signature(estimator.partial_fit).parameters
    if is_classifier(estimator) and "classes" in takes:
        params = {"classes": training.labels()} | params
    columns = [Column(training.T, "y")]
    if training.weights is not None:
        columns.append(training.weights)
    rows = training.rows_of(kernel_map.kernel_)
    return rows.chain(PartialFitStep(kernel_map.map_, params), estimator, columns)


@dataclass(frozen=True)
class PartialFitStep:
    """The estimator after one more block of rows, mapped in panels."""

    map: FeatureMap
    params: dict

    def __call__(self, estimator, points, y=None, weights=None):
        for Phi, where in self.map.panels(points):
            targets, params = None if y is None else y[where], self.params
            if weights is not None:
                own = weights[where]
                if not np.any(own):
                    continue  # scikit-learn refuses weights that are all zero
                params = params | {"sample_weight": own}
            estimator.partial_fit(Phi, targets, **params)
        return estimator
