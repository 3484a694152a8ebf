"""The last fit: ridge with an intercept on all rows, exactly where K fits the memory.

With A = K + alpha N (N = 1 / weights), u = A^-1 1 and P = A^-1 - u u' / (1'u), the coefficients are
a = P t and the leave-one-out error of row j is a_j / P_jj: exact, intercept included.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from ..engine import tiles
from ..engine.arrays import (
    as_numpy,
    cholesky,
    is_numpy,
    namespace,
    on_device_of,
    put,
    row_norms,
    solve_triangular,
)
from ..engine.memory import budget, matrix
from ..kernels import Kernel
from ..kernels.points import take
from .landmarks import factor
from .search import bracketed

# Rows at which leave-one-out errors are computed: enough to calibrate on.
JUDGED_ROWS = 1000
# Rows on which the penalty is chosen again, exactly.
ALPHA_ROWS = 2000
# Landmarks where K does not fit.
MOST_LANDMARKS = 4000
# Rows of coordinates computed at once.
PANEL_VALUES = 1 << 23


@dataclass
class LastFit:
    """f(z) = k(z, S) coef + intercept, and what leaving out some rows gave.

    exact : whether the coefficients solve the full system, one per row
    judged : rows whose leave-one-out errors are known
    residuals : these errors, t - f without the row: (judged, targets)
    """

    S: Any
    coef: Any
    intercept: Any
    alpha: float
    exact: bool
    judged: np.ndarray
    residuals: np.ndarray


def last_fit(
    kernel: Kernel,
    X: Any,
    T: Any,
    alpha: float,
    weights: Any = None,
    *,
    rng: np.random.Generator,
    memory_limit: int | str | None = None,
    choose_alpha: bool = True,
) -> LastFit:
    """Fit on all rows: exactly where the kernel matrix fits the memory, else through landmarks.

    This is the one place that decides how the last system is solved; a solver that needs no stored
    matrix belongs between its two cases.
    """
    n = X.shape[0]
    judged = np.sort(rng.permutation(n)[:JUDGED_ROWS])
    # K is factored in place; NumPy's tiles and LAPACK need little beside it.
    copies = 1.1 if is_numpy(X) else 2.2
    if matrix(n, copies) <= budget(memory_limit, X):
        if choose_alpha:
            alpha = exact_alpha(kernel, X, T, alpha, weights, rng)
        return _exact(kernel, X, T, alpha, weights, judged)
    return _through_landmarks(kernel, X, T, alpha, weights, judged, rng)


def exact_alpha(kernel: Kernel, X: Any, T: Any, alpha: float, weights: Any, rng: Any) -> float:
    """The penalty again, by exact leave-one-out: landmarks under-fit, and want a larger one."""
    some = np.sort(rng.permutation(X.shape[0])[:ALPHA_ROWS])
    X, T = take(X, some), take(T, some)
    weights = None if weights is None else take(weights, some)
    K = tiles.evaluate(kernel, X)
    least = 100 * float(namespace(K).finfo(K.dtype).eps) * K.shape[0]

    def error(x):
        shifted = max(alpha * math.exp(x), least)
        solved = _solved(K + 0, T, shifted, weights, np.arange(len(some)))
        if solved is None:
            return math.inf
        residuals = solved[2]
        w = 1.0 if weights is None else as_numpy(weights)[:, None]
        return float((w * residuals**2).sum())

    return max(alpha * math.exp(bracketed(error, math.log(4))), least)


def _exact(kernel, X, T, alpha, weights, judged):
    while True:
        solved = _solved(tiles.evaluate(kernel, X), T, alpha, weights, judged)
        if solved is not None:
            coef, intercept, residuals = solved
            return LastFit(X, coef, intercept, alpha, True, judged, residuals)
        alpha *= 10  # singular to rounding: the next penalty that is not


def _solved(K, T, alpha, weights, judged):
    """(a, intercept, leave-one-out errors of the judged rows), K overwritten; None if singular."""
    xp, n = namespace(K), K.shape[0]
    noise = xp.ones_like(K[:, 0]) if weights is None else 1 / weights
    diagonal = np.arange(n)
    put(K, diagonal, diagonal, xp.linalg.diagonal(K) + alpha * noise)
    C = _factored(K)
    if C is None:
        return None
    ones = xp.ones_like(T[:, :1])
    both = xp.concat([ones, T], axis=1)
    both = solve_triangular(C, solve_triangular(C, both), transpose=True)
    u, total = both[:, :1], float(xp.sum(both[:, 0]))
    intercept = (xp.sum(both[:, 1:], axis=0)) / total
    a = both[:, 1:] - u * intercept[None, :]
    inverse = _inverse_diagonal(C, judged)
    u_j, a_j = as_numpy(take(u, judged))[:, 0], as_numpy(take(a, judged))
    left = np.maximum(inverse - u_j**2 / total, 1e-3 * inverse)
    if not np.isfinite(a_j).all():
        return None
    return a, intercept, a_j / left[:, None]


def _factored(K):
    """The lower factor, over K where LAPACK can: a copy of K may not fit."""
    if not is_numpy(K):
        return cholesky(K)
    potrf = scipy.linalg.lapack.get_lapack_funcs("potrf", (K,))
    C, info = potrf(K.T, lower=True, clean=False, overwrite_a=True)
    return C if info == 0 else None


def _inverse_diagonal(C, rows):
    """(A^-1)_jj = |C^-1 e_j|^2 for some rows, a block of right-hand sides at a time."""
    xp, n = namespace(C), C.shape[0]
    found, block = np.empty(len(rows)), max(64, PANEL_VALUES // n)
    for a in range(0, len(rows), block):
        some = rows[a : a + block]
        E = np.zeros((n, len(some)), order="F")
        E[some, np.arange(len(some))] = 1.0
        found[a : a + block] = as_numpy(row_norms(solve_triangular(C, on_device_of(E, C)).T, xp))
    return found


def _through_landmarks(kernel, X, T, alpha, weights, judged, rng):
    """The same ridge restricted to functions of landmarks, from sums over panels of rows."""
    n = X.shape[0]
    model = LandmarkModel.fit(kernel, X, T, alpha, weights, rng, min(n, MOST_LANDMARKS))
    residuals, _ = model.left_out(take(X, judged), take(T, judged), _some(weights, judged))
    a = solve_triangular(model.C, model.w, transpose=True)
    intercept = model.offset - model.mean @ model.w
    return LastFit(model.S, a, intercept, alpha, False, judged, as_numpy(residuals))


@dataclass
class LandmarkModel:
    """Ridge on coordinates phi(z) = C^-1 k(S, z), fitted in one pass over panels of rows."""

    kernel: Kernel
    S: Any
    C: Any
    mean: Any
    offset: Any
    L: Any
    w: Any
    alpha: float
    n: float

    @classmethod
    def fit(cls, kernel, X, T, alpha, weights, rng, n_landmarks):
        xp, n = namespace(X), X.shape[0]
        S = take(X, np.sort(rng.permutation(n)[:n_landmarks]))
        C = factor(tiles.evaluate(kernel, S))
        second: Any = 0.0
        cross: Any = 0.0
        mean: Any = 0.0
        offset: Any = 0.0
        total = 0.0
        rows = max(256, PANEL_VALUES // n_landmarks)
        for a in range(0, n, rows):
            b = min(a + rows, n)
            x, t = X[a:b, :], T[a:b, :]
            F = solve_triangular(C, tiles.evaluate(kernel, x, S).T).T
            w = xp.ones_like(t[:, :1]) if weights is None else weights[a:b][:, None]
            second, cross = second + F.T @ (F * w), cross + F.T @ (t * w)
            mean, offset = mean + xp.sum(F * w, axis=0), offset + xp.sum(t * w, axis=0)
            total += float(xp.sum(w))
        mean, offset = mean / total, offset / total
        second = second - total * mean[:, None] * mean[None, :]
        cross = cross - total * mean[:, None] * offset[None, :]
        scale = total / n if weights is not None else 1.0  # weights of mean one, as in the search
        index = np.arange(S.shape[0])
        L = factor(put(second, index, index, xp.linalg.diagonal(second) + alpha * scale))
        w = solve_triangular(L, solve_triangular(L, cross), transpose=True)
        return cls(kernel, S, C, mean, offset, L, w, alpha * scale, total)

    def coordinates(self, Z):
        return solve_triangular(self.C, tiles.evaluate(self.kernel, Z, self.S).T).T

    def variance(self, Z):
        """Of a new observation: unseen part, what the noise leaves open, and the noise itself."""
        unseen, open_part = self._parts(Z)
        return unseen + self.alpha * (1 + open_part + 1 / self.n)

    def left_out(self, Z, T, weights=None):
        """(errors, variances) of training rows, each predicted without itself."""
        xp = namespace(Z)
        w = xp.ones_like(T[:, 0]) if weights is None else weights
        unseen, open_part = self._parts(Z)
        left = 1 - w * (open_part + 1 / self.n)
        left = xp.where(left > 1e-6, left, xp.full_like(left, 1e-6))
        fitted = (self.coordinates(Z) - self.mean) @ self.w + self.offset
        return (T - fitted) / left[:, None], unseen + self.alpha / left

    def _parts(self, Z):
        xp = namespace(Z)
        F = self.coordinates(Z)
        unseen = self.kernel.diagonal(Z) - row_norms(F, xp)
        open_part = row_norms(solve_triangular(self.L, (F - self.mean).T).T, xp)
        return xp.where(unseen > 0, unseen, xp.zeros_like(unseen)), open_part


def _some(weights, rows):
    return None if weights is None else take(weights, rows)
