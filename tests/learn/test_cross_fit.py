"""A metric is judged by rows that it has not seen."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge
from sklearn.model_selection import LeaveOneOut, cross_val_predict, cross_val_score

from mercer import KernelClassifier, KernelRegressor, Linear, learn_kernel
from mercer.estimators.learned_model import LearnedModel
from mercer.learn import cross_fit
from mercer.learn.cross_fit import (
    _FIRST_FOLDS,
    FOLDS,
    CrossFit,
    _better,
    _DuplicateGroups,
)
from mercer.learn.observations import Observations
from mercer.learn.targets import Targets


def rows_of(X, y):
    targets = Targets.of(y, "regression")
    return Observations.of(X, targets.columns), targets


def test_predictions_are_those_of_rows_left_out_by_another_library(rng):
    # A linear kernel whose only freedom is its penalty: ridge regression without each row.
    X = rng.normal(size=(60, 3))
    y = X @ [1.0, 2.0, -1.0] + 0.5 * rng.normal(size=60)
    rows, targets = rows_of(X, y)
    best = CrossFit(rows, targets, Linear(), 0, 4).best(None, [np.arange(3)])
    theirs = cross_val_predict(Ridge(1e-3), X, targets.columns[:, 0], cv=LeaveOneOut())
    # The penalty is chosen here and given there: predictions differ a little.
    assert_allclose(best.predicted[:, 0], theirs, atol=0.02)
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


@pytest.mark.parametrize(
    ("n", "d", "small"),
    [
        (90, 2, True),
        (150, 2, False),
        (390, 20, True),
        (820, 40, True),
        (1100, 40, False),
        (1500, 80, True),
    ],
)
def test_small_is_a_matter_of_rows_per_column(n, d, small, rng):
    rows, targets = rows_of(rng.normal(size=(n, d)), rng.normal(size=n))
    assert CrossFit(rows, targets, None, 0, 0).is_small(d) == small


def test_the_accuracy_that_is_printed_is_of_rows_that_the_metric_has_not_seen(rng):
    """Tables that are not quite small: chosen by leave-one-out, judged by folds."""
    X, y = rng.normal(size=(260, 4)), rng.choice(["a", "b"], size=260)
    targets = Targets.of(y, "classification")
    rows = Observations.of(X, targets.columns)
    assert not CrossFit(rows, targets, None, 0, 0).is_small(4)
    model = KernelClassifier().fit(X, y)
    assert model.validation_ == "5 folds"
    assert abs(model.leave_one_out_accuracy_ - 0.5) < 0.1  # three standard errors
    model = KernelRegressor(n_rounds=1).fit(X, rng.normal(size=260))
    assert model.validation_ == "5 folds"
    assert model.leave_one_out_rmse_ > 0.9


def test_with_many_rows_some_are_kept_from_the_search(rng, monkeypatch):
    X = rng.normal(size=(1200, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=1200)
    kept = CrossFit(*rows_of(X, y), None, 1, 0).kept(rng)
    assert len(np.unique(kept)) == 240
    assert not len(CrossFit(*rows_of(X[:900], y[:900]), None, 1, 0).kept(rng))
    seen = []
    module = sys.modules[LearnedModel.__module__]
    learn = module.learn_from
    monkeypatch.setattr(
        module, "learn_from", lambda rows, *a, **k: seen.append(rows) or learn(rows, *a, **k)
    )
    model = KernelRegressor(n_rounds=1, metric="diagonal").fit(X, y)
    judged = model.encoder_.transform(X[model.left_out_])
    assert (model.validation_, len(judged)) == ("leave-one-out", 240)
    assert seen[0].n == 960
    assert not {row.tobytes() for row in judged} & {row.tobytes() for row in seen[0].X}
    assert_allclose(model.leave_one_out_rmse_, 0.3, rtol=0.2)


def test_classes_are_judged_by_wrong_rows_and_more_must_win_clearly(rng):
    X = rng.normal(size=(80, 4))
    y = np.where(X[:, 0] > 0, "a", "b")
    targets = Targets.of(y, "classification")
    rows = Observations.of(X, targets.columns)
    best = CrossFit(rows, targets, None, 1, 0).best("diagonal", [np.arange(4)])
    wrong = best.predicted.argmax(axis=1) != targets.columns.argmax(axis=1)
    assert_allclose(best.error, wrong.mean())
    # Equal losses: the simpler candidate stays.
    assert _better(replace(best, metric="full"), replace(best, metric=None)).metric is None
    clear = replace(best, metric="full", losses=best.losses - 1.0)
    assert _better(clear, best) is clear


def test_columns_that_say_nothing_are_given_up_after_two_folds(rng, monkeypatch):
    X = rng.normal(size=(150, 3))
    rows, targets = rows_of(X, np.sin(2 * X[:, 0]) + np.sin(2 * X[:, 1]) + 0.1 * X[:, 2])
    searches = []
    learn = cross_fit.learn_from
    monkeypatch.setattr(
        cross_fit, "learn_from", lambda *a, **k: searches.append(1) or learn(*a, **k)
    )
    folds = CrossFit(rows, targets, None, 1, 0)
    first, both = np.array([0]), np.array([0, 1])
    (rival,) = folds.candidates([None], first)
    (whole,) = folds.candidates([None], both)
    assert len(searches) == 2 * FOLDS
    (better_one,) = folds.candidates([None], both, rival)  # hopeful: the same as without a rival
    assert_allclose(better_one.predicted, whole.predicted)
    assert len(searches) == 3 * FOLDS
    assert folds.candidates([None], first, whole) == []  # fewer columns, clearly worse
    assert folds.candidates([None], np.array([0, 2]), rival) == []  # more that say nothing
    assert len(searches) == 3 * FOLDS + 2 * _FIRST_FOLDS
    # Observations that are in all folds are known only after the last one.
    counts = np.full(150, 7.0)
    repeated = Observations.of(X, targets.columns, counts)
    folds = CrossFit(repeated, replace(targets, weights=counts), None, 1, 0)
    assert len(folds.candidates([None], first, whole)) == 1


def test_two_rows_are_left_out_one_by_one_and_one_row_cannot_be():
    model = KernelRegressor().fit([[1.0], [2.0]], [1.0, 3.0])
    assert (model.validation_, model.leave_one_out_rmse_) == ("2 folds", 2.0)
    torch = pytest.importorskip("torch", reason="rows that need no encoder are tensors")
    same = torch.ones((2, 1), dtype=torch.float64)  # one distinct row, two targets
    assert KernelRegressor().fit(same, np.array([1.0, 3.0])).validation_ == "leave-one-out"


def table_of_categories(rng, n=300):
    """Columns of few values: 24 distinct rows, each many times."""
    X = np.column_stack([rng.integers(0, k, size=n) for k in (3, 2, 4)]).astype(float)
    flip = rng.random(n) < 0.1
    return X, ((X[:, 0] == 0) ^ (X[:, 1] == 0) ^ flip).astype(int)


def test_copies_of_a_row_are_left_out_one_by_one(rng):
    """A table of categories repeats its rows: new rows are copies of known ones, too."""
    X, y = table_of_categories(rng)
    model = KernelClassifier().fit(X, y)
    assert model.validation_ == "5 folds"
    truth = cross_val_score(KernelClassifier(), X, y).mean()
    assert abs(model.leave_one_out_accuracy_ - truth) < 0.03
    values = y + 0.1 * rng.normal(size=len(y))
    model = KernelRegressor().fit(X, values)
    truth = -cross_val_score(KernelRegressor(), X, values, scoring="neg_root_mean_squared_error")
    assert_allclose(model.leave_one_out_rmse_, truth.mean(), rtol=0.1)


def test_folds_of_repeated_rows_are_those_of_their_counts(rng):
    X, y = table_of_categories(rng, 60)
    values = y + 0.5 * X[:, 2]  # few values: rows with the same target repeat as well
    cells, counts = np.unique(np.column_stack([X, values]), axis=0, return_counts=True)
    repeated = KernelRegressor().fit(X, values)
    counted = KernelRegressor().fit(cells[:, :-1], cells[:, -1], sample_weight=counts)
    assert repeated.validation_ == counted.validation_
    assert_allclose(repeated.leave_one_out_rmse_, counted.leave_one_out_rmse_, rtol=1e-9)
    assert_allclose(repeated.predict(X), counted.predict(X), rtol=1e-9)


@pytest.mark.parametrize("n", [2, 7, 40])
def test_each_observation_is_left_out_once(n, rng):
    X, y = rng.integers(0, 3, size=(n, 1)).astype(float), rng.integers(0, 2, size=n).astype(float)
    X[:2, 0], y[:2] = [0, 1], [0, 1]
    rows, targets = rows_of(X, y)
    cells = _DuplicateGroups.of(rows, targets)
    out = cells.folds(rng)
    assert len(out) == cells.n_folds() == min(n, FOLDS)
    assert_allclose(sum(out), cells.counts)
    assert cells.counts.sum() == n
    assert np.ptp([left.sum() for left in out]) <= 1
    for left in out:
        rest = cells.without(rows, left)
        kept = np.repeat(cells.T[:, 0], (cells.counts - left).astype(int))
        weights = 1.0 if rest.weights is None else rest.weights
        assert_allclose(
            (weights * rest.T[:, 0]).sum() / (weights + 0 * rest.T[:, 0]).sum(), kept.mean()
        )
