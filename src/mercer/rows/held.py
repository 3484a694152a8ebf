"""HeldRows: rows of an array in memory."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse

from ..engine import as_host, namespace, rows_of, tiles
from ..kernels import points as pts
from .interface import (
    LargestResidual,
    LocalRows,
    SampledRows,
    draw_positions,
    smallest,
)

# Rows that are worked on at once.
CHUNK_ROWS, CHUNK_VALUES = 1 << 16, 1 << 22


@dataclass(frozen=True)
class HeldRows(LocalRows):
    """Points in memory, in their order."""

    points: Any
    names: list | None = None

    @property
    def n(self) -> int:
        return int(self.points.shape[0])

    def blocks(self, rows: int):
        return (rows_at(self.points, slice(a, b)) for a, b in tiles.cuts(self.n, rows))

    def take(self, positions: np.ndarray):
        return rows_at(self.points, positions)

    def checked(self, check: Any):
        """No block is read again."""
        return self

    def sample(self, size: int, rng: np.random.Generator):
        chosen = smallest(rng.random(self.n), size)
        return SampledRows(pts.take(self.points, chosen), chosen, self.n)

    def parts(self, columns: Any = ()):
        arrays = self.held_columns(columns)
        for a, b in tiles.cuts(self.n, CHUNK_ROWS):
            blocks = [None if array is None else array[a:b] for array in arrays]
            yield a, rows_of(self.points, a, b), blocks

    def filter(self, keep: Any):
        every = np.arange(self.n)
        return KeptHere(self.points, every, every).filter(keep)

    def held_columns(self, columns: Any):
        """Columns as whole arrays, which must have one value for each row."""
        arrays = [None if c.values is None else c.make(as_host(c.values)) for c in columns]
        for column, array in zip(columns, arrays):
            if array is not None and len(array) != self.n:
                raise ValueError(f"X has {self.n} rows and {column.name} has {len(array)}.")
        return arrays


@dataclass(frozen=True)
class KeptHere:
    """Some rows of `points`, and their positions among all rows of the data.

    more : how many other rows were kept, for which there was no room: `stream` reads them again
    """

    points: Any
    rows: np.ndarray
    positions: np.ndarray
    worst: LargestResidual = field(default_factory=LargestResidual)
    more: int = 0
    stream: Any = None

    @property
    def count(self):
        return len(self.rows) + self.more

    def draw(self, size: int, rng: np.random.Generator):
        chosen = draw_positions(len(self.rows), size, rng)
        return pts.take(self.points, self.rows[chosen]), self.positions[chosen]

    def filter(self, keep: Any):
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
        return KeptHere(self.points, self.rows[here], self.positions[here], worst)

    def alone(self) -> "KeptHere":
        """The same rows in memory of their own: all others can be forgotten."""
        points = pts.take(self.points, self.rows) if len(self.rows) else None
        return replace(self, points=points, rows=np.arange(len(self.rows)))


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


def stacked(first: Any, *others):
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
