"""Columns of a stream, targets and weights, read in step with its rows.

They are held as arrays, or are streams themselves, cut wherever they like; or the stream gives
pairs (rows, targets), so that both are read at once.
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from ..engine.arrays import as_host, is_array
from ..engine.types import Array
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
    """Notices a column whose values differ from those of an earlier pass, as far as it went."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen: dict[Any, int] = {}  # checksum of the first rows, by their number

    def over(self, chunks: Any, values: Callable[[Any], Any] = lambda chunk: chunk) -> Iterator:
        """The chunks, each after a look at its values."""
        rows = checksum = 0
        for chunk in chunks:
            block = values(chunk)
            rows, checksum = rows + len(block), checksum_of(block, checksum)
            self._compare(rows, checksum)
            yield chunk
        self._compare("rows", rows)

    def _compare(self, what, now):
        if self.seen.setdefault(what, now) != now:
            raise RuntimeError(
                f"{self.name} changes each time it is read: its values differ between two passes. "
                "Write them to a file, or fix the seed of what makes them."
            )


class Watched:
    """A stream that must give the same values each time."""

    def __init__(self, stream: Any, name: str) -> None:
        refuse_iterator(stream, name)
        self.stream, self.watch = stream, Watch(name)

    def __iter__(self) -> Iterator[Any]:
        return self.watch.over(self.stream)


def watched(values: Any, name: str) -> Any:
    """Values of a stream under watch; anything else as it is."""
    if not is_stream(values) or isinstance(values, (Side, Watched)):
        return values
    return Watched(values, name)


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


class Side:
    """The rows (0) or the targets (1) of a stream of pairs; targets are under watch."""

    def __init__(self, pairs: Any, which: int, watch: Watch) -> None:
        self.pairs, self.which, self.watch = pairs, which, watch

    def both(self) -> Iterator[tuple[Any, Any]]:
        return map(_pair, self.watch.over(self.pairs, lambda chunk: _pair(chunk)[1]))

    def __iter__(self) -> Iterator[Any]:
        return (pair[self.which] for pair in self.both())


def split_pairs(X: Any, y):
    """(rows, targets) where X is a stream of pairs and y was left out; else both as they are."""
    if y is not None or not is_stream(X):
        return X, watched(y, "y")
    refuse_iterator(X)
    first = next(iter(X), None)
    watch = Watch("y")
    return (Side(X, 0, watch), Side(X, 1, watch)) if isinstance(first, tuple) else (X, y)


def paired_columns(source: Any, columns: Sequence[Column]) -> Iterator[tuple[Any, list[Any]]]:
    """Every chunk of rows that is not empty, and the blocks of the columns that belong to it."""
    readers = [_reader(column, source) for column in columns]
    chunks = source.both() if isinstance(source, Side) else ((chunk, None) for chunk in source)
    total = 0
    for chunk in chunks:
        rows, beside = _pair(chunk)
        n = n_rows(rows)
        if n:  # no check could tell the columns of an empty chunk
            total += n
            yield rows, [reader.read(n, beside) for reader in readers]
    for reader in readers:
        reader.finish(total)


def n_rows(chunk: Any):
    return chunk.shape[0] if hasattr(chunk, "shape") else len(chunk)


def _pair(chunk):
    if not (isinstance(chunk, tuple) and len(chunk) == 2):
        raise TypeError(
            "a stream of pairs must give tuples (rows, targets), got "
            f"{f'a tuple of {len(chunk)}' if isinstance(chunk, tuple) else type(chunk).__name__}."
        )
    return chunk


# --- readers --------------------------------------------------------------------------------------


def _reader(column, source):
    values = column.values
    if values is None:
        return _Nothing()
    if isinstance(values, Side) and isinstance(source, Side) and values.pairs is source.pairs:
        return _Beside(column)
    return _Streamed(column) if is_stream(values) else _Held(column)


def _made(column, values):
    return column.make(as_host(values))


class _Nothing:
    """A column that was not given."""

    def read(self, n: int, beside: Any):
        return None

    def finish(self, n: int):
        pass


class _Beside(_Nothing):
    """The other side of the pair."""

    def __init__(self, column):
        self.column = column

    def read(self, n: int, beside: Any):
        block = _made(self.column, beside)
        if len(block) != n:
            raise ValueError(
                f"a chunk of X has {n} rows and its {self.column.name} has {len(block)}."
            )
        return block


class _Held:
    """One array for all rows."""

    def __init__(self, column):
        self.name, self.values, self.start = column.name, _made(column, column.values), 0

    def read(self, n: int, beside: Any):
        start, self.start = self.start, self.start + n
        if len(self.values) < self.start:
            raise ValueError(f"X has more rows than {self.name}, which has {len(self.values)}.")
        return self.values[start : self.start]

    def finish(self, n: int):
        if len(self.values) != n:
            raise ValueError(f"X has {n} rows and {self.name} has {len(self.values)}.")


class _Streamed:
    """Chunks, cut and joined again where those of the rows end."""

    def __init__(self, column):
        refuse_iterator(column.values, column.name)
        self.column, self.chunks, self.seen = column, iter(column.values), 0
        self.left: Any = None  # of the last chunk

    def read(self, n: int, beside: Any):
        blocks, missing = [], n
        while missing:
            block = self._next() if self.left is None else self.left
            if block is None:
                raise ValueError(f"X has more rows than {self.column.name}, which has {self.seen}.")
            # A copy before the next chunk is read: a stream may fill one buffer again and again.
            blocks.append(block[:missing] if len(block) >= missing else block.copy())
            self.left = block[missing:] if len(block) > missing else None
            missing -= len(blocks[-1])
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)

    def finish(self, n: int):
        more = 0 if self.left is None else len(self.left)
        while (block := self._next()) is not None:
            more += len(block)
        if more:
            raise ValueError(f"X has {n} rows and {self.column.name} has {n + more}.")

    def _next(self):
        for chunk in self.chunks:
            block = _made(self.column, chunk)
            if len(block):
                self.seen += len(block)
                return block
        return None
