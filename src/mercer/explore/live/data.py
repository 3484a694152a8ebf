"""The rows that are explored: points for kernels, their target, and what is shown of a row."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from ...kernels import Kernel
from ...kernels.points import column_names
from ...kernels.types import Data
from ..compare.comparing import encoded_rows, shown_rows, target_as_given
from ..compare.sampling import CLASSES, NUMBERS, draw, select
from ..plots.style import as_text
from ..report.thumbnails import described


@dataclass
class Explored:
    """Rows of a data set, ready for any kernel.

    Attributes
    ----------
    X : rows as the kernel sees them, encoded where that was needed
    names : names of the columns of X
    task : "classification", "regression" or None without a target
    target : classes or numbers, one per row; None without
    targets : what ridge fits: a column of 0 and 1 for each class, or one column of numbers
    rows : positions of the rows in the data as given
    given : (X, y) as they came, for a model that is fitted to all of them
    """

    X: Any
    names: list[str]
    task: str | None
    target: np.ndarray | None
    rows: np.ndarray
    given: tuple[Any, Any]
    usable: np.ndarray
    shown: Any = None
    image_shape: tuple[int, int] | None = None
    encoder: BaseEstimator | None = None
    target_name: str = "target"
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.classes: list[str] = []
        self.codes: np.ndarray | None = None
        self.targets: np.ndarray | None = None
        if self.task == CLASSES:
            labels = np.asarray(self.target).astype(str)
            classes, self.codes = np.unique(labels, return_inverse=True)
            self.classes = [str(c) for c in classes]
            self.targets = np.eye(len(classes))[self.codes]
        elif self.task == NUMBERS:
            self.targets = np.asarray(self.target, dtype=float)[:, None]
        self.vectors = isinstance(self.X, np.ndarray) and self.X.ndim == 2

    @classmethod
    def of(
        cls,
        X: Data,
        y: ArrayLike | None,
        kernel: Kernel,
        *,
        task: str = "auto",
        samples: Data | None = None,
        image_shape: tuple[int, int] | None = None,
        encoder: BaseEstimator | str | None = "auto",
        target_name: str | None = None,
        max_points: int = 20_000,
        random_state: int = 0,
    ) -> "Explored":
        """Checked, drawn at random where there are more rows than max_points, and encoded."""
        kernel.layout.require_data(
            "the explorer changes the kernel, which a Gram matrix does not allow: pass the data "
            "themselves, or compare_kernels(K, y, [Precomputed()]) for one still picture."
        )
        if target_name is None:
            target_name = getattr(y, "name", None)
        sample = draw(
            X, y, gram=False, task=task, cv=2, repeats=1, train_size=None,
            max_points=max_points, random_state=random_state,
        )  # fmt: skip
        shown = shown_rows(X, samples, image_shape, sample)
        names = column_names(X)
        used = encoded_rows(sample, {"kernel": kernel}, encoder)
        if used is not None and hasattr(used, "get_feature_names_out"):
            names = [str(name) for name in used.get_feature_names_out()]
        points = kernel.points(sample.X)
        width = points.shape[1] if getattr(points, "ndim", 1) == 2 else 0
        return cls(
            X=points,
            names=[f"x{j}" for j in range(width)] if names is None else list(map(str, names)),
            task=sample.task,
            target=sample.y,
            rows=sample.rows,
            given=(X, target_as_given(y, sample)),
            usable=sample.usable,
            shown=shown,
            image_shape=None if image_shape is None else (image_shape[0], image_shape[1]),
            encoder=used,
            target_name="target" if target_name is None else str(target_name),
            notes=list(sample.notes),
        )

    @cached_property
    def medians(self) -> np.ndarray:
        """The median of each column of X."""
        return np.median(self.X, axis=0)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: np.ndarray) -> Any:
        """Points at these places."""
        return select(self.X, rows)

    def bound(self, kernel: Kernel) -> Kernel:
        """The kernel with everything that depends on the data turned into numbers."""
        return kernel.bind_points(self.X, self.names if self.vectors else None)

    def label(self, i: int) -> str:
        """The target of one row as text."""
        return "" if self.target is None else as_text(self.target[i])

    def described(self) -> tuple[list[str] | None, list[str]]:
        """(thumbnails or None, texts), one per row."""
        return described(self)
