"""Errors of rows whose whole group is left out: the model is fitted again without each fold."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold

from ..engine import as_host
from ..rows import rows_at

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
