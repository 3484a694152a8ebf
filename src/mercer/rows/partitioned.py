"""PartitionedRows: rows of a Dask collection, worked on where they are.

What travels here (samples, sums, a few rows to grow on) does not grow with the number of rows.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..kernels import points as pts
from .dask import Partitions, check_unchanged, fuse_reads, opened, share, task
from .held import (
    Column,
    KeptHere,
    LargestResidual,
    Rows,
    SampledRows,
    draw_positions,
    rows_at,
    stacked,
)
from .streams import checksum_of


@dataclass(eq=False)
class PartitionedRows(Rows):
    """The partitions of a Dask array or DataFrame."""

    parts: Partitions
    check: Callable[[Any], Any]  # turns a block into points
    fingerprints: dict[int, int] = field(default_factory=dict)  # of blocks, by their numbers

    @property
    def names(self) -> list[Any] | None:
        return list(self.parts.X.columns) if self.parts.frame else None

    @property
    def n(self) -> int:
        return self.parts.n

    def blocks(self, rows: int) -> Iterator[Any]:
        found = (self.parts.collect([block])[0] for block in self.parts.blocks)
        return (self.check(block) for block in found if block.shape[0])

    def take(self, positions: np.ndarray) -> Any:
        found = _picked(self.parts, task(rows_at), self.parts.blocks, self.parts.lengths, positions)
        return stacked(*map(self.check, found))

    def checked(self, check: Any) -> "PartitionedRows":
        return replace(self, check=check)

    def sample(self, size: int, rng: np.random.Generator) -> SampledRows:
        n = self.parts.n
        # Almost surely enough of them: ten standard deviations.
        below = 1.0 if n <= size else min(1.0, (size + 10 * size**0.5) / n)
        shared = self.parts.share((self.check, rng, below, size))
        drawn = self.parts.collect(self.parts.each(_smallest, shared, self._starts()[0]))
        self.fingerprints.update(enumerate(fingerprint for _, fingerprint in drawn))
        return replace(SampledRows.best([part for part, _ in drawn if part is not None]), n=n)

    def fold(self, step: Any, columns: Any = ()) -> Any:
        shared, blocks = self._shared(step, columns)
        tasks = self.parts.each(_step, shared, *self._starts(), blocks=blocks)
        return self.parts.total(tasks)

    def chain(self, step: Any, state: Any, columns: Any = ()) -> Any:
        """The state goes to the rows: a chain of tasks, one per partition."""
        shared, blocks = self._shared(step, columns)
        links = [share(state, self.parts.client)]
        for block, fingerprint in zip(blocks, self._starts()[1], strict=True):
            links.append(self.parts.delayed(_link, links[-1], shared, block, fingerprint))
        # Fused with all links in view: else they would be one task, to which all rows travel.
        return opened(fuse_reads(links)[-1].compute(optimize_graph=False))

    def _shared(self, step: Callable[..., Any], columns: Sequence[Column]) -> tuple[Any, list[Any]]:
        """Common inputs of a pass's tasks, and the blocks of rows with those of the columns."""
        made = [(c.name, None if c.values is None else c.make) for c in columns]
        given = [(c.values, c.name) for c in columns if c.values is not None]
        return self.parts.share((self.check, step, made)), self.parts.aligned_columns(given)

    def filter(self, keep: Any) -> "_KeptOnWorkers":
        shared = self.parts.share((self.check, keep))
        kept = self.parts.keep(self.parts.each(_kept, shared, *self._starts()))
        return _KeptOnWorkers(self.parts, kept, int(self.parts.lengths.sum()))

    def _starts(self) -> tuple[list[int], list[int | None]]:
        starts = np.concatenate([[0], self.parts.lengths.cumsum()[:-1]]).tolist()
        return starts, [self.fingerprints.get(i) for i in range(len(starts))]


class _KeptOnWorkers:
    """Rows that a filter kept in their partitions."""

    def __init__(self, parts: Partitions, kept: list[Any], expected: int) -> None:
        self.parts, self.kept = parts, kept
        told = parts.collect([parts.delayed(_summary, part) for part in kept])
        check_unchanged(sum(rows for _, _, rows in told), expected)
        self.counts = np.array([count for count, _, _ in told])
        self.worst = sum((worst for _, worst, _ in told), LargestResidual())

    @property
    def count(self) -> int:
        return int(self.counts.sum())

    def draw(self, size: int, rng: np.random.Generator) -> tuple[Any, np.ndarray]:
        chosen = draw_positions(self.count, size, rng)
        found = _picked(self.parts, _pick, self.kept, self.counts, chosen)
        return stacked(*[points for points, _ in found]), np.concatenate([p for _, p in found])

    def filter(self, keep: Any) -> "_KeptOnWorkers":
        shared = self.parts.share(keep)
        kept = self.parts.keep([self.parts.delayed(_kept_again, shared, p) for p in self.kept])
        return _KeptOnWorkers(self.parts, kept, self.count)


def _picked(
    parts: Partitions,
    pick: Callable[..., Any],
    blocks: list[Any],
    counts: np.ndarray,
    positions: np.ndarray,
) -> list[Any]:
    """[pick(block, which of its rows)] of the blocks, of so many rows each, that hold these."""
    ends = counts.cumsum()
    which = np.split(positions, np.searchsorted(positions, ends[:-1]))
    found = zip(blocks, which, ends - counts, strict=True)
    return parts.collect([parts.delayed(pick, b, w - start) for b, w, start in found if len(w)])


# --- tasks ----------------------------------------------------------------------------------------


@task
def _smallest(shared: Any, block: Any, start: int) -> tuple[SampledRows | None, int]:
    check, rng, below, size = shared
    fingerprint, n, own = _fingerprint_of_block(block), block.shape[0], deepcopy(rng)
    own.bit_generator.advance(start)
    numbers = own.random(n)
    chosen = np.flatnonzero(numbers <= below)
    if len(chosen) == 0:
        return None, fingerprint
    points = check(rows_at(block, chosen))
    return SampledRows(points, start + chosen, n, numbers[chosen], size), fingerprint


@task
def _step(shared: Any, row: Any, start: int, fingerprint: int | None) -> Any:
    step, points, arrays = _unpacked(shared, row, fingerprint)
    return None if points is None else step(points, *arrays, start=start)


@task
def _link(state: Any, shared: Any, row: Any, fingerprint: int | None) -> Any:
    step, points, arrays = _unpacked(shared, row, fingerprint)
    # A task may run again: it must not change what it was given.
    return state if points is None else step(deepcopy(state), points, *arrays)


def _unpacked(
    shared: Any, row: Any, fingerprint: int | None
) -> tuple[Callable[..., Any], Any, list[Any]]:
    """(step, points of a block or None where it is empty, arrays of its columns)"""
    check, step, made = shared
    block, *values = row
    _compare(block, fingerprint)
    n, arrays, given = block.shape[0], [], iter(values)
    for name, make in made:
        array = None if make is None else make(next(given))
        if array is not None and len(array) != n:
            raise ValueError(
                f"a partition of X has {n} rows and that of {name} {len(array)}: both must be cut "
                "at the same rows."
            )
        arrays.append(array)
    return step, check(block) if n else None, arrays


@task
def _kept(shared: Any, block: Any, start: int, fingerprint: int | None) -> Any:
    """The rows of a block that are kept."""
    check, keep = shared
    _compare(block, fingerprint)
    every = np.arange(block.shape[0])
    rows = KeptHere(check(block) if len(every) else None, every, start + every)
    return rows.filter(keep).alone()


@task
def _kept_again(keep: Any, kept: KeptHere) -> Any:
    return kept.filter(keep).alone()


@task
def _summary(kept: KeptHere) -> tuple[int, LargestResidual, int]:
    return kept.count, kept.worst, kept.seen


@task
def _pick(kept: KeptHere, which: np.ndarray) -> tuple[Any, np.ndarray]:
    return pts.take(kept.points, which), kept.positions[which]


def _compare(block: Any, fingerprint: int | None) -> None:
    if fingerprint is not None and _fingerprint_of_block(block) != fingerprint:
        raise RuntimeError(
            "X changes each time it is computed: the values of a partition differ between two "
            "passes. Write it to files, or X.persist() it."
        )


def _fingerprint_of_block(block: Any) -> int:
    """A number that changes with the values of an array or a frame."""
    if hasattr(block, "iloc"):
        from pandas.util import hash_pandas_object

        return int(hash_pandas_object(block, index=False).sum()) if len(block) else 0
    if not isinstance(block, np.ndarray) or block.dtype == object:
        return 0
    return checksum_of(block)
