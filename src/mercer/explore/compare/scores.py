"""How well the target is predicted on rows that a model has not seen: one score for all models.

Every model sees the same folds. The score is linear in the rows: the mean over rows of a gain, so
that a fold without a rare class is not undefined. Folds of whole groups may differ in size: they
count by their rows.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ... import Precomputed
from ...rows import Training
from ...solve import Fisher, LeaveOneOut, RidgeProblem, RidgeSolution, solve_ridge
from ..data import CLASSES
from .folds import ACCURACY, BALANCED, R2, ComparedRows

NEIGHBOURS, RMSE = "nearest neighbours", "RMSE"
MEANING = {
    ACCURACY: "share of right answers, as in mercer fit "
    "(scoring balanced_accuracy counts each class the same)",
    BALANCED: "share of right answers in each class, averaged over classes (chance is 1 / classes)",
    R2: "share of the target's variance that is predicted (0 is what the mean predicts)",
}
# Penalties relative to the mean variance of the rows in feature space: far beyond both ends of
# what is useful, so that the best one does not lie at an end.
_PENALTIES = np.logspace(-8, 4, 37)
# Neighbours of the nearest-neighbour score, which is shown but does not decide.
_N_NEIGHBOURS = 5


@dataclass(kw_only=True)
class Scored:
    """Scores of one model."""

    # By fold, the deciding one first: the mean over folds is that over rows.
    scores: dict[str, np.ndarray] = field(default_factory=dict)
    # Codes of classes, or numbers: each row is predicted by a model that has not seen it.
    predicted: np.ndarray | None = None

    @property
    def folds(self) -> np.ndarray:
        """The deciding score, one per fold."""
        return next(iter(self.scores.values()))

    @property
    def score(self) -> float | None:
        return float(np.mean(self.folds)) if self.scores else None


# Predictions of new rows by a model of training rows, and (or None) by nearest neighbours.
_Predict = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray | None]]


def scores_of(predict: _Predict, data: ComparedRows) -> Scored:
    """Scores of predictions on every fold: codes of classes, or numbers."""
    gains, seen = [], np.zeros(len(data), dtype=bool)
    kept = np.full(len(data), np.nan)
    for training, new in data.folds:
        predicted, neighbours = predict(training, new)
        first = ~seen[new]
        kept[new[first]] = np.asarray(predicted, dtype=float)[first]
        seen[new] = True
        gains.append(_gains(new, predicted, data))
        if neighbours is not None:
            gains[-1][NEIGHBOURS] = next(iter(_gains(new, neighbours, data).values()))
    scores = {name: _influences(*np.array([g[name] for g in gains]).T) for name in gains[0]}
    return Scored(scores=scores, predicted=kept if seen.all() else None)


def _influences(gains, weights):
    """One value per fold, with the weighted mean of the gains as its mean.

    Deviations count by the weight: the values of a linearized ratio, whose spread is its error.
    """
    mean = np.average(gains, weights=weights)
    return mean + weights / weights.mean() * (gains - mean)


def _gains(new, predicted, data):
    """Mean gains over some rows, the deciding one first, and how much they count."""
    if data.task != CLASSES:
        error = float(np.mean((data.target[new] - predicted) ** 2))
        gains = {R2: 1 - error / (float(np.var(data.target)) or 1.0), RMSE: error**0.5}
        return {name: (gain, len(new)) for name, gain in gains.items()}
    right, balance = np.asarray(predicted) == data.codes[new], data.balance[new]
    accuracy = float(np.mean(right)), len(new)
    balanced = float(np.average(right, weights=balance)), float(balance.sum())
    if data.balanced:
        return {BALANCED: balanced, ACCURACY: accuracy}
    return {ACCURACY: accuracy, BALANCED: balanced}


def kernel_scores(candidates: Any, data: ComparedRows, advance: Callable[[], None]) -> Scored:
    """Scores in the kernel's space; width and penalty are chosen in each training part."""

    def predict(training: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        tuned, Y = candidates.tune(training), data.targets[training]
        K_new = candidates.matrix(tuned.number, new, training)
        diagonal = np.diagonal(candidates.matrix(tuned.number, training))
        # By the nearest training rows in feature space: the most frequent class, or the mean.
        # |phi(z) - phi(x)|^2 less k(z, z), which is common to all x
        size = min(_N_NEIGHBOURS, len(training))
        nearest = np.argpartition(diagonal - 2 * K_new, size - 1, axis=1)[:, :size]
        votes = Y[nearest].mean(axis=1)
        advance()
        if data.task != CLASSES:
            return tuned.solution.prediction(K_new)[:, 0], votes[:, 0]
        classes = _predicted_classes(tuned.solution, Y, K_new, balanced=data.balanced)
        return classes, votes.argmax(axis=1)

    return scores_of(predict, data)


# --- ridge with an intercept on a kernel matrix ---------------------------------------------------


def ridge_on(K: np.ndarray, Y: np.ndarray, importance: np.ndarray | None = None) -> RidgeSolution:
    """From k(x_i, x_j) and targets (n, m); `importance` weighs the rows in the mean error."""
    rule = LeaveOneOut(_PENALTIES, relative=True, importance=importance)
    problem = RidgeProblem(Training.of(Precomputed(), K), Y, rule, intercept=True)
    return solve_ridge(problem, "direct")


def _predicted_classes(
    solution: RidgeSolution, Y: np.ndarray, K_new: np.ndarray, *, balanced: bool = False
) -> np.ndarray:
    """Fisher's discriminant from ridge on classes as 0 and 1: codes for new rows, from k(z, x_i).
    Ridge alone may hide a class between two others. Classes are as probable as they are frequent,
    or all the same (`balanced`)."""
    counts = Y.sum(axis=0)
    present = np.flatnonzero(counts)
    left = (Y.T @ np.asarray(solution.misses()))[np.ix_(present, present)]
    fisher = Fisher.of((left + left.T) / 2, counts[present])
    priors = np.full(len(present), 1 / len(present)) if balanced else fisher.shares
    scores = fisher.decision(priors)(solution.prediction(K_new)[:, present])
    two = len(present) == 2  # these have one score, of the second
    return present[(scores[:, 0] > 0).astype(int) if two else scores.argmax(axis=1)]


def shrinkage(K: np.ndarray, codes: np.ndarray, alpha: float) -> float:
    """The penalty in the unit of KernelDiscriminant: alpha over the variance within classes."""
    sizes = np.bincount(codes)
    Y = np.eye(len(sizes))[codes][:, sizes > 0]
    sizes = sizes[sizes > 0]
    # trace(S_W) = trace(K) - sum_c |sum of the class|^2 / n_c, for any origin
    within = np.trace(K) - np.sum(np.einsum("ic,ij,jc->c", Y, K, Y, optimize=True) / sizes)
    rounding = len(K) * np.finfo(float).eps * np.trace(K)
    return float(alpha * (len(K) - len(sizes)) / within) if within > rounding else 1.0
