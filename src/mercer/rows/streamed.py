"""Streams: rows that do not fit the memory, in chunks that can be read more than once.

Certification needs every row, and methods need another pass, so a stream must start anew each time
it is iterated: a class with __iter__, or Chunks around a function that opens the data.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse

from ..engine import is_array, is_cpu, namespace, rows_of, tiles, to_torch
from ..kernels import points as pts
from .held import CHUNK_ROWS, KeptHere, rows_at, stacked
from .interface import LargestResidual, LocalRows, SampledRows, smallest
from .streams import Watch, bytes_of_rows, checksum_of, paired_columns, refuse_iterator


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
    def on_device(cls, X: np.ndarray, device: str = "cuda", rows: int = CHUNK_ROWS) -> "Chunks":
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


@dataclass
class StreamedRows(LocalRows):
    """The chunks of a stream as checked points, read anew in each pass.

    Parameters
    ----------
    source : re-iterable of chunks
    check : function that turns a chunk into points
    room : bytes of rows that a filter may keep in memory
    """

    source: Any
    check: Any
    room: int = 1 << 30
    watch: Watch = field(default_factory=lambda: Watch("X"))

    def __post_init__(self):
        refuse_iterator(self.source)

    @property
    def names(self):
        return self.check.names

    @property
    def n(self) -> int:
        if "rows" not in self.watch.seen:
            deque(self.parts(), maxlen=0)
        return self.watch.seen["rows"]

    def blocks(self, rows: int):
        return (points for _, points, _ in self.parts())

    def take(self, positions: np.ndarray):
        parts = []
        for start, points, _ in self.parts():
            here = (positions >= start) & (positions < start + points.shape[0])
            if here.any():
                parts.append(rows_at(points, positions[here] - start))
        return stacked(*parts)

    def checked(self, check: Any):
        return replace(self, check=check)

    def parts(self, columns: Any = ()):
        start, fingerprint = 0, 0
        for chunk, blocks in paired_columns(self.source, columns):
            points = self.check(chunk)
            fingerprint = _fingerprint_of(points, fingerprint)
            yield start, points, blocks
            start += points.shape[0]
        if start == 0:
            raise ValueError("Found array with 0 sample(s): the stream holds no rows.")
        self.watch.compare("rows", start)
        self.watch.compare("values", fingerprint)

    def sample(self, size: int, rng: np.random.Generator):
        kept, positions, numbers, n = None, np.empty(0, dtype=int), np.empty(0), 0
        for start, points, _ in self.parts():
            n = start + points.shape[0]
            numbers = np.concatenate([numbers, rng.random(points.shape[0])])
            positions = np.concatenate([positions, start + np.arange(points.shape[0])])
            best = smallest(numbers, size)
            # A copy, always: the stream may fill one buffer again and again.
            old, new = best[best < _count(kept)], best[best >= _count(kept)] - _count(kept)
            picked = pts.take(points, new)
            kept = picked if kept is None else stacked(pts.take(kept, old), picked)
            positions, numbers = positions[best], numbers[best]
        return SampledRows(kept, positions, n)

    def filter(self, keep: Any):
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


def _fingerprint_of(points: Any, before: int = 0):
    """A number that changes with the values, whatever the cuts."""
    if scipy.sparse.issparse(points):
        return checksum_of(points.data, checksum_of(points.indices, before))
    if is_array(points) and not is_cpu(points):  # one number travels, not all rows
        points = namespace(points).sum(points)
    return checksum_of(points, before)


def _count(points):
    return 0 if points is None else points.shape[0]
