"""Ridge on a map with basis="fourier": from sums of exponentials to coefficients and penalty."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..engine import as_numpy, eigh, matrix_bytes, on_device_of, row_norms, solve_triangular
from ..fit import SpaceStatistic, fit_map
from ..space import Fourier, MapOptions
from .problem import Choice, Given, RidgeProblem
from .regularized import factor_shifted, solve_regularized
from .ridge_path import best_alpha
from .solution import LeftOut, RidgeSolution, Steps, per_target
from .toeplitz import NormalEquations, Solved, solve_normal

# Coordinates up to which all pairs are written out and solved directly.
DIRECT = 3000
# Random vectors that estimate a trace, and points whose uncertainty is worth a solve each: as many,
# and fewer where the coordinates of all solves together are more than the last number.
PROBES, MOST_SOLVES, LEAST_SOLVES, SOLVED_COORDINATES = 16, 1024, 64, 10**7
# The estimate varies by more than what this leaves open.
PROBE_TOL = 1e-2


@dataclass(frozen=True)
class FourierEquations:
    """(Phi'Phi + alpha I) w = b: directly for few coordinates, else by conjugate gradients.

    generator : sums over the rows
    tol, max_iter : of the iterations
    limit : bytes within which all pairs of coordinates must fit
    """

    space: Fourier
    generator: np.ndarray
    tol: float
    max_iter: int
    limit: float = np.inf

    @cached_property
    def direct(self) -> bool:
        fits = matrix_bytes(self.space.rank, copies=4) <= self.limit
        return self.space.rank <= DIRECT and fits

    @cached_property
    def second(self) -> np.ndarray:
        """Phi'Phi."""
        return self.space.pairs(self.generator)

    @cached_property
    def products(self) -> NormalEquations:
        return NormalEquations(self.space, self.generator)

    def solve(self, B: np.ndarray, alphas: np.ndarray, tol: float | None = None) -> Solved:
        if self.direct:
            coef, residuals, _ = solve_regularized(self.second, B, alphas)
            with np.errstate(divide="ignore"):
                return Solved(coef, np.linalg.norm(residuals, axis=0) / alphas)
        if np.min(alphas) <= 0:
            raise ValueError(
                f"{self.space.rank} Fourier coordinates are solved by iterations, which need "
                f"alpha > 0, got {np.min(alphas):g}."
            )
        return solve_normal(self.products, B, alphas, tol=tol or self.tol, max_iter=self.max_iter)

    def explained(self, B: np.ndarray, alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(t't - RSS, summed over targets, and the trace of the leverages) of every alpha."""
        if self.direct:  # one eigendecomposition serves all
            values, V = eigh(self.second)
            values = np.maximum(values, 0.0)
            q2 = np.sum((V.T @ B) ** 2, axis=1)
            shifted = values[None, :] + alphas[:, None]
            # RSS = t't - 2 w'Phi't + w'Phi'Phi w with w = V q / (values + alpha)
            explained = (q2 * (2 / shifted - values / shifted**2)).sum(axis=1)
            return explained, (values / shifted).sum(axis=1)
        # r - alpha tr (Phi'Phi + alpha I)^-1, the trace from random signs
        rank, found = self.space.rank, []
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(rank, PROBES))
        for alpha in alphas:
            w = self.solve(B, np.full(B.shape[1], alpha)).coef
            z = self.solve(signs, np.full(PROBES, alpha), PROBE_TOL).coef
            trace = rank - alpha * float(np.sum(z * signs)) / PROBES
            found.append((2 * np.sum(w * B) - np.sum(w * (self.products @ w)), trace))
        explained, leverage = np.array(found).T
        return explained, leverage

    @property
    def most_points(self) -> float:
        """Points whose variance is worth its time: fewer where a solve takes longer."""
        if self.direct:
            return np.inf
        return max(LEAST_SOLVES, min(MOST_SOLVES, SOLVED_COORDINATES // self.space.rank))

    def variance(self, rows: Any, alpha: float) -> np.ndarray:
        """rho^2 + alpha phi' (Phi'Phi + alpha I)^-1 phi."""
        space, found = self.space, np.empty(rows.shape[0])
        if self.direct:
            C = self._factor(alpha)
            for Phi, where in space.panels(rows):
                half = solve_triangular(C, as_numpy(Phi).T)
                found[where] = row_norms(half.T, np)
            return alpha * found + space.unseen
        if len(found) > MOST_SOLVES:
            raise ValueError(
                f"the map has {space.rank} coordinates, and each standard deviation is a solve of "
                f"its own: pass at most {MOST_SOLVES} points at a time, got {len(found)}, or use a "
                f"larger tol (up to {DIRECT} coordinates are solved directly)."
            )
        Phi = as_numpy(space.coordinates(rows)).T
        W = self.solve(Phi, np.full(len(found), alpha)).coef
        return alpha * np.sum(Phi * W, axis=0) + space.unseen

    def _factor(self, alpha):
        factors = vars(self).setdefault("_factors", {})
        if alpha not in factors:
            factors[alpha] = factor_shifted(self.second, alpha)
        return factors[alpha]


def solve_on_fourier_map(problem: RidgeProblem, options: MapOptions) -> "FourierMapSolution":
    """Alpha by generalised cross-validation: n RSS / (n - df)^2."""
    if problem.intercept:
        raise ValueError(
            "basis='fourier' has no intercept: a constant is one of its coordinates. Use "
            "fit_intercept=False."
        )
    training, rule = problem.training, problem.alpha
    statistic = SpaceStatistic(rule.smallest, problem.columns)
    fit = fit_map(training, options, statistic)
    sums, space = fit.sums, fit.map.space
    assert isinstance(space, Fourier)
    if not sums.n > 0:
        raise ValueError("sample_weight must not be all zero.")
    how = (problem.tol, problem.max_iter, training.resources.limit())
    equations, choice = FourierEquations(space, sums.generator, *how), None
    cross = sums.cross_of(space)
    if not isinstance(rule, Given):
        alphas = np.asarray(rule.candidates, dtype=float)
        explained, leverage = equations.explained(cross, alphas)
        squares = np.sum(sums.squares)
        left = np.maximum(squares - explained, np.finfo(float).eps * squares) / sums.n
        errors = left / np.maximum(1 - leverage / sums.rows, 1e-12) ** 2
        choice = Choice(float(alphas[best_alpha(alphas, errors)]), alphas, errors, sums.rows)
    alphas = problem.alphas(choice)
    found = equations.solve(cross, alphas)
    if not found.converged:
        warnings.warn(
            f"after max_iter={problem.max_iter} products the certified error of the function is "
            f"{float(found.error_norms.max()):.2g}, more than tol={problem.tol:g} times its norm: "
            "raise max_iter or alpha.",
            ConvergenceWarning,
            stacklevel=5,
        )
    coef = on_device_of(found.coef, space.example)
    norms, everywhere = _errors(space, sums, cross, found, alphas)
    solution = FourierMapSolution(
        fit.map.linear(coef),
        alphas,
        "primal",
        on_device_of(norms, coef),
        on_device_of(everywhere, coef),
        Steps(found.n_iter, found.converged),
        choice,
        coef=coef,
        generator=sums.generator,
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
    with np.errstate(divide="ignore", invalid="ignore"):
        everywhere = space.total_error * np.sqrt(sums.n * rss) / alphas
        norms = found.error_norms + np.sqrt(sums.n) * everywhere / (2 * np.sqrt(alphas))
    return tuple(np.where(alphas > 0, bounds, np.inf) for bounds in (norms, everywhere))


@dataclass(frozen=True, eq=False)
class FourierMapSolution(RidgeSolution):
    """Coefficients on Fourier coordinates; `generator` holds the sums of the rows."""

    coef: Any = None
    generator: Any = None
    tol: float = 1e-4
    max_iter: int = 500

    def variance(self, points: Any, diag: Any = None) -> Any:
        feature_map, how = self.prediction.map, (as_numpy(self.generator), self.tol, self.max_iter)
        equations = self.cached("equations", lambda: FourierEquations(feature_map.space, *how))
        rows = feature_map.fitted(points)
        variances = per_target(self.alphas, lambda alpha: equations.variance(rows, alpha))
        return on_device_of(variances, self.coef)

    def left_out(self, rows: np.ndarray | None = None, share: Any = None) -> LeftOut:
        raise ValueError("the leverage of a single row is not known in Fourier coordinates.")
