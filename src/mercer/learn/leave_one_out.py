"""Leave-one-out errors of ridge with an intercept, in closed form, for all penalties at once.

Coordinates F (n x r), targets T. With the weighted means removed and rows scaled by the roots of
their weights, F'F = V D V' and Q = F V: the prediction for alpha is Q (D + alpha)^-1 Q'T, and the
error at a left-out row is its residual over 1 - h, h_i = sum_j Q_ij^2 / (D_j + alpha) + w_i / sum w
(the last term is the intercept's: MATH.md section 9). Where a row stands for m observations, and
one of them is left out, h is divided by m.
"""

from typing import Any

import numpy as np

from ..engine.arrays import as_numpy, eigh, gram, namespace, on_device_of, transposed_product

# Where the search for alpha begins: decades, relative to the mean of k(x, x).
DECADES = np.arange(-6.0, 2.0)
# Of penalties whose errors differ by less than this factor the largest is taken: where the error
# does not depend on the penalty, rounding must not choose.
EQUALLY_GOOD = 1 + 1e-6
# Values of errors held at once, for one penalty and one target each.
HELD_VALUES = 1 << 24


class RidgePath:
    """Ridge on coordinates, for every penalty alpha: errors, coefficients, leverages.

    Parameters
    ----------
    F : n x r coordinates; overwritten
    T : n x t targets
    weights : n positive numbers, or None for equal ones
    share : n numbers, the part of a row's weight that is left out; None for all of it
    spread : n sums of squares of targets around T, within rows of several observations; or None
    """

    def __init__(self, F: Any, T: Any, weights: Any = None, share: Any = None, spread: Any = None):
        xp = self.xp = namespace(F)
        self.n = F.shape[0]
        w = xp.ones_like(F[:, 0]) if weights is None else weights / xp.mean(weights)
        self.of_mean = w / self.n
        self.share = None if share is None else share[:, None]
        self.spread = None if spread is None else (spread / xp.mean(weights))[:, None]
        self.mean, self.offset = self.of_mean @ F, self.of_mean @ T
        F -= self.mean[None, :]
        T = T - self.offset[None, :]
        self.weights = None if weights is None else w
        self.root = None if weights is None else xp.sqrt(w)[:, None]
        if self.root is not None:
            F, T = F * self.root, T * self.root
        self.T = T
        second = gram(F)
        self.scale = float(xp.linalg.trace(second)) / self.n
        values, self.V = eigh(second)
        self.values = xp.where(values > 0, values, xp.zeros_like(values))
        self.Q = F @ self.V
        self.squares = self.Q * self.Q
        self.projected = transposed_product(self.Q, T)
        self.least = 100 * float(xp.finfo(F.dtype).eps) * float(xp.max(self.values))

    def errors(self, alphas: np.ndarray) -> np.ndarray:
        """Mean squared leave-one-out error of each alpha, summed over targets."""
        xp, n, t = self.xp, self.n, self.T.shape[1]
        alphas = on_device_of(alphas, self.Q)
        gain = 1 / (self.values[:, None] + alphas[None, :])
        left = self._left(self.squares @ gain)
        total = xp.zeros_like(alphas)
        if self.spread is not None:
            total = xp.sum(self.spread / (left * left), axis=0)
        together = max(1, HELD_VALUES // (n * alphas.shape[0]))
        for a in range(0, t, together):
            b = min(a + together, t)
            T = self.T[:, a:b]
            scaled = self.projected[:, a:b][:, :, None] * gain[:, None, :]
            fitted = self.Q @ xp.reshape(scaled, (gain.shape[0], -1))
            misses = T[:, :, None] - xp.reshape(fitted, (n, T.shape[1], alphas.shape[0]))
            misses /= left[:, None, :]
            total = total + xp.sum(xp.sum(misses * misses, axis=1), axis=0)
        return as_numpy(total) / n

    def best(self, alphas: np.ndarray | None = None) -> tuple[float, float]:
        """(alpha, error) with the smallest error: of those given, or of all above rounding.

        Without a list the grid grows until its best value is not at an end, and is refined there.
        """
        if alphas is not None:
            errors = self.errors(np.asarray(alphas, dtype=float))
            return float(alphas[int(errors.argmin())]), float(errors.min())
        least = np.log10(max(self.least, 1e-10 * self.scale, 1e-300))
        unit = np.log10(max(self.scale, 1e-300))
        tried: dict[float, float] = {}

        def at(grid):
            new = np.unique([max(g, least) for g in grid if max(g, least) not in tried])
            if len(new):
                tried.update(zip(new.tolist(), self.errors(10.0**new).tolist()))
            least_error = min(tried.values())
            return max(g for g, error in tried.items() if error <= EQUALLY_GOOD * least_error)

        best = at(DECADES + unit)
        while best == max(tried) and best < unit + 8:
            best = at([best + 1, best + 2])
        while best == min(tried) and best > least:
            best = at([best - 1, best - 2])
        for step in (0.5, 0.2):
            best = at([best - step, best + step])
        return float(10.0**best), tried[best]

    def residuals(self, alpha: float) -> tuple[Any, Any]:
        """Leave-one-out errors t_i - f_i (n x t), and the leverages' rest 1 - h_i."""
        gain = 1 / (self.values + alpha)
        left = self._left((self.squares @ gain)[:, None])
        misses = (self.T - self.Q @ (self.projected * gain[:, None])) / left
        return misses if self.root is None else misses / self.root, left[:, 0]

    def losses(self, alpha: float) -> Any:
        """Squared leave-one-out error of each row, times its weight: `errors` is their mean."""
        residuals, left = self.residuals(alpha)
        losses = self.xp.sum(residuals * residuals, axis=1)
        losses = losses if self.weights is None else losses * self.weights
        return losses if self.spread is None else losses + self.spread[:, 0] / left**2

    def coefficients(self, alpha: float) -> tuple[Any, Any]:
        """(w, b) with f = F w + b."""
        w = self.V @ (self.projected / (self.values + alpha)[:, None])
        return w, self.offset - self.mean @ w

    def _left(self, leverage):
        """1 - h, at least what rounding leaves of it."""
        xp = self.xp
        leverage = leverage + self.of_mean[:, None]
        left = 1 - (leverage if self.share is None else leverage * self.share)
        floor = 1e3 * float(xp.finfo(left.dtype).eps)
        return xp.where(left > floor, left, xp.full_like(left, floor))
