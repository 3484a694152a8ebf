"""Stages of the search: few landmarks and few rows decide as many would."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import KernelRidge, Matern, learn_kernel
from mercer.learn import evidence
from mercer.learn.observations import Observations

module = sys.modules[learn_kernel.__module__]


@pytest.fixture(scope="module")
def smooth():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(1700, 5))
    y = np.sin(3 * X[:, 0] * X[:, 1]) + X[:, 2] ** 2 + 0.5 * rng.normal(size=len(X))
    return X[:1200], y[:1200], X[1200:], y[1200:]


def error_of(learned, data):
    X, y, Z, truth = data
    model = KernelRidge(learned.alpha, learned.kernel, form="dual").fit(X, y - y.mean())
    return np.sqrt(np.mean((model.predict(Z) + y.mean() - truth) ** 2))


def test_few_landmarks_find_what_more_would_find(smooth, monkeypatch):
    monkeypatch.setattr(evidence, "MANY", 300)  # quicker
    few = learn_kernel(*smooth[:2], max_landmarks=500, random_state=0)
    assert {round.landmarks for round in few.history} == {250}
    monkeypatch.setattr(module, "_MISSED", -1.0)  # landmarks are never enough
    more = learn_kernel(*smooth[:2], max_landmarks=500, random_state=0)
    assert more.history[-1].landmarks == 500
    assert_allclose(error_of(few, smooth), error_of(more, smooth), rtol=0.03)


def test_a_stage_knows_what_its_landmarks_miss(smooth):
    X, y = smooth[0][:300], smooth[1][:300]
    stage = module._Stage(Observations.of(X, y[:, None]), 40, None)
    trial = stage.judged(module._Trial(Matern(1.5, 2.0), np.eye(5), linear=0.1))
    K = Matern(1.5, 2.0)(X) + 0.1 * X @ X.T
    missed = np.trace(K - K[:, :40] @ np.linalg.solve(K[:40, :40], K[:40]))
    assert_allclose(trial.missed, missed / (300 * trial.alpha), rtol=1e-6)
    assert not trial.close
    assert replace(trial, missed=0.2).close


def exact_error(kernel, X, y):
    """The smallest leave-one-out error over penalties, by inverting."""
    errors = []
    for alpha in np.geomspace(1e-7, 10, 25):
        A = np.linalg.inv(kernel(X) + alpha * np.eye(len(X)))
        u = A.sum(axis=1)
        P = A - np.outer(u, u) / u.sum()
        errors.append(np.mean((P @ y / np.diagonal(P)) ** 2))
    return min(errors)


@pytest.mark.parametrize("target", ["rough", "smooth"])
def test_families_are_compared_by_exact_errors(target, smooth, rng, monkeypatch):
    monkeypatch.setattr(module, "FIRST_ROWS", 150)
    X = smooth[0][:400, :2]
    y = np.sin(2 * X[:, 0]) if target == "smooth" else np.sign(np.sin(5 * X)).sum(axis=1)
    y = y + 0.1 * rng.normal(size=400)
    stage = module._Stage(Observations.of(X, y[:, None]), 20, None)
    trials = [
        replace(stage.judged(module._Trial(Matern(nu, 1.0), np.eye(2))), missed=9.0)
        for nu in (0.5, 1.5, 2.5)
    ]
    exact = [exact_error(trial.kernel, X, y) for trial in trials]
    for new, mine in zip(trials, exact):
        for old, theirs in zip(trials, exact):
            if abs(mine / theirs - 1 + module._GAIN) > 0.02:  # not a close call
                assert stage.beats(new, old) == (mine < (1 - module._GAIN) * theirs)


def test_lengths_tuned_on_few_rows_are_kept_only_where_the_stage_agrees(rng, monkeypatch):
    X = rng.uniform(-1, 1, size=(2000, 3))
    rows = Observations.of(X, np.sin(3 * X[:, :1]) + 0.3 * rng.normal(size=(2000, 1)))
    stage = module._Stage(rows, 250, None)
    small = stage.smaller()
    assert small.rows.n == module._FIRST_STAGE[0]
    search = object.__new__(module._Search)
    far = stage.judged(module._Trial(Matern(1.5, 0.05), np.eye(3)))
    found = search._tuned(stage, far, small=small)
    assert found.error < 0.9 * far.error
    # Rows that ask for ever shorter lengths.
    monkeypatch.setattr(small, "judged", lambda t: replace(t, error=t.kernel.length_scale))
    assert search._tuned(stage, found, small=small) is found


def test_stages_are_compared_on_the_same_rows(smooth, rng):
    X, trial = smooth[0], module._Trial(Matern(1.5, 2.0), np.eye(5))
    noise = rng.normal(size=(1200, 1)) * np.where(np.arange(1200) < 600, 1.0, 0.1)[:, None]
    stage = module._Stage(Observations.of(X, noise), 200, None)
    before, now = stage.first(600, 200).judged(trial), stage.judged(trial)
    assert now.error < 0.7 * before.error  # the further rows are the easier ones
    assert not stage.gains(now, before, (600, 200))
    stage = module._Stage(Observations.of(X, smooth[1][:, None]), 200, None)
    before, now = stage.first(600, 3).judged(trial), stage.judged(trial)
    assert stage.gains(now, before, (600, 3))
    assert not stage.gains(now, now, (600, 3))


def test_more_landmarks_come_with_more_rows_after_the_second_stage(monkeypatch):
    monkeypatch.setattr(module, "stage_landmarks", lambda rows, landmarks: landmarks)

    def stages(n):
        search = SimpleNamespace(rows=SimpleNamespace(n=n))
        return module._Search._stages(search, 1500)

    assert stages(800) == [(800, 800)]
    assert stages(1500) == [(1500, 250), (1500, 500)]
    assert stages(3000) == [(2000, 250), (2000, 500), (3000, 1000)]
    assert stages(20_000) == list(module._STAGES)
