"""Statistics of the folds: corrected intervals, and groups of models that do not differ.

Training sets of cross-validation overlap, so fold differences are not independent. Their variance
is multiplied by 1/J + n_test/n_train instead of 1/J (Nadeau and Bengio, 2003; for repeated folds
Bouckaert and Frank, 2004). With m models any of m(m-1)/2 differences may be the largest: the
limit is that of the studentised range (Tukey), which for two models is Student's t.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike

LEVEL = 0.95
INTERVAL = "95 % intervals, corrected for overlapping training sets (Nadeau and Bengio)"


@dataclass
class Difference:
    """Mean paired difference over folds, and the half-width of its interval."""

    mean: float
    margin: float

    @property
    def within_noise(self) -> bool:
        return bool(not abs(self.mean) > self.margin)


def paired_difference(
    a: ArrayLike, b: ArrayLike, overlap: float, n_models: int = 2, most: int | None = None
) -> Difference:
    """Difference of two models on the same folds, among `n_models` that are compared.

    most : degrees of freedom that the rows have, where folds would claim more
    """
    d = np.asarray(a, dtype=float) - np.asarray(b, dtype=float)
    if len(d) < 2 or not np.isfinite(d).all():
        return Difference(float(d.mean()), float("inf"))
    margin = limit(n_models, _degrees(d, most)) * _corrected_error(d, overlap)
    return Difference(float(d.mean()), margin)


def half_width(values: np.ndarray, overlap: float, most: int | None = None) -> float:
    """Half the width of the 95 % interval of one model's score."""
    values = np.asarray(values, dtype=float)
    if len(values) < 2:
        return np.nan
    return limit(2, _degrees(values, most)) * _corrected_error(values, overlap)


def _degrees(values, most):
    return len(values) - 1 if most is None else max(1, min(len(values) - 1, most))


def degrees_of(n_rows: int, groups: np.ndarray | None = None) -> int:
    """Degrees of freedom that rows have, or groups of them: repeated folds of few rows see the
    same few rows again and again. A quarter of the rows was found by simulation (30 rows)."""
    return n_rows // 4 if groups is None else len(np.unique(groups)) - 1


def _corrected_error(values: np.ndarray, overlap: float) -> float:
    """Standard error of the mean over folds, with the overlap of the training sets in it."""
    return float(np.std(values, ddof=1) * np.sqrt(1 / len(values) + overlap))


@lru_cache(maxsize=256)
def limit(n_models: int, degrees: int) -> float:
    """How many standard errors the largest of all pairwise differences exceeds once in 20 times."""
    if n_models <= 2:
        return float(scipy.stats.t.ppf((1 + LEVEL) / 2, degrees))
    return float(scipy.stats.studentized_range.ppf(LEVEL, n_models, degrees) / 2**0.5)


def overlap_of(folds: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """n_test / n_train, or 0 where the training sets are disjoint."""
    if len(folds) < 2 or not len(np.intersect1d(folds[0][0], folds[1][0])):
        return 0.0
    return len(folds[0][1]) / len(folds[0][0])


def undecided(
    scores: list[np.ndarray], overlap: float, n_models: int, most: int | None = None
) -> int:
    """How many models, best first, are not significantly worse than the first.

    They stand together at the top: a model counts as worse only if all models below it do, too,
    so that no group has a better score outside than inside.
    """
    last = 0
    for place in range(1, len(scores)):
        if paired_difference(scores[0], scores[place], overlap, n_models, most).within_noise:
            last = place
    return last + 1
