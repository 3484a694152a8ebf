"""Points that a kernel accepts: user input turned into points that can be sliced by row.

Points are one of: a dense 2-D float array of any backend, a CSR matrix, or (for kernels on
objects) a 1-D object array. Every refusal names the value and the remedy.
"""

import numbers
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse

from ..engine import as_host, is_array, is_numpy, namespace, on_device_of, short

_FINITE = (
    "Kernels need finite values: put a TableEncoder first (make_pipeline(TableEncoder(), model)), "
    "which fills gaps and marks them; KernelRegressor and KernelClassifier do so by themselves. Or "
    "drop those rows."
)


def is_frame(X: Any):
    return hasattr(X, "columns") and hasattr(X, "to_numpy")


def collected(X: Any):
    """The frame that a polars LazyFrame stands for; anything else as it is."""
    return X.collect() if hasattr(X, "collect_schema") and hasattr(X, "collect") else X


def column_names(X: Any):
    """Column names of a frame as a list, None for anything else."""
    if hasattr(X, "collect_schema"):  # polars: of what is not collected yet, too
        return list(X.collect_schema().names())
    return list(X.columns) if is_frame(X) else None


def n_points(X: Any):
    shape = getattr(X, "shape", None)
    if shape == () or (shape is None and not hasattr(X, "__len__")):
        raise TypeError(f"X must hold several points, got {short(X)}.")
    return len(X) if shape is None else shape[0]


def as_vectors(X: Any, *, name: str = "X", mixed: bool = False):
    """A dense float array (kept in its namespace) or a CSR matrix, finite and non-empty.

    With `mixed`, columns that are not numbers are let through, in a 2-D array of objects.
    """
    X = collected(X)
    if is_frame(X):
        X = _frame_values(X, name, mixed)
    if scipy.sparse.issparse(X):
        of_arrays = isinstance(X, scipy.sparse.sparray)
        X = scipy.sparse.csr_array(X) if of_arrays else scipy.sparse.csr_matrix(X)
    elif X is None or isinstance(X, (str, bytes, numbers.Number)):
        raise TypeError(
            f"{name} must be a 2-D array of numbers (rows are samples), got {type(X).__name__}."
        )
    elif not is_array(X):
        try:
            given, X = X, np.asarray(X)
        except ValueError as error:
            raise ValueError(f"{name} is ragged: its rows differ in length ({error}).") from None
        if mixed and X.dtype.kind in "US":  # numbers beside texts stay numbers
            X = np.asarray(given, dtype=object)
    if is_numpy(X):
        if mixed and X.ndim == 2 and X.dtype.kind in "OUS":
            refuse_masked(X, name)
            _check_shape(X, name)
            return X.astype(object, copy=False)
        X = _numpy_numbers(X, name)
    xp, dtype = namespace(X), str(X.dtype)
    if getattr(X, "requires_grad", False):
        raise ValueError(
            f"{name} requires gradients, which mercer does not track; pass {name}.detach()."
        )
    if "complex" in dtype:
        raise ValueError(
            f"Complex data not supported: {name} has dtype {X.dtype}; pass {name}.real."
        )
    if not dtype.endswith(("float64", "float32")):
        X = X.astype(np.float64) if scipy.sparse.issparse(X) else xp.astype(X, xp.float64)
    _check_shape(X, name)
    values = X.data if scipy.sparse.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        # By the sum, which takes no memory; it may be infinite where no value is.
        finite = bool(xp.isfinite(xp.sum(values))) or bool(xp.all(xp.isfinite(values)))
    if not finite:
        what = "NaN" if bool(xp.any(xp.isnan(values))) else "infinity"
        raise ValueError(f"Input {name} contains {what}. {_FINITE}")
    return X


def _numpy_numbers(X, name):
    refuse_masked(X, name)
    X = np.asarray(X)  # np.matrix has an arithmetic of its own
    if X.dtype.kind in "OUS":
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"{name} holds objects that are not numbers ({error}); argument must be a string "
                "or a number. Kernels on other objects are built with FromFunction(f)."
                if not all(isinstance(value, (str, bytes)) for value in X.flat)
                else f"{name} holds strings, and this kernel needs numbers. Encode the columns, or "
                "build a kernel on strings with FromFunction(f)."
            ) from None
    if X.dtype.kind in "fiubc":
        return X
    _refuse_dates(X, name)
    raise TypeError(f"{name} has dtype {X.dtype}; kernels on vectors need numbers.")


def _check_shape(X, name):
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead: {name} has shape {tuple(X.shape)}. "
            "Reshape your data: X.reshape(-1, 1) for one column, X.reshape(1, -1) for one sample."
        )
    for axis, what in enumerate(("sample", "feature")):
        if X.shape[axis] == 0:
            raise ValueError(
                f"Found array with 0 {what}(s) (shape={tuple(X.shape)}) while a minimum of 1 is "
                f"required: {name} must not be empty."
            )


def refuse_masked(X: Any, name: str = "X"):
    """A masked array still holds what it hides, and everything but its own methods would use it."""
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; fill it first: {name}.filled(value).")


def _refuse_dates(X: Any, name: str = "X"):
    """Dates turn into nanoseconds (or days) since 1970 where numbers are asked for."""
    if is_frame(X):
        kinds = zip(X.columns, X.dtypes, strict=True)
        columns = [c for c, dtype in kinds if _is_date(dtype)]
        what = f"column {columns[0]!r} of {name} holds" if columns else ""
    else:
        try:
            dtype = getattr(np.asarray(X[:1]) if isinstance(X, (list, tuple)) else X, "dtype", None)
        except ValueError:  # rows of several lengths, which are refused elsewhere
            return
        what = f"{name} has dtype {dtype} and holds" if _is_date(dtype) else ""
    if what:
        raise TypeError(
            f"{what} dates or durations, which are not numbers. Convert them to what matters: "
            "durations by x / np.timedelta64(1, 'D'), dates by their distance to a first day, or "
            "by their month or weekday."
        )


def _is_date(dtype):
    """datetime64, timedelta64, and the dates of polars and pandas."""
    kind = getattr(dtype, "kind", None)
    return kind in ("m", "M") or str(dtype).startswith(("Date", "Duration", "Time"))


def as_objects(X: Any, *, name: str = "X"):
    """A 1-D object array of Python objects; numeric 2-D arrays stay arrays (rows are objects)."""
    if scipy.sparse.issparse(X) or is_frame(X) or (is_array(X) and X.ndim == 2):
        return as_vectors(X, name=name, mixed=True)
    single = isinstance(X, (str, bytes, numbers.Number)) or getattr(X, "shape", None) == ()
    if single or not hasattr(X, "__len__"):
        raise TypeError(
            f"{name} must be a sequence of objects, got {type(X).__name__}: {short(X)}. "
            f"Put a single object into a list: [{short(X)}]."
        )
    if len(X) == 0:
        raise ValueError(f"Found array with 0 sample(s): {name} is empty; a kernel needs a point.")
    return np.fromiter(X, dtype=object, count=len(X))  # objects that are arrays stay whole


def read_each(X: Iterable[Any], read: Callable[[Any], Any], separator: str = " "):
    """read(x) for each object of a sample; its errors say which one it was."""
    found = []
    for i, x in enumerate(X):
        try:
            found.append(read(x))
        except (TypeError, ValueError, KeyError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            text = error.args[0] if error.args else error
            raise kind(f"X[{i}]{separator}{text}") from None
    return found


def as_rows(x: object, what: str):
    """An object as an array of finite numbers, one row per point; a flat list is one column."""
    try:
        x = np.asarray(as_host(x), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"is not {what} ({error}).") from None
    x = x[:, None] if x.ndim == 1 and len(x) else x
    if x.ndim != 2 and x.size:
        raise ValueError(f"has shape {x.shape} and is not {what}.")
    bad = np.flatnonzero(~np.isfinite(x.reshape(len(x), -1)).all(axis=1)) if x.size else ()
    if len(bad):
        raise ValueError(f"has NaN or infinity at point {bad[:1]}.")
    return x


def require_same_storage(X: Any, S: Any):
    """Rows of both kinds have no common inner product here: one of them must change."""
    if scipy.sparse.issparse(X) != scipy.sparse.issparse(S):
        raise TypeError(
            "one of the two inputs is sparse and the other dense: a kernel needs both of a kind; "
            "convert one (X.toarray() or scipy.sparse.csr_array(X))."
        )


def looks_numeric(X: Any):
    """Whether X is a matrix of numbers rather than a list of objects."""
    if scipy.sparse.issparse(X) or is_frame(X):
        return True
    if is_array(X):
        return X.ndim == 2 and getattr(X.dtype, "kind", "f") in "fiubc"
    try:
        return np.asarray(X).dtype.kind in "fiub" and np.ndim(X) == 2
    except (ValueError, TypeError):
        return False


def is_vector(x: Any, kind: str) -> bool:
    """Whether x is a single vector of a kernel on this kind of points. Kernels on objects take a
    1-D array for a batch of them, and Constant() takes a list of any objects."""
    if kind in ("vectors", "table") and isinstance(x, (list, tuple)):
        x = np.asarray(x)
    numeric = is_array(x) and x.ndim == 1 and getattr(x.dtype, "kind", "f") in "fiub"
    return numeric and kind in ("vectors", "table", "any")


def take(points: Any, indices: Any):
    """The points at these integer positions."""
    if is_numpy(points) or scipy.sparse.issparse(points):
        return points[indices]
    xp = namespace(points)
    return xp.take(points, on_device_of(indices, points, dtype=xp.int64), axis=0)


def some(points: Any, rows: np.ndarray):
    """The points at these increasing positions, without a copy where these are all."""
    return points if len(rows) == points.shape[0] else take(points, rows)


def _frame_values(X, name, mixed):
    if not mixed:
        _refuse_dates(X, name)
    values = X.to_numpy()
    if values.dtype.kind != "O":
        return values
    # Frames of several numeric types (bool beside float, nullable integers) come as objects too.
    by_place = hasattr(X, "iloc")  # names may come twice
    columns = [X.iloc[:, i] if by_place else X[c] for i, c in enumerate(X.columns)]
    numbers = [_numbers_of(column, text=not mixed) for column in columns]
    bad = [str(c) for c, found in zip(X.columns, numbers) if found is None]
    if not bad:
        return np.column_stack(numbers)
    if not mixed:
        several = len(bad) > 1
        listed = ", ".join(map(repr, bad[:5])) + (" and more" if bad[5:] else "")
        raise ValueError(
            f"could not convert {name} to numbers: column{'s' if several else ''} {listed} "
            f"hold{'' if several else 's'} other values. Encode them (TableEncoder() makes numbers "
            "of a table), drop them, or name the numeric columns: OnColumns(kernel, columns)."
        )
    return values


def _numbers_of(column, text):
    """A column as float64, gaps as NaN; None where it holds other values, or `text` of numbers."""
    values = column.to_numpy()
    if values.dtype.kind not in "fiub" and not text:
        return None
    try:
        if values.dtype.kind == "O" and hasattr(column, "isna"):
            return column.to_numpy(dtype=np.float64, na_value=np.nan)
        return values.astype(np.float64)
    except (TypeError, ValueError):
        return None


@contextmanager
def naming(argument: str):
    """Errors of a conversion ("could not convert string to float") say what was converted."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if re.search(rf"\b{argument}\b", str(error)):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{argument}: {error}") from error


def listed(names: Sequence[str], most: int = 6):
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def as_fitted_points(X: Any, S: Any, dtype: Any, *, keep_wider: bool = False):
    """New rows in the precision of the fit, and sparse or dense as its points S are.

    With `keep_wider`, double precision stays (in NumPy): rounded to single precision, rows far from
    the origin would be other points.
    """
    if X.dtype == object:
        return X
    if scipy.sparse.issparse(S) and is_numpy(X):
        X = scipy.sparse.csr_array(X)
    elif is_array(S) and scipy.sparse.issparse(X):
        X = X.toarray()
    # Dtypes of other backends are not compared with NumPy's.
    wider = (is_numpy(X) or scipy.sparse.issparse(X)) and X.dtype == np.float64
    if X.dtype == dtype or (keep_wider and wider):
        return X
    return X.astype(dtype) if scipy.sparse.issparse(X) else namespace(X).astype(X, dtype)


def require_y(y: Any, name: str) -> None:
    """`name` of the estimator or the method, for the message."""
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")


def row_weights(values: Any, n: int | None = None):
    """Weights of some rows as float64: finite and not negative; of all n rows where n is given.
    None stays None: all rows weigh alike."""
    if values is None:
        return None
    with naming("sample_weight"):
        weights = np.asarray(as_host(values))
        if weights.dtype.kind == "c":
            raise TypeError("complex weights are not supported.")
        weights = weights.astype(np.float64)
    if n is not None:
        weights = np.full(n, weights) if weights.ndim == 0 else weights
    proper = weights.ndim == 1 and bool(np.all((weights >= 0) & (weights < np.inf)))
    if not proper or (n is not None and (len(weights) != n or not np.any(weights > 0))):
        rows = "row" if n is None else f"of the {n} rows, not all zero"
        raise ValueError(
            "sample_weight must hold one finite, non-negative number for each "
            f"{rows}, got {short(values)}."
        )
    if weights.size and weights.max() > 1e100:
        raise ValueError(f"sample_weight reaches {weights.max():.3g}: divide it by a constant.")
    return weights
