"""Support vector machines: the certificate holds against a slow oracle in extended precision."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.svm import SVC

from mercer import RBF, Laplacian, Linear, Polynomial, Precomputed
from mercer.engine.memory import MemoryLimitError
from mercer.engine.sklearn_compat import libsvm
from mercer.solve import box_dual, svm
from mercer.solve.box_dual import BoxDual, _balanced, _Free
from mercer.solve.duality import (
    Rounding,
    _hinge_range,
    _weighted_quantiles,
    best_hinge_intercept,
    hinge_certificate,
)
from mercer.solve.svm import MarginProblem

L = np.longdouble


def slow_machine(K, y, C, steps=200_000):
    """(c, all best intercepts) by sequential minimal optimisation, one pair at a time, in extended
    precision: the most violating pair moves to its optimum until nothing violates."""
    K, y, C = K.astype(L), y.astype(L), C.astype(L)
    low, high = np.minimum(0, y * C), np.maximum(0, y * C)
    c, left = np.zeros(len(y), dtype=L), y.copy()
    for _ in range(steps):
        up, down = np.where(c < high, left, -np.inf), np.where(c > low, left, np.inf)
        i, j = int(np.argmax(up)), int(np.argmin(down))
        if up[i] - down[j] < 1e-17:
            break
        curvature = max(K[i, i] + K[j, j] - 2 * K[i, j], L(1e-18))
        t = min((left[i] - left[j]) / curvature, high[i] - c[i], c[j] - low[j])
        c[i], c[j] = c[i] + t, c[j] - t
        left = left - t * (K[:, i] - K[:, j])
    values = K @ c
    # b such that the loss is smallest: between the last kink that pulls up and the first down.
    kinks = np.sort(y - values)
    slack = [(float(np.sum(C * np.maximum(0, 1 - y * (values + b)))), float(b)) for b in kinks]
    least = min(loss for loss, _ in slack)
    best = [b for loss, b in slack if loss <= least * (1 + 1e-15) + 1e-16]
    return c, min(best), max(best)


def problem_of(kernel, X, y, C):
    C = np.broadcast_to(np.asarray(C, dtype=float), y.shape).copy()
    return MarginProblem(kernel, X, y, C, Rounding.of(kernel, X))


def two_classes(rng, n=30, d=2):
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y


def longdouble_rbf(gamma, X, Z):
    X, Z = X.astype(L), Z.astype(L)
    return np.exp(-L(gamma) * ((X[:, None] - Z[None]) ** 2).sum(axis=2))


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    gamma=st.sampled_from([0.1, 1.0, 10.0]),
    C=st.sampled_from([1e-3, 0.3, 1.0, 100.0]),
    weighted=st.booleans(),
)
def test_the_bound_holds_at_every_point(seed, gamma, C, weighted):
    rng = np.random.default_rng(seed)
    X, y = two_classes(rng, int(rng.integers(4, 40)))
    box = C * (rng.uniform(0.2, 3, size=len(y)) if weighted else np.ones(len(y)))
    found = problem_of(RBF(gamma), X, y, box).solve()
    c, least, most = slow_machine(longdouble_rbf(gamma, X, X), y, box)
    Z = np.concatenate([X, 2 * rng.normal(size=(50, 2))])
    K = longdouble_rbf(gamma, Z, X)
    error = np.abs((K @ (found.c.astype(L) - c)).astype(float))
    certificate = found.certificate
    # What the oracle itself may be off by.
    assert error.max() <= certificate.error_norm + 1e-12
    assert found.b - certificate.shift <= least + 1e-9
    assert found.b + certificate.shift >= most - 1e-9
    assert certificate.gap <= Rounding.of(RBF(gamma), X).aim(1e-3, certificate.norm)


@pytest.mark.parametrize("stop", [0.5, 0.1, 0.01])
def test_the_bound_holds_for_machines_that_are_not_solved(rng, stop):
    """Any coefficients in the box that sum to zero, however far from the solution."""
    X, y = two_classes(rng, 40)
    C, kernel = np.full(40, 2.0), RBF(1.0)
    K = kernel(X)
    exact = slow_machine(K, y, C)[0].astype(float)
    low, high = np.minimum(0, y * C), np.maximum(0, y * C)
    c = _balanced(np.clip(exact + stop * rng.normal(size=40), low, high), low, high)
    values = K @ c
    b = best_hinge_intercept(y, C, values)
    got = hinge_certificate(y, C, c, b, values, Rounding.of(kernel, X), 1.0)
    distance = ((c - exact) @ K @ (c - exact)) ** 0.5
    assert distance <= got.error_norm
    # It is a bound, and not a useless one.
    assert got.error_norm <= 30 * distance


def test_the_gap_is_primal_minus_dual(rng):
    X, y = two_classes(rng, 40)
    C, K = rng.uniform(0.5, 2, size=40), RBF(1.0)(X)
    low, high = np.minimum(0, y * C), np.maximum(0, y * C)
    c = _balanced(np.clip(rng.normal(size=40), low, high), low, high)
    b = 0.3
    primal = c @ K @ c / 2 + np.sum(C * np.maximum(0, 1 - y * (K @ c + b)))
    dual = y @ c - c @ K @ c / 2
    got = hinge_certificate(y, C, c, b, K @ c, Rounding.of(RBF(1.0), X), 1.0)
    assert_allclose(got.gap, primal - dual, rtol=1e-9)
    assert got.gap >= primal - dual


def test_all_best_intercepts_are_found():
    """No support vector is free: every b between the two is best."""
    y, C = np.array([1.0, -1.0]), np.array([0.1, 0.1])
    values = np.array([0.1, -0.1])
    assert_allclose(_hinge_range(y, C, values), (-0.9, 0.9))
    assert best_hinge_intercept(y, C, values) == pytest.approx(0.0)
    least, most = _hinge_range(y, C, values, np.full(2, 0.05))
    assert_allclose((least, most), (-0.95, 0.95))


def test_an_intercept_is_known_to_rounding_at_best(rng):
    """Values of 1e-22 vanish beside labels of one: b* = -1 + 1.9e-22 was known without an error."""
    X, y = two_classes(rng, 13)
    problem = problem_of(Polynomial(4, gamma=1e-6, coef0=0.0), 1e-3 * X, y, 1e5)
    certificate = problem.solve().certificate
    assert certificate.shift >= np.finfo(float).eps


def test_the_best_intercept_is_a_weighted_quantile(rng):
    y = np.where(rng.random(50) > 0.3, 1.0, -1.0)
    C, values = rng.uniform(0.1, 3, size=50), rng.normal(size=50)
    b = best_hinge_intercept(y, C, values)
    loss = [np.sum(C * np.maximum(0, 1 - y * (values + t))) for t in np.linspace(-4, 4, 4001)]
    assert np.sum(C * np.maximum(0, 1 - y * (values + b))) <= min(loss) + 1e-12


@pytest.mark.parametrize("kernel", [RBF(0.5), Linear(), Polynomial(2), Laplacian(0.5)], ids=repr)
def test_samples_and_all_rows_give_one_solution(kernel):
    """More rows than the first sample: rows join until no margin is violated outside."""
    rng = np.random.default_rng(0)
    X, y = two_classes(rng, 2600, 3)
    found = problem_of(kernel, X, y, 1.0).solve()
    K = kernel(X)
    left = y - K @ found.c - found.b
    assert abs(found.c.sum()) < 1e-9 * np.abs(found.c).sum()
    gap = np.sum(np.maximum(y * left, 0) - found.c * left)
    aim = Rounding.of(kernel, X).aim(1e-3, found.certificate.norm)
    assert gap <= found.certificate.gap <= aim
    assert_allclose(found.values, K @ found.c, atol=1e-9 * np.abs(found.c).sum())


def test_a_class_of_three_rows_among_thousands(rng):
    """The first sample is a small part of the rows, and needs both classes."""
    X, y = rng.normal(size=(4000, 2)), np.full(4000, -1.0)
    y[[5, 1700, 3999]] = 1.0
    found = problem_of(RBF(1.0), X, y, 10.0).solve()
    aim = Rounding.of(RBF(1.0), X).aim(1e-3, found.certificate.norm)
    assert found.certificate.gap <= aim
    assert abs(found.c.sum()) < 1e-9 * np.abs(found.c).sum()


def test_two_passes_over_all_rows(rng, monkeypatch):
    """One finds the rows near the margin, one certifies: in between the nearest rows do."""
    X = rng.normal(size=(12_000, 2))
    y = np.where(np.sin(X[:, 0]) + X[:, 1] > 0, 1.0, -1.0)
    X[:, 1] += 0.2 * y
    passes, values = [], MarginProblem.values
    problem = problem_of(RBF(1.0), X, y, 10.0)

    def counted(self, c, rows=None):
        passes.append(self.points is X and rows is None)
        return values(self, c, rows)

    monkeypatch.setattr(MarginProblem, "values", counted)
    found = problem.solve()
    assert sum(passes) == 2
    assert found.certificate.gap <= problem.rounding.aim(1e-3, found.certificate.norm)


@pytest.mark.parametrize("kernel", [RBF(0.5), Laplacian(0.3)])
@pytest.mark.parametrize("weighted", [False, True])
def test_small_problems_hold_rows_near_the_margin(monkeypatch, kernel, weighted):
    """What they join in for is the solution of the way for many rows, from fewer kernel values."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1500, 3))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=1500) > 0, 1.0, -1.0)
    C = 10.0 * (rng.uniform(0.2, 3, size=1500) if weighted else np.ones(1500))
    rounds, known = [], []
    ascend, matrix = svm._WorkingSet._ascend, svm._KnownRows.matrix
    monkeypatch.setattr(svm._WorkingSet, "_ascend", lambda *a: rounds.append(1) or ascend(*a))
    monkeypatch.setattr(svm._KnownRows, "matrix", lambda s: known.append(len(s.rows)) or matrix(s))
    problem = problem_of(kernel, X, y, C)
    found = problem.solve(1e-4)
    assert len(rounds) <= 2
    assert 0 < max(known) < 750
    assert found.certificate.gap <= problem.rounding.aim(1e-4, found.certificate.norm)
    known.clear()
    monkeypatch.setattr(svm, "FEW", 0)
    same = problem.solve(1e-4)
    assert not known
    bound = found.certificate.error_norm + same.certificate.error_norm
    assert np.all(np.abs(found.values - same.values) <= bound * problem.rounding.lengths)


def test_a_start_from_other_support_vectors_changes_nothing():
    rng = np.random.default_rng(1)
    X, y = two_classes(rng, 2600, 3)
    cold = problem_of(RBF(0.5), X, y, 10.0).solve(1e-6)
    near = np.flatnonzero(problem_of(RBF(0.5), X, y, 5.0).solve().c)
    warm = problem_of(RBF(0.5), X, y, 10.0).solve(1e-6, near)
    assert_allclose(warm.values + warm.b, cold.values + cold.b, atol=1e-4)


def test_repeated_rows_and_flipped_labels(rng):
    """K_FF is singular: copies of a row may be free together."""
    X = np.repeat(rng.normal(size=(15, 2)), 4, axis=0)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    y[::7] *= -1
    found = problem_of(RBF(1.0), X, y, 10.0).solve()
    exact = slow_machine(longdouble_rbf(1.0, X, X), y, np.full(60, 10.0))[0]
    K = longdouble_rbf(1.0, X, X)
    assert float(np.abs(K @ (found.c - exact)).max()) <= found.certificate.error_norm + 1e-12
    assert found.certificate.error_norm <= 1e-3 * found.certificate.norm


def test_many_repeated_rows_are_solved_at_once(monkeypatch):
    """Small whole numbers, as Letter has: K_FF of a thousand rows is singular many times over, and
    what leaves it must not undo the solution."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, size=(4000, 5)).astype(float)
    y = np.where(np.sin(2 * X).sum(axis=1) + 0.3 * rng.normal(size=4000) > 0, 1.0, -1.0)
    rounds, ascend = [], svm._WorkingSet._ascend
    monkeypatch.setattr(svm._WorkingSet, "_ascend", lambda *a: rounds.append(1) or ascend(*a))
    problem = problem_of(RBF(0.1), X, y, 10.0)
    found = problem.solve()
    assert found.certificate.gap <= problem.rounding.aim(1e-3, found.certificate.norm)
    assert len(rounds) <= 5


def test_a_gram_matrix(rng):
    X, y = two_classes(rng, 80)
    K = RBF(1.0)(X)
    found = problem_of(Precomputed(), K, y, 1.0).solve()
    same = problem_of(RBF(1.0), X, y, 1.0).solve()
    assert_allclose(found.c, same.c, atol=1e-7)


@pytest.mark.parametrize("moved", [False, True])
def test_libsvm_without_the_checks_of_svc(rng, monkeypatch, capfd, moved):
    """Called directly, or through SVC where a version of scikit-learn has moved it: one answer."""
    X, y = two_classes(rng, 80)
    K, C = RBF(1.0)(X), rng.uniform(0.5, 2, size=80)
    exact = SVC(C=2.0, kernel="precomputed", tol=1e-6).fit(K, y, sample_weight=C / 2)
    if moved:
        monkeypatch.setitem(sys.modules, "sklearn.svm._libsvm", None)
    support, coefficients, b, steps = libsvm(K, y, C, 1e-6, 100_000)
    assert_allclose(
        K[:, support] @ coefficients + b, exact.decision_function(K), atol=1e-5, rtol=1e-5
    )
    assert steps > 0
    assert capfd.readouterr().out == ""


def test_too_little_memory_is_said(rng):
    X, y = two_classes(rng, 200)
    problem = problem_of(RBF(1.0), X, y, 1.0)
    with pytest.raises(MemoryLimitError, match="may be support vectors"):
        MarginProblem(**{**vars(problem), "memory_limit": 1000}).solve()


# --- the active set -------------------------------------------------------------------------------


def test_the_active_set_solves_from_nothing(rng):
    """Far from the solution, too: no coefficient to begin with."""
    X, y = two_classes(rng, 60)
    K = RBF(1.0)(X)
    dual = BoxDual(problem_of(RBF(1.0), X, y, 5.0), np.zeros(60), 0.0, np.zeros(60))
    dual.solve(1e-10)
    exact = slow_machine(K, y, np.full(60, 5.0))[0].astype(float)
    assert_allclose(dual.values, K @ dual.c, atol=1e-10)
    assert_allclose(K @ dual.c, K @ exact, atol=1e-5)


def test_the_objective_never_falls(rng):
    X, y = two_classes(rng, 100)
    K = RBF(1.0)(X)
    seen = []

    class Watched(BoxDual):
        def _step(self, free, left):
            super()._step(free, left)
            seen.append(float(self.c @ (y - K @ self.c / 2)))

    Watched(problem_of(RBF(1.0), X, y, 5.0), np.zeros(100), 0.0, np.zeros(100)).solve(1e-12)
    assert len(seen) > 2
    assert np.all(np.diff(seen) >= -1e-9 * np.abs(seen[:-1]))


def test_the_inverse_follows_the_free_set(rng):
    A = rng.normal(size=(650, 700))
    K = A @ A.T
    problem = problem_of(Precomputed(), K, np.ones(650), 1.0)
    free = _Free.of(problem, np.arange(600)).with_more(problem, np.arange(600, 640))
    assert free.with_more(problem, np.empty(0, dtype=int)) is free
    assert_allclose(free.inverse @ K[:640, :640], np.eye(640), atol=1e-6)
    fewer = free.without(np.arange(0, 640, 7))
    rows = fewer.rows
    assert_allclose(fewer.inverse @ K[np.ix_(rows, rows)], np.eye(len(rows)), atol=1e-6)


def test_many_coefficients_stop_in_one_step(rng, monkeypatch):
    """Those left are a smaller problem, with the same end."""
    A = rng.normal(size=(300, 310))
    H = np.linalg.inv(A @ A.T / 300 + 0.1 * np.eye(300))
    low, high = -rng.uniform(0.1, 1, size=300), rng.uniform(0.1, 1, size=300)
    c, left = rng.uniform(low, high), 3 * rng.normal(size=300)
    c[:150] = high[:150]  # some cannot move from the beginning
    before = c.copy()
    ends = []
    for most in (1000, 100, 10):
        monkeypatch.setattr(box_dual, "_MOST_STOPPED", most)
        ends.append(box_dual._to_the_bounds(left, H, c, low, high, -c.sum()))
        assert_allclose(c, before, rtol=0)
    assert np.count_nonzero((ends[0][0] == low) | (ends[0][0] == high)) > 150
    for end, shift in ends[1:]:
        assert_allclose(end, ends[0][0], atol=1e-9)
        assert shift == pytest.approx(ends[0][1], abs=1e-9)


def test_no_coefficient_is_free(capfd):
    """LAPACK prints where it is asked to invert nothing."""
    problem = problem_of(Precomputed(), np.eye(2), np.array([1.0, -1.0]), 0.1)
    assert _Free.of(problem, np.empty(0, dtype=int)).inverse.shape == (0, 0)
    dual = BoxDual(problem, np.zeros(2), 0.0, np.zeros(2))
    dual.solve(0.0)
    assert_allclose(dual.c, [0.1, -0.1])
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("total", [1e-3, 5.0, -5.0])
def test_balanced_coefficients_stay_in_their_box(rng, total):
    y = np.where(rng.random(50) > 0.5, 1.0, -1.0)
    low, high = np.minimum(0, y * 2), np.maximum(0, y * 2)
    c = rng.uniform(low, high)
    c[0] += total
    got = _balanced(np.clip(c, low, high), low, high)
    assert abs(got.sum()) < 1e-12
    assert np.all((got >= low) & (got <= high))


# --- coordinates ----------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_interior_point_method_finds_the_same(rng, C):
    X, y = two_classes(rng, 400, 3)
    Phi = np.concatenate([X, X**2, np.sin(X)], axis=1)
    box = C * rng.uniform(0.5, 2, size=400)
    problem = problem_of(Linear(), Phi, y, box)
    found, exact = problem.solve_on_coordinates(), problem.solve(1e-5)
    error = ((found.c - exact.c) @ Phi) ** 2
    assert error.sum() ** 0.5 <= found.certificate.error_norm + exact.certificate.error_norm
    assert found.certificate.gap <= Rounding.of(Linear(), Phi).aim(1e-2, found.certificate.norm)
    assert_allclose(found.values + found.b, exact.values + exact.b, atol=0.02)


def test_a_single_coordinate(rng):
    Phi, y = rng.normal(size=(50, 1)), np.where(rng.random(50) > 0.5, 1.0, -1.0)
    found = problem_of(Linear(), Phi, y, 1.0).solve_on_coordinates()
    exact = slow_machine(Phi @ Phi.T, y, np.ones(50), 20_000)[0].astype(float)
    assert abs((found.c - exact) @ Phi[:, 0]) <= found.certificate.error_norm + 1e-9


def test_values_in_single_precision_settle_rows_beyond_their_margin(monkeypatch):
    """Most rows are far beyond their margin, and their errors count: gap and errors hold against
    values in double precision, and so does the solution without single precision."""
    rng = np.random.default_rng(3)
    X = np.round(rng.standard_t(4, size=(5000, 4)) * 4)  # repeated rows, and a few long ones
    y = np.where(np.sin(X[:, 0] / 3) + X[:, 1] / 4 + 0.1 * rng.normal(size=5000) > 0, 1.0, -1.0)
    problem = problem_of(RBF(0.05), X, y, 10.0)
    rough, single = [], MarginProblem.rough_values

    def compared(self, c, rows, *_):
        got = single(self, c, rows, 1)
        if got is not None:
            rough.append(np.abs(got[0] - self.values(c, rows)) / got[1])
        return got

    monkeypatch.setattr(MarginProblem, "rough_values", compared)
    found = problem.solve()
    assert rough
    assert max(ratio[np.isfinite(ratio)].max() for ratio in rough) < 0.5
    values = RBF(0.05)(X) @ found.c
    left = y - values - found.b
    gap = np.sum(10.0 * np.maximum(y * left, 0) - found.c * left)
    assert gap <= found.certificate.gap <= problem.rounding.aim(1e-3, found.certificate.norm)
    monkeypatch.setattr(MarginProblem, "rough_values", lambda *_: None)
    same = problem.solve()
    bound = found.certificate.error_norm + same.certificate.error_norm
    assert np.all(np.abs(values - same.values) <= bound)


@pytest.mark.parametrize("n", [40, 5001, 20_000])
def test_quantiles_of_many_kinks_need_few_of_them(rng, n):
    """As when all are sorted, with weights of many magnitudes, repeated kinks and sorted input."""
    for t in (rng.normal(size=n), np.sort(rng.normal(size=n)), rng.integers(0, 5, n) * 1.0):
        for weights in (np.ones(n), 10 ** rng.uniform(-6, 6, size=n)):
            for level in (0.0, 1e-9, 0.003, 0.5, 0.9999, 1.0):
                order = np.argsort(t, kind="stable")
                reached, wanted = np.cumsum(weights[order]), level * weights.sum()
                slack = n * 2.3e-16 * weights.sum()
                first = np.searchsorted(reached, wanted - slack, side="left")
                last = np.searchsorted(reached, wanted + slack, side="right")
                least, most = _weighted_quantiles(t, weights, wanted, n * 2.3e-16)
                assert least <= t[order][min(first, n - 1)] <= t[order][min(last, n - 1)] <= most
                assert most - least <= np.ptp(t[order][max(first - 2, 0) : last + 3]) + 1e-300
