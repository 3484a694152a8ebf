"""Kinds of columns in each sample: identifiers, and columns that became another kind of thing.

A column that numbers or names the rows of every sample says nothing: together such columns repeat,
would look like numbers, and would differ for no good reason. A column that does so in one sample
only has changed. So has one that holds numbers here and words there. A test sees both by marks:
columns of 0 and 1 that say of each row whether other rows have its value, or whether it can be read
as a number or a date. A mark is fitted to all rows together, so the level stays exact.
"""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from ..tables import (
    DATE,
    IDENTIFIED,
    IDENTIFIER,
    NUMBER,
    TableEncoder,
    column_values,
    reads_as,
    spelled,
)

# Numbers (or dates) and other values are told apart where each are at least this share.
SHARE = 0.05
REPEATED = "repeated"


class Mark(NamedTuple):
    """Which rows have a value of a certain kind in one column."""

    name: str  # of the column that says so
    column: Any
    what: str  # NUMBER, DATE or REPEATED
    repeated: frozenset[str] = frozenset()

    def of(self, frame: Any) -> np.ndarray:
        """Yes or no for each row of a frame."""
        texts = spelled(column_values(frame[self.column], ""))
        if self.what == REPEATED:
            return np.array([text in self.repeated for text in texts])
        return reads_as(self.what, texts)


def with_marks(frame: Any, marks: list[Mark]) -> Any:
    """The frame and one more column for each mark."""
    if not marks:
        return frame
    new = {mark.name: mark.of(frame) for mark in marks}
    return frame.assign(**new) if hasattr(frame, "assign") else frame.hstack(type(frame)(new))


def marks_of(whole: Any, changed: dict[str, tuple[str, str]]) -> list[Mark]:
    """The marks that the rows of all samples together ask for."""
    kinds, found = kinds_in(whole), []
    for column in whole.columns:
        kind = kinds.get(str(column), IDENTIFIER)
        texts = spelled(column_values(whole[column], ""))
        texts = texts[[text is not None for text in texts]]
        if kind not in (NUMBER, DATE) and len(texts):
            for what in (NUMBER, DATE):
                if SHARE <= reads_as(what, texts).mean() <= 1 - SHARE:
                    found.append(Mark(_unused(f"{column} is a {what}", whole), column, what))
        if kind == IDENTIFIER or IDENTIFIER in changed.get(str(column), ()):
            repeated = frozenset(t for t, count in Counter(texts).items() if count > 1)
            if repeated:
                name = _unused(f"{column} is repeated", whole)
                found.append(Mark(name, column, REPEATED, repeated))
    return found


def _unused(name, frame):
    while name in frame.columns:
        name += " too"
    return name


def kinds_in(frame: Any) -> dict[str, str]:
    """The kind of each column of one sample; none where nothing tells its rows apart."""
    try:
        return {record["name"]: record["kind"] for record in TableEncoder().fit(frame).columns_}
    except ValueError:  # one sample alone may be constant
        return {}


def identifiers_of(frames: list[Any], kinds: list[dict[str, str]]) -> list[str]:
    """Columns that number or name the rows in one sample, and in the others too or perhaps."""
    names = [str(name) for name in frames[0].columns]
    return sorted(
        name
        for j, name in enumerate(names)
        if any(of.get(name) == IDENTIFIER for of in kinds)
        and all(
            of.get(name) == IDENTIFIER or _perhaps(frame[list(frame.columns)[j]])
            for frame, of in zip(frames, kinds)
        )
    )


def changed_kinds(
    kinds: list[dict[str, str]], identifiers: list[str]
) -> dict[str, tuple[str, str]]:
    """Columns that are an identifier in one of two samples, or numbers, dates or words in one and
    another of these in the other; with both kinds."""
    if len(kinds) != 2:
        return {}
    x, y = ({name: k for name, k in of.items() if name not in identifiers} for of in kinds)
    plain = {"boolean": NUMBER, "category": "text"}
    told = {NUMBER, DATE, "text", IDENTIFIER}
    pairs = {name: (x[name], y[name]) for name in x if name in y}
    return {
        name: pair
        for name, pair in pairs.items()
        if len({plain.get(kind, kind) for kind in pair} & told) == 2
    }


def _perhaps(column):
    """Whether a column could name the rows: some of the row numbers of a larger table, or too few
    values to tell."""
    values = column_values(column, "")
    few = len(values) < IDENTIFIED or values.dtype.kind in "iu"
    return few and len(set(values.tolist())) == len(values)
