"""HeldRows: rows of an array in memory."""

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import scipy.sparse

from ..engine import namespace, rows_of, tiles
from ..kernels import points as pts
from .interface import LargestResidual, SampledRows, draw_positions, smallest, whole_column

# Rows that are worked on at once.
CHUNK_ROWS, CHUNK_VALUES = 1 << 16, 1 << 22


@dataclass(frozen=True)
class HeldRows:
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
        n = self.points.shape[0]
        chosen = smallest(rng.random(n), size)
        return SampledRows(pts.take(self.points, chosen), chosen, n)

    def fold(self, step: Any, columns: Any = ()):
        n = self.points.shape[0]
        arrays = self.held_columns(columns, n)
        blocks = tiles.cuts(n, CHUNK_ROWS)
        parts = (
            step(rows_of(self.points, a, b), *sliced(arrays, a, b), start=a) for a, b in blocks
        )
        return reduce(add, parts)

    def chain(self, step: Any, state: Any, columns: Any = ()):
        n = self.points.shape[0]
        arrays = self.held_columns(columns, n)
        for a, b in tiles.cuts(n, CHUNK_ROWS):
            state = step(state, rows_of(self.points, a, b), *sliced(arrays, a, b))
        return state

    def filter(self, keep: Any):
        kept, worst = [], LargestResidual()
        for a, b in tiles.cuts(self.points.shape[0], CHUNK_ROWS):
            mask, others = keep(rows_of(self.points, a, b))
            kept.append(a + np.flatnonzero(mask))
            worst = worst + others
        return KeptHere(self.points, np.concatenate(kept), np.concatenate(kept), worst)

    def held_columns(self, columns: Any, n: int):
        return [whole_column(column, n) for column in columns]


@dataclass(frozen=True)
class KeptHere:
    """Some rows of `points`, and their positions among all rows of the data."""

    points: Any
    rows: np.ndarray
    positions: np.ndarray
    worst: LargestResidual

    @property
    def count(self):
        return len(self.rows)

    def draw(self, size: int, rng: np.random.Generator):
        chosen = draw_positions(self.count, size, rng)
        return pts.take(self.points, self.rows[chosen]), self.positions[chosen]

    def filter(self, keep: Any):
        left, worst = [], LargestResidual()
        wide = getattr(self.points, "ndim", 1) == 2
        size = tiles.panel_values(CHUNK_VALUES) // (self.points.shape[1] if wide else 1)
        for a, b in tiles.cuts(self.count, min(CHUNK_ROWS, max(256, size))):  # these are copies
            mask, others = keep(pts.take(self.points, self.rows[a:b]))
            left.append(a + np.flatnonzero(mask))
            worst = worst + others
        here = np.concatenate(left) if left else np.empty(0, dtype=int)
        return KeptHere(self.points, self.rows[here], self.positions[here], worst)


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


def sliced(arrays: list[Any], a: int, b: int):
    return [None if array is None else array[a:b] for array in arrays]


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
