"""Sizes of a search follow from memory_limit."""

import gc
import weakref

import numpy as np
import pytest

from mercer import KernelClassifier, KernelRegressor, Matern, MemoryLimitError, learn_kernel
from mercer.engine import using
from mercer.learn import room
from mercer.learn.observations import Observations
from mercer.solve import solve_ridge


def rows_of(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)


def test_without_a_limit_sizes_are_the_usual_ones():
    assert room.rows_within(4000, room.EXACT) == 4000
    assert room.stage_landmarks(12_000, 1500) == 1500


@pytest.mark.parametrize("limit", [20_000_000, 100_000_000, 400_000_000])
def test_sizes_fit_the_limit(limit):
    with using(memory_limit=limit):
        rows = room.rows_within(10**6, room.EXACT)
        assert 0.98 * limit < 8 * room.EXACT * rows**2 <= limit
        for n in (300, 2000, 12_000):
            r = room.stage_landmarks(n, 10**6)
            needed = 8 * (room.OBLONG * n * r + room.SQUARE * r**2)
            assert 0.9 * limit < needed <= limit


@pytest.mark.parametrize("model", [KernelRegressor, KernelClassifier])
def test_too_little_memory_is_refused_in_words(model):
    X, y = rows_of(100)
    with pytest.raises(MemoryLimitError, match=r"100 rows .* at least 20.1 MB; .* 5 MB\. Raise it"):
        model(memory_limit="5MB").fit(X, y > 0)


def test_a_limited_search_is_smaller_and_a_large_limit_changes_nothing():
    X, y = rows_of(500)
    found = []
    for limit in (None, 2 * 10**9, 10**7):
        with using(memory_limit=limit):
            found.append(learn_kernel(X, y, n_rounds=0, random_state=0))
    free, large, small = found
    assert (free.alpha, free.kernel) == (large.alpha, large.kernel)
    assert small.history[-1].landmarks < free.history[-1].landmarks == 500
    assert small.error < 1.05 * free.error


def test_the_penalty_is_chosen_on_some_rows_where_all_do_not_fit():
    X, y = rows_of(800)
    rows = Observations.of(X, y[:, None])
    free = solve_ridge(rows.problem(Matern(1.5, 2.0), 0.1), "direct")
    with using(memory_limit=12_000_000):
        few = solve_ridge(rows.problem(Matern(1.5, 2.0), 0.1), "direct")
    assert free.choice.n_rows == 800 > few.choice.n_rows
    assert 0.2 < few.alphas[0] / free.alphas[0] < 5


def test_a_solved_problem_is_freed_at_once():
    X, y = rows_of(50)
    problem = Observations.of(X, y[:, None]).problem(Matern(1.5, 2.0), 0.1)
    gone = weakref.ref(problem)
    gc.disable()
    try:
        solve_ridge(problem, "direct")
        del problem
        assert gone() is None  # a cycle would keep the kernel matrix until it is collected
    finally:
        gc.enable()
