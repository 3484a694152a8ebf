"""Random search for a classifier that is further from the exact one than its bound says.

The exact solution is not known; a second one is, and how far that can be from it: its duality gap
by the definitions of P and D, in extended precision. A violation is a point where the two functions
differ by more than both bounds.
"""

import warnings
from unittest import mock

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from mercer import RBF, KernelLogistic, KernelMap, KernelSVC, Linear, Matern, RationalQuadratic
from mercer.solve.svm import MarginProblem

L = np.longdouble
# Shares of the cases: thousands of rows, which take seconds; centred maps.
LARGE, CENTRED = 0.005, 0.1


def machine(rng, found, kernel, X, Z, value):
    """What is wrong with the certificate of one classifier on these rows, or an empty text."""
    n = len(X)
    if rng.random() < LARGE:
        return large_machine(rng, found, value)
    if rng.random() < CENTRED:
        return centred_machine(rng, found, kernel, X, Z)
    if n > 4 and rng.random() < 0.25:
        return softmax_machine(rng, found, kernel, X, Z, value)
    y = np.where(X @ rng.normal(size=X.shape[1]) + rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    C = 10 ** rng.uniform(-3, 3)
    weights = rng.uniform(0.1, 3, size=n) if rng.random() < 0.3 else np.ones(n)
    kind = [KernelSVC, KernelLogistic][rng.integers(2)]
    rank = int(rng.integers(1, n + 1)) if rng.random() < 0.4 else None
    given = KernelMap(kernel, max_rank=rank) if rank else kernel
    tol = float(rng.choice([0.3, 1e-3]))
    # A third class: the machine of the first two must be that of their rows alone.
    labels, mine = y.copy(), np.ones(n, dtype=bool)
    if kind is KernelSVC and n > 2 and rng.random() < 0.3:
        mine[2:] = rng.random(n - 2) < 0.7
        mine[-1] = False
        labels[~mine] = 2.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = kind(C, given, tol=tol).fit(X, labels, weights)
        X, y, weights = X[mine], y[mine], weights[mine]
        second = kind(C, kernel, tol=1e-6).fit(X, y, weights)
    values, bounds, b = model.decision_function(Z), model.error_bound(Z), model.intercept_[0]
    if not mine.all():  # libsvm's first class is the positive one
        values, bounds, b = model.pair_values(Z)[:, 0], bounds[:, 0], -b
    c = np.zeros(len(X), dtype=L)
    if kind is KernelSVC:
        c[second.support_] = second.dual_coef_[0]
    else:
        c[:] = second.dual_coef_[0]
    K = value(kernel, X, X)
    gap = _gap(kind, K, y.astype(L), C * weights.astype(L), c, L(float(second.intercept_[0])))
    lengths = np.sqrt(np.maximum(np.array([value(kernel, z[None], z[None])[0, 0] for z in Z]), 0))
    difference = values - L(float(b)) - value(kernel, Z, X) @ c
    bound = lengths * (L(float(model.error_norms_[0])) + np.sqrt(2 * max(gap, L(0))))
    found.pairs += len(Z)
    found.useless += int((bounds >= np.abs(values)).sum())
    return _beyond(np.abs(difference), bound, model)


def _beyond(error, bound, model):
    if not np.any(error > bound):
        return ""
    worst = float((error / np.maximum(bound, L(1e-300))).max())
    return f"{worst:.3g} x bound: {model!r}, {len(model.classes_)} classes"


def large_machine(rng, found, value):
    """The certified gap against its definition, with passes over rows in single precision."""
    n, scale, single = 2100, 10 ** rng.uniform(-2, 2), MarginProblem.rough_values
    X = scale * rng.standard_t(rng.choice([3, 30]), size=(n, 2))
    y = np.where(
        np.sin(2 * X[:, 0] / scale) + X[:, 1] / scale + 0.2 * rng.normal(size=n) > 0, 1.0, -1.0
    )
    X += scale * rng.choice([0.0, 10 ** rng.uniform(0, 5)])
    length, C = scale * 10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-1, 4)
    kernels = RBF(length**-2), Matern(1.5, length), Matern(2.5, length)
    kernel = (*kernels, RationalQuadratic(10 ** rng.uniform(-1, 1), length))[rng.integers(4)]
    weights = rng.uniform(0.1, 3, size=n)
    always = mock.patch.object(
        MarginProblem, "rough_values", lambda self, c, rows, *_: single(self, c, rows, 1)
    )
    with always, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KernelSVC(C, kernel, tol=float(rng.choice([0.3, 1e-3]))).fit(X, y, weights)
    c = np.zeros(n, dtype=L)
    c[model.support_] = model.dual_coef_[0]
    K = value(kernel, X, X)
    gap = _gap(KernelSVC, K, y.astype(L), C * weights.astype(L), c, L(float(model.intercept_[0])))
    found.pairs += n
    return _beyond(np.array([gap]), np.array([L(float(np.max(model.gap_)))]), model)


def centred_machine(rng, found, kernel, X, Z):
    """A centred map is a kernel by itself: two fits of it differ by no more than both bounds.

    Half of the cases have k(z, z) = 0 at the origin, far from the rows, where the kernels differ.
    """
    if rng.random() < 0.5:
        kernel, Z = Linear(), np.zeros((1, X.shape[1]))
        X = rng.normal(size=X.shape) + 10 ** rng.uniform(0, 2)
    n, C = len(X), 10 ** rng.uniform(-3, 3)
    y = np.where(X @ rng.normal(size=X.shape[1]) + rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    rank = int(rng.integers(1, n + 1)) if rng.random() < 0.4 else None
    given = KernelMap(kernel, max_rank=rank, center=True)
    kind = [KernelSVC, KernelLogistic][rng.integers(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        loose, exact = (kind(C, given, tol=tol).fit(X, y) for tol in (0.3, 1e-6))
    found.pairs += len(Z)
    difference = np.abs(loose.decision_function(Z) - exact.decision_function(Z))
    return _beyond(difference.astype(L), loose.error_bound(Z) + exact.error_bound(Z), loose)


def softmax_machine(rng, found, kernel, X, Z, value):
    """The same for logistic regression of several classes: all functions together, and b."""
    n, q = len(X), int(rng.integers(3, min(len(X), 6)))
    labels = np.argmax(X @ rng.normal(size=(X.shape[1], q)) + rng.normal(size=(n, q)), axis=1)
    labels[:q] = np.arange(q)
    C, weights = 10 ** rng.uniform(-3, 3), np.ones(n)
    if rng.random() < 0.3:
        weights = rng.uniform(0.1, 3, size=n)
    rank = int(rng.integers(1, n + 1)) if rng.random() < 0.4 else None
    given = KernelMap(kernel, max_rank=rank) if rank else kernel
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tol = float(rng.choice([0.3, 1e-3]))
        model = KernelLogistic(C, given, tol=tol).fit(X, labels, weights)
        second = KernelLogistic(C, kernel, tol=1e-6).fit(X, labels, weights)
    A, K = second.dual_coef_.T.astype(L), value(kernel, X, X)
    Y, weights = np.eye(q)[labels].astype(L), C * weights.astype(L)
    gap, b = _softmax_gap(K, Y, weights, A, second.intercept_.astype(L))
    values, norm = model.decision_function(Z), L(float(model.error_norms_[0]))
    difference = values - model.intercept_.astype(L) - value(kernel, Z, X) @ A
    lengths = np.sqrt(np.maximum(np.array([value(kernel, z[None], z[None])[0, 0] for z in Z]), 0))
    found.pairs += len(Z)
    found.useless += int((model.error_bound(Z)[:, 0] >= np.abs(values).max(axis=1)).sum())
    bound = lengths * (norm + np.sqrt(2 * max(gap, L(0))))
    wrong = _beyond(np.sqrt((difference**2).sum(axis=1)), bound, model)
    both = model.intercept_errors_ + second.intercept_errors_ + 1e-12 * (1 + np.abs(b).max())
    return wrong or _beyond(np.abs(model.intercept_ - b), both, model)


def _softmax_gap(K, Y, C, A, b):
    """P - D by definition at f = K A and the best b, and that b; the dual point is C (Y - P)."""
    F = K @ A

    def probabilities(b):
        E = F + b - (F + b).max(axis=1, keepdims=True)
        return np.exp(E) / np.exp(E).sum(axis=1, keepdims=True)

    for _ in range(40):  # until dual coefficients of every class sum to zero
        P = probabilities(b)
        slope = (C[:, None] * (P - Y)).sum(axis=0)
        CP = (C[:, None] * P).astype(float)
        curvature = np.diag(CP.sum(axis=0)) - P.astype(float).T @ CP
        b = b - np.linalg.lstsq(curvature, slope.astype(float), rcond=1e-13)[0]
    b, P = b - b.mean(), probabilities(b)
    top = (F + b).max(axis=1)
    losses = np.log(np.exp(F + b - top[:, None]).sum(axis=1)) + top - (Y * (F + b)).sum(axis=1)
    primal = np.sum(A * F) / 2 + C @ losses
    dual = C[:, None] * (Y - P)
    entropy = -C @ (P * np.log(np.maximum(P, L(1e-4000)))).sum(axis=1)
    unbalanced = np.abs(dual.sum(axis=0)).sum() * (1 + np.abs(F).max() + np.abs(b).max())
    return primal - (entropy - np.sum(dual * (K @ dual)) / 2) + unbalanced, b


def _gap(kind, K, y, C, c, b):
    """P - D by definition; a dual point in its box with sum zero, made of c."""
    f = K @ c
    margins = y * (f + b)
    if kind is KernelSVC:
        a = np.clip(y * c, 0, C)
        primal = c @ f / 2 + C @ np.maximum(0, 1 - margins)
    else:
        a = C * expit(-margins)
        primal = c @ f / 2 + C @ np.logaddexp(L(0), -margins)
    # The side with the larger sum is scaled down: feasible, to rounding in extended precision.
    sums = {sign: a[y == sign].sum() for sign in (1, -1)}
    for sign in (1, -1):
        if sums[sign] > sums[-sign]:
            a = np.where(y == sign, a * (sums[-sign] / sums[sign]), a)
    d = y * a
    if kind is KernelSVC:
        return primal - (a.sum() - d @ K @ d / 2)
    p = np.clip(a / C, L(1e-300), 1)
    rest = np.where(p < 1, (1 - p) * np.log1p(-np.minimum(p, 1 - L(1e-19))), 0)
    return primal - (-C @ (p * np.log(p) + rest) - d @ K @ d / 2)
