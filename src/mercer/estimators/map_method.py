"""Methods on a map made from `kernel=`, fitted with the sums over rows that they need.

With coordinates in hand, PCA, discriminants and ridge are functions of a few sums: the number of
rows, Phi'1, Phi'Phi and Phi'T for some targets T. So they fit in one pass over the rows, in memory,
from a stream, or on a cluster.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, TransformerMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..engine import Array, as_host, as_numpy, is_array, is_numpy, namespace, on_device_of
from ..expansion import Expansion
from ..fit import MapFit, SpaceStatistic, Statistic
from ..kernels import Data, Input, as_kernel
from ..kernels import points as pts
from ..rows import Training, in_pieces, lazily, read, refuse_stream
from .base import KernelEstimator, all_or_nothing, on_fitted
from .kernel_map import KernelMap, fit_rows, keep_fit, read_rows
from .preimages import has_points, preimage


class MapMethod(KernelEstimator):
    """A method on the coordinates of a kernel map. `kernel` is a kernel, a name, or a KernelMap."""

    def _new_map(self, **changes) -> KernelMap:
        """An unfitted map of this method's own."""
        own = clone(self.kernel) if isinstance(self.kernel, KernelMap) else KernelMap(self.kernel)
        # Methods compute with plain arrays, also where set_config asks transformers for frames.
        return own.set_output(transform="default").set_params(**changes)

    def _read(self, X, y=None, sample_weight=None, **options) -> Training:
        """The arguments of fit, read once."""
        if isinstance(self.kernel, KernelMap):
            return read_rows(self.kernel, X, y, sample_weight, owner=self, **options)
        return read(self, X, as_kernel(self.kernel), y, sample_weight, **options)

    def _fit_map(
        self, training: Training, sums: Statistic | SpaceStatistic | None = None, **changes
    ) -> MapFit:
        """Fit a map of this method's own, kept as kernel_map_; `sums` are added up on the way."""
        kernel_map = self._new_map(**changes)
        fit = fit_rows(kernel_map, training, sums)
        self.kernel_map_, self.kernel_ = kernel_map, kernel_map.kernel_
        training.keep_names(self)
        return fit

    def _keep_map(self, training: Training, fit: MapFit, **changes) -> None:
        """Keep a map that a solver has fitted as kernel_map_."""
        self.kernel_map_ = self._new_map(**changes)
        training.keep_names(self.kernel_map_)
        keep_fit(self.kernel_map_, fit)


class Projection(TransformerMixin, MapMethod):
    """A method that gives every row its scores, and learns from rows alone."""

    projection_: Any  # an Expansion or a LinearOnMap: from points to scores
    _fit: Any  # from X to scores of the training points, or None where they are not at hand

    @all_or_nothing
    def fit(self, X: Input, y: object = None) -> Self:
        """Find the directions on the training points."""
        self._fit(X)
        return self

    @all_or_nothing
    def fit_transform(self, X: Data, y: object = None) -> np.ndarray:
        """Fit, and return the scores of the training points (lazy, for a Dask collection)."""
        refuse_stream(X)
        scores = self._fit(X)
        return self.transform(X) if scores is None or in_pieces(X) else scores

    @lazily
    def transform(self, X: Data) -> np.ndarray:
        """Scores of every row; each row on its own."""
        check_is_fitted(self)
        points = self._points(X)
        return as_points(self.projection_(points), points)

    @available_if(has_points)
    def inverse_transform(self, X: ArrayLike) -> np.ndarray:
        """Points with these scores, about: a ridge regression learned at its first use.

        For KernelPCA as in scikit-learn: kernel ridge from scores to points with the same kernel
        and alpha = 1; the exact inverse where the kernel is linear. ``mercer.preimage`` has other
        methods.
        """
        return preimage(self, X)


def functions(linear: Any):
    """Functions on a map, or an Expansion, as RKHSFunctions: one, or a list of several."""
    try:
        expansion = linear if isinstance(linear, Expansion) else linear.expanded()
        listed = [expansion.column(j) for j in range(expansion.W.shape[1])]
    except ValueError as reason:  # a closed map, a Gram matrix, the residual coordinate
        raise AttributeError(f"function_ is not available: {reason}") from reason
    return listed[0] if len(listed) == 1 else listed


class Labels(ClassifierMixin):
    """A classifier whose labels are numbers where X lives, or NumPy's of anything."""

    classes_: Any

    def _labels(self, numbers: Any) -> np.ndarray:
        """The labels of class numbers."""
        xp = namespace(numbers)
        if is_array(self.classes_) and namespace(self.classes_) is xp:
            return xp.take(self.classes_, numbers, axis=0)
        return self.classes_[as_numpy(numbers)]  # labels that only NumPy can hold

    def _best(self, scores: Any) -> np.ndarray:
        """The labels of the largest scores; of two classes, of the sign of one."""
        xp = namespace(scores)
        best = xp.astype(scores > 0, xp.int64) if scores.ndim == 1 else xp.argmax(scores, axis=1)
        return self._labels(best)

    def score(self, X: Data, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Share of rows whose class is predicted."""
        predicted = as_numpy(self.predict(X))
        weights = pts.row_weights(sample_weight, len(predicted))
        return accuracy_score(as_host(y), predicted, sample_weight=weights)


class ClassScores(Labels):
    """A classifier whose decision function is log p(c | x) up to a constant of the row.

    With two classes it is the difference of the two.
    """

    decision_function: Any

    @on_fitted
    def predict(self, X: Data) -> np.ndarray:
        """The most probable class of every row."""
        return self._best(self.decision_function(X))

    @on_fitted
    def predict_log_proba(self, X: Data) -> np.ndarray:
        """log p(c | x) for every row and class."""
        scores = self.decision_function(X)
        xp = namespace(scores)
        if scores.ndim == 1:
            scores = xp.stack([xp.zeros_like(scores), scores], axis=1)
        scores = scores - xp.max(scores, axis=1, keepdims=True)
        return scores - xp.log(xp.sum(xp.exp(scores), axis=1, keepdims=True))

    @on_fitted
    def predict_proba(self, X: Data) -> np.ndarray:
        """p(c | x) for every row and class."""
        log_proba = self.predict_log_proba(X)
        return namespace(log_proba).exp(log_proba)


# --- columns of scores, and points --------------------------------------------------------------


def copy(points: Any):
    """The caller may change X after fit."""
    if is_numpy(points) or scipy.sparse.issparse(points):
        return points.copy()
    return points + 0 if is_array(points) else points


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
