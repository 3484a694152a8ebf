"""Tables with more columns than rows: less work, and the same answers."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import Matern, learn_kernel
from mercer.learn import metric
from mercer.learn.observations import Observations

module = sys.modules[learn_kernel.__module__]


@pytest.fixture
def wide(rng):
    X = rng.normal(size=(30, 700))
    return X, X[:, [3]] - 2 * X[:, [500]] + 0.1 * rng.normal(size=(30, 1))


def test_as_many_coordinates_as_rows_give_the_same_ridge_and_slopes(wide):
    rows = Observations.of(*wide)
    trial = module._Trial(Matern(1.5, 2.0), np.linspace(0.01, 0.1, 700), linear=1e-3)
    found = []
    for isotropic in (False, True):
        stage = module._Stage(rows, 20, None, isotropic)
        judged = stage.judged(trial)
        found.append((judged, stage.gradients(judged, diagonal=True), stage.slopes(judged)))
    assert stage.rotated_X.shape == (30, 30)
    (slow, *slow_slopes), (quick, *quick_slopes) = found
    for name in ("alpha", "error", "missed"):
        assert_allclose(getattr(quick, name), getattr(slow, name), rtol=1e-8)
    assert_allclose(quick_slopes, slow_slopes, rtol=1e-8)


def test_the_median_distance_is_that_of_differences(wide, monkeypatch):
    X = np.r_[wide[0], wide[0][:5]]  # with copies, whose distance does not count
    B = np.linspace(0.1, 1, 700)
    quick = metric.with_unit_median(B, X, np.random.default_rng(0))
    monkeypatch.setattr(metric, "_FEW_ROWS", 0)
    slow = metric.with_unit_median(B, X, np.random.default_rng(0))
    assert_allclose(quick, slow, rtol=1e-12)


def test_columns_that_correlate_most_are_those_of_the_definition(wide, rng):
    X, T = wide
    weights = rng.integers(1, 4, size=30).astype(float)
    rows = Observations.of(X, np.c_[T, rng.normal(size=30)], weights)
    again = np.repeat(np.arange(30), weights.astype(int))
    order = [int(np.flatnonzero((x == rows.X).all(axis=1))[0]) for x in X[again]]
    T, X = rows.T[order], X[again] - X[again].mean(axis=0)
    slow = [max(abs(np.corrcoef(a, t)[0, 1]) for t in T.T for a in (x, x**2)) for x in X.T]
    assert_allclose(metric.most_correlated(rows, 40), np.sort(np.argsort(slow)[-40:]))


def test_few_of_many_columns_are_found(wide):
    learned = learn_kernel(*wide, metric="diagonal", random_state=0)
    assert set(np.argsort(learned.importances)[-2:]) == {3, 500}
