"""Evidence: its value, its slopes, what it finds, and what learning does with it."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import RBF, KernelRidge, Linear, Matern, Polynomial, RationalQuadratic, learn_kernel
from mercer.learn.evidence import _STARTS, _Covariance, _Evidence, by_evidence
from mercer.learn.observations import Observations
from mercer.learn.targets import Targets

KERNELS = [
    RBF(0.5),
    Matern(0.5),
    Matern(1.5),
    Matern(2.5, 1.3),
    Matern(2.1, 0.8),
    RationalQuadratic(0.7, 1.2),
    Linear(),
    RBF(0.3) + 0.5 * Polynomial(2, 0.2),
]


def rows_of(rng, n=40, d=3, t=2, weights=False):
    X = rng.normal(size=(n, d)) + 0.5
    T = np.column_stack([np.sin(X[:, 0]) + i * X[:, 1] for i in range(t)])
    return Observations.of(X, T, rng.uniform(0.5, 2, size=n) if weights else None)


def slow_evidence(kernel, rows, B, scales):
    """-log N(t; 0, C), summed over targets, from its definition and without the constant."""
    X, T = np.asarray(rows.X), np.asarray(rows.T)
    T = T - T.mean(axis=0)
    T = T / np.sqrt(np.mean(T**2))
    s, l, c, v = np.exp(scales)
    Z, L = X @ (np.diag(B) if B.ndim == 1 else B), X - X.mean(axis=0)
    w = np.ones(len(X)) if rows.weights is None else rows.weights
    C = np.array([[s * kernel([a], [b])[0, 0] for b in Z] for a in Z])
    C += l * L @ L.T / X.shape[1] + c + v * np.diag(1 / w)
    values, V = np.linalg.eigh(C)
    return sum(0.5 * np.sum((V.T @ t) ** 2 / values + np.log(values)) for t in T.T)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("full", [False, True])
def test_the_value_is_the_definition_and_slopes_are_differences(kernel, full, rng):
    rows = rows_of(rng, weights=True)
    evidence = _Evidence(kernel, rows, 1.0)
    B = rng.normal(size=(3, 3)) if full else rng.uniform(0.3, 1, size=3)
    scales = np.log([0.8, 0.1, 0.2, 0.3])
    value, of_B, of_scales = evidence.of(B, scales)
    assert_allclose(value, slow_evidence(kernel, rows, B, scales), rtol=1e-9)
    h = 1e-5
    for index in np.ndindex(B.shape):
        step = np.zeros(B.shape)
        step[index] = h
        difference = evidence.of(B + step, scales)[0] - evidence.of(B - step, scales)[0]
        assert_allclose(of_B[index], difference / (2 * h), rtol=1e-5, atol=1e-6)
    for i in range(4):
        step = h * np.eye(4)[i]
        difference = evidence.of(B, scales + step)[0] - evidence.of(B, scales - step)[0]
        assert_allclose(of_scales[i], difference / (2 * h), rtol=1e-5, atol=1e-6)


def test_other_libraries_give_the_same(xp, rng):
    rows = rows_of(rng, n=30)
    there = replace(rows, X=xp.asarray(rows.X), T=xp.asarray(rows.T))
    for B in (np.array([0.5, 1.0, 0.2]), rng.normal(size=(3, 2))):
        mine = _Evidence(Matern(1.5), rows, 1.0).of(B, np.zeros(4))
        theirs = _Evidence(Matern(1.5), there, 1.0).of(B, np.zeros(4))
        for a, b in zip(mine, theirs):
            assert_allclose(a, b, rtol=1e-9)


def test_it_is_never_worse_than_its_start_and_nearly_noiseless_targets_stay_finite(rng):
    X = rng.normal(size=(80, 2))
    rows = Observations.of(X, X[:, :1] ** 2)
    evidence = _Evidence(RBF(0.5), rows, 1.0)
    start = _Covariance(np.ones(2), np.log([0.5, 0.05, 0.05, 0.5]))
    found = evidence.best(start, 40)
    again = evidence.best(found, 10)
    assert again.value <= found.value < evidence.of_noise
    assert np.isfinite(found.B).all()
    assert np.isfinite(found.scales).all()
    full = evidence.best(replace(found, B=np.diag(found.B)), 10)
    assert full.B.shape == (2, 2)


def hidden(seed, n, d):
    """Three of many columns matter, and none of them says anything alone."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, d))
    f = np.sin(3 * X[:, 4]) * np.cos(3 * X[:, 7]) * X[:, 3]
    return X, f / f.std() + 0.2 * rng.normal(size=n)


@pytest.mark.parametrize("classes", [False, True])
def test_columns_that_say_nothing_alone_are_found(classes):
    X, y = hidden(0, 300, 8)
    targets = Targets.of(np.where(y > 0, "a", "b") if classes else y)
    rows = Observations.of(X / X.std(axis=0), targets.columns)
    found = by_evidence(RBF(0.5), rows, 8**-0.5, np.random.default_rng(0), full=True)
    for covariance in found:
        B = np.abs(covariance.B) if covariance.B.ndim == 1 else np.linalg.norm(covariance.B, axis=1)
        assert set(np.argsort(-B)[:3]) == {3, 4, 7}


def test_more_starts_are_tried_where_the_evidence_is_that_of_noise(rng, monkeypatch):
    starts = []
    best = _Evidence.best
    monkeypatch.setattr(
        _Evidence,
        "best",
        lambda self, start, steps: starts.append(start) or best(self, start, steps),
    )
    X = rng.normal(size=(150, 2))
    for y, tried in ((np.sin(X[:, :1]), 3), (rng.normal(size=(150, 1)), 1 + _STARTS)):
        starts.clear()
        by_evidence(RBF(0.5), Observations.of(X, y), 1.0, rng, full=False)
        assert len(starts) == tried


def test_a_model_finds_what_the_plain_kernel_cannot_see():
    """The plain kernel predicts nothing here, and the gradients of nothing are noise."""
    X, y = hidden(1, 700, 20)
    learned = learn_kernel(X[:500], y[:500], metric="diagonal", random_state=0)
    assert learned.history[0].error > 0.95
    assert set(np.argsort(-learned.importances)[:3]) == {3, 4, 7}
    model = KernelRidge(learned.alpha, learned.kernel).fit(X[:500], y[:500])
    assert np.sqrt(np.mean((model.predict(X[500:]) - y[500:]) ** 2)) < 0.25


def test_an_expression_keeps_its_form_by_evidence_too():
    X, y = hidden(0, 300, 8)
    learned = learn_kernel(X, y, RBF() + Linear(), metric="diagonal", n_rounds=1, random_state=0)
    assert set(np.argsort(-learned.importances)[:3]) == {3, 4, 7}
    assert isinstance(learned.kernel.kernel.left, RBF)


def test_smooth_kernels_of_any_degree_have_gradients():
    assert Matern(2.1).has_slope
    assert not Matern(0.9).has_slope
