"""Rows left out: 95 % intervals of the error of a new sample.

The sample has half as many rows as were left out: people who hold rows back to test a model hold
back the smaller part. Its error varies twice as much as the printed one, and both are met.
"""

import numpy as np
from scipy.stats import norm, t

# Folds of rows, or of groups of rows.
FOLDS = 5
_LEVEL = 0.95
# Predictions whose deviation is a smaller share of that of the errors are alike.
LEAST_SPREAD = 0.1
# Variance of the difference of both errors, in units of that of the printed one.
_BOTH = 1 + 2
# Rows for one degree of freedom: squared errors have long tails, and a few of them say little of
# their own variance.
_ROWS_PER_DEGREE = 3


def weighted_quantile(values: np.ndarray, share: float, weights: np.ndarray) -> np.ndarray:
    """Weighted quantiles of each column: with all below it, the value has this share of weight."""
    order = np.argsort(values, axis=0)
    reached = np.cumsum(weights[order], axis=0) / weights.sum()
    first = np.argmax(reached >= share - 1e-12, axis=0)
    columns = np.arange(values.shape[1])
    return values[order[first, columns], columns]


def beyond_chance(gains: np.ndarray, weights: np.ndarray, n: float, standard_errors: float) -> bool:
    """Tell whether the mean of some gains of n observations is above zero beyond its noise."""
    mean = np.average(gains, weights=weights)
    noise = np.sqrt(np.average((gains - mean) ** 2, weights=weights) / n)
    return bool(mean > standard_errors * noise)


def rmse_interval(squares: np.ndarray, weights: np.ndarray, n: float) -> np.ndarray:
    """(low, high) of the root of a mean of squared errors of n observations, per target.

    On a logarithmic scale, since squared errors are skewed: their mean is more often far above than
    far below what is expected.
    """
    z = float(t.ppf(0.5 + _LEVEL / 2, max((n - 1) / _ROWS_PER_DEGREE, 1)))
    mean = np.average(squares, axis=0, weights=weights)
    spread = np.average((squares - mean) ** 2, axis=0, weights=weights) / max(n - 1, 1)
    share = np.sqrt(_BOTH * spread) / np.where(mean > 0, mean, 1.0)
    return np.sqrt(mean) * np.exp(0.5 * z * np.stack([-share, share]))


def share_interval(wrong: np.ndarray, weights: np.ndarray, n: float) -> np.ndarray:
    """(low, high) of the share of wrong rows among n: Anscombe's arcsine of a count's root."""
    z = float(norm.ppf(0.5 + _LEVEL / 2))
    share = np.average(wrong, weights=weights)
    angle = np.arcsin(np.sqrt((share * n + 3 / 8) / (n + 3 / 4)))
    half = z * np.sqrt(_BOTH) / np.sqrt(4 * n + 2)
    ends = np.sin(np.clip([angle - half, angle + half], 0.0, np.pi / 2)) ** 2
    return np.clip((ends * (n + 3 / 4) - 3 / 8) / n, 0.0, 1.0)
