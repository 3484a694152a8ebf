"""Columns of text as numbers or dates, by the evidence of the whole table."""

import warnings
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from .columns import numbers_one_by_one
from .given import read_columns
from .parse_dates import DateColumn, are_digits_of_dates, read_dates
from .parse_numbers import (
    NumberColumn,
    TextColumn,
    are_codes,
    decimal_of,
    read_forced,
    read_numbers,
)
from .parse_text import as_texts

TypedColumn = NumberColumn | DateColumn


@dataclass
class Notation:
    """How the texts of a table are read.

    Given by the user (None: by the evidence of the table), and found in `decide`.

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
    table_decimal: str | None = field(default=None, init=False)
    usual_day_first: bool | None = field(default=None, init=False)

    def columns(
        self, texts: dict[str, Any], hints: Iterable[Any] = (), points: int = 0
    ) -> dict[str, TypedColumn]:
        """The columns of `texts` (stripped, None where missing) that are numbers or dates.

        `hints` are columns that only tell how the numbers of this table are written, and `points`
        is the number of those that are written with a decimal point.
        """
        written = {n: TextColumn(t) for n, t in texts.items() if n not in self.categories}
        told = [column for column in [*written.values(), *hints] if column.is_numeric()]
        table = decimal_of(told, self.separator, points)
        self.table_decimal = self.decimal or table.mark
        found: dict[str, TypedColumn] = {}
        dates = []
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
                    dates.append(name)
        return found | self._dates({name: written[name].texts for name in dates})

    def _dates(self, texts):
        """Columns of dates; those that tell where the day stands decide for the others."""
        usual = self.table_decimal == "," if self.day_first is None else self.day_first
        found: dict[str, Any] = {}
        for name, values in texts.items():
            read = read_dates(values, self.day_first, usual)
            if read is not None:
                found[name] = read
        told = [read.day_first for read in found.values() if read.open is None]
        if told and any(read.open for read in found.values()):
            usual = sum(told) > len(told) / 2
            for name, read in found.items():
                if read.open is not None:
                    found[name] = read_dates(texts[name], None, usual)
        self.usual_day_first = usual
        return found


def first_value(texts: Iterable[str | None], read: TypedColumn) -> tuple[str, str]:
    """(a text of a column, what it was read as): one that tells most about the reading."""
    pairs = [(t, v) for t, v in zip(texts, read.values) if t is not None and v == v]
    telling = [pair for pair in pairs if pair[0] == read.open]
    telling = telling or [pair for pair in pairs if not is_obvious(pair[0], str(pair[1]))] or pairs
    text, value = telling[0]
    if isinstance(read, DateColumn):
        day, clock = str(np.datetime_as_string(value, unit="us")).split("T")
        clock = clock.rstrip("0").rstrip(".") if not clock.endswith(".000000") else clock[:8]
        return text, day if clock == "00:00:00" else f"{day} {clock}"
    seconds = " seconds" if read.format.time else ""
    return text, f"{value:.10g}{seconds}"


def is_obvious(text: str, value: str) -> bool:
    """Whether a text was read as everybody would read it."""
    try:
        return float(text) == float(value)
    except ValueError:
        return False


def format_of(read: TypedColumn) -> dict[str, Any]:
    """How the texts of a column were read, in plain values: what a model keeps for new rows."""
    return asdict(read.format) if isinstance(read, NumberColumn) else {"day_first": read.day_first}


# --- a target that is written as people write numbers: "1,5 EUR", "1:02:33" -----------------------


@dataclass(frozen=True)
class WrittenTarget:
    """Texts that are numbers: these, what they mean, and how others like them are read."""

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
        return cls(texts, read.values, format_of(read))

    @staticmethod
    def read_like(y: Any, format: dict[str, Any] | None) -> Any:
        """Texts as numbers, read as those of the training table; anything else as it is."""
        texts = None if format is None else texts_in(y)
        return y if texts is None else numbers_one_by_one(texts, format)


def texts_in(y: Any) -> np.ndarray | None:
    """Stripped texts, None where one is missing; None where y holds something else."""
    values = None if y is None else np.asarray(y)
    if values is None or values.ndim != 1 or values.dtype.kind not in "OUT":
        return None
    some = any(isinstance(value, str) for value in values.tolist())
    return as_texts(values.tolist()) if some else None
