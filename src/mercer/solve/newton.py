"""Logistic regression on kernel values: Newton's method, each step of which is a ridge problem.

Of two classes f is the log odds of the second; of more, each class has a function and softmax makes
probabilities of them. At values F of coefficients A, with probabilities P, gradient G = C (Y - P)
and weights W = C p (1 - p), the step D of the coefficients solves

    (K + W^-1) D + b = W^-1 (G - A),   1'D = 0:

ridge with alpha = 1, weights W, targets W^-1 (G - A) and an intercept, so that every solver of
ridge serves. It starts where the last step ended; an error of a tenth of D is small enough, since
the next step mends it.

Of several classes the weights of a row are the matrix H = C (diag(p) - p p'), and the step solves

    D + H (K D + b) = G - A,   1'D = 0,

by conjugate gradients in the inner product of K, all classes together: a product with K costs
little more for ten columns than for one. Each class has its own part on the diagonal of H,
M = C p (1 - p). The eigenvalues of H relative to M are 0, for what is common to all classes, and
between 1 and 2: so (I + 1.5 M K)^-1 is a good preconditioner, class by class, with what is common
taken out. In it K is F F' of a few landmarks, which factors of their size invert.
"""

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, softmax
from sklearn.exceptions import ConvergenceWarning

from ..engine import (
    Array,
    MatrixProduct,
    as_numpy,
    coordinates_bytes,
    is_cpu,
    matrix_bytes,
    namespace,
    on_device_of,
    tiles,
)
from ..kernels import Kernel, Linear, remembering
from ..rows import Training, Workers
from ..space import Fit, factorize
from .auto import Way, first_of, offered, solve_ridge
from .box_dual import low_rank_factor
from .dual import Direct
from .duality import EPS, Certificate, Rounding
from .fourier_solver import FourierSolver
from .iterative import Iterative
from .primal import Primal
from .problem import Given, Preconditioning, RidgeProblem
from .regularized import solve_factored
from .solver import CannotSolve, Solver
from .system import LEAST_RANK, chosen_rank, vectors_of

# Solvers of a step: exact ones, to what a step needs. Steps of several classes are iterations.
_COMPETING = (Direct(), Primal(), Iterative(), FourierSolver(quick=True))
_ITERATING = ("iterative", "fourier")
_MOST_NEWTON = 60
# Steps that are usual, for a plan.
_USUAL = 8
# The certified error of a step, relative to it; iterations for several classes at most.
FORCING, MOST_INNER = 0.1, 60
# The share of the memory for the factors of a preconditioner, one for each class.
_FACTORS = 0.25
# The smallest probability that a step counts with: its weight must not vanish.
_LEAST_PROBABILITY = 1e-12
# Between the eigenvalues of a row's weights, relative to those on its diagonal.
_SEVERAL = 1.5
# A step that gains less of the objective, and no certainty, is rounding.
_STALLED = 1e-9
# Landmarks of the preconditioner on a GPU, whose products are cheap.
_DEVICE_RANK = 4000


@dataclass(frozen=True)
class LogisticProblem:
    """min |f|^2 / 2 + sum_i C_i (-log p(y_i | x_i)), intercepts free."""

    training: Training  # of rows that are held
    codes: np.ndarray  # class numbers
    n_classes: int
    C: np.ndarray  # positive numbers, one per row
    rounding: Rounding

    @cached_property
    def targets(self) -> np.ndarray:
        """One column for two classes, else one for each."""
        if self.binary:
            return np.where(self.codes == 1, 1.0, 0.0)[:, None]
        return np.eye(self.n_classes).take(self.codes, axis=0)

    @property
    def binary(self) -> bool:
        """Whether one function tells two classes apart."""
        return self.n_classes == 2

    def weights(self, P: np.ndarray) -> np.ndarray:
        """C p (1 - p), which must not vanish."""
        P = np.clip(P, _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
        weights: np.ndarray = self.C[:, None] * P * (1 - P)
        return weights

    def offers(self) -> list[tuple[Solver, Way]]:
        """Those of all solvers for the usual number of steps, the cheapest first."""
        # Weights are C / 4 at most.
        step = _ridge(self.training, np.zeros((len(self.codes), 1)), 4 / float(self.C.mean()))
        known: Solver = Direct() if self.binary else Iterative()
        # A kernel of unknown validity was tested when it was read, not again with every step.
        if not self.training.kernel.is_proven and known.refusal(step) is None:
            made = [(known, Way.of(known, step, asked=True))]
        else:
            competing = [s for s in _COMPETING if self.binary or s.name in _ITERATING]
            made = offered(step, competing)
        count = _USUAL * self.targets.shape[1]
        return [(solver, way.times(count)) for solver, way in made]

    def workspace(self) -> "_Workspace":
        return _Workspace(self)

    def solve(
        self,
        tol: float = 1e-4,
        space: "_Workspace | None" = None,
        start: "_LogisticSolution | None" = None,
    ) -> "_LogisticSolution":
        """Solve until the certified error of the functions is at most tol times their norm."""
        with remembering(self.training.kernel):
            return self._solve(tol, space or self.workspace(), start)

    def _solve(
        self, tol: float, space: "_Workspace", start: "_LogisticSolution | None"
    ) -> "_LogisticSolution":
        A, F, size = 0.0 * self.targets, 0.0 * self.targets, 0.0
        found: Any = None
        if start is not None:
            A, F, size = start.A, start.values, self.rounding.size_of(start.A)
        b = self.intercepts(F, np.zeros(F.shape[1]))
        objective = self._objective(A, F, b)
        for step in range(1, _MOST_NEWTON + 1):
            (D, image), t = self.step(space, A, F, b), 1.0
            while True:  # a step too long is halved: F is linear in A
                A1, F1 = A + t * D, F + t * image
                b1 = self.intercepts(F1, b)
                lower = self._objective(A1, F1, b1)
                if lower <= objective + 1e-12 * abs(objective) or t < 1e-4:
                    break
                t /= 2
            gained = objective - lower
            A, F, b, objective = A1, F1, b1, lower
            size += t * self.rounding.size_of(D)
            dual, certificate = self._certificate(space, A, F, b, size)
            better = found is None or certificate.gap < found.certificate.gap
            if better:
                done = certificate.gap <= self.rounding.aim(tol, certificate.norm)
                found = _LogisticSolution(A, dual, b, F, certificate, step, done)
            if found.converged or (not better and gained <= _STALLED * abs(objective)):
                break
        best: _LogisticSolution = found
        return best

    # --- the loss ---------------------------------------------------------------------------------

    def _probabilities(self, F: np.ndarray, b: np.ndarray) -> np.ndarray:
        P: np.ndarray = expit(F + b) if self.binary else softmax(F + b, axis=1)
        return P

    def _dual(self, P: np.ndarray) -> np.ndarray:
        """C (Y - P); of several classes without a difference of nearly equal numbers."""
        if self.binary:
            misses = self.targets - P
        else:
            own = self.targets > 0
            others = np.where(own, 0.0, P)
            misses = np.where(own, others.sum(axis=1, keepdims=True), -others)
        dual: np.ndarray = self.C[:, None] * misses
        return dual

    def _loss(self, F: np.ndarray, b: np.ndarray) -> float:
        E, C = F + b, self.C
        if self.binary:
            return float(C @ (np.logaddexp(0.0, E) - self.targets * E)[:, 0])
        # log sum_c exp(e_c - e_y), exact to the last digits where the class is nearly certain.
        E = E - np.sum(self.targets * E, axis=1, keepdims=True)
        top = E.max(axis=1)
        others = np.sum(np.where(self.targets > 0, 0.0, np.exp(E - top[:, None])), axis=1)
        return float(C @ (top + np.log1p(others + np.expm1(-top))))

    def _objective(self, A: np.ndarray, F: np.ndarray, b: np.ndarray) -> float:
        return 0.5 * float(np.sum(A * F)) + self._loss(F, b)

    def intercepts(self, F: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The best ones for these values, so that the dual coefficients sum to zero; from b on."""
        if self.binary:
            share = float(self.C @ self.targets[:, 0])
            return np.array([_best_log_intercept(F[:, 0], self.C, share)])
        for _ in range(100):
            P = self._probabilities(F, b)
            slope, CP = -np.sum(self._dual(P), axis=0), self.C[:, None] * P
            curvature = np.diag(CP.sum(axis=0)) - P.T @ CP
            step = np.linalg.lstsq(curvature, slope, rcond=1e-12)[0]
            before, t = self._loss(F, b), 1.0
            while t > 1e-6 and self._loss(F, b - t * step) > before * (1 + 1e-12):
                t /= 2
            b = b - t * step
            if float(np.abs(step).max()) <= 1e-14 * (1 + float(np.abs(b).max())) or t <= 1e-6:
                break
        b = b - b.mean()
        return b

    # --- a step -----------------------------------------------------------------------------------

    def step(
        self, space: "_Workspace", A: np.ndarray, F: np.ndarray, b: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(Newton's step of the coefficients, its product with K), roughly: the next mends it."""
        P = self._probabilities(F, b)
        R, W = self._dual(P) - A, self.weights(P)
        if self.binary:
            D = space.inverse(W)(R)
            return D, space.times(D)
        return self._coupled(space, R, P, space.inverse(_SEVERAL * W))

    def _coupled(
        self, space: "_Workspace", R: np.ndarray, P: np.ndarray, inverse: Callable[[Any], Any]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The step of several classes, by conjugate gradients in the inner product of K."""
        CP = self.C[:, None] * P
        shifts = np.linalg.pinv(np.diag(CP.sum(axis=0)) - P.T @ CP, rcond=1e-12, hermitian=True)

        def weighted(V: Any) -> Any:
            return CP * V - CP * np.sum(P * V, axis=1, keepdims=True)

        D, image = np.zeros_like(R), np.zeros_like(R)
        step, step_image, before = D, image, (R, np.inf)
        for i in range(MOST_INNER):
            Z = inverse(R)
            Z -= Z.mean(axis=1, keepdims=True)
            KZ = space.times(Z)
            if i == 0 and not np.sum(R * KZ) > 0:  # landmarks say nothing of these rows
                Z, KZ = R, space.times(R)
            left = float(np.sum(R * KZ))
            if i == 0:
                first = left
            if not left > FORCING**2 * first or not first > 0:
                break
            # By Polak and Ribiere: the preconditioner need not be symmetric, or the same each time.
            again = max(0.0, (left - float(np.sum(before[0] * KZ))) / before[1])
            step, step_image = Z + again * step, KZ + again * step_image
            b = -shifts @ weighted(step_image).sum(axis=0)  # the best intercepts move as well
            changed = step + weighted(step_image + b)
            curvature = float(np.sum(changed * step_image))
            if not curvature > 0:  # rounding
                break
            t = left / curvature
            D, image = D + t * step, image + t * step_image
            before, R = (R, left), R - t * changed
        return D, image

    # --- the certificate --------------------------------------------------------------------------

    def _certificate(
        self, space: "_Workspace", A: np.ndarray, F: np.ndarray, b: np.ndarray, size: float
    ) -> tuple[np.ndarray, Certificate]:
        """(dual, certificate): f against the function of the dual point C (Y - P), whose
        divergences are all zero."""
        rounding, C = self.rounding, self.C
        dual, errors = self._dual(self._probabilities(F, b)), rounding.of_sums(size)
        D = A - dual
        apart = max(float(np.sum(D * space.times(D))), 0.0)
        apart += rounding.eta * rounding.size_of(D) ** 2
        square, slack = max(float(np.sum(A * F)), 0.0), self._loss(F, b)
        total = float(np.abs(dual.sum(axis=0)).sum()) + EPS * float(np.abs(dual).sum())
        shares = C @ self.targets / C.sum()
        shares = np.append(shares, 1 - shares) if self.binary else shares
        reach = float(np.abs(np.log(shares)).max()) + float(np.abs(b).max())
        reach = len(shares) * (reach + 2 * rounding.longest * (square + 2 * slack) ** 0.5)
        gap = (apart / 2 + float(C @ errors**2) / 2 + total * reach) * (1 + len(C) * EPS)
        error_norm = (2 * gap) ** 0.5 + rounding.eta * size
        shift = self._shift(F, b, error_norm * rounding.lengths + errors)
        return dual, Certificate(gap, error_norm, shift, square**0.5)

    def _shift(self, F: np.ndarray, b: np.ndarray, errors: np.ndarray) -> float:
        if not self.binary:
            # Sorted by how far they moved, neighbouring intercepts are sqrt(2) errors apart at
            # most: else the probabilities of all classes above a gap would rise in every row.
            return 2**0.5 * (len(b) - 1) * float(errors.max())
        share = float(self.C @ self.targets[:, 0])
        least = _best_log_intercept(F[:, 0] + errors, self.C, share)
        most = _best_log_intercept(F[:, 0] - errors, self.C, share)
        return max(float(b[0]) - least, most - float(b[0]), 0.0) * (1 + 1e-9) + 1e-12


@dataclass(frozen=True)
class _LogisticSolution:
    """A : coefficients, one column per function; b : intercepts; values : K A, without b; dual :
    the dual point C (Y - P) that certifies them."""

    A: np.ndarray
    dual: np.ndarray
    b: np.ndarray
    values: np.ndarray
    certificate: Certificate
    n_iter: int
    converged: bool


class _Workspace:
    """Parts that do not depend on C, the same for all steps and several values of C: the solver of
    the steps, landmarks that precondition, and products with K."""

    def __init__(self, problem: LogisticProblem):
        self.training = problem.training
        kernel, X = self.training.kernel, self.training.points
        q = problem.targets.shape[1]
        self.limit = self.training.resources.limit(X) - vectors_of(kernel, X, q)
        offers = problem.offers()
        self.solver: Solver = first_of(offers)
        self.X, self.known = kernel.layout.in_double(X), Preconditioning()
        room = self.limit
        if self.solver.name == "direct":  # a step holds the kernel matrix and a factor
            room -= offers[0][1].bytes or 0
        if self.solver.name == "iterative" and self.training.workers is None:
            most = int((_FACTORS * max(1, self.limit) / matrix_bytes(1, q)) ** 0.5)
            self.known = Preconditioning(landmarks=self._landmarks(max(1, most), q > 1))
            n, r = self.known.landmarks.F.shape
            room -= coordinates_bytes(n, r, copies=3)
        self.known = replace(self.known, product=self._product(kernel, self.X, room))

    def _landmarks(self, most: int, several: bool) -> Fit:
        """About half as many as for one problem alone, since every step has its weights, and fewer
        where it has several."""
        kernel, X = self.training.kernel, self.X
        n, wanted = X.shape[0], None if is_cpu(X) else _DEVICE_RANK
        rank = chosen_rank(n, max(1, self.limit), X, wanted)
        rank = rank if wanted else max(min(LEAST_RANK, rank), rank // (4 if several else 2))
        resources = self.training.resources
        how: dict[str, Any] = {"rng": resources.rng(), "memory_limit": resources.memory_limit}
        return factorize(kernel, X, max_rank=min(rank, most), pivots="random", **how)

    def _product(self, kernel: Kernel, X: Array, room: float) -> MatrixProduct:
        workers: Workers | None = self.training.workers
        if workers is not None:
            workers.give(kernel, X)
            return workers.exact_product()
        if type(kernel) is Linear and 2 * X.shape[1] <= X.shape[0]:  # coordinates of a map
            return MatrixProduct(lambda V: X @ (X.T @ V), "factored", True)
        stored = not is_cpu(X) and matrix_bytes(X.shape[0], 1) <= room
        if stored and kernel.layout.on_data:
            K = tiles.evaluate(kernel, X)
            return MatrixProduct(lambda V: K @ V, "stored", True)
        return MatrixProduct.of(kernel, X, room)

    def times(self, V: Any) -> np.ndarray:
        """K V of a NumPy array, where the points are."""
        return as_numpy(self.known.product(on_device_of(V, self.X, dtype=float)))

    def inverse(self, W: np.ndarray) -> Callable[[Any], np.ndarray]:
        """R -> D, roughly: D + W (K D + b) = R and 1'D = 0, each column with weights of its own."""
        if W.shape[1] > 1 and self.solver.name == "iterative" and self.known.landmarks is not None:
            return _low_rank_inverse(self.known.landmarks.F, W)
        W = np.maximum(W, np.finfo(float).tiny)

        def columns(R: Any) -> np.ndarray:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate says how far
                steps = [self._solved(R[:, j] / W[:, j], W[:, j]) for j in range(R.shape[1])]
            return np.stack(steps, axis=1)

        return columns

    def _solved(self, t: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The coefficients; by iterations where the equations are singular to rounding, and zeros,
        no step, where these see nothing but rounding either."""
        problem = _ridge(self.training, t[:, None], 1.0, weights, self.known)
        for solver in (self.solver, "iterative"):
            with suppress(CannotSolve):
                return as_numpy(solve_ridge(problem, solver).dual)[:, 0]
        return np.zeros_like(t)

    @property
    def form(self) -> str:
        """The solver, as forms of KernelRidge are named."""
        return "dual" if self.solver.name == "direct" else self.solver.name

    def left_out(self, problem: LogisticProblem, found: _LogisticSolution) -> np.ndarray:
        """Log odds of each row of two classes without it, to second order: Newton's last step is a
        ridge problem, whose leave-one-out errors are known."""
        E = found.values + found.b
        P = np.clip(expit(E), _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
        W = problem.weights(P)
        T = E + problem.C[:, None] * (problem.targets - P) / W
        last = _ridge(self.training, T, 1.0, W[:, 0], self.known)
        odds: np.ndarray = T - solve_ridge(last, "direct").left_out().residuals
        return odds[:, 0]


def _ridge(
    training: Training,
    T: np.ndarray,
    alpha: float,
    weights: np.ndarray | None = None,
    known: Preconditioning | None = None,
) -> RidgeProblem:
    """A step of Newton's method: weighted ridge with an intercept, to what a step needs."""
    problem = RidgeProblem(training, T, Given(np.array([alpha])), weights, intercept=True)
    known = problem.preconditioning if known is None else known
    return replace(problem, tol=FORCING, digits=FORCING, preconditioning=known)


def _low_rank_inverse(F: Array, W: np.ndarray) -> Callable[[Any], np.ndarray]:
    """The same with F F' instead of K: (I + W F F')^-1 = I - W F (I + F'W F)^-1 F'."""
    xp, W = namespace(F), on_device_of(W, F)
    factors = [low_rank_factor(F, W[:, j]) for j in range(W.shape[1])]

    def applied(R: Any) -> Any:
        inner = F.T @ R
        inner = [solve_factored(C, inner[:, j]) for j, C in enumerate(factors)]
        return R - W * (F @ xp.stack(inner, axis=1))

    def inverse(R: Any) -> np.ndarray:
        D = applied(on_device_of(R, F))
        return as_numpy(D - ones * xp.sum(D, axis=0))

    ones = applied(W)
    total = xp.sum(ones, axis=0)
    # Without any weight there is nothing to balance.
    ones = ones / xp.where(total > 0, total, xp.ones_like(total))
    return inverse


def _best_log_intercept(values: np.ndarray, C: np.ndarray, share: float) -> float:
    """b with sum_i C_i p(values_i + b) = share: the sum increases in b."""
    middle = float(np.log(share) - np.log(C.sum() - share))
    low, high = middle - float(values.max()), middle - float(values.min())

    def excess(b: float) -> float:
        return float(C @ expit(values + b)) - share

    b: float = brentq(excess, low - 1, high + 1, xtol=EPS, rtol=4 * EPS, maxiter=1000)
    return b
