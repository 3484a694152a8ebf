"""Logistic regression on kernel values, against a slow oracle in extended precision."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import expit, softmax
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from mercer import RBF, KernelLogistic, KernelMap, Linear, Polynomial
from mercer.rows import Training
from mercer.solve import SOLVERS
from mercer.solve import newton as logistic
from mercer.solve.duality import Rounding
from mercer.solve.newton import (
    LogisticProblem,
    _best_log_intercept,
    _Workspace,
)

L = np.longdouble


def slow_logistic(K, codes, n_classes, C, steps=60):
    """(A, b) by damped Newton steps on all coefficients and intercepts at once, extended precision:
    P(A, b) = tr A'KA / 2 + losses, b summing to zero."""
    n = len(codes)
    q = 1 if n_classes == 2 else n_classes
    T = (codes == 1).astype(float)[:, None] if q == 1 else np.eye(q)[codes]
    A, b = np.zeros((n, q), dtype=L), np.zeros(q, dtype=L)

    def value(A, b):
        E = K @ A + b
        if q == 1:
            loss = np.logaddexp(L(0), E)[:, 0] - (T * E)[:, 0]
        else:
            top = E.max(axis=1, keepdims=True)
            loss = np.log(np.exp(E - top).sum(axis=1)) + top[:, 0] - (T * E).sum(axis=1)
        return np.sum(A * (K @ A)) / 2 + C @ loss

    for _ in range(steps):
        E = (K @ A + b).astype(L)
        if q == 1:
            P = 1 / (1 + np.exp(-E))
            blocks = [np.array([[p * (1 - p)]]) for p in P[:, 0]]
        else:
            e = np.exp(E - E.max(axis=1, keepdims=True))
            P = e / e.sum(axis=1, keepdims=True)
            blocks = [np.diag(p) - np.outer(p, p) for p in P]
        G = C[:, None] * (T - P)
        # Unknowns in the order (row, function), then intercepts.
        H = np.zeros((n * q + q, n * q + q))
        W = np.zeros((n * q, n * q))
        for i, block in enumerate(blocks):
            W[i * q : i * q + q, i * q : i * q + q] = (C[i] * block).astype(float)
        KQ = np.kron(K.astype(float), np.eye(q))
        ones = np.kron(np.ones((n, 1)), np.eye(q))
        H[: n * q, : n * q] = np.eye(n * q) + W @ KQ
        H[: n * q, n * q :] = W @ ones
        H[n * q :, : n * q] = ones.T
        right = np.concatenate([(G - A).ravel(), -A.sum(axis=0)]).astype(float)
        if q > 1:  # intercepts are known up to a constant
            H[n * q, n * q :] += 1.0
        step = np.linalg.lstsq(H, right, rcond=1e-14)[0]
        dA, db = step[: n * q].reshape(n, q), step[n * q :]
        t, before = 1.0, value(A, b)
        while t > 1e-10 and value(A + t * dA, b + t * db) > before:
            t /= 2
        if t <= 1e-10:
            break
        A, b = A + t * dA, b + t * db
    return A, b - (b.mean() if q > 1 else 0)


def problem_of(X, codes, n_classes, C, gamma=1.0):
    C = np.broadcast_to(np.asarray(C, dtype=float), codes.shape).copy()
    training = Training.of(RBF(gamma), X)
    return LogisticProblem(training, codes, n_classes, C, Rounding.of(RBF(gamma), X))


def longdouble_rbf(gamma, X, Z):
    return np.exp(-L(gamma) * ((X.astype(L)[:, None] - Z.astype(L)[None]) ** 2).sum(axis=2))


@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_classes=st.sampled_from([2, 3, 5]),
    C=st.sampled_from([1e-2, 1.0, 100.0]),
    tol=st.sampled_from([1e-1, 1e-4]),
)
def test_the_bound_holds_at_every_point(seed, n_classes, C, tol):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3 * n_classes, 30))
    X = rng.normal(size=(n, 2))
    codes = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)])
    C = C * rng.uniform(0.3, 2, size=n)
    found = problem_of(X, codes, n_classes, C).solve(tol)
    A, b = slow_logistic(longdouble_rbf(1.0, X, X), codes, n_classes, C)
    Z = np.concatenate([X, 2 * rng.normal(size=(40, 2))])
    difference = longdouble_rbf(1.0, Z, X) @ (found.A - A)
    certificate = found.certificate
    assert float(np.abs(difference).max()) <= certificate.error_norm + 1e-9
    # All functions together, which is what the gap bounds.
    assert float((difference**2).sum(axis=1).max()) ** 0.5 <= certificate.error_norm + 1e-9
    assert float(np.abs(found.b - b).max()) <= certificate.shift + 1e-9


@pytest.mark.parametrize("solver", ["direct", "primal", "iterative", "fourier"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_every_solver_of_ridge_finds_it(solver, n_classes):
    """Against scikit-learn's Newton method on coordinates."""
    if solver == "fourier":
        pytest.importorskip("finufft")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    codes = (X[:, 0] > 0).astype(int) + (n_classes == 4) * 2 * (X[:, 1] > 0.5)
    codes = np.where(rng.random(120) < 0.1, rng.integers(n_classes, size=120), codes)
    problem = problem_of(X, codes, n_classes, 10.0)
    space = _Workspace(problem)
    space.solver = SOLVERS[solver]
    found = problem.solve(1e-6, space)
    assert found.converged
    Phi = KernelMap(RBF(1.0)).fit_transform(X)
    same = LogisticRegression(C=10.0, tol=1e-10, solver="newton-cholesky").fit(Phi, codes)
    E = found.values + found.b
    P = expit(E) if n_classes == 2 else softmax(E, axis=1)
    expected = same.predict_proba(Phi)
    assert_allclose(P, expected[:, 1:] if n_classes == 2 else expected, atol=1e-6)


def test_steps_share_landmarks_and_products(monkeypatch):
    """One factorisation, however many steps; few products for each of them."""
    made, solved = [], []
    real, ridge = logistic.factorize, logistic.solve_ridge
    monkeypatch.setattr(logistic, "factorize", lambda *a, **k: made.append(1) or real(*a, **k))
    monkeypatch.setattr(logistic, "_COMPETING", (SOLVERS["iterative"],))

    def watched(problem, solver):
        solved.append(ridge(problem, solver))
        return solved[-1]

    monkeypatch.setattr(logistic, "solve_ridge", watched)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 6))
    codes = (np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=1200) > 0).astype(int)
    found = problem_of(X, codes, 2, 10.0, 0.2).solve()
    assert found.converged
    assert len(made) == 1
    assert len(solved) == found.n_iter <= 10
    assert max(step.steps.n_iter for step in solved) <= 15


@pytest.mark.parametrize("solver", ["direct", "iterative"])
def test_a_step_of_several_classes_is_newtons(solver, monkeypatch):
    """Against one dense system of all coefficients and intercepts."""
    monkeypatch.setattr(logistic, "FORCING", 1e-10)
    rng = np.random.default_rng(0)
    n, q = 40, 4
    X, codes, C = rng.normal(size=(n, 2)), rng.permutation(n) % q, rng.uniform(1, 20, size=n)
    problem = problem_of(X, codes, q, C)
    space = _Workspace(problem)
    space.solver = SOLVERS[solver]
    K, A = RBF(1.0)(X), rng.normal(size=(n, q))
    A -= A.mean(axis=1, keepdims=True)
    A -= A.mean(axis=0)
    F = K @ A
    b = problem.intercepts(F, np.zeros(q))
    D, image = problem.step(space, A, F, b)
    P = softmax(F + b, axis=1)
    H = np.zeros((n * q, n * q))
    for i, p in enumerate(P):
        H[i * q : i * q + q, i * q : i * q + q] = C[i] * (np.diag(p) - np.outer(p, p))
    ones = np.kron(np.ones((n, 1)), np.eye(q))
    whole = np.eye(n * q) + H @ np.kron(K, np.eye(q))
    system = np.block([[whole, H @ ones], [ones.T, np.zeros((q, q))]])
    right = np.concatenate([(C[:, None] * (np.eye(q)[codes] - P) - A).ravel(), np.zeros(q)])
    exact = np.linalg.lstsq(system, right, rcond=1e-13)[0][: n * q].reshape(n, q)
    assert_allclose(D, exact, atol=1e-6 * np.abs(exact).max())
    assert_allclose(image, K @ D, atol=1e-9 * np.abs(image).max())


def test_few_products_for_all_classes_together(monkeypatch):
    """Ten classes cost about as many products with K as one, and as many steps."""
    X, codes = load_digits(return_X_y=True)
    X, codes = X[:600] / 16, codes[:600]
    products, times = [], _Workspace.times
    monkeypatch.setattr(_Workspace, "times", lambda *a: products.append(1) or times(*a))
    found = problem_of(X, codes, 10, 100.0, 0.1).solve()
    assert found.converged
    assert found.n_iter <= 10
    assert len(products) <= 80


def test_coordinates_are_multiplied_without_a_matrix_of_rows(rng):
    Phi, codes = rng.normal(size=(60, 5)), rng.permutation(60) % 3
    problem = LogisticProblem(
        Training.of(Linear(), Phi), codes, 3, np.ones(60), Rounding.of(Linear(), Phi)
    )
    space = _Workspace(problem)
    assert space.known.product.way == "factored"
    V = rng.normal(size=(60, 3))
    assert_allclose(space.times(V), Phi @ Phi.T @ V)
    assert problem.solve(1e-5, space).converged


def test_weights_of_several_classes_are_between_one_and_two():
    """Eigenvalues of diag(p) - p p', relative to its diagonal: zero, and from 1 to 2."""
    rng = np.random.default_rng(0)
    for q in (2, 3, 7, 30):
        for concentration in (0.01, 0.1, 1.0, 10.0):
            p = np.maximum(rng.dirichlet(np.full(q, concentration)), 1e-6)
            p /= p.sum()
            root = 1 / np.sqrt(p * (1 - p))
            values = np.linalg.eigvalsh((np.diag(p) - np.outer(p, p)) * np.outer(root, root))
            assert abs(values[0]) < 1e-9
            assert values[1] > 1 - 1e-9
            assert values[-1] < 2 + 1e-9


def test_the_gap_is_primal_minus_dual(monkeypatch):
    """Of a solution that is not exact, by the definition of both."""
    monkeypatch.setattr(logistic, "_MOST_NEWTON", 1)
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(40, 2)), rng.integers(2, size=40)
    found = problem_of(X, codes, 2, 1.0).solve(1e-6)
    assert not found.converged
    K, y = RBF(1.0)(X), np.where(codes == 1, 1.0, -1.0)
    E = K @ found.A[:, 0] + found.b[0]
    primal = found.A[:, 0] @ K @ found.A[:, 0] / 2 + np.sum(np.logaddexp(0, -y * E))
    p = expit(-y * E)  # the dual point a = C p
    entropy = -np.sum(p * np.log(p) + (1 - p) * np.log1p(-p))
    dual = entropy - (y * p) @ K @ (y * p) / 2
    assert primal - dual > 1e-8
    assert_allclose(found.certificate.gap, primal - dual, rtol=1e-3)


def test_a_start_from_another_penalty_changes_nothing():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(100, 2)), rng.integers(3, size=100)
    before = problem_of(X, codes, 3, 1.0).solve()
    warm = problem_of(X, codes, 3, 10.0).solve(1e-6, start=before)
    cold = problem_of(X, codes, 3, 10.0).solve(1e-6)
    assert_allclose(warm.values + warm.b, cold.values + cold.b, atol=1e-4)


def test_the_best_intercept_balances_probabilities():
    rng = np.random.default_rng(0)
    values, C = 30 * rng.normal(size=50), rng.uniform(0.1, 5, size=50)
    for share in (1e-6, 0.5, 1 - 1e-6):
        b = _best_log_intercept(values, C, share * C.sum())
        assert_allclose(C @ expit(values + b), share * C.sum(), rtol=1e-9)


def test_a_matrix_that_is_all_rounding_beside_the_penalty_ends_with_a_warning(rng):
    """Values of 1e24: neither a factor nor iterations find a step."""
    X, y = 1e3 + rng.normal(size=(30, 1)), np.arange(30) % 2
    with pytest.warns(ConvergenceWarning, match="standardised columns"):
        model = KernelLogistic(1.0, Polynomial(4, coef0=0.0) * RBF(1.0)).fit(X, y)
    assert not model.converged_
    assert not model.certain(X).any()


def test_classes_that_are_nearly_certain_are_solved_to_rounding(rng):
    # Losses of 1e-7 beside weights of 1000: differences of numbers near one would stop at 1e-9.
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    model = KernelLogistic(kernel=RBF(0.1), class_weight={0: 1000.0, 1: 1e-4, 2: 1e-4}).fit(X, y)
    assert model.converged_
    assert model.gap_ < 1e-12
