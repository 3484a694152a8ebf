"""Leave-one-out errors of ridge for every alpha at once, without fitting again.

With rows Q of coordinates in a basis where Q'Q is diagonal, D, the error at a left-out row is
(t_i - f_i) / (1 - h_i), h_i = sum_j Q_ij^2 / (D_j + alpha). Centred coordinates have spent one
degree of freedom on their mean: there the leverage is h_i + 1/n. Without it the error of a
full-rank kernel tends to zero with alpha, and the smallest alpha always wins.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.arrays import as_numpy, eps_of, namespace, on_device_of


def leave_one_out_errors(Q, values, T, alphas, *, centred=False, intercept=False) -> np.ndarray:
    """Sums over rows and targets of squared leave-one-out errors, one per alpha.

    Parameters
    ----------
    Q : array of shape (n, r)
        Coordinates with Q'Q = diag(values). Rows of Q and T times the roots of their weights give
        the weighted sums.
    values : array of shape (r,), largest first
    T : array of shape (n, n_targets)
    alphas : array of positive numbers
    centred : bool
        Whether the mean of the rows was taken off Q: it changes with every row left out.
    intercept : bool
        Whether predictions add the mean of the targets.
    """
    xp, parts = namespace(Q), _Parts.of(Q, values, alphas, centred)
    errors = xp.zeros_like(parts.left[0, :])
    for k in range(T.shape[1]):
        misses = parts.misses(T[:, k : k + 1], intercept)
        errors = errors + xp.sum(misses * misses, axis=0)
    return as_numpy(errors).copy()


def leave_one_out_residuals(Q, values, T, alpha, *, centred=False, intercept=False) -> Any:
    """t_i minus the prediction of a model that never saw row i, one column per target."""
    parts = _Parts.of(Q, values, [alpha], centred)
    columns = [parts.misses(T[:, k : k + 1], intercept)[:, 0] for k in range(T.shape[1])]
    return namespace(Q).stack(columns, axis=1)


def best_alpha(alphas, errors) -> int:
    """Position of the alpha with the smallest error; the largest alpha where several are equal."""
    close = errors <= errors.min() * (1 + 1e-12)
    return int(max(np.flatnonzero(close), key=lambda i: alphas[i]))


@dataclass(frozen=True)
class _Parts:
    """What the errors of every target need, in terms of U = Q D^-1/2 and s = alpha / (D + alpha).

    t - f = U (s * U't) + (t - U U't) and 1 - h = U^2 s + (1 - sum U^2): no difference of nearly
    equal numbers, however small alpha is. The second terms are what no direction explains; at full
    rank there is nothing, and what is computed of them is rounding.
    """

    U: Any
    shares: Any  # s, one column per alpha
    left: Any  # 1 - leverage, one column per alpha
    centred: bool
    full: bool

    @classmethod
    def of(cls, Q, values, alphas, centred):
        xp, n = namespace(Q), Q.shape[0]
        eps = eps_of(values)
        # Smaller eigenvalues are rounding.
        floor = max(Q.shape) * eps * max(float(values[0]), 0.0)
        rank = int(xp.sum(xp.astype(values > floor, xp.int64)))
        values, Q = values[:rank], Q[:, :rank]
        U = Q / xp.sqrt(values)[None, :]
        alphas = on_device_of(alphas, Q)[None, :]
        shares = alphas / (values[:, None] + alphas)
        mean = 1 / n if centred else 0.0
        squares = U * U
        left = squares @ shares
        full = rank >= n - centred
        if not full:
            left = left + (1 - mean - xp.sum(squares, axis=1))[:, None]
        # 1 - h >= alpha / (k(x, x) + alpha): a bound where the difference is all rounding. The rows
        # other than x add up to -x where they are centred, hence the factors of 1 - 1/n.
        own = xp.sum(Q * Q, axis=1)[:, None]
        least = (1 - mean) * alphas / (own / (1 - mean) + alphas)
        tiny = float(xp.finfo(left.dtype).smallest_normal)
        least = xp.where(least > tiny, least, tiny * xp.ones_like(least))
        return cls(U, shares, xp.where(left > least, left, least), centred, full)

    def misses(self, t, intercept):
        """Errors at left-out rows, n x alphas, of one target."""
        xp, n = namespace(self.U), self.U.shape[0]
        mean = xp.mean(t) if self.centred else 0.0
        seen = self.U.T @ t
        error = self.U @ (seen * self.shares)
        if not self.full:
            error = error + (t - mean - self.U @ seen)
        misses = error / self.left
        if not self.centred or intercept:
            return misses
        # Predictions without the targets' mean: what the other rows' mean is, they miss as well.
        return misses + (n * mean - t) / (n - 1)
