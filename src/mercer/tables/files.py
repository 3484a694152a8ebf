"""read_table: a file of almost any make as a frame, with notes on how it was read."""

from __future__ import annotations

import bz2
import csv
import difflib
import gzip
import io
import json
import lzma
import os
import re
import sys
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..engine import Domain
from .decisions import IDENTIFIED
from .encoder import TableEncoder
from .given import BadInput
from .notes import DATE, in_rows
from .parse_numbers import TextColumn, read_numbers
from .parse_text import MISSING, as_texts
from .reading import Notation
from .typed import is_decimal, typed_frame

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", r"\s+": "spaces"}
_PACKED = (".gz", ".bz2", ".xz", ".zip")
_TEXTS = (".csv", ".tsv", ".tab", ".txt", ".dat", ".data")
PARQUET, JSON = (".parquet", ".pq"), (".jsonl", ".ndjson", ".json")
_KNOWN = "csv, tsv, txt, xlsx, json, jsonl, parquet (also packed as gz, bz2, xz or zip)"
_MISSING_TEXTS = sorted({m for t in MISSING for m in (t, t.upper(), t.capitalize())})
# A field between spaces or tabs, quoted or not.
_SPACED = re.compile(r'"[^"]*"|[^ \t]+')
# The first line that spreadsheets write and read to say what separates columns: "sep=;".
_SEP_LINE = re.compile(r'"?sep=([^\r\n])"?[^\S\r\n]*[\r\n]+', re.I)
# A line of a single column of numbers.
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d[\d.]*(?:,\d+)?\s*")
# Arguments of read_table; a TableEncoder knows the others.
_TEXT = Domain(lambda value: isinstance(value, str | None), "a str or None", error=TypeError)
_PATH = Domain(lambda v: isinstance(v, str | os.PathLike), "a str or a Path", error=TypeError)
_FITTED = Domain(lambda v: v is None or hasattr(v, "columns_"), "a fitted TableEncoder or None")
# Lines that are looked at to find the separator and the header.
_LOOKED_AT = 200
# A file may unpack to this many bytes, or to RATIO times its own size: tables shrink by 3 to 30.
UNPACKED, RATIO = 1 << 28, 100


def read_table(
    path: str | Path,
    *,
    target: str | None = None,
    sep: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    dayfirst: bool | None = None,
    number: Sequence[str] | None = None,
    category: Sequence[str] | None = None,
    like: TableEncoder | None = None,
) -> tuple[pd.DataFrame, list[str]]:
    """A table from a file, as the commands of mercer read it: the frame, and notes on its reading.

    Separator and encoding are found where they are not given. Values such as "?" and "NA" are
    missing; "1,200", "$5" and "12%" become numbers, and dates become dates. What means different
    things in different countries ("1,234", "01/02/2012") is read by the evidence of the whole file,
    and the notes show how. Units or kinds of columns below the header are not a row. Columns are
    never shifted: a line that does not fit its header is an error that names the line.

    Parameters
    ----------
    path : str or Path
        csv, tsv, xlsx, json, jsonl or parquet, also packed; "-" is standard input.
    target : str or None
        The column to predict. There, a frequent "None" or "-" is a class, and not a gap.
    sep, encoding : str or None
        Found where they are not given.
    decimal : {".", ","} or None
        The decimal mark.
    dayfirst : bool or None
        Whether 01/02/2012 is in February.
    number, category : lists of str or None
        Columns that are such, whatever they look like. The dtype of the latter is "category", so
        that every model takes them so.
    like : TableEncoder or None
        A fitted encoder: its columns stay as they are written, for the encoder to read as it read
        those of its training table.

    Returns
    -------
    frame : DataFrame
        ``frame.attrs["formats"]`` says how texts were read; a model keeps it for new rows.
    notes : list of str

    Examples
    --------
    >>> import tempfile
    >>> from mercer import read_table
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv", delete=False) as file:
    ...     _ = file.write("size;price\\n1,5;1.200 €\\n2,25;950 €\\n")
    >>> frame, notes = read_table(file.name)
    >>> frame["price"].tolist()
    [1200.0, 950.0]
    """
    for argument, value in {"target": target, "sep": sep, "encoding": encoding}.items():
        _TEXT(argument, value)
    _PATH("path", path)
    _FITTED("like", like)
    encoder = TableEncoder(decimal=decimal, dayfirst=dayfirst, number=number, category=category)
    Domain.check(encoder)
    number, category = number or (), category or ()
    if not str(path):
        raise BadInput("path is empty: name a csv, tsv, xlsx, json, jsonl or parquet file.")
    name, kind, content = _content(path)
    notes: list[str] = []
    separator = None
    with _errors_of_readers("read", name):
        if kind in PARQUET:
            with suppress(ImportError):  # another reader of pandas's, or its message
                _check_parquet(content, name)
            frame = pd.read_parquet(io.BytesIO(content))
        elif kind in (".xlsx", ".xls", ".xlsm"):
            frame = _from_sheets(content, name, notes)
        elif kind in JSON:
            frame = _from_json(content, encoding, kind)
        elif kind in _TEXTS:
            records = [] if like is None else like.columns_
            written = {r["name"] for r in records if r["kind"] == DATE}  # "10.2020", too
            written |= {target, *category}
            frame, separator = _from_text(content, sep, encoding, notes, written)
        else:
            raise BadInput(f"{name}: unknown kind of file; known: {_KNOWN}.")
    if frame.empty:
        raise BadInput(f"{name} has no rows.")
    if 2 * sum(str(name).startswith("Unnamed: ") for name in frame.columns) > frame.shape[1]:
        notes.append("most columns have no name: is the header of the table further down?")
    frame = _renamed(frame, notes)
    if kind not in PARQUET + JSON:
        frame = _below_headers(frame, notes)
    for asked in (*number, *category):
        check_column(frame, asked, notes)
    reading = Notation(decimal, dayfirst, number, category, separator)
    return typed_frame(frame, reading, target, like, notes), notes


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a .npz file; refused where they unpack to far more than the file has."""
    if not path.is_file():
        raise BadInput(f"the file {str(path)!r} does not exist.")
    with _errors_of_readers("read", path.name):
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        _check_unpacked(size, path.stat().st_size, path.name)
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}


@contextmanager
def _errors_of_readers(verb, name):
    """Every reader has errors of its own for broken files: told in one line."""
    try:
        yield
    except BadInput:
        raise
    except ImportError as error:
        raise BadInput(f"{name}: {error}") from None
    except Exception as error:
        raise BadInput(f"cannot {verb} {name}: {_first_line(error)}") from None


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
        missing = f"the file {str(path)!r} does not exist."
        raise BadInput(f"{path} is not a file." if path.exists() else missing)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packing = suffixes.pop() if suffixes and suffixes[-1] in _PACKED else None
    with _errors_of_readers("unpack", path.name):
        content = _unpacked(path.read_bytes(), packing, path.name)
    if not content.strip():
        raise BadInput(f"{path.name} is empty.")
    return path.name, suffixes[-1] if suffixes else _kind_of(content), content


def _unpacked(content, packing, name):
    if packing is None:
        return content
    opened: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(packing)
    packed: Any = io.BytesIO(content)
    if opened is None:
        archive = zipfile.ZipFile(packed)
        # Archives made on a Mac hold a hidden file beside each file.
        named = (f for f in archive.namelist() if not f.startswith("__MACOSX/"))
        files = [f for f in named if not f.endswith(("/", ".DS_Store"))]
        if len(files) != 1:
            raise ValueError(f"it holds {len(files)} files; one is expected")
        opened, packed = archive.open, files[0]
    with opened(packed) as file:
        unpacked = file.read(max(UNPACKED, RATIO * len(content)) + 1)
    _check_unpacked(len(unpacked), len(content), name)
    return unpacked


def _check_unpacked(unpacked, packed, name):
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


def _check_parquet(content, name):
    """Refuse what would not fit, and columns of lists."""
    from pyarrow import compute, parquet, types

    file = parquet.ParquetFile(io.BytesIO(content))
    about, schema = file.metadata, file.schema_arrow
    for field in schema:
        if types.is_nested(field.type):
            raise _nested(field.name)
    stored = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    _check_unpacked(max(stored, 8 * about.num_rows * about.num_columns), len(content), name)
    # A text that is repeated stands in the file once, and in a column once per row.
    texts = [f.name for f in schema if types.is_string(f.type) or types.is_large_string(f.type)]
    distinct = parquet.read_table(io.BytesIO(content), columns=texts, read_dictionary=texts)
    written = 0
    for chunk in (c for column in distinct.columns for c in column.chunks):
        sizes = compute.binary_length(chunk.dictionary)
        written += compute.sum(compute.take(sizes, chunk.indices)).as_py() or 0
    _check_unpacked(stored + written, len(content), name)


def _from_sheets(content, name, notes):
    if zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        _check_unpacked(size, len(content), name)
        with suppress(ImportError):  # said below
            _check_unpacked(_size_of_texts(content, size), len(content), name)
    try:
        sheets = pd.read_excel(
            io.BytesIO(content), sheet_name=None, keep_default_na=False, na_values=[""]
        )
    except ImportError:
        old = not zipfile.is_zipfile(io.BytesIO(content))
        needs = "xlrd: pip install xlrd" if old else "openpyxl: pip install 'mercer[cli]'"
        raise BadInput(f"reading this sheet needs {needs} (or save the sheet as csv).") from None
    full = {name: sheet for name, sheet in sheets.items() if not sheet.empty}
    if not full:
        raise BadInput("no sheet holds a table.")
    sheet, frame = next(iter(full.items()))
    if len(full) > 1:
        notes.append(f"the first of {len(full)} sheets was read: {sheet!r}")
    return frame


def _size_of_texts(content, size):
    """Characters of all cells, or fewer than matter: a text of several cells is stored once."""
    import openpyxl
    from openpyxl.packaging.manifest import Manifest
    from openpyxl.reader.strings import read_string_table
    from openpyxl.xml.constants import ARC_CONTENT_TYPES, SHARED_STRINGS
    from openpyxl.xml.functions import fromstring

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = Manifest.from_tree(fromstring(archive.read(ARC_CONTENT_TYPES)))
        shared = parts.find(SHARED_STRINGS)
        texts = read_string_table(archive.open(shared.PartName[1:])) if shared else []
    longest = max(map(len, texts), default=0)
    if longest * size / len("<c><v>0</v></c>") <= UNPACKED:
        return 0
    book = openpyxl.load_workbook(io.BytesIO(content), read_only=True)
    for sheet in book.worksheets:
        sheet.reset_dimensions()  # which the file may state too small
    rows = (row for sheet in book.worksheets for row in sheet.iter_rows(values_only=True))
    return sum(len(value) for row in rows for value in row if isinstance(value, str))


def _from_json(content, encoding, kind):
    text = _decoded(content, encoding, [])
    if kind == ".json" and text.lstrip().startswith("["):
        frame = pd.DataFrame(json.loads(text))
    else:
        frame = pd.DataFrame([json.loads(line) for line in _lines(text) if line.strip()])
    nested = [c for c in frame.columns if frame[c].map(lambda v: isinstance(v, (dict, list))).any()]
    if nested:
        raise _nested(nested[0])
    return frame


def _nested(name):
    return BadInput(f"column {name!r} holds objects, not values: flatten the file first.")


def _from_text(content, sep, encoding, notes, kept):
    text = _decoded(content, encoding, notes)
    told = _SEP_LINE.match(text)
    if told:
        text, sep = text[told.end() :], sep or told[1]
    sep = {"tab": "\t", "\\t": "\t", "space": r"\s+", " ": r"\s+"}.get(sep, sep)
    lines = list(islice(_lines(text), _LOOKED_AT))
    if sep is None and "," not in lines[0] and any("," in line for line in lines):
        sep = "\t" if all(map(_DECIMAL_COMMA.fullmatch, lines[1:])) else None  # one column
    if sep is None:
        sep = _separator(lines)
        if sep not in (",", None):
            notes.append(f"columns are separated by {_SEPARATORS[sep]}")
        sep = sep or ","
    elif len(sep) != 1 and sep != r"\s+":
        raise BadInput(f"--sep must be one character, 'tab' or 'space', got {sep!r}.")
    header, *body = _fields(lines, sep)
    body = body[:-1] if len(lines) == _LOOKED_AT else body  # the last row may go on
    width, sizes = len(header), {len(row) for row in body}
    names, after = None, "(after the last separator)"
    headless = _is_data(header, body)
    if headless:
        names = [f"column_{j + 1}" for j in range(width)]
        notes.append("the file has no header: columns are called column_1, column_2 and so on")
    elif width + 1 in sizes and all(len(row) <= width or row[width:] == [""] for row in body):
        names = [*header, after]
        notes.append("separators at the ends of the lines were ignored")
    elif sizes == {width + 1}:
        names = ["row name", *header]
        notes.append("the header is one name short: the first column was read as row names")
    short = next((i for i, row in enumerate(body, 2) if len(row) < width), None)
    if short is not None:
        notes.append(
            f"line {short} and perhaps others have fewer than {width} values: the rest is missing"
        )
    expected = len(names or header)
    for number, row in enumerate(body, 2):
        if len(row) > expected:
            raise _too_long(number, len(row), expected)
    common: dict[str, Any] = {"sep": sep, "engine": "c", "skipinitialspace": True}
    common |= {"names": names, "header": None if headless else 0, "index_col": False}
    common["keep_default_na"] = False
    content = text.encode()  # a quarter of what StringIO takes
    frame = pd.read_csv(io.BytesIO(content), na_values=_MISSING_TEXTS, low_memory=False, **common)
    # Numbers that pandas reads may be codes, or mean something else in this file: "1.167".
    between = re.escape(sep) if len(sep) == 1 else ""
    codes = re.search(rf'(?:^|["\s{between}])0\d', text, re.M) is not None
    unclear = [
        j
        for j, (name, column) in enumerate(frame.items())
        if name in kept or _needs_text(column, codes)
    ]
    if unclear:
        common |= {"dtype": str, "na_values": [""], "usecols": unclear}
        texts = pd.read_csv(io.BytesIO(content), **common)
        for k, j in enumerate(unclear):
            frame.isetitem(j, texts.iloc[:, k])
    if names is not None and names[-1] == after:
        over = np.flatnonzero(frame.pop(after).notna())
        if len(over):  # further down than was looked
            raise _too_long(over[0] + 2, expected, width)
    return frame, sep


def _too_long(line, n, n_columns):
    return BadInput(
        f"line {line} has {n} values for {n_columns} columns: put values that hold a separator "
        "into quotes, or give the right one with --sep."
    )


def _needs_text(column, codes):
    """Whether the texts of a column say more than the numbers that pandas makes of them."""
    if column.dtype.kind in "iu":
        return codes
    if column.dtype.kind != "f":
        return column.dtype.kind != "b"
    x = column.to_numpy()
    x = x[np.isfinite(x)]
    return codes or not len(x) or not is_decimal(x)


def _decoded(content, encoding, notes):
    if encoding is not None:
        try:
            return content.decode(encoding).removeprefix("\ufeff")
        except LookupError:
            raise BadInput(f"--encoding {encoding!r} is not known; try utf-8 or latin-1.") from None
        except UnicodeDecodeError as error:
            raise BadInput(f"the file is not {encoding}: {_first_line(error)}.") from None
    beginning = content[:2000]
    first, second = beginning[0::2].count(0), beginning[1::2].count(0)
    marked = content[:2] in (b"\xff\xfe", b"\xfe\xff")
    # Line ends and separators have one zero byte.
    if marked or max(first, second) > 20 * min(first, second):
        notes.append("the text is UTF-16")
        order = "" if marked else "-be" if first > second else "-le"
        return content.decode(f"utf-16{order}")
    with suppress(UnicodeDecodeError):
        return content.decode("utf-8-sig")
    if b"\x00" in beginning:
        raise BadInput("this is not a text file: it holds zero bytes.")
    notes.append("the text was read as Windows-1252 (--encoding changes that)")
    with suppress(UnicodeDecodeError):
        return content.decode("cp1252")
    return content.decode("latin-1")


def _separator(lines):
    """The character that cuts most lines into the same number of parts, more than one."""
    best = None
    for sep in _SEPARATORS:
        if len(sep) == 1 and not any(sep in line for line in lines):
            continue
        sizes = [len(row) for row in _fields(lines, sep)]
        size, often = Counter(sizes).most_common(1)[0]
        agree = often / len(sizes) + (0.5 if sizes[0] == size else 0.0)
        # Spaces stand inside of values, too: they separate where nothing else fits header and rows.
        spaces = sep == r"\s+"
        if size < 2 or (spaces and best is not None and (agree < 1.5 or best[0] >= 1.25)):
            continue
        if spaces and sizes[0] == 1 and size > 2:  # one column, of texts such as "1 Nov 2003"
            continue
        if best is None or (agree, size) > best[:2]:
            best = (agree, size, sep)
    return None if best is None else best[2]


def _lines(text):
    """Lines as csv and JSON end them; str.splitlines also cuts at U+2028, form feeds and others."""
    return (line[0] for line in re.finditer(r"[^\r\n]+", text))


def _fields(lines, sep):
    lines = [line for line in lines if line.strip()]
    if sep == r"\s+":
        return [[f.strip('"') for f in _SPACED.findall(line)] for line in lines]
    usual = csv.field_size_limit(2**31 - 1)  # a text may be long, and so is a line without this sep
    try:
        rows = list(csv.reader(lines, delimiter=sep, skipinitialspace=True))
    finally:
        csv.field_size_limit(usual)
    return [[field.strip() for field in row] for row in rows]


def _is_data(header, body):
    """Whether the first line is a row: most of its fields are numbers, and do not count columns."""
    if not body or (not header[0] and all(row[0] for row in body if row)):
        return False
    numbers = _numbers(header)
    each = [_numbers([f]) for f in header if f]
    values = [read.values[0] for read in each if read is not None]
    if numbers is None and len(values) <= len(header) / 2:
        return False
    if values in (list(range(len(values))), list(range(1, len(values) + 1))):
        return False
    steps = np.diff(values)
    if len(values) > 4 and steps[0] != 0 and np.ptp(steps) <= 1e-6 * np.abs(values).max():
        return False  # steps of one size: the wavelengths of a spectrum, the hours of a day
    for j, name in enumerate(as_texts(header)):
        if name is not None and _numbers([name]) is None:
            below = _numbers(row[j] for row in body if j < len(row))
            if below is not None and not below.wrong:
                return False  # a text above a column of numbers only names it
    years = all(v == int(v) and 1800 <= v <= 2100 for v in values if np.isfinite(v))
    return not (years and len(set(values)) == len(values))


def _numbers(texts):
    """Texts as numbers without a unit; None where they are not."""
    read = read_numbers(TextColumn(as_texts(texts)))
    return None if read is None or read.format.unit or read.format.time else read


# --- columns --------------------------------------------------------------------------------------


def _renamed(frame, notes):
    """Names that are texts, not empty and different from each other."""
    # "é" may be one character or two: what looks the same is the same name.
    given = [unicodedata.normalize("NFC", str(name)).strip() for name in frame.columns]
    names: dict[str, None] = {}
    before, repeated = set(), []
    for place, name in enumerate(given, 1):
        # pandas writes "Unnamed: 3" for an empty name, and "a.1" for the second "a".
        name = f"column_{place}" if name.startswith("Unnamed: ") or not name else name
        base, _, number = name.rpartition(".")
        if number.isdigit() and base in before:
            repeated.append(base)
        before.add(given[place - 1])
        while name in names:
            repeated.append(name)
            name = f"{name}.2"
        names[name] = None
    if repeated:
        shown = ", ".join(dict.fromkeys(repeated))
        notes.append(f"columns with the same name got a number: {shown}")
    return frame.set_axis(list(names), axis=1)


def _below_headers(frame, notes):
    """Without rows that go on the header: units, or kinds of columns as Orange writes them.

    Such a row has no number and no date, texts in two columns of these at least, and no word that
    other rows have; so may the next row.
    """
    texts = {
        name: as_texts(frame[name].iloc[:_LOOKED_AT])
        for name in frame.columns
        if frame[name].dtype.kind not in "fiubM"
    }
    # Without a word above digits, in two columns, nothing needs to be read for this.
    digits = {
        name: [any(map(str.isdigit, text or "")) for text in (values[0], *values[2:5])]
        for name, values in texts.items()
        if len(values) > 2 and values[0]
    }
    if len(frame) <= IDENTIFIED or sum(any(d) and not d[0] for d in digits.values()) < 2:
        return frame
    read = Notation().columns({name: values[2:] for name, values in texts.items()})
    others = [name for name in frame.columns if name not in texts]

    def strange(i):
        """Columns with a text that is unlike the rest; None where this is a row of values."""
        known = {name: texts[name][i] for name in read if texts[name][i] is not None}
        unlike = [name for name, text in known.items() if read[name].format.parse(text) is None]
        values = len(unlike) < len(known) or frame[others].iloc[i].notna().any()
        words = (t[i] in t[2:] for n, t in texts.items() if n not in read and t[i] is not None)
        return None if values or any(words) else unlike

    first = strange(0)
    if first is None or len(first) < 2:
        return frame
    size = 2 if strange(1) is not None else 1
    shown = " and ".join(f"{texts[name][0]!r} in {name}" for name in first[:2])
    notes.append(
        f"{in_rows(size)} below the header {'was' if size == 1 else 'were'} left out: {shown} are "
        "not values"
    )
    return frame.iloc[size:].reset_index(drop=True)


def check_column(frame: pd.DataFrame, target: str, notes: Iterable[str] = ()) -> None:
    """Refuse a column that the table does not have, and say what may be meant."""
    if target in frame.columns:
        return
    near = difflib.get_close_matches(target, frame.columns, n=1, cutoff=0.6)
    same = [name for name in frame.columns if name.lower() == target.lower()]
    hint = f" Did you mean {(same or near)[0]!r}?" if same or near else ""
    if any("no header" in note for note in notes):
        hint = " The first line was read as a row: names of columns are texts, not numbers."
    shown = ", ".join(map(str, frame.columns[:12])) + (", …" if frame.shape[1] > 12 else "")
    raise BadInput(f"there is no column {target!r}; the columns are: {shown}.{hint}")


def _first_line(error):
    return str(error).strip().split("\n")[0][:200]
