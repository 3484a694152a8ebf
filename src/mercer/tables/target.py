"""A target that is written as people write numbers: "1,5 EUR", "1:02:33"."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from .columns import numbers_one_by_one
from .given import read_columns
from .parse_numbers import NumberColumn, TextColumn
from .parse_text import as_texts
from .reading import Notation, first_value, format_of


@dataclass(frozen=True)
class WrittenTarget:
    """Texts that are numbers: these, what they mean, and how others like them are read."""

    texts: np.ndarray
    values: np.ndarray
    format: dict[str, Any]


def texts_in(y: Any) -> np.ndarray | None:
    """Stripped texts, None where one is missing; None where y holds something else."""
    values = None if y is None else np.asarray(y)
    if values is None or values.ndim != 1 or values.dtype.kind not in "OUT":
        return None
    some = any(isinstance(value, str) for value in values.tolist())
    return as_texts(values.tolist()) if some else None


def read_target(encoder: Any, X: Any, y: Any) -> WrittenTarget | None:
    """The numbers that texts stand for, by the evidence of their table; None where they do not.

    `encoder` is the TableEncoder for X, which need not be fitted.
    """
    texts = texts_in(y)
    if texts is None:
        return None
    columns = read_columns(clone(encoder), X, reset=True).columns
    beside = [TextColumn(values) for values in columns if values.dtype.kind == "O"]
    read = Notation(encoder.decimal, encoder.dayfirst).columns({"y": texts}, beside).get("y")
    if not isinstance(read, NumberColumn):
        return None
    if read.wrong:
        raise ValueError(f"y: {read.wrong[0]!r} is not a number, as the other texts are.")
    if read.open is not None:
        text, value = first_value(texts, read)
        warnings.warn(
            f"y: {text!r} can be read in two ways, and was read as {value}. "
            "encoder=TableEncoder(decimal=...) says which mark is the decimal one.",
            stacklevel=5,
        )
    return WrittenTarget(texts, read.values, format_of(read))


def read_like(y: Any, format: dict[str, Any] | None) -> Any:
    """Texts as numbers, read as those of the training table; anything else as it is."""
    texts = None if format is None else texts_in(y)
    return y if texts is None else numbers_one_by_one(texts, format)
