"""Rows: one protocol for where the rows of a fit come from.

Rows are held in memory, streamed in chunks, or partitioned over a Dask cluster. A fit samples them,
folds a statistic over them, and filters those that its landmarks do not explain yet; it never asks
where they are.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True)
class SampledRows:
    """Some of the rows, their positions among all rows (ascending), and the number of all rows."""

    points: Any
    positions: np.ndarray
    n: int


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


# keep(points) -> (which rows to keep, the worst residual of the others)
Keep = Callable[[Any], tuple[np.ndarray, LargestResidual]]


class Check(Protocol):
    """Turns a block of rows into points, or says what is wrong with it."""

    first: bool  # whether the next block decides the columns

    @property
    def names(self) -> list | None:
        """Column names, known once a block has been read."""

    def __call__(self, block: Any) -> Any: ...


class KeptRows(Protocol):
    """Rows that a filter kept, wherever they are."""

    @property
    def count(self) -> int: ...

    @property
    def worst(self) -> LargestResidual:
        """The largest residual of the rows that were not kept."""

    def draw(self, size: int, rng: np.random.Generator) -> tuple[Any, np.ndarray]:
        """At most `size` of the rows, drawn evenly, and their positions among all rows."""

    def filter(self, keep: Keep) -> "KeptRows": ...


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
    def checked(self, check: Check) -> "Rows":
        """The same rows, with another check of the blocks that are read from now on."""

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
    def filter(self, keep: Keep) -> KeptRows:
        """The rows that `keep` keeps, left where they are."""


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


def draw_positions(count: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Which of `count` kept rows are drawn: all, or `size` of them."""
    if count <= size:
        return np.arange(count)
    return np.sort(rng.choice(count, size, replace=False))


def smallest(numbers: np.ndarray, size: int) -> np.ndarray:
    """Positions of the `size` smallest numbers, ascending.

    Every row has a random number and the smallest are the sample: the same rows from an array, a
    stream, or a cluster.
    """
    if len(numbers) <= size:
        return np.arange(len(numbers))
    return np.sort(np.argpartition(numbers, size)[:size])
