"""Parameters as text, and as something to compare by; names and facts as text."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from ..engine import as_numpy, is_array


def printed_in(kernel: object, precedence: int):
    """An operand as text, in parentheses where it binds less strongly than its place."""
    binds = getattr(kernel, "precedence", precedence) >= precedence
    return repr(kernel) if binds else f"({kernel!r})"


def printed(value: Any):
    """A parameter as the text that gives it back; large arrays are abbreviated."""
    if isinstance(value, np.generic):
        value = value.item()
    if is_array(value):
        value = as_numpy(value)
        return repr(value.tolist()) if value.size <= 100 else f"<array of shape {value.shape}>"
    if callable(value) and hasattr(value, "__qualname__"):
        return value.__qualname__
    return repr(value)


def frozen(value: Any):
    """A hashable stand-in, equal for equal parameters (a list equals the array of its values)."""
    if isinstance(value, np.generic):
        return value.item()
    if is_array(value):
        value = as_numpy(value).tolist()
    if isinstance(value, (list, tuple)):
        return tuple(frozen(item) for item in value)
    if isinstance(value, slice):
        return ("slice", value.start, value.stop, value.step)
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value


def listed(names: Sequence[str], most: int = 6):
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def html_rows(facts: Iterable[tuple[str, str]]):
    """(name, text) pairs as rows of an HTML table."""
    left = "style='text-align:left'"
    return "".join(
        f"<tr><th {left}>{escape(name)}</th><td {left}>{escape(text)}</td></tr>"
        for name, text in facts
    )
