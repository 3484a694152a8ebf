"""Ridge with an intercept on a kernel matrix: numbers, and codes of classes."""

import numpy as np

from ...kernels import Precomputed
from ...rows.training import Training
from ...solve import Fisher, Given, LeaveOneOut, RidgeProblem, RidgeSolution, solve_ridge

# Penalties relative to the mean variance of the rows in feature space: far beyond both ends of
# what is useful, so that the best one does not lie at an end.
PENALTIES = np.logspace(-8, 4, 37)


def ridge_on(
    K: np.ndarray,
    Y: np.ndarray,
    importance: np.ndarray | None = None,
    alpha: float | None = None,
) -> RidgeSolution:
    """From k(x_i, x_j) and targets (n, m); `importance` weighs the rows in the mean error."""
    rule: Given | LeaveOneOut = LeaveOneOut(PENALTIES, relative=True, importance=importance)
    if alpha is not None:
        rule = Given(np.full(Y.shape[1], alpha))
    problem = RidgeProblem(Training.of(Precomputed(), K), Y, rule, intercept=True)
    return solve_ridge(problem, "direct")


class ClassRule:
    """Fisher's discriminant from ridge on classes as 0 and 1.

    Ridge alone may hide a class between two others. Classes are as probable as they are frequent,
    or all the same (`balanced`).
    """

    def __init__(self, solution: RidgeSolution, Y: np.ndarray, *, balanced: bool = False):
        counts = Y.sum(axis=0)
        self.solution, self.present = solution, counts > 0
        left = Y.T @ np.asarray(solution.misses())
        left = left[np.ix_(self.present, self.present)]
        fisher = Fisher.of((left + left.T) / 2, counts[self.present])
        self.turn, self.shares = fisher.turn, fisher.shares
        self.middle = 0.5 * np.diagonal(fisher.between)
        if not balanced:
            # log p(c) in the unit of the scatter, which is n - C times the variance within classes
            self.middle = self.middle - np.log(fisher.shares) / max(fisher.freedom, 1)

    def predict(self, K_new: np.ndarray) -> np.ndarray:
        """Codes of classes for new rows, from k(z, x_i)."""
        f = self.solution.prediction(K_new)[:, self.present]
        scores = (f - self.shares) @ self.turn - self.middle
        return np.flatnonzero(self.present)[scores.argmax(axis=1)]


def shrinkage(K: np.ndarray, codes: np.ndarray, alpha: float) -> float:
    """The penalty in the unit of KernelDiscriminant: alpha over the variance within classes."""
    sizes = np.bincount(codes)
    Y = np.eye(len(sizes))[codes][:, sizes > 0]
    sizes = sizes[sizes > 0]
    # trace(S_W) = trace(K) - sum_c |sum of the class|^2 / n_c, for any origin
    within = np.trace(K) - np.sum(np.einsum("ic,ij,jc->c", Y, K, Y, optimize=True) / sizes)
    rounding = len(K) * np.finfo(float).eps * np.trace(K)
    return float(alpha * (len(K) - len(sizes)) / within) if within > rounding else 1.0
