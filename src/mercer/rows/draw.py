"""Some rows of a stream or a Dask collection, drawn at random in one pass where the rows are."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .dask import Partitions, is_dask
from .gather import joined_blocks
from .held import rows_at
from .interface import smallest
from .streams import is_stream, n_rows, refuse_iterator
from .tasks import task


def drawn_rows(X: Any, size: int, seed: int) -> tuple[Any, int | None]:
    """(at most `size` of the rows, in their order; how many there are).

    Rows that do not come in pieces are taken as they are, and not counted.
    """
    if is_dask(X):
        parts = Partitions(X)
        numbered = range(len(parts.blocks))
        found = parts.total(parts.each(_drawn, parts.share((size, seed)), numbered))
    elif is_stream(X):
        refuse_iterator(X)
        found = None
        for j, chunk in enumerate(X):
            part = _Drawn.of(chunk, size, seed, j)
            found = part if found is None else found + part
    else:
        return X, None
    if found is None or not found.n:
        raise ValueError("Found array with 0 sample(s): there are no rows in X.")
    return rows_at(found.rows, np.argsort(found.places)), found.n


@dataclass
class _Drawn:
    """The rows with the smallest keys among n rows; sums keep as many of both."""

    rows: Any
    keys: np.ndarray
    places: np.ndarray  # in the whole: sums are added in any order
    n: int
    size: int

    @classmethod
    def of(cls, block: Any, size: int, seed: int, number: int):
        n = n_rows(block)
        keys = np.random.default_rng((seed, number)).random(n)
        kept = smallest(keys, size)
        return cls(rows_at(block, kept), keys[kept], (number << 40) + kept, n, size)

    def __add__(self, other):
        if not (len(self.keys) and len(other.keys)):
            fuller = self if len(self.keys) else other
            return replace(fuller, n=self.n + other.n)
        keys = np.concatenate([self.keys, other.keys])
        kept = smallest(keys, self.size)
        rows = rows_at(joined_blocks([self.rows, other.rows]), kept)
        places = np.concatenate([self.places, other.places])[kept]
        return _Drawn(rows, keys[kept], places, self.n + other.n, self.size)


@task
def _drawn(shared, block, number):
    size, seed = shared
    return _Drawn.of(block, size, seed, number)
