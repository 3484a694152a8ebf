"""The stack: predictions of several models, weighed by non-negative least squares.

Each row is predicted by models that have not seen it (MATH.md section 13). With deviations from the
mean, weights that sum to less than one pull predictions towards it: where no model knows anything,
none of them counts. They never sum to more than one: a model that seems too cautious on few rows is
so by chance, as a rule.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from ..engine import (
    TravelsAsNumPy,
    as_numpy,
    coordinates_bytes,
    current,
    evenly,
    namespace,
    on_device_of,
)
from ..expansion import Expansion
from ..kernels import Linear
from ..learn import Observations, column_scales
from ..solve import CoordinateRidge, LeaveOneOut
from .left_out import FOLDS

# Weights below this are left out.
_LEAST = 0.05
# Parts of the rows: the weights of the others predict each, so that errors are not flattered.
_PARTS = 5
# Models whose squared error is so many times that of the kernel get no weight.
_HOPELESS = 2.0
# Copies of its rows that the linear function holds, with the errors of so many penalties.
_COPIES, _PENALTIES = 6, 10
# Rows that it has in any case.
_FEWEST = 10
# C of logistic regression, from which on it grows while rows left out are predicted better; rows of
# it, at most, and steps; and the score of a class that it has not seen.
SMALLEST_C, LARGEST_C, LOGISTIC_ROWS, STEPS, UNSEEN = 0.01, 1000.0, 5000, 100, -1e3


def weighed(
    T: np.ndarray, predicted: list[np.ndarray], weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(one weight per model, for each row the weights from other rows).

    The model is mean + sum_c w_c (f_c - mean).
    """
    mean = np.average(T, axis=0, weights=weights)
    P = np.stack(predicted) - mean
    part = np.random.default_rng(0).permutation(len(T)) % _PARTS
    own = np.empty((len(T), len(P)))
    for i in range(_PARTS):
        known = part != i
        own[~known] = _non_negative(T[known] - mean, P[:, known], weights[known])
    return _non_negative(T - mean, P, weights), own


def linear_part(
    rows: Observations,
) -> tuple[np.ndarray, np.ndarray, Expansion, np.ndarray]:
    """Ridge on scaled columns: (errors of all rows, each left out, 1 - leverage, the function,
    shares of the columns).

    The function is an expansion on one point per target. It is learned from as many rows as copies
    of them fit the memory.
    """
    X, n, xp = rows.X, rows.n, namespace(rows.X)
    needed = coordinates_bytes(1, X.shape[1] + _PENALTIES, _COPIES)
    some = evenly(n, max(_FEWEST, int(current().limit(X) // needed)))
    part, scales = rows.some(some) if len(some) < n else rows, column_scales(as_numpy(X))
    F, turn = part.X * on_device_of(scales, X)[None, :], None
    if F.shape[1] > F.shape[0]:  # as many coordinates as rows have the same inner products
        turn, R = xp.linalg.qr(F.T)
        F = R.T
    rule = LeaveOneOut(share=part.share, spread=part.spread)
    found = CoordinateRidge.of(F, part.T, rule, part.weights)
    coef = as_numpy(found.coef if turn is None else turn @ found.coef)
    S = on_device_of(np.ascontiguousarray((scales[:, None] * coef).T), X)
    function = Expansion(Linear(), S, on_device_of(np.eye(coef.shape[1]), X), found.b)
    left = np.ones(n)
    left[some] = found.left_out(part.share).left
    residuals = as_numpy(on_device_of(rows.T, X) - function(X)) / left[:, None]
    return residuals, left, function, (coef**2).sum(axis=1)


@dataclass(frozen=True, eq=False)
class ClassShares(TravelsAsNumPy):
    """z -> weight softmax(z @ coef + b), one column per class; evaluated by NumPy alone.

    importances : of the columns, not scaled
    """

    coef: np.ndarray
    b: np.ndarray
    importances: np.ndarray
    weight: float = 1.0

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return self.weight * softmax(X @ self.coef + self.b, axis=1)

    def __mul__(self, weight: float) -> "ClassShares":
        return replace(self, weight=weight * self.weight)


def _logistic(X: np.ndarray, T: np.ndarray, weights: np.ndarray | None, C: float) -> ClassShares:
    """Logistic regression on scaled columns; a row of T has the shares of the classes there."""
    some = np.random.default_rng(0).permutation(len(X))[:LOGISTIC_ROWS]
    scales, centre = column_scales(X), X.mean(axis=0)
    row, code = np.nonzero(T[some] > 0)
    counts = T[some][row, code] * (1.0 if weights is None else weights[some][row])
    coef, b = np.zeros((X.shape[1], T.shape[1])), np.full(T.shape[1], UNSEEN)
    seen = np.unique(code)
    if len(seen) == 1:
        b[seen] = 0.0
    else:
        model = LogisticRegression(C=C, max_iter=STEPS, tol=1e-3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it is judged as it is
            model.fit(((X[some] - centre) * scales)[row], code, counts)
        two = len(seen) == 2  # the function of the second class, with the opposite for the first
        coef[:, seen] = np.vstack([-model.coef_, model.coef_]).T / 2 if two else model.coef_.T
        b[seen] = np.r_[-model.intercept_, model.intercept_] / 2 if two else model.intercept_
    importances = (coef**2).sum(axis=1)
    coef = scales[:, None] * coef
    return ClassShares(coef, b - centre @ coef, importances)


def logistic_part(
    rows: Observations, unseen_X: np.ndarray, chosen: np.ndarray, known: np.ndarray
) -> tuple[Callable[..., ClassShares], np.ndarray] | None:
    """(how it is learned, predictions of some rows without them); None where it is hopeless.

    Arguments as in `out_of_fold`; these predictions also choose the penalty.
    """
    T, C, best = as_numpy(rows.T), SMALLEST_C, None
    while C <= LARGEST_C:
        learn = partial(_logistic, C=C)
        found = out_of_fold(rows, unseen_X, chosen, known, learn)
        error = np.inf if found is None else float(((found - T[chosen]) ** 2).sum())
        if best is not None and error > best[0]:
            break
        if found is not None:
            best = error, learn, found
        C *= 10
    return None if best is None else best[1:]


def with_importances(learn: Callable[..., Any]) -> Callable[[Observations], tuple[Any, np.ndarray]]:
    """From rows to a function with importances, and these."""

    def learned(rows):
        part = learn(rows.X, as_numpy(rows.T), rows.weights)
        return part, part.importances

    return learned


def out_of_fold(
    rows: Observations,
    unseen_X: np.ndarray,
    chosen: np.ndarray,
    known: np.ndarray,
    learn: Callable[..., Any],
) -> np.ndarray | None:
    """Predictions of some rows by functions that have not seen them; None where they are hopeless.

    Functions are learned from effects that all rows of a category share. Those without a row's own
    target are for the rows that are asked alone: among the rows of a category they tell the target.

    unseen_X : the rows with effects of categories that do not know their own targets
    known : mean squared errors of these rows by the learned kernel
    learn : from rows, targets and weights to a function
    """
    n, T, X = rows.n, as_numpy(rows.T), rows.X
    weights = None if rows.weights is None else as_numpy(rows.weights)
    folds = 1 if 4 * len(chosen) <= n else FOLDS
    part = np.random.default_rng(0).permutation(len(chosen)) % folds
    found = np.zeros((len(chosen), T.shape[1]))
    for i in range(folds):
        new = chosen[part == i]
        others = np.setdiff1d(np.arange(n), new)
        own = None if weights is None else weights[others]
        found[part == i] = learn(X[others], T[others], own)(unseen_X[new])
        error = ((found[part == i] - T[new]) ** 2).sum(axis=1).mean()
        if i == 0 and error > _HOPELESS * known[part == 0].mean():
            return None
    return found


def _non_negative(T, predicted, weights):
    """Weights of at least _LEAST, or zero, whose sum is at most one."""
    root = np.sqrt(weights)[:, None]
    A = (root * predicted).reshape(len(predicted), -1).T
    w = _on_simplex(A, (root * T).ravel())
    kept = w >= _LEAST
    if not kept.all() and kept.any():
        w[kept] = _on_simplex(A[:, kept], (root * T).ravel())
    return np.where(kept, w, 0.0)


def _on_simplex(A, t):
    """min |A w - t| over w >= 0 with a sum of at most one.

    A w is a point of the hull of 0 and the columns of A: the nearest to t is that of one of its
    faces, which are few. (SciPy's nnls has no such sum, and before 1.15 it may not converge.)
    """
    R: Any = np.linalg.qr(np.column_stack([np.zeros(len(t)), A, t]), mode="r")
    corners = R[:, :-1] - R[:, -1:]
    least, best = math.inf, np.zeros(corners.shape[1])
    for size in range(1, len(best) + 1):
        for first, *others in map(list, combinations(range(len(best)), size)):
            edges = corners[:, others] - corners[:, [first]]
            w = np.zeros(len(best))
            w[others] = np.linalg.lstsq(edges, -corners[:, first])[0] if others else 0.0
            w[first] = 1.0 - w.sum()
            distance = float(np.linalg.norm(corners @ w))
            if (w >= 0).all() and distance < least:
                least, best = distance, w
    return best[1:]
