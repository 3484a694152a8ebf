"""KernelClassifier: the model to try first on a table with classes to predict."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, MutableMapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.utils import assert_all_finite
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from ..engine import as_host, as_numpy, check_classes, namespace, on_device_of
from ..kernels import Input, Kernel, RandomState
from ..kernels import points as pts
from ..rows import in_turn
from ..tables import TableEncoder
from .base import CLASS_WEIGHT, all_or_nothing, to_namespace_of
from .learned_model import LearnedModel
from .left_out import LEAST_SPREAD, share_interval
from .map_method import Labels

# Bins of the expected calibration error.
_BINS = 15
# Prior deviation of a class's bias, in logits: few rows then cannot make it large.
_BIAS = 1.0
# Prior of the logarithm of 1 / temperature: mean and deviation. Where all rows are told apart, the
# likelihood alone would ask for certainty.
SHARPNESS, SHARPNESS_DEVIATION = float(np.log(4.0)), 1.0


class KernelClassifier(Labels, LearnedModel):
    """Predict classes from a table, with a kernel learned from it and no tuning.

    The table goes in as it is, as for :class:`mercer.KernelRegressor`. One ridge regression per
    class is fitted with the learned kernel; its scores at rows that were left out are turned into
    probabilities by one temperature and one bias per class, so that no rows are held back.

    Parameters
    ----------
    kernel : Kernel, str or None, default=None
        None: chosen from the data. A kernel or an expression keeps its form, and its length scales
        are tuned.
    metric : {"full", "diagonal", None}, default="full"
        "full" finds directions that matter, "diagonal" one weight per column, None leaves the
        columns as they are. On tables with few rows per column less than that is learned where
        rows that the metric has not seen are predicted better without it: see `metric_`.
    max_landmarks : int, default=1500
        Largest number of landmarks in the search.
    n_rounds : int, default=10
        Largest number of rounds in each stage of the search.
    stack : bool, default=True
        Where no kernel is given: a linear model (least squares, or logistic regression where rows
        left out are then more likely) and trees (a forest; from 500 rows on, for at most five
        classes, boosted ones as well) join the learned kernel, with weights by non-negative least
        squares at rows that none of them has seen; see `stack_`. False: the learned kernel alone.
    solver : {"auto", "direct", "mixed", "iterative", "landmarks"}, default="auto"
        Of the last fit, as in :class:`mercer.KernelRegressor`.
    memory_limit : int, str or None, default=None
        Bytes ("2GB") for the fit; None: 60 % of what is free for the last fit. The search takes
        fewer rows and landmarks where its usual ones (0.2 GB at 2000 rows) do not fit.
    class_weight : dict, "balanced" or None, default=None
        How much rows of each class count, on top of their own weights: in the fit, in the
        probabilities, and in the errors. "balanced": every class the same. Three is not three rows:
        a row is left out with all of its weight, unlike whole numbers as `sample_weight`.
    random_state : int, RandomState or None, default=0
        Which rows and landmarks are drawn where there are many. An integer gives the same answer
        every time; None draws anew.
    verbose : bool, default=False
        Show progress, with the leave-one-out error so far.
    encoder : TableEncoder or None, default=None
        How the table is read, such as ``TableEncoder(category=["zip"], decimal=",")``.

    Attributes
    ----------
    classes_ : ndarray
        Labels of the classes, sorted.
    learn_report_ : LearnedKernel
        How the kernel was found, and the kernel itself.
    metric_ : {"full", "diagonal", None}
        What was learned.
    stack_ : dict
        Weights of the learned kernel, the linear model and the trees in the predictions.
    kernel_ : Kernel
        The learned kernel.
    alpha_ : float
        The penalty of the last fit.
    solver_ : str
        What solved the last fit: see :func:`mercer.plan`.
    exact_ : bool
        Whether that fit uses all rows, and not landmarks that stand for them.
    validation_ : str, "leave-one-out" or "5 folds"
        How rows were left out for the figures below. With at most 1000 rows the kernel is learned
        without them, in five folds; with more, a fifth of the rows, at most 1000, is kept from the
        search and left out one by one.
    leave_one_out_accuracy_ : float
        At rows predicted without themselves (at most 1000 of them).
    error_interval_ : ndarray of shape (2,)
        Where the share of wrong classes in a new sample of half as many rows lies, with a
        probability of 95 %.
    leave_one_out_hits_, left_out_ : ndarrays
        1.0 for each of these rows whose class is right, else 0.0; and its number in the table.
    leave_one_out_log_loss_ : float
        Mean of minus the logarithm of the probability of the true class, at the same rows.
    calibration_error_ : float
        Expected calibration error of the probabilities of those rows.
    temperature_, bias_ : float and ndarray of shape (n_classes,)
        Probabilities are softmax(f(z) / temperature_ + bias_).
    informative_ : bool
        Whether the probabilities of these rows are better than the shares of the classes, beyond
        chance; `fit` warns where they are not.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of each column of the table, in every part of the stack by its weight; sums to one.
    encoder_ : TableEncoder
        How the columns become numbers; ``encoder_.notes()`` says it in words.
    dual_coef_, points_, intercept_, others_, error_norms_ : as in KernelRegressor
        Of one function per class. (`copied_rows_` is 0: repeated rows are ordinary among classes.)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelClassifier().fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.93)
    True
    >>> model.predict_proba(X[:1]).round(1)
    array([[1., 0., 0.]])
    >>> bool((model.decision_function(X).argmax(axis=1) == model.predict(X)).all())
    True
    """

    domains = LearnedModel.domains | {"class_weight": CLASS_WEIGHT}
    _task = "classification"

    def __init__(
        self,
        kernel: Kernel | str | None = None,
        *,
        metric: str | None = "full",
        max_landmarks: int = 1500,
        n_rounds: int = 10,
        stack: bool = True,
        solver: str = "auto",
        memory_limit: int | str | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        random_state: RandomState = 0,
        verbose: bool = False,
        encoder: TableEncoder | None = None,
    ) -> None:
        super().__init__(
            kernel,
            metric=metric,
            max_landmarks=max_landmarks,
            n_rounds=n_rounds,
            stack=stack,
            solver=solver,
            memory_limit=memory_limit,
            random_state=random_state,
            verbose=verbose,
            encoder=encoder,
        )
        self.class_weight = class_weight

    @all_or_nothing
    def fit(
        self,
        X: Input,
        y: Input,
        sample_weight: Input | None = None,
        groups: ArrayLike | None = None,
        checkpoint: MutableMapping[str, Any] | None = None,
    ) -> Self:
        """Learn the kernel, fit all rows and calibrate the probabilities.

        Weights, `groups` and `checkpoint` are used as in :class:`mercer.KernelRegressor`.
        """
        X, y, sample_weight = self._gathered(X, y, sample_weight)
        labels: np.ndarray = column_or_1d(as_host(y), warn=True)
        check_classes(labels)
        if len(labels) and labels.dtype.kind in "fiuOc":
            assert_all_finite(labels, input_name="y")
        with warnings.catch_warnings():
            # It warns of more classes than half of the rows: Targets.of refuses them.
            warnings.simplefilter("ignore", UserWarning)
            check_classification_targets(labels)
        weights = self._row_weights(labels, sample_weight)
        targets, left_out, used, _, refits = self._fit_used(X, labels, weights, groups, checkpoint)
        self.classes_ = targets.classes
        scores, truth = left_out.T - left_out.residuals, left_out.T.argmax(axis=1)
        counts = left_out.weights
        if refits is not None:
            truth, self.left_out_ = targets.columns.argmax(axis=1), used
            counts = np.ones(len(truth)) if targets.weights is None else targets.weights
            scores = np.full(targets.columns.shape, np.nan)
            for new, (classes, found) in refits(lambda m, rows: (m.classes_, m.raw_scores(rows))):
                scores[np.ix_(new, np.searchsorted(self.classes_, classes))] = as_numpy(found)
            # A class that a fold has not seen is as unlikely as any.
            scores = np.where(np.isnan(scores), np.nanmin(scores), scores)
        self.temperature_, self.bias_ = _calibrated(scores, truth, counts)
        P = self._probabilities(scores)
        likelihood = np.maximum(P[np.arange(len(P)), truth], 1e-300)
        self.leave_one_out_hits_ = (P.argmax(axis=1) == truth).astype(float)
        self.leave_one_out_accuracy_ = float(np.average(self.leave_one_out_hits_, weights=counts))
        n = left_out.n * len(truth) / len(left_out.T)
        self.error_interval_ = share_interval(1.0 - self.leave_one_out_hits_, counts, n)
        self.leave_one_out_log_loss_ = float(-np.average(np.log(likelihood), weights=counts))
        self.calibration_error_ = _expected_calibration_error(P, truth, weights=counts)
        one = np.eye(len(self.classes_))[truth]
        shares = np.average(one, axis=0, weights=counts)
        losses, of_shares = (((one - Q) ** 2).sum(axis=1) for Q in (P, shares))
        self._compare([of_shares - losses], counts, n, False)
        return self

    def _log_loss(self, scores, T, weights):
        """Mean log loss of scores, with the temperature and the biases that suit them best."""
        truth = T.argmax(axis=1)
        temperature, bias = _calibrated(scores, truth, weights)
        logs = log_softmax(scores / temperature + bias, axis=1)
        return -np.average(logs[np.arange(len(logs)), truth], weights=weights)

    def _row_weights(self, labels, sample_weight):
        """The rows' own weights times those of their classes."""
        if self.class_weight is None:
            return sample_weight
        of_class = compute_sample_weight(self.class_weight, labels)
        own = pts.row_weights(sample_weight, len(labels))
        weights = of_class if own is None else of_class * own
        # Not whole numbers: such count observations, one of which is left out, and others stay.
        return weights / (2 * weights.max(initial=1e-300))

    def _probabilities(self, scores: np.ndarray) -> np.ndarray:
        return softmax(scores / self.temperature_ + self.bias_, axis=1)

    def raw_scores(self, X: ArrayLike) -> np.ndarray:
        """The fitted function of each class, before it is calibrated to probabilities.

        :meta private:
        """
        return self._values(X)[0]

    @in_turn
    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """log p(c | x) of each class, up to a common constant; with two, their difference."""
        logs = self.predict_log_proba(X)
        return logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs

    @in_turn
    def predict_log_proba(self, X: ArrayLike) -> np.ndarray:
        """Logarithms of the probabilities, at least -691."""
        P = self.predict_proba(X)
        xp = namespace(P)
        return xp.log(xp.clip(P, 1e-300, 1.0))

    @in_turn
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Probability of each class, in the order of `classes_`."""
        f, Z = self._values(X)
        P = self._probabilities(as_numpy(f))
        sums, counts = np.zeros_like(P), np.zeros((len(P), 1))
        for rows, drawn in self._with_unseen(X, Z):
            # An unseen value of a category may have the effect of any known one.
            sums[rows] += np.mean([self._probabilities(scores) for scores in drawn], axis=0)
            counts[rows] += 1
        return on_device_of(np.where(counts > 0, sums / np.maximum(counts, 1), P), f)

    @in_turn
    def predict(self, X: ArrayLike) -> np.ndarray:
        """The most probable class of every row."""
        P = self.predict_proba(X)
        labels = self.classes_[as_numpy(P).argmax(axis=1)]
        return to_namespace_of(labels, P) if labels.dtype.kind in "biuf" else labels


def _calibrated(
    scores: np.ndarray, truth: np.ndarray, weights: np.ndarray | None = None
) -> tuple[float, np.ndarray]:
    """(temperature, biases) with the largest posterior density: both are shrunk, a little."""
    n, t = scores.shape
    one = np.zeros((n, t))
    one[np.arange(n), truth] = 1.0
    counts = np.ones((n, 1)) if weights is None else weights[:, None]

    def loss(theta):
        inverse, bias = np.exp(theta[0]), theta[1:]
        logits = inverse * scores + bias
        P = softmax(logits, axis=1)
        value = counts[:, 0] @ (logsumexp(logits, axis=1) - (one * logits).sum(axis=1))
        gradient = counts * (P - one)
        slope = np.concatenate([[inverse * (gradient * scores).sum()], gradient.sum(axis=0)])
        slope[1:] += bias / _BIAS**2
        off = (theta[0] - SHARPNESS) / SHARPNESS_DEVIATION
        slope[0] += off / SHARPNESS_DEVIATION
        return value + 0.5 * (bias**2).sum() / _BIAS**2 + 0.5 * off**2, slope

    start = np.concatenate([[SHARPNESS], np.zeros(t)])
    bounds = [(np.log(0.1), np.log(100.0))] + [(None, None)] * t
    precise = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 1000}
    theta = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=precise).x
    return float(np.exp(-theta[0])), theta[1:]


def _expected_calibration_error(
    P: np.ndarray, truth: np.ndarray, bins: int = _BINS, weights: np.ndarray | None = None
) -> float:
    """Mean gap between confidence and accuracy, over bins of confidence.

    Confidences that hardly differ have one bin: leaving a row out makes its own class a little
    rarer, and an edge between bins would tell the classes apart by that.
    """
    counts = np.ones(len(truth)) if weights is None else weights
    confidence = P.max(axis=1)
    gap = confidence - (P.argmax(axis=1) == truth)
    bins = 1 if confidence.std() < LEAST_SPREAD * gap.std() else bins
    which = np.minimum((confidence * bins).astype(int), bins - 1)
    return float(np.abs(np.bincount(which, counts * gap)).sum() / counts.sum())
