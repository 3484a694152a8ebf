"""A table as it is given: frames with names of their own, and rows in lists."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class ReadTable:
    """A table whose columns have been read: numbers, truths, dates, or texts.

    A TableEncoder accepts it in place of the table, so that no column is read twice; `fit` replaces
    texts by the numbers or dates that they stand for.

    formats : how a file wrote the texts of a column
    categories : columns that are declared to be such
    """

    names: list[str]
    columns: list[np.ndarray]
    formats: dict[str, Any] = field(default_factory=dict)
    categories: list[str] = field(default_factory=list)
    index: Any = None


def check_names(X: Any) -> None:
    """Refuse a frame with two columns of one name: nothing could say which of them is meant."""
    names = [str(name) for name in X.columns]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(
            f"the table has {names.count(repeated[0])} columns called {repeated[0]!r}: give each a "
            "name of its own, or leave the copies out (X.loc[:, ~X.columns.duplicated()])."
        )


def array_of_lists(X: Any) -> np.ndarray:
    """Rows given as lists, or by an object that NumPy can read; others are refused by type."""
    readable = hasattr(X, "__len__") or hasattr(X, "__array__")
    if isinstance(X, (str, bytes, dict)) or not readable:
        raise TypeError(f"X must be a table, a frame or a 2-D array, got {type(X).__name__}.")
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise ValueError(f"X is ragged: its rows differ in length ({error}).") from None
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead: X has shape {array.shape}. A "
            "table needs at least one row and one column."
        )
    return array
