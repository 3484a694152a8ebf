"""The penalty by leave-one-out: for all candidates from one path, or from factor to factor."""

import math
from typing import Any

import numpy as np

from ..engine import (
    as_numpy,
    current,
    evenly,
    is_numpy,
    line_search,
    matrix_bytes,
    namespace,
    on_device_of,
)
from .dual import inverse_diagonal, without_mean
from .problem import SAMPLE, Choice, LeaveOneOut, RidgeProblem
from .regularized import STEP, factor_shifted, solve_factored
from .ridge_path import RidgePath, best_alpha
from .solution import left_out_of

# Rows whose kernel matrix is decomposed, or factored again and again, to choose alpha where all
# are too many; and rows whose errors decide a search.
ROWS_FOR_ALPHA, ROWS_FOR_SEARCH, JUDGED_ROWS = 3000, 4000, 1000
# Square arrays that a decomposition holds at once, its workspace included.
MATRICES = 5


def choose(path: RidgePath, rule: LeaveOneOut) -> Choice:
    """The candidate with the smallest leave-one-out error."""
    if rule.candidates is None:
        alpha, error = path.best()
        return Choice(alpha, np.array([alpha]), np.array([error]), path.n)
    unit = (path.scale or 1.0) if rule.relative else 1.0
    alphas = unit * np.asarray(rule.candidates, dtype=float)
    errors = path.errors(alphas, rule.importance)
    best = best_alpha(alphas, errors)
    return Choice(float(alphas[best]), alphas, errors, path.n)


def choose_on_rows(problem: RidgeProblem) -> Choice:
    """On as many rows as their kernel matrix is quickly decomposed, spread over all."""
    kept = problem.kept
    small = problem.some(kept[evenly(len(kept), _most_rows(problem.alpha))])
    K = small.matrix
    weights = None if small.weights is None else on_device_of(small.weights, K)
    return choose_on_matrix(K, on_device_of(small.T, K), weights, small)[0]


def choose_on_matrix(
    K: Any, T: Any, weights: Any, problem: RidgeProblem
) -> tuple[Choice, RidgePath | None]:
    """(the choice, the path that made it) for the rows of a kernel matrix, all with a weight."""
    rule = problem.alpha
    if _is_searched(rule):
        return search(K, T, weights, rule, problem.intercept), None
    known = {"share": rule.share, "spread": rule.spread}
    path = RidgePath.of_matrix(K, T, weights, intercept=problem.intercept, **known)
    return choose(path, rule), path


def is_chosen_before(problem: RidgeProblem) -> bool:
    """Whether the penalty is chosen on some rows, before the kernel matrix of all is stored.

    A search holds the matrix, a factor, and columns of its inverse.
    """
    many = problem.n > ROWS_FOR_SEARCH or matrix_bytes(problem.n, 3) > problem.limit
    return _is_searched(problem.alpha) and many


def _is_searched(rule):
    return isinstance(rule, LeaveOneOut) and rule.near is not None and rule.candidates is None


def _most_rows(rule):
    rows = ROWS_FOR_SEARCH if _is_searched(rule) else ROWS_FOR_ALPHA
    return min(rows, max(SAMPLE, math.isqrt(current().limit() // MATRICES // 8)))


def search(K: Any, T: Any, weights: Any, rule: LeaveOneOut, intercept: bool) -> Choice:
    """By exact errors, from factor to factor, beginning at `near`.

    No penalty is tried below the rounding of K, eps times its trace.
    """
    xp, n = namespace(K), K.shape[0]
    start = rule.near or 1.0
    least = float(xp.finfo(K.dtype).eps) * float(xp.sum(xp.linalg.diagonal(K)))
    judged = evenly(n, JUDGED_ROWS)

    def part(values: Any, default: Any):
        return np.full(len(judged), default) if values is None else as_numpy(values)[judged]

    w, spread = part(weights, 1.0), part(rule.spread, 0.0)
    share = None if rule.share is None else part(rule.share, 1.0)
    tried: dict[float, np.ndarray] = {}

    def error(x: Any):
        alpha = max(start * math.exp(x), least)
        if alpha not in tried:
            tried[alpha] = np.full(len(judged), math.inf)
            found = _judged(K, T, weights, alpha, intercept, judged, share)
            if found is not None and np.isfinite(found.residuals).all():
                losses = w * (found.residuals**2).sum(axis=1) + spread / found.left**2
                tried[alpha] = losses / w.mean()
        return float(tried[alpha].mean())

    best = max(start * math.exp(line_search(error, math.log(4))), least)
    while not np.isfinite(tried[best]).all():  # singular to rounding: the next that is not
        best *= STEP
        error(math.log(best / start))
        if best not in tried:
            best = max(tried)
    alphas = np.array(sorted(tried))
    errors = np.array([tried[a].mean() for a in alphas])
    return Choice(best, alphas, errors, n, tried[best])


def _judged(K, T, weights, alpha, intercept, rows, share):
    """LeftOut of some rows for one penalty; None where K + alpha N is singular to rounding."""
    xp, noise = namespace(K), None if weights is None else 1 / weights
    copied = is_numpy(K)
    C = factor_shifted(K + 0 if copied else K, alpha, noise, in_place=copied)
    if C is None:
        return None
    X, inverse = solve_factored(C, T), inverse_diagonal(C, rows)
    if intercept:
        u = solve_factored(C, xp.ones_like(T[:, :1]))
        X = X - u * (xp.sum(X, axis=0) / xp.sum(u))[None, :]
        inverse = without_mean(inverse, as_numpy(u)[rows, 0], float(xp.sum(u)))
    own = (xp.ones_like(X[:, 0]) if noise is None else noise) * alpha
    own = as_numpy(own)[rows]
    return left_out_of(own[:, None] * as_numpy(X)[rows], (own * inverse)[:, None], share)
