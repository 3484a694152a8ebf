"""Leave-one-out errors of ridge for every alpha at once, without fitting again.

With rows Q of coordinates in a basis where Q'Q is diagonal, D, the error at a left-out row is
(t_i - f_i) / (1 - h_i), h_i = sum_j Q_ij^2 / (D_j + alpha). Centred coordinates have spent one
degree of freedom on their mean: there the leverage is h_i + 1/n. Without it the error of a
full-rank kernel tends to zero with alpha, and the smallest alpha always wins.
"""

from typing import Any

import numpy as np

from ..engine.arrays import as_numpy, namespace, on_device_of


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
    xp = namespace(Q)
    left, gain = _left_over(Q, values, alphas, centred)
    errors = xp.zeros_like(left[0, :])
    for k in range(T.shape[1]):
        misses = _misses(Q, T[:, k : k + 1], left, gain, centred, intercept)
        errors = errors + xp.sum(misses * misses, axis=0)
    return as_numpy(errors).copy()


def leave_one_out_residuals(Q, values, T, alpha, *, centred=False, intercept=False) -> Any:
    """t_i minus the prediction of a model that never saw row i, one column per target."""
    xp = namespace(Q)
    left, gain = _left_over(Q, values, [alpha], centred)
    columns = [
        _misses(Q, T[:, k : k + 1], left, gain, centred, intercept)[:, 0] for k in range(T.shape[1])
    ]
    return xp.stack(columns, axis=1)


def _left_over(Q, values, alphas, centred):
    """(1 - leverage for every row and alpha, 1 / (D + alpha))."""
    xp = namespace(Q)
    # Smaller eigenvalues are rounding: without a floor a tiny alpha would divide by nothing.
    floor = max(float(values[0]), 0.0) * float(xp.finfo(values.dtype).eps)
    values = xp.where(values > floor, values, floor * xp.ones_like(values))
    alphas = on_device_of(alphas, Q)[None, :]
    gain = 1 / (values[:, None] + alphas)  # r x alphas
    squares = Q * Q
    leverage, own = squares @ gain, xp.sum(squares, axis=1)[:, None]
    mean = 1 / Q.shape[0] if centred else 0.0
    # 1 - h >= alpha / (k(x, x) + alpha): a bound where the difference is all rounding. The rows
    # other than x add up to -x where they are centred, hence the factors of 1 - 1/n.
    least = (1 - mean) * alphas / (own / (1 - mean) + alphas) + float(xp.finfo(own.dtype).eps)
    rest = 1 - mean - leverage
    return xp.where(rest > least, rest, least), gain


def _misses(Q, t, left, gain, centred, intercept):
    """Errors at left-out rows, n x alphas, of one target."""
    xp, n = namespace(Q), Q.shape[0]
    mean = xp.mean(t) if centred else 0.0
    fitted = Q @ ((Q.T @ t) * gain)
    misses = (t - mean - fitted) / left
    if not centred or intercept:
        return misses
    # Predictions without the targets' mean: what the other rows' mean is, they miss as well.
    return misses + (n * mean - t) / (n - 1)
