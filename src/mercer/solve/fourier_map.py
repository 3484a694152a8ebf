"""Ridge in Fourier coordinates: (Phi'Phi + alpha I) w = Phi't without Phi.

Phi'Phi is a convolution with the generator g (space/fourier.py) between two diagonal scalings,
so that a product costs two fast Fourier transforms of the size of g, however many rows there were.
The coordinates with the largest weights are written out and factored: what is left beside them is
small compared with alpha, so that a few dozen products are enough. Few coordinates are all written
out, and solved directly. `solve_on_fourier_map` is ridge on a map with basis="fourier".
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.fft
from sklearn.exceptions import ConvergenceWarning

from ..engine import (
    as_numpy,
    current,
    eigh,
    matrix_bytes,
    on_device_of,
    row_norms,
    solve_triangular,
)
from ..fit import SpaceStatistic, fit_map
from ..space import Fourier, MapOptions
from .iterations import ConjugateGradients
from .problem import Choice, Given, RidgeProblem
from .regularized import factor_shifted, solve_factored, solve_regularized
from .ridge_path import best_alpha
from .solver import LeftOut, RidgeSolution, Steps

# Right-hand sides that are solved together.
_TOGETHER = 16
# Coordinates whose pairs are written out, for the preconditioner; and up to which all of them are.
WRITTEN_OUT, DIRECT = 2000, 3000
# Random vectors that estimate a trace, and points whose uncertainty is worth a solve each: as many,
# and fewer where the coordinates of all solves together are more than the last number.
PROBES, MOST_SOLVES, LEAST_SOLVES, SOLVED_COORDINATES = 16, 1024, 64, 10**7
# The estimate varies by more than what this leaves open.
_PROBE_TOL = 1e-2


@dataclass(frozen=True)
class _Solved:
    """Coefficients, a bound of their error |w - w*| per column, and how they were found."""

    coef: np.ndarray
    error_norms: np.ndarray
    n_iter: int = 1
    converged: bool = True


@dataclass(eq=False)
class FourierEquations:
    """(Phi'Phi + alpha I) w = b in the real coordinates of a Fourier space."""

    space: Fourier
    generator: np.ndarray  # sums over the rows
    tol: float = 1e-4  # of the iterations, as max_iter is
    max_iter: int = 500
    # Bytes within which all pairs of coordinates must fit, to be solved directly
    limit: float = np.inf

    def __post_init__(self) -> None:
        self.amplitudes, self.workers = self.space.amplitudes, current().threads
        self.shape = tuple(scipy.fft.next_fast_len(k, real=True) for k in self.generator.shape)
        self._half_shape = (*self.shape[:-1], self.shape[-1] // 2 + 1)
        self._factors: dict[float, Any] = {}

    # --- products ---------------------------------------------------------------------------------

    @cached_property
    def density(self) -> np.ndarray:
        """The generator as a function on the grid: real, since g_-k is the conjugate of g_k."""
        m = tuple(k // 2 for k in self.generator.shape)
        spectrum = np.zeros(self._half_shape, dtype=complex)
        wrapped = [np.arange(-k, k + 1) % n for k, n in zip(m[:-1], self.shape)]
        spectrum[np.ix_(*wrapped, np.arange(m[-1] + 1))] = self.generator[..., m[-1] :]
        density: np.ndarray = scipy.fft.irfftn(spectrum, self.shape, workers=self.workers)
        density *= np.prod(self.shape)
        return density

    @cached_property
    def _places(self) -> tuple[tuple[np.ndarray, ...], np.ndarray, tuple[np.ndarray, ...]]:
        """(places of the frequencies, those whose opposite is in this half, its places): a last
        entry is >= 0, and with 0 there the opposite is in this half as well."""
        j, shape = self.space.frequencies, np.array(self.shape)
        flat = j[:, -1] == 0
        return tuple((j % shape).T), flat, tuple((-j[flat] % shape).T)

    def __matmul__(self, W: np.ndarray) -> np.ndarray:
        """Phi'Phi W for a matrix W."""
        h, a, q = len(self.space.frequencies), self.amplitudes, W.shape[1]
        places, flat, opposite = self._places
        every: tuple[Any, ...] = (slice(None),)
        zero: tuple[Any, ...] = (slice(None), *[0] * len(self.shape))
        C = np.zeros((q, *self._half_shape), dtype=complex)
        mine = (W[1 : 1 + h].T - 1j * W[1 + h :].T) * (a[1:] / 2)
        C[every + places] = mine
        C[every + opposite] = np.conj(mine[:, flat])
        C[zero] = W[0] * a[0]
        axes = tuple(range(1, 1 + len(self.shape)))
        options: dict[str, Any] = {"axes": axes, "workers": self.workers, "overwrite_x": True}
        f = scipy.fft.irfftn(C, self.shape, **options)
        f *= self.density
        F = scipy.fft.rfftn(f, **options)
        found = F[every + places] * a[1:]
        return np.concatenate([F[zero].real[:, None] * a[0], found.real, -found.imag], axis=1).T

    # --- solutions --------------------------------------------------------------------------------

    @cached_property
    def direct(self) -> bool:
        fits = matrix_bytes(self.space.rank, copies=4) <= self.limit
        return self.space.rank <= DIRECT and fits

    @cached_property
    def second(self) -> np.ndarray:
        """Phi'Phi."""
        return self.space.pairs(self.generator)

    def solve(self, B: np.ndarray, alphas: np.ndarray, tol: float | None = None) -> _Solved:
        """One column per column of B, which has an alpha of its own."""
        if self.direct:
            coef, residuals, _ = solve_regularized(self.second, B, alphas)
            with np.errstate(divide="ignore"):
                return _Solved(coef, np.linalg.norm(residuals, axis=0) / alphas)
        if np.min(alphas) <= 0:
            raise ValueError(
                f"{self.space.rank} Fourier coordinates are solved by iterations, which need "
                f"alpha > 0, got {np.min(alphas):g}."
            )
        return self.iterate(B, alphas, tol or self.tol)

    def iterate(self, B: np.ndarray, alphas: np.ndarray, tol: float) -> _Solved:
        """By conjugate gradients.

        All eigenvalues are at least alpha, so that |w - w*| <= |residual| / alpha: iterations end
        when this is at most tol times |w|.
        """
        alphas = np.asarray(alphas, dtype=float)
        parts = [slice(a, a + _TOGETHER) for a in range(0, B.shape[1], _TOGETHER)]
        found = [self._together(B[:, part], alphas[part], tol) for part in parts]
        return _Solved(
            np.concatenate([p.coef for p in found], axis=1),
            np.concatenate([p.error_norms for p in found]),
            max(p.n_iter for p in found),
            all(p.converged for p in found),
        )

    def _together(self, B: np.ndarray, alphas: np.ndarray, tol: float) -> _Solved:
        def times(V: Any) -> Any:
            return (self @ V) + alphas * V

        def is_small(R: Any, W: Any, tol: float) -> bool:
            left = np.linalg.norm(R, axis=0)
            return bool(np.all((left <= tol * alphas * np.linalg.norm(W, axis=0)) | (left == 0)))

        cg, steps = ConjugateGradients(times, self._preconditioner(alphas), B), 0
        while steps < self.max_iter and not is_small(cg.r, cg.x, tol):
            cg.advance(*cg.product())
            steps += 1
            if steps % 50 == 0:  # the updated residual drifts away from the true one
                cg.r = B - times(cg.x)
            cg.turn()
        R = B - times(cg.x)
        errors = np.linalg.norm(R, axis=0) / alphas
        return _Solved(cg.x, errors, steps, is_small(R, cg.x, 1.1 * tol))

    @property
    def diagonal(self) -> np.ndarray:
        """About the diagonal of Phi'Phi: n w_j."""
        count, w = float(np.mean(self.density)), self.amplitudes**2 / 2
        return count * np.concatenate([2 * w[:1], w[1:], w[1:]])

    @cached_property
    def heaviest(self) -> tuple[np.ndarray, np.ndarray]:
        """(positions, Phi'Phi among these) of the coordinates with the largest weights."""
        order = np.argsort(-self.amplitudes[1:], kind="stable")
        heaviest = order[: max(0, (WRITTEN_OUT - 1) // 2)]
        sines = 1 + len(self.space.frequencies)
        positions = np.concatenate([[0], 1 + heaviest, sines + heaviest])
        return positions, self.space.pairs(self.generator, heaviest)

    def _preconditioner(self, alphas: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """(Phi'Phi + alpha I)^-1, with Phi'Phi as it is among the heaviest coordinates, diagonal
        else.

        The eigenvalues of the rest are about n w_j: where that is below alpha, nothing is lost.
        """
        inverses, (positions, A) = 1 / (self.diagonal[:, None] + alphas), self.heaviest
        factors = {alpha: factor_shifted(A, alpha) for alpha in np.unique(alphas)}

        def inverse(R: np.ndarray) -> np.ndarray:
            Z: np.ndarray = inverses * R
            for alpha, C in factors.items():
                if C is not None:  # singular to rounding: the diagonal will do
                    part = np.ix_(positions, np.flatnonzero(alphas == alpha))
                    Z[part] = solve_factored(C, R[part])
            return Z

        return inverse

    # --- the penalty, and variances ---------------------------------------------------------------

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
            z = self.solve(signs, np.full(PROBES, alpha), _PROBE_TOL).coef
            trace = rank - alpha * float(np.sum(z * signs)) / PROBES
            found.append((2 * np.sum(w * B) - np.sum(w * (self @ w)), trace))
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
            if alpha not in self._factors:
                self._factors[alpha] = factor_shifted(self.second, alpha)
            for Phi, where in space.panels(rows):
                half = solve_triangular(self._factors[alpha], as_numpy(Phi).T)
                found[where] = row_norms(half.T, np)
            return alpha * found + space.unseen
        if len(found) > MOST_SOLVES:
            raise ValueError(
                f"the map has {space.rank} coordinates, and each standard deviation is a solve of "
                f"its own: pass at most {MOST_SOLVES} points at a time, got {len(found)}, or use a "
                f"larger tol (up to {DIRECT} coordinates are solved directly)."
            )
        Phi = as_numpy(space.coordinates(rows)).T
        found[:] = np.sum(Phi * self.solve(Phi, np.full(len(found), alpha)).coef, axis=0)
        return alpha * found + space.unseen


# --- ridge on a map -------------------------------------------------------------------------------


def solve_on_fourier_map(problem: RidgeProblem, options: MapOptions) -> "_FourierMapSolution":
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
    # With a = W (t - f) / alpha, values of the map differ from sums of kernels by delta sum |a|,
    # delta its error; sum |a| <= sqrt(sum of weights) sqrt(RSS) / alpha, RSS from the sums.
    w = found.coef
    rss = sums.squares - np.sum(w * cross, axis=0) - alphas * np.sum(w * w, axis=0)
    rss = np.maximum(rss, np.finfo(float).eps * sums.squares)
    with np.errstate(divide="ignore", invalid="ignore"):
        everywhere = space.total_error * np.sqrt(sums.n * rss) / alphas
        norms = found.error_norms + np.sqrt(sums.n) * everywhere / (2 * np.sqrt(alphas))
    norms, everywhere = (np.where(alphas > 0, e, np.inf) for e in (norms, everywhere))
    coef = on_device_of(w, space.example)
    solution = _FourierMapSolution(
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
    solution.keep({"fit": fit})
    return solution


@dataclass(frozen=True, eq=False)
class _FourierMapSolution(RidgeSolution):
    """Coefficients on Fourier coordinates; `generator` holds the sums of the rows."""

    coef: Any = None
    generator: Any = None
    tol: float = 1e-4
    max_iter: int = 500

    def variance(self, points: Any, diag: Any = None) -> Any:
        feature_map, how = self.prediction.map, (as_numpy(self.generator), self.tol, self.max_iter)
        equations = self.cached("equations", lambda: FourierEquations(feature_map.space, *how))
        rows = feature_map.fitted(points)
        variances = self.per_target(lambda alpha: equations.variance(rows, alpha))
        return on_device_of(variances, self.coef)

    def left_out(self, rows: np.ndarray | None = None, share: Any = None) -> LeftOut:
        raise ValueError("the leverage of a single row is not known in Fourier coordinates.")
