"""Few rows are held, wherever they came from: then every option works as on an array."""

import numpy as np
import scipy.sparse

from ..engine.memory import MemoryLimitError, readable
from .dask import Partitions, is_dask
from .streamed import is_stream

# Rows that a fit holds in any case: the sample from which landmarks are chosen. A larger one costs
# a longer start and saves rank.
SAMPLE = 20_000


def held_if_few(X):
    """A stream or Dask collection of at most SAMPLE rows as one array or frame; else X itself."""
    return _gathered(X, SAMPLE, None) if is_dask(X) or is_stream(X) else X


def held_whole(X, limit, reason):
    """All rows of a stream or a Dask collection, refused where they take more than `limit` bytes.

    `reason` says which options ask for it.
    """
    if not (is_dask(X) or is_stream(X)):
        return X
    whole = _gathered(X, np.inf, limit)
    if whole is X:
        raise MemoryLimitError(
            f"{reason}: all rows are needed at once, more than memory_limit allows "
            f"({readable(limit)}). Fit on fewer rows, or raise memory_limit."
        )
    return whole


def held_column(values, X):
    """Targets or weights as an array where X is held (or was streamed, one value per row)."""
    if is_stream(values):
        return np.concatenate([np.asarray(chunk) for chunk in values])
    if is_dask(values) and not is_dask(X):
        return values.compute()
    return values


def _gathered(X, most, limit):
    if is_dask(X):
        parts = Partitions(X)
        if parts.lengths.sum() > most or (limit and parts.bytes() > limit):
            return X
        return parts.X.compute()
    if iter(X) is X:
        raise TypeError(
            "X is an iterator that can be read only once, and certification reads the rows more "
            "than once: pass a re-iterable, for example Chunks(lambda: open_the_chunks())."
        )
    chunks, rows, size = [], 0, 0
    for chunk in X:
        count = chunk.shape[0] if hasattr(chunk, "shape") else len(chunk)
        if count == 0:
            continue
        chunks.append(_copied(chunk))
        rows, size = rows + count, size + _bytes(chunk)
        if rows > most or (limit and size > limit):
            return X
    if not chunks:
        raise ValueError("Found array with 0 sample(s): the stream holds no rows.")
    return _joined(chunks)


def _copied(chunk):
    """A stream may fill one buffer again and again."""
    if hasattr(chunk, "copy"):
        return chunk.copy()
    return chunk.clone() if hasattr(chunk, "clone") else chunk


def _joined(chunks):
    first = chunks[0]
    if scipy.sparse.issparse(first):
        return scipy.sparse.vstack(chunks, format="csr")
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat(chunks)
    if hasattr(first, "columns"):
        import polars as pl

        return pl.concat(chunks)
    if isinstance(first, list):
        return [item for chunk in chunks for item in chunk]
    if isinstance(first, np.ndarray):
        return np.concatenate(chunks)
    from ..engine.arrays import namespace

    return namespace(*chunks).concat(chunks, axis=0)


def _bytes(chunk):
    if scipy.sparse.issparse(chunk):
        return 12 * chunk.nnz
    size = getattr(chunk, "nbytes", None)
    return size if isinstance(size, int) else 1000 * len(chunk)
