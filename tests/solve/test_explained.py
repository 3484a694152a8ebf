"""Iterations where few landmarks explain nearly all of the kernel, and beyond memory."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from mercer import KernelRegressor, KernelRidge, Matern, Polynomial
from mercer.engine.resources import Resources
from mercer.learn.observations import Observations
from mercer.solve import dual, iterative, solve_ridge
from mercer.solve.dual import Direct
from mercer.solve.iterative import Iterative, _Explained
from mercer.solve.solver import CannotSolve

KERNEL, ALPHA, N = Matern(1.5, 3.0), 0.1, 500


@pytest.fixture(autouse=True)
def few_landmarks(monkeypatch):
    monkeypatch.setattr(iterative, "LANDMARKS", 120)


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(N, 3))
    T = np.column_stack([np.sin(X.sum(axis=1)) + 3, X[:, 0] ** 2])
    return Observations.of(X, T + 0.5 * rng.normal(size=T.shape))


def problem_of(rows, alpha=ALPHA, *, choose=False, kernel=KERNEL, limit=None, **options):
    problem = rows.problem(kernel, alpha, choose=choose, digits=1e-5, tol=1e-3, **options)
    training = replace(problem.training, resources=Resources(limit))
    return replace(problem, training=training)


def exact_left(rows, alpha):
    """1 - leverage of every row, intercept included, by inverting."""
    return solve_ridge(problem_of(rows, alpha), "direct").left_out().left


def test_it_equals_the_direct_fit_within_its_bound(rows, rng):
    Z = rng.normal(size=(50, 3))
    problem = problem_of(rows)
    exact, quick = solve_ridge(problem, "direct"), Iterative(quick=True).solve(problem)
    assert (exact.solver, quick.solver) == ("direct", "iterative")
    difference = np.abs(quick.prediction(Z) - exact.prediction(Z))
    assert np.all(difference <= quick.error_bound(Z))
    intercepts = np.abs(quick.prediction.b - exact.prediction.b)
    assert np.all(intercepts <= quick.intercept_errors)
    assert difference.max() < 1e-4


def test_leave_one_out_errors_are_those_of_the_direct_fit(rows):
    judged, problem = np.arange(0, N, 3), problem_of(rows)
    quick = Iterative(quick=True).solve(problem).left_out(judged)
    exact = solve_ridge(problem, "direct").left_out(judged)
    assert_allclose(quick.left.mean(), exact.left.mean(), rtol=0.01)
    assert_allclose(np.mean(quick.residuals**2), np.mean(exact.residuals**2), rtol=0.05)
    assert np.abs(quick.left / exact.left - 1).mean() < 0.03


@pytest.mark.parametrize("rank", [40, 80, 160])
def test_landmarks_have_the_leverages_of_all_rows_up_to_what_they_miss(rows, rank, monkeypatch):
    monkeypatch.setattr(iterative, "LANDMARKS", rank)
    monkeypatch.setattr(iterative, "MISSED", 1e9)
    known = _Explained.of(problem_of(rows))
    exact, left = exact_left(rows, ALPHA), known.path.residuals(ALPHA)[1]
    gap = left.mean() - exact.mean()
    assert np.all(exact <= left * (1 + 1e-9))
    assert gap <= known.missed.mean() / ALPHA
    gaps = [replace(known, seed=seed).leverage_gap(ALPHA) for seed in range(20)]
    assert 0.6 * gap < np.mean(gaps) < 1.1 * gap
    corrected = known.unexplained(ALPHA)
    assert np.abs(corrected / exact - 1).mean() < 0.5 * np.abs(left / exact - 1).mean()


def test_the_penalty_is_as_good_as_the_exact_choice(rows):
    problem = problem_of(rows, 10 * ALPHA, choose=True)
    quick, exact = Iterative(quick=True).solve(problem), solve_ridge(problem, "direct")
    alpha = float(quick.alphas[0])
    assert alpha != 10 * ALPHA
    errors = solve_ridge(problem_of(rows, alpha), "direct").left_out().residuals
    assert (errors**2).sum(axis=1).mean() < 1.01 * exact.choice.losses.mean()


def test_a_regressor_predicts_the_same_either_way(rng, monkeypatch):
    X, Z = rng.normal(size=(N, 2)), rng.normal(size=(200, 2))
    y, truth = (np.sin(2 * A[:, 0]) + 0.3 * rng.normal(size=len(A)) for A in (X, Z))
    options = {"kernel": KERNEL, "metric": None}
    exact = KernelRegressor(solver="direct", **options).fit(X, y)
    monkeypatch.setattr("mercer.solve.auto._COMPETING", (Iterative(quick=True), Direct()))
    monkeypatch.setattr("mercer.solve.auto.QUICKEST_START", 0.0)
    monkeypatch.setattr(Iterative, "cost", lambda self, problem: iterative.Cost(0.0, 0))
    auto = KernelRegressor(**options).fit(X, y)
    assert (auto.solver_, exact.solver_) == ("iterative", "direct")
    assert auto.exact_
    assert np.abs(auto.predict(Z) - exact.predict(Z)).mean() < 0.02
    assert_allclose(auto.leave_one_out_rmse_, exact.leave_one_out_rmse_, rtol=0.02)
    value, std = auto.predict(Z, return_std=True)
    assert 0.84 < np.mean(np.abs(truth - value) <= 1.645 * std) < 0.96


# --- beyond memory --------------------------------------------------------------------------------

ROUGH = Matern(1.5, 2.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_beyond_memory_it_equals_the_direct_fit_within_its_bound(rows, rng, weighted):
    Z = rng.normal(size=(50, 3))
    weights = rng.uniform(0.1, 2.0, size=N) if weighted else None
    rows = Observations.of(rows.X, rows.T, weights)
    exact = solve_ridge(problem_of(rows, 0.01, kernel=ROUGH), "direct")
    problem = problem_of(rows, 0.01, kernel=ROUGH, limit="1500kB", exact=False)
    found = solve_ridge(problem)
    assert found.solver == "iterative"
    difference = np.abs(found.prediction(Z) - exact.prediction(Z))
    assert np.all(difference <= found.error_bound(Z))
    assert np.all(found.error_norms < 0.5)
    assert difference.max() < 1e-2


def test_a_coarse_solution_has_a_bound_that_still_holds(rows, rng):
    Z = rng.normal(size=(50, 3))
    exact = solve_ridge(problem_of(rows, 0.01, kernel=ROUGH), "direct")
    problem = replace(problem_of(rows, 0.01, kernel=ROUGH, limit="1MB"), tol=0.5)
    coarse = solve_ridge(problem, "iterative")
    difference = np.abs(coarse.prediction(Z) - exact.prediction(Z))
    assert difference.max() > 1e-6
    assert np.all(difference <= coarse.error_bound(Z))


def test_leave_one_out_errors_are_never_too_small(rows, monkeypatch):
    judged, X = np.arange(0, N, 40), rows.X
    exact = np.diagonal(np.linalg.inv(ROUGH(X) + 1e-2 * np.eye(N)))[judged]
    solution = solve_ridge(problem_of(rows, 1e-2, kernel=ROUGH, choose=False), "iterative")
    monkeypatch.setattr(dual, "NEIGHBOURS", 200)
    found = solution._inverse_diagonal(1e-2, judged)
    assert np.all(found <= exact * (1 + 1e-10))
    assert np.all(found >= 0.9 * exact)
    monkeypatch.setattr(dual, "NEIGHBOURS", N)
    assert_allclose(solution._inverse_diagonal(1e-2, judged), exact)


def test_a_regressor_by_iterations_predicts_the_same(rng):
    X, Z = rng.normal(size=(250, 3)), rng.normal(size=(50, 3))
    y = np.sin(X.sum(axis=1)) + 3 + 0.1 * rng.normal(size=250)
    options = {"kernel": ROUGH, "metric": None}
    exact = KernelRegressor(**options).fit(X, y)
    beyond = KernelRegressor(solver="iterative", **options).fit(X, y)
    assert beyond.solver_ == "iterative"
    assert beyond.exact_
    difference = np.abs(beyond.predict(Z) - exact.predict(Z))
    assert np.all(difference <= 2 * beyond.error_norms_)
    assert difference.max() < 1e-2
    assert exact.leave_one_out_rmse_ <= beyond.leave_one_out_rmse_ * 1.01
    assert beyond.leave_one_out_rmse_ <= 1.05 * exact.leave_one_out_rmse_
    with pytest.raises(ValueError, match="solver must be one of"):
        KernelRegressor(solver="magic").fit(X, y)


def test_an_end_without_convergence_is_said(rows, rng):
    Z, options = rng.normal(size=(20, 3)), {"kernel": ROUGH, "limit": "1MB"}
    hopeless = replace(problem_of(rows, 1e-6, **options), max_iter=2, tol=1e-12)
    with pytest.raises(CannotSolve, match=r"max_iter=2 .* no solution was found.*memory_limit"):
        solve_ridge(hopeless, "iterative")
    X = np.c_[rng.normal(2000, 10, size=50), rng.normal(size=50)]
    lost = KernelRidge(1.0, Polynomial(3), form="iterative", fit_intercept=True)
    with pytest.raises(ValueError, match=r"rounding ended .* What helps: a larger alpha"):
        lost.fit(X, X[:, 1])  # however much memory
    lost.set_params(alpha=1e12).fit(X, X[:, 1])
    problem = replace(problem_of(rows, 1.0, **options), max_iter=6, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match="certified error"):
        rough = solve_ridge(problem, "iterative")
    exact = solve_ridge(problem_of(rows, 1.0, kernel=ROUGH), "direct")
    difference = np.abs(rough.prediction(Z) - exact.prediction(Z))
    assert np.all(difference <= rough.error_bound(Z))
