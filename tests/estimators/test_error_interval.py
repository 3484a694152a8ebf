"""The printed interval holds the error of a new sample of half as many rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

from mercer import KernelClassifier, KernelRegressor
from mercer.estimators.left_out import rmse_interval, share_interval


@pytest.mark.parametrize("n", [10, 60, 500])
@pytest.mark.parametrize("tails", [np.inf, 6])
def test_holds_the_rmse_of_another_sample(n, tails, rng):
    draw = rng.normal if tails == np.inf else lambda size: rng.standard_t(tails, size)
    squares, new = (draw(size=(2000, m)) ** 2 for m in (n, n // 2))
    intervals = [rmse_interval(known, np.ones(n), n) for known in squares]
    new = np.sqrt(new.mean(axis=1))
    held = [low <= x <= high for (low, high), x in zip(intervals, new)]
    assert 0.91 < np.mean(held) < 0.985


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_holds_the_share_of_wrong_classes_in_another_sample(share, rng):
    n = 200
    known_shares, new_shares = (rng.binomial(m, share, size=3000) / m for m in (n, n // 2))
    held = []
    for known, new in zip(known_shares, new_shares):
        wrong = (np.arange(n) < round(known * n)).astype(float)
        low, high = share_interval(wrong, np.ones(n), n)
        held.append(low <= new <= high)
    assert 0.92 < np.mean(held) < 0.99


def test_counts_of_rows_give_the_intervals_of_repeated_rows(rng):
    X, counts = rng.normal(size=(100, 2)), rng.integers(1, 4, size=100)
    value = X[:, 0] + 0.5 * rng.normal(size=100)
    rows = np.repeat(np.arange(100), counts)
    for Model, y in ((KernelRegressor, value), (KernelClassifier, value > 0)):
        once = Model(n_rounds=1).fit(X, y)
        counted = Model(n_rounds=1).fit(X, y, sample_weight=counts)
        repeated = Model(n_rounds=1).fit(X[rows], y[rows])
        assert_allclose(counted.error_interval_, repeated.error_interval_, rtol=1e-5)
        if Model is KernelRegressor:  # copies of rows are no news
            low, high = np.log(once.error_interval_)
            assert np.diff(np.log(repeated.error_interval_)) > 0.8 * (high - low)
            deviations = [m.predict(X, return_std=True)[1] for m in (counted, repeated)]
            assert_allclose(*deviations, rtol=1e-5)


def test_one_row_and_no_error_are_told_without_a_warning():
    assert_allclose(rmse_interval(np.array([[4.0]]), np.ones(1), 1), [[2.0], [2.0]])
    assert_allclose(rmse_interval(np.zeros((5, 1)), np.ones(5), 5), 0.0)


def test_models_tell_it(rng):
    X = rng.normal(size=(80, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=80)
    model = KernelRegressor(n_rounds=1).fit(X, y)
    low, high = model.error_interval_
    assert low < model.leave_one_out_rmse_ < high
    both = KernelRegressor(n_rounds=1).fit(X, np.column_stack([y, 2 * y]))
    assert_allclose(both.error_interval_[:, 1], 2 * both.error_interval_[:, 0], rtol=1e-6)
    X, y = load_iris(return_X_y=True)
    classifier = KernelClassifier(n_rounds=1).fit(X[::2], y[::2])
    low, high = classifier.error_interval_
    assert low <= 1 - classifier.leave_one_out_accuracy_ <= high
