"""The stack: predictions of several models, weighed by non-negative least squares.

Each row is predicted by models that have not seen it (MATH.md section 13). With deviations from the
mean, weights that sum to less than one pull predictions towards it: where no model knows anything,
none of them counts.
"""

import numpy as np
from scipy.optimize import nnls

from ..engine import as_numpy, on_device_of
from ..expansion import Expansion
from ..kernels import Linear, Projected
from ..solve import RidgeSolution, solve_ridge
from .metric import column_scales
from .observations import Observations

# Weights below this are left out.
LEAST = 0.05
# Parts of the rows: the weights of the others predict each, so that errors are not flattered.
PARTS = 5


def weighed(
    T: np.ndarray, predicted: list[np.ndarray], weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(one weight per model, for each row the weights from other rows).

    The model is mean + sum_c w_c (f_c - mean).
    """
    mean = np.average(T, axis=0, weights=weights)
    P = np.stack(predicted) - mean
    part = np.random.default_rng(0).permutation(len(T)) % PARTS
    own = np.empty((len(T), len(P)))
    for i in range(PARTS):
        known = part != i
        own[~known] = _non_negative(T[known] - mean, P[:, known], weights[known])
    return _non_negative(T - mean, P, weights), own


def linear_part(rows: Observations) -> tuple[RidgeSolution, Expansion, np.ndarray]:
    """(solution, function, shares of the columns) of ridge on scaled columns.

    The function is an expansion on one point per target.
    """
    scales = column_scales(as_numpy(rows.X))
    kernel = Projected(Linear(), scales).bind(rows.X)
    solution = solve_ridge(rows.problem(kernel, float(max(1, len(scales)))))
    f = solution.expansion
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
