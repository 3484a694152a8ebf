"""SampleEncoder: a table encoder for several samples that are compared.

A column that numbers or names the rows of every sample says nothing: together such columns repeat,
would look like numbers, and would differ for no good reason. A column that does so in one sample
only has changed. So has one that holds numbers here and words there. A test sees both by marks:
columns of 0 and 1 that say of each row whether other rows have its value, or whether it can be read
as a number or a date. A mark is fitted to all rows together, so the level stays exact.
"""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from .columns import column_values, declared_categories, spelled
from .decisions import IDENTIFIED
from .encoder import TableEncoder
from .notes import DATE, IDENTIFIER, NUMBER
from .parse_dates import DateFormat
from .parse_numbers import NumberFormat
from .parse_text import Format

# Numbers (or dates) and other values are told apart where each are at least this share.
_SHARE = 0.05
_REPEATED = "repeated"
_FORMATS: dict[str, Format] = {NUMBER: NumberFormat(), DATE: DateFormat()}


class _Mark(NamedTuple):
    """Which rows have a value of a certain kind in one column."""

    name: str  # of the column that says so
    column: Any
    what: str  # NUMBER, DATE or _REPEATED
    repeated: frozenset[str] = frozenset()

    def of(self, frame: Any) -> np.ndarray:
        """Yes or no for each row of a frame."""
        texts = spelled(column_values(frame[self.column], ""))
        if self.what == _REPEATED:
            return np.array([text in self.repeated for text in texts])
        return ~np.isnan(_FORMATS[self.what].read(texts))


class SampleEncoder(TableEncoder):
    """A TableEncoder fitted to several samples together, which sees columns that changed.

    Attributes
    ----------
    identifiers : columns that name the rows of every sample, which are left out
    changed : {column: its kinds} of those that are another kind of thing in the second sample
    marked : {name of an added column: the column that it is about}
    """

    identifiers: list[str]
    changed: dict[str, tuple[str, str]]
    marked: dict[str, str]
    marks: list[_Mark]
    kept: list[Any]

    @classmethod
    def of(cls, frames: list[Any], whole: Any) -> "SampleEncoder":
        """Fitted to the rows of all frames; `whole` are these one below the other."""
        kinds = [_kinds_in(frame) for frame in frames]
        # They number or name the rows in one sample, and in the others too or perhaps.
        identifiers = sorted(
            str(column)
            for j, column in enumerate(frames[0].columns)
            if any(of.get(str(column)) == IDENTIFIER for of in kinds)
            and all(
                of.get(str(column)) == IDENTIFIER or _perhaps(frame[list(frame.columns)[j]])
                for frame, of in zip(frames, kinds)
            )
        )
        changed = {}
        if len(kinds) == 2:
            # Identifiers, numbers, dates or words in one sample, and another of these in the other.
            x, y = kinds
            pairs = {name: (x[name], y[name]) for name in x if name in {*y} - {*identifiers}}
            plain = {"boolean": NUMBER, "category": "text"}
            for name, pair in pairs.items():
                found = {plain.get(kind, kind) for kind in pair}
                if len(found & {NUMBER, DATE, "text", IDENTIFIER}) == 2:
                    changed[name] = pair
        marks = _marks_of(whole, changed) if len(frames) > 1 else []
        names = [*whole.columns, *(mark.name for mark in marks)]
        kept = [name for name in names if str(name) not in identifiers]
        if not kept:
            raise ValueError("every column has one value per row: nothing to compare.")
        # Frames that are joined forget what was declared.
        declared = {name for frame in frames for name in declared_categories(frame)}
        made = cls(category=sorted(declared & {str(name) for name in kept}))
        made.identifiers, made.changed, made.marks, made.kept = identifiers, changed, marks, kept
        made.marked = {mark.name: str(mark.column) for mark in marks}
        return made.fit(_with_marks(whole, marks)[kept])

    def transform(self, X: Any) -> Any:
        """Rows of a sample as numbers."""
        return super().transform(_with_marks(X, self.marks)[self.kept])


def _with_marks(frame: Any, marks: list[_Mark]) -> Any:
    """The frame and one more column for each mark."""
    if not marks:
        return frame
    new = {mark.name: mark.of(frame) for mark in marks}
    return frame.assign(**new) if hasattr(frame, "assign") else frame.hstack(type(frame)(new))


def _marks_of(whole: Any, changed: dict[str, tuple[str, str]]) -> list[_Mark]:
    """The marks that the rows of all samples together ask for."""
    kinds, found = _kinds_in(whole), []

    def mark(column: Any, what: str, words: str, **more: Any) -> None:
        name = f"{column} is {words}"
        while name in whole.columns:
            name += " too"
        found.append(_Mark(name, column, what, **more))

    for column in whole.columns:
        kind = kinds.get(str(column), IDENTIFIER)
        texts = spelled(column_values(whole[column], ""))
        texts = texts[[text is not None for text in texts]]
        if kind not in (NUMBER, DATE) and len(texts):
            for what, format in _FORMATS.items():
                if _SHARE <= (~np.isnan(format.read(texts))).mean() <= 1 - _SHARE:
                    mark(column, what, f"a {what}")
        if kind == IDENTIFIER or IDENTIFIER in changed.get(str(column), ()):
            repeated = frozenset(t for t, count in Counter(texts).items() if count > 1)
            if repeated:
                mark(column, _REPEATED, _REPEATED, repeated=repeated)
    return found


def _kinds_in(frame: Any) -> dict[str, str]:
    """The kind of each column of one sample; none where nothing tells its rows apart."""
    try:
        return {record["name"]: record["kind"] for record in TableEncoder().fit(frame).columns_}
    except ValueError:  # one sample alone may be constant
        return {}


def _perhaps(column):
    """Whether a column could name the rows: some of the row numbers of a larger table, or too few
    values to tell."""
    values = column_values(column, "")
    few = len(values) < IDENTIFIED or values.dtype.kind in "iu"
    return few and len(set(values.tolist())) == len(values)
