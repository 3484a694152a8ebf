"""Training: rows that have been read, checked and bound to a kernel once, for all that follows."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..engine.resources import Resources
from ..kernels import Kernel
from ..kernels.points import take
from .held import HeldRows
from .interface import Rows


@dataclass(frozen=True)
class Training:
    """The rows of a fit.

    kernel : bound to the rows where they are held; else it is bound to a sample of them
    rows : held, streamed or partitioned
    workers : of the cluster that held rows came from, or None
    bound_check : from the bound kernel to the check of blocks that are read again
    """

    kernel: Kernel
    rows: Rows
    resources: Resources = field(default_factory=Resources)
    workers: Any = None
    bound_check: Callable[[Any], Any] | None = None

    @classmethod
    def of(cls, kernel: Kernel, points: Any, **resources: Any) -> "Training":
        """Points of a bound kernel that are in memory."""
        return cls(kernel, HeldRows(points), Resources(**resources))

    @property
    def is_held(self) -> bool:
        return isinstance(self.rows, HeldRows)

    @property
    def points(self) -> Any:
        """All rows, in memory."""
        assert isinstance(self.rows, HeldRows)
        return self.rows.points

    @property
    def n(self) -> int | None:
        """None where the rows have not been counted yet."""
        return int(self.points.shape[0]) if self.is_held else None

    @property
    def is_gram(self) -> bool:
        """Whether the points are rows of a kernel matrix."""
        return bool(self.kernel.kind == "gram")

    def some(self, rows: np.ndarray) -> "Training":
        """Some of the held rows; of a Gram matrix, their rows and columns."""
        points = take(self.points, rows)
        return replace(self, rows=HeldRows(points[:, rows] if self.is_gram else points))
