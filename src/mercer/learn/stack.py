"""The stack: predictions of several models, weighed by non-negative least squares.

Each row is predicted by models that have not seen it (MATH.md section 13). With deviations from the
mean, weights that sum to less than one pull predictions towards it: where no model knows anything,
none of them counts.
"""

import numpy as np
from scipy.optimize import nnls

from ..engine.arrays import as_numpy, on_device_of
from ..expansion import Expansion
from ..kernels import Linear, Projected
from ..solve import RidgeSolution, expansion_of, solve_ridge
from .metric import column_scales
from .observations import Observations

# Weights below this are left out.
LEAST = 0.05
# Parts of the rows: the weights of the others predict each, so that errors are not flattered.
PARTS = 5
# A stack must lower the mean loss of the first model by so many standard errors.
STANDARD_ERRORS = 1.0


def weighed(
    T: np.ndarray, predicted: list[np.ndarray], weights: np.ndarray, *, classes: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """(one weight per model, predictions of each row with the weights of other rows).

    The model is mean + sum_c w_c (f_c - mean). The first one is taken alone unless the others lower
    its squared error by more than chance would have it (and, for classes, are not wrong more
    often).
    """
    mean = np.average(T, axis=0, weights=weights)
    w, given = _non_negative(T - mean, [P - mean for P in predicted], weights), predicted[0]
    alone = np.eye(len(predicted))[0]
    if not w[1:].any():
        return alone, given
    part = np.random.default_rng(0).permutation(len(T)) % PARTS
    stacked = np.zeros(T.shape)
    for i in range(PARTS):
        known = part != i
        own = _non_negative(T[known] - mean, [P[known] - mean for P in predicted], weights[known])
        stacked[~known] = mean + sum(c * (P[~known] - mean) for c, P in zip(own, predicted))
    losses, of_stack = (((T - P) ** 2).sum(axis=1) for P in (given, stacked))
    gain = weights * (losses - of_stack)
    better = gain.mean() > STANDARD_ERRORS * gain.std() / len(gain) ** 0.5
    if classes:
        wrong, of_stack = (P.argmax(axis=1) != T.argmax(axis=1) for P in (given, stacked))
        better = better and weights @ of_stack <= weights @ wrong
    return (w, stacked) if better else (alone, given)


def linear_part(rows: Observations) -> tuple[RidgeSolution, Expansion, np.ndarray]:
    """(solution, function, shares of the columns) of ridge on scaled columns.

    The function is an expansion on one point per target.
    """
    scales = column_scales(as_numpy(rows.X))
    kernel = Projected(Linear(), scales).bind(rows.X)
    solution = solve_ridge(rows.problem(kernel, float(max(1, len(scales)))))
    f = expansion_of(solution.prediction)
    slope = scales[:, None] * (as_numpy(f.S).T @ as_numpy(f.W))
    S = on_device_of(np.ascontiguousarray(slope.T), f.S)
    shares = (scales[:, None] * slope) ** 2
    one = on_device_of(np.eye(slope.shape[1]), f.W)
    return solution, Expansion(kernel, S, one, f.b), shares.sum(axis=1)


def _non_negative(T, predicted, weights):
    root = np.sqrt(weights)[:, None]
    A = np.stack([(root * P).ravel() for P in predicted], axis=1)
    w = nnls(A, (root * T).ravel())[0]
    kept = w >= LEAST
    if kept.all() or not kept.any():
        return w * kept
    w[kept] = nnls(A[:, kept], (root * T).ravel())[0]
    return np.where(kept, w, 0.0)
