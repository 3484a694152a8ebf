"""Predictions of classifiers: labels, and probabilities from a decision function."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from ..engine import as_host, as_numpy, is_array, namespace
from ..kernels import Data
from .base import on_fitted, score_weights


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
        predicted, weights = as_numpy(self.predict(X)), score_weights(sample_weight)
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
