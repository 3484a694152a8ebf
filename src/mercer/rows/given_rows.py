"""GivenRows: rows as they came, frames and lists included, wherever they are.

A test of samples needs three things: how many rows there are, some of them at chosen positions, and
all of them chunk by chunk. What is held, read from a stream or computed by Dask answers all three.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..kernels import Kernel
from ..kernels import points as pts
from .dask import is_dask
from .gather import gather_few
from .held import rows_at, stacked
from .source import in_pieces, pieces
from .streams import is_stream, refuse_iterator


class GivenRows:
    """Rows as they came: `held` in memory, or in chunks that are read as often as asked for."""

    def __init__(self, X: Any, name: str, kernel: Kernel):
        self.name = name
        if is_stream(X):
            refuse_iterator(X, name, "a test")
        X = gather_few(X)  # then a test sees what it sees of an array
        self.held = not in_pieces(X)
        # What is wrong with rows in memory is said before any work.
        as_given = not self.held or pts.is_frame(X)
        self.source = X if as_given else kernel.points(X, name=name)
        self._n: int | None = pts.n_points(self.source) if self.held else None

    @property
    def n(self) -> int:
        """How many rows; counted once where the source does not know."""
        if self._n is None:
            self._n = sum(map(pts.n_points, pieces(self.source)))
        return self._n

    def chunks(self, rows: int = 8192) -> Iterator[Any]:
        """All rows in order, as they were given; at most `rows` at once where they are held."""
        if not self.held:
            yield from pieces(self.source)
            return
        for start in range(0, self.n, rows):
            yield rows_at(self.source, slice(start, min(start + rows, self.n)))

    def take(self, positions: np.ndarray) -> Any:
        """The rows at these positions, which must increase."""
        if self.held:
            return rows_at(self.source, positions)
        parts, start = [], 0
        for chunk in pieces(self.source):
            stop = start + pts.n_points(chunk)
            here = positions[(positions >= start) & (positions < stop)] - start
            if len(here):
                parts.append(rows_at(chunk, here))
            start = stop
        return joined(parts)

    @property
    def columns(self) -> list | None:
        """Names of the columns, from no more than the first piece; None where they have none."""
        if is_dask(self.source):
            return list(self.source.columns) if hasattr(self.source, "columns") else None
        return pts.column_names(next(pieces(self.source)) if not self.held else self.source)


def joined(parts: list[Any]) -> Any:
    """Several sets of rows, one below the other."""
    whole = stacked(*(pts.as_objects(p) if isinstance(p, (list, tuple)) else p for p in parts))
    return whole.reset_index(drop=True) if len(parts) > 1 and hasattr(whole, "iloc") else whole
