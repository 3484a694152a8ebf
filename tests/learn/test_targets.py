"""Random combinations of many targets, and diagonal metrics."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import RBF
from mercer.learn.learned import LearnedKernel
from mercer.learn.metric import applied, congruent
from mercer.learn.observations import Observations
from mercer.learn.targets import _MOST_COLUMNS, Targets, in_few_columns
from mercer.solve.ridge_path import RidgePath


def test_combined_targets_have_the_leave_one_out_errors_of_all_of_them(rng):
    X, y = rng.normal(size=(300, 3)), rng.integers(100, size=300)
    targets = Targets.of(y, "classification")
    rows = Observations.of(X, targets.columns)
    few, combined = in_few_columns(rows, targets, rng)
    assert few.T.shape[1] == _MOST_COLUMNS
    F = rng.normal(size=(300, 40))
    errors = [
        RidgePath.of_coordinates(F + 0.0, T).errors(np.array([0.1, 10.0])) for T in (rows.T, few.T)
    ]
    assert_allclose(errors[1], errors[0], rtol=0.1)
    assert combined.variance == pytest.approx(targets.variance, rel=0.1)


def test_few_targets_are_left_as_they_are(rng):
    targets = Targets.of(rng.normal(size=(20, 3)), "regression")
    rows = Observations.of(rng.normal(size=(20, 2)), targets.columns)
    assert in_few_columns(rows, targets, rng) == (rows, targets)


def test_products_with_a_diagonal_metric_are_those_with_the_matrix(rng):
    X, G, weights = rng.normal(size=(5, 3)), rng.normal(size=(3, 3)), np.array([2.0, 0.0, -1.0])
    full, B = rng.normal(size=(3, 2)), np.diag(weights)
    assert_allclose(applied(X, weights), X @ B)
    assert_allclose(applied(X, full), X @ full)
    assert_allclose(congruent(weights, G), B @ G @ B.T)
    assert_allclose(congruent(weights, G.diagonal()), (B @ G @ B.T).diagonal())
    assert_allclose(congruent(full, G[:2, :2]), full @ G[:2, :2] @ full.T)
    learned = LearnedKernel.of_metric(RBF(), 1.0, 0.1, [], weights)
    assert_allclose(learned.directions, np.eye(3)[:, [0, 2, 1]])
    assert_allclose(learned.direction_lengths, [1, 0.5, 0])
