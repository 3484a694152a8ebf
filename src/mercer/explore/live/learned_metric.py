"""A metric learned from the target, under the present kernel."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from ... import Kernel, Projected, learn_kernel
from ..compare.tuning import rounded
from ..data import Explored

LEARNED_ROWS, LANDMARKS, ROUNDS = 1500, 300, 5
# Columns whose share is shown.
MOST_SHARES = 5


@dataclass(frozen=True)
class LearnedMetric:
    """Directions A that were learned, the kernel before, and how much each column counts."""

    A: np.ndarray
    before: Kernel
    importances: np.ndarray

    def under(self, kernel: Kernel) -> Kernel:
        """The kernel on the learned directions."""
        return Projected(kernel, self.A)

    def seen(self, data: Explored) -> Explored:
        """The rows as a kernel under this metric sees them."""
        names = [f"direction {j}" for j in range(self.A.shape[1])]
        return replace(data, X=data.X @ self.A, names=names, task=None, target=None)

    def shares(self, names: list[str]) -> list[tuple[str, float]]:
        """The columns that count most."""
        order = np.argsort(-self.importances, kind="stable")[:MOST_SHARES]
        return [(names[j], round(float(self.importances[j]), 4)) for j in order]


def learned_metric(kernel: Kernel, data: Explored) -> tuple[Kernel, LearnedMetric]:
    """(kernel with learned numbers, metric), from some of the rows."""
    if not data.vectors or data.task is None:
        raise ValueError("a metric is learned from a target: start the explorer with one.")
    bound = data.bound(kernel)
    if not bound.has_slope:
        raise ValueError(
            f"a metric cannot be learned for {kernel!r}: use RBF, Matern with nu 0.5, 1.5 "
            "or 2.5, or sums of these, on all columns."
        )
    rows = np.random.default_rng(0).permutation(len(data))[:LEARNED_ROWS]
    y = np.asarray(data.target)[rows]
    learned = learn_kernel(
        data.X[rows],
        y.astype(str) if data.task == "classification" else y,
        bound,
        task=data.task,
        max_landmarks=LANDMARKS,
        n_rounds=ROUNDS,
        random_state=0,
    )
    found: Any = learned.kernel
    return _rounded(found.kernel), LearnedMetric(
        np.asarray(found.A), kernel, np.asarray(learned.importances)
    )


def _rounded(kernel):
    """Numbers that learning found, in four digits, so that they can be read."""
    changed = {
        name: rounded(value)
        for name, value in kernel.get_params(deep=True).items()
        if isinstance(value, float)
    }
    return clone(kernel).set_params(**changed)
