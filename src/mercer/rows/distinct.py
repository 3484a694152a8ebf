"""The different values of a column (the labels of classes), wherever it is."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .dask import delayed_blocks, is_dask
from .source import in_pieces, pieces


def distinct(column: Any, make: Callable[[Any], Any] = np.asarray) -> np.ndarray:
    """The sorted values of a column; `make` turns a block of it into an array."""
    if is_dask(column):
        import dask

        task = dask.delayed(_values, pure=False)
        found = dask.compute(*[task(block, make) for block in delayed_blocks(column)])
    else:
        found = [
            _values(block, make) for block in (pieces(column) if in_pieces(column) else [column])
        ]
    return np.unique(np.concatenate([values for values in found if len(values)]))


def _values(block, make):
    return np.unique(make(block)) if len(block) else np.empty(0)
