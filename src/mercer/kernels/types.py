"""The types in signatures of kernels."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..engine import Array


class _Sparse(Protocol):
    """A sparse matrix of SciPy."""

    def tocsr(self, copy: bool = ...) -> Any: ...


# Points of users: arrays of any backend, frames, sparse matrices, lists of objects.
Data: TypeAlias = ArrayLike | Sequence[Any] | _Sparse
# Fits also accept a stream of chunks, which is read more than once, or a Dask collection.
Input: TypeAlias = Data | Iterable[Any]
RandomState: TypeAlias = int | np.random.RandomState | None
# tile(rows, columns=slice(None)) -> k(rows, S[columns])
Tile: TypeAlias = Callable[..., Array]
# One number for all columns, or one per column.
PerColumn: TypeAlias = float | Sequence[float] | Array
Gamma: TypeAlias = PerColumn | Literal["scale", "median"]
# Positions, a mask, a slice or names.
Columns: TypeAlias = int | str | slice | Sequence[int] | Sequence[str] | Array
