"""Is a learned metric better than none? Predictions of rows that the metric has not seen.

A metric has d (d + 1) / 2 numbers. On a small table it adapts to the very rows whose leave-one-out
errors judge it, and these errors come out too small. So there the kernel is learned again without
each of five folds, and the rows of the fold are predicted: these errors choose how much is learned,
and say how good the model is.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..engine import tiles
from ..engine.arrays import as_numpy
from ..kernels import Kernel
from ..kernels.points import take
from .exact import best_penalty, solved_directly
from .families import FIRST_FAMILY
from .learn_kernel import learn_from
from .observations import Observations
from .targets import Targets

FOLDS = 5
# Tables with at most so many rows, or rows per column, are small. With more than MOST_ROWS the
# searches take too long.
SMALL_ROWS, SMALL_RATIO, MOST_ROWS = 100, 20, 3000
# Up to so many rows per column leave-one-out errors still choose well, but shares of wrong classes
# come out too small. (Squared errors do not, and those of folds would be too large: a kernel
# learned from four fifths of the rows is worse.)
HONEST_RATIO = 50
# Rows from which on a metric is learned, and rows per column from which on more columns are tried.
LEAST_ROWS, LEAST_RATIO = 50, 10
# Landmarks of the searches without a part.
LANDMARKS = 300
# A candidate that learns more must lower the mean loss by so many standard errors of the
# differences, row by row. The loss is the squared error; for classes, whether the row is wrong:
# squares would reward more confidence in the same classes.
STANDARD_ERRORS = 1.0


@dataclass(frozen=True)
class Candidate:
    """What is learned on which columns, with its predictions of rows it has not seen."""

    metric: str | None
    columns: np.ndarray
    predicted: np.ndarray
    losses: np.ndarray

    @property
    def error(self) -> float:
        """The mean loss of a row."""
        return float(self.losses.mean())


def is_small(rows: Observations, n_columns: int) -> bool:
    """Whether leave-one-out errors of a learned metric on so many columns would mislead."""
    return rows.n <= min(max(SMALL_ROWS, SMALL_RATIO * n_columns), MOST_ROWS)


def is_flattered(rows: Observations, targets: Targets, n_columns: int) -> bool:
    """Whether a learned metric on so many columns predicts classes of unseen rows clearly worse."""
    return targets.classes is not None and rows.n <= min(HONEST_RATIO * n_columns, MOST_ROWS)


@dataclass(frozen=True)
class CrossFit:
    """Learns without each of five folds, and predicts its rows."""

    rows: Observations
    targets: Targets
    kernel: Kernel | str | None
    n_rounds: int
    seed: int

    def best(self, metric: str | None, column_sets: list[np.ndarray]) -> Candidate:
        """The best of: no metric, a diagonal one, a full one; and then of the sets of columns."""
        metrics = {"full": [None, "diagonal", "full"], "diagonal": [None, "diagonal"]}
        allowed = metrics.get(metric or "", [None]) if self.rows.n >= LEAST_ROWS else [None]
        best = self.candidate(allowed[0], column_sets[0])
        for more in allowed[1:]:
            best = better(self.candidate(more, column_sets[0]), best)
        enough = self.rows.n >= LEAST_RATIO * len(column_sets[0])
        for columns in column_sets[1:] if enough else []:
            best = better(self.candidate(best.metric, columns), best)
        return best

    def candidate(self, metric: str | None, columns: np.ndarray) -> Candidate:
        """The metric on these columns, with its predictions."""
        rows, n = self.rows, self.rows.n
        order = np.random.default_rng(self.seed).permutation(n)
        predicted = np.empty(rows.T.shape)
        some = _of_columns(rows, columns)
        for i in range(min(FOLDS, n)):
            fold = np.sort(order[i::FOLDS])
            rest = np.setdiff1d(np.arange(n), fold)
            predicted[fold] = self._predicted(some, rest, fold, metric)
        return Candidate(metric, columns, predicted, _losses(rows, predicted, self.targets))

    def _predicted(self, rows, rest, fold, metric):
        """Rows of a fold, predicted by a kernel learned from the rest and an exact fit to it."""
        known, asked = rows.some(rest), rows.some(fold).X
        learned = learn_from(
            known,
            self.targets,
            FIRST_FAMILY if self.kernel is None else self.kernel,
            metric=metric,
            max_landmarks=LANDMARKS,
            n_rounds=self.n_rounds,
            rng=np.random.default_rng(self.seed),
            verbose=False,
        )
        bound = learned.kernel.bind(known.X)
        K = tiles.evaluate(bound, known.X)
        alpha, _ = best_penalty(K, known, learned.alpha)
        while (solved := solved_directly(K + 0, known, alpha, np.arange(0))) is None:
            alpha *= 10  # singular to rounding: the next penalty that is not
        a, intercept, _, _ = solved
        return as_numpy(tiles.evaluate(bound, asked, known.X) @ a + intercept)


def _losses(rows, predicted, targets):
    """Of each row, times its weight."""
    T = as_numpy(rows.T)
    if targets.classes is None:
        losses = ((predicted - T) ** 2).sum(axis=1)
    else:
        losses = (predicted.argmax(axis=1) != T.argmax(axis=1)).astype(float)
    return losses if rows.weights is None else as_numpy(rows.weights) * losses


def better(new: Candidate, best: Candidate) -> Candidate:
    """The new one where its losses are smaller by more than chance would have it."""
    gain = best.losses - new.losses
    return new if gain.mean() > STANDARD_ERRORS * gain.std() / len(gain) ** 0.5 else best


def _of_columns(rows, columns):
    return replace(rows, X=take(rows.X.T, columns).T)
