"""DualSolution: one coefficient per row, f(z) = sum_i a_i k(x_i, z) + b ([KERNELS] (6)-(8))."""

import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine import (
    as_numpy,
    device,
    evenly,
    inverse_of_factor,
    namespace,
    on_device_of,
    put,
    row_norms,
    solve_triangular,
    tiles,
)
from ..expansion import Expansion
from ..kernels import points as pts
from .problem import RidgeProblem
from .regularized import factor_shifted
from .solution import LeftOut, RidgeSolution, left_out_of, per_target
from .solver import Solver
from .system import scattered

# Points whose standard deviation is worth a solve of its own, and training rows that certify an
# upper value for all others.
FEW, WITNESSES = 64, 2000
# Nearest rows from which the leave-one-out error of a row is computed, and kernel values held at
# once while they are looked for.
NEIGHBOURS, HELD_VALUES = 400, 1 << 24


class DualSolver(Solver):
    """A solver for one coefficient per row, with the kernel itself.

    iterates : whether it divides by alpha
    """

    iterates = True

    def refusal(self, problem: RidgeProblem, asked: bool = True) -> str | None:
        smallest = problem.alpha.smallest
        if not problem.training.is_held:
            return (
                "it needs all rows at once, and these come in pieces: use form='iterative', which "
                "gathers them, or form='primal'"
            )
        if problem.map is not None:
            return (
                "it solves with the kernel itself and has no use for a KernelMap: pass its kernel, "
                "or form='primal'"
            )
        if self.iterates and not smallest > 0:
            return (
                f"it needs alpha > 0, got {smallest:g}: without a penalty neither the equations "
                "nor their certificate hold in floating point. Use form='dual'"
            )
        if not asked and not problem.kernel.is_proven:
            return "the validity of this kernel is not proven: the map tests it"
        return self._refusal(problem, asked)

    @abstractmethod
    def _refusal(self, problem: RidgeProblem, asked: bool) -> str | None:
        """Further reasons."""


@dataclass(frozen=True)
class Found:
    """Coefficients, one column per target; bounds of |f - f*|; and |f|."""

    coef: Any
    error_norms: np.ndarray
    norms: np.ndarray


@dataclass(frozen=True)
class Dual:
    """Coefficients of the rows and an intercept, bounds of their errors, and u with A u = 1."""

    W: Any
    b: Any
    error_norms: Any = None
    intercept_errors: Any = None
    ones: Any = None

    def solution(
        self, kind: Any, problem: RidgeProblem, S: Any, alphas: np.ndarray, name: str, **known: Any
    ) -> Any:
        """A solution of this kind; S are the rows that have a weight."""
        weights = problem.with_weight.weights
        prediction = known.pop("prediction", None)
        return kind(
            Expansion(problem.kernel, S, self.W, self.b) if prediction is None else prediction,
            alphas,
            name,
            self.error_norms,
            self.intercept_errors,
            weights=None if weights is None else on_device_of(weights, self.W),
            dual=scattered(self.W, problem.kept, problem.n),
            ones=self.ones,
            **known,
        )


def with_intercept(T: Any, alphas: np.ndarray, intercept: bool, equations: Callable) -> Dual:
    """Ridge with an intercept, where there is one, from ridge without.

    equations : from targets and penalties to `Found`, for A v = t

    With A u = 1 the intercept is b = 1'v / 1'u, and the coefficients are v - b u. Bounds e_u, e_v
    of the errors carry over: |1'A^-1 s| <= sqrt(1'u) sqrt(s'A^-1 s) by Cauchy and Schwarz, so that
    |b - b*| <= (e_v + |b| e_u) / sqrt(1'u), and |f - f*| <= e_v + |b| e_u + |b - b*| |u|.
    """
    xp, t = namespace(T), T.shape[1]
    if not intercept:
        found = equations(T, alphas)
        W = found.coef
        return Dual(W, namespace(W).zeros_like(W[0, :]), on_device_of(found.error_norms, W))
    penalties, which = np.unique(alphas, return_inverse=True)
    B = xp.concat([T, *[xp.ones_like(T[:, :1])] * len(penalties)], axis=1)
    found = equations(B, np.concatenate([alphas, penalties]))
    xp, v, u = namespace(found.coef), found.coef[:, :t], found.coef[:, t:]
    totals = as_numpy(xp.sum(u, axis=0)).astype(np.float64)
    b = xp.sum(v, axis=0) / on_device_of(totals[which], v)
    e_v, e_u = found.error_norms[:t], found.error_norms[t:][which]
    # 1'u is known to sqrt(1'u) e_u only: the smallest value that this leaves.
    least = np.maximum(np.sqrt(np.maximum(totals, 0.0))[which] - e_u, np.finfo(float).tiny)
    with np.errstate(all="ignore"):  # an infinite bound is a bound
        both = e_v + np.abs(as_numpy(b)) * e_u
        of_b = both / least
        of_f = both + of_b * (found.norms[t:][which] + e_u)
    of_f, of_b = (on_device_of(np.where(np.isnan(e), np.inf, e), v) for e in (of_f, of_b))
    return Dual(v - pts.take(u.T, which).T * b[None, :], b, of_f, of_b, u)


@dataclass(frozen=True, eq=False)
class DualSolution(RidgeSolution):
    """A = K + alpha N, N the inverse weights; solvers know its inverse.

    ones : u with A u = 1, one column per different penalty, where there is an intercept
    """

    ones: Any = None

    @abstractmethod
    def _ways(self, Z: Any) -> list[tuple[np.ndarray, Callable[[Any, float], Any] | None]]:
        """(points, how k_z' A^-1 k_z is found there); None: from below, by some of the rows."""

    def variance(self, points: Any, diag: Any = None) -> Any:
        Z = self.prediction.fitted(points)
        ways, like = self._ways(Z), self.prediction.W
        own = self.kernel.layout.own_values(self.kernel, Z, diag, like)
        upper = sum(len(where) for where, exact in ways if exact is None)
        if upper:
            warnings.warn(
                f"the standard deviations of {upper} points are certified upper values, from some "
                f"of the training rows; for exact ones pass at most {FEW} points at a time.",
                UserWarning,
                stacklevel=5,
            )

        def of(alpha: float):
            explained = np.empty(Z.shape[0])
            for where, exact in ways:
                if len(where):
                    explained[where] = as_numpy((exact or self._by_some)(pts.take(Z, where), alpha))
            return own - on_device_of(explained, own) + self._of_mean(Z, alpha)

        return per_target(self.alphas, of)

    def left_out(self, rows: np.ndarray | None = None, share: Any = None) -> LeftOut:
        W = as_numpy(self.prediction.W)
        some = np.arange(len(W)) if rows is None else np.asarray(rows)
        lefts = as_numpy(per_target(self.alphas, lambda alpha: self._left(alpha, some)))
        residuals = self.alphas[None, :] * self._noise(some)[:, None] * W[some]
        return left_out_of(residuals, lefts, share)

    def _inverse_diagonal(self, alpha: float, rows: np.ndarray) -> np.ndarray:
        """(A^-1)_jj of some rows, from the nearest rows of each: at most the exact value.

        1 / (A^-1)_jj is the variance of observation j given all others. Given some of them it is
        larger: leave-one-out errors come out too large, never too small. Where many rows are asked
        for, one factor of all costs less, and is exact.
        """
        kernel, X = self.kernel, self.prediction.S
        n, found = X.shape[0], np.empty(len(rows))
        if n**3 <= len(rows) * NEIGHBOURS**3 and 3 * n * n <= HELD_VALUES:
            K = tiles.evaluate(kernel, X)
            C = factor_shifted(K, alpha, on_device_of(self._noise(np.arange(n)), K))
            if C is not None:
                return inverse_diagonal(C, rows)
        noise, lengths = alpha * self._noise(np.arange(n)), as_numpy(kernel.diagonal(X)) ** 0.5
        m, block = min(n, NEIGHBOURS), max(1, HELD_VALUES // n)
        for start in range(0, len(rows), block):
            some = rows[start : start + block]
            near = np.abs(as_numpy(tiles.evaluate(kernel, pts.take(X, some), X)))
            near /= np.maximum(lengths, np.finfo(float).tiny)
            near[np.arange(len(some)), some] = np.inf  # the row itself comes first
            nearest = np.argpartition(-near, m - 1, axis=1)[:, :m] if m < n else None
            for i, j in enumerate(some):
                these = np.arange(n) if nearest is None else nearest[i]
                found[start + i] = _one_inverse(kernel, X, noise, these, j)
        return found

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
        u = on_device_of(u, S, dtype=float)
        told = tiles.multiply(self.kernel, Z, S, u[:, None])[:, 0]
        return (1 - told) ** 2 / namespace(u).sum(u)

    def _by_some(self, Z, alpha):
        """At most k_z' A^-1 k_z: some of the rows know less than all of them."""
        S = self.prediction.S
        some = evenly(S.shape[0], WITNESSES)
        witnesses = pts.take(S, some)
        K = tiles.evaluate(self.kernel, witnesses)
        C = factor_shifted(K, alpha, on_device_of(self._noise(some), K))
        half = solve_triangular(C, tiles.evaluate(self.kernel, Z, witnesses).T)
        return row_norms(half.T, namespace(K))


def without_mean(inverse: np.ndarray, u: np.ndarray, total: float) -> np.ndarray:
    """The diagonal of A^-1 - u u' / (1'u)."""
    return np.maximum(inverse - u**2 / total, 1e-3 * inverse)


def inverse_diagonal(C: Any, rows: np.ndarray) -> np.ndarray:
    """(A^-1)_jj = |C^-1 e_j|^2 for some rows, a block of right-hand sides at a time."""
    xp, n = namespace(C), C.shape[0]
    if 2 * len(rows) >= n and n * n <= HELD_VALUES:
        return as_numpy(xp.linalg.diagonal(inverse_of_factor(C)))[rows]
    found, block = np.empty(len(rows)), max(64, HELD_VALUES // (2 * n))
    for a in range(0, len(rows), block):
        some = rows[a : a + block]
        E = xp.zeros((len(some), n), dtype=C.dtype, device=device(C))
        E = put(E, np.arange(len(some)), on_device_of(some, C, dtype=xp.int64), 1.0)
        found[a : a + block] = as_numpy(row_norms(solve_triangular(C, E.T).T, xp))
    return found


def _one_inverse(kernel, X, noise, these, j):
    # Last in the order, the row's entry of the inverse is that of the factor alone.
    order = np.concatenate([these[these != j], [j]])
    K = tiles.evaluate(kernel, pts.take(X, order))
    C = factor_shifted(K, 1.0, on_device_of(noise[order], K))
    if C is None:  # singular to rounding: what is known without any neighbour
        return 1 / (float(K[-1, -1]) + noise[j])
    return float(C[-1, -1]) ** -2
