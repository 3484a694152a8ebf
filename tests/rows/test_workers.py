"""Iterations on the workers of a Dask scheduler: the same solution, the same bound."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import Chunks, KernelMap, KernelRidge, KernelRidgeCV, Matern
from mercer.engine.memory import MemoryLimitError
from mercer.rows.workers import Workers
from mercer.solve import solve_iteratively

da = pytest.importorskip("dask.array", reason="dask is not installed: pip install mercer[dask]")

N = 700
KERNEL = Matern(1.5, 2.0)


@pytest.fixture(autouse=True)
def many_rows(monkeypatch):
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 150)


@pytest.fixture
def X(rng):
    return rng.normal(size=(N, 3))


@pytest.fixture
def Y(rng, X):
    return np.stack([np.sin(X.sum(axis=1)), X[:, 0] ** 2], axis=1)


def cut(X):
    return da.from_array(X, chunks=(160, *X.shape[1:]))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_solution_within_its_bound(weighted, X, Y, rng):
    weights = rng.uniform(size=N) * (rng.uniform(size=N) > 0.2) if weighted else None
    alphas = [0.01, 0.1]
    there = solve_iteratively(
        KERNEL, X, Y, alphas, weights, tol=1e-6, rank=60, workers=Workers(cut(X))
    )
    here = solve_iteratively(KERNEL, X, Y, alphas, weights, tol=1e-6, rank=60)
    assert there.converged
    assert there.way == "workers"
    assert there.rank == 60
    Z = rng.normal(size=(200, 3))
    difference = np.abs(KERNEL(Z, X) @ (there.coef - here.coef))
    assert np.all(difference <= here.error_norms + there.error_norms)
    assert np.all(there.error_norms <= 1e-6 * there.norms)


def test_estimators_on_a_collection(X, Y, rng):
    y, Z = Y[:, 0], rng.normal(size=(50, 3))
    direct = KernelRidge(0.01, KERNEL, form="dual").fit(X, y)
    given = KernelMap(KERNEL, max_rank=80, pivots="random", random_state=0)
    for target in (y, da.from_array(y, chunks=160)):
        model = KernelRidge(0.01, given, form="iterative", tol=1e-5).fit(cut(X), target)
        assert model.form_ == "iterative"
        assert model.preconditioner_rank_ == 80
        assert np.all(np.abs(model.predict(Z) - direct.predict(Z)) <= model.error_bound(Z))
        assert_allclose(model.predict(cut(X)).compute(), model.predict(X))
    chosen = KernelRidgeCV([1e-3, 10.0], KERNEL, form="iterative").fit(cut(X), y)
    assert chosen.alpha_ == 1e-3
    assert chosen.converged_


def test_a_stream_is_gathered(X, Y):
    stream = Chunks(lambda: (X[a : a + 90] for a in range(0, N, 90)))
    streamed = KernelRidge(0.01, KERNEL, form="iterative").fit(stream, Y)
    held = KernelRidge(0.01, KERNEL, form="iterative").fit(X, Y)
    assert np.array_equal(streamed.dual_coef_, held.dual_coef_)


def test_rows_that_do_not_fit_are_refused_before_any_product(X, Y):
    limited = KernelMap(KERNEL, memory_limit="10kB")
    with pytest.raises(MemoryLimitError, match="all rows are needed at once"):
        KernelRidge(0.01, limited, form="iterative").fit(cut(X), Y)
    workers = Workers(cut(X))
    workers.limits = [20_000]
    with pytest.raises(MemoryLimitError, match="smallest worker"):
        solve_iteratively(KERNEL, X, Y, [0.1, 0.1], workers=workers)


def test_the_rank_follows_the_memory_of_the_workers(X, Y):
    workers = Workers(cut(X))
    workers.limits = [400_000, 400_000]
    solution = solve_iteratively(KERNEL, X, Y, [0.1, 0.1], workers=workers)
    assert solution.converged
    assert 8 * N * solution.rank <= 0.4 * 800_000
