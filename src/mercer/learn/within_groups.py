"""The part of a target that a smooth function of some columns explains within groups of rows.

Differences between groups stay in what is left: coordinates and targets are centred within each
group before the ridge regression, as fixed effects are taken out of a linear model.
"""

import numpy as np

from ..engine import tiles
from ..kernels import Matern
from ..solve import CoordinateRidge, LeaveOneOut
from .metric import column_scales, with_unit_median
from .room import stage_landmarks

# Rows of the regression, and landmarks among them.
ROWS, LANDMARKS = 4000, 300
# Lengths to choose from, in units of the median distance.
_LENGTHS = (1.0, 2.0, 4.0)
# Penalties, relative to k(x, x): a column that hardly varies within groups explains nothing there.
_ALPHAS = 10.0 ** np.arange(-4, 3)


def unexplained_within(X: np.ndarray, T: np.ndarray, group: np.ndarray, seed: int) -> np.ndarray:
    """T less a smooth function of X, fitted to the differences within groups."""
    rng = np.random.default_rng(seed)
    X = X * column_scales(X)
    if not X.any():
        return T
    X = with_unit_median(np.ones(X.shape[1]), X, rng)[0] * X
    some = rng.permutation(len(X))[:ROWS]
    S = X[some[: stage_landmarks(len(some), LANDMARKS)]]
    own = np.unique(group[some], return_inverse=True)[1]
    best = None
    for length in _LENGTHS:
        kernel = Matern(2.5, length)
        K = _centred(tiles.evaluate(kernel, X[some], S), own)
        given = (K, tiles.evaluate(kernel, S), _centred(T[some], own), LeaveOneOut(_ALPHAS))
        ridge, a, _ = CoordinateRidge.on_landmarks(*given)
        error = ridge.choice.errors.min()
        if best is None or error < best[0]:
            best = (error, kernel, a)
    assert best is not None
    unexplained: np.ndarray = T - tiles.multiply(best[1], X, S, best[2])
    return unexplained


def _centred(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Values less the mean of their group."""
    counts = np.bincount(group)[:, None]
    sums = np.zeros((len(counts), values.shape[1]))
    np.add.at(sums, group, values)
    centred: np.ndarray = values - (sums / counts)[group]
    return centred
