"""Columns of text for kernels on strings: which column they compare, and what is left out."""

from typing import Any

import numpy as np
import pandas as pd

from .. import OnColumns, Spectrum, TableEncoder
from ..tables import TEXT, BadInput

# Rows that are looked at to see what kind of columns a table has.
LOOKED_AT = 1000
# One column of texts is meant where its texts are so many times longer than all others.
LONGER = 3.0


def usual_kernels() -> dict:
    """Default kernels for strings: substrings of several lengths."""
    kernels = [Spectrum(length, normalize=True) for length in (2, 3, 4, 5)]
    return {repr(kernel): kernel for kernel in kernels}


def the_column(table: pd.DataFrame, kernels: list, notes: list[str]) -> str | None:
    """The column whose texts all kernels compare; None where they see a table of numbers."""
    on_objects = [kernel for kernel in kernels if kernel.kind == "objects"]
    if not kernels:
        return _only_information(table, notes)
    if not on_objects:
        return None
    columns = _text_columns(table)
    others = [kernel for kernel in kernels if kernel.kind != "objects"]
    if others:
        name = columns[0] if columns else "text"
        raise BadInput(
            f"{on_objects[0]!r} compares texts and {others[0]!r} a table: compare them one at a "
            f'time, or name the columns: -k "OnColumns({on_objects[0]!r}, {name!r})".'
        )
    if not columns:
        raise BadInput(
            f"{on_objects[0]!r} compares texts, and no column beside the target holds text; the "
            f"columns are: {', '.join(map(str, table.columns[:12]))}."
        )
    column = _longest(table, columns, on_objects[0])
    left_out = [str(name) for name in table.columns if name != column]
    if left_out:
        few = ", ".join(left_out[:6]) + (", …" if len(left_out) > 6 else "")
        notes.append(
            f"the kernels compare the texts of {column!r}; the other columns were left out: {few}"
        )
    return column


def _text_columns(table: pd.DataFrame) -> list[str]:
    """Columns that hold text; numbers and dates were read as such before."""
    return [
        name
        for name, dtype in zip(table.columns, table.dtypes)
        if (dtype.kind == "O" or pd.api.types.is_string_dtype(dtype)) and table[name].notna().any()
    ]


def kept(table: pd.DataFrame, kernels: list) -> list[str]:
    """Columns that kernels on objects ask for by name: these are not turned into numbers."""
    names: list[str] = []
    for kernel in kernels:
        for part in (kernel, *kernel.get_params(deep=True).values()):
            if isinstance(part, OnColumns) and part.kernel.kind == "objects":
                asked: Any = part.columns
                asked = asked if isinstance(asked, (list, tuple)) else [asked]
                names += [name for name in asked if isinstance(name, str)]
    known = set(map(str, table.columns))
    return [name for name in dict.fromkeys(names) if name in known]


def filled(table: pd.DataFrame) -> pd.DataFrame:
    """Texts, with the empty one where a value is missing."""
    return table.astype(object).where(table.notna(), "").map(str)


def _longest(table, columns, kernel):
    """The column that is meant: the only one, or the one whose texts are far longer."""
    lengths = [float(np.median(table[name].dropna().map(str).map(len))) for name in columns]
    order = np.argsort(lengths)[::-1]
    if len(columns) == 1 or lengths[order[0]] >= LONGER * lengths[order[1]]:
        return columns[order[0]]
    raise BadInput(
        f"{kernel!r} compares texts, and several columns hold text: {', '.join(columns[:8])}. Say "
        f'which is meant: -k "OnColumns({kernel!r}, {columns[order[0]]!r})".'
    )


def _only_information(table, notes):
    """The column of text that is all that a table has; a note on texts beside other columns."""
    if not _text_columns(table):
        return None
    try:
        records = TableEncoder().fit(table.head(LOOKED_AT)).columns_
    except ValueError:  # nothing in the table is informative: said later, with the reason
        return None
    useful = [record for record in records if record["outputs"]]
    written = [record["name"] for record in useful if record["kind"] == TEXT]
    if len(useful) == len(written) == 1:
        notes.append(
            f"the texts of {written[0]!r} are all that tells the rows apart: string kernels "
            "compare them"
        )
        return written[0]
    if written:
        notes.append(
            f"a string kernel compares the texts of a column: "
            f'-k "OnColumns(Spectrum(3), {written[0]!r})"'
        )
    return None
