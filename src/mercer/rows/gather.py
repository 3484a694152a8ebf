"""Few rows are held, wherever they came from: then every option works as on an array.

All of them where they are few, or a sample that is drawn in one pass where the rows are.
"""

from functools import reduce
from operator import add
from typing import Any

import numpy as np

from ..engine import MemoryLimitError, as_host, coordinates_bytes, readable
from .dask import Partitions, check_unchanged, is_dask, task
from .held import SampledRows, joined_blocks, rows_at
from .streams import bytes_of_rows, is_stream, n_rows, refuse_iterator, refuse_tuple

# Rows that a fit holds in any case: the sample from which landmarks are chosen. A larger one costs
# a longer start and saves rank.
SAMPLE = 20_000


def in_pieces(X: Any) -> bool:
    """Whether rows, targets or weights come in pieces: a Dask collection or a stream."""
    return is_dask(X) or is_stream(X)


def gather_few(X: Any) -> Any:
    """A stream or Dask collection of at most SAMPLE rows as one array or frame; else X itself."""
    return _gathered(X, SAMPLE, None) if in_pieces(X) else X


def load_all(X: Any, limit: float, reason: str) -> Any:
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


def _gathered(X: Any, most: float, limit: float | None) -> Any:
    if is_dask(X):
        parts = Partitions(X)
        needed = coordinates_bytes(parts.n, max(1, parts.X.shape[1]))
        if parts.n > most or (limit and needed > limit):
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
        # A copy: a stream may fill one buffer again and again.
        copy = getattr(chunk, "copy", getattr(chunk, "clone", lambda chunk=chunk: chunk))
        chunks.append(copy())
        rows, size = rows + count, size + bytes_of_rows(chunk)
        if rows > most or (limit and size > limit):
            return X
    if not chunks:
        raise ValueError("Found array with 0 sample(s): the stream holds no rows.")
    return joined_blocks(chunks)


def drawn_rows(X: Any, size: int, seed: int) -> tuple[Any, int | None]:
    """(at most `size` of the rows, in their order; how many there are).

    Rows that do not come in pieces are taken as they are, and not counted.
    """
    if not in_pieces(X):
        return X, None
    if is_dask(X):
        parts = Partitions(X)
        shared = parts.share((size, seed))
        found = parts.total(parts.each(task(_drawn), shared, range(len(parts.blocks))))
    else:
        refuse_iterator(X)
        chunks = (_drawn((size, seed), chunk, j) for j, chunk in enumerate(X))
        found = next(chunks, None)
        found = None if found is None else reduce(add, chunks, found)
    if found is None or not found.n:
        raise ValueError("Found array with 0 sample(s): there are no rows in X.")
    return rows_at(found.points, np.argsort(found.positions)), found.n


def _drawn(shared: tuple[int, int], block: Any, number: int) -> SampledRows:
    """The sample of one block; positions tell the order, though sums are added in any order."""
    (size, seed), n = shared, n_rows(block)
    numbers = np.random.default_rng((seed, number)).random(n)
    positions = (number << 40) + np.arange(n)
    return SampledRows.best([SampledRows(block, positions, n, numbers, size)])
