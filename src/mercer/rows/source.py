"""Sources of rows: an array, a stream of chunks, or a Dask collection.

Nobody outside this folder asks which of the three it is. Others ask for `Rows`, or whether the rows
come in pieces.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..engine import as_host
from ..kernels import points as pts
from .dask import Partitions, delayed_blocks, is_dask
from .held import HeldRows
from .interface import Check, Rows
from .partitioned import PartitionedRows
from .streamed import StreamedRows
from .streams import filled_chunks, is_stream, n_rows


def source_of(X: Any, check: Check, room: int = 1 << 30) -> Rows:
    """The rows of X, as points that are checked when they are read.

    room : bytes of rows that a filter of a stream may keep in memory
    """
    if is_dask(X):
        parts = Partitions(X)
        if check.first:  # what is wrong with the columns is said before any work
            check(parts.example())
        return PartitionedRows(X, check, parts)
    if is_stream(X):
        return StreamedRows(X, check, room=room)
    return HeldRows(check(X), pts.column_names(X))


def in_pieces(X: Any) -> bool:
    """Whether rows, targets or weights come in pieces: a Dask collection or a stream."""
    return is_dask(X) or is_stream(X)


def first_block(X: Any) -> Any:
    """Rows that show the columns and the precision of X: the first chunk of a stream, else X."""
    return next(filled_chunks(X), X) if is_stream(X) else X


def target_shape(values: Any) -> tuple[int, ...]:
    """The shape of one row's targets, from the first chunk that is not empty."""
    if is_stream(values):
        values = next(map(np.asarray, map(as_host, filled_chunks(values))), np.empty(0))
    return tuple(values.shape[1:])


def refuse_stream(X: Any) -> None:
    """For methods whose answer is as long as X, and held."""
    if is_stream(X):
        raise TypeError(
            "X is a stream, which is never held as a whole: call fit(X), then transform or predict "
            "one chunk at a time."
        )


def in_memory(X: Any) -> Any:
    """X itself, or the rows of a Dask collection; a stream is refused."""
    refuse_stream(X)
    # scikit-learn would not see the names of the columns of a collection.
    return Partitions(X).X.compute() if is_dask(X) else X


def count_rows(X: Any) -> int:
    """All rows of a stream, which is read for it, or of a Dask collection."""
    return Partitions(X).n if is_dask(X) else sum(map(n_rows, X))


def distinct(column: Any, make: Callable[[Any], Any] = np.asarray) -> np.ndarray:
    """The sorted values of a column; `make` turns a block of it into an array."""
    if is_dask(column):
        import dask

        task = dask.delayed(_values, pure=False)
        found = dask.compute(*[task(block, make) for block in delayed_blocks(column)])
    else:
        blocks = filled_chunks(column) if is_stream(column) else [column]
        found = [_values(block, make) for block in blocks]
    return np.unique(np.concatenate([values for values in found if len(values)]))


def _values(block, make):
    return np.unique(make(block)) if len(block) else np.empty(0)
