"""Texts that a spreadsheet would run as a formula."""

import unicodedata
from typing import Any

# A minus sign of mathematics is taken for a hyphen by some spreadsheets.
_SIGNS = ("=", "+", "-", "@", "\u2212")


def harmless_value(value: Any):
    """A value of a table; a text gets an apostrophe in front if a spreadsheet would run it.

    Spreadsheets skip what they do not show in front of a sign (a byte-order mark, spaces, line
    breaks), and take full-width signs for ordinary ones. Signs alone ("+", "-", "+/-") are labels:
    without a letter or a digit there is nothing to run.
    """
    if not isinstance(value, str):
        return value
    # A bare carriage return is not quoted by csv writers, and starts a new row for readers.
    text = value.replace("\r\n", "\n").replace("\r", "\n")
    # Neither spaces and line breaks nor controls and format characters.
    seen = unicodedata.normalize("NFKC", text)
    shown = [c for c in seen if unicodedata.category(c)[0] not in "ZC"]
    runs = shown and shown[0].startswith(_SIGNS) and any(map(str.isalnum, shown))
    return "'" + text if runs else text
