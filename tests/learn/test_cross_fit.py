"""A metric is judged by rows that it has not seen."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge
from sklearn.model_selection import PredefinedSplit, cross_val_predict

from mercer import KernelClassifier, KernelRegressor, Linear, learn_kernel
from mercer.learn.cross_fit import FOLDS, CrossFit, better, is_flattered, is_small
from mercer.learn.observations import Observations
from mercer.learn.targets import Targets


def rows_of(X, y):
    targets = Targets.of(y, "regression")
    return Observations.of(X, targets.columns), targets


def test_predictions_are_those_of_the_same_folds_by_another_library(rng):
    # A linear kernel whose only freedom is its penalty: ridge regression, part by part.
    X = rng.normal(size=(60, 3))
    y = X @ [1.0, 2.0, -1.0] + 0.5 * rng.normal(size=60)
    rows, targets = rows_of(X, y)
    best = CrossFit(rows, targets, Linear(), 0, 4).best(None, [np.arange(3)])
    part = np.empty(60, dtype=int)
    order = np.random.default_rng(4).permutation(60)
    for i in range(FOLDS):
        part[order[i::FOLDS]] = i
    theirs = cross_val_predict(Ridge(1e-3), X, targets.columns[:, 0], cv=PredefinedSplit(part))
    # The penalty is chosen here and given there: predictions differ a little.
    assert_allclose(best.predicted[:, 0], theirs, atol=0.05)
    assert_allclose(best.error, np.mean((best.predicted - targets.columns) ** 2))


def test_noise_teaches_no_metric_and_is_not_called_predictable(rng):
    X, y = rng.normal(size=(120, 30)), rng.normal(size=120)
    assert learn_kernel(X, y, random_state=0).error < 0.8  # too good: the metric has seen all rows
    model = KernelRegressor().fit(X, y)
    assert model.metric_ is None
    assert model.leave_one_out_rmse_ > 0.9 * y.std()


def test_a_metric_that_helps_is_learned(rng):
    X = rng.normal(size=(150, 15))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=150)
    model = KernelRegressor().fit(X, y)
    assert model.metric_ in ("diagonal", "full")
    assert model.feature_importances_.argmax() == 0
    assert KernelRegressor(metric="diagonal").fit(X, y).metric_ == "diagonal"


@pytest.mark.parametrize(("n", "d", "small"), [(90, 2, True), (150, 2, False), (390, 20, True)])
def test_small_is_a_matter_of_rows_per_column(n, d, small, rng):
    rows, _ = rows_of(rng.normal(size=(n, d)), rng.normal(size=n))
    assert is_small(rows, d) == small


def test_the_accuracy_that_is_printed_is_of_rows_that_the_metric_has_not_seen(rng):
    """Tables that are not quite small: chosen by leave-one-out, judged by folds."""
    X, y = rng.normal(size=(260, 12)), rng.choice(["a", "b"], size=260)
    targets = Targets.of(y, "classification")
    rows = Observations.of(X, targets.columns)
    assert not is_small(rows, 12)
    assert is_flattered(rows, targets, 12)
    model = KernelClassifier().fit(X, y)
    assert model.validation_ == "5 folds"
    assert abs(model.leave_one_out_accuracy_ - 0.5) < 0.1  # three standard errors
    assert not is_flattered(rows, replace(targets, classes=None), 12)


def test_classes_are_judged_by_wrong_rows_and_more_must_win_clearly(rng):
    X = rng.normal(size=(80, 4))
    y = np.where(X[:, 0] > 0, "a", "b")
    targets = Targets.of(y, "classification")
    rows = Observations.of(X, targets.columns)
    best = CrossFit(rows, targets, None, 1, 0).best("diagonal", [np.arange(4)])
    wrong = best.predicted.argmax(axis=1) != targets.columns.argmax(axis=1)
    assert_allclose(best.error, wrong.mean())
    # Equal losses: the simpler candidate stays.
    assert better(replace(best, metric="full"), replace(best, metric=None)).metric is None
    clear = replace(best, metric="full", losses=best.losses - 1.0)
    assert better(clear, best) is clear


def test_two_rows_are_left_out_one_by_one_and_one_row_cannot_be():
    model = KernelRegressor().fit([[1.0], [2.0]], [1.0, 3.0])
    assert (model.validation_, model.leave_one_out_rmse_) == ("2 folds", 2.0)
    torch = pytest.importorskip("torch", reason="rows that need no encoder are tensors")
    same = torch.ones((2, 1), dtype=torch.float64)  # one distinct row, two targets
    assert KernelRegressor().fit(same, np.array([1.0, 3.0])).validation_ == "leave-one-out"
