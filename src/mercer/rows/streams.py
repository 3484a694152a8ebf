"""Streams: rows that do not fit the memory, in chunks that can be read more than once.

Certification needs every row, and methods need another pass, so a stream must start anew each time
it is iterated: a class with __iter__, or Chunks around a function that opens the data. It gives
chunks of rows, or tuples (rows, targets) or (rows, targets, weights). Targets and weights beside it
are arrays, or streams that are cut at the same rows.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import numpy as np
import scipy.sparse

from ..engine import as_host, is_array, is_cpu, namespace, rows_of, tiles, to_torch
from ..kernels import points as pts
from .held import (
    CHUNK_ROWS,
    Column,
    KeptHere,
    LargestResidual,
    LocalRows,
    SampledRows,
    rows_at,
    stacked,
)


class Chunks:
    """Read rows chunk by chunk, as often as needed, from a function that opens the data.

    Parameters
    ----------
    open_chunks : callable
        Returns a fresh iterator over 2-D arrays each time it is called; or over pairs
        (rows, targets), or (rows, targets, weights), for a fit that is called without y.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, Chunks, KernelMap
    >>> def rows():
    ...     rng = np.random.default_rng(0)
    ...     return (rng.normal(size=(1000, 2)) for _ in range(5))
    >>> kernel_map = KernelMap(RBF(0.1), tol=1e-6).fit(Chunks(rows))
    >>> kernel_map.max_residual_ <= 1e-6
    True
    """

    def __init__(self, open_chunks: Callable[[], Iterable[Any]]) -> None:
        if not callable(open_chunks):
            raise TypeError(
                f"Chunks takes a function that returns a fresh iterator of chunks, got "
                f"{type(open_chunks).__name__}."
            )
        self.open_chunks = open_chunks

    def __iter__(self) -> Iterator[Any]:
        return iter(self.open_chunks())

    @classmethod
    def on_device(cls, X: np.ndarray, device: str = "cuda", rows: int = CHUNK_ROWS) -> Chunks:
        """Send rows of a host array (or memory map) to a device, one chunk at a time.

        Chunks travel from page-locked memory, so that copying the next overlaps with the work on
        the last: for data larger than the device's memory.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import RBF, Chunks, KernelMap
        >>> X = np.random.default_rng(0).normal(size=(5000, 2))
        >>> KernelMap(RBF(0.1)).fit(Chunks.on_device(X, "cuda"))  # doctest: +SKIP
        """
        blocks = tiles.cuts(X.shape[0], rows)
        return cls(lambda: (to_torch(rows_of(X, a, b), device) for a, b in blocks))


def is_stream(X: Any) -> bool:
    """Whether X is chunks of rows rather than rows: iterable, but no array, frame or sequence."""
    if is_array(X) or scipy.sparse.issparse(X) or hasattr(X, "columns"):
        return False
    if hasattr(X, "__len__") or hasattr(X, "__array__") or isinstance(X, (str, bytes)):
        return False
    return hasattr(X, "__iter__")


def refuse_iterator(stream: Any, name: str = "X", reader: str = "a fit") -> None:
    first = iter(stream)
    if first is stream or first is iter(stream):
        raise TypeError(
            f"{name} is an iterator that can be read only once, and {reader} reads the rows more "
            "than once: pass a re-iterable, for example Chunks(lambda: open_the_chunks()), which "
            "opens them anew at each call."
        )


def refuse_stream(X: Any) -> None:
    """For methods whose answer is as long as X, and held."""
    if is_stream(X):
        raise TypeError(
            "X is a stream, which is never held as a whole: call fit(X), then transform or predict "
            "one chunk at a time."
        )


def first_block(X: Any) -> Any:
    """Rows that show the columns and the precision of X: the first chunk of a stream, else X."""
    return next(filled_chunks(X), X) if is_stream(X) else X


class _Watch:
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


@dataclass
class StreamedRows(LocalRows):
    """The chunks of a stream as checked points, read anew in each pass."""

    source: Any  # a re-iterable of chunks
    check: Any  # turns a chunk into points
    room: int = 1 << 30  # bytes of rows that a filter may keep in memory
    watch: _Watch = field(default_factory=lambda: _Watch("X"))

    def __post_init__(self) -> None:
        refuse_iterator(self.source)

    @property
    def names(self) -> Any:
        return self.check.names

    @property
    def n(self) -> int:
        if "rows" not in self.watch.seen:
            deque(self.parts(), maxlen=0)
        return self.watch.seen["rows"]

    def blocks(self, rows: int) -> Iterator[Any]:
        return (points for _, points, _ in self.parts())

    def take(self, positions: np.ndarray) -> Any:
        parts = []
        for start, points, _ in self.parts():
            here = (positions >= start) & (positions < start + points.shape[0])
            if here.any():
                parts.append(rows_at(points, positions[here] - start))
        return stacked(*parts)

    def checked(self, check: Any) -> StreamedRows:
        return replace(self, check=check)

    def parts(self, columns: Any = ()) -> Iterator[tuple[int, Any, list[Any]]]:
        start, fingerprint = 0, 0
        for chunk, blocks in _paired_columns(self.source, columns):
            points = self.check(chunk)
            fingerprint = _fingerprint_of(points, fingerprint)
            yield start, points, blocks
            start += points.shape[0]
        if start == 0:
            raise ValueError("Found array with 0 sample(s): the stream holds no rows.")
        self.watch.compare("rows", start)
        self.watch.compare("values", fingerprint)

    def sample(self, size: int, rng: np.random.Generator) -> SampledRows:
        kept: list[SampledRows] = []
        for start, points, _ in self.parts():
            n = points.shape[0]
            new = SampledRows(points, start + np.arange(n), n, rng.random(n), size)
            kept = [SampledRows.best([*kept, new])]
        return kept[0]

    def filter(self, keep: Any) -> KeptHere:
        kept, positions, worst, count = None, [], LargestResidual(), 0
        for start, points, _ in self.parts():
            mask, others = keep(points)
            worst, where = worst + others, np.flatnonzero(mask)
            count += len(where)
            most = self.room * points.shape[0] // max(1, bytes_of_rows(points))
            where = where[: max(0, most - _count(kept))]
            if len(where):
                picked = pts.take(points, where)
                kept = picked if kept is None else stacked(kept, picked)
                positions.append(start + where)
        rows = np.arange(_count(kept))
        where = np.concatenate(positions) if positions else np.empty(0, dtype=int)
        return KeptHere(kept, rows, where, worst, count - len(rows), self)


def _fingerprint_of(points: Any, before: int = 0) -> int:
    """A number that changes with the values, whatever the cuts."""
    if scipy.sparse.issparse(points):
        return checksum_of(points.data, checksum_of(points.indices, before))
    if is_array(points) and not is_cpu(points):  # one number travels, not all rows
        points = namespace(points).sum(points)
    return checksum_of(points, before)


def _count(points: Any) -> int:
    return 0 if points is None else n_rows(points)


# --- targets and weights that are read with the rows ----------------------------------------------


class _Tuples:
    """Tuples (rows, targets) or (rows, targets, weights): the stream's own, or made of streams.

    Targets and weights must be the same in each pass, and are cut where the rows are.
    """

    NAMES = ("X", "y", "sample_weight")

    def __init__(self, stream: Any, y: Any = None, weights: Any = None) -> None:
        self.stream, self.beside = stream, (y, weights)
        self.watches = [_Watch(name) for name in self.NAMES[1:]]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        beside = [() if part is None else filled_chunks(part) for part in self.beside]
        read = zip_longest(filled_chunks(self.stream), *beside, fillvalue=())
        total, sums = 0, [0, 0]
        for j, (chunk, *others) in enumerate(read):
            rows, *own = _tuple(chunk)
            if own and self.beside[0] is not None:
                refuse_tuple(chunk)
            found = zip(self.beside, others, [*own, None, None])
            values = [mine if given is None else other for given, other, mine in found]
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
            yield rows, *values
        for watch in self.watches:
            watch.compare("rows", total)


class _Side:
    """The rows (0), the targets (1) or the weights (2) of a stream of tuples."""

    def __init__(self, tuples: _Tuples, which: int) -> None:
        self.tuples, self.which = tuples, which

    def __iter__(self) -> Iterator[Any]:
        return (parts[self.which] for parts in self.tuples)


def sides(X: Any, y: Any, weights: Any) -> tuple[Any, Any, Any]:
    """(rows, targets, weights): those that come in a stream are sides of it, others as they are."""
    if not is_stream(X):
        return X, y, weights
    refuse_iterator(X)
    columns = [values if is_stream(values) else None for values in (y, weights)]
    for name, column in zip(_Tuples.NAMES[1:], columns):
        if column is not None:
            refuse_iterator(column, name)
    first = next(iter(X), None) if y is None else None
    own = first[1:] if isinstance(first, tuple) else ()
    if len(own) == 2 and weights is not None:
        raise ValueError("weights come in the tuples of X and as sample_weight: give them once.")
    if not own and columns == [None, None]:
        return X, y, weights
    tuples = _Tuples(X, *columns)
    found = [
        _Side(tuples, i + 1) if i < len(own) or columns[i] is not None else values
        for i, values in enumerate((y, weights))
    ]
    return _Side(tuples, 0), found[0], found[1]


def _paired_columns(source: Any, columns: Sequence[Column]) -> Iterator[tuple[Any, list[Any]]]:
    """Every chunk of rows that is not empty, and the blocks of the columns that belong to it."""
    tuples = source.tuples if isinstance(source, _Side) else None
    held = {
        i: column.make(as_host(column.values))
        for i, column in enumerate(columns)
        if column.values is not None and not isinstance(column.values, _Side)
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
    return int(chunk.shape[0]) if hasattr(chunk, "shape") else len(chunk)


def refuse_tuple(chunk: Any) -> None:
    if isinstance(chunk, (str, bytes)):
        raise TypeError(
            f"a chunk of X is the text {chunk!r:.40}: a stream gives several rows at once, here "
            "lists of texts."
        )
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
        return int(12 * chunk.nnz + 8 * chunk.shape[0])
    size = getattr(chunk, "nbytes", None)
    is_objects = getattr(getattr(chunk, "dtype", None), "kind", "f") == "O"
    return size if isinstance(size, int) and not is_objects else 1000 * n_rows(chunk)
