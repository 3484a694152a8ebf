"""Errors of rows whose whole group is left out: the model is fitted again without each fold."""

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import numpy as np
from sklearn.base import clone
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
    model: Any,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray | None,
    groups: np.ndarray,
    ask: Callable[[Any, Any], Any],
    checkpoint: MutableMapping[str, Any] | None = None,
) -> Iterator[tuple[np.ndarray, Any]]:
    """(numbers of rows, what `ask` says of a model that has not seen them) for each fold of groups.

    One model is held at a time, beside the one that is judged.
    """
    n_folds = min(FOLDS, len(np.unique(groups)))
    for known, new in GroupKFold(n_folds).split(y, groups=groups):
        again = clone(model).set_params(**_plain(model))
        own = None if weights is None else weights[known]
        again.fit(rows_at(X, known), y[known], own, checkpoint=checkpoint)
        found = ask(again, rows_at(X, new))
        del again  # the next fit needs its memory
        yield new, found


def _plain(model):
    """Weights of rows hold those of their classes already."""
    names = model.get_params(deep=False)
    return {"verbose": False} | ({"class_weight": None} if "class_weight" in names else {})


def told(groups: np.ndarray) -> str:
    """How rows were left out, for `validation_`."""
    count = len(np.unique(groups))
    return f"{min(FOLDS, count)} folds of {count} groups"
