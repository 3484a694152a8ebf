"""Columns of text as numbers or dates, by the evidence of the whole table."""

import warnings
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from .given import read_columns
from .parse_dates import are_digits_of_dates, read_dates
from .parse_numbers import (
    NumberFormat,
    TextColumn,
    are_codes,
    decimal_of,
    read_forced,
    read_numbers,
)
from .parse_text import ReadColumn, as_texts


@dataclass
class Notation:
    """How the texts of a table are read, as far as the user says it: else, by the evidence.

    decimal : "." or ","
    day_first : whether 05/02/2021 is in February
    numbers, categories : names of columns that are such, whatever their texts look like
    separator : of the file
    """

    decimal: str | None = None
    day_first: bool | None = None
    numbers: Collection[str] = ()
    categories: Collection[str] = ()
    separator: str | None = None

    def columns(
        self, texts: dict[str, Any], hints: Iterable[Any] = (), points: int = 0
    ) -> dict[str, ReadColumn]:
        """The columns of `texts` (stripped, None where missing) that are numbers or dates.

        `hints` are columns that only tell how the numbers of this table are written, and `points`
        is the number of those that are written with a decimal point.
        """
        written = {n: TextColumn(t) for n, t in texts.items() if n not in self.categories}
        told = [column for column in [*written.values(), *hints] if column.is_numeric()]
        table = decimal_of(told, self.separator, points)
        found: dict[str, ReadColumn] = {}
        others = []
        for name, column in written.items():
            if name in self.numbers:
                found[name] = read_forced(column, self.decimal, table)
            elif column.total and not are_codes(column):
                read = None
                if not are_digits_of_dates(column.counts):
                    read = read_numbers(column, self.decimal, table)
                if read is not None:
                    found[name] = read
                else:
                    others.append(name)
        # Columns of dates that tell where the day stands decide for the others.
        usual = (self.decimal or table.mark) == "," if self.day_first is None else self.day_first
        dates = {n: read_dates(written[n].texts, self.day_first, usual) for n in others}
        known = [date for date in dates.values() if date is not None]
        first = [date.format.day_first for date in known if date.open is None]
        first = [day_first for day_first in first if day_first is not None]
        for name, date in dates.items() if first else ():
            if date is not None and date.open is not None:
                dates[name] = read_dates(date.texts, None, sum(first) > len(first) / 2)
        return found | {name: date for name, date in dates.items() if date is not None}


@dataclass(frozen=True)
class WrittenTarget:
    """Texts of a target that are numbers, "1,5 EUR" say, and how others like them are read."""

    texts: np.ndarray
    values: np.ndarray
    format: dict[str, Any]

    @classmethod
    def of(cls, encoder: Any, X: Any, y: Any) -> "WrittenTarget | None":
        """The numbers that texts stand for, by the evidence of their table; None where they do not.

        `encoder` is the TableEncoder for X, which need not be fitted.
        """
        texts = texts_in(y)
        if texts is None:
            return None
        columns = read_columns(clone(encoder), X, reset=True).columns
        beside = [TextColumn(values) for values in columns if values.dtype.kind == "O"]
        read = Notation(encoder.decimal, encoder.dayfirst).columns({"y": texts}, beside).get("y")
        if read is None or read.is_dates:
            return None
        if read.wrong:
            raise ValueError(f"y: {read.wrong[0]!r} is not a number, as the other texts are.")
        if read.open is not None:
            text, value = read.example()
            warnings.warn(
                f"y: {text!r} can be read in two ways, and was read as {value}. "
                "encoder=TableEncoder(decimal=...) says which mark is the decimal one.",
                stacklevel=5,
            )
        return cls(texts, read.values, asdict(read.format))

    @staticmethod
    def read_like(y: Any, format: dict[str, Any] | None) -> Any:
        """Texts as numbers, read as those of the training table; anything else as it is."""
        texts = None if format is None else texts_in(y)
        return y if texts is None else NumberFormat(**(format or {})).read(texts)


def texts_in(y: Any) -> np.ndarray | None:
    """Stripped texts, None where one is missing; None where y holds something else."""
    values = None if y is None else np.asarray(y)
    if values is None or values.ndim != 1 or values.dtype.kind not in "OUT":
        return None
    some = any(isinstance(value, str) for value in values.tolist())
    return as_texts(values.tolist()) if some else None
