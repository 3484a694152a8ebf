"""Leave-one-out errors of ridge in closed form, for every penalty alpha at once.

With rows Q of coordinates in a basis where Q'Q is diagonal, D, the error at a left-out row is
(t_i - f_i) / (1 - h_i), h_i = sum_j Q_ij^2 / (D_j + alpha). Where the mean of the rows is taken
off, row i has a part m_i in it, and its leverage is h_i + m_i (MATH.md section 9). Without m_i the
error of a full-rank kernel tends to zero with alpha, and the smallest alpha always wins.
"""

from typing import Any

import numpy as np

from ..engine.arrays import as_numpy, eps_of, namespace, on_device_of, transposed_product

# Values of errors held at once, for one penalty and one target each.
HELD_VALUES = 1 << 24


def best_alpha(alphas, errors) -> int:
    """Position of the alpha with the smallest error; the largest alpha where several are equal."""
    close = errors <= errors.min() * (1 + 1e-12)
    return int(max(np.flatnonzero(close), key=lambda i: alphas[i]))


class LeaveOneOut:
    """Ridge on coordinates, and what it predicts of each row without having seen it.

    With s = alpha / (D + alpha), t - f = Q (s / D * Q't) + (t - Q D^-1 Q't), and likewise
    1 - h = Q^2 (s / D) + (1 - m - Q^2 / D): no difference of nearly equal numbers, however small
    alpha is. The second terms are what no direction explains; at full rank there is nothing, and
    what is computed of them is rounding.

    Parameters
    ----------
    Q : n x r coordinates with Q'Q = diag(values), the rows times the roots of their weights
    values : r numbers, largest first
    T : n x t targets, likewise times the roots of the weights
    in_mean : n numbers m, if the weighted means were taken off the rows of Q and T; or None
    share : n numbers, the part of a row's weight that is left out; None for all of it
    spread : n sums of squares of targets around T, within rows of several observations; or None
    offsets : n x t numbers that are added to every error; or None
    """

    def __init__(
        self,
        Q: Any,
        values: Any,
        T: Any,
        *,
        in_mean: Any = None,
        share: Any = None,
        spread: Any = None,
        offsets: Any = None,
    ):
        xp = namespace(Q)
        self.n = Q.shape[0]
        self.Q, self.values, self.T, self.offsets = Q, values, T, offsets
        self.share = None if share is None else share[:, None]
        self.spread = None if spread is None else spread[:, None]
        self.projected = transposed_product(Q, T)
        # Smaller eigenvalues are rounding, and a mean that was taken off leaves one direction less.
        eps, most = eps_of(values), self.n - (in_mean is not None)
        floor = max(Q.shape) * eps * max(float(values[0]), 0.0)
        rank = min(most, int(xp.sum(xp.astype(values > floor, xp.int64))))
        self._Q, self._values = Q[:, :rank], values[:rank]
        self._squares = self._Q * self._Q
        each = xp.stack([xp.ones_like(self._values), 1 / self._values], axis=1)
        sums = self._squares @ each  # one pass over the squares
        self._own = sums[:, :1]
        free = xp.ones_like(self._own) if in_mean is None else 1 - in_mean[:, None]
        self._free = xp.where(free > eps, free, eps * xp.ones_like(free))
        self._unseen, self._unseen_targets = None, None
        if rank < most:
            self._unseen = free - sums[:, 1:]
            self._unseen_targets = T - self._Q @ (self.projected[:rank, :] / self._values[:, None])

    def squared_errors(self, alphas: Any, importance: Any = None) -> np.ndarray:
        """Sums over rows and targets of squared errors, one per alpha; `importance` per row."""
        losses = self._losses(on_device_of(alphas, self.Q))
        total = namespace(losses).sum(losses, axis=0) if importance is None else importance @ losses
        return as_numpy(total).copy()

    def losses(self, alpha: float) -> Any:
        """Squared error of each row, times its weight, summed over targets."""
        return self._losses(on_device_of([alpha], self.Q))[:, 0]

    def _losses(self, alphas):
        xp, t = namespace(self.Q), self.T.shape[1]
        left = self._left(alphas)
        losses = xp.zeros_like(left) if self.spread is None else self.spread / (left * left)
        together = max(1, HELD_VALUES // (self.n * alphas.shape[0]))
        for a in range(0, t, together):
            errors = self._errors(alphas, left, a, min(a + together, t))
            losses = losses + xp.sum(errors * errors, axis=1)
        return losses

    def residuals(self, alpha: float) -> tuple[Any, Any]:
        """(errors t_i - f_i as n x t, 1 - h_i), the errors times the roots of the weights."""
        alphas = on_device_of([alpha], self.Q)
        left = self._left(alphas)
        return self._errors(alphas, left, 0, self.T.shape[1])[:, :, 0], left[:, 0]

    def _gains(self, alphas):
        """s / D, one column per alpha."""
        values = self._values[:, None]
        return alphas[None, :] / (values + alphas[None, :]) / values

    def _errors(self, alphas, left, a, b):
        """Of the targets a to b, n x targets x alphas."""
        xp, gains = namespace(self.Q), self._gains(alphas)
        (rank, many), some = gains.shape, b - a
        scaled = self.projected[:rank, a:b][:, :, None] * gains[:, None, :]
        errors = self._Q @ xp.reshape(scaled, (rank, some * many))
        errors = xp.reshape(errors, (self.n, some, many))
        if self._unseen_targets is not None:
            errors += self._unseen_targets[:, a:b][:, :, None]
        errors /= left[:, None, :]
        return errors if self.offsets is None else errors + self.offsets[:, a:b][:, :, None]

    def _left(self, alphas):
        """1 - h, one column per alpha."""
        xp = namespace(self.Q)
        left = self._squares @ self._gains(alphas)
        if self._unseen is not None:
            left = left + self._unseen
        # 1 - h >= alpha / (k(x, x) + alpha): a bound where the difference is all rounding. The rows
        # other than x add up to -x where they are centred, hence the factors of 1 - m.
        least = self._free * alphas[None, :] / (self._own / self._free + alphas[None, :])
        tiny = float(xp.finfo(left.dtype).smallest_normal)
        least = xp.where(least > tiny, least, tiny * xp.ones_like(least))
        left = xp.where(left > least, left, least)
        return left if self.share is None else 1 - self.share + self.share * left
