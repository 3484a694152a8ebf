"""A witness function's evidence: the rows it marks, and the columns it needs."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import RKHSFunction
from ..engine import as_numpy
from ..rows import Training, rows_at, stacked
from .samples import Samples

# Rows at which a witness is evaluated to find the columns, in all.
MOST_EVALUATIONS = 100_000
FOLDS = 2
SHUFFLES = 2


def extreme_rows(
    function: Any, sample: Training, samples: Samples, k: int, *, largest: bool
) -> tuple[Any, np.ndarray]:
    """The k rows with the largest (or smallest) values of a function, most extreme first."""
    kept, values = None, np.empty(0)
    for chunk in sample.rows.blocks(8192):
        new = as_numpy(function(samples.points(chunk))).astype(float)
        best = np.argsort(-new if largest else new, kind="stable")[:k]
        rows = rows_at(chunk, best)
        kept = rows if kept is None else stacked(kept, rows)
        values = np.concatenate([values, new[best]])
        order = np.argsort(-values if largest else values, kind="stable")[:k]
        kept, values = rows_at(kept, order), values[order]
    return kept, values


def column_shares(
    witness_without: Callable[[np.ndarray, np.ndarray], RKHSFunction],
    x: np.ndarray,
    y: np.ndarray,
    groups: dict[str, list[int]],
    rng: np.random.Generator,
) -> dict[str, float]:
    """How much of the difference goes away when a column is exchanged, largest first, sum 1.

    The gap between the samples is mean f(x) - mean f(y) for the witness f, on rows that f was not
    made from (`witness_without(x, y)`). A column's measure is how much of the gap is lost when its
    values are shuffled among the rows of both samples. A column that does not matter keeps the
    gap. (Gradients of f would count it: f also fades along columns that are alike in both samples.)
    """
    most = max(40, MOST_EVALUATIONS // (2 * FOLDS * len(groups)))
    x, y = (_some(rows, most, rng) for rows in (x, y))
    lost = dict.fromkeys(groups, 0.0)
    for i in range(FOLDS):
        fold_x, fold_y = x[i::FOLDS], y[i::FOLDS]
        f = witness_without(fold_x, fold_y)
        both, n_x = np.concatenate([fold_x, fold_y]), len(fold_x)
        gap = _gap(f, both, n_x)
        for name, js in groups.items():
            for _ in range(SHUFFLES):
                changed = both.copy()
                changed[:, js] = both[rng.permutation(len(both))][:, js]
                lost[name] += gap - _gap(f, changed, n_x)
    return shares_of(lost)


def shares_of(lost: dict[str, float]) -> dict[str, float]:
    """Losses by exchanging each column, as shares of the sum, largest first."""
    positive = {name: max(0.0, value) for name, value in lost.items()}
    total = sum(positive.values()) or 1.0
    shares = {name: value / total for name, value in positive.items()}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _gap(f, rows, n_x):
    values = as_numpy(f(rows))
    return float(values[:n_x].mean() - values[n_x:].mean())


def _some(rows, most, rng):
    return rows[rng.permutation(len(rows))[:most]]
