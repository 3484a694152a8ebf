"""The last fit through iterations and landmarks against the direct one."""

import numpy as np
import pytest
from mercer.learn.exact import best_penalty, solved_directly
from mercer.learn.landmark_model import LandmarkModel
from mercer.learn.landmarks import coordinates
from mercer.learn.last_fit import last_fit
from mercer.learn.quick_fit import leverage_gap, quick_fit, unexplained
from numpy.testing import assert_allclose

from mercer import KernelRegressor, Matern
from mercer.engine.products import exact_product
from mercer.learn import quick_fit as module
from mercer.learn.observations import Observations
from mercer.solve import quick
from mercer.solve.ridge_path import RidgePath
from mercer.space import factorize

KERNEL, ALPHA, N = Matern(1.5, 3.0), 0.1, 500


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    monkeypatch.setattr(quick, "QUICK_ROWS", 300)
    monkeypatch.setattr(module, "LANDMARKS", 120)


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(N, 3))
    T = np.column_stack([np.sin(X.sum(axis=1)) + 3, X[:, 0] ** 2])
    return Observations.of(X, T + 0.5 * rng.normal(size=T.shape))


def values(fit, Z):
    return KERNEL(Z, fit.S) @ fit.coef + fit.intercept


def exact_left(rows, alpha):
    """1 - leverage of every row, intercept included, by inverting."""
    return solved_directly(KERNEL(rows.X), rows, alpha, np.arange(rows.n))[3]


def landmark_ridge(rows, rank, rng):
    found = factorize(KERNEL, rows.X, max_rank=rank, pivots="random", rng=rng)
    return RidgePath(found.F + 0.0, rows.T), np.maximum(found.residuals, 0.0)


def test_it_equals_the_direct_fit_within_its_bound(rows, rng):
    Z = rng.normal(size=(50, 3))
    options = {"rng": rng, "choose_alpha": False}
    direct = last_fit(KERNEL, rows, ALPHA, solver="direct", **options)
    fit = last_fit(KERNEL, rows, ALPHA, **options)
    assert (direct.solver, fit.solver, fit.alpha) == ("direct", "iterative", ALPHA)
    assert fit.exact
    difference = np.abs(values(fit, Z) - values(direct, Z))
    assert np.all(difference <= fit.error_norms + fit.intercept_errors)  # k(z, z) = 1
    assert np.all(np.abs(fit.intercept - direct.intercept) <= fit.intercept_errors)
    norms = np.sqrt(np.sum(fit.coef * (KERNEL(fit.S) @ fit.coef), axis=0))
    assert np.all(fit.error_norms <= module.TOL * norms * (1 + 1e-6))
    assert difference.max() < 1e-5


def test_leave_one_out_errors_are_those_of_the_direct_fit(rows, rng):
    judged = np.arange(0, N, 3)
    fit = quick_fit(KERNEL, rows, ALPHA, judged, rng=rng, limit=10**9, choose_alpha=False)
    _, _, residuals, left = solved_directly(KERNEL(rows.X), rows, ALPHA, judged)
    assert_allclose(fit.left.mean(), left.mean(), rtol=0.01)
    assert_allclose(np.mean(fit.residuals**2), np.mean(residuals**2), rtol=0.05)
    assert np.abs(fit.left / left - 1).mean() < 0.03


@pytest.mark.parametrize("rank", [40, 80, 160])
def test_landmarks_have_the_leverages_of_all_rows_up_to_what_they_miss(rows, rng, rank):
    path, missed = landmark_ridge(rows, rank, rng)
    exact, left = exact_left(rows, ALPHA), path.residuals(ALPHA)[1]
    gap = left.mean() - exact.mean()
    assert np.all(exact <= left * (1 + 1e-9))
    assert gap <= missed.mean() / ALPHA
    product = exact_product(KERNEL, rows.X)
    found = np.mean([leverage_gap(path, ALPHA, product, rng) for _ in range(20)])
    assert 0.6 * gap < found < 1.1 * gap
    corrected = unexplained(path, missed, ALPHA, product, rng)
    assert np.abs(corrected / exact - 1).mean() < 0.5 * np.abs(left / exact - 1).mean()


def test_the_penalty_is_as_good_as_the_exact_choice(rows, rng):
    fit = quick_fit(KERNEL, rows, 10 * ALPHA, np.arange(10), rng=rng, limit=10**9)
    K = KERNEL(rows.X)
    _, losses = best_penalty(K + 0, rows, 10 * ALPHA)
    assert fit.alpha != 10 * ALPHA
    residuals = solved_directly(K + 0, rows, fit.alpha, np.arange(N))[2]
    assert (residuals**2).sum(axis=1).mean() < 1.01 * losses.mean()


def test_uncertainty_is_that_of_the_landmarks(rows, rng):
    fit = quick_fit(KERNEL, rows, ALPHA, np.arange(10), rng=rng, limit=10**9, choose_alpha=False)
    model, Z = fit.uncertainty, rng.normal(size=(30, 3))
    F, _ = coordinates(KERNEL, rows.X, model.S)
    new, _ = coordinates(KERNEL, Z, model.S)
    centre = F.mean(axis=0)
    second = (F - centre).T @ (F - centre) + ALPHA * np.eye(F.shape[1])
    inside = np.einsum("ij,ji->i", new - centre, np.linalg.solve(second, (new - centre).T))
    expected = 1 - (new**2).sum(axis=1) + ALPHA * (1 + inside + 1 / N)
    assert isinstance(model, LandmarkModel)
    assert_allclose(model.variance(Z), expected, rtol=1e-6)


def test_other_rows_are_fitted_directly(rows, rng):
    options = {"rng": rng, "choose_alpha": False}
    weighted = Observations.of(rows.X, rows.T, rng.uniform(0.5, 2.0, size=N))
    assert last_fit(KERNEL, weighted, ALPHA, **options).solver == "direct"
    assert last_fit(KERNEL, rows, 1e-5, **options).solver == "direct"  # landmarks miss too much
    few = rows.some(np.arange(200))
    assert last_fit(KERNEL, few, ALPHA, **options).solver == "direct"


def test_a_regressor_predicts_the_same_either_way(rng):
    X, Z = rng.normal(size=(N, 2)), rng.normal(size=(200, 2))
    y, truth = (np.sin(2 * A[:, 0]) + 0.3 * rng.normal(size=len(A)) for A in (X, Z))
    options = {"kernel": KERNEL, "metric": None}
    auto, direct = (KernelRegressor(solver=s, **options).fit(X, y) for s in ("auto", "direct"))
    assert (auto.solver_, direct.solver_) == ("iterative", "direct")
    assert auto.exact_
    assert np.abs(auto.predict(Z) - direct.predict(Z)).mean() < 0.02
    assert_allclose(auto.leave_one_out_rmse_, direct.leave_one_out_rmse_, rtol=0.02)
    value, std = auto.predict(Z, return_std=True)
    assert 0.84 < np.mean(np.abs(truth - value) <= 1.645 * std) < 0.96
