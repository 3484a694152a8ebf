"""How well the target is predicted on rows that a model has not seen: one score for all models.

Every model sees the same folds. The score is linear in the rows: the mean over rows of a gain, so
that folds of any size average rightly and a fold without a rare class is not undefined.
"""

from dataclasses import dataclass, field

import numpy as np

from .ridge_scores import ClassRule
from .sampling import CLASSES

BALANCED, ACCURACY, NEIGHBOURS = "balanced accuracy", "accuracy", "nearest neighbours"
R2, RMSE = "R²", "RMSE"
MEANING = {
    ACCURACY: "share of right answers, as in mercer fit "
    "(scoring balanced_accuracy counts each class the same)",
    BALANCED: "share of right answers in each class, averaged over classes (chance is 1 / classes)",
    R2: "share of the target's variance that is predicted (0 is what the mean predicts)",
}


@dataclass(kw_only=True)
class Scored:
    """Scores of one model, one per fold, the deciding one first.

    `predicted` holds one prediction per row, made by a model that has not seen the row.
    """

    scores: dict[str, np.ndarray] = field(default_factory=dict)
    predicted: np.ndarray | None = None

    @property
    def folds(self) -> np.ndarray:
        """The deciding score, one per fold."""
        return next(iter(self.scores.values()))

    @property
    def score(self) -> float | None:
        return float(np.mean(self.folds)) if self.scores else None


class Judge:
    """Collects predictions fold by fold."""

    def __init__(self, sample):
        self.sample = sample
        self.gains: list[dict[str, float]] = []
        self.predicted = np.full(len(sample), np.nan)
        self._seen = np.zeros(len(sample), dtype=bool)

    def add(self, new, predicted, neighbours=None):
        """Predictions of the new rows of one fold: codes of classes, or numbers."""
        first = new[~self._seen[new]]
        self.predicted[first] = np.asarray(predicted, dtype=float)[~self._seen[new]]
        self._seen[new] = True
        if self.sample.task == CLASSES:
            self.gains.append(self._of_classes(new, predicted, neighbours))
        else:
            self.gains.append(self._of_numbers(new, predicted, neighbours))

    def result(self) -> Scored:
        scores = {name: np.array([g[name] for g in self.gains]) for name in self.gains[0]}
        return Scored(scores=scores, predicted=self.predicted if self._seen.all() else None)

    def _of_classes(self, new, predicted, neighbours):
        t = self.sample.codes[new]
        # n / (C n_c): every class counts the same, however small it is.
        balance = self.sample.balance[t]
        right = np.asarray(predicted) == t
        gains = {ACCURACY: float(np.mean(right)), BALANCED: float(np.mean(balance * right))}
        if self.sample.balanced:
            gains = dict(reversed(gains.items()))
        if neighbours is not None:
            weight = balance if self.sample.balanced else 1.0
            gains[NEIGHBOURS] = float(np.mean(weight * (np.asarray(neighbours) == t)))
        return gains

    def _of_numbers(self, new, predicted, neighbours):
        t = self.sample.y[new]
        spread = float(np.var(self.sample.y)) or 1.0
        error = float(np.mean((t - predicted) ** 2))
        gains = {R2: 1 - error / spread, RMSE: error**0.5}
        if neighbours is not None:
            gains[NEIGHBOURS] = 1 - float(np.mean((t - neighbours) ** 2)) / spread
        return gains


def kernel_scores(candidates, sample, n_neighbors, advance) -> Scored:
    """Scores in the kernel's space; width and penalty are chosen in each training part."""
    judge = Judge(sample)
    for training, new in sample.folds:
        tuned = candidates.tune(training)
        K_new = candidates.matrix(tuned.number, new, training)
        diagonal = np.diagonal(candidates.matrix(tuned.number, training))
        near = neighbours(K_new, diagonal, sample, training, n_neighbors)
        judge.add(new, answers(tuned, K_new, sample), near)
        advance()
    return judge.result()


def answers(tuned, K_new, sample):
    """Numbers by ridge, or codes of classes by the discriminant that belongs to it."""
    if sample.task == CLASSES:
        rule = ClassRule(tuned.solution, tuned.targets, balanced=sample.balanced)
        return rule.predict(K_new)
    return tuned.solution.prediction(K_new)[:, 0]


def neighbours(K_new, diagonal, sample, training, n_neighbors):
    """Prediction by the nearest training rows in feature space: most frequent class, or mean."""
    size = min(n_neighbors, len(training))
    # |phi(z) - phi(x)|^2 less k(z, z), which is common to all x
    nearest = np.argpartition(diagonal - 2 * K_new, size - 1, axis=1)[:, :size]
    if sample.task != CLASSES:
        return sample.y[training][nearest].mean(axis=1)
    votes = sample.codes[training][nearest]
    counts = np.zeros((len(votes), sample.n_classes))
    np.add.at(counts, (np.arange(len(votes))[:, None], votes), 1.0)
    return counts.argmax(axis=1)
