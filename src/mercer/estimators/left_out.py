"""Rows left out: 95 % intervals of the error of a new sample.

The sample has half as many rows as were left out: people who hold rows back to test a model hold
back the smaller part. Its error varies twice as much as the printed one, and both are met.
"""

import numpy as np
from scipy.stats import norm, t

# Folds of rows, or of groups of rows.
FOLDS = 5
_LEVEL = 0.95
# Variance of the difference of both errors, in units of that of the printed one.
_BOTH = 1 + 2
# Rows for one degree of freedom: squared errors have long tails, and a few of them say little of
# their own variance.
_ROWS_PER_DEGREE = 3


def _effective(weights):
    """Rows of equal weight that would say as much."""
    weights = weights / weights.max()  # squares of tiny weights would be zero
    return float(weights.sum() ** 2 / (weights**2).sum())


def rmse_interval(squares: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(low, high) of the root of a mean of squared errors, one column per target.

    On a logarithmic scale, since squared errors are skewed: their mean is more often far above than
    far below what is expected.
    """
    n = _effective(weights)
    z = float(t.ppf(0.5 + _LEVEL / 2, max((n - 1) / _ROWS_PER_DEGREE, 1)))
    mean = np.average(squares, axis=0, weights=weights)
    spread = np.average((squares - mean) ** 2, axis=0, weights=weights) / max(n - 1, 1)
    share = np.sqrt(_BOTH * spread) / np.where(mean > 0, mean, 1.0)
    return np.sqrt(mean) * np.exp(0.5 * z * np.stack([-share, share]))


def share_interval(wrong: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(low, high) of the share of rows that are wrong: Anscombe's arcsine of a count's root."""
    n, z = _effective(weights), float(norm.ppf(0.5 + _LEVEL / 2))
    share = np.average(wrong, weights=weights)
    angle = np.arcsin(np.sqrt((share * n + 3 / 8) / (n + 3 / 4)))
    half = z * np.sqrt(_BOTH) / np.sqrt(4 * n + 2)
    ends = np.sin(np.clip([angle - half, angle + half], 0.0, np.pi / 2)) ** 2
    return np.clip((ends * (n + 3 / 4) - 3 / 8) / n, 0.0, 1.0)
