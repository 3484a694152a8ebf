"""Fourier: ridge in Fourier coordinates of one to three columns, by nonuniform transforms.

With coordinates phi on a box, w = (Phi'W Phi + alpha I)^-1 Phi'W t gives f = Phi w at the rows, and
the coefficients of the dual form: a = W (t - f) / alpha, W the sample weights. Errors of f are
divided by alpha there; so the residual s = t - Phi Phi'a - alpha W^-1 a is computed again, by
transforms, and corrected until it is small. As with a factorisation, |f - f*| is at most
|W^1/2 s| / (2 sqrt(alpha)), for s with K in place of Phi Phi': the error of the map bounds the
difference, with much to spare, and at some of the rows s is computed with K.
"""

import importlib.util
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..engine import Array, as_numpy, evenly, namespace, on_device_of, readable, tiles, using
from ..expansion import Expansion
from ..kernels import Kernel
from ..kernels import points as pts
from ..space import Fourier, FourierPlan
from .dual import FEW, DualSolution, DualSolver, RightSides
from .fourier_map import FourierEquations
from .primal import chooses_by_all_errors
from .problem import Given, RidgeProblem
from .ridge_path import choose_on_rows
from .solver import CannotSolve, Cost, Steps

# Rows at which the residual is computed with the kernel itself.
_CHECKED = 64
# The first solution is found to this accuracy, which rounding leaves room for; then the residual is
# corrected, each time by the second factor. And how often the map is refined.
FIRST, REDUCTION, CORRECTIONS, REFINEMENTS = 1e-7, 1e-4, 4, 2
# The residual in Fourier coordinates is to be this share of what is aimed at.
_SHARE = 0.1
# The accuracy of variances.
_VARIANCE_TOL = 1e-8
_EPS = float(np.finfo(float).eps)
# Rows from which on transforms can be cheaper.
_LEAST_ROWS = 4000
# Frequencies, in all columns, up to which eight digits are aimed at; planned with some to spare:
# outside of the rows, errors are larger.
MOST_FOR_DIGITS, SPARE = 2e6, 0.1
# Products after which "auto" gives up: the plan was made for fewer.
_MOST_PRODUCTS = 200


class FourierSolver(DualSolver):
    """The dual coefficients, by sums of exponentials over the rows (MATH.md section 10).

    Where it competes with others it gives up if residuals are not as small as they should be.
    """

    name = "fourier"

    def _refusal(self, problem: RidgeProblem, asked: bool) -> str | None:
        training, kernel = problem.training, problem.kernel
        many = problem.n >= _LEAST_ROWS and importlib.util.find_spec("finufft")
        if not (asked or (many and problem.in_double and training.points.ndim == 2)):
            return "it pays for many rows of few columns, in double precision, with finufft"
        if kernel.fourier_form() is None:
            return f"{FourierPlan.no_series(kernel)}. Use form='auto'"
        if not asked and chooses_by_all_errors(problem):
            return "it would choose alpha on a sample, and the errors of all rows fit the memory"
        if self._plan(problem) is None:
            return (
                f"it needs too many frequencies for {kernel!r} on these rows, with "
                f"alpha={problem.alpha.smallest:g} and tol={problem.tol:g}, in "
                f"{readable(training.resources.limit())}: raise tol or alpha, use a smoother "
                "kernel of at most three columns, or form='iterative'"
            )
        return None

    def cost(self, problem: RidgeProblem) -> Cost:
        plan = self._plan(problem)
        return Cost(plan.seconds, plan.bytes)

    def _plan(self, problem: RidgeProblem) -> Any:
        """Eight digits where that takes few frequencies, else `tol`."""
        return problem.cached(("fourier", self.quick), lambda: self._made_plan(problem))

    def _made_plan(self, problem: RidgeProblem) -> FourierPlan | None:
        limit, points = problem.training.resources.limit(), problem.training.points
        largest = 1.0 if problem.weights is None else float(np.max(problem.weights))
        noise = problem.alpha.smallest / largest
        exact = self._replaces_a_factor(problem)
        for aim in (min(problem.digits, problem.tol), *(() if exact else (problem.tol,))):
            finer = SPARE * aim if aim <= problem.digits else aim
            plan = FourierPlan.of(problem.kernel, points, problem.n_columns, noise, finer)
            most = MOST_FOR_DIGITS if aim < problem.tol else np.inf
            if plan is not None and plan.frequencies <= most and plan.bytes <= limit:
                return replace(plan, aim=aim)
        return None

    def solve(self, problem: RidgeProblem) -> "_FourierSolution":
        rows, kernel, plan = problem.with_weight, problem.kernel, self._plan(problem)
        choice = None if isinstance(problem.alpha, Given) else choose_on_rows(problem)
        alphas, points = problem.alphas(choice), kernel.layout.in_double(rows.training.points)
        T = np.asarray(as_numpy(rows.T), dtype=np.float64)
        right = RightSides.of(T, alphas, problem.intercept)
        with self._competing():
            found = self._found(rows, plan, points, right.columns, right.penalties)
        X = on_device_of(found.coef, points, dtype=float)
        solved = right.solved(X, found.bounds, found.norms, energy=2.0)
        converged = bool(np.all(found.residuals <= plan.aim))
        if not converged:
            reason = (
                f"the residual is {float(found.residuals.max()):.2g} times the targets, more than "
                f"{plan.aim:g}: raise alpha, max_iter or tol, or use form='iterative'."
            )
            if self.quick:
                raise CannotSolve(reason)
            warnings.warn(reason, ConvergenceWarning, stacklevel=5)
        S, W = kernel.landmarks(points), solved.W
        images = on_device_of(found.images(as_numpy(W)), W)
        prediction = _FourierExpansion(kernel, S, W, solved.b, found.space, images)
        known = {
            "prediction": prediction,
            "steps": Steps(found.n_iter, converged),
            "choice": choice,
            "residuals": found.residuals[: problem.n_targets],
            "transforms": prediction.difference(),  # what they add, where they are used
        }
        how = {"max_iter": problem.max_iter, "tol": problem.tol}
        return solved.solution(_FourierSolution, problem, S, alphas, self.name, **known, **how)

    def _found(
        self,
        problem: RidgeProblem,
        plan: FourierPlan,
        points: Array,
        T: np.ndarray,
        alphas: np.ndarray,
    ) -> "_DualSystem":
        """With the tolerance of the plan, and a smaller one where rows show that it is needed."""
        kernel, weights = problem.kernel, problem.weights
        limit = problem.training.resources.limit()
        max_iter = min(problem.max_iter, _MOST_PRODUCTS) if self.quick else problem.max_iter
        aim, wanted, patience = plan.aim, plan.aim, max(4 * plan.seconds, 1.0)
        for refinements in range(1 + REFINEMENTS):
            with using(memory_limit=plan.bytes * 2):
                space = plan.space()
            found = _DualSystem(space, points, weights, problem.tol, max_iter)
            found.solve_checked(kernel, T, alphas, aim)
            worst = float(found.residuals.max())
            if worst <= aim or refinements == REFINEMENTS:
                break
            wanted *= 0.3 * aim / worst
            finer = plan.finer(T.shape[1], float(np.min(alphas)), wanted)
            if finer is None or finer.bytes > limit or finer.seconds > patience:
                break
            plan = finer
        return found


class _DualSystem:
    """(Phi Phi' + alpha W^-1) a = t, by transforms over the rows and equations in coordinates.

    equations : those in coordinates
    After `solve_checked`:
    coef, n_iter : a, and products
    bounds : certified |f - f*| in the norm of the kernel's space
    norms : |f|
    residuals : largest |t - K a - alpha a / weight| at some of the rows, K the kernel itself,
        relative to the root mean square of t
    """

    def __init__(
        self, space: Fourier, points: Array, weights: Array | None, tol: float, max_iter: int
    ) -> None:
        self.space, self.points = space, points
        self.weights = np.ones(points.shape[0]) if weights is None else as_numpy(weights)
        generator = space.sums(points, None, self.weights, eps=space.finest).generator
        self.equations = FourierEquations(space, generator, tol, max_iter)

    def solve(self, T: np.ndarray, alphas: np.ndarray, tol: float) -> tuple[Any, Any, Any, int]:
        """(a, Phi'a, residual, products): the residual is a share of tol times the targets."""
        W, steps, scales = self.weights[:, None], 0, np.sqrt(np.mean(T**2, axis=0))
        a, images, s = np.zeros_like(T), np.zeros((self.space.rank, T.shape[1])), T
        for correction in range(1 + CORRECTIONS):
            accuracy = FIRST if correction == 0 else REDUCTION
            found = self.equations.iterate(self.images(W * s), alphas, accuracy)
            steps += found.n_iter
            new = a + W * (s - self._values(found.coef)) / alphas
            new_images = self.images(new)
            left = T - self._values(new_images) - alphas * new / W
            before, now = (np.abs(r).max(axis=0) for r in (s, left))
            better = now < before  # else rounding, and what was there is kept
            a, images, s = (
                np.where(better, mine, kept)
                for mine, kept in ((new, a), (new_images, images), (left, s))
            )
            if not found.converged or np.all(~better | (now <= _SHARE * tol * scales)):
                break
        return a, images, s, steps

    def solve_checked(self, kernel: Kernel, T: Any, alphas: np.ndarray, aim: float) -> None:
        """Solve, and say how well: bounds from the residual s with Phi Phi' and the error of the
        map; the largest residual at some rows from values of the kernel."""
        scales, points = np.sqrt(np.mean(T**2, axis=0)), self.points
        self.coef, images, s, self.n_iter = self.solve(T, alphas, aim)
        root = np.sqrt(self.weights)[:, None]
        left = np.linalg.norm(root * s, axis=0)
        left += np.sqrt(self.weights.sum()) * self.space.total_error * np.abs(self.coef).sum(axis=0)
        left += _EPS * np.linalg.norm(root * T, axis=0)
        self.bounds = left / (2 * np.sqrt(alphas))
        self.norms = np.sqrt(np.sum(images**2, axis=0))
        some, W = evenly(points.shape[0], _CHECKED), on_device_of(self.coef, points, dtype=float)
        K_a = as_numpy(tiles.multiply(kernel, pts.take(points, some), kernel.landmarks(points), W))
        worst = np.abs(T[some] - K_a - alphas * self.coef[some] / self.weights[some, None])
        self.residuals = worst.max(axis=0) / np.where(scales > 0, scales, 1.0)

    def images(self, V: Any) -> np.ndarray:
        """Phi'V."""
        return self.space.images(self.points, V, eps=self.space.finest)

    def _values(self, coef: np.ndarray) -> np.ndarray:
        return as_numpy(self.space.evaluate(self.points, coef, eps=self.space.finest))


# --- the solution ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _FourierExpansion(Expansion):
    """The functions z -> k(z, S) W + b; inside a box as phi(z) . (Phi'W) + b, which is faster.

    phi are the Fourier coordinates of the kernel, and the two ways differ by at most
    ``space.error * sum |W|``. Rows outside of the box, where phi does not hold, are evaluated as
    the sum that they are: every z has a value.
    """

    space: Fourier  # of this kernel, on a box that holds the points S
    coef: Any  # Phi'W, for the coordinates Phi of S

    def __call__(self, X: np.ndarray) -> np.ndarray:
        X = self.fitted(X)
        inside = self.space.contains(X)
        if inside.all() or not inside.any():
            return self._transformed(X) if inside.any() else self.plain(X)
        values: np.ndarray = np.empty((X.shape[0], self.W.shape[1]))
        for part, evaluate in ((inside, self._transformed), (~inside, self.plain)):
            values[part] = as_numpy(evaluate(pts.take(X, np.flatnonzero(part))))
        values = on_device_of(values, self.W)
        return values

    def plain(self, X: np.ndarray) -> np.ndarray:
        """The values as sums of kernels, at every point."""
        return Expansion(self.kernel, self.S, self.W, self.b)(X)

    def difference(self) -> Any:
        """How far the two ways can be apart, rounding included: one number per function."""
        xp = namespace(self.W)
        return self.space.total_error * xp.sum(xp.abs(self.W), axis=0)

    def _transformed(self, X: Array) -> Any:
        values = self.space.evaluate(X, as_numpy(self.coef))
        return on_device_of(values, self.W) + self.b[None, :]


@dataclass(frozen=True, eq=False)
class _FourierSolution(DualSolution):
    """The dual coefficients, with their function in Fourier coordinates."""

    # the largest at some of the rows, computed with the kernel itself, relative to t
    residuals: np.ndarray | None = None
    transforms: Any = None  # what transforms add to the error inside the box, one number per target
    max_iter: int = 500
    tol: float = 1e-4

    def error_bound(self, points: Any, diag: Any = None) -> Any:
        bounds = super().error_bound(points, diag)
        Z = self.prediction.fitted(points)
        inside = on_device_of(self.prediction.space.contains(Z), bounds)
        return bounds + inside[:, None] * self.transforms[None, :]

    def _ways(self, Z: Array) -> list[tuple[np.ndarray, Callable[[Any, float], Any] | None]]:
        """In the box by Fourier coordinates, outside by one more right-hand side per point."""
        inside, few = self.prediction.space.contains(Z), self._system().equations.most_points
        return [
            (where, exact if len(where) <= most else None)
            for where, most, exact in (
                (np.flatnonzero(inside), few, self._inside),
                (np.flatnonzero(~inside), FEW, self._by_solves),
            )
        ]

    def _system(self) -> _DualSystem:
        given = (self.prediction.space, self.prediction.S, self.weights, self.tol, self.max_iter)
        system: _DualSystem = self.cached("system", lambda: _DualSystem(*given))
        return system

    def _inside(self, Z: Array, alpha: float) -> Any:
        return as_numpy(self.kernel.diagonal(Z)) - self._system().equations.variance(Z, alpha)

    def _coefficients(self, T: Array, alphas: np.ndarray) -> Any:
        return on_device_of(self._system().solve(as_numpy(T), alphas, _VARIANCE_TOL)[0], T)
