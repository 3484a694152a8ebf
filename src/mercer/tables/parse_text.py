"""Texts of a table: which of them say that there is no value."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

# Spaces, and control characters such as the end of file of old systems.
BLANK = "".join(map(chr, range(33))) + "\x7f\x85\xa0"
# What people write where they have no value.
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


def one_by_one(
    texts: Iterable[str | None], parse: Callable[[str], Any], dtype: str = "float64"
) -> np.ndarray:
    """Each text read by itself: whatever stands beside it, "1,200" is what it was.

    NaN or NaT where a text is missing or cannot be read.
    """
    texts = list(texts)
    read = {None: None} | {text: parse(text) for text in set(texts) if text is not None}
    return np.array([read[text] for text in texts], dtype=dtype)


def as_texts(values: Iterable[Any]) -> np.ndarray:
    """An object array of stripped strings, None where a value is missing."""
    values = list(values)
    texts = np.empty(len(values), dtype=object)
    known: dict = {}
    for i, value in enumerate(values):
        if isinstance(value, str):
            if value not in known:
                text = value.strip(BLANK)
                known[value] = None if is_missing(text) else text
            texts[i] = known[value]
        else:
            texts[i] = None if is_missing(value) else str(value).strip()
    return texts
