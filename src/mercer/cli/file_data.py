"""Tables and matrices from files, made ready for kernels, with a word on all that was done."""

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.preprocessing import KernelCenterer

from .. import Kernel, OnColumns, Spectrum, TableEncoder
from ..export import harmless_value, write_output
from ..kernels import listed
from ..tables import BadInput, check_column, read_arrays
from .options import Reading

_TEXT_TABLES, _PARQUET = {".csv": ",", ".tsv": "\t"}, (".parquet", ".pq")
_SCALES = ("auto", "standard", "unit", "none")


@dataclass
class FileData:
    """Rows for a kernel, their target, and what was done on the way."""

    X: Any
    y: np.ndarray | None = None
    gram: bool = False
    shown: object = None  # what the page shows of a row
    image_shape: tuple | None = None
    notes: list[str] = field(default_factory=list)
    encoder: TableEncoder | None = None  # what turns the rows into numbers, unfitted
    kernels: dict | None = None  # what suits these rows where the user names none

    def numbers(self):
        """Rows as numbers: what a kernel sees; notes say what was done."""
        if self.encoder is None:
            return self.X
        Z = self.encoder.fit_transform(self.X)
        self.notes.extend(note.rstrip(".") for note in self.encoder.notes())
        if isinstance(Z, pd.DataFrame):
            return Z
        names = self.encoder.get_feature_names_out()
        return pd.DataFrame(np.asarray(Z), columns=names, index=self.X.index)


def read_data(
    path: str | Path,
    reading: Reading | None = None,
    kernels: dict[str, Kernel] | None = None,
    *,
    target: str | None = None,
    matrix: str | None = None,
    scale: str = "auto",
    image_shape: str | None = None,
):
    """A file as FileData. `matrix` is None, "gram" or "distance"; `image_shape`, as in 28x28."""
    reading, shape = reading or Reading(), None
    if image_shape is not None:
        parts = image_shape.lower().split("x")
        if len(parts) != 2 or not all(part.isdigit() and int(part) > 0 for part in parts):
            raise BadInput(f"--image-shape is written as 28x28, got {image_shape!r}.")
        shape = tuple(int(part) for part in parts)
    if scale not in _SCALES:
        raise BadInput(f"--scale must be one of {', '.join(_SCALES)}, got {scale!r}.")
    path = Path(path)
    if path.suffix == ".npz":
        return _from_npz(path, target, matrix, shape)
    frame, notes = reading.frame(path, target)
    if matrix is not None:
        data = _from_matrix(reading.without_names(frame), target, matrix)
        data.notes[:0] = notes
        return data
    named = list((kernels or {}).values())
    return _from_table(frame, reading, target, scale, named, shape, notes)


# --- formats --------------------------------------------------------------------------------------


def _from_npz(path, target, matrix, image_shape):
    found = read_arrays(path)
    data = next((found[n] for n in ("X", "x", "x_train", "data", "K", "arr_0") if n in found), None)
    if data is None:
        raise BadInput(f"{path.name} holds {', '.join(found)}; expected an array named X.")
    if target is not None and target not in found:
        raise BadInput(f"there is no array {target!r} in {path.name}; it holds {', '.join(found)}.")
    y = found.get(target or "y", found.get("y_train") if target is None else None)
    if data.dtype.kind not in "fiub":
        raise BadInput(f"the array in {path.name} holds {data.dtype}, not numbers.")
    if y is not None and y.shape != data.shape[:1]:
        raise BadInput(f"the target has shape {y.shape} for {data.shape[0]} rows.")
    if matrix is not None:
        return _gram_data(np.asarray(data, dtype=float), y, matrix)
    notes = []
    if data.ndim == 3 and image_shape is None:
        image_shape = data.shape[1:]
    if data.dtype == np.uint8:
        data = data / 255.0
        notes.append("bytes were scaled to the range 0 to 1")
    data = data.reshape(len(data), -1).astype(float)
    if not np.isfinite(data).all():
        raise BadInput(f"the array in {path.name} holds NaN or infinity.")
    return FileData(data, y, image_shape=image_shape, notes=notes)


def _from_matrix(frame, target, matrix):
    """A square table of numbers, with a column of names or classes where there is one."""
    y = _take_target(frame, target)
    if y is not None:
        frame = frame.drop(columns=target)
    if frame.shape[1] == len(frame) + 1:
        first = frame.columns[0]  # names of rows, as to_csv of pandas writes them: numbers, too
        if first == "column_1" or [*frame[first].astype(str)] == [*frame.columns[1:]]:
            frame = frame.astype({first: str})
    numbers = frame.select_dtypes("number")
    labels = frame.drop(columns=numbers.columns)
    if numbers.shape[0] != numbers.shape[1]:
        raise BadInput(
            f"a {matrix} matrix is square; this has {numbers.shape[0]} rows and "
            f"{numbers.shape[1]} columns of numbers."
        )
    data = _gram_data(numbers.to_numpy(dtype=float), y, matrix)
    data.shown = [str(v) for v in (labels.iloc[:, 0] if labels.shape[1] else numbers.columns)]
    return data


def _gram_data(M, y, matrix):
    if M.ndim != 2 or M.shape[0] != M.shape[1]:
        raise BadInput(f"a {matrix} matrix is square, got shape {M.shape}.")
    if not np.isfinite(M).all():
        raise BadInput(f"the {matrix} matrix holds NaN or infinity.")
    if np.abs(M - M.T).max() > 1e-8 * np.abs(M).max():
        raise BadInput(
            f"the {matrix} matrix is not symmetric: entries differ by {np.abs(M - M.T).max():.3g}."
        )
    if matrix != "distance":
        return FileData(M, y, gram=True)
    if M.min() < 0 or np.abs(np.diagonal(M)).max() > 1e-8 * np.abs(M).max():
        raise BadInput("distances must be non-negative, and zero between a point and itself.")
    B = KernelCenterer().fit_transform(-0.5 * M**2)  # -1/2 H D2 H: [MDS] 1.2
    note = "distances were turned into inner products (classical scaling)"
    return FileData((B + B.T) / 2, y, gram=True, notes=[note])


# --- tables ---------------------------------------------------------------------------------------


def check_target(frame: pd.DataFrame, target: str, notes: Sequence[str] = ()):
    """The column to predict, refused where nothing can be learned of it."""
    check_column(frame, target, notes)
    y = frame[target]
    if y.isna().all():
        raise BadInput(f"the target {target!r} has no values.")
    if y.dtype.kind == "M":
        raise BadInput(f"the target {target!r} holds dates: predict a number or a class instead.")
    return y


def _take_target(frame, target, notes=()):
    if target is None:
        return None
    y = check_target(frame, target, notes)
    if pd.api.types.is_bool_dtype(y) or not pd.api.types.is_numeric_dtype(y):
        texts = y.astype(object).where(y.notna(), None)
        return texts.map(lambda v: None if v is None else str(v)).to_numpy(dtype=object)
    return y.to_numpy(dtype=float) if y.isna().any() else y.to_numpy()


def _from_table(frame, reading, target, scale, kernels, image_shape, notes):
    y = _take_target(frame, target, notes)
    table = frame.drop(columns=[target]) if target is not None else frame
    if not table.shape[1]:
        raise BadInput("the table has no column besides the target: add columns to predict from.")
    if image_shape:
        # Pixels are comparable as they are; columns of other kinds are not pixels.
        pixels = reading.without_names(table).select_dtypes("number").astype(float)
        return FileData(pixels, y, image_shape=image_shape, notes=notes)
    column = _the_column(reading.without_names(table), kernels, notes)
    if column is not None:
        X = without_gaps(table[[column]])
        usual = [Spectrum(length, normalize=True) for length in (2, 3, 4, 5)]
        return FileData(X, y, shown=X, notes=notes, kernels={repr(k): k for k in usual})
    if scale == "auto" and any(kernel.non_negative_only for kernel in kernels):
        notes.append("columns were left as they are: a kernel here needs counts")
        scale = "none"
    scale = "standard" if scale == "auto" else scale
    encoder = TableEncoder(scale=scale, **reading.roles)
    if any(kernel.kind == "table" for kernel in kernels):
        # These kernels ask for columns by name, and for columns of texts as they are.
        encoder.set_params(keep=_kept(table, kernels))
    return FileData(table, y, shown=table, notes=notes, encoder=encoder)


def without_gaps(texts: pd.DataFrame) -> pd.DataFrame:
    """Columns as texts, the empty one where a value is missing."""
    return texts.astype(object).where(texts.notna(), "").map(str)


# --- writing --------------------------------------------------------------------------------------


def _harmless(frame: pd.DataFrame):
    """Texts that a spreadsheet would run as a formula get an apostrophe in front."""
    safe = frame.rename(columns=harmless_value)
    for j, dtype in enumerate(frame.dtypes):
        if not pd.api.types.is_numeric_dtype(dtype):
            safe.isetitem(j, frame.iloc[:, j].map(harmless_value))
    return safe


def check_outputs(
    inputs: Sequence[Path], outputs: Sequence[Path | None], table: Path | None = None
):
    """Before the work, not after it: folders exist, and no file is written over another one.

    `table` is an output of :func:`write`.
    """
    taken, outputs = [Path(path) for path in inputs if str(path) != "-"], [*outputs, table]
    for path in (Path(path) for path in outputs if path is not None):
        if not path.parent.is_dir():
            raise BadInput(f"there is no folder {str(path.parent)!r} for {path.name}.")
        if path.is_dir():
            raise BadInput(f"{path} is a folder: name a file in it.")
        same = (
            path.is_file() and os.path.samefile(path, other)
            if path.exists() and other.exists()
            else os.path.realpath(path) == os.path.realpath(other)
            for other in taken
        )
        if any(same):
            raise BadInput(
                f"{path} would be written over a file that this command reads or writes: give the "
                "output another name."
            )
        taken.append(path)
    if table is not None and table.suffix.lower() not in (*_TEXT_TABLES, *_PARQUET):
        raise BadInput(f"cannot write {table.name}: use .csv, .tsv or .parquet.")


def write(frame: pd.DataFrame, path: str | Path):
    """A frame as csv, tsv or parquet, by the name of the file; whole, or not at all.

    Returns notes on texts that were changed.
    """
    notes = []
    path, content = Path(path), io.BytesIO()
    check_outputs([], [], path)
    if path.suffix.lower() in _PARQUET:
        frame.to_parquet(content, index=False)
    else:
        safe = _harmless(frame)
        changed = [
            new
            for j, dtype in enumerate(safe.dtypes)
            if not pd.api.types.is_numeric_dtype(dtype)
            for old, new in zip(frame.iloc[:, j], safe.iloc[:, j])
            if isinstance(new, str) and len(new) > len(str(old))
        ]
        if changed:
            notes.append(
                "texts that a spreadsheet would run have an apostrophe in front, such as "
                f"{changed[0]!r} ({len(changed)} in all; .parquet keeps texts as they are)"
            )
        safe.to_csv(content, index=False, sep=_TEXT_TABLES[path.suffix.lower()])
    write_output(path, content.getbuffer())
    return notes


# --- columns of text for kernels on strings -------------------------------------------------------

# Rows that are looked at to see what kind of columns a table has.
_LOOKED_AT = 1000
# One column of texts is meant where its texts are so many times longer than all others.
_LONGER = 3.0


def _the_column(table, kernels, notes):
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
    # The column that is meant: the only one, or the one whose texts are far longer.
    lengths = [float(np.median(table[name].dropna().map(str).map(len))) for name in columns]
    order = np.argsort(lengths)[::-1]
    column = columns[order[0]]
    if len(columns) > 1 and lengths[order[0]] < _LONGER * lengths[order[1]]:
        raise BadInput(
            f"{on_objects[0]!r} compares texts, and several columns hold text: "
            f"{', '.join(columns[:8])}. Say which is meant: "
            f'-k "OnColumns({on_objects[0]!r}, {column!r})".'
        )
    left_out = [str(name) for name in table.columns if name != column]
    if left_out:
        notes.append(
            f"the kernels compare the texts of {column!r}; the other columns were left out: "
            f"{listed(left_out)}"
        )
    return column


def _text_columns(table):
    """Columns that hold text; numbers and dates were read as such before."""
    return [
        name
        for name, dtype in zip(table.columns, table.dtypes)
        if (dtype.kind == "O" or pd.api.types.is_string_dtype(dtype)) and table[name].notna().any()
    ]


def _kept(table, kernels):
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


def _only_information(table, notes):
    """The column of text that is all that a table has; a note on texts beside other columns."""
    if not _text_columns(table):
        return None
    try:
        records = TableEncoder().fit(table.head(_LOOKED_AT)).columns_
    except ValueError:  # nothing in the table is informative: said later, with the reason
        return None
    useful = [record for record in records if record["outputs"]]
    written = [record["name"] for record in useful if record["kind"] == "text"]
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
