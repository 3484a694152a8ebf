"""Fourier: ridge in Fourier coordinates of one to three columns, by nonuniform transforms.

With coordinates phi on a box, w = (Phi'W Phi + alpha I)^-1 Phi'W t gives f = Phi w at the rows, and
so the coefficients of the dual form at once: a = W (t - f) / alpha, W the sample weights. An error
of f is divided by alpha there. So the residual s = t - Phi Phi'a - alpha W^-1 a is computed again,
by transforms, and corrected until it is small; then k(z, X) a is the answer, as in the dual form,
and phi(z) . Phi'a the same up to the error of the map times sum |a|, which is known.

How far this is from the exact solution follows from s with the kernel itself, K instead of
Phi Phi': |f - f*| <= |W^1/2 s| / (2 sqrt(alpha)) in the norm of the kernel's space, since
K (K + alpha)^-2 <= 1 / (4 alpha). The error of the map bounds the difference of the two s, with
much to spare; at some of the rows s is computed with K, and must be as small as is aimed at.
"""

import importlib.util
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..engine import tiles
from ..engine.arrays import (
    as_numpy,
    evenly,
    is_array,
    is_numpy,
    on_device_of,
)
from ..engine.memory import MemoryLimitError, readable
from ..engine.nufft import FINEST
from ..kernels import Kernel
from ..kernels import points as pts
from ..space.fourier import Fourier as FourierSpace
from ..space.fourier_grid import Extent, fourier_space
from ..space.fourier_plan import FourierPlan, plan_fourier
from ..space.fourier_sums import FourierStep, all_pairs
from .direct import Direct
from .dual import FEW, DualSolution, lower_inverse_diagonal, warn_of_upper_values
from .fourier_expansion import FourierExpansion
from .fourier_map import DIRECT, MOST_SOLVES, fourier_variance
from .penalty import choose_on_rows
from .problem import Given, RidgeProblem
from .regularized import factor_shifted
from .solution import Border, Steps, as_fitted, scattered
from .solver import CannotSolve, Cost, Solver
from .system import double_like, in_double
from .toeplitz import NormalEquations, solve_normal

# Rows at which the residual is computed with the kernel itself.
CHECKED = 64
# The first solution is found to this accuracy, which rounding leaves room for; then the residual is
# corrected, each time by the second factor. And how often the map is refined.
FIRST, REDUCTION, CORRECTIONS, REFINEMENTS = 1e-7, 1e-4, 4, 2
# The residual in Fourier coordinates is to be this share of what is aimed at.
SHARE = 0.1
# Coordinates of all solves together that standard deviations are worth.
SOLVED_COORDINATES = 10**7
# The accuracy of variances.
VARIANCE_TOL = 1e-8
EPS = float(np.finfo(float).eps)


# Rows from which on transforms can be cheaper.
LEAST_ROWS = 4000
# Frequencies, in all columns, up to which eight digits are aimed at; planned with some to spare:
# outside of the rows, errors are larger.
MOST_FOR_DIGITS, SPARE = 2e6, 0.1
# Products after which "auto" gives up: the plan was made for fewer.
MOST_PRODUCTS = 200


class Fourier(Solver):
    """The dual coefficients, by sums of exponentials over the rows (MATH.md section 10).

    quick : whether it competes with others; it then gives up where residuals are not as small as
        they should be
    """

    name = "fourier"

    def __init__(self, quick: bool = False):
        self.quick = quick

    def refusal(self, problem: RidgeProblem, asked: bool = True) -> str | None:
        training, kernel, alpha = problem.training, problem.kernel, problem.alpha.smallest
        if not training.is_held:
            return "it needs all rows in memory, and these come in pieces: gather them"
        if problem.map is not None:
            return (
                "it chooses its own coordinates and has no use for a KernelMap: pass its kernel, "
                "or KernelMap(kernel, basis='fourier') with form='auto'"
            )
        if not alpha > 0:
            return f"it divides by alpha, which must be positive, got {alpha:g}"
        if not asked and not _is_candidate(problem):
            return "it pays for many rows of few columns, in double precision, with finufft"
        if training.is_gram or kernel.fourier_form() is None:
            return (
                f"{kernel!r} has no Fourier series: form='fourier' takes RBF, Matern, "
                "RationalQuadratic, Laplacian, Periodic and Constant, their sums, scales, products "
                "and powers, and OnColumns of them. Use form='auto'"
            )
        if not asked and problem.would_sample:
            return "it would choose alpha on a sample, and the errors of all rows fit the memory"
        if self._plan(problem) is None:
            return (
                f"it needs too many frequencies for {kernel!r} on these rows, with "
                f"alpha={alpha:g} and tol={problem.tol:g}, in "
                f"{readable(training.resources.limit())}: raise tol or alpha, use a smoother "
                "kernel of at most three columns, or form='iterative'"
            )
        return None

    def cost(self, problem: RidgeProblem) -> Cost:
        plan = self._plan(problem)
        assert plan is not None
        return Cost(plan.seconds, plan.bytes)

    def _plan(self, problem) -> FourierPlan | None:
        """Eight digits where that takes few frequencies, else `tol`."""
        return problem.remembered(("fourier", self.quick), lambda: self._made_plan(problem))

    def _made_plan(self, problem):
        training = problem.training
        points, limit = training.points, training.resources.limit()
        largest = 1.0 if problem.weights is None else float(np.max(problem.weights))
        noise, extent = problem.alpha.smallest / largest, Extent.of(points)
        exact = self.quick and Direct().too_large(problem) is None
        for aim in (min(problem.digits, problem.tol), *(() if exact else (problem.tol,))):
            finer = SPARE * aim if aim <= problem.digits else aim
            targets = problem.n_targets + problem.intercept
            plan = plan_fourier(problem.kernel, extent, training.n, targets, noise, finer)
            most = MOST_FOR_DIGITS if aim < problem.tol else np.inf
            if plan is not None and plan.frequencies <= most and plan.bytes <= limit:
                return replace(plan, aim=aim)
        return None

    def solve(self, problem: RidgeProblem) -> "FourierSolution":
        plan, training, kept = self._plan(problem), problem.training, problem.kept
        assert plan is not None
        kernel, limit = training.kernel, training.resources.limit()
        choice = None
        if isinstance(problem.alpha, Given):
            alphas = np.asarray(problem.alpha.values, dtype=float)
        else:
            choice = choose_on_rows(problem)
            alphas = np.full(problem.n_targets, choice.alpha)
        points = pts.take(in_double(kernel, training.points), kept)
        T = np.asarray(as_numpy(problem.T), dtype=np.float64)[kept]
        weights = None if problem.weights is None else as_numpy(problem.weights)[kept]
        border = Border(T, alphas) if problem.intercept else None

        def may_refine(finer: Any):
            return finer.bytes <= limit and finer.seconds <= max(4 * plan.seconds, 1.0)

        try:
            found = solve_by_fourier(
                kernel,
                points,
                border.T if border else T,
                border.alphas if border else alphas,
                weights,
                plan,
                max_iter=min(problem.max_iter, MOST_PRODUCTS) if self.quick else problem.max_iter,
                may_refine=may_refine,
            )
        except MemoryLimitError as error:
            raise (CannotSolve(str(error)) if self.quick else error) from None
        if not found.converged:
            reason = (
                f"the residual is {float(found.residuals.max()):.2g} times the targets, more than "
                f"{found.aim:g}: raise alpha, max_iter or tol, or use form='iterative'."
            )
            if self.quick:
                raise CannotSolve(reason)
            warnings.warn(reason, ConvergenceWarning, stacklevel=5)
        return self._solution(problem, found, points, weights, alphas, border, choice)

    def _solution(self, problem, found, points, weights, alphas, border, choice):
        W, images, norms, of_intercept = found.coef, found.images, found.error_norms, None
        b, u, residuals = np.zeros(W.shape[1]), None, found.residuals
        if border is not None:
            sizes = np.sqrt(np.sum(found.images**2, axis=0))
            W, b, u, totals = border.split(found.coef)
            ones = found.images[:, border.t :][:, border.which]
            images = found.images[:, : border.t] - ones * b[None, :]
            norms, of_intercept = border.errors(norms, sizes, b, totals)
            residuals = residuals[: border.t]
        like = double_like(points)
        W, b, images = (on_device_of(part, like) for part in (W, b, images))
        S = problem.kernel.landmarks(points)
        prediction = FourierExpansion(problem.kernel, S, W, b, found.space, images)
        transforms = prediction.difference()  # what they add, where they are used
        return FourierSolution(
            prediction,
            alphas,
            self.name,
            on_device_of(norms, W),
            None if of_intercept is None else on_device_of(of_intercept, W),
            Steps(found.n_iter, found.converged),
            choice,
            None if weights is None else on_device_of(weights, W),
            scattered(W, problem.kept, problem.training.n),
            ones=u,
            residuals=residuals,
            transforms=transforms,
            max_iter=problem.max_iter,
            tol=problem.tol,
        )


def _is_candidate(problem):
    points = problem.training.points
    held = is_array(points) and is_numpy(points) and points.dtype == np.float64
    many = (problem.training.n or 0) >= LEAST_ROWS and importlib.util.find_spec("finufft")
    return bool(many and held and points.ndim == 2)


@dataclass(frozen=True)
class ByFourier:
    """Coefficients, their function in Fourier coordinates, and what is known of their error.

    coef : a, one column per target
    images : Phi'a
    residuals : largest |t - K a - alpha a / weight| at some of the rows, K the kernel itself,
        relative to the root mean square of t
    error_norms : certified |f - f*| in the norm of the kernel's space
    aim : what the residuals were meant to be
    """

    space: FourierSpace
    coef: np.ndarray
    images: np.ndarray
    residuals: np.ndarray
    error_norms: np.ndarray
    aim: float
    n_iter: int

    @property
    def converged(self) -> bool:
        return bool(np.all(self.residuals <= self.aim))


def solve_by_fourier(
    kernel: Kernel,
    points: Any,
    T: Any,
    alphas: np.ndarray,
    weights: Any,
    plan: FourierPlan,
    *,
    max_iter: int,
    may_refine: Any,
) -> ByFourier:
    """Solve with the tolerance of the plan, and a smaller one where rows show that it is needed.

    may_refine : whether a plan is worth trying
    """
    extent, n = Extent.of(points), points.shape[0]
    smallest, targets = float(np.min(alphas)), T.shape[1]
    found = _solved(kernel, points, T, alphas, weights, extent, plan, max_iter)
    aim = plan.aim
    for _ in range(REFINEMENTS):
        if found.converged:
            break
        aim *= 0.3 * found.aim / float(found.residuals.max())
        finer = plan_fourier(kernel, extent, n, targets, smallest, aim)
        if finer is None or finer.tol >= plan.tol or not may_refine(finer):
            break
        plan = replace(finer, aim=found.aim)
        found = _solved(kernel, points, T, alphas, weights, extent, plan, max_iter)
    return found


def _solved(kernel, points, T, alphas, weights, extent, plan, max_iter):
    space = fourier_space(kernel, extent, None, plan.tol, None, plan.bytes * 2)
    system = DualSystem(space, points, alphas, weights, max_iter)
    scales = np.sqrt(np.mean(T**2, axis=0))
    a, images, s, steps = system.solve(T, plan.aim, scales)
    residuals = _checked(kernel, points, T, alphas, weights, a)
    return ByFourier(
        space,
        a,
        images,
        residuals / np.where(scales > 0, scales, 1.0),
        system.error_norms(T, a, s),
        plan.aim,
        steps,
    )


class DualSystem:
    """(Phi Phi' + alpha W^-1) a = t, by transforms over the rows and equations in coordinates."""

    def __init__(self, space: FourierSpace, points, alphas, weights=None, max_iter=500):
        self.space, self.points, self.max_iter = space, points, max_iter
        self.alphas = np.asarray(alphas, dtype=float)
        self.weights = np.ones(points.shape[0]) if weights is None else weights
        self.generator = FourierStep(space, FINEST)(points, None, weights).generator
        self.equations = NormalEquations(space, self.generator)

    def solve(
        self, T: Any, tol: float, scales: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """(a, Phi'a, residual, products): the residual is a share of tol times the scales."""
        W, steps = self.weights[:, None], 0
        a, images, s = np.zeros_like(T), np.zeros((self.space.rank, T.shape[1])), T
        for correction in range(1 + CORRECTIONS):
            B = self._images(W * s)
            found = solve_normal(
                self.equations,
                B,
                self.alphas,
                tol=FIRST if correction == 0 else REDUCTION,
                max_iter=self.max_iter,
            )
            steps += found.n_iter
            new = a + W * (s - self._values(found.coef)) / self.alphas
            new_images = self._images(new)
            left = T - self._values(new_images) - self.alphas * new / W
            before, now = (np.abs(r).max(axis=0) for r in (s, left))
            better = now < before  # else rounding, and what was there is kept
            a, images, s = (
                np.where(better, mine, kept)
                for mine, kept in ((new, a), (new_images, images), (left, s))
            )
            if not found.converged or np.all(~better | (now <= SHARE * tol * scales)):
                break
        return a, images, s, steps

    def error_norms(self, T: Any, a: Any, s: Any) -> np.ndarray:
        """|f - f*| at most, from the residual s with Phi Phi' and the error of the map."""
        size = float(np.sum(self.space.amplitudes**2)) + self.space.unseen
        error = self.space.error + self.space.rounding(size)
        root = np.sqrt(self.weights)[:, None]
        left = np.linalg.norm(root * s, axis=0)
        left += np.sqrt(self.weights.sum()) * error * np.abs(a).sum(axis=0)
        left += EPS * np.linalg.norm(root * T, axis=0)
        return left / (2 * np.sqrt(self.alphas))

    def _images(self, V):
        return self.space.images(self.points, V, eps=FINEST)

    def _values(self, coef):
        return as_numpy(self.space.evaluate(self.points, coef, eps=FINEST))


def _checked(kernel, points, T, alphas, weights, a) -> Any:
    """The largest residual at some rows, with kernel values instead of coordinates."""
    n = points.shape[0]
    some = evenly(n, CHECKED)
    W = on_device_of(a, double_like(points))
    K_a = tiles.multiply(kernel, pts.take(points, some), kernel.landmarks(points), W)
    noise = np.asarray(alphas) / (1.0 if weights is None else weights[some, None])
    return np.abs(T[some] - as_numpy(K_a) - noise * a[some]).max(axis=0)


# --- the solution ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FourierSolution(DualSolution):
    """The dual coefficients, with their function in Fourier coordinates.

    residuals : the largest at some of the rows, computed with the kernel itself, relative to t
    transforms : what transforms add to the error inside the box, one number per target
    """

    residuals: np.ndarray | None = None
    transforms: Any = None
    max_iter: int = 500
    tol: float = 1e-4

    def error_bound(self, points: Any, diag: Any = None) -> Any:
        bounds = super().error_bound(points, diag)
        Z = as_fitted(self.prediction, points)
        inside = on_device_of(self.prediction.space.contains(Z), bounds)
        return bounds + inside[:, None] * self.transforms[None, :]

    def variance(self, points: Any, diag: Any = None) -> Any:
        """In the box by Fourier coordinates, outside by one more right-hand side per point.

        What would take too many solves is bounded from above by the variance given some rows.
        """
        upper = sum(
            len(where)
            for where, explained in self._parts(as_fitted(self.prediction, points))
            if explained == self._explained_by_some
        )
        if upper:
            warn_of_upper_values(upper)
        return super().variance(points, diag)

    def _parts(self, Z):
        """(points, how what is explained of them is found)."""
        inside, rank = self.prediction.space.contains(Z), self.prediction.space.rank
        solves = np.inf if rank <= DIRECT else most_solves(rank)
        for where, most, explained in (
            (np.flatnonzero(inside), solves, self._inside),
            (np.flatnonzero(~inside), FEW, self._outside),
        ):
            yield where, explained if len(where) <= most else self._explained_by_some

    def _explained(self, Z, alpha):
        found = np.empty(Z.shape[0])
        for where, explained in self._parts(Z):
            if len(where):
                found[where] = as_numpy(explained(pts.take(Z, where), alpha))
        return on_device_of(found, self.prediction.W)

    def _numbers(self):
        return None if self.weights is None else as_numpy(self.weights)

    def _inside(self, Z, alpha):
        space, S, factors = self.prediction.space, self.prediction.S, {}

        def sums():
            return FourierStep(space, FINEST)(S, None, self._numbers()).generator

        generator = self.cached("generator", sums)
        if space.rank <= DIRECT:

            def factor():
                pairs = all_pairs(space.frequencies, space.amplitudes, generator)
                return factor_shifted(pairs, alpha)

            factors = {alpha: self.cached(alpha, factor)}
        how = (np.array([alpha]), factors, generator, self.tol, self.max_iter)
        own = as_numpy(self.kernel.diagonal(Z))
        return own - fourier_variance(space, Z, *how)[:, 0]

    def _outside(self, Z, alpha):
        """k_z' a for the a whose targets are k_z."""
        S = self.prediction.S
        eye = on_device_of(np.eye(Z.shape[0]), double_like(S))
        K_Z = as_numpy(tiles.multiply(self.kernel, S, Z, eye))
        scales, alphas = np.sqrt(np.mean(K_Z**2, axis=0)), np.full(Z.shape[0], alpha)
        system = DualSystem(self.prediction.space, S, alphas, self._numbers(), self.max_iter)
        return np.sum(K_Z * system.solve(K_Z, VARIANCE_TOL, scales)[0], axis=0)

    def _inverse_diagonal(self, alpha, rows):
        S = self.prediction.S
        noise = alpha * self._noise(np.arange(S.shape[0]))
        return lower_inverse_diagonal(self.kernel, S, noise, rows)


def most_solves(rank: int) -> int:
    """Points inside the box that are worth a solve each: fewer where a solve takes longer."""
    return max(FEW, min(MOST_SOLVES, SOLVED_COORDINATES // rank))
