"""Few rows are held, wherever they came from: then every option works as on an array."""

from typing import Any

import numpy as np
import scipy.sparse

from ..engine import MemoryLimitError, as_host, is_array, is_numpy, readable, same_kind
from ..kernels import points as pts
from .dask import Partitions, check_unchanged, is_dask
from .held import stacked
from .source import in_pieces
from .streams import bytes_of_rows, is_stream, n_rows, refuse_iterator, refuse_tuple

# Rows that a fit holds in any case: the sample from which landmarks are chosen. A larger one costs
# a longer start and saves rank.
SAMPLE = 20_000


def gather_few(X: Any):
    """A stream or Dask collection of at most SAMPLE rows as one array or frame; else X itself."""
    return _gathered(X, SAMPLE, None) if in_pieces(X) else X


def load_all(X: Any, limit: float, reason: str):
    """All rows of a stream or a Dask collection, refused where they take more than `limit` bytes.

    `reason` says which options ask for it.
    """
    if not in_pieces(X):
        return X
    whole = _gathered(X, np.inf, limit)
    if whole is X:
        raise MemoryLimitError(
            f"{reason}: all rows are needed at once, more than memory_limit allows "
            f"({readable(limit)}). Fit on fewer rows, or raise memory_limit."
        )
    return whole


def held_column(values: Any, X: Any, name: str = "y") -> Any:
    """Targets or weights as an array, unless they come in pieces as X does."""
    if is_stream(values) and not is_stream(X):
        refuse_iterator(values, name)
        # Copies: a stream may fill one buffer again and again.
        copies = [np.array(as_host(part)) for part in values if len(part)]
        if not copies:
            raise ValueError(f"{name} is a stream without values.")
        return np.concatenate(copies)
    if is_dask(values) and not is_dask(X):
        return values.compute()
    return values


def _gathered(X, most, limit):
    if is_dask(X):
        parts = Partitions(X)
        if parts.n > most or (limit and parts.bytes() > limit):
            return X
        whole = parts.X.compute()
        check_unchanged(len(whole), parts.n)
        return whole
    refuse_iterator(X)
    chunks, rows, size = [], 0, 0
    for chunk in X:
        refuse_tuple(chunk)
        count = n_rows(chunk)
        if count == 0:
            continue
        chunks.append(_copied(chunk))
        rows, size = rows + count, size + bytes_of_rows(chunk)
        if rows > most or (limit and size > limit):
            return X
    if not chunks:
        raise ValueError("Found array with 0 sample(s): the stream holds no rows.")
    return joined_blocks(chunks)


def _copied(chunk):
    """A stream may fill one buffer again and again."""
    if hasattr(chunk, "copy"):
        return chunk.copy()
    return chunk.clone() if hasattr(chunk, "clone") else chunk


def joined_blocks(chunks: list[Any]):
    shapes = [chunk.shape for chunk in chunks if hasattr(chunk, "shape")]
    flat = [shape for shape in shapes if len(shape) == 1]
    widths = {shape[1] for shape in shapes if len(shape) == 2}
    if flat and widths:
        raise ValueError(
            f"a chunk of X has shape {tuple(flat[0])}, and others have two dimensions: give one "
            "row as chunk.reshape(1, -1)."
        )
    if len(widths) > 1:
        raise ValueError(
            f"the chunks of X have {' and '.join(map(str, sorted(widths)))} features: all must "
            "have the same columns."
        )
    return stacked(*[_like_first(chunk, chunks[0]) for chunk in chunks])


def _like_first(chunk, first):
    """Lists, arrays and frames may follow each other; others are refused as more rows would be."""
    if hasattr(first, "columns") and hasattr(chunk, "columns"):
        if list(chunk.columns) != list(first.columns):
            raise ValueError(
                f"the chunks of X have different columns, {_named(first)} and {_named(chunk)}: "
                "all must have the same columns in the same order."
            )
    elif scipy.sparse.issparse(chunk):
        return chunk
    elif is_array(chunk) and is_array(first) and not same_kind(chunk, first):
        raise TypeError(
            f"the chunks of X are of different kinds, {type(first).__name__} and "
            f"{type(chunk).__name__}: give all of one kind, on one device."
        )
    elif hasattr(first, "iloc"):
        pts.refuse_masked(chunk)
        return type(first)(np.asarray(chunk), columns=first.columns)
    elif is_array(chunk):  # a masked one is refused by name later
        return chunk
    elif is_numpy(first) and first.ndim == 1:
        return pts.as_objects(chunk)
    elif hasattr(chunk, "columns") or is_numpy(first):
        return np.asarray(chunk)
    return chunk


def _named(chunk):
    return ", ".join(map(str, chunk.columns[:5]))
