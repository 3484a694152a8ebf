"""Ridge with an intercept in a kernel's space, for every penalty at once, judged by leave-one-out.

One eigendecomposition of the centred kernel matrix gives the fit, and the exact prediction of each
row by a fit to all others, for all penalties. What is minimised over f and the intercept b is
sum_i (y_i - f(x_i) - b)^2 + alpha |f|^2.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from ...engine.arrays import eigh
from ...solve.leave_one_out import LeaveOneOut, best_alpha

# Penalties relative to the mean variance of the rows in feature space: far beyond both ends of
# what is useful, so that the best one does not lie at an end.
PENALTIES = np.logspace(-8, 4, 37)


@dataclass
class KernelRidgePath:
    """A kernel matrix of training rows, decomposed.

    Attributes
    ----------
    alphas : ndarray
        The penalties, increasing, in the units of the kernel.
    errors : ndarray
        Mean squared leave-one-out error of each, summed over targets.
    targets, mean : ndarray
        The (n, m) targets and their means.
    """

    alphas: np.ndarray
    errors: np.ndarray
    targets: np.ndarray
    mean: np.ndarray
    row_mean: np.ndarray  # of K, which centres the kernel
    values: np.ndarray  # eigenvalues and eigenvectors of the centred K
    vectors: np.ndarray
    projected: np.ndarray  # centred targets along the eigenvectors

    @classmethod
    def fit(cls, K: np.ndarray, Y: np.ndarray, importance: np.ndarray | None = None) -> Self:
        """From k(x_i, x_j) and targets (n, m); `importance` weighs the rows in the mean error."""
        n = len(K)
        row_mean = K.mean(axis=0)
        Kc = K - row_mean[None, :] - row_mean[:, None] + row_mean.mean()
        values, U = eigh((Kc + Kc.T) / 2)
        # What is not a kernel has negative eigenvalues: they are set to zero, as its map does.
        values = np.maximum(values, 0.0)
        mean = Y.mean(axis=0)
        alphas = PENALTIES * (float(values.sum() / n) or 1.0)
        importance = np.ones(n) if importance is None else importance
        Q, in_mean = U * np.sqrt(values), np.full(n, 1 / n)
        left_out = LeaveOneOut(Q, values, Y - mean, in_mean=in_mean)
        errors = left_out.squared_errors(alphas, importance) / importance.sum()
        return cls(alphas, errors, Y, mean, row_mean, values, U, U.T @ (Y - mean))

    @property
    def alpha(self) -> float:
        """The penalty with the smallest leave-one-out error."""
        return float(self.alphas[best_alpha(self.alphas, self.errors)])

    def fitted(self, alpha: float | None = None) -> np.ndarray:
        """Values of the fit at the training rows, (n, m)."""
        alpha = self.alpha if alpha is None else alpha
        shrunk = self.values / (self.values + alpha)
        return self.mean + self.vectors @ (shrunk[:, None] * self.projected)

    def predict(self, K_new: np.ndarray, alpha: float | None = None) -> np.ndarray:
        """Of new rows, from k(z, x_i): (number of new rows, m)."""
        alpha = self.alpha if alpha is None else alpha
        inverse = np.where(self.values > 0, 1.0 / (self.values + alpha), 0.0)
        dual = self.vectors @ (inverse[:, None] * self.projected)
        dual = dual - dual.mean(axis=0)
        return (K_new - self.row_mean) @ dual + self.mean


class ClassRule:
    """Fisher's discriminant with penalty alpha, from ridge on classes as 0 and 1.

    Ridge alone may hide a class between two others. Its fitted values hold all that the
    discriminant with scatter S_W + alpha I needs: with M the class means, N their sizes,
    G = (S_T + alpha I)^-1 and Q = M G M',
    (S_W + alpha I)^-1 = G + G M' (N^-1 - Q)^-1 M G by Woodbury's formula, so that every term of the
    rule is made of ridge's predictions and matrices as large as the number of classes. Classes are
    as probable as they are frequent, or all the same (`balanced`).
    """

    def __init__(
        self, path: KernelRidgePath, alpha: float | None = None, *, balanced: bool = False
    ):
        self.path, self.alpha = path, alpha
        Y = path.targets
        sizes = Y.sum(axis=0)
        self.present = sizes > 0
        Y, sizes = Y[:, self.present], sizes[self.present]
        fitted = (path.fitted(alpha) - path.mean)[:, self.present]
        unexplained = Y.T @ (Y - fitted) / sizes / sizes[:, None]  # N^-1 - Q
        Q = Y.T @ fitted / sizes / sizes[:, None]
        unexplained = (unexplained + unexplained.T) / 2
        self.turn = np.linalg.pinv(unexplained, hermitian=True) / sizes / sizes[:, None]
        self.middle = 0.5 * np.diagonal(Q @ (self.turn * sizes[:, None]))
        if not balanced:
            # log p(c) in the unit of the scatter, which is n - C times the variance within classes
            self.middle = self.middle - np.log(sizes / len(Y)) / max(len(Y) - len(sizes), 1)

    def predict(self, K_new: np.ndarray) -> np.ndarray:
        """Codes of classes for new rows, from k(z, x_i)."""
        fitted = (self.path.predict(K_new, self.alpha) - self.path.mean)[:, self.present]
        scores = fitted @ self.turn - self.middle
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
