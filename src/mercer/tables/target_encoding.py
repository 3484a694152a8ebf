"""Categories with many values: the effect of each value on the target, as a column of its own.

One column of 0 and 1 for each of hundreds of values would need a landmark at each of them. Here the
effect of a value is one number: the mean, over its rows, of what a smooth function of the other
columns leaves of the target. It is shrunk towards zero as far as chance explains it (empirical
Bayes): by m / (m + k) for m rows, with k = variance within values / variance between them. Values
with fewer than LEAST_ROWS rows are pooled. A row takes part in the mean of its own value with a
share of 1 / (m + k): where a row is left out, its effect is the one without it.
"""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy.stats import f as f_distribution
from sklearn.base import BaseEstimator

from ..engine import evenly
from ..learn import unexplained_within
from .columns import as_codes, not_in, texts_of

# Rows that a value needs for a mean of its own, and the share of rows that must have such a value.
LEAST_ROWS, LEAST_SHARE = 10, 0.5
# Means are used where differences as large as theirs arise by chance with at most this probability.
_CHANCE = 1e-3
# Most columns of means for one column of a table: one per target, or per class but the last.
MOST_MEANS = 10
# Words per value from which on its n-grams are kept beside the means.
WORDS = 1.5


class TargetEncoding(BaseEstimator):
    """The shrunk effect of each frequent value; rare values share one, unseen ones have it too.

    `others` is called for the columns beside it, as a matrix; None where there are none.

    Attributes
    ----------
    without_ : effects for the training rows, each without the row itself; not kept in a model
    pooled_ : values that `fit` has seen in too few rows for an effect of their own
    """

    def fit(
        self,
        values: np.ndarray,
        name: str,
        T: np.ndarray,
        others: Callable[[], np.ndarray] | None = None,
        weights: np.ndarray | None = None,
        seed: Any = 0,
    ) -> Self:
        number: dict[str, int] = {}  # of each different text
        place = np.array([number.setdefault(text, len(number)) for text in texts_of(values)])
        levels = list(number)
        w = np.ones(len(place)) if weights is None else weights
        if np.any(w != np.round(w)):
            w = w / w.mean()  # not numbers of observations, but how much each row counts
        counts = np.bincount(place, w)
        frequent = np.flatnonzero(counts >= LEAST_ROWS)
        self.levels_ = np.array([levels[j] for j in frequent], dtype=str)
        rare = np.setdiff1d(np.arange(len(levels)), frequent)
        self.pooled_ = np.array([levels[j] for j in rare], dtype=str)
        self.share_ = float(counts[frequent].sum() / counts.sum())
        several = T.shape[1] > 1
        self.names_ = [
            f"{name} (effect on target{f' {j + 1}' if several else ''})" for j in range(T.shape[1])
        ]
        self.chance_ = 1.0
        if self.share_ < LEAST_SHARE:
            return self
        groups = np.full(len(levels), len(frequent))
        groups[frequent] = np.arange(len(frequent))
        group = groups[place]
        if others is not None:
            T = unexplained_within(others(), T, group, seed)
        self.means_, self.without_, self.chance_ = _shrunk_means(T, w, group, len(frequent) + 1)
        return self

    @property
    def is_significant_(self) -> bool:
        """Whether the values differ by more than chance, for enough of the rows."""
        return self.chance_ <= _CHANCE

    def unseen(self, values: np.ndarray) -> np.ndarray:
        """Which rows have a value that `fit` has not seen."""
        return not_in({*self.levels_.tolist(), *getattr(self, "pooled_", ())}, values)

    def typical(self, most: int) -> np.ndarray:
        """Known values whose effects are spread over their range: an unseen one may have any."""
        order = np.argsort(self.means_[: len(self.levels_), 0])
        return self.levels_.astype(object)[order[evenly(len(order), most)]]

    def transform(self, values: np.ndarray) -> np.ndarray:
        place = {level: i for i, level in enumerate(self.levels_.tolist())}
        texts = texts_of(as_codes(values, set(place)))
        return self.means_[[place.get(text, len(place)) for text in texts]]


class WithTargetEncoding(BaseEstimator):
    """A column's encoding without the target, and then the target encoding of its values."""

    def __init__(self, plain: Any = None, means: Any = None) -> None:
        self.plain = plain
        self.means = means

    @property
    def names_(self) -> list[str]:
        return [*self.plain.names_, *self.means.names_]

    def transform(self, values: np.ndarray) -> np.ndarray:
        return np.hstack([self.plain.transform(values), self.means.transform(values)])


def _shrunk_means(T, w, group, size):
    """(means of the groups, those without each row, probability of their differences by chance).

    Of total variance one.
    """
    n, overall = w.sum(), w @ T / w.sum()
    counts = np.bincount(group, w, minlength=size)[:, None]
    sums = np.column_stack([np.bincount(group, w * t, minlength=size) for t in (T - overall).T])
    shifts = sums / np.maximum(counts, 1e-300)
    m = int((counts > 0).sum())
    if m < 2 or n <= m:
        return np.zeros_like(shifts), np.zeros_like(T), 1.0
    within = w @ (T - overall - shifts[group]) ** 2 / (n - m)
    outer = (counts * shifts**2).sum(axis=0) / (m - 1)
    typical = (n - (counts**2).sum() / n) / (m - 1)
    between = np.maximum(outer - within, 0.0) / typical
    within = np.maximum(within, 1e-300)
    chance = f_distribution.sf(outer / within, m - 1, n - m)
    shifts = sums * between / np.maximum(counts * between + within, 1e-300)
    spread = np.sqrt((w @ shifts[group] ** 2).sum() / n) or 1.0
    # One observation less: weights that are whole numbers count them.
    one = (np.ones_like(w) if np.all(w == np.round(w)) else w)[:, None]
    left = np.maximum((counts[group] - one) * between + within, 1e-300)
    without = (sums[group] - one * (T - overall)) * between / left
    return shifts / spread, without / spread, float(chance.min())
