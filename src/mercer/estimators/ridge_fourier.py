"""Ridge in Fourier coordinates: from sums of exponentials to coefficients, penalty, uncertainty."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.arrays import as_numpy, eigh, row_norms, solve_triangular
from ..engine.memory import budget, matrix
from ..engine.nufft import FINEST
from ..solve.direct import Shifted, solve_regularized
from ..solve.toeplitz import NormalEquations, solve_normal
from ..space.fourier import Fourier
from ..space.fourier_sums import FourierStep, FourierSums

# Coordinates up to which all pairs are written out and solved directly.
DIRECT = 3000
# Random vectors that estimate a trace, and points whose uncertainty is worth a solve each.
PROBES, MOST_SOLVES = 16, 1024
# The estimate varies by more than what this leaves open.
PROBE_TOL = 1e-2


@dataclass(frozen=True)
class SumsFor:
    """Transforms so accurate that the equations of this alpha stay positive definite."""

    alpha: float
    n_jobs: int | None = None

    def __call__(self, space: Fourier, n: int) -> FourierStep:
        size = max(float(np.sum(space.amplitudes**2)), 1e-300)
        needed = 1e-2 * self.alpha / (n * size) if self.alpha > 0 else 0.0
        return FourierStep(space, self.n_jobs, max(FINEST, min(space.accuracy, needed)))


@dataclass(frozen=True)
class Solved:
    """Coefficients, and what their uncertainty needs: factors, or the generator of the sums."""

    coef: np.ndarray
    factors: list[Shifted]
    generator: np.ndarray | None = None
    error_norms: np.ndarray | None = None
    n_iter: int = 1
    converged: bool = True


def equations_of(space, sums, memory_limit) -> "Direct | Iterated":
    """Direct where the matrix is small."""
    fits = matrix(space.rank, copies=4) <= budget(memory_limit)
    return (Direct if space.rank <= DIRECT and fits else Iterated)(space, sums)


@dataclass(frozen=True)
class Equations:
    """(Phi'Phi + alpha I) w = Phi't, given by sums."""

    space: Fourier
    sums: FourierSums

    @property
    def cross(self) -> Any:
        """Phi't, one column per target."""
        return self.sums.cross_of(self.space)

    @property
    def n_targets(self) -> int:
        return self.cross.shape[1]

    def _errors(self, explained, leverage):
        """Generalised cross-validation: n RSS / (n - df)^2, mean over targets."""
        rows, squares = self.sums.rows, np.sum(self.sums.squares)
        left = np.maximum(squares - explained, np.finfo(float).eps * squares)
        free = np.maximum(1 - leverage / rows, 1e-12)
        return left / (self.sums.n * self.n_targets) / free**2


class Direct(Equations):
    """By one Cholesky factorisation for each alpha."""

    def solve(self, alphas, tol, max_iter) -> Solved:
        coef, factors = solve_regularized(self.sums.second(self.space), self.cross, alphas)
        return Solved(coef, factors)

    def generalized_errors(self, alphas, tol, max_iter) -> np.ndarray:
        """One eigendecomposition serves every alpha."""
        values, V = eigh(self.sums.second(self.space))
        values = np.maximum(values, 0.0)
        q2 = np.sum((V.T @ self.cross) ** 2, axis=1)
        shifted = values[None, :] + np.asarray(alphas)[:, None]
        # RSS = t't - 2 w'Phi't + w'Phi'Phi w with w = V q / (values + alpha)
        explained = (q2 * (2 / shifted - values / shifted**2)).sum(axis=1)
        return self._errors(explained, (values / shifted).sum(axis=1))


class Iterated(Equations):
    """By conjugate gradients, whose products are fast Fourier transforms."""

    def solve(self, alphas, tol, max_iter) -> Solved:
        if np.min(alphas) <= 0:
            raise ValueError(
                f"{self.space.rank} Fourier coordinates are solved by iterations, which need "
                f"alpha > 0, got {np.min(alphas):g}."
            )
        B = self.cross
        found = solve_normal(self._products, B, alphas, tol=tol, max_iter=max_iter)
        return Solved(
            found.coef, [], self.sums.generator, found.error_norms, found.n_iter, found.converged
        )

    def generalized_errors(self, alphas, tol, max_iter) -> np.ndarray:
        """df = r - alpha tr (Phi'Phi + alpha I)^-1, the trace from random signs."""
        products, B = self._products, self.cross
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(self.space.rank, PROBES))
        explained, leverage = [], []
        for alpha in alphas:
            given = np.full(B.shape[1], alpha)
            w = solve_normal(products, B, given, tol=tol, max_iter=max_iter).coef
            given = np.full(PROBES, alpha)
            z = solve_normal(products, signs, given, tol=PROBE_TOL, max_iter=max_iter).coef
            explained.append(2 * np.sum(w * B) - np.sum(w * (products @ w)))
            leverage.append(self.space.rank - alpha * float(np.sum(z * signs)) / PROBES)
        return self._errors(np.array(explained), np.array(leverage))

    @property
    def _products(self):
        return NormalEquations(self.space, self.sums.generator)


def fourier_variance(feature_map, points, model, factors, generator) -> np.ndarray:
    """rho^2 + alpha phi' (Phi'Phi + alpha I)^-1 phi, one column per target."""
    space, rows = feature_map.space, feature_map.fitted(points)
    variance = np.empty((rows.shape[0], len(model.alphas_)))
    if factors:
        for panel in space.panels(rows):
            Phi = as_numpy(panel.coordinates)
            for f in factors:
                seen = f.alpha * row_norms(solve_triangular(f.C, Phi.T).T, np)
                variance[panel.where, f.targets] = seen[:, None]
        return variance + space.unseen
    if rows.shape[0] > MOST_SOLVES:
        raise ValueError(
            f"the map has {space.rank} coordinates, and each standard deviation is a solve of its "
            f"own: pass at most {MOST_SOLVES} points at a time, got {rows.shape[0]}, or use a "
            f"larger tol (up to {DIRECT} coordinates are solved directly)."
        )
    products, Phi = NormalEquations(space, generator), as_numpy(space.coordinates(rows)).T
    for alpha in np.unique(model.alphas_):
        given = np.full(Phi.shape[1], alpha)
        W = solve_normal(products, Phi, given, tol=model.tol, max_iter=model.max_iter).coef
        mine = np.flatnonzero(np.array(model.alphas_) == alpha)
        variance[:, mine] = alpha * np.sum(Phi * W, axis=0)[:, None]
    return variance + space.unseen
