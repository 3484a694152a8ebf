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
    intervals = [rmse_interval(known, np.ones(n)) for known in squares]
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
        low, high = share_interval(wrong, np.ones(n))
        held.append(low <= new <= high)
    assert 0.92 < np.mean(held) < 0.99


def test_whole_weights_of_equal_size_change_only_the_number_of_rows(rng):
    squares = rng.normal(size=50) ** 2
    assert_allclose(rmse_interval(squares, np.full(50, 2.0)), rmse_interval(squares, np.ones(50)))


def test_one_row_and_no_error_are_told_without_a_warning():
    assert_allclose(rmse_interval(np.array([[4.0]]), np.ones(1)), [[2.0], [2.0]])
    assert_allclose(rmse_interval(np.zeros((5, 1)), np.ones(5)), 0.0)


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
