"""Random combinations of many targets, and landmarks of which only the first are used."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import RBF, Matern
from mercer.learn.landmark_model import LandmarkModel
from mercer.learn.last_fit import LEAST_LANDMARKS, MOST_LANDMARKS, landmarks_within
from mercer.learn.learned import LearnedKernel
from mercer.learn.many_targets import MOST_COLUMNS, in_few_columns
from mercer.learn.metric import applied, congruent
from mercer.learn.observations import Observations
from mercer.learn.targets import Targets
from mercer.solve.ridge_path import RidgePath


def test_combined_targets_have_the_leave_one_out_errors_of_all_of_them(rng):
    X, y = rng.normal(size=(300, 3)), rng.integers(100, size=300)
    targets = Targets.of(y, "classification")
    rows = Observations.of(X, targets.columns)
    few, combined = in_few_columns(rows, targets, rng)
    assert few.T.shape[1] == MOST_COLUMNS
    F = rng.normal(size=(300, 40))
    errors = [RidgePath(F + 0.0, T).errors(np.array([0.1, 10.0])) for T in (rows.T, few.T)]
    assert_allclose(errors[1], errors[0], rtol=0.1)
    assert combined.variance == pytest.approx(targets.variance, rel=0.1)


def test_few_targets_are_left_as_they_are(rng):
    targets = Targets.of(rng.normal(size=(20, 3)), "regression")
    rows = Observations.of(rng.normal(size=(20, 2)), targets.columns)
    assert in_few_columns(rows, targets, rng) == (rows, targets)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_first_landmarks_alone_are_ridge_on_them(rng, weighted):
    X, T = rng.normal(size=(80, 2)), rng.normal(size=(80, 2))
    weights = rng.uniform(0.5, 2, size=80) if weighted else None
    rows, kernel, alpha = Observations.of(X, T, weights), Matern(1.5), 0.2
    first = LandmarkModel.fit(kernel, rows, alpha, rng, 30).first(8)
    F = np.linalg.solve(np.linalg.cholesky(kernel(first.S)), kernel(first.S, rows.X)).T
    w = np.ones(80) if rows.weights is None else rows.weights
    F, T = F - w @ F / w.sum(), rows.T - w @ rows.T / w.sum()
    A = F.T @ (w[:, None] * F) + alpha * np.eye(8)
    assert_allclose(first.w, np.linalg.solve(A, F.T @ (w[:, None] * T)), rtol=1e-7, atol=1e-9)
    assert_allclose(first.L @ first.L.T, A, rtol=1e-7, atol=1e-9)
    assert np.isfinite(first.variance(X)).all()
    assert first.first(8) is first


def test_landmarks_are_as_many_as_the_memory_allows():
    assert landmarks_within(10**6, 10**10) == MOST_LANDMARKS
    assert landmarks_within(10**6, 10**6) == LEAST_LANDMARKS
    assert landmarks_within(100, 10**10) == 100
    assert LEAST_LANDMARKS < landmarks_within(10**6, 5 * 10**8) < MOST_LANDMARKS


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
