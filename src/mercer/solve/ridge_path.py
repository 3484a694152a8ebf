"""Ridge with an intercept on coordinates, for every penalty, and the penalty that predicts best."""

from typing import Any

import numpy as np

from ..engine.arrays import eigh, gram, namespace
from .leave_one_out import LeaveOneOut, best_alpha

# Where the search for alpha begins: decades, relative to the mean of k(x, x).
DECADES = np.arange(-6.0, 2.0)
# Of penalties whose errors differ by less than this factor the largest is taken: where the error
# does not depend on the penalty, rounding must not choose.
EQUALLY_GOOD = 1 + 1e-6


class RidgePath(LeaveOneOut):
    """Ridge on coordinates F, from one decomposition: F'F = V D V' and Q = F V, F centred.

    Parameters
    ----------
    F : n x r coordinates; overwritten
    T : n x t targets
    weights : n positive numbers, or None for equal ones
    share, spread : as in LeaveOneOut, the spread in units of the weights given
    """

    def __init__(self, F: Any, T: Any, weights: Any = None, share: Any = None, spread: Any = None):
        xp, n = namespace(F), F.shape[0]
        w = xp.ones_like(F[:, 0]) if weights is None else weights / xp.mean(weights)
        in_mean = w / n
        self.mean, self.offset = in_mean @ F, in_mean @ T
        F -= self.mean[None, :]
        T = T - self.offset[None, :]
        self.root = None if weights is None else xp.sqrt(w)[:, None]
        if self.root is not None:
            F, T = F * self.root, T * self.root
        second = gram(F)
        self.scale = float(xp.linalg.trace(second)) / n
        values, self.V = eigh(second)
        values = xp.where(values > 0, values, xp.zeros_like(values))
        self.least = 100 * float(xp.finfo(F.dtype).eps) * float(xp.max(values))
        spread = None if spread is None else spread / xp.mean(weights)
        super().__init__(F @ self.V, values, T, in_mean=in_mean, share=share, spread=spread)

    def errors(self, alphas: np.ndarray) -> np.ndarray:
        """Mean squared leave-one-out error of each alpha, summed over targets."""
        return self.squared_errors(alphas) / self.n

    def best(self, alphas: np.ndarray | None = None) -> tuple[float, float]:
        """(alpha, error) with the smallest error: of those given, or of all above rounding.

        Without a list the grid grows until its best value is not at an end, and is refined there.
        """
        if alphas is not None:
            errors = self.errors(np.asarray(alphas, dtype=float))
            found = best_alpha(alphas, errors)
            return float(alphas[found]), float(errors[found])
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
        errors, left = super().residuals(alpha)
        return errors if self.root is None else errors / self.root, left

    def coefficients(self, alpha: float) -> tuple[Any, Any]:
        """(w, b) with f = F w + b."""
        w = self.V @ (self.projected / (self.values + alpha)[:, None])
        return w, self.offset - self.mean @ w
