"""Tables and matrices from files, made ready for kernels, with a word on all that was done."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from ..kernels import Chi2, Intersection
from .errors import BadInput

# Text columns with at most this many different values become one 0/1 column each.
MOST_CATEGORIES = 20
SCALES = ("auto", "standard", "unit", "none")


@dataclass
class Data:
    """Rows for a kernel, their target, and what was done on the way."""

    X: object
    y: np.ndarray | None = None
    gram: bool = False
    shown: object = None  # what the page shows of a row
    image_shape: tuple | None = None
    notes: list[str] = field(default_factory=list)


def read(path, *, target=None, matrix=None, scale="auto", kernels=(), image_shape=None):
    """A file as Data. `matrix` is None, "gram" or "distance"."""
    if scale not in SCALES:
        raise BadInput(f"--scale must be one of {', '.join(SCALES)}, got {scale!r}.")
    path = Path(path)
    if not path.is_file():
        raise BadInput(f"no file {str(path)!r}." if not path.exists() else f"{path} is no file.")
    if path.suffix == ".npz":
        return _from_npz(path, target, matrix, image_shape)
    frame = _frame(path)
    if matrix is not None:
        return _from_matrix(frame, target, matrix)
    return _from_table(frame, target, scale, kernels, image_shape)


# --- formats --------------------------------------------------------------------------------------


def _frame(path):
    suffixes = [s.lower() for s in path.suffixes]
    kind = (
        suffixes[-2] if suffixes and suffixes[-1] in (".gz", ".bz2", ".xz", ".zip") else path.suffix
    )
    try:
        if kind.lower() in (".parquet", ".pq"):
            frame = pd.read_parquet(path)
        elif kind.lower() in (".csv", ".tsv", ".tab", ".txt"):
            separator = "," if kind.lower() == ".csv" else None if kind.lower() == ".txt" else "\t"
            engine = "python" if separator is None else "c"
            frame = pd.read_csv(path, sep=separator, engine=engine)
        else:
            raise BadInput(f"{path.name}: unknown kind of file; known: csv, tsv, parquet, npz.")
    except BadInput:
        raise
    except ImportError as error:
        raise BadInput(f"{path.name}: {error}") from None
    except Exception as error:  # pandas and pyarrow raise whatever they please on broken files
        raise BadInput(f"cannot read {path.name}: {_first_line(error)}") from None
    if frame.empty:
        raise BadInput(f"{path.name} has no rows.")
    frame.columns = [str(name) for name in frame.columns]
    return frame


def _from_npz(path, target, matrix, image_shape):
    try:
        with np.load(path, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    except (ValueError, OSError) as error:
        raise BadInput(f"cannot read {path.name}: {_first_line(error)}") from None
    data = next((found[n] for n in ("X", "x", "x_train", "data", "K", "arr_0") if n in found), None)
    if data is None:
        raise BadInput(f"{path.name} holds {', '.join(found)}; expected an array named X.")
    if target is not None and target not in found:
        raise BadInput(f"no array {target!r} in {path.name}; it holds {', '.join(found)}.")
    y = found.get(target or "y", found.get("y_train") if target is None else None)
    if data.dtype.kind not in "fiub":
        raise BadInput(f"the array in {path.name} holds {data.dtype}, not numbers.")
    if y is not None and y.shape != data.shape[:1]:
        raise BadInput(f"the target has shape {y.shape} for {data.shape[0]} rows.")
    if matrix is not None:
        K, note = _gram_of(np.asarray(data, dtype=float), matrix)
        return Data(K, y, gram=True, notes=[note] if note else [])
    notes = []
    if data.ndim == 3 and image_shape is None:
        image_shape = data.shape[1:]
    if data.dtype == np.uint8:
        data = data / 255.0
        notes.append("bytes were scaled to the range 0 to 1")
    data = data.reshape(len(data), -1).astype(float)
    if not np.isfinite(data).all():
        raise BadInput(f"the array in {path.name} holds NaN or infinity.")
    return Data(data, y, image_shape=image_shape, notes=notes)


def _from_matrix(frame, target, matrix):
    """A square table of numbers, with a column of names or classes where there is one."""
    y = _take_target(frame, target)
    if y is not None:
        frame = frame.drop(columns=target)
    numbers = frame.select_dtypes("number")
    labels = frame.drop(columns=numbers.columns)
    if numbers.shape[0] != numbers.shape[1]:
        raise BadInput(
            f"a {matrix} matrix is square; this has {numbers.shape[0]} rows and "
            f"{numbers.shape[1]} columns of numbers."
        )
    K, note = _gram_of(numbers.to_numpy(dtype=float), matrix)
    shown = [str(v) for v in (labels.iloc[:, 0] if labels.shape[1] else numbers.columns)]
    return Data(K, y, gram=True, shown=shown, notes=[note] if note else [])


def _gram_of(M, matrix):
    if M.ndim != 2 or M.shape[0] != M.shape[1]:
        raise BadInput(f"a {matrix} matrix is square, got shape {M.shape}.")
    if not np.isfinite(M).all():
        raise BadInput(f"the {matrix} matrix holds NaN or infinity.")
    if np.abs(M - M.T).max() > 1e-8 * np.abs(M).max():
        raise BadInput(
            f"the {matrix} matrix is not symmetric: entries differ by {np.abs(M - M.T).max():.3g}."
        )
    if matrix == "gram":
        return M, None
    if M.min() < 0 or np.abs(np.diagonal(M)).max() > 1e-8 * np.abs(M).max():
        raise BadInput("distances must be non-negative, and zero between a point and itself.")
    # B = -1/2 H D2 H: [MDS] 1.2.
    D2 = M**2
    B = -0.5 * (D2 - D2.mean(0) - D2.mean(1)[:, None] + D2.mean())
    return (B + B.T) / 2, "distances were turned into inner products (classical scaling)"


# --- tables ---------------------------------------------------------------------------------------


def _take_target(frame, target):
    if target is None:
        return None
    if target not in frame.columns:
        shown = ", ".join(map(str, frame.columns[:12])) + (", …" if frame.shape[1] > 12 else "")
        raise BadInput(f"no column {target!r}; the columns are: {shown}.")
    y = frame[target]
    if pd.api.types.is_bool_dtype(y) or not pd.api.types.is_numeric_dtype(y):
        return y.astype(object).where(y.notna(), None).map(_text).to_numpy(dtype=object)
    return y.to_numpy(dtype=float) if y.isna().any() else y.to_numpy()


def _text(value):
    return None if value is None else str(value)


def _from_table(frame, target, scale, kernels, image_shape):
    notes: list[str] = []
    y = _take_target(frame, target)
    table = frame.drop(columns=[target]) if target is not None else frame
    columns: dict[str, pd.Series] = {}
    for name in table.columns:
        columns |= _numbers(name, table[name], notes)
    if not columns:
        raise BadInput("no column holds numbers or a few categories: nothing for a kernel to see.")
    X = pd.DataFrame(columns, index=table.index).astype(float)
    constant = [name for name in X.columns if X[name].nunique() <= 1]
    if constant and len(constant) < X.shape[1] and image_shape is None:
        X = X.drop(columns=constant)
        notes.append(f"constant columns were left out: {_few(constant)}")
    X = _scaled(X, scale, kernels, notes, image_shape)
    return Data(X, y, shown=None if image_shape else table, image_shape=image_shape, notes=notes)


def _numbers(name, column, notes):
    """One column as zero or more columns of numbers."""
    if pd.api.types.is_bool_dtype(column):
        return {name: column.astype(float)}
    if pd.api.types.is_numeric_dtype(column):
        column = column.astype(float)
        if np.isinf(column).any():
            raise BadInput(f"column {name!r} holds infinity.")
        missing = int(column.isna().sum())
        if missing == len(column):
            notes.append(f"{name!r} is empty and was left out")
            return {}
        if missing:
            notes.append(f"{missing} missing in {name!r} became the median")
            column = column.fillna(column.median())
        return {name: column}
    column = column.astype(object).where(column.notna(), "missing").map(str)
    categories = sorted(column.unique())
    if len(categories) > MOST_CATEGORIES or len(categories) < 2:
        notes.append(f"text in {name!r} ({len(categories)} different values) was left out")
        return {}
    notes.append(f"text in {name!r} became {len(categories)} columns of 0 and 1")
    return {f"{name}={value}": (column == value).astype(float) for value in categories}


def _scaled(X, scale, kernels, notes, image_shape):
    if scale == "auto":
        histogram = any(_has_histogram(kernel) for kernel in kernels)
        scale = "none" if histogram or image_shape else "standard"
        if histogram:
            notes.append("columns were left as they are: a kernel here needs counts")
    if scale == "standard":
        spread = X.std(ddof=0)
        notes.append("columns were standardised (--scale none leaves them)")
        return (X - X.mean()) / spread.where(spread > 0, 1.0)
    if scale == "unit":
        spread = X.max() - X.min()
        notes.append("columns were scaled to the range 0 to 1")
        return (X - X.min()) / spread.where(spread > 0, 1.0)
    return X


def _has_histogram(kernel):
    parts = [kernel, *kernel.get_params(deep=True).values()]
    return any(isinstance(part, (Chi2, Intersection)) for part in parts)


def _few(names):
    return ", ".join(map(str, names[:6])) + (
        f" and {len(names) - 6} more" if len(names) > 6 else ""
    )


def _first_line(error):
    return str(error).strip().split("\n")[0][:200]


# --- writing --------------------------------------------------------------------------------------


def harmless(frame):
    """Texts that a spreadsheet would run as a formula get an apostrophe in front."""

    def safe(value):
        if not isinstance(value, str):
            return value
        # A bare carriage return is not quoted by csv writers, and starts a new row for readers.
        value = value.replace("\r\n", "\n").replace("\r", "\n")
        # A tab or a line break in front is skipped by spreadsheets, so it hides nothing.
        return "'" + value if value.lstrip("\t\n ").startswith(("=", "+", "-", "@")) else value

    frame = frame.rename(columns=safe)
    texts = [c for c in frame.columns if not pd.api.types.is_numeric_dtype(frame[c])]
    return frame.assign(**{c: frame[c].map(safe) for c in texts}) if texts else frame


def write(frame, path):
    """A frame as csv, tsv or parquet, by the name of the file."""
    path = Path(path)
    if not path.parent.is_dir():
        raise BadInput(f"no folder {str(path.parent)!r} to write {path.name} into.")
    if path.suffix in (".parquet", ".pq"):
        frame.to_parquet(path, index=False)
    elif path.suffix in (".csv", ".tsv"):
        harmless(frame).to_csv(path, index=False, sep="," if path.suffix == ".csv" else "\t")
    else:
        raise BadInput(f"cannot write {path.name}: use .csv, .tsv or .parquet.")
