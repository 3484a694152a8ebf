"""Training: rows, targets and weights, read, checked and bound to a kernel once."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..engine.resources import Resources
from ..kernels import Kernel
from .held import HeldRows
from .interface import Rows
from .validate import PointCheck, take_input_names


@dataclass(frozen=True)
class Training:
    """The rows of a fit, with their targets and weights.

    kernel : bound to the rows where they are held; else it is bound to a sample of them
    rows : held, streamed or partitioned
    workers : of the cluster that held rows came from, or None
    check : of the blocks of rows that are not held
    learner : the estimator, or a copy of it, that has learned about the columns
    T, weights : arrays where rows are held, else columns that are read with the rows
    n_targets : columns of T; 0 for labels
    single : whether y is one-dimensional
    classes : sorted labels, where T holds their numbers
    """

    kernel: Kernel
    rows: Rows
    resources: Resources = field(default_factory=Resources)
    workers: Any = None
    check: PointCheck | None = None
    learner: Any = None
    T: Any = None
    weights: Any = None
    n_targets: int = 0
    single: bool = True
    classes: Any = None

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
        return not self.kernel.layout.on_data

    def some(self, rows: np.ndarray) -> "Training":
        """Some of the held rows; of a Gram matrix, their rows and columns."""
        return replace(self, rows=HeldRows(self.kernel.layout.subset(self.points, rows)))

    def rows_of(self, kernel: Kernel) -> Rows:
        """The rows, whose blocks are checked against the range of the bound kernel as well."""
        return self.rows if self.check is None else self.rows.checked(self.check.of_bound(kernel))

    def keep_names(self, estimator: Any) -> None:
        """Keep what was learned about the columns; of rows that pass by, once they have."""
        take_input_names(estimator, self.learner)
