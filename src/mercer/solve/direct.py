"""Direct: (K + alpha N) a = t by one factorisation of the kernel matrix ([KERNELS] (7))."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine import MatrixProduct, eps_of, is_numpy, matrix_bytes, namespace, on_device_of, tiles
from ..kernels import Kernel
from ..space import Landmarks
from .dual import Dual, DualSolution, DualSolver, Found, inverse_diagonal, with_intercept
from .penalty import ROWS_FOR_SEARCH, choose_on_matrix, choose_on_rows, is_chosen_before
from .problem import Given, LeaveOneOut, RidgeProblem
from .regularized import STEP, factor_shifted, solve_factored, solve_regularized
from .solver import EIGEN, OPERATION, PASS, VALUE, CannotSolve, Cost, TooLarge
from .system import ResidualRounding, function_norms, norms


class Direct(DualSolver):
    """By the Cholesky factor of K + alpha N, N the inverse weights: n x n numbers."""

    name = "direct"
    iterates = False

    def _refusal(self, problem, asked):
        few = problem.dimension < problem.n
        if not asked and few and problem.alpha.smallest <= 1e-6 * problem.trace:
            return "K + alpha I is singular to rounding: the kernel has few dimensions"
        return self.too_large(problem)

    def too_large(self, problem: RidgeProblem) -> str | None:
        needed = self.cost(problem).bytes
        return TooLarge.beyond("the kernel matrix and its factor", needed, problem.limit)

    def cost(self, problem: RidgeProblem) -> Cost:
        n, rule = problem.n, problem.alpha
        # Values, the factor, and passes over both for the residual and its certificate.
        seconds = n**2 / 2 * VALUE + n**3 / 3 * OPERATION + 6 * n**2 * PASS
        # The factor may stand in the place of K.
        fits = matrix_bytes(n, 2) <= problem.limit or not is_numpy(problem.training.points)
        copies = 2.0 if fits else 1.1
        if isinstance(rule, LeaveOneOut) and rule.near is None:
            copies = 6  # eigenvectors, with what LAPACK needs for them, and their scaled copy
            seconds += n**3 * EIGEN
        elif isinstance(rule, LeaveOneOut):
            seconds += 8 * min(n, ROWS_FOR_SEARCH) ** 3 / 3 * OPERATION
        return Cost(seconds, int(matrix_bytes(n, copies)))

    def solve(self, problem: RidgeProblem) -> "DirectSolution":
        rows, kernel = problem.with_weight, problem.kernel
        is_gram = not kernel.layout.on_data
        choice = path = None
        if is_chosen_before(rows):
            choice = choose_on_rows(rows)
        K = rows.matrix
        T = on_device_of(rows.T, K)
        w = None if rows.weights is None else on_device_of(rows.weights, K)
        if choice is None and not isinstance(rows.alpha, Given):
            choice, path = choose_on_matrix(K, T, w, rows)
        if kernel.is_proven:
            path = None  # several matrices of the size of K are free for the factor
        alphas, factors = rows.alphas(choice), {}
        if path is None:
            solved, alphas, factors = _solved(rows, K, T, w, alphas)
        else:  # a similarity whose negative eigenvalues the path has set to zero
            (W, b), ones = path.duals(alphas[0]), None
            if rows.intercept and not is_gram:  # where leave-one-out errors and variances are known
                C = factor_shifted(K, alphas[0], None if w is None else 1 / w)
                ones = None if C is None else solve_factored(C, namespace(K).ones_like(K[:, :1]))
            solved = Dual(W, b, ones=ones)
        S = kernel.landmarks(problem.training.points, problem.kept)
        known = None
        if is_gram and factors:  # the matrix cannot be made again
            known = {alpha: Landmarks(kernel, S, C, problem.kept) for alpha, C in factors.items()}
        solution = solved.solution(
            DirectSolution, problem, S, alphas, self.name, choice=choice, factors=known
        )
        if path is not None:
            solution.cached("misses", lambda: path.misses(alphas[0]))
        for alpha, C in factors.items() if known is None else ():
            solution.cached(alpha, lambda C=C: C)
        return solution


def _solved(problem, K, T, w, alphas):
    """(coefficients with their certified errors, the penalties that were used, factors)."""
    one, noise = len(np.unique(alphas)) == 1, None if w is None else 1 / w
    in_place = is_numpy(K) and one and matrix_bytes(K.shape[0], 2) > problem.limit
    rows = problem.training.points
    factors: dict[float, Any] = {}

    def equations(B: Any, penalties: np.ndarray):
        nonlocal factors
        X, left, factors = solve_regularized(K, B, penalties, noise, in_place=in_place)
        if in_place:  # the factor stands where K was
            shift = on_device_of(penalties, X)[None, :] * (X if w is None else X / w[:, None])
            left = B - MatrixProduct.of(problem.kernel, rows)(X) - shift
        return Found(X, *certified(problem.kernel, rows, X, left, B, penalties, w))

    while True:
        try:
            return with_intercept(T, alphas, problem.intercept, equations), alphas, factors
        except CannotSolve:
            if isinstance(problem.alpha, Given) or in_place:
                raise
            alphas = STEP * alphas  # the next penalty that is not singular to rounding


def certified(
    kernel: Kernel, rows: Any, X: Any, residuals: Any, T: Any, alphas: np.ndarray, weights: Any
) -> tuple[np.ndarray, np.ndarray]:
    """(bounds of |f - f*|, |f|) for coefficients X with these residuals.

    |f - f*|^2 = s'A^-1 K A^-1 s <= |W^1/2 s|^2 / (4 alpha), since K (K + alpha)^-2 is at most
    1 / (4 alpha).
    """
    xp, lengths = namespace(X), on_device_of(kernel.layout.lengths(kernel, rows), X)
    root = xp.ones_like(X[:, :1]) if weights is None else xp.sqrt(weights)[:, None]
    rounding = ResidualRounding(kernel, rows, lengths * root[:, 0], eps_of(X))
    b, T, s = X / root, T * root, residuals * root
    with np.errstate(all="ignore"):  # an infinite bound is a bound
        error = rounding.of_residual(b, T, alphas)
        bound = (norms(s) + error) / (2 * np.sqrt(alphas)) + rounding.of_value(b)
    valid = (alphas > 0) & np.isfinite(bound)
    return np.where(valid, bound, np.inf), function_norms(b, T, s, alphas)


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

    def _ways(self, Z):
        return [(np.arange(Z.shape[0]), lambda Z, alpha: self._factor(alpha).squared_norms(Z))]

    def _inverse_diagonal(self, alpha, rows):
        return inverse_diagonal(self._factor(alpha).C, rows)
