"""Iterative: the dual coefficients without the kernel matrix, to a certified accuracy."""

import math
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from sklearn.exceptions import ConvergenceWarning

from ..engine import (
    Array,
    MatrixProduct,
    as_numpy,
    coordinates_bytes,
    matrix_bytes,
    one_blas_thread,
)
from ..kernels import remembering
from ..space import factorize, refute_by_sample
from .dual import FEW, DualSolution, DualSolver, RightSides
from .iterations import solve_iteratively
from .optimal_scoring import Shrinkage
from .primal import chooses_by_all_errors
from .problem import Choice, Given, RidgeProblem
from .ridge_path import RidgePath, choose, choose_on_rows
from .solver import CannotSolve, Cost, Step, Steps, TooLarge
from .system import SHARE_OF_ALPHA, VECTORS, chosen_rank, vectors_of

# Operations that one number of a stored kernel matrix costs in a product with a vector.
_STORED = 8
# Products after which it is clear whether iterations are faster than a factorisation, and most of
# those that can be.
JUDGED_AFTER, QUICK_PRODUCTS = 10, 60
# Landmarks that choose a penalty, and how much of the kernel they may miss: trace(K - F F') / (n
# alpha) is by how much the mean leverage of a row is larger in exact ridge.
LANDMARKS, MISSED = 400, 0.3


class Iterative(DualSolver):
    """By conjugate gradients with landmarks as preconditioner (MATH.md section 8).

    Where it competes with a factorisation it aims at as many digits, and gives up where that takes
    too many products.
    """

    name = "iterative"

    def _refusal(self, problem: RidgeProblem, asked: bool) -> str | None:
        if asked:
            return None
        replaces = self._replaces_a_factor(problem)
        if replaces and not problem.in_double:
            return "rows are on a device, or not in double precision: a factorisation is faster"
        # The arrays of the iterations, and as many vectors again for their preconditioner.
        room = self._held(problem) + coordinates_bytes(problem.n, VECTORS * problem.n_columns + 4)
        large = TooLarge.beyond("vectors, landmarks and copies of rows", room, problem.limit)
        if large is not None:
            return large
        if chooses_by_all_errors(problem):
            return "it would choose alpha on a sample, and the errors of all rows fit the memory"
        if replaces and not problem.is_small:
            products = self._products(problem, self._landmarks(problem))
            if products > QUICK_PRODUCTS:
                return f"about {products:.0f} products would take longer than a factorisation"
        predicted = self.cost(problem).seconds
        if predicted > problem.patience:
            return f"it would take about {predicted:.2g} s of one core"
        return None

    def cost(self, problem: RidgeProblem) -> Cost:
        n, t = problem.n, problem.n_columns
        p = problem.preconditioning.rank or self._landmarks(problem)
        beside = coordinates_bytes(n, p, 2) + self._held(problem)
        held = matrix_bytes(n, 0.5) + beside <= problem.limit
        needed, products = beside + int(matrix_bytes(n, 0.5) * held), self._products(problem, p)
        values = n**2 / 2 + n * p + (0 if held else products * n**2 / 2)
        operations = 3 * n * p**2 + products * t * n * (4 * p + _STORED * n)
        return Cost.of(needed, starts=1, values=values, operations=operations)

    def _held(self, problem: RidgeProblem) -> int:
        """Bytes of vectors, and of rows as products need them."""
        return int(vectors_of(problem.kernel, problem.training.points, problem.n_columns))

    def _landmarks(self, problem: RidgeProblem) -> int:
        """Those that memory allows, or fewer: they end where they leave little beside alpha."""
        most = chosen_rank(problem.n, problem.limit, problem.training.points)
        if not problem.is_judged:
            return most
        left = np.cumsum(problem.spectrum[::-1])[::-1]
        enough = int(np.count_nonzero(left > SHARE_OF_ALPHA * problem.alpha.smallest))
        # Chosen at random, about twice as many as eigenvectors would do.
        return min(most, 2 * enough) if enough < len(left) // 2 else most

    def _products(self, problem: RidgeProblem, p: int) -> float:
        """Predicted from the spectrum of a sample: what p landmarks leave, beside alpha."""
        if not problem.is_judged:
            return QUICK_PRODUCTS
        values = problem.spectrum
        # The first eigenvalues of a sample are those of all rows; they go on falling as they do
        # there, where the last ones of the sample are too small.
        q = min(p, len(values) // 4)
        fall = math.log2(max(values[q // 2] / max(values[q], 1e-300), 1.0))
        left = values[q] * (q / max(p, 1)) ** fall
        condition = 1 + left / max(problem.alpha.smallest, 1e-300)
        return 2 + 0.5 * math.sqrt(condition) * math.log(2 / self._tol(problem))

    def _tol(self, problem: RidgeProblem) -> float:
        digits = problem.digits if self._replaces_a_factor(problem) else problem.tol
        return min(problem.tol, digits)

    def solve(self, problem: RidgeProblem) -> "_IterativeSolution":
        # With few landmarks, those of `_Explained`, nothing is large enough for two BLAS threads.
        few = problem.intercept and self._replaces_a_factor(problem)
        held = problem.training.workers is None  # what is remembered here does not travel
        alone = one_blas_thread() if few else nullcontext()
        with alone, remembering(problem.kernel) if held else nullcontext():
            return self._solve(problem)

    def _solve(self, problem: RidgeProblem) -> "_IterativeSolution":
        rows, kernel, points = problem.with_weight, problem.kernel, problem.training.points
        if problem.preconditioning.product is None:  # else it was tested, once for all steps
            refute_by_sample(kernel, points)  # landmarks see pairs with them alone
        quick, tol = self._replaces_a_factor(problem), self._tol(problem)
        choice, known = self._choice(problem)
        shared = {"landmarks": known.landmarks, "product": known.product} if known else {}
        how = {
            "max_iter": min(problem.max_iter, QUICK_PRODUCTS) if quick else problem.max_iter,
            "keep_partial": problem.keep_partial,
            "callback": _hopeless(tol) if quick else None,
            "workers": rows.training.workers,
        }
        alphas = problem.alphas(choice)
        again = {"tol": tol, "resources": rows.training.resources, **vars(problem.preconditioning)}
        right = RightSides.of(rows.T, alphas, problem.intercept)
        given = (kernel, rows.training.points, right.columns, right.penalties, rows.weights)
        with self._competing(), warnings.catch_warnings():
            if quick or problem.intercept:
                warnings.simplefilter("ignore", ConvergenceWarning)
            found = solve_iteratively(*given, **again | shared | how)
        if quick and not found.converged:
            raise CannotSolve("the first products show that a factorisation is faster")
        ones = as_numpy(found.coef[:, problem.n_targets :]).sum(axis=0)
        if np.any(ones <= found.error_norms[problem.n_targets :] ** 2):
            raise CannotSolve(  # not even the sign of 1'u is certain
                f"{found.reason}, and no solution was found. What helps: {found.helps}."
            )
        solved = right.solved(found.coef, found.error_norms, found.norms)
        if problem.intercept and not found.converged:
            warnings.warn(
                f"{found.reason}, at a certified error of "
                f"{float(np.max(as_numpy(solved.error_norms))):.2g} sqrt(k(z, z)). What helps: "
                f"{found.helps}.",
                ConvergenceWarning,
                stacklevel=5,
            )
        some = () if rows is problem else (problem.kept,)
        S = kernel.landmarks(kernel.layout.in_double(points), *some)
        steps = Steps(found.n_iter, found.converged, found.history, found.rank)
        kept = {"steps": steps, "choice": choice, "again": again}
        solution = solved.solution(_IterativeSolution, problem, S, alphas, self.name, **kept)
        if known is not None:
            solution.keep({"explained": known})
        return solution

    def _choice(self, problem: RidgeProblem) -> tuple[Choice | None, "_Explained | None"]:
        """(how alpha was chosen, landmarks that explain nearly all of the kernel)."""
        rule, known = problem.alpha, None
        if isinstance(rule, Shrinkage):
            return rule.choice_without_map(problem), None
        if self._replaces_a_factor(problem) and problem.intercept:
            known = _Explained.of(problem)
        if isinstance(rule, Given):
            return None, known
        if known is not None and rule.near is not None:
            choice = choose(known.path, rule)
            if known.missed.mean() <= MISSED * choice.alpha:
                return choice, known
            known = None
        return choose_on_rows(problem), known


def _hopeless(tol: float) -> Callable[[Step], bool]:
    """A callback that ends iterations which will not be done within QUICK_PRODUCTS."""
    first: list[float] = []

    def callback(step: Step) -> bool:
        now = max(*step.bounds, np.finfo(float).tiny)
        first.append(now)
        fallen = math.log(first[0] / now)
        needed = -math.log(tol) * step.products / max(fallen, 1e-3)
        return step.products >= JUDGED_AFTER and needed > QUICK_PRODUCTS

    return callback


@dataclass(frozen=True, eq=False)
class _IterativeSolution(DualSolution):
    """One coefficient per row, with a certified error."""

    again: dict[str, Any] | None = None  # options of further solves, which variances take

    def _ways(self, Z: Array) -> list[tuple[np.ndarray, Callable[[Any, float], Any] | None]]:
        """Further solves for few points, a certified upper value for many."""
        self.kernel.layout.require_data(
            "form='iterative' has no standard deviations for a precomputed kernel: use 'dual'."
        )
        return [(np.arange(Z.shape[0]), self._by_solves if Z.shape[0] <= FEW else None)]

    def _coefficients(self, T: Array, alphas: np.ndarray) -> Any:
        given = (self.kernel, self.prediction.S, T, alphas, self.weights)
        return solve_iteratively(*given, **(self.again or {})).coef

    def _left(self, alpha: float, rows: np.ndarray) -> np.ndarray:
        """From landmarks where they explain nearly all, else from the nearest rows of each."""
        known = self.cached("explained")
        return super()._left(alpha, rows) if known is None else known.unexplained(alpha)[rows]


# --- landmarks that explain nearly all of the kernel ----------------------------------------------


@dataclass(frozen=True)
class _Explained:
    """Ridge on few landmarks, where they miss little of the kernel beside the noise.

    Pivoted Cholesky leaves R = K - F F' positive semi-definite. With P = F F' + alpha I and
    A = K + alpha I, 0 <= P^-1 - A^-1 <= P^-1 R P^-1, so that the leverages h = 1 - alpha (A^-1)_jj
    are at least those of F, and larger by at most trace(R) / (n alpha) in the mean. Then F chooses
    the penalty, for all rows and penalties at once; it preconditions the iterations; and it gives
    the leverages of leave-one-out errors.
    """

    landmarks: Any
    path: RidgePath
    missed: np.ndarray
    product: MatrixProduct
    seed: int

    @classmethod
    def of(cls, problem: RidgeProblem) -> "_Explained | None":
        """None where landmarks miss too much, with weighted rows, or where memory is short."""
        training, rule, limit = problem.training, problem.alpha, problem.limit
        alpha = rule.values[0] if isinstance(rule, Given) else rule.near
        n, points = problem.n, training.points
        room = matrix_bytes(n, 0.5) + coordinates_bytes(n, LANDMARKS, copies=5)
        if problem.weights is not None or room > limit or alpha is None or not problem.in_double:
            return None
        rng = training.resources.rng()
        how: dict[str, Any] = {"pivots": "random", "rng": rng, "memory_limit": limit, "copies": 5}
        found = factorize(training.kernel, points, max_rank=LANDMARKS, **how)
        missed = np.maximum(found.residuals, 0.0)
        if missed.mean() > MISSED * alpha:
            return None
        path = RidgePath.of_coordinates(found.F, problem.T)
        product = MatrixProduct.of(training.kernel, points, limit)
        return cls(found, path, missed, product, int(rng.integers(2**31)))

    def unexplained(self, alpha: float) -> np.ndarray:
        """1 - leverage of every row in exact ridge with an intercept, from the landmarks' ridge.

        What landmarks miss of a row, R_jj, adds to its noise: 1 - h becomes (1 - h) / (1 + c (1 -
        h) R_jj / alpha). Other rows tell a part of it, so that c is below one; it follows from the
        mean of 1 - h, which a random vector z of signs gives: z'A^-1 z, by one product with K.
        """
        left = self.path.residuals(alpha)[1]
        ratio, gap = left * self.missed / alpha, self.leverage_gap(alpha)

        def excess(c: float) -> float:
            return float(np.mean(left - left / (1 + c * ratio))) - gap

        c = gap > 0 if gap <= 0 or excess(1.0) <= 0 else brentq(excess, 0.0, 1.0, xtol=1e-3)
        unexplained: np.ndarray = left / (1 + c * ratio)
        return unexplained

    def leverage_gap(self, alpha: float) -> float:
        """How much larger the mean leverage is with all rows than with landmarks, as a rule.

        For one vector z of signs, centred: alpha / n times z'(P^-1 - A^-1) z >= m1^2 / (m1 + m2)
        with x = P^-1 z, m1 = x'R x and m2 = x'R P^-1 R x, by Cauchy and Schwarz.
        """
        path = self.path

        def inverse(v: Any) -> Any:
            return (v - path.Q @ ((path.Q.T @ v) / (path.values + alpha)[:, None])) / alpha

        def centred(v: Any) -> Any:
            return v - v.mean(axis=0)

        rng = np.random.default_rng(self.seed)
        z = centred(rng.choice([-1.0, 1.0], size=(path.n, 1)))
        x = inverse(z)
        s = centred(self.product(x)) - path.Q @ (path.Q.T @ x)
        first, second = float((x * s).sum()), float((s * inverse(s)).sum())
        return alpha / path.n * first**2 / (first + second) if first > 0 else 0.0
