"""read_table: a file of almost any make as a frame, with notes on how it was read."""

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import sys
import zipfile
from collections import Counter
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .errors import BadInput
from .parse_text import MISSING, as_dates, as_numbers, as_texts

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", r"\s+": "spaces"}
PACKED = (".gz", ".bz2", ".xz", ".zip")
TEXTS = (".csv", ".tsv", ".tab", ".txt", ".dat", ".data")
KNOWN = "csv, tsv, txt, xlsx, json, jsonl, parquet (also packed as gz, bz2, xz or zip), npz"
# Lines that are looked at to find the separator and the header.
LOOKED_AT = 200
# A file may unpack to this many bytes, or to RATIO times its own size: tables shrink by 3 to 30.
UNPACKED, RATIO = 1 << 28, 100


def read_table(
    path: str | Path,
    *,
    sep: str | None = None,
    encoding: str | None = None,
    as_written: bool = False,
    target: str | None = None,
) -> tuple[pd.DataFrame, list[str]]:
    """A table from a file, or from standard input for "-": the frame, and notes on its reading.

    Separator and encoding are found where they are not given. Values such as "?" and "NA" are
    missing; "1,200", "$5" and "12%" become numbers, and dates become dates. Columns are never
    shifted: a line that does not fit its header is an error that names the line.

    With `as_written` such numbers and dates stay texts, except in the column `target`: a model
    reads them, and later reads those of new rows in the same way.
    """
    name, kind, content = _content(path)
    notes: list[str] = []
    try:
        if kind in (".parquet", ".pq"):
            frame = _from_parquet(content, name)
        elif kind in (".xlsx", ".xls", ".xlsm"):
            frame = _from_sheets(content, name, notes)
        elif kind in (".jsonl", ".ndjson", ".json"):
            frame = _from_json(content, encoding, kind)
        elif kind in TEXTS:
            frame = _from_text(content, sep, encoding, notes)
        else:
            raise BadInput(f"{name}: unknown kind of file; known: {KNOWN}.")
    except BadInput:
        raise
    except ImportError as error:
        raise BadInput(f"{name}: {error}") from None
    except Exception as error:  # every reader has errors of its own for broken files
        raise BadInput(f"cannot read {name}: {first_line(error)}") from None
    if frame.empty:
        raise BadInput(f"{name} has no rows.")
    frame = _renamed(frame, notes)
    if not as_written:
        return _cleaned(frame, notes), notes
    cleaned = _cleaned(frame, notes, told=[target])
    written = [c for c in frame.columns if c != target and cleaned[c].dtype.kind in "fM"]
    return cleaned.assign(**{c: frame[c] for c in written}), notes


def _content(path):
    """(name, suffix, bytes) of a file, unpacked."""
    if str(path) == "-":
        content = sys.stdin.buffer.read()
        if not content:
            raise BadInput("standard input is empty.")
        content = _unpacked(content, ".gz" if content[:2] == b"\x1f\x8b" else None, "the input")
        return "standard input", _kind_of(content), content
    path = Path(path)
    if not path.is_file():
        raise BadInput(
            f"the file {str(path)!r} does not exist."
            if not path.exists()
            else f"{path} is not a file."
        )
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packing = suffixes.pop() if suffixes and suffixes[-1] in PACKED else None
    try:
        content = _unpacked(path.read_bytes(), packing, path.name)
    except BadInput:
        raise
    except (OSError, EOFError, ValueError, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise BadInput(f"cannot unpack {path.name}: {first_line(error)}") from None
    if not content.strip():
        raise BadInput(f"{path.name} is empty.")
    return path.name, suffixes[-1] if suffixes else _kind_of(content), content


def _unpacked(content, packing, name):
    if packing is None:
        return content
    packed = io.BytesIO(content)
    if packing == ".zip":
        with zipfile.ZipFile(packed) as archive:
            files = [f for f in archive.namelist() if not f.endswith("/")]
            if len(files) != 1:
                raise ValueError(f"it holds {len(files)} files; one is expected")
            with archive.open(files[0]) as file:
                return _read_at_most(file, content, name)
    opened: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    with opened[packing](packed) as file:
        return _read_at_most(file, content, name)


def _read_at_most(file, content, name):
    unpacked = file.read(max(UNPACKED, RATIO * len(content)) + 1)
    check_unpacked(len(unpacked), len(content), name)
    return unpacked


def check_unpacked(unpacked, packed, name):
    """Refuse a small file that becomes gigabytes: it was made to fill the memory, or by mistake."""
    if unpacked > max(UNPACKED, RATIO * packed):
        raise BadInput(
            f"{name} has {packed / 1e6:.3g} MB and unpacks to {unpacked / 1e6:.3g} MB or more. If "
            "that is what you expect, unpack it or save it as csv, and name that file."
        )


def _kind_of(content):
    """The kind of unnamed bytes, by how they begin."""
    if content[:4] == b"PAR1":
        return ".parquet"
    if content[:4] == b"PK\x03\x04":
        return ".xlsx"
    return {b"{": ".jsonl", b"[": ".json"}.get(content.lstrip()[:1], ".csv")


# --- formats --------------------------------------------------------------------------------------


def _from_parquet(content, name):
    with suppress(ImportError):  # another reader of pandas's, or its message
        from pyarrow.parquet import read_metadata

        about = read_metadata(io.BytesIO(content))
        check_unpacked(8 * about.num_rows * about.num_columns, len(content), name)
    return pd.read_parquet(io.BytesIO(content))


def _from_sheets(content, name, notes):
    if zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        check_unpacked(size, len(content), name)
    try:
        sheets = pd.read_excel(io.BytesIO(content), sheet_name=None, na_values=_missing())
    except ImportError:
        raise BadInput(
            "reading .xlsx needs openpyxl: pip install 'mercer[cli]' (or save the sheet as csv)."
        ) from None
    full = {name: sheet for name, sheet in sheets.items() if not sheet.empty}
    if not full:
        raise BadInput("no sheet holds a table.")
    sheet, frame = next(iter(full.items()))
    if len(full) > 1:
        notes.append(f"the first of {len(full)} sheets was read: {sheet!r}")
    return frame


def _from_json(content, encoding, kind):
    text = _decoded(content, encoding, [])
    if kind == ".json" and text.lstrip().startswith("["):
        frame = pd.DataFrame(json.loads(text))
    else:
        frame = pd.DataFrame([json.loads(line) for line in _lines(text) if line.strip()])
    nested = [c for c in frame.columns if frame[c].map(lambda v: isinstance(v, (dict, list))).any()]
    if nested:
        raise BadInput(f"column {nested[0]!r} holds objects, not values: flatten the file first.")
    return frame


def _from_text(content, sep, encoding, notes):
    text = _decoded(content, encoding, notes)
    sep = {"tab": "\t", "\\t": "\t", "space": r"\s+", " ": r"\s+"}.get(sep, sep)
    lines = list(islice(_lines(text), LOOKED_AT))
    if sep is None:
        sep = _separator(lines)
        if sep not in (",", None):
            notes.append(f"columns are separated by {SEPARATORS[sep]}")
        sep = sep or ","
    elif len(sep) != 1 and sep != r"\s+":
        raise BadInput(f"--sep must be one character, 'tab' or 'space', got {sep!r}.")
    rows = _fields(lines, sep)
    header, *body = rows
    width = len(header)
    names = None
    if _is_data(header, body):
        names = [f"column_{j + 1}" for j in range(width)]
        notes.append("the file has no header: columns are called column_1, column_2, ...")
    sizes = Counter(len(row) for row in body)
    ends_open = bool(body) and all(
        len(row) < width + 1 or (len(row) == width + 1 and row[-1] == "") for row in body
    )
    row_names = bool(body) and names is None and set(sizes) == {width + 1} and not ends_open
    options: dict[str, Any] = {"names": names, "header": None if names else 0, "index_col": False}
    if names is None and sizes.get(width + 1) and ends_open:
        options |= {"names": [*header, "(after the last separator)"], "header": 0}
        notes.append("separators at the ends of the lines were ignored")
    elif row_names:
        options |= {"names": ["row name", *header], "header": 0}
        notes.append("the header is one name short: the first column was read as row names")
    short = next((i for i, row in enumerate(body, 2) if len(row) < width), None)
    if short is not None:
        notes.append(
            f"line {short} and perhaps others have fewer than {width} values: the rest is missing"
        )
    expected = len(options["names"]) if options["names"] else width
    for number, row in enumerate(body, 2):
        if len(row) > expected:
            raise BadInput(
                f"line {number} has {len(row)} values for {expected} columns: put values that "
                "hold a separator into quotes, or give the right one with --sep."
            )
    frame = pd.read_csv(
        io.StringIO(text),
        sep=sep,
        engine="c",
        na_values=_missing(),
        skipinitialspace=True,
        low_memory=False,
        **options,
    )
    if options["names"] and options["names"][-1] == "(after the last separator)":
        frame = frame.iloc[:, :-1]
    return frame


def _missing():
    return sorted({m for t in MISSING for m in (t, t.upper(), t.capitalize())} - {""})


def _decoded(content, encoding, notes):
    if encoding is not None:
        try:
            return content.decode(encoding).removeprefix("\ufeff")
        except LookupError:
            raise BadInput(f"--encoding {encoding!r} is not known; try utf-8 or latin-1.") from None
        except UnicodeDecodeError as error:
            raise BadInput(f"the file is not {encoding}: {first_line(error)}.") from None
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        notes.append("the text is UTF-16")
        return content.decode("utf-16")
    beginning = content[:2000]
    if beginning.count(0) > len(beginning) // 4:
        notes.append("the text is UTF-16")
        big = beginning[0::2].count(0) > beginning[1::2].count(0)
        return content.decode("utf-16-be" if big else "utf-16-le")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    if b"\x00" in beginning:
        raise BadInput("this is not a text file: it holds zero bytes.")
    notes.append("the text was read as Windows-1252 (--encoding changes that)")
    try:
        return content.decode("cp1252")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _separator(lines):
    """The character that cuts most lines into the same number of parts, more than one."""
    best = None
    for sep in SEPARATORS:
        sizes = [len(row) for row in _fields(lines, sep)]
        size, often = Counter(sizes).most_common(1)[0]
        if size < 2 or (sep == r"\s+" and best is not None):
            continue
        agree = often / len(sizes) + (0.5 if sizes[0] == size else 0.0)
        if best is None or (agree, size) > best[:2]:
            best = (agree, size, sep)
    return None if best is None else best[2]


def _lines(text):
    """Lines as csv and JSON end them; str.splitlines also cuts at U+2028, form feeds and others."""
    return (line.rstrip("\n") for line in io.StringIO(text, newline=None))


def _fields(lines, sep):
    lines = [line for line in lines if line.strip()]
    if sep == r"\s+":
        return [re.split("[ \t]+", line.strip(" \t")) for line in lines]
    rows = list(csv.reader(lines, delimiter=sep, skipinitialspace=True))
    return [[field.strip() for field in row] for row in rows]


def _is_data(header, body):
    """Whether the first line is a row: most of its fields are numbers, and do not count columns."""
    if not body:
        return False
    numbers = as_numbers(np.array([f or None for f in header], dtype=object))
    each = [as_numbers(np.array([f], dtype=object)) for f in header if f]
    values = [read[0][0] for read in each if read is not None]
    if numbers is None and len(values) <= len(header) / 2:
        return False
    if values in (list(range(len(values))), list(range(1, len(values) + 1))):
        return False
    if len(values) > 4 and values[0] != values[1] and np.ptp(np.diff(values)) == 0:
        return False  # steps of one size: the wavelengths of a spectrum, the hours of a day
    if _names_a_number(header, body):
        return False
    years = all(v == int(v) and 1800 <= v <= 2100 for v in values if np.isfinite(v))
    return not (years and len(set(values)) == len(values))


def _names_a_number(header, body):
    """Whether a text stands above a column of numbers only."""
    for j, name in enumerate(as_texts(header)):
        if name is None or as_numbers(np.array([name], dtype=object)) is not None:
            continue
        read = as_numbers(as_texts(row[j] for row in body if j < len(row)))
        if read is not None and not read[1]:
            return True
    return False


# --- columns --------------------------------------------------------------------------------------


def _renamed(frame, notes):
    """Names that are texts, not empty and different from each other."""
    names: list[str] = []
    repeated = []
    given = [str(name).strip() for name in frame.columns]
    for place, name in enumerate(given, 1):
        # pandas writes "Unnamed: 3" for an empty name, and "a.1" for the second "a".
        name = f"column_{place}" if name.startswith("Unnamed: ") or not name else name
        base, _, number = name.rpartition(".")
        if number.isdigit() and base in given[: place - 1]:
            repeated.append(base)
        while name in names:
            repeated.append(name)
            name = f"{name}.{names.count(name) + 1}"
        names.append(name)
    if repeated:
        shown = ", ".join(dict.fromkeys(repeated))
        notes.append(f"columns with the same name got a number: {shown}")
    return frame.set_axis(names, axis=1)


def _cleaned(frame, notes, told=None):
    """Columns of text that hold numbers or dates, as such.

    Values that cannot be read are noted, for the columns `told` only where a list is given.
    """
    numbers: list[tuple[str, str]] = []
    dates: list[tuple[str, str]] = []
    strange: dict[str, str] = {}
    changed: dict[str, pd.Series] = {}
    for name in frame.columns:
        column = frame[name]
        if not (pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)):
            continue
        texts = as_texts(column)
        read = as_numbers(texts)
        found = numbers
        if read is None:
            read, found = as_dates(texts), dates
        if read is None:
            if sum(t is None for t in texts) > column.isna().sum() or column.dtype == object:
                changed[name] = pd.Series(texts, index=frame.index, dtype=object)
            continue
        values, wrong = read
        example = next(t for t in texts if t is not None and t not in wrong)
        found.append((name, example))
        if wrong and (told is None or name in told):
            strange[name] = wrong[0]
        changed[name] = pd.Series(values, index=frame.index)
    for found, what in ((numbers, "numbers"), (dates, "dates")):
        if found:
            notes.append(f"text was read as {what} in {_examples(found)}")
    if strange:
        shown = _examples(list(strange.items()))
        notes.append(f"values unlike the rest of their column count as missing: {shown}")
    return frame.assign(**changed) if changed else frame


def _examples(pairs, most=4):
    shown = ", ".join(f"{name} ({value!r})" for name, value in pairs[:most])
    return shown + (f" and {len(pairs) - most} more columns" if len(pairs) > most else "")


def first_line(error):
    return str(error).strip().split("\n")[0][:200]
