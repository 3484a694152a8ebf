"""Direct: (K + alpha N) a = t by one factorisation of the kernel matrix ([KERNELS] (7))."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..engine import tiles
from ..engine.arrays import as_numpy, eps_of, is_numpy, namespace, on_device_of, row_norms
from ..engine.memory import matrix_bytes
from ..engine.products import exact_product
from ..expansion import Expansion
from ..kernels import Kernel
from ..kernels import points as pts
from ..space.certificate import magnitudes
from ..space.landmarks import Landmarks
from .dual import DualSolution, inverse_diagonal
from .penalty import ROWS_FOR_SEARCH, choose_on_matrix
from .problem import Given, LeaveOneOut, RidgeProblem
from .regularized import STEP, factor_shifted, solve_factored, solve_regularized
from .solution import Border, scattered
from .solver import EIGEN, OPERATION, PASS, VALUE, CannotSolve, Cost, Solver, TooLarge


class Direct(Solver):
    """By the Cholesky factor of K + alpha N, N the inverse weights: n x n numbers."""

    name = "direct"

    def refusal(self, problem: RidgeProblem, asked: bool = True) -> str | None:
        training = problem.training
        if not training.is_held:
            return (
                "it stores the kernel matrix, too large for rows that come in pieces: use "
                "form='iterative', which gathers the rows alone, or form='primal'"
            )
        if problem.map is not None:
            return (
                "it solves with the kernel matrix and has no use for a KernelMap: pass its kernel, "
                "or form='primal'"
            )
        if not asked and not problem.kernel.is_proven:
            return "the validity of this kernel is not proven: the map tests it"
        if not asked and _is_singular(problem):
            return "K + alpha I is singular to rounding: the kernel has few dimensions"
        return self.too_large(problem)

    def cost(self, problem: RidgeProblem) -> Cost:
        n = problem.training.n or 0
        # Values, the factor, and passes over both for the residual and its certificate.
        seconds = n**2 / 2 * VALUE + n**3 / 3 * OPERATION + 6 * n**2 * PASS
        if isinstance(problem.alpha, LeaveOneOut):
            if problem.alpha.near is None:
                seconds += n**3 * EIGEN
            else:
                seconds += 8 * min(n, ROWS_FOR_SEARCH) ** 3 / 3 * OPERATION
        return Cost(seconds, int(matrix_bytes(n, _copies(problem))))

    def solve(self, problem: RidgeProblem) -> "DirectSolution":
        training, kept = problem.training, problem.kept
        kernel, points = training.kernel, training.points
        rows, S = pts.take(points, kept), kernel.landmarks(points, kept)
        if training.is_gram:
            K = kernel.against(S)(rows)
        else:
            K = tiles.evaluate(kernel, rows)
        T = on_device_of(pts.take(problem.T, kept), K)
        w = None if problem.weights is None else on_device_of(problem.weights[kept], K)
        choice = path = None
        if isinstance(problem.alpha, Given):
            alphas = np.asarray(problem.alpha.values, dtype=float)
        else:
            choice, path = choose_on_matrix(K, T, w, problem.some(kept))
            alphas = np.full(T.shape[1], choice.alpha)
        if kernel.is_proven:
            path = None  # else a similarity whose negative eigenvalues the path has set to zero
        if path is None:
            solved = self._solved(problem, rows, K, T, w, alphas, choice is not None)
            alphas = solved.alphas
        else:
            W, b = path.duals(alphas[0])
            # leave-one-out and variances need it; of a Gram matrix they are not known anyway
            wanted = problem.intercept and not training.is_gram
            solved = Solved(W, b, ones=_ones(K, alphas[0], w) if wanted else None)
        solution = DirectSolution(
            Expansion(kernel, S, solved.W, solved.b),
            alphas,
            self.name,
            solved.error_norms,
            solved.intercept_errors,
            choice=choice,
            weights=w,
            dual=scattered(solved.W, kept, points.shape[0]),
            ones=solved.ones,
        )
        if path is not None:
            solution.cached("misses", lambda: path.misses(alphas[0]))
        if training.is_gram and solved.factors:  # the matrix cannot be made again
            made = {alpha: Landmarks(kernel, S, C, kept) for alpha, C in solved.factors.items()}
            return replace(solution, factors=made)
        for alpha, C in solved.factors.items():
            solution.cached(alpha, lambda C=C: C)
        return solution

    def _solved(self, problem, rows, K, T, w, alphas, searched) -> "Solved":
        """Coefficients, intercept and their certified errors."""
        limit, noise = problem.training.resources.limit(K), None if w is None else 1 / w
        in_place = (
            is_numpy(K) and len(np.unique(alphas)) == 1 and matrix_bytes(K.shape[0], 2) > limit
        )
        while True:
            border = Border(T, alphas) if problem.intercept else None
            B, penalties = (border.T, border.alphas) if border else (T, alphas)
            try:
                X, left, factors = solve_regularized(K, B, penalties, noise, in_place=in_place)
                break
            except CannotSolve:
                if not searched or in_place:
                    raise
                alphas = STEP * alphas  # the next penalty that is not singular to rounding
        if in_place:  # the factor stands where K was
            shift = on_device_of(penalties, X)[None, :] * (X if w is None else X / w[:, None])
            left = B - exact_product(problem.kernel, rows)(X) - shift
        norms, sizes = certified(problem.kernel, rows, X, left, B, penalties, noise)
        if border is None:
            zero = namespace(X).zeros_like(X[0, :])
            return Solved(X, zero, alphas, on_device_of(norms, X), None, factors)
        W, b, u, totals = border.split(X)
        norms, of_intercept = border.errors(norms, sizes, b, totals)
        errors = (on_device_of(norms, X), on_device_of(of_intercept, X))
        return Solved(W, b, alphas, *errors, factors, u)

    def too_large(self, problem: RidgeProblem):
        limit, needed = (
            problem.training.resources.limit(problem.training.points),
            self.cost(problem),
        )
        if needed.bytes > limit:
            return TooLarge.of("the kernel matrix and its factor", needed.bytes, limit)
        return None


def _copies(problem):
    """n x n matrices that are held at once: K and its factor, which may stand in its place."""
    if isinstance(problem.alpha, LeaveOneOut) and problem.alpha.near is None:
        return 6  # eigenvectors, with what LAPACK needs for them, and their scaled copy
    n, limit = problem.training.n, problem.training.resources.limit(problem.training.points)
    fits = matrix_bytes(n, 2) <= limit
    return 1.1 if not fits and is_numpy(problem.training.points) else 2


def _is_singular(problem):
    """Whether the kernel has fewer dimensions than rows, and alpha is below the rounding of K."""
    few = problem.dimension < (problem.training.n or 0)
    return few and problem.alpha.smallest <= 1e-6 * problem.trace


def _ones(K, alpha, w):
    """u with (K + alpha N) u = 1."""
    C = factor_shifted(K, alpha, None if w is None else 1 / w)
    return None if C is None else solve_factored(C, namespace(K).ones_like(K[:, :1]))


@dataclass(frozen=True)
class Solved:
    """The solution of the equations."""

    W: Any
    b: Any
    alphas: Any = None
    error_norms: Any = None
    intercept_errors: Any = None
    factors: Any = field(default_factory=dict)
    ones: Any = None


def certified(
    kernel: Kernel, rows: Any, X: Any, residuals: Any, T: Any, alphas: np.ndarray, noise: Any
) -> tuple[np.ndarray, np.ndarray]:
    """(bounds of |f - f*|, |f|) for coefficients X with these residuals.

    |f - f*|^2 = s'A^-1 K A^-1 s <= |W^1/2 s|^2 / (4 alpha), since K (K + alpha)^-2 is at most
    1 / (4 alpha). Residuals carry errors of eta l(x_i) |l a|, as those of the iterations do.
    """
    xp = namespace(X)
    column = xp.ones_like(X[:, :1])  # the roots of the weights
    if noise is not None:
        column = column / xp.sqrt(noise)[:, None]
    lengths = on_device_of(magnitudes(kernel, rows, kernel.diagonal(rows)), X)
    landmarks = kernel.landmarks(rows, np.arange(rows.shape[0]))
    eta = eps_of(X) * (float(kernel.rounding(landmarks)) + math.log2(X.shape[0] + 1))

    def norm(V: Any):
        return as_numpy(xp.sqrt(row_norms(V.T, xp))).astype(np.float64)

    with np.errstate(all="ignore"):  # an infinite bound is a bound
        size = norm(X * lengths[:, None])
        error = eta * float(norm(lengths[:, None] * column)[0]) * size
        scaled = column if noise is None else column * noise[:, None]
        error += eps_of(X) * (norm(T * column) + alphas * norm(X * scaled))
        shift = on_device_of(alphas, X)[None, :] * (X if noise is None else X * noise[:, None])
        squares = as_numpy(xp.sum(X * (T - shift - residuals), axis=0)).astype(np.float64)
        bound = (norm(residuals * column) + error) / (2 * np.sqrt(alphas)) + eta * size
    valid = (alphas > 0) & np.isfinite(bound)
    return np.where(valid, bound, np.inf), np.sqrt(np.maximum(squares, 0.0))


# --- the solution ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DirectSolution(DualSolution):
    """Factors are made again when they are asked for.

    factors : of a Gram matrix, which cannot be made again
    """

    factors: dict[float, Landmarks] | None = None

    def _factor(self, alpha) -> Landmarks:
        """As a space of its own: |C^-1 k_z|^2 is what the samples explain of k(z, z)."""
        if self.factors is not None:
            return self.factors[alpha]
        S, noise = self.prediction.S, None if self.weights is None else 1 / self.weights

        def make():
            self.kernel.layout.require_data("the kernel matrix was not kept: fit again.")
            return factor_shifted(tiles.evaluate(self.kernel, S), alpha, noise)

        return Landmarks(self.kernel, S, self.cached(alpha, make), np.arange(S.shape[0]))

    def _explained(self, Z, alpha):
        return self._factor(alpha).squared_norms(Z)

    def _inverse_diagonal(self, alpha, rows):
        return inverse_diagonal(self._factor(alpha).C, rows)
