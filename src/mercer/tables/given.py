"""A table as it is given: frames with names of their own, and rows in lists."""

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from ..engine import as_host
from ..kernels import points as pts
from .columns import column_values, declared_categories, frame_columns

if TYPE_CHECKING:
    from .encoder import TableEncoder


class BadInput(ValueError):
    """Something about the input that the person can change: the command shows it as one line."""


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


def read_columns(encoder: "TableEncoder", X: Any, reset: bool = False) -> ReadTable:
    """The columns of a table, as numbers, truths, dates or texts that are yet to be read."""
    if isinstance(X, ReadTable):
        return X
    if pts.is_frame(X):
        check_names(X)
        validate_data(encoder, X, reset=reset, skip_check_array=True)
        names = [str(name) for name in X.columns]
        if not names or not len(X):
            raise ValueError(
                f"Found array with {len(X)} sample(s) and {len(names)} feature(s) "
                f"(shape=({len(X)}, {len(names)})) while a minimum of 1 is required."
            )
        formats = getattr(X, "attrs", {}).get("formats", {})
        index = getattr(X, "index", None)
        return ReadTable(names, frame_columns(X), formats, declared_categories(X), index)
    X = as_host(X) if hasattr(X, "shape") else array_of_lists(X)
    with pts.naming("X"):
        X = validate_data(encoder, X, reset=reset, dtype=None, ensure_all_finite=False)
    if X.dtype.kind in "fiubc":
        X = check_array(X, ensure_all_finite="allow-nan", dtype=None, input_name="X")
    names = [f"x{j}" for j in range(X.shape[1])]
    return ReadTable(names, [column_values(column, name) for column, name in zip(X.T, names)])
