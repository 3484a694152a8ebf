"""Decisions on each column of a table, and their reasons."""

import re
from collections import Counter
from dataclasses import asdict
from typing import Any

import numpy as np

from . import notes
from .columns import Categories, Dates, Kept, Numbers, Texts, as_float, spelled
from .given import ReadTable
from .parse_dates import dates_in_digits
from .parse_numbers import TextColumn
from .reading import Notation, texts_in
from .target_encoding import LEAST_ROWS

# A fitted encoder of one column, None where it is left out; and what is said about it.
_Decision = tuple[Any, dict[str, Any]]
# Fewer rows than this cannot show that a column is unique per row.
IDENTIFIED = 10
# Texts without a space and at least so long may be sequences (DNA, proteins, SMILES).
_SEQUENCE = 15
# Single words that so many rows have on average are names of things, of states, say. Up to so many
# rows they have a column each; with more, the effect of each on the target is found (see
# `target_encoding`). And how many times as many columns as other categories they have, at most.
NAMED_ROWS, NAMED_TIMES = (2, LEAST_ROWS), 5
_SMILES = re.compile(r"(?!.*//)[A-Za-z0-9@+\-\[\]()=#$%/\\.:]+")
# "id" as a word of its own, or after another one as in customerId: "paid" and "humid" are none.
_ID_NAME = re.compile(
    r"(?:(?i:(?:^|[_\s.-])(?:id|ids|uuid|guid|key|index|idx|no|nr|number))|Id|ID)[#.]?$"
)
_TIME_NAME = re.compile(r"day|time|year|quarter|month|week|hour|date|period|step|age|^t$", re.I)
_ROW_NAME = re.compile(r"unnamed|^index$|^column_?1$|^row", re.I)


class Decisions:
    """Options of a TableEncoder and values of a table, as far as they decide on its columns."""

    def __init__(self, options: Any):
        self.options = options
        self.kept, self.ignored, self.ids, self.forced = (
            set(names or ()) for names in (options.keep, options.ignore, options.id, options.number)
        )

    def of_table(self, table: ReadTable, y: Any) -> list[_Decision]:
        """(fitted encoder or None, record) of every column; texts in y tell how it is written.

        Texts of the table that stand for numbers or dates are replaced by these.
        """
        names, columns = table.names, table.columns
        categories = {*table.categories, *(self.options.category or ())} - self.forced
        left = self.kept | self.ignored | self.ids
        texts = {
            name: values
            for name, values in zip(names, columns)
            if values.dtype.kind == "O" and name not in left
        }
        reading = Notation(self.options.decimal, self.options.dayfirst, self.forced, categories)
        written = texts_in(y)
        read = reading.columns(texts, [] if written is None else [TextColumn(written)])
        numbers = [values.astype(float) for values in columns if values.dtype.kind in "fiu"]
        numbers += [column.values for column in read.values() if not column.is_dates]
        found = []
        for name, values in zip(names, columns):
            if name in categories and name not in left:
                encoder, record = self._categories(name, spelled(values))
            else:
                encoder, record = self._decide(
                    name, values, read.get(name), table.formats.get(name)
                )
            if values.dtype.kind == "O":
                record["total"] = notes.total_of(values, numbers)
            found.append((encoder, record))
        table.columns = [
            read[name].values if isinstance(encoder, Numbers | Dates) and name in read else values
            for name, values, (encoder, _) in zip(names, columns, found)
        ]
        return found

    def _decide(self, name, values, read=None, format=None):
        """(fitted encoder or None, record) of one column; `read` is a column of texts as values."""
        if name in self.kept:
            kept = Kept().fit(values, name)
            return notes.decision(kept, name, notes.KEPT, "kept as it is", values)
        if name in self.ids:
            return notes.left_out(name, notes.IDENTIFIER, "names of rows, as you say")
        if name in self.ignored:
            return notes.left_out(name, notes.IGNORED, "as you say")
        kind = values.dtype.kind
        if kind == "b":
            return self.numbers(name, values, notes.BOOLEAN)
        if kind == "M":
            return self._dates(name, values, format=format)
        if kind in "fiu":
            check_finite(name, values)
            if kind in "iu" and name not in self.forced and _is_row_number(name, values):
                return _names_of_rows(name, len(values), len(values))
            days = None if name in self.forced else dates_in_digits(values)
            if days is not None:
                encoder, record = self._dates(name, days, format={"digits": True})
                i = int(np.flatnonzero(~np.isnat(days))[0])
                shown = (str(int(values[i])), str(days[i].astype("datetime64[D]")))
                return encoder, record | {"read": shown, "open": False}
            return self.numbers(name, values, format=format)
        return self._of_texts(name, values, read)

    def _of_texts(self, name, texts, read):
        known = [text for text in texts if text is not None]
        n_values = len(set(known))
        if not known or (n_values == 1 and len(known) == len(texts)):
            return _tells_nothing(name, known)
        if read is not None:
            if len(read.wrong) == n_values:
                raise ValueError(
                    f"number names the column {name!r}, and none of its values can be read as a "
                    f"number: {read.wrong[0]!r}."
                )
            encode = self._dates if read.is_dates else self.numbers
            encoder, record = encode(name, read.values, format=asdict(read.format))
            record |= {"not_read": read.wrong[:3], "open": read.open is not None}
            shown = read.shown()
            return encoder, record if shown is None else record | {"read": shown}
        words = float(np.mean([len(text.split()) for text in known]))
        unique = n_values == len(known) and len(known) >= IDENTIFIED
        nearly = n_values > 0.9 * len(known) and len(known) >= IDENTIFIED
        patterns = len({re.sub(r"\d+", "#", text) for text in known})
        named = (words < 2 and (unique or nearly)) or (unique and patterns <= 0.1 * len(known))
        sequences = named and _are_sequences(known)
        if named and not sequences:
            return _names_of_rows(name, n_values, len(known))
        most = self.options.max_categories
        frequent = sum(count for _, count in Counter(known).most_common(most - 1))
        few = n_values <= most or frequent >= 0.5 * len(known)
        low, high = NAMED_ROWS
        if words < 2 and low <= len(known) / n_values < high and n_values <= NAMED_TIMES * most:
            return self._categories(name, texts, n_values + 1)
        if few and not sequences and not (unique and words >= 2):  # sentences, all different
            return self._categories(name, texts)
        if self.options.text == "drop":
            return notes.left_out(name, notes.TEXT, "free text")
        encoder = Texts(self.options.text_components, self.options.random_state).fit(texts, name)
        return notes.decision(encoder, name, notes.TEXT, "character n-grams", texts)

    def numbers(
        self,
        name: str,
        values: np.ndarray,
        kind: str = notes.NUMBER,
        reason: str = "",
        format: dict[str, Any] | None = None,
    ) -> _Decision:
        """A column of numbers or truths."""
        x = as_float(values)
        known = x[~np.isnan(x)]
        # A column of one value may be informative by its gaps alone.
        gaps_tell = kind != notes.BOOLEAN and min(len(known), len(x) - len(known)) >= 5
        if not len(known) or (known.min() == known.max() and not gaps_tell):
            return _tells_nothing(name, known)
        scale = "none" if kind == notes.BOOLEAN else self.options.scale
        further = (self.options.ranks, self.options.levels)
        ranks, levels = (wanted and kind != notes.BOOLEAN for wanted in further)
        encoder = Numbers(scale, ranks, levels).fit(values, name, format)
        action = {"standard": "standardised", "unit": "scaled to 0 to 1", "none": "kept"}[scale]
        action = notes.with_further(action, encoder)
        encoder, record = notes.decision(encoder, name, kind, action, x, reason)
        record["sentinel"] = notes.sentinel_of(known) if kind == notes.NUMBER else None
        return encoder, record

    def _dates(self, name, values, format=None):
        x = as_float(values)
        known = x[~np.isnan(x)]
        if not len(known) or known.min() == known.max():
            return _tells_nothing(name, known)
        encoder = Dates().fit(values, name, format)
        action = "a number of days and their cycles"
        return notes.decision(encoder, name, notes.DATE, action, x)

    def _categories(self, name, texts, most=0):
        encoder = Categories(max(most, self.options.max_categories)).fit(texts, name)
        if len(encoder.names_) < 2:
            known = [text for text in texts if text is not None]
            if encoder.n_pooled_:  # every value is rare: names, not one value for all
                return _names_of_rows(name, len(set(known)), len(known))
            return notes.left_out(name, notes.CONSTANT, "nearly the same in all rows")
        encoder, record = notes.decision(encoder, name, notes.CATEGORY, "columns of 0 and 1", texts)
        record["n_pooled"] = encoder.n_pooled_
        return encoder, record


def check_finite(name: str, values: np.ndarray) -> None:
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise ValueError(f"column {name!r} holds infinity: replace it or leave the row out.")


def _tells_nothing(name, known):
    kind, reason = notes.EMPTY, "without a value"
    if len(known):
        kind, reason = notes.CONSTANT, "the same in all rows"
    return notes.left_out(name, kind, reason)


def _names_of_rows(name, n_values, n):
    reason = "unique per row"
    if n_values != n:
        reason = f"{n_values} different values in {n} rows: nearly every row has its own"
    return notes.left_out(name, notes.IDENTIFIER, reason)


def _is_row_number(name, values):
    """Whole numbers that count or name the rows: unique, and consecutive or called an id."""
    if len(values) < IDENTIFIED or len(np.unique(values)) < len(values):
        return False
    if _ID_NAME.search(name) or _ROW_NAME.search(name):
        return True
    consecutive = int(values.max()) - int(values.min()) == len(values) - 1
    return consecutive and not _TIME_NAME.search(name)


def _are_sequences(known):
    """Whether texts unique per row are written in letters, as DNA and proteins are, or as SMILES.

    Identifiers of that length have digits, or separators at fixed places.
    """
    if np.median([len(text) for text in known]) < _SEQUENCE:
        return False
    letters = sum(text.replace("-", "").replace("*", "").isalpha() for text in known)
    bonds = sum(bool(_SMILES.fullmatch(text)) and any(c in text for c in "()=#") for text in known)
    return max(letters, bonds) >= 0.9 * len(known)
