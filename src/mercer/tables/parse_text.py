"""Texts of a table: those that say that there is no value, and columns of them that were read."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# A column is read as numbers (or dates) where at least this share of its values are.
MOSTLY = 0.95
# Spaces, and control characters such as the end of file of old systems.
_BLANK = "".join(map(chr, range(33))) + "\x7f\x85\xa0"
# Texts that people write for a missing value.
MISSING = frozenset(
    ["", "?", "-", "--", "—", ".", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "<na>"]
)


def is_missing(value: Any) -> bool:
    """Whether a value says that there is none: None, NaN, NaT, or a text such as "?" or "NA"."""
    if value is None:
        return True
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas' NA has no truth value; lists compare item by item
        return type(value).__name__ == "NAType"


def as_texts(values: Iterable[Any]) -> np.ndarray:
    """An object array of stripped strings, None where a value is missing."""
    values = list(values)
    texts = np.empty(len(values), dtype=object)
    known: dict = {}
    for i, value in enumerate(values):
        if isinstance(value, str):
            if value not in known:
                text = value.strip(_BLANK)
                known[value] = None if is_missing(text) else text
            texts[i] = known[value]
        else:
            texts[i] = None if is_missing(value) else str(value).strip()
    return texts


class Format:
    """How the numbers, or the dates, of a column are written."""

    dtype = "float64"

    def parse(self, text: str) -> Any:
        """The value that a text stands for; None where it is not in this format."""
        raise NotImplementedError

    def read(
        self, texts: Iterable[str | None], parse: Callable[[str], Any] | None = None
    ) -> np.ndarray:
        """Each text read by itself: whatever stands beside it, "1,200" is what it was.

        NaN or NaT where a text is missing or cannot be read.
        """
        texts, parse = list(texts), parse or self.parse
        read = {None: None} | {text: parse(text) for text in set(texts) if text is not None}
        return np.array([read[text] for text in texts], dtype=self.dtype)


@dataclass(frozen=True)
class ReadColumn:
    """A column of texts that are numbers, or dates.

    values : floats or datetime64[us], NaN or NaT where a text is missing or is neither
    format : how these texts, and others like them, are written
    wrong : the different texts that cannot be read; n_wrong : rows that have one
    open : a text that other countries read differently ("1.167"), where the column does not tell
    """

    texts: Sequence[str | None]
    values: np.ndarray
    format: Any
    wrong: list[str]
    open: str | None
    n_wrong: int

    @classmethod
    def of(
        cls, texts: Sequence[str | None], format: Format, open: str | None = None, **how: Any
    ) -> "ReadColumn":
        """The texts read in a format, which may be stricter here (`parse`) than for new rows."""
        values = format.read(texts, **how)
        bad = [t for t, gap in zip(texts, np.isnan(values)) if gap and t is not None]
        return cls(texts, values, format, sorted(set(bad)), open, len(bad))

    @property
    def is_dates(self) -> bool:
        return self.values.dtype.kind == "M"

    def fits(self) -> bool:
        """Whether most of the texts could be read."""
        known = np.count_nonzero(~np.isnan(self.values))
        return bool(known >= MOSTLY * (known + self.n_wrong))

    def example(self) -> tuple[str, str]:
        """(a text, what it was read as): one that tells most about the reading."""
        pairs = [(t, v) for t, v in zip(self.texts, self.values) if t is not None and v == v]
        telling = [pair for pair in pairs if pair[0] == self.open]
        telling = telling or [p for p in pairs if not _is_obvious(p[0], str(p[1]))] or pairs
        text, value = telling[0]
        if self.is_dates:
            day, clock = str(np.datetime_as_string(value, unit="us")).split("T")
            clock = clock.rstrip("0").rstrip(".") if not clock.endswith(".000000") else clock[:8]
            return text, day if clock == "00:00:00" else f"{day} {clock}"
        return text, f"{value:.10g}{' seconds' if self.format.time else ''}"

    def shown(self) -> tuple[str, str] | None:
        """An example; None where all was read as everybody would read it, or nothing was."""
        if np.isnan(self.values).all():
            return None
        example = self.example()
        return example if self.open or not _is_obvious(*example) else None


def _is_obvious(text, value):
    try:
        return float(text) == float(value)
    except ValueError:
        return False
