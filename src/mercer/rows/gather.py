"""Few rows are held, wherever they came from: then every option works as on an array."""

import numpy as np
import scipy.sparse

from ..engine.arrays import as_host
from ..engine.memory import MemoryLimitError, readable
from .dask import Partitions, check_unchanged, is_dask
from .held import stacked
from .in_step import is_stream, n_rows, refuse_iterator

# Rows that a fit holds in any case: the sample from which landmarks are chosen. A larger one costs
# a longer start and saves rank.
SAMPLE = 20_000


def in_pieces(X):
    """Whether rows, targets or weights come in pieces: a Dask collection or a stream."""
    return is_dask(X) or is_stream(X)


def first_block(X):
    """Rows that show the columns and the precision of X: the first chunk of a stream, else X."""
    return next(iter(X), X) if is_stream(X) else X


def held_if_few(X):
    """A stream or Dask collection of at most SAMPLE rows as one array or frame; else X itself."""
    return _gathered(X, SAMPLE, None) if in_pieces(X) else X


def held_whole(X, limit, reason):
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


def held_column(values, X, name="y", *, in_step=False):
    """Targets or weights as an array where X is held, or was streamed.

    in_step : whether a stream may stay one, to be read in step with the stream X
    """
    if is_stream(values):
        refuse_iterator(values, name)
        if in_step and is_stream(X):
            return values
        # Copies: a stream may fill one buffer again and again.
        copies = [np.array(as_host(part)) for part in values]
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
        count = n_rows(chunk)
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
    widths = {chunk.shape[1] for chunk in chunks if len(getattr(chunk, "shape", ())) == 2}
    if len(widths) > 1:
        raise ValueError(
            f"the chunks of X have {' and '.join(map(str, sorted(widths)))} features: all must "
            "have the same columns."
        )
    return stacked(*chunks)


def _bytes(chunk):
    if scipy.sparse.issparse(chunk):
        return 12 * chunk.nnz
    size = getattr(chunk, "nbytes", None)
    return size if isinstance(size, int) else 1000 * len(chunk)
