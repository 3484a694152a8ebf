"""Texts that a spreadsheet would run as a formula."""

import unicodedata
from typing import Any

# A minus sign of mathematics is taken for a hyphen by some spreadsheets.
SIGNS = ("=", "+", "-", "@", "\u2212")


def _harmless_text(text):
    """The text, with an apostrophe in front if a spreadsheet would run it as a formula.

    Spreadsheets skip what they do not show in front of a sign (a byte-order mark, spaces, line
    breaks), and take full-width signs for ordinary ones. Signs alone ("+", "-", "+/-") are labels:
    without a letter or a digit there is nothing to run.
    """
    # A bare carriage return is not quoted by csv writers, and starts a new row for readers.
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    shown = [c for c in unicodedata.normalize("NFKC", text) if _is_shown(c)]
    runs = shown and shown[0].startswith(SIGNS) and any(map(str.isalnum, shown))
    return "'" + text if runs else text


def harmless_value(value: Any):
    """A text made harmless; anything else as it is."""
    return _harmless_text(value) if isinstance(value, str) else value


def _is_shown(character):
    """Not a space, a line break, a control or a format character."""
    return unicodedata.category(character)[0] not in "ZC"
