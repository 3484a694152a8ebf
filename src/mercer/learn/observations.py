"""Rows to learn from, with weights: each distinct row once, and how many observations it holds.

Repeated rows change nothing in a ridge regression that their number, as a weight, and the mean of
their targets would not: sum_c (t_c - f)^2 = m (mean - f)^2 + a constant. So they are merged. What
leaving one observation out means then depends on the weights:

- whole numbers count observations: one of the m copies is left out, and m - 1 stay;
- other weights say how much a row counts: the row is left out with all of its weight.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..engine import as_numpy, current, is_array, on_device_of
from ..kernels import points as pts
from ..rows import Training
from ..solve import Given, LeaveOneOut, RidgeProblem
from .room import stage_landmarks

# Targets with at most so many values repeat by chance.
_FEW_VALUES = 20
# Repeated rows whose target is repeated too, for each that has another one, in a table with copies.
_RARELY = 9
# Targets that differ by less, beside their spread, are the same number written twice.
_SAME_TARGET = 1e-6


@dataclass(frozen=True)
class Observations:
    """Distinct rows with their targets and weights, on the device of the data.

    X : (n, d) rows, in double precision
    T : (n, t) targets, means over the copies of a row
    weights : (n,) of mean one, or None where all are equal
    share : (n,) the part of a row's weight that one observation has, or None where it has all
    spread : (n,) weighted sum of squares of the copies' targets around their mean, or None
    group : for each row that was given, the distinct row that holds it
    row_weights : weights of the rows that were given, in the same unit; None where all are equal
    """

    X: Any
    T: Any
    weights: Any = None
    share: Any = None
    spread: Any = None
    group: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=int))
    row_weights: np.ndarray | None = None

    @classmethod
    def of(
        cls, X: Any, T: np.ndarray, weights: np.ndarray | None = None, *, together: bool = False
    ) -> "Observations":
        """Merge repeated rows. Weights are positive; `together` leaves out all copies of a row.

        The order of the distinct rows is that of their values where anything is merged or weighted:
        it depends neither on the order of the rows nor on how their copies are written.
        """
        n = X.shape[0]
        counted = weights is None or bool(np.all(weights == np.round(weights)))
        if weights is not None and np.all(weights == (1.0 if counted else weights[0])):
            weights, counted = None, True  # equal weights say nothing
        values = as_numpy(X)
        if weights is None and not _has_copies(values):
            return cls(X, on_device_of(T, X), group=np.arange(n))
        order, new = by_value(values)
        if not counted:
            new[:] = True
        group = np.empty(n, dtype=int)
        group[order] = np.cumsum(new) - 1
        w = np.ones(n) if weights is None else weights
        total = np.bincount(group, w)
        unit = float(total.mean())
        # Relative to the first copy: equal targets have a spread of exactly zero.
        first = T[order[new]]
        beyond = T - first[group]

        def sums(values: np.ndarray) -> np.ndarray:
            return np.column_stack([np.bincount(group, w * column) for column in values.T])

        shift = sums(beyond) / total[:, None]
        spread = sums((beyond - shift[group]) ** 2).sum(axis=1) / unit
        return cls(
            pts.take(X, order[new]),
            on_device_of(first + shift, X),
            on_device_of(total / unit, X),
            on_device_of(1 / total, X) if counted and not together else None,
            on_device_of(spread, X) if counted and not together else None,
            group,
            w / unit,
        )

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def size(self) -> float:
        """Observations that are counted, or rows of equal weight that would say as much."""
        if self.share is not None:
            return float((1 / as_numpy(self.share)).sum())
        weights = np.ones(self.n) if self.weights is None else as_numpy(self.weights)
        return float(weights.sum() ** 2 / (weights**2).sum())

    def some(self, rows: np.ndarray) -> "Observations":
        """Some of the distinct rows; `group` has no meaning there and is empty."""
        own = {name: getattr(self, name) for name in ("X", "T", "weights", "share", "spread")}
        own = {name: part if part is None else pts.take(part, rows) for name, part in own.items()}
        return Observations(**own)

    def problem(
        self, kernel: Any, alpha: float, *, choose: bool = True, points: Any = None, **options: Any
    ) -> RidgeProblem:
        """Ridge with an intercept; the penalty is searched for from alpha on, or given.

        points : of the kernel, where they are not the rows themselves
        """
        rule: Given | LeaveOneOut = Given(np.full(self.T.shape[1], alpha))
        if choose:
            rule = LeaveOneOut(near=alpha, share=self.share, spread=self.spread)
        training = Training.of(kernel, self.X if points is None else points)
        training = replace(training, resources=current())
        return RidgeProblem(training, self.T, rule, self.weights, intercept=True, **options)

    def landmarks_within(self, most: int) -> int:
        """Landmarks, so many at most, that fit the memory with coordinates of 1000 rows."""
        return stage_landmarks(min(self.n, 1000), min(self.n, most))

    def given_rows(self, distinct: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Given rows that some distinct rows hold: (which, their place there, their weights)."""
        place = np.full(self.n, -1)
        place[distinct] = np.arange(len(distinct))
        rows = np.flatnonzero(place[self.group] >= 0)
        weights = np.ones(len(rows)) if self.row_weights is None else self.row_weights[rows]
        return rows, place[self.group[rows]], weights

    @staticmethod
    def copies(X: Any, T: np.ndarray, weights: np.ndarray | None) -> int:
        """How many observations are copies of another, target included, and not by chance.

        With targets of many values, rows that repeat each other but for few do so with the same
        target: a copy in the other part then tells nothing about new rows. In a table of a few
        categories targets differ, and a new row may well be a copy of a known one: 0.
        """
        if weights is not None and not np.all(weights == np.round(weights)):
            return 0
        values = as_numpy(X)
        if (weights is None and not _has_copies(values)) or len(np.unique(T)) <= _FEW_VALUES:
            return 0
        observations = len(T) if weights is None else round(float(weights.sum()))
        distinct = int(by_value(values)[1].sum())
        order = np.lexsort([*T.T[::-1], *values.T[::-1]])
        other_row = (values[order][1:] != values[order][:-1]).any(axis=1)
        apart = np.abs(np.diff(T[order], axis=0)) > _SAME_TARGET * T.std(axis=0)
        pairs = 1 + int((other_row | apart.any(axis=1)).sum())
        return observations - pairs if observations - pairs > _RARELY * (pairs - distinct) else 0

    @staticmethod
    def distinct(X: Any, weighted: bool) -> Any:
        """The distinct rows of an array of numbers: repeated rows and weights then scale alike."""
        if not is_array(X) or X.dtype.kind not in "fiu" or 0 in X.shape:
            return X
        if not (weighted or _has_copies(X)):
            return X
        order, new = by_value(X)
        return X[order[new]]


def _has_copies(values: np.ndarray) -> bool:
    """Whether any two rows are equal."""
    return len({row.tobytes() for row in values + 0}) < len(values)  # + 0: -0.0 becomes 0.0


def by_value(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(order, new): rows sorted by value, and which of them differ from the one before."""
    order = np.lexsort(values.T[::-1])
    return order, np.r_[True, (values[order][1:] != values[order][:-1]).any(axis=1)]
