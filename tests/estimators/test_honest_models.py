"""What a model says of itself: copies, noise, rows far out, targets that are never negative."""

import warnings

import numpy as np
import pytest

from mercer import RBF, KernelClassifier, KernelRegressor
from mercer.learn.observations import Observations

QUICK = {"n_rounds": 1, "metric": "diagonal"}


def noisy(rng, n=120):
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.5 * rng.normal(size=n)


def test_copies_of_rows_are_left_out_together(rng):
    X, y = noisy(rng)
    once = KernelRegressor(**QUICK).fit(X, y)
    twice = KernelRegressor(**QUICK).fit(np.r_[X, X], np.r_[y, y])
    counted = KernelRegressor(**QUICK).fit(X, y, sample_weight=np.full(120, 2))
    assert (once.copied_rows_, twice.copied_rows_, counted.copied_rows_) == (0, 120, 120)
    written = KernelRegressor(**QUICK).fit(np.r_[X, X], np.r_[y, y.astype(np.float32)])
    assert written.copied_rows_ == 120  # with fewer digits
    for model in (twice, counted, written):
        assert "copies of a row together" in model.validation_
        # Before, a copy in the other part told the target: an error of zero.
        assert model.leave_one_out_rmse_ > 0.8 * once.leave_one_out_rmse_


def test_copies_by_chance_are_not_called_copies(rng):
    X = rng.integers(0, 2, size=(200, 2)).astype(float)
    assert Observations.copies(X, rng.normal(size=(200, 1)), None) == 0  # other targets
    assert Observations.copies(X, X[:, :1], None) == 0  # few values
    X, y = noisy(rng)
    assert Observations.copies(np.r_[X, X[:30]], np.r_[y, y[:30]][:, None], None) == 30
    assert Observations.copies(X, y[:, None], np.full(120, 0.5)) == 0  # not counts
    together = Observations.of(np.r_[X, X[:30]], np.r_[y, y[:30]][:, None], together=True)
    assert together.n == 120
    assert together.share is None


@pytest.mark.filterwarnings("default:rows left out are predicted no better")
def test_fit_says_when_it_knows_nothing(rng):
    X, y = noisy(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert KernelRegressor(**QUICK).fit(X, y).informative_
        assert KernelClassifier(**QUICK).fit(X, y > 0).informative_
    noise = rng.normal(size=120)
    with pytest.warns(UserWarning, match="no better than by the mean"):
        assert not KernelRegressor(**QUICK).fit(X, noise).informative_
    with pytest.warns(UserWarning, match="shares of the classes"):
        assert not KernelClassifier(**QUICK).fit(X, noise > 0).informative_


@pytest.mark.filterwarnings("error:rows left out are predicted no better")
def test_few_rows_with_most_of_the_variance_do_not_hide_what_was_learned(rng):
    """Three sums among the rows: RMSE 1 % of the mean's, and squares told of three rows only."""
    x = np.r_[rng.gamma(2.0, size=90), 30.0, 35.0, 40.0]
    assert KernelRegressor(**QUICK).fit(x[:, None], x + 0.05 * rng.normal(size=93)).informative_


@pytest.mark.filterwarnings("ignore:rows left out are predicted no better")
def test_intervals_hold_where_nothing_is_known():
    """All predictions are the mean. Without a row that is a little further from its target, so
    that levels of predictions were levels of targets, and the middle ones had next to no error:
    90 % intervals held 10 to 50 % of new rows."""
    for seed in range(2):
        rng = np.random.default_rng([seed, 200])
        X, y = rng.normal(size=(1200, 10)), rng.normal(size=1200)
        low, high = KernelRegressor().fit(X[:200], y[:200]).predict_interval(X[200:])
        assert 0.8 < np.mean((low <= y[200:]) & (y[200:] <= high)) < 0.98


@pytest.mark.parametrize("seed", [0, 1])
def test_intervals_hold_where_noise_grows_with_the_level(seed):
    """One width for all held every row of the lowest fifth, and 0.6 of the highest."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1400, 3))
    y = np.exp(1 + 0.6 * X[:, 0] + 0.4 * rng.normal(size=1400))
    model = KernelRegressor(**QUICK).fit(X[:400], y[:400])
    low, high = model.predict_interval(X[400:])
    assert low.min() >= 0
    inside = (low <= y[400:]) & (y[400:] <= high)
    order = np.argsort(model.predict(X[400:]))
    for some, error in ((order, 0.04), (order[:200], 0.08), (order[-200:], 0.08)):
        assert abs(inside[some].mean() - 0.9) < error


@pytest.mark.parametrize("seed", [1, 5])
def test_intervals_hold_without_noise(seed):
    """A product of columns: the kernel of all rows had ten times the error of those of the folds,
    whose errors were printed, and 90 % intervals held 20 to 60 % of new rows."""
    X = np.exp(0.5 * np.random.default_rng(seed).normal(size=(1200, 3)))
    y = 100 * X[:, 0] * X[:, 1]
    model = KernelRegressor(metric="diagonal", n_rounds=1).fit(X[:200], y[:200])
    low, high = model.predict_interval(X[200:])
    assert 0.85 < np.mean((low <= y[200:]) & (y[200:] <= high)) < 0.97
    assert model.leave_one_out_rmse_ < 1e-4 * y.std()


def test_predictions_are_held_where_targets_are(rng):
    X = rng.uniform(0, 2, size=(100, 1))
    y = np.maximum(X[:, 0] - 1, 0) * 3
    model = KernelRegressor(**QUICK).fit(X, y)
    far = model.predict(np.linspace(-50, 50, 101)[:, None])
    assert far.min() >= 0
    assert far.max() <= y.max() + 0.5 * np.ptp(y) + 1e-9
    below = KernelRegressor(**QUICK).fit(X, -y)
    assert below.predict(X).min() < 0
    given = KernelRegressor(RBF(), **QUICK).fit(X, y - 1)
    assert np.isinf(given.limits_).all()
