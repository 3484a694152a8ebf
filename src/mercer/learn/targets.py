"""Targets as columns of numbers: standardised values, or one column per class."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..engine import Domain, as_host, check_classes, on_device_of
from ..kernels import points as pts

_TASK = Domain.one_of("auto", "regression", "classification")
# Whole numbers with more values than this are ordered and many: numbers to predict, not classes.
_MOST_CLASSES = 10
# From so many rows on, more classes than half of them are refused.
_FEW_ROWS = 20
# Predictions reach beyond the targets by at most this share of their range.
_BEYOND = 0.5
# Differences of larger targets may overflow.
_LARGEST = 1e307
# Columns of the search: more targets than that are combined into so many.
_MOST_COLUMNS = 50


@dataclass(frozen=True)
class Targets:
    """n x t numbers to fit, and how to read them: y = offset + scale * column, or classes.

    `written` are the texts that were read as numbers, where y held such.
    """

    columns: np.ndarray
    offset: np.ndarray
    scale: np.ndarray
    classes: np.ndarray | None = None
    weights: np.ndarray | None = None
    written: np.ndarray | None = None

    @classmethod
    def of(cls, y: Any, task: str = "auto", weights: np.ndarray | None = None) -> "Targets":
        """Targets of a user's y; refuses what has nothing to learn."""
        _TASK("task", task)
        pts.require_y(y, "learning a kernel")
        y = host(y)
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if y.ndim not in (1, 2):
            raise ValueError(f"y must have one or two dimensions, got shape {y.shape}.")
        if not y.size:
            raise ValueError("Found array with 0 sample(s): y is empty.")
        if task == "auto":
            numbers = y.dtype.kind in "fiu"
            few = y.ndim == 1 and y.dtype.kind in "iu" and cls.are_classes(y)
            task = "classification" if few or not numbers else "regression"
        return (cls._of_classes if task == "classification" else cls._of_values)(y, weights)

    @classmethod
    def _of_classes(cls, y: np.ndarray, weights: np.ndarray | None) -> "Targets":
        if y.ndim != 1:
            raise ValueError(f"classes come as one column, got y of shape {y.shape}.")
        check_classes(y)
        classes, position = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y holds 1 class only, {classes.tolist()[0]!r}: there is nothing to predict. At "
                "least 2 classes are needed."
            )
        n = len(y) if weights is None else max(len(y), round(float(weights.sum())))
        if n >= _FEW_ROWS and len(classes) > n / 2:
            remedy = "Merge rare classes, or leave out rows whose class occurs once."
            if y.dtype.kind in "fiu":
                remedy += " If y holds numbers, predict them with KernelRegressor."
            raise ValueError(
                f"y has {len(classes)} classes in {len(y)} rows (the first is "
                f"{classes.tolist()[0]!r}): with fewer than two rows per class nothing can be "
                f"learned about other rows. {remedy}"
            )
        columns = np.zeros((len(y), len(classes)))
        columns[np.arange(len(y)), position] = 1.0
        t = len(classes)
        return cls(columns, np.zeros(t), np.ones(t), classes, weights)

    @classmethod
    def _of_values(cls, y: np.ndarray, weights: np.ndarray | None) -> "Targets":
        try:
            T = np.asarray(y, dtype=float)
        except (TypeError, ValueError):
            raise ValueError(
                "y could not be converted to numbers: pass task='classification', or use "
                "KernelClassifier, to predict classes."
            ) from None
        if not np.isfinite(T).all():
            raise ValueError("Input y contains NaN or infinity: drop those rows.")
        if np.abs(T).max() > _LARGEST:
            raise ValueError(f"y reaches {np.abs(T).max():.4g}, and errors overflow: scale y.")
        T = T[:, None] if T.ndim == 1 else T
        # In units of a power of two, exactly: squares of 1e-200 would be zero.
        power = np.frexp(np.abs(T).max(axis=0))[1]
        T = np.ldexp(T, -power)
        offset = np.average(T, axis=0, weights=weights)
        spread = np.sqrt(np.average((T - offset) ** 2, axis=0, weights=weights))
        varies = spread > 1e-12 * np.abs(T).max(axis=0)
        columns = np.where(varies, (T - offset) / np.where(varies, spread, 1.0), 0.0)
        # A constant target has the scale 1: its model is the intercept alone.
        scale = np.where(varies, np.ldexp(spread, power), 1.0)
        return cls(columns, np.ldexp(offset, power), scale, None, weights)

    @staticmethod
    def are_classes(values: np.ndarray) -> bool:
        """Tell classes from numbers where nobody says: few whole numbers are taken for classes."""
        return bool(np.all(values == np.round(values))) and len(np.unique(values)) <= _MOST_CLASSES

    @property
    def constant(self) -> bool:
        return not np.any(self.columns != self.columns[:1])

    @staticmethod
    def limits(T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(lowest, highest) prediction of each target: half of its range beyond what was seen.

        A kernel that was chosen from the data says nothing far beyond the targets that it has seen,
        and one row far out can send it there.
        """
        low, high = T.min(axis=0), T.max(axis=0)
        return low - _BEYOND * (high - low), high + _BEYOND * (high - low)

    @property
    def variance(self) -> float:
        """The error of predicting the mean: what relative errors are relative to."""
        T = self.columns
        mean = np.average(T, axis=0, weights=self.weights)
        return float(np.average((T - mean) ** 2, axis=0, weights=self.weights).sum()) or 1.0


def in_few_columns(rows: Any, targets: Targets, rng: np.random.Generator) -> tuple[Any, Targets]:
    """Rows and targets; random combinations stand for hundreds of targets.

    Ridge is linear in its targets, so the errors of T R are E R where E are those of T. With
    independent normal entries of variance 1 / s in the s columns of R, the expected sum of squares
    of E R is that of E: the search compares kernels by it. The same holds for the average outer
    product of gradients.
    """
    t = targets.columns.shape[1]
    if t <= _MOST_COLUMNS:
        return rows, targets
    R = rng.spawn(1)[0].normal(size=(t, _MOST_COLUMNS)) / _MOST_COLUMNS**0.5
    return (
        replace(rows, T=rows.T @ on_device_of(R, rows.T)),
        replace(targets, columns=targets.columns @ R),
    )


def host(y: Any) -> np.ndarray:
    """A user's y as an array of NumPy."""
    return np.asarray(as_host(y))


def as_generator(random_state: Any) -> np.random.Generator:
    """The random numbers of a seed, refused by its name."""
    if isinstance(random_state, np.random.RandomState):  # NumPy's conversion of it cannot spawn
        random_state = random_state.randint(2**31 - 1, size=4)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state must be a non-negative integer, a RandomState or None, got "
            f"{random_state!r}."
        ) from None
