"""The last fit without a stored matrix against the direct one."""

import numpy as np
import pytest
from mercer.learn.iterative_fit import iterative_fit, lower_inverse_diagonal
from mercer.learn.last_fit import chosen_solver, last_fit
from sklearn.exceptions import ConvergenceWarning

from mercer import KernelRegressor, Matern
from mercer.learn import iterative_fit as module
from mercer.learn.observations import Observations

KERNEL = Matern(1.5, 2.0)


@pytest.fixture
def data(rng):
    X = rng.normal(size=(250, 3))
    T = np.column_stack([np.sin(X.sum(axis=1)) + 3, X[:, 0] ** 2]) + 0.1 * rng.normal(size=(250, 2))
    return X, T, rng.normal(size=(50, 3))


def values(fit, Z):
    return KERNEL(Z, fit.S) @ fit.coef + fit.intercept


@pytest.mark.parametrize("weighted", [False, True])
def test_it_equals_the_direct_fit_within_its_bound(data, rng, weighted):
    X, T, Z = data
    alpha = 0.01
    weights = rng.uniform(0.1, 2.0, size=250) if weighted else None
    rows = Observations.of(X, T, weights)
    direct = last_fit(KERNEL, rows, alpha, rng=rng, choose_alpha=False)
    fit = last_fit(KERNEL, rows, alpha, rng=rng, memory_limit="500kB", choose_alpha=False)
    assert (direct.solver, fit.solver) == ("direct", "iterative")
    assert fit.exact
    difference = np.abs(values(fit, Z) - values(direct, Z))
    assert np.all(difference <= fit.error_norms + fit.intercept_errors)  # k(z, z) = 1
    assert np.all(np.abs(fit.intercept - direct.intercept) <= fit.intercept_errors)
    assert np.all(fit.error_norms < 0.2)
    assert difference.max() < 1e-2


def test_a_coarse_solution_has_a_bound_that_still_holds(data, rng):
    X, T, Z = data
    rows = Observations.of(X, T)
    options = {"judged": np.arange(5), "rng": rng, "limit": 300_000}
    direct = last_fit(KERNEL, rows, 0.01, rng=rng, choose_alpha=False)
    coarse = iterative_fit(KERNEL, rows, 0.01, tol=0.5, **options)
    difference = np.abs(values(coarse, Z) - values(direct, Z))
    assert difference.max() > 1e-6
    assert np.all(difference <= coarse.error_norms + coarse.intercept_errors)


def test_leave_one_out_errors_are_never_too_small(data, rng, monkeypatch):
    X, T, _ = data
    rows, judged = Observations.of(X, T), np.arange(0, 250, 20)
    exact = np.diagonal(np.linalg.inv(KERNEL(X) + 1e-2 * np.eye(250)))[judged]
    monkeypatch.setattr(module, "NEIGHBOURS", 100)
    found = lower_inverse_diagonal(KERNEL, rows, 1e-2, judged)
    assert np.all(found <= exact * (1 + 1e-10))
    assert np.all(found >= 0.9 * exact)
    monkeypatch.setattr(module, "NEIGHBOURS", 250)
    np.testing.assert_allclose(lower_inverse_diagonal(KERNEL, rows, 1e-2, judged), exact)


def test_the_solver_follows_from_memory_and_size(rng):
    rows = Observations.of(rng.normal(size=(1000, 2)), rng.normal(size=(1000, 1)))
    assert chosen_solver(rows, 10**8) == "direct"
    assert chosen_solver(rows, 10**6) == "iterative"
    assert chosen_solver(rows, 10**5) == "landmarks"


def test_a_regressor_beyond_memory_predicts_the_same(data):
    X, T, Z = data
    options = {"kernel": KERNEL, "metric": None}
    direct = KernelRegressor(**options).fit(X, T[:, 0])
    beyond = KernelRegressor(memory_limit="500kB", **options).fit(X, T[:, 0])
    assert beyond.solver_ == "iterative"
    assert beyond.exact_
    difference = np.abs(beyond.predict(Z) - direct.predict(Z))
    assert np.all(difference <= 2 * beyond.error_norms_)
    assert difference.max() < 1e-2
    assert direct.leave_one_out_rmse_ <= beyond.leave_one_out_rmse_ * 1.01
    assert beyond.leave_one_out_rmse_ <= 1.05 * direct.leave_one_out_rmse_
    with pytest.raises(ValueError, match="solver must be one of"):
        KernelRegressor(solver="magic").fit(X, T)


def test_an_end_without_convergence_is_said(data, rng, monkeypatch):
    X, T, Z = data
    rows, options = Observations.of(X, T), {"solver": "iterative", "memory_limit": "500kB"}
    monkeypatch.setattr(module, "MAX_ITER", 2)  # no product but the one that certifies
    with pytest.warns(ConvergenceWarning, match="landmarks are used instead.*memory_limit"):
        fit = last_fit(KERNEL, rows, 1e-6, rng=rng, choose_alpha=False, **options)
    assert fit.solver == "landmarks"
    assert np.isfinite(values(fit, Z)).all()
    monkeypatch.setattr(module, "MAX_ITER", 6)
    monkeypatch.setattr(module, "TOL", 1e-12)
    with pytest.warns(ConvergenceWarning, match="certified error"):
        rough = last_fit(KERNEL, rows, 1.0, rng=rng, choose_alpha=False, **options)
    direct = last_fit(KERNEL, rows, 1.0, rng=rng, choose_alpha=False)
    difference = np.abs(values(rough, Z) - values(direct, Z))
    assert np.all(difference <= rough.error_norms + rough.intercept_errors)
