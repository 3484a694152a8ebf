"""Rows: one protocol for where the rows of a fit come from; and HeldRows, those in memory.

Rows are held in memory, streamed in chunks, or partitioned over a Dask cluster. A fit samples them,
folds a statistic over them, and filters those that its landmarks do not explain yet; it never asks
where they are.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import scipy.sparse

from ..engine import as_host, is_array, is_numpy, namespace, rows_of, same_kind, tiles
from ..kernels import points as pts

# Rows that are worked on at once.
CHUNK_ROWS, CHUNK_VALUES = 1 << 16, 1 << 22


@dataclass(frozen=True)
class SampledRows:
    """Some of n rows, drawn evenly: every row has a random number, and those with the `size`
    smallest are the sample, the same from an array, a stream, or a cluster."""

    points: Any
    positions: np.ndarray  # among all rows, ascending where the parts of a sum were in order
    n: int
    numbers: np.ndarray
    size: int

    def __add__(self, other: "SampledRows") -> "SampledRows":
        return SampledRows.best([self, other])

    @classmethod
    def best(cls, parts: Sequence["SampledRows"]) -> "SampledRows":
        """The sample of all rows of these parts, as a copy: a stream may fill one buffer again."""
        numbers, size = np.concatenate([part.numbers for part in parts]), parts[0].size
        chosen = np.arange(len(numbers))
        if len(numbers) > size:
            chosen = np.sort(np.argpartition(numbers, size)[:size])
        ends = np.cumsum([len(part.numbers) for part in parts])
        mine = np.split(chosen, np.searchsorted(chosen, ends[:-1]))
        picks = [(p, i - end + len(p.numbers)) for p, i, end in zip(parts, mine, ends) if len(i)]
        return cls(
            joined_blocks([rows_at(part.points, where) for part, where in picks]),
            np.concatenate([part.positions[where] for part, where in picks] or [chosen]),
            sum(part.n for part in parts),
            numbers[chosen],
            size,
        )


@dataclass(frozen=True)
class Column:
    """Values that belong to the rows: targets or weights; `make` turns a block into an array."""

    values: Any
    name: str
    make: Callable[[Any], Any] = np.asarray


@dataclass(frozen=True)
class LargestResidual:
    """The largest relative and absolute residual of some rows."""

    relative: float = 0.0
    absolute: float = 0.0

    def __add__(self, other: "LargestResidual") -> "LargestResidual":
        return LargestResidual(
            max(self.relative, other.relative), max(self.absolute, other.absolute)
        )


class Rows(ABC):
    """All rows of a data set, in their order."""

    names: Any = None  # of the columns

    @property
    @abstractmethod
    def n(self) -> int:
        """How many rows; counted once where the source does not know."""

    @abstractmethod
    def blocks(self, rows: int) -> Iterator[Any]:
        """All rows in order, here; at most `rows` at once where they are held."""

    @abstractmethod
    def take(self, positions: np.ndarray) -> Any:
        """The rows at these positions, which must increase."""

    @abstractmethod
    def checked(self, check: Any) -> "Rows":
        """The same rows, with another PointCheck of the blocks that are read from now on."""

    @abstractmethod
    def sample(self, size: int, rng: np.random.Generator) -> SampledRows:
        """`size` rows drawn evenly: the same rows however they are cut or stored."""

    @abstractmethod
    def fold(self, step: Callable[..., Any], columns: Sequence[Column] = ()) -> Any:
        """The sum of step(points, *blocks of the columns, start=...) over all blocks of rows."""

    @abstractmethod
    def chain(self, step: Callable[..., Any], state: Any, columns: Sequence[Column] = ()) -> Any:
        """state = step(state, points, *blocks of the columns) for one block after the other."""

    @abstractmethod
    def filter(self, keep: Callable[[Any], tuple[np.ndarray, LargestResidual]]) -> Any:
        """The rows that are kept, left where they are: they count, draw and filter as KeptHere.

        keep(points) tells which rows to keep, and the worst residual of the others.
        """


class LocalRows(Rows):
    """Rows that this process reads itself, block after block."""

    @abstractmethod
    def parts(self, columns: Sequence[Column] = ()) -> Iterator[tuple[int, Any, list[Any]]]:
        """(position of the first row, points, blocks of the columns) of all blocks of rows."""

    def fold(self, step: Callable[..., Any], columns: Sequence[Column] = ()) -> Any:
        parts = self.parts(columns)
        return reduce(add, (step(points, *blocks, start=a) for a, points, blocks in parts))

    def chain(self, step: Callable[..., Any], state: Any, columns: Sequence[Column] = ()) -> Any:
        for _, points, blocks in self.parts(columns):
            state = step(state, points, *blocks)
        return state


@dataclass(frozen=True)
class HeldRows(LocalRows):
    """Points in memory, in their order."""

    points: Any
    names: list[Any] | None = None

    @property
    def n(self) -> int:
        return int(self.points.shape[0])

    def blocks(self, rows: int) -> Iterator[Any]:
        return (rows_at(self.points, slice(a, b)) for a, b in tiles.cuts(self.n, rows))

    def take(self, positions: np.ndarray) -> Any:
        return rows_at(self.points, positions)

    def checked(self, check: Any) -> "HeldRows":
        """No block is read again."""
        return self

    def sample(self, size: int, rng: np.random.Generator) -> SampledRows:
        every, numbers = np.arange(self.n), rng.random(self.n)
        return SampledRows.best([SampledRows(self.points, every, self.n, numbers, size)])

    def parts(self, columns: Any = ()) -> Iterator[tuple[int, Any, list[Any]]]:
        arrays = self.held_columns(columns)
        for a, b in tiles.cuts(self.n, CHUNK_ROWS):
            blocks = [None if array is None else array[a:b] for array in arrays]
            yield a, rows_of(self.points, a, b), blocks

    def filter(self, keep: Any) -> Any:
        every = np.arange(self.n)
        return KeptHere(self.points, every, every).filter(keep)

    def held_columns(self, columns: Any) -> list[Any]:
        """Columns as whole arrays, which must have one value for each row."""
        arrays = [None if c.values is None else c.make(as_host(c.values)) for c in columns]
        for column, array in zip(columns, arrays):
            if array is not None and len(array) != self.n:
                raise ValueError(f"X has {self.n} rows and {column.name} has {len(array)}.")
        return arrays


@dataclass(frozen=True)
class KeptHere:
    """Some rows of `points`, and their positions among all rows of the data."""

    points: Any
    rows: np.ndarray
    positions: np.ndarray
    worst: LargestResidual = field(default_factory=LargestResidual)  # of the rows not kept
    more: int = 0  # other rows that were kept, for which there was no room: `stream` reads them
    stream: Any = None
    seen: int = 0  # rows that were looked at

    @property
    def count(self) -> int:
        return len(self.rows) + self.more

    def draw(self, size: int, rng: np.random.Generator) -> tuple[Any, np.ndarray]:
        """At most `size` of the rows, drawn evenly, and their positions among all rows."""
        chosen = draw_positions(len(self.rows), size, rng)
        return pts.take(self.points, self.rows[chosen]), self.positions[chosen]

    def filter(self, keep: Any) -> Any:
        """Those that are kept again."""
        if self.more:
            return self.stream.filter(keep)
        left, worst = [], LargestResidual()
        wide = getattr(self.points, "ndim", 1) == 2
        size = tiles.panel_values(CHUNK_VALUES) // (self.points.shape[1] if wide else 1)
        for a, b in tiles.cuts(self.count, min(CHUNK_ROWS, max(256, size))):  # these are copies
            mask, others = keep(pts.take(self.points, self.rows[a:b]))
            left.append(a + np.flatnonzero(mask))
            worst = worst + others
        here = np.concatenate(left) if left else np.empty(0, dtype=int)
        kept = self.rows[here], self.positions[here]
        return KeptHere(self.points, *kept, worst, seen=self.count)

    def alone(self) -> "KeptHere":
        """The same rows in memory of their own: all others can be forgotten."""
        points = pts.take(self.points, self.rows) if len(self.rows) else None
        return replace(self, points=points, rows=np.arange(len(self.rows)))


def draw_positions(count: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Which of `count` kept rows are drawn: all, or `size` of them."""
    return np.arange(count) if count <= size else np.sort(rng.choice(count, size, replace=False))


# --- rows as they were given ----------------------------------------------------------------------


def rows_at(rows: Any, where: Any) -> Any:
    """Rows at these positions, or in a slice, as the kind of thing they came in."""
    if hasattr(rows, "iloc"):
        return rows.iloc[where]
    part = isinstance(where, slice)
    if isinstance(rows, (list, tuple)):
        return list(rows[where]) if part else [rows[i] for i in where]
    if scipy.sparse.issparse(rows):
        return rows.tocsr()[where]
    if pts.is_frame(rows):
        return rows[where] if part else rows[np.asarray(where).tolist()]
    if part:
        return rows[where] if rows.ndim == 1 else rows[where, :]
    return pts.take(rows, where)


def stacked(first: Any, *others: Any) -> Any:
    """Several sets of points, or of rows as they were given, one below the other; those of frames
    are numbered anew."""
    parts = [first, *others]
    if not others:
        return first
    sparse = [scipy.sparse.issparse(part) for part in parts]
    if any(sparse) and not all(sparse):
        raise TypeError(
            "some rows are sparse and others dense: give all of one kind (X.toarray() or "
            "scipy.sparse.csr_array(X))."
        )
    kinds = sorted({type(part).__module__.partition(".")[0] for part in parts} - {"builtins"})
    if len(kinds) > 1:
        raise TypeError(f"some rows are of {' and others of '.join(kinds)}: give all of one kind.")
    if sparse[0]:
        return scipy.sparse.vstack(parts, format="csr")
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat(parts, ignore_index=True)
    if hasattr(first, "columns"):
        import polars as pl

        return pl.concat(parts, how="vertical_relaxed")
    if isinstance(first, list):
        return [item for part in parts for item in part]
    return namespace(*parts).concat(parts, axis=0)


def joined_blocks(chunks: list[Any]) -> Any:
    """Chunks of rows, stacked; None where there are none. All must have the same columns."""
    if not chunks:
        return None
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


def _like_first(chunk: Any, first: Any) -> Any:
    """Lists, arrays and frames may follow each other; others are refused as more rows would be."""
    if hasattr(first, "columns") and hasattr(chunk, "columns"):
        if list(chunk.columns) != list(first.columns):
            one, other = (", ".join(map(str, rows.columns[:5])) for rows in (first, chunk))
            raise ValueError(
                f"the chunks of X have different columns, {one} and {other}: all must have the "
                "same columns in the same order."
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
