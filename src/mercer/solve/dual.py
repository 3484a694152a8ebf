"""DualSolution: one coefficient per row, f(z) = sum_i a_i k(x_i, z) + b ([KERNELS] (6)-(8))."""

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine import tiles
from ..engine.arrays import (
    as_numpy,
    cholesky,
    evenly,
    namespace,
    on_device_of,
    put,
    row_norms,
    solve_triangular,
)
from ..kernels.points import take
from .solution import LeftOut, RidgeSolution, as_fitted, left_out_of, own_similarities, per_target
from .system import double_like

# Points whose standard deviation is worth a solve of its own, and training rows that certify an
# upper value for all others.
FEW, WITNESSES = 64, 2000
# Nearest rows from which the leave-one-out error of a row is computed, and kernel values held at
# once while they are looked for.
NEIGHBOURS, HELD_VALUES = 400, 1 << 24


@dataclass(frozen=True, eq=False)
class DualSolution(RidgeSolution):
    """A = K + alpha N, N the inverse weights; its inverse is told by the solver.

    ones : u with A u = 1, one column per different penalty, where there is an intercept
    """

    ones: Any = None

    @abstractmethod
    def _explained(self, Z: Any, alpha: float) -> Any:
        """k_z' A^-1 k_z, or a lower bound of it."""

    @abstractmethod
    def _inverse_diagonal(self, alpha: float, rows: np.ndarray) -> np.ndarray:
        """(A^-1)_jj of some rows."""

    def variance(self, points: Any, diag: Any = None) -> Any:
        Z = as_fitted(self.prediction, points)
        own = own_similarities(self.kernel, Z, diag, self.prediction.W)
        return per_target(
            self.alphas, lambda alpha: own - self._explained(Z, alpha) + self._of_mean(Z, alpha)
        )

    def left_out(self, rows: np.ndarray | None = None, share: Any = None) -> LeftOut:
        W = as_numpy(self.prediction.W)
        some = np.arange(len(W)) if rows is None else np.asarray(rows)
        lefts = as_numpy(per_target(self.alphas, lambda alpha: self._left(alpha, some)))
        residuals = self.alphas[None, :] * self._noise(some)[:, None] * W[some]
        return left_out_of(residuals, lefts, share)

    def _noise(self, rows):
        return np.ones(len(rows)) if self.weights is None else 1 / as_numpy(self.weights)[rows]

    def _left(self, alpha, rows):
        """1 - leverage: alpha n_j (A^-1)_jj, less the part in the mean."""
        inverse = self._inverse_diagonal(alpha, rows)
        if self.ones is not None:
            u = as_numpy(self._unit(alpha))
            inverse = without_mean(inverse, u[rows], float(u.sum()))
        return alpha * self._noise(rows) * inverse

    def _unit(self, alpha):
        """u with A u = 1."""
        return self.ones[:, int(np.flatnonzero(np.unique(self.alphas) == alpha)[0])]

    def _of_mean(self, Z, alpha):
        """Variance that an unknown mean adds: (1 - u'k_z)^2 / 1'u."""
        if self.ones is None:
            return 0.0
        S, u = self.prediction.S, self._unit(alpha)
        u = on_device_of(u, double_like(S))
        told = tiles.multiply(self.kernel, Z, S, u[:, None])[:, 0]
        return (1 - told) ** 2 / namespace(u).sum(u)

    def _explained_by_some(self, Z, alpha):
        """At most k_z' A^-1 k_z: some of the rows know less than all of them."""
        S = self.prediction.S
        some = evenly(S.shape[0], WITNESSES)
        witnesses = take(S, some)
        K = tiles.evaluate(self.kernel, witnesses)
        C = cholesky(K + on_device_of(np.diag(alpha * self._noise(some)), K))
        half = solve_triangular(C, tiles.evaluate(self.kernel, Z, witnesses).T)
        return row_norms(half.T, namespace(K))


def warn_of_upper_values(n: int) -> None:
    warnings.warn(
        f"the standard deviations of {n} points are certified upper values, from some of the "
        f"training rows; for exact ones pass at most {FEW} points at a time.",
        UserWarning,
        stacklevel=6,
    )


def without_mean(inverse: np.ndarray, u: np.ndarray, total: float) -> np.ndarray:
    """The diagonal of A^-1 - u u' / (1'u)."""
    return np.maximum(inverse - u**2 / total, 1e-3 * inverse)


def inverse_diagonal(C: Any, rows: np.ndarray) -> np.ndarray:
    """(A^-1)_jj = |C^-1 e_j|^2 for some rows, a block of right-hand sides at a time."""
    xp, n = namespace(C), C.shape[0]
    found, block = np.empty(len(rows)), max(64, HELD_VALUES // (2 * n))
    for a in range(0, len(rows), block):
        some = rows[a : a + block]
        E = np.zeros((n, len(some)), order="F")
        E[some, np.arange(len(some))] = 1.0
        found[a : a + block] = as_numpy(row_norms(solve_triangular(C, on_device_of(E, C)).T, xp))
    return found


def lower_inverse_diagonal(kernel: Any, X: Any, noise: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(A^-1)_jj from the nearest rows: at most the exact value, and close to it.

    1 / (A^-1)_jj is the variance of observation j given all others. Given some of them it is
    larger: leave-one-out errors come out too large, never too small.
    """
    n, found = X.shape[0], np.empty(len(rows))
    lengths = as_numpy(kernel.diagonal(X)) ** 0.5
    m, block = min(n, NEIGHBOURS), max(1, HELD_VALUES // n)
    for start in range(0, len(rows), block):
        some = rows[start : start + block]
        near = np.abs(as_numpy(tiles.evaluate(kernel, take(X, some), X)))
        near /= np.maximum(lengths, np.finfo(float).tiny)
        near[np.arange(len(some)), some] = np.inf  # the row itself comes first
        nearest = np.argpartition(-near, m - 1, axis=1)[:, :m] if m < n else None
        for i, j in enumerate(some):
            these = np.arange(n) if nearest is None else nearest[i]
            found[start + i] = _one_inverse(kernel, X, noise, these, j)
    return found


def _one_inverse(kernel, X, noise, these, j):
    # Last in the order, the row's entry of the inverse is that of the factor alone.
    order = np.concatenate([these[these != j], [j]])
    K = tiles.evaluate(kernel, take(X, order))
    diagonal, own = np.arange(len(order)), namespace(K).linalg.diagonal(K)
    shift = on_device_of(noise[order], K)
    C = cholesky(put(K, diagonal, diagonal, own + shift))
    if C is None:  # singular to rounding: what is known without any neighbour
        return 1 / float(own[-1] + shift[-1])
    return float(C[-1, -1]) ** -2
