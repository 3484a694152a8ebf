"""Rows left out: 95 % intervals of the error of a new sample, and fits without groups of rows.

The sample has half as many rows as were left out: people who hold rows back to test a model hold
back the smaller part. Its error varies twice as much as the printed one, and both are met.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.stats import norm, t
from sklearn.model_selection import GroupKFold

from ..engine import as_host
from ..rows import rows_at

LEVEL = 0.95
# Variance of the difference of both errors, in units of that of the printed one.
BOTH = 1 + 2
# Rows for one degree of freedom: squared errors have long tails, and a few of them say little of
# their own variance.
ROWS_PER_DEGREE = 3


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
    z = float(t.ppf(0.5 + LEVEL / 2, max((n - 1) / ROWS_PER_DEGREE, 1)))
    mean = np.average(squares, axis=0, weights=weights)
    spread = np.average((squares - mean) ** 2, axis=0, weights=weights) / max(n - 1, 1)
    share = np.sqrt(BOTH * spread) / np.where(mean > 0, mean, 1.0)
    return np.sqrt(mean) * np.exp(0.5 * z * np.stack([-share, share]))


def share_interval(wrong: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(low, high) of the share of rows that are wrong: Anscombe's arcsine of a count's root."""
    n, z = _effective(weights), float(norm.ppf(0.5 + LEVEL / 2))
    share = np.average(wrong, weights=weights)
    angle = np.arcsin(np.sqrt((share * n + 3 / 8) / (n + 3 / 4)))
    half = z * np.sqrt(BOTH) / np.sqrt(4 * n + 2)
    ends = np.sin(np.clip([angle - half, angle + half], 0.0, np.pi / 2)) ** 2
    return np.clip((ends * (n + 3 / 4) - 3 / 8) / n, 0.0, 1.0)


FOLDS = 5


def check_groups(groups: Any, n: int) -> np.ndarray:
    """One group per row, at least two of them; a gap is a group of its own."""
    groups = np.asarray(as_host(groups))
    if groups.shape != (n,):
        raise ValueError(
            f"groups must have one value for each of the {n} rows, got shape {groups.shape}."
        )
    codes = np.unique(groups.astype(str), return_inverse=True)[1]
    if codes.max(initial=0) == 0:
        raise ValueError("groups must have at least two different values: all rows have the same.")
    return codes


def refits(
    fitted: Callable[[Any, np.ndarray, np.ndarray | None], Any],
    X: Any,
    y: np.ndarray,
    weights: np.ndarray | None,
    groups: np.ndarray,
    ask: Callable[[Any, Any], Any],
) -> Iterator[tuple[np.ndarray, Any]]:
    """(numbers of rows, what `ask` says of a model that has not seen them) for each fold of groups.

    `fitted` makes a model of rows, targets and weights; one is held at a time.
    """
    n_folds = min(FOLDS, len(np.unique(groups)))
    for known, new in GroupKFold(n_folds).split(y, groups=groups):
        own = None if weights is None else weights[known]
        again = fitted(rows_at(X, known), y[known], own)
        found = ask(again, rows_at(X, new))
        del again  # the next fit needs its memory
        yield new, found


def told(groups: np.ndarray) -> str:
    """How rows were left out, for `validation_`."""
    count = len(np.unique(groups))
    return f"{min(FOLDS, count)} folds of {count} groups"
