"""Ridge on a map with basis="fourier": from sums of exponentials to coefficients and penalty."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..engine.arrays import as_numpy, eigh, on_device_of, row_norms, solve_triangular
from ..engine.memory import budget, matrix_bytes
from ..engine.nufft import FINEST
from ..fit import SpaceStatistic, fit_map
from ..space.choice import MapOptions
from ..space.fourier import Fourier
from ..space.fourier_sums import FourierStep, FourierSums, all_pairs
from .primal import column
from .problem import Choice, Given, LeaveOneOut, RidgeProblem
from .regularized import factor_shifted, solve_regularized
from .ridge_path import best_alpha
from .solution import LeftOut, RidgeSolution, Steps
from .toeplitz import NormalEquations, Solved, solve_normal

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

    def __call__(self, space: Fourier, n: int) -> FourierStep:
        size = max(float(np.sum(space.amplitudes**2)), 1e-300)
        needed = 1e-2 * self.alpha / (n * size) if self.alpha > 0 else 0.0
        return FourierStep(space, max(FINEST, min(space.accuracy, needed)))


def equations_of(space: Any, sums: Any, memory_limit: Any) -> "Written | Iterated":
    """Direct where the matrix is small."""
    fits = matrix_bytes(space.rank, copies=4) <= budget(memory_limit)
    return (Written if space.rank <= DIRECT and fits else Iterated)(space, sums)


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


class Written(Equations):
    """By one Cholesky factorisation for each alpha."""

    def solve(self, alphas: np.ndarray, tol: float, max_iter: int) -> Solved:
        coef, residuals, _ = solve_regularized(self.sums.second(self.space), self.cross, alphas)
        with np.errstate(divide="ignore"):
            return Solved(coef, np.linalg.norm(residuals, axis=0) / alphas)

    def generalized_errors(self, alphas: np.ndarray, tol: float, max_iter: int) -> np.ndarray:
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

    def solve(self, alphas: np.ndarray, tol: float, max_iter: int) -> Solved:
        if np.min(alphas) <= 0:
            raise ValueError(
                f"{self.space.rank} Fourier coordinates are solved by iterations, which need "
                f"alpha > 0, got {np.min(alphas):g}."
            )
        return solve_normal(self._products, self.cross, alphas, tol=tol, max_iter=max_iter)

    def generalized_errors(self, alphas: np.ndarray, tol: float, max_iter: int) -> np.ndarray:
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


def solve_on_fourier_map(problem: RidgeProblem, options: MapOptions) -> "FourierMapSolution":
    """Directly for few coordinates, else by iterations; alpha by generalised cross-validation."""
    if problem.intercept:
        raise ValueError(
            "basis='fourier' has no intercept: a constant is one of its coordinates. Use "
            "fit_intercept=False."
        )
    training, rule = problem.training, problem.alpha
    columns = [column(problem.T, "y"), column(problem.weights, "sample_weight")]
    step = SumsFor(rule.smallest)
    fit = fit_map(training, options, SpaceStatistic(step, columns))
    if not fit.sums.n > 0:
        raise ValueError("sample_weight must not be all zero.")
    space = fit.map.space
    equations, choice = equations_of(space, fit.sums, options.memory_limit), None
    if isinstance(rule, Given):
        alphas = np.asarray(rule.values, dtype=float)
    else:
        choice = _choice(problem, rule, equations)
        alphas = np.full(equations.n_targets, choice.alpha)
    found = equations.solve(alphas, problem.tol, problem.max_iter)
    if not found.converged:
        warnings.warn(
            f"after max_iter={problem.max_iter} products the certified error of the function is "
            f"{float(found.error_norms.max()):.2g}, more than tol={problem.tol:g} times its norm: "
            "raise max_iter or alpha.",
            ConvergenceWarning,
            stacklevel=5,
        )
    coef = on_device_of(found.coef, space.example)
    norms, everywhere = _errors(space, fit.sums, equations.cross, found, alphas)
    solution = FourierMapSolution(
        fit.map.linear(coef),
        alphas,
        "primal",
        on_device_of(norms, coef),
        on_device_of(everywhere, coef),
        Steps(found.n_iter, found.converged),
        choice,
        coef=coef,
        generator=fit.sums.generator,
        tol=problem.tol,
        max_iter=problem.max_iter,
    )
    solution.cached("fit", lambda: fit)
    return solution


def _errors(space, sums, B, found, alphas):
    """(bounds of |f - f*| in the kernel's norm, what the map adds everywhere).

    With a = W (t - f) / alpha, values of the map differ from sums of kernels by delta sum |a|,
    delta its error; sum |a| <= sqrt(sum of weights) sqrt(RSS) / alpha, RSS from the sums.
    """
    w = found.coef
    rss = sums.squares - np.sum(w * B, axis=0) - alphas * np.sum(w * w, axis=0)
    rss = np.maximum(rss, np.finfo(float).eps * sums.squares)
    size = float(np.sum(space.amplitudes**2)) + space.unseen
    delta = space.error + space.rounding(size)
    with np.errstate(divide="ignore", invalid="ignore"):
        everywhere = delta * np.sqrt(sums.n * rss) / alphas
        norms = found.error_norms + np.sqrt(sums.n) * everywhere / (2 * np.sqrt(alphas))
    positive = alphas > 0
    return np.where(positive, norms, np.inf), np.where(positive, everywhere, np.inf)


def _choice(problem, rule, equations):
    assert isinstance(rule, LeaveOneOut)
    alphas = np.asarray(rule.candidates, dtype=float)
    errors = equations.generalized_errors(alphas, problem.tol, problem.max_iter)
    best = best_alpha(alphas, errors)
    errors = errors * equations.n_targets  # summed over targets, as all choices are
    return Choice(float(alphas[best]), alphas, errors, equations.sums.rows)


@dataclass(frozen=True, eq=False)
class FourierMapSolution(RidgeSolution):
    """Coefficients on Fourier coordinates; `generator` holds the sums of the rows."""

    coef: Any = None
    generator: Any = None
    tol: float = 1e-4
    max_iter: int = 500

    def variance(self, points: Any, diag: Any = None) -> Any:
        feature_map = self.prediction.map
        space, rows = feature_map.space, feature_map.fitted(points)
        factors: dict[float, Any] = {}
        if space.rank <= DIRECT:
            factors = {
                float(alpha): self.cached(float(alpha), lambda alpha=alpha: self._factor(alpha))
                for alpha in np.unique(self.alphas)
            }
        generator, how = as_numpy(self.generator), (self.tol, self.max_iter)
        variance = fourier_variance(space, rows, self.alphas, factors, generator, *how)
        return on_device_of(variance, self.coef)

    def _factor(self, alpha):
        space = self.prediction.map.space
        A = all_pairs(space.frequencies, space.amplitudes, as_numpy(self.generator))
        return factor_shifted(A, float(alpha))

    def left_out(self, rows: np.ndarray | None = None, share: Any = None) -> LeftOut:
        raise ValueError("the leverage of a single row is not known in Fourier coordinates.")


def fourier_variance(
    space: Any,
    rows: Any,
    alphas: np.ndarray,
    factors: Any,
    generator: Any,
    tol: float,
    max_iter: int,
) -> np.ndarray:
    """rho^2 + alpha phi' (Phi'Phi + alpha I)^-1 phi, one column per target."""
    variance = np.empty((rows.shape[0], len(alphas)))
    if factors:
        for panel in space.panels(rows):
            Phi = as_numpy(panel.coordinates)
            for alpha, C in factors.items():
                seen = alpha * row_norms(solve_triangular(C, Phi.T).T, np)
                variance[panel.where, np.flatnonzero(alphas == alpha)] = seen[:, None]
        return variance + space.unseen
    if rows.shape[0] > MOST_SOLVES:
        raise ValueError(
            f"the map has {space.rank} coordinates, and each standard deviation is a solve of its "
            f"own: pass at most {MOST_SOLVES} points at a time, got {rows.shape[0]}, or use a "
            f"larger tol (up to {DIRECT} coordinates are solved directly)."
        )
    products, Phi = NormalEquations(space, generator), as_numpy(space.coordinates(rows)).T
    for alpha in np.unique(alphas):
        given = np.full(Phi.shape[1], alpha)
        W = solve_normal(products, Phi, given, tol=tol, max_iter=max_iter).coef
        variance[:, np.flatnonzero(alphas == alpha)] = alpha * np.sum(Phi * W, axis=0)[:, None]
    return variance + space.unseen
