"""Iterative: the dual coefficients without the kernel matrix, to a certified accuracy."""

import math
import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from sklearn.exceptions import ConvergenceWarning

from ..engine import tiles
from ..engine.arrays import as_numpy, is_array, is_numpy, namespace, on_device_of
from ..engine.memory import MemoryLimitError, coordinates_bytes, matrix_bytes
from ..engine.products import MatrixProduct, exact_product
from ..engine.threads import one_blas_thread
from ..expansion import Expansion
from ..kernels.points import take
from ..space import factorize
from .direct import Direct
from .dual import FEW, DualSolution, lower_inverse_diagonal, warn_of_upper_values
from .iterations import solve_iteratively
from .penalty import choose_on_rows
from .preconditioner import SHARE_OF_ALPHA, chosen_rank
from .problem import Choice, Given, LeaveOneOut, RidgeProblem
from .ridge_path import RidgePath
from .solution import Border, Steps
from .solver import OPERATION, START, VALUE, CannotSolve, Cost, Solver, TooLarge
from .system import VECTORS, double_like, in_double

# Seconds of one core for one number of a stored kernel matrix in a product with a vector.
STORED = 4e-10
# Products after which it is clear whether iterations are faster than a factorisation, and most of
# those that can be.
JUDGED_AFTER, QUICK_PRODUCTS = 10, 60
# Landmarks that choose a penalty, and how much of the kernel they may miss: trace(K - F F') / (n
# alpha) is by how much the mean leverage of a row is larger in exact ridge.
LANDMARKS, MISSED = 400, 0.3


class Iterative(Solver):
    """By conjugate gradients with landmarks as preconditioner (MATH.md section 8).

    quick : whether it competes with a factorisation; it then aims at as many digits, and gives up
        where that takes too many products
    """

    name = "iterative"

    def __init__(self, quick: bool = False):
        self.quick = quick

    def refusal(self, problem: RidgeProblem, asked: bool = True) -> str | None:
        training, smallest = problem.training, problem.alpha.smallest
        if not training.is_held:
            return "it needs all rows in memory, and these come in pieces: gather them"
        if problem.map is not None:
            return "a KernelMap asks for its coordinates: pass its kernel"
        if not smallest > 0:
            return (
                f"it needs alpha > 0, got {smallest:g}: without a penalty neither the equations "
                "nor their certificate hold in floating point. Use form='dual'"
            )
        if asked:
            return None
        if not problem.kernel.is_proven:
            return "the validity of this kernel is not proven: the map tests it"
        if self._replaces_a_factor(problem) and not _in_double(problem):
            return "rows are on a device, or not in double precision: a factorisation is faster"
        n, t = training.n or 0, problem.n_targets + problem.intercept
        # The vectors of the iterations, and as much again for their preconditioner.
        room, limit = (
            2 * coordinates_bytes(n, VECTORS * t + 2),
            training.resources.limit(training.points),
        )
        if room > limit:
            return TooLarge.of("vectors and landmarks", room, limit)
        if problem.would_sample:
            return "it would choose alpha on a sample, and the errors of all rows fit the memory"
        if self._replaces_a_factor(problem) and not problem.is_small:
            products = self._products(problem, self._landmarks(problem, n, limit))
            if products > QUICK_PRODUCTS:
                return f"about {products:.0f} products would take longer than a factorisation"
        predicted = self.cost(problem).seconds
        if predicted > problem.patience:
            return f"it would take about {predicted:.2g} s of one core"
        return None

    def cost(self, problem: RidgeProblem) -> Cost:
        training, t = problem.training, problem.n_targets + problem.intercept
        n, limit = training.n or 0, training.resources.limit(training.points)
        p = problem.preconditioning.rank or self._landmarks(problem, n, limit)
        setup = START + n * p * VALUE + 3 * n * p**2 * OPERATION
        held = matrix_bytes(n, 0.5) + coordinates_bytes(n, p, 2) <= limit
        product = t * n * (n * STORED if held else n / 2 * VALUE / t + n * STORED)
        product += 4 * t * n * p * OPERATION
        needed = coordinates_bytes(n, 2 * p + VECTORS * t) + (
            int(matrix_bytes(n, 0.5)) if held else 0
        )
        values = n**2 / 2 * VALUE
        return Cost(values + setup + self._products(problem, p) * product, needed)

    def _landmarks(self, problem, n, limit):
        """Those that memory allows, or fewer: they end where they leave little beside alpha."""
        most = chosen_rank(n, limit, problem.training.points)
        if problem.training.is_gram or not problem.kernel.is_proven or problem.is_small:
            return most
        left = np.cumsum(problem.spectrum[::-1])[::-1]
        enough = int(np.count_nonzero(left > SHARE_OF_ALPHA * problem.alpha.smallest))
        # Chosen at random, about twice as many as eigenvectors would do.
        return min(most, 2 * enough) if enough < len(left) // 2 else most

    def _products(self, problem, p):
        """Predicted from the spectrum of a sample: what p landmarks leave, beside alpha."""
        if problem.training.is_gram or not problem.kernel.is_proven or problem.is_small:
            return QUICK_PRODUCTS
        values = problem.spectrum
        # The first eigenvalues of a sample are those of all rows; they go on falling as they do
        # there, where the last ones of the sample are too small.
        q = min(p, len(values) // 4)
        fall = math.log2(max(values[q // 2] / max(values[q], 1e-300), 1.0))
        left = values[q] * (q / max(p, 1)) ** fall
        condition = 1 + left / max(problem.alpha.smallest, 1e-300)
        return 2 + 0.5 * math.sqrt(condition) * math.log(2 / self._tol(problem))

    def _replaces_a_factor(self, problem):
        return self.quick and Direct().too_large(problem) is None

    def _tol(self, problem):
        exact = self._replaces_a_factor(problem)
        return min(problem.tol, problem.digits) if exact else problem.tol

    def solve(self, problem: RidgeProblem) -> "IterativeSolution":
        # With few landmarks, those of `Explained`, nothing is large enough for two BLAS threads.
        few = problem.intercept and self._replaces_a_factor(problem)
        with one_blas_thread() if few else nullcontext():
            return self._solve(problem)

    def _solve(self, problem):
        training = problem.training
        kernel, points = training.kernel, training.points
        choice, known = self._choice(problem, training.resources.limit(points))
        alphas = (
            np.full(problem.n_targets, choice.alpha)
            if choice is not None
            else np.asarray(problem.alpha.values, dtype=float)
        )
        T = problem.T
        border = Border(T, alphas) if problem.intercept else None
        quick = self._replaces_a_factor(problem)
        landmarks = problem.preconditioning
        options: dict[str, Any] = {
            "tol": self._tol(problem),
            "rank": landmarks.rank,
            "landmark_tol": landmarks.tol,
            "pivots": landmarks.pivots,
            "resources": training.resources,
        }
        with warnings.catch_warnings():
            if quick or border:
                warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                found = solve_iteratively(
                    kernel,
                    points,
                    border.T if border else T,
                    border.alphas if border else alphas,
                    problem.weights,
                    **options,
                    max_iter=min(problem.max_iter, QUICK_PRODUCTS) if quick else problem.max_iter,
                    keep_partial=problem.keep_partial,
                    callback=_hopeless(options["tol"]) if quick else problem.callback,
                    workers=training.workers,
                    landmarks=(known or landmarks).landmarks,
                    product=(known or landmarks).product,
                )
            except MemoryLimitError as error:
                raise (CannotSolve(str(error)) if self.quick else error) from None
        if quick and not found.converged:
            raise CannotSolve("the first products show that a factorisation is faster")
        solution = self._solution(problem, found, alphas, border, choice, options)
        if known is not None:
            solution.cached("explained", lambda: known)
        return solution

    def _solution(self, problem, found, alphas, border, choice, options):
        kernel, points, kept = problem.kernel, problem.training.points, problem.kept
        coef, norms, of_intercept, u = found.coef, found.error_norms, None, None
        b = namespace(coef).zeros_like(coef[0, :])
        if border is not None:
            coef, b, u, totals = border.split(found.coef)
            of_ones = found.error_norms[border.t :]
            if np.any(totals <= of_ones**2):  # not even the sign of 1'u is certain
                raise CannotSolve(
                    f"the iterations found no solution with {found.n_iter} products: a larger "
                    "memory_limit gives a better preconditioner"
                )
            norms, of_intercept = border.errors(norms, found.norms, b, totals)
            if not found.converged and not self._replaces_a_factor(problem):
                warnings.warn(
                    f"the iterations ended after {found.n_iter} products with the kernel matrix, "
                    f"at a certified error of {float(np.max(norms)):.2g} sqrt(k(z, z)). A larger "
                    "memory_limit gives a better preconditioner, and a direct solution needs none.",
                    ConvergenceWarning,
                    stacklevel=6,
                )
        weights = None
        if problem.weights is not None:
            weights = on_device_of(as_numpy(problem.weights)[kept], coef)
        S = in_double(kernel, points)
        S = kernel.landmarks(S) if problem.all_kept else kernel.landmarks(S, kept)
        W = coef if problem.all_kept else take(coef, kept)
        return IterativeSolution(
            Expansion(kernel, S, W, b),
            alphas,
            self.name,
            on_device_of(norms, coef),
            None if of_intercept is None else on_device_of(of_intercept, coef),
            Steps(found.n_iter, found.converged, found.history, found.rank),
            choice,
            weights,
            coef,
            ones=None if u is None else (u if problem.all_kept else take(u, kept)),
            again=options,
        )

    def _choice(self, problem, limit) -> tuple[Choice | None, "Explained | None"]:
        """(how alpha was chosen, landmarks that explain nearly all of the kernel)."""
        rule = problem.alpha
        searched = isinstance(rule, LeaveOneOut) and rule.near is not None
        if self._replaces_a_factor(problem) and problem.intercept:
            known = Explained.of(problem, limit)
            if known is not None:
                if not searched:
                    return None if isinstance(rule, Given) else choose_on_rows(problem), known
                choice = known.choice(rule.near)
                if known.misses(choice.alpha) <= MISSED:
                    return choice, known
        if isinstance(rule, Given):
            return None, None
        return choose_on_rows(problem), None


def _in_double(problem):
    points = problem.training.points
    return is_array(points) and is_numpy(points) and points.dtype == np.float64


def _hopeless(tol):
    """A callback that ends iterations which will not be done within QUICK_PRODUCTS."""
    first: list[float] = []

    def callback(step: Any):
        now = max(*step.bounds, np.finfo(float).tiny)
        first.append(now)
        fallen = math.log(first[0] / now)
        needed = -math.log(tol) * step.products / max(fallen, 1e-3)
        return step.products >= JUDGED_AFTER and needed > QUICK_PRODUCTS

    return callback


@dataclass(frozen=True, eq=False)
class IterativeSolution(DualSolution):
    """One coefficient per row, with a certified error.

    again : options of further solves, which variances take
    """

    again: dict[str, Any] | None = None

    def variance(self, points: Any, diag: Any = None) -> Any:
        """Further solves for few points, a certified upper value for many."""
        if self.kernel.kind == "gram":
            raise ValueError(
                "form='iterative' has no standard deviations for a precomputed kernel: use 'dual'."
            )
        if points.shape[0] > FEW:
            warn_of_upper_values(points.shape[0])
        return super().variance(points, diag)

    def _explained(self, Z, alpha):
        if Z.shape[0] > FEW:
            return self._explained_by_some(Z, alpha)
        S = self.prediction.S
        K_Z = tiles.multiply(self.kernel, S, Z, on_device_of(np.eye(Z.shape[0]), double_like(S)))
        alphas = np.full(Z.shape[0], alpha)
        found = solve_iteratively(self.kernel, S, K_Z, alphas, self.weights, **(self.again or {}))
        return namespace(K_Z).sum(K_Z * found.coef, axis=0)

    def _left(self, alpha, rows):
        """From landmarks where they explain nearly all, else from the nearest rows of each."""
        known = self.cached("explained", lambda: None)
        return super()._left(alpha, rows) if known is None else known.unexplained(alpha)[rows]

    def _inverse_diagonal(self, alpha, rows):
        S = self.prediction.S
        noise = alpha * self._noise(np.arange(S.shape[0]))
        return lower_inverse_diagonal(self.kernel, S, noise, rows)


# --- landmarks that explain nearly all of the kernel ----------------------------------------------


@dataclass(frozen=True)
class Explained:
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
    def of(cls, problem: RidgeProblem, limit: int) -> "Explained | None":
        """None where landmarks miss too much, with weighted rows, or where memory is short."""
        training, rule = problem.training, problem.alpha
        alpha = rule.values[0] if isinstance(rule, Given) else rule.near
        n, points = training.n or 0, training.points
        room = matrix_bytes(n, 0.5) + coordinates_bytes(n, LANDMARKS, copies=5)
        if problem.weights is not None or room > limit or alpha is None or not _in_double(problem):
            return None
        rng = training.resources.rng()
        found = factorize(
            training.kernel,
            points,
            max_rank=LANDMARKS,
            pivots="random",
            rng=rng,
            memory_limit=limit,
            copies=5,
        )
        missed = np.maximum(found.residuals, 0.0)
        if missed.mean() > MISSED * alpha:
            return None
        path = RidgePath.of_coordinates(found.F + 0.0, problem.T)
        product = exact_product(training.kernel, points, limit)
        return cls(found, path, missed, product, int(rng.integers(2**31)))

    def misses(self, alpha: float) -> float:
        return float(self.missed.mean()) / alpha

    def choice(self, near: float) -> Choice:
        """The best penalty, within a decade of the one given where it lies there."""
        grid = near * 10.0 ** np.linspace(-1, 1, 11)
        best, error = self.path.best(grid)
        if not grid[0] < best < grid[-1]:
            best, error = self.path.best()
        return Choice(best, np.array([best]), np.array([error]), self.path.n)

    def unexplained(self, alpha: float) -> np.ndarray:
        """1 - leverage of every row in exact ridge with an intercept, from the landmarks' ridge.

        What landmarks miss of a row, R_jj, adds to its noise: 1 - h becomes (1 - h) / (1 + c (1 -
        h) R_jj / alpha). Other rows tell a part of it, so that c is below one; it follows from the
        mean of 1 - h, which a random vector z of signs gives: z'A^-1 z, by one product with K.
        """
        left = self.path.residuals(alpha)[1]
        ratio, gap = left * self.missed / alpha, self.leverage_gap(alpha)

        def excess(c: Any):
            return float(np.mean(left - left / (1 + c * ratio))) - gap

        if gap <= 0 or excess(1.0) <= 0:
            return left / (1 + (gap > 0) * ratio)
        return left / (1 + brentq(excess, 0.0, 1.0, xtol=1e-3) * ratio)

    def leverage_gap(self, alpha: float) -> float:
        """How much larger the mean leverage is with all rows than with landmarks, as a rule.

        For one vector z of signs, centred: alpha / n times z'(P^-1 - A^-1) z >= m1^2 / (m1 + m2)
        with x = P^-1 z, m1 = x'R x and m2 = x'R P^-1 R x, by Cauchy and Schwarz.
        """
        path = self.path

        def inverse(v: Any):
            return (v - path.Q @ ((path.Q.T @ v) / (path.values + alpha)[:, None])) / alpha

        def centred(v: Any):
            return v - v.mean(axis=0)

        rng = np.random.default_rng(self.seed)
        z = centred(rng.choice([-1.0, 1.0], size=(path.n, 1)))
        x = inverse(z)
        s = centred(self.product(x)) - path.Q @ (path.Q.T @ x)
        first, second = float((x * s).sum()), float((s * inverse(s)).sum())
        return alpha / path.n * first**2 / (first + second) if first > 0 else 0.0
