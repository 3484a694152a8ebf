"""KernelRegressor: the model to try first on a table with a number to predict."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_array

from ..engine import as_host, as_numpy, is_array, is_numpy, namespace, on_device_of
from ..kernels import Input
from ..kernels import points as pts
from ..learn import Targets
from ..rows import in_turn
from ..tables import WrittenTarget
from .base import all_or_nothing
from .learned_model import LearnedModel
from .left_out import LEAST_SPREAD, rmse_interval, weighted_quantile

# Intervals of +- 1.645 standard deviations are calibrated to hold 90 % of left-out rows.
COVERAGE, DEVIATIONS = 0.9, 1.6448536269514722
# Rows with similar predictions that say how large errors are there, and numbers of such levels.
LEVEL_ROWS, MOST_LEVELS = 50, 9


class KernelRegressor(MultiOutputMixin, RegressorMixin, LearnedModel):
    """Predict numbers from a table, with a kernel learned from it and no tuning.

    The table goes in as it is: numbers, categories, dates, text and missing values
    (:class:`mercer.TableEncoder`). Metric, lengths and penalty come from
    :func:`mercer.learn_kernel`, by leave-one-out. The last fit is exact on all rows where the
    kernel matrix fits the memory, iterates to a certified error beyond that, and goes through
    landmarks where neither is possible. Predictions can come with a standard deviation that is
    calibrated on rows left out.

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
        Largest number of landmarks, in the search and for the uncertainty.
    n_rounds : int, default=10
        Largest number of rounds in each stage of the search.
    stack : bool, default=True
        Where no kernel is given: a linear model and trees (boosted for numbers, a forest for
        classes) join the learned kernel, with weights by non-negative least squares at rows that
        none of them has seen; see `stack_`. False: the learned kernel alone.
    solver : {"auto", "direct", "mixed", "iterative", "landmarks"}, default="auto"
        Of the last fit. "direct" stores and factors the kernel matrix; "mixed" does so in single
        precision and refines the solution, "iterative" solves the same equations without storing
        it, "landmarks" fits a function of 4000 rows only. "auto" takes the cheapest that the
        memory allows; iterations up to 100 000 rows (2 million on a GPU). Where
        a few hundred landmarks explain nearly all of the kernel, "auto" iterates with a stored
        matrix: the same solution to a certified error, several times faster.
    memory_limit : int, str or None, default=None
        Bytes ("2GB") for the fit; None: 60 % of what is free for the last fit. The search takes
        fewer rows and landmarks where its usual ones (0.2 GB at 2000 rows) do not fit.
    random_state : int, RandomState or None, default=0
        Which rows and landmarks are drawn where there are many. An integer gives the same answer
        every time; None draws anew.
    verbose : bool, default=False
        Show progress, with the leave-one-out error so far.
    encoder : TableEncoder or None, default=None
        How the table is read, such as ``TableEncoder(category=["zip"], decimal=",")``.

    Attributes
    ----------
    learn_report_ : LearnedKernel
        How the kernel was found: history, importances, directions.
    metric_ : {"full", "diagonal", None}
        What was learned.
    stack_ : dict
        Weights of the learned kernel, the linear model and the trees in the predictions.
    kernel_ : Kernel
        On the encoded table.
    alpha_ : float
        The penalty of the last fit.
    solver_ : str
        The solver that was used.
    exact_ : bool
        Whether the last fit solved the full system.
    error_norms_ : ndarray of shape (n_targets,) or None
        Iterative solver: predictions differ from those of the exact solution by at most this times
        sqrt(k(z, z)), beside the intercept, in units of y.
    validation_ : str, "leave-one-out" or "5 folds"
        How rows were left out for the figures below. With at most 1000 rows the kernel is learned
        without them, in five folds; with more, a fifth of the rows, at most 1000, is kept from the
        search and left out one by one.
    leave_one_out_rmse_ : float or ndarray
        Root mean squared error of rows predicted without themselves (at most 1000 of them), in
        units of y; with `groups`, without all rows of their group.
    leave_one_out_errors_, left_out_ : ndarrays of shape (n_left_out, n_targets) and (n_left_out,)
        The error of each of these rows, and its number in the table.
    error_interval_ : ndarray of shape (2,) or (2, n_targets)
        Where the error of a new sample of half as many rows lies, with a probability of 95 %.
    informative_ : bool
        Whether these rows are predicted better than by the mean (or, in absolute errors, by the
        median), beyond chance; `fit` warns where they are not.
    copied_rows_ : int
        Rows that repeat another one, target included, where targets have many values: copies are
        left out together.
    levels_, calibration_ : ndarrays of shape (n_targets, n_levels)
        Factors of the standard deviations, at several levels of the (standardised) prediction.
    widening_ : ndarray of shape (n_targets,)
        Factors of the standard deviations where `groups` were given: unseen ones are less certain.
    scale_, offset_ : ndarrays of shape (n_targets,)
        Predictions are f(z) * scale_ + offset_, within `limits_`.
    limits_ : ndarray of shape (2, n_targets)
        Lowest and highest prediction: zero where no target is negative, and half of the range of
        the targets beyond them where the kernel was chosen from the data.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Share of each column of the table, in every part of the stack by its weight; sums to one.
    encoder_ : TableEncoder
        How the columns become numbers; ``encoder_.notes()`` says it in words.
    target_format_ : dict or None
        How texts in y ("1,5 EUR", "1:02:33") were read; None where y holds numbers.
    dual_coef_, points_, intercept_, others_ : the function, f(z) = k(z, points) dual_coef +
        intercept + the sum of the others: linear functions and trees

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from mercer import KernelRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = KernelRegressor().fit(X[:300], y[:300])
    >>> bool(model.score(X[300:], y[300:]) > 0.45)
    True
    >>> value, std = model.predict(X[300:], return_std=True)
    >>> low, high = model.predict_interval(X[300:])
    """

    _task = "regression"
    single_target_: bool  # whether y had one dimension

    @all_or_nothing
    def fit(
        self,
        X: Input,
        y: Input,
        sample_weight: Input | None = None,
        groups: ArrayLike | None = None,
        checkpoint: MutableMapping[str, Any] | None = None,
    ) -> Self:
        """Learn the kernel and fit all rows.

        Whole numbers as weights count repeated observations; other weights say how much a row
        counts. Rows of weight zero are not used. With an array of numbers the fit equals that on
        the rows repeated; the columns of a frame are encoded by the rows that it has (see
        :class:`mercer.TableEncoder`), so that copies there may make a category frequent.

        With `groups`, one value per row, errors and intervals are those of rows whose group the
        model has not seen: it is fitted again without each of five folds of groups, with the
        columns, the family of kernels and the weights of the stack that all rows chose.

        `checkpoint` (``mercer.export.checkpoint.Checkpoint(folder)``, or any dict) keeps what the
        search for the kernel found: a fit of the same rows that was killed goes on from there.
        """
        X, y, sample_weight = self._gathered(X, y, sample_weight)
        values, written = self._read_targets(X, as_host(y))
        self.single_target_ = values.ndim == 1
        targets, left_out, used, values, refits = self._fit_used(
            X, values, sample_weight, groups, checkpoint, written
        )
        self.limits_ = self._limits(values.reshape(len(values), -1))
        predicted = (left_out.T - left_out.residuals) * targets.scale + targets.offset
        predicted = (np.clip(predicted, *self.limits_) - targets.offset) / targets.scale
        errors, counts = left_out.T - predicted, left_out.weights
        rmse = np.sqrt(np.average(errors**2, axis=0, weights=counts)) * targets.scale
        self.leave_one_out_rmse_ = float(rmse[0]) if self.single_target_ else rmse
        self.leave_one_out_errors_ = errors * targets.scale
        deviations = np.sqrt(left_out.variances)[:, None]
        self.levels_, self.calibration_ = _by_level(
            predicted, errors, deviations, counts, left_out.n
        )
        self.widening_ = np.ones(errors.shape[1])
        if refits is not None:
            self._judge_by_groups(refits, values, targets.weights, used)
        place = np.searchsorted(used, self.left_out_)
        errors, T = self.leave_one_out_errors_ / targets.scale, targets.columns[place]
        counts = np.ones(len(place)) if targets.weights is None else targets.weights[place]
        n = left_out.n * len(place) / len(left_out.T)
        interval = rmse_interval(errors**2, counts, n) * targets.scale
        self.error_interval_ = interval[:, 0] if self.single_target_ else interval
        squares = (T**2 - errors**2).sum(axis=1)
        # If a few rows hold most of the variance, squares alone tell of these few.
        absolute = (np.abs(T - weighted_quantile(T, 0.5, counts)) - np.abs(errors)).sum(axis=1)
        self._compare([squares, absolute], counts, n, targets.constant)
        return self

    def _limits(self, values):
        """(lowest, highest) prediction of each target: never below zero where no target is."""
        far = np.full(values.shape[1], np.inf)
        low, high = Targets.limits(values) if self.kernel is None else (-far, far)
        return np.stack([np.where(values.min(axis=0) >= 0, np.maximum(low, 0.0), low), high])

    def _read_targets(self, X, y):
        """(targets as floats, the texts that they were read from, or None)."""
        on_device = is_array(X) and not is_numpy(X)
        written = None if on_device else WrittenTarget.of(self._new_encoder(), X, y)
        self.target_format_ = None if written is None else written.format
        if written is None:
            return _numbers(y), None
        return _numbers(written.values), written.texts

    def _intervals_like(self, model, y, judged, signal):
        self.single_target_ = model.single_target_
        self.limits_ = self._limits(y.reshape(len(y), -1))
        self.levels_, self.calibration_ = model.levels_, model.calibration_
        if signal is not None and judged.signal is not None and np.all(judged.signal > 0):
            # Deviations are in units of the kernel, whose scale each fit has for itself.
            self.calibration_ = model.calibration_ * (signal / judged.signal)[:, None] ** 0.5

    def _judge_by_groups(self, refits, values, weights, used):
        """Errors and intervals of rows whose group is left out."""
        errors, std = np.empty((2, len(values), len(self.widening_)))
        for new, found in refits(lambda model, rows: model.predict(rows, return_std=True)):
            predicted, std[new] = (np.reshape(as_numpy(a), (len(new), -1)) for a in found)
            errors[new] = values[new].reshape(len(new), -1) - predicted
        counts = np.ones(len(values)) if weights is None else weights
        squares = (errors / self.scale_) ** 2
        rmse = np.sqrt(np.average(squares, axis=0, weights=counts)) * self.scale_
        self.leave_one_out_rmse_ = float(rmse[0]) if self.single_target_ else rmse
        self.leave_one_out_errors_, self.left_out_ = errors, used
        self.widening_ = weighted_quantile(np.abs(errors) / std, COVERAGE, counts) / DEVIATIONS

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = False) -> np.ndarray: ...

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[True]) -> tuple[np.ndarray, np.ndarray]: ...

    @in_turn
    def predict(self, X, return_std=False):
        """The value of every row; with return_std also a standard deviation.

        The deviation is that of a new observation, noise included: value +- 1.645 std holds 90 % of
        the rows that were left out, among those with a similar prediction too. A value of a
        category that `fit` has not seen widens it: its effect may be that of any known one.
        """
        f, Z = self._values(X)
        xp = namespace(f)
        scale, offset = on_device_of(self._scale, f), on_device_of(self._offset, f)
        values = f * scale + offset
        low, high = (on_device_of(limit, f) for limit in self.limits_)
        values = xp.where(values > low, xp.where(values < high, values, high), low)
        values = values[:, 0] if self.single_target_ else values
        if not return_std:
            return values
        own = as_numpy(f)
        spread = [
            np.interp(own[:, j], *at) for j, at in enumerate(zip(self.levels_, self.calibration_))
        ]
        spread = on_device_of(np.stack(spread, axis=1), f)
        variance = (self._uncertainty.variance(Z)[:, :1] + self.alpha_) * spread**2
        for rows, drawn in self._with_unseen(X, Z):
            # An unseen value of a category may have the effect of any of m known ones, whose mean
            # and spread they tell themselves, with m - 1 degrees of freedom.
            few = (len(drawn) + 1) / max(len(drawn) - 1, 1)
            apart = few * ((drawn - f[rows]) ** 2).mean(axis=0)
            variance[rows] = variance[rows] + apart
        std = scale * xp.sqrt(variance) * on_device_of(getattr(self, "widening_", 1.0), f)
        return values, std[:, 0] if self.single_target_ else std

    @in_turn
    def predict_interval(self, X: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """(low, high) of every row: 90 % intervals, within `limits_`."""
        value, std = self.predict(X, return_std=True)
        xp, half = namespace(value), DEVIATIONS * std
        limits = [
            on_device_of(limit[0] if self.single_target_ else limit, value)
            for limit in self.limits_
        ]
        low, high = (
            xp.where(end > limits[0], end, limits[0]) for end in (value - half, value + half)
        )
        return low, xp.where(high < limits[1], high, limits[1])

    @property
    def scale_(self) -> np.ndarray:
        """Predictions are f(z) * scale_ + offset_."""
        return np.atleast_1d(as_numpy(self._scale))

    @property
    def offset_(self) -> np.ndarray:
        """Intercept of each target, in units of y."""
        return np.atleast_1d(as_numpy(self._offset))

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R^2 of the predictions."""
        y = WrittenTarget.read_like(as_host(y), getattr(self, "target_format_", None))
        predicted = as_numpy(self.predict(X))
        weights = pts.row_weights(sample_weight, len(predicted))
        return r2_score(y, predicted, sample_weight=weights)


def _numbers(y) -> np.ndarray:
    """The targets as floats; what is wrong with them is told with the remedy."""
    try:
        with pts.naming("y"):
            return check_array(y, ensure_2d=False, dtype=float, input_name="y")
    except ValueError as error:
        if "could not convert" in str(error):
            raise ValueError(f"{error}. Use KernelClassifier to predict classes.") from None
        if "contains" in str(error):
            bad = ~np.isfinite(np.atleast_1d(np.asarray(y, dtype=float)))
            rows = int(bad.reshape(len(bad), -1).any(axis=1).sum())
            raise ValueError(f"{error} Leave out such rows ({rows} of {len(bad)}).") from None
        raise


def _by_level(
    predicted: np.ndarray,
    errors: np.ndarray,
    deviations: np.ndarray,
    weights: np.ndarray,
    n: float,
) -> tuple[np.ndarray, np.ndarray]:
    """(predictions, factors there), both (targets, levels): noise often grows with the prediction.

    A factor on the deviation makes intervals hold COVERAGE of the rows with predictions near its
    level. Few of the n observations that the rows hold have one level, and so have predictions that
    hardly differ: leaving a row out moves the mean away from its target, and that would order them.
    """
    ratio, t = np.abs(errors) / deviations, errors.shape[1]
    levels = int(np.clip(n // LEVEL_ROWS, 1, MOST_LEVELS))
    near = n if levels == 1 else max(LEVEL_ROWS, n // 10)
    # The share of rows that makes the coverage hold for a new one, too.
    share = min(1.0, np.ceil(COVERAGE * (near + 1)) / near)
    alike = predicted.std(axis=0) < LEAST_SPREAD * errors.std(axis=0)
    at, factors = np.empty((2, t, levels))
    for j in range(t):
        order = np.argsort(predicted[:, j], kind="stable")
        own = weights[order] * (n / weights.sum())
        end = np.cumsum(own)
        for i, start in enumerate(np.floor(np.linspace(0, n - near, levels))):
            part = np.clip(end - start, 0.0, own) - np.clip(end - start - near, 0.0, own)
            at[j, i] = weighted_quantile(predicted[order, j : j + 1], 0.5, part)[0]
            part = own if alike[j] else part
            factors[j, i] = weighted_quantile(ratio[order, j : j + 1], share, part)[0] / DEVIATIONS
    return at, factors
