"""Streams of chunks of rows, and the targets and weights that are read with them.

A stream gives chunks of rows, or tuples (rows, targets) or (rows, targets, weights). Targets and
weights beside it are arrays, or streams that are cut at the same rows.
"""

import zlib
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import scipy.sparse

from ..engine import Array, as_host, is_array
from .interface import Column


def is_stream(X: Array):
    """Whether X is chunks of rows rather than rows: iterable, but no array, frame or sequence."""
    if is_array(X) or scipy.sparse.issparse(X) or hasattr(X, "columns"):
        return False
    if hasattr(X, "__len__") or hasattr(X, "__array__") or isinstance(X, (str, bytes)):
        return False
    return hasattr(X, "__iter__")


def refuse_iterator(stream: Any, name: str = "X", reader: str = "a fit"):
    if iter(stream) is stream:
        raise TypeError(
            f"{name} is an iterator that can be read only once, and {reader} reads the rows more "
            "than once: pass a re-iterable, for example Chunks(lambda: open_the_chunks())."
        )


class Watch:
    """Notices rows or a column whose values differ from those of an earlier pass."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen: dict[Any, int] = {}  # number of rows, and checksums of the first ones

    def compare(self, what: Any, now: int) -> None:
        before = self.seen.setdefault(what, now)
        if before != now:
            counts = f" ({before} rows in the first pass, {now} now)" if what == "rows" else ""
            raise RuntimeError(
                f"{self.name} changes each time it is read: its {'rows' if counts else 'values'} "
                f"differ between two passes{counts}. Write them to a file, or fix the seed of what "
                "makes them."
            )


class Tuples:
    """Tuples (rows, targets) or (rows, targets, weights): the stream's own, or made of streams.

    Targets and weights must be the same in each pass, and are cut where the rows are.
    """

    NAMES = ("X", "y", "sample_weight")

    def __init__(self, stream: Any, y: Any = None, weights: Any = None) -> None:
        self.stream, self.beside = stream, (y, weights)
        self.watches = [Watch(name) for name in self.NAMES[1:]]

    def _given(self) -> Iterator[tuple[Any, ...]]:
        beside = [() if part is None else filled_chunks(part) for part in self.beside]
        for chunk, *others in zip_longest(filled_chunks(self.stream), *beside, fillvalue=()):
            rows, *own = _tuple(chunk)
            if own and self.beside[0] is not None:
                refuse_tuple(chunk)
            own += [None] * (2 - len(own))
            found = zip(self.beside, others, own)
            yield rows, *(mine if given is None else other for given, other, mine in found)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        total, sums = 0, [0, 0]
        for j, parts in enumerate(self._given()):
            rows, *values = parts
            n = n_rows(rows)
            total += n
            for i, block in enumerate(values):
                if block is None:
                    continue
                if n_rows(block) != n:
                    name = self.NAMES[i + 1]
                    raise ValueError(
                        f"chunk {j} of X has {n} rows and that of {name} has {n_rows(block)}: cut "
                        f"{name} where X is cut, or give tuples (X, y) or (X, y, sample_weight)."
                    )
                sums[i] = checksum_of(block, sums[i])
                self.watches[i].compare(total, sums[i])
            yield parts
        for watch in self.watches:
            watch.compare("rows", total)


class Side:
    """The rows (0), the targets (1) or the weights (2) of a stream of tuples."""

    def __init__(self, tuples: Tuples, which: int) -> None:
        self.tuples, self.which = tuples, which

    def __iter__(self) -> Iterator[Any]:
        return (parts[self.which] for parts in self.tuples)


def sides(X: Any, y: Any, weights: Any) -> tuple[Any, Any, Any]:
    """(rows, targets, weights): those that come in a stream are sides of it, others as they are."""
    if not is_stream(X):
        return X, y, weights
    refuse_iterator(X)
    columns = [values if is_stream(values) else None for values in (y, weights)]
    for name, column in zip(Tuples.NAMES[1:], columns):
        if column is not None:
            refuse_iterator(column, name)
    first = next(iter(X), None) if y is None else None
    own = first[1:] if isinstance(first, tuple) else ()
    if len(own) == 2 and weights is not None:
        raise ValueError("weights come in the tuples of X and as sample_weight: give them once.")
    if not own and columns == [None, None]:
        return X, y, weights
    tuples = Tuples(X, *columns)
    found = [
        Side(tuples, i + 1) if i < len(own) or columns[i] is not None else values
        for i, values in enumerate((y, weights))
    ]
    return Side(tuples, 0), found[0], found[1]


def paired_columns(source: Any, columns: Sequence[Column]) -> Iterator[tuple[Any, list[Any]]]:
    """Every chunk of rows that is not empty, and the blocks of the columns that belong to it."""
    tuples = source.tuples if isinstance(source, Side) else None
    held = {
        i: column.make(as_host(column.values))
        for i, column in enumerate(columns)
        if column.values is not None and not isinstance(column.values, Side)
    }
    total = 0
    for parts in ((chunk,) for chunk in source) if tuples is None else tuples:
        n = n_rows(parts[0])
        if not n:  # no check could tell the columns of an empty chunk
            continue
        start, total = total, total + n
        blocks: list[Any] = []
        for i, column in enumerate(columns):
            if i in held:
                if len(held[i]) < total:
                    name, size = column.name, len(held[i])
                    raise ValueError(f"X has more rows than {name}, which has {size}.")
                blocks.append(held[i][start:total])
            elif column.values is None:
                blocks.append(None)
            else:
                blocks.append(column.make(as_host(parts[column.values.which])))
        yield parts[0], blocks
    for i, values in held.items():
        if len(values) != total:
            raise ValueError(f"X has {total} rows and {columns[i].name} has {len(values)}.")


def n_rows(chunk: Any) -> int:
    return chunk.shape[0] if hasattr(chunk, "shape") else len(chunk)


def refuse_tuple(chunk: Any) -> None:
    if isinstance(chunk, tuple):
        raise TypeError(
            f"a chunk of X is a tuple of {len(chunk)}, and a fit without targets, or with y, takes "
            "rows alone. Tuples (X, y) are for methods with targets; leave y out there."
        )


def filled_chunks(stream: Any) -> Iterator[Any]:
    """The chunks that are not empty (a tuple never is)."""
    return (chunk for chunk in stream if n_rows(chunk))


def _tuple(chunk: Any) -> tuple[Any, ...]:
    """(rows, ...); of a stream that has ended before others, no rows."""
    if not isinstance(chunk, tuple):
        return (chunk,)
    if len(chunk) not in (0, 2, 3):
        raise TypeError(
            "a stream of tuples must give (X, y) or (X, y, sample_weight), got a tuple of "
            f"{len(chunk)}."
        )
    return chunk or ((),)


def checksum_of(values: Any, before: int = 0) -> int:
    """A number that changes with the values, whatever the cuts.

    Objects that are neither texts nor numbers nor arrays do not count: nothing says that they are
    what they were.
    """
    array = np.asarray(as_host(values))
    if array.dtype.kind not in "OUS":
        return zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data, before)
    for value in array.ravel():
        if isinstance(value, np.ndarray) and value.dtype.kind != "O":
            before = checksum_of(value, before)
        elif isinstance(value, (str, bytes, int, float, np.generic)):
            before = zlib.crc32(f"{value!r}\0".encode(errors="replace"), before)
    return before


def bytes_of_rows(chunk: Any) -> int:
    """About; an object counts as a kilobyte."""
    if scipy.sparse.issparse(chunk):
        return 12 * chunk.nnz + 8 * chunk.shape[0]
    size = getattr(chunk, "nbytes", None)
    is_objects = getattr(getattr(chunk, "dtype", None), "kind", "f") == "O"
    return size if isinstance(size, int) and not is_objects else 1000 * n_rows(chunk)
