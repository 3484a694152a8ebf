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
    """(one weight per model, for each row the weights from other rows).

    The model is mean + sum_c w_c (f_c - mean). The first one is taken alone unless the others lower
    its squared error by more than chance would have it (and, for classes, are not wrong more
    often).
    """
    mean = np.average(T, axis=0, weights=weights)
    P = np.stack(predicted) - mean
    w = _non_negative(T - mean, P, weights)
    alone = np.eye(len(P))[0]
    part = np.random.default_rng(0).permutation(len(T)) % PARTS
    own = np.empty((len(T), len(P)))
    for i in range(PARTS if w[1:].any() else 0):
        known = part != i
        own[~known] = _non_negative(T[known] - mean, P[:, known], weights[known])
    stacked = mean + np.einsum("nc,cnt->nt", own, P) if w[1:].any() else predicted[0]
    losses, of_stack = (((T - values) ** 2).sum(axis=1) for values in (predicted[0], stacked))
    gain = weights * (losses - of_stack)
    better = gain.mean() > STANDARD_ERRORS * gain.std() / len(gain) ** 0.5
    if classes:
        wrong, of_stack = (
            values.argmax(axis=1) != T.argmax(axis=1) for values in (predicted[0], stacked)
        )
        better = better and weights @ of_stack <= weights @ wrong
    return (w, own) if better else (alone, np.tile(alone, (len(T), 1)))


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
    A = (root * predicted).reshape(len(predicted), -1).T
    w = nnls(A, (root * T).ravel())[0]
    kept = w >= LEAST
    if kept.all() or not kept.any():
        return w * kept
    w[kept] = nnls(A[:, kept], (root * T).ravel())[0]
    return np.where(kept, w, 0.0)
