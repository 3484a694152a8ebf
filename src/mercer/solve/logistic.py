"""Logistic regression on kernel values: Newton's method, each step of which is a weighted ridge.

Of two classes f is the log odds of the second; of more, each class has a function and softmax makes
probabilities of them. At values F with probabilities P the Newton step solves, for coefficients A,

    A = G - W (K A + b' - F),   G = C (Y - P),   W = C (diag(p) - p p') for each row:

ridge with weights W and targets F + W^-1 G. With W = M M' and A = M B it is (I + M'K M) B =
M^+ G + M'F: symmetric, well conditioned, and solved by conjugate gradients. The coordinates of a
map precondition them; a map of full rank makes it one step. The intercept costs nothing: b' is
b + kappa 1'A, a step of the proximal point method, so that 1'A vanishes in the end.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logsumexp, softmax

from ..engine import tiles
from ..engine.arrays import (
    as_numpy,
    cholesky,
    gram,
    is_cpu,
    namespace,
    on_device_of,
    solve_triangular,
)
from ..engine.memory import budget, matrix_bytes
from ..engine.products import exact_product
from ..space import factorize
from .conjugate_gradients import ConjugateGradients
from .duality import EPS, Certificate, Rounding
from .preconditioner import chosen_rank
from .system import double_like, in_double, vectors_of

MOST_NEWTON = 50
MOST_PRODUCTS = 300
# Up to so many rows the kernel matrix is one array.
STORED = 3000
# Up to here the preconditioner is the map itself.
FULL_RANK = 1500
# The smallest probability that a step counts with: its weight must not vanish.
LEAST_PROBABILITY = 1e-12
# Landmarks of the preconditioner on a GPU, whose products are cheap.
DEVICE_RANK = 4000
# What a step leaves of the residual of its equations.
FORCING = 0.02
# kappa, relative to the mean of k(x, x).
KAPPA = 1e3


@dataclass(frozen=True)
class LogisticProblem:
    """min |f|^2 / 2 + sum_i C_i (-log p(y_i | x_i)), intercepts free.

    kernel : Kernel, bound to its data
    points : the kernel's points
    codes : ndarray of class numbers
    n_classes : int
    C : ndarray of positive numbers, one per row
    rounding : Rounding of the rows
    """

    kernel: Any
    points: Any
    codes: np.ndarray
    n_classes: int
    C: np.ndarray
    rounding: Rounding
    memory_limit: Any = None

    @property
    def targets(self):
        """One column for two classes, else one for each."""
        if self.n_classes == 2:
            return (self.codes == 1).astype(float)[:, None]
        return np.eye(self.n_classes)[self.codes]


@dataclass(frozen=True)
class LogisticSolution:
    """A : coefficients, one column per function; b : intercepts; values : K A, without b; dual :
    the dual point C (Y - P) that certifies them."""

    A: np.ndarray
    dual: np.ndarray
    b: np.ndarray
    values: np.ndarray
    certificate: Certificate
    n_iter: int
    converged: bool


class Workspace:
    """Parts that do not depend on C: products with K, and coordinates that precondition them."""

    def __init__(self, kernel, points, n_functions, memory_limit=None):
        X = in_double(kernel, points)
        n, limit = X.shape[0], budget(memory_limit, X)
        self.like = double_like(X)
        rank = n if n <= FULL_RANK else None if is_cpu(X) else min(n, DEVICE_RANK)
        rank = chosen_rank(n, max(1, limit - vectors_of(X, n_functions)), X, rank)
        fit = factorize(
            kernel,
            X,
            max_rank=rank,
            pivots="greedy" if rank == n else "random",
            rng=np.random.default_rng(0),
            memory_limit=memory_limit,
        )
        xp = namespace(self.like)
        self.F = xp.astype(fit.F, xp.float64, copy=False)
        diagonal = as_numpy(kernel.diagonal(X)).astype(np.float64)
        self.kappa = KAPPA * max(float(diagonal.mean()), 1e-300)
        self.wide = xp.concat([self.F, self.kappa**0.5 * xp.ones_like(self.F[:, :1])], axis=1)
        room = limit - 4 * 8 * n * max(fit.factor.rank, 1) - vectors_of(X, n_functions)
        if kernel.layout.on_data and (
            n <= STORED or (not is_cpu(X) and matrix_bytes(n, 1) <= room)
        ):
            K = tiles.evaluate(kernel, X)
            self.product: Any = lambda V: K @ V
        else:
            self.product = exact_product(kernel, X, room)

    def times(self, V):
        """K V of a NumPy array, where the points are."""
        return as_numpy(self.product(on_device_of(V, self.like)))

    def preconditioner(self, weights):
        """V -> (I + D (F F' + kappa 11') D)^-1 V with D = diag(weights)^1/2: of one column of
        weights for each column of V."""
        xp, wide = namespace(self.F), self.wide
        roots = on_device_of(np.sqrt(weights), self.like)
        eye = on_device_of(np.eye(wide.shape[1]), self.like)
        factors = [cholesky(gram(wide * roots[:, j : j + 1]) + eye) for j in range(roots.shape[1])]
        if any(C is None for C in factors):
            return lambda V: V

        def apply(V):
            v = on_device_of(V, self.like)
            seen = wide.T @ (roots * v)
            solved = [
                solve_triangular(C, solve_triangular(C, seen[:, j : j + 1]), transpose=True)
                for j, C in enumerate(factors)
            ]
            return as_numpy(v - roots * (wide @ xp.concat(solved, axis=1)))

        return apply


def solve_logistic(
    problem: LogisticProblem,
    tol: float = 1e-4,
    space: Workspace | None = None,
    start: LogisticSolution | None = None,
) -> LogisticSolution:
    """Solve until the certified error of the functions is at most tol times their norm."""
    if space is None:
        columns = problem.targets.shape[1]
        space = Workspace(problem.kernel, problem.points, columns, problem.memory_limit)
    return _Newton(problem, tol, space).solve(start)


class _Newton:
    def __init__(self, problem, tol, space):
        self.problem, self.tol, self.space = problem, tol, space
        self.T, self.C = problem.targets, problem.C[:, None]
        self.binary = problem.n_classes == 2

    def solve(self, start):
        n, q = self.T.shape
        A, F = np.zeros((n, q)), np.zeros((n, q))
        size = 0.0
        if start is not None:
            A, F = start.A, start.values
            size = self._size(A)
        b = self._intercepts(F)
        objective, found = self._objective(A, F, b), None
        for step in range(1, MOST_NEWTON + 1):
            new = self._step(A, F, b)
            image = self.space.times(new)
            t = 1.0
            while True:  # a step too long is halved: F is linear in A
                A1, F1 = A + t * (new - A), F + t * (image - F)
                b1 = self._intercepts(F1)
                lower = self._objective(A1, F1, b1)
                if lower <= objective + 1e-12 * abs(objective) or t < 1e-4:
                    break
                t /= 2
            gained = objective - lower
            A, F, b, objective = A1, F1, b1, lower
            size = self._size(A) if t == 1.0 else size + self._size(A)
            if gained > self._aim(A, F) or t < 1.0:
                continue
            certificate = self._certificate(A, F, b, size)
            if found is None or certificate.gap < found.certificate.gap:
                done = certificate.gap <= self._aim(A, F)
                found = LogisticSolution(A, self._dual(F, b), b, F, certificate, step, done)
            else:
                break
            if found.converged:
                break
        if found is None:
            certificate = self._certificate(A, F, b, size)
            found = LogisticSolution(A, self._dual(F, b), b, F, certificate, step, False)
        return found

    # --- the loss ---------------------------------------------------------------------------------

    def _probabilities(self, F, b):
        return expit(F + b) if self.binary else softmax(F + b, axis=1)

    def _losses(self, F, b):
        E = F + b
        if self.binary:
            return np.logaddexp(0.0, E)[:, 0] - (self.T * E)[:, 0]
        return logsumexp(E, axis=1) - np.sum(self.T * E, axis=1)

    def _loss(self, F, b):
        return float(self.problem.C @ self._losses(F, b))

    def _objective(self, A, F, b):
        return 0.5 * float(np.sum(A * F)) + self._loss(F, b)

    def _aim(self, A, F):
        norm = max(float(np.sum(A * F)), 0.0) ** 0.5
        return self.problem.rounding.aim(self.tol, norm)

    def _size(self, A):
        return float(np.linalg.norm(A * self.problem.rounding.lengths[:, None]))

    def _intercepts(self, F):
        """The best ones for these values, so that the dual coefficients sum to zero."""
        if self.binary:
            share = float(self.problem.C @ self.T[:, 0])
            return np.array([best_log_intercept(F[:, 0], self.problem.C, share)])
        b = np.zeros(self.T.shape[1])
        for _ in range(100):
            P = self._probabilities(F, b)
            slope = np.sum(self.C * (P - self.T), axis=0)
            CP = self.C * P
            curvature = np.diag(CP.sum(axis=0)) - P.T @ CP
            step = np.linalg.lstsq(curvature, slope, rcond=1e-12)[0]
            before, t = self._loss(F, b), 1.0
            while t > 1e-6 and self._loss(F, b - t * step) > before * (1 + 1e-15):
                t /= 2
            b = b - t * step
            if float(np.abs(step).max()) <= 1e-14 * (1 + float(np.abs(b).max())) or t <= 1e-6:
                break
        return b - b.mean()

    # --- a step -----------------------------------------------------------------------------------

    def _step(self, A, F, b):
        """The coefficients that Newton's equations ask for, roughly: the next step is as good."""
        P = np.clip(self._probabilities(F, b), LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        root = np.sqrt(self.C)
        if self.binary:
            M = root * np.sqrt(P * (1 - P))
            weights = M**2

            def out(B):
                return M * B

            back, first, guess = out, self.C * (self.T - P) / M, A / M
        else:
            q = np.sqrt(P / P.sum(axis=1, keepdims=True))
            weights = self.C * q**2

            def across(B):
                """Without its part along q, which M takes to zero."""
                return B - q * np.sum(q * B, axis=1, keepdims=True)

            def out(B):
                return root * q * across(B)

            def back(V):
                return across(root * q * V)

            first, guess = root * (self.T - q**2) / q, A / (root * q)
        inverse = precondition = self.space.preconditioner(np.maximum(weights, 1e-300))
        if not self.binary:

            def precondition(V):
                return across(inverse(V))

        def times(B):
            V = out(B)
            return B + back(self.space.times(V) + self.space.kappa * V.sum(axis=0))

        return out(_reduced(times, first + back(F), guess, precondition, FORCING))

    # --- the certificate --------------------------------------------------------------------------

    def _dual(self, F, b):
        return self.C * (self.T - self._probabilities(F, b))

    def _certificate(self, A, F, b, size):
        """f against the function of the dual point C (Y - P), whose divergences are all zero."""
        rounding, C = self.problem.rounding, self.problem.C
        dual = self._dual(F, b)
        D = A - dual
        errors = rounding.of_sums(size)
        image = self.space.times(D)
        apart = max(float(np.sum(D * image)), 0.0) + rounding.eta * self._size(D) ** 2
        square = max(float(np.sum(A * F)), 0.0)
        slack = self._loss(F, b)
        total = float(np.abs(dual.sum(axis=0)).sum()) + EPS * float(np.abs(dual).sum())
        longest = rounding.longest
        shares = C @ self.T / C.sum()
        shares = np.append(shares, 1 - shares) if self.binary else shares
        reach = float(np.abs(np.log(shares)).max()) + 2 * longest * (square + 2 * slack) ** 0.5
        reach = len(shares) * (reach + float(np.abs(b).max()))
        gap = apart / 2 + float(C @ errors**2) / 2 + total * reach
        gap *= 1 + len(C) * EPS
        error_norm = (2 * gap) ** 0.5 + rounding.eta * size
        shift = self._shift(F, b, error_norm * rounding.lengths + errors)
        return Certificate(gap, error_norm, shift, square**0.5)

    def _shift(self, F, b, errors):
        if not self.binary:
            # Sorted by how far they moved, neighbouring intercepts are sqrt(2) errors apart at
            # most: else the probabilities of all classes above a gap would rise in every row.
            return 2**0.5 * (len(b) - 1) * float(errors.max())
        share = float(self.problem.C @ self.T[:, 0])
        least = best_log_intercept(F[:, 0] + errors, self.problem.C, share)
        most = best_log_intercept(F[:, 0] - errors, self.problem.C, share)
        return max(float(b[0]) - least, most - float(b[0]), 0.0) * (1 + 1e-9) + 1e-12


def best_log_intercept(values, C, share):
    """b with sum_i C_i p(values_i + b) = share: the sum increases in b."""
    total = float(C.sum())
    middle = float(np.log(share) - np.log(total - share))
    low, high = middle - float(values.max()), middle - float(values.min())
    b = (low + high) / 2
    for _ in range(200):
        P = expit(values + b)
        rest = float(C @ P) - share
        low, high = (low, b) if rest > 0 else (b, high)
        curvature = float(C @ (P * (1 - P)))
        new = b - rest / curvature if curvature > 0 else low - 1.0
        new = new if low < new < high else (low + high) / 2
        if abs(new - b) <= 2 * EPS * max(1.0, abs(b)):
            return new
        b = new
    return b


def _reduced(times, right, x, precondition, reduction):
    """x with |right - times(x)| reduced by this much; its columns are one vector."""

    def flat(function):
        return lambda v: function(v.reshape(x.shape)).reshape(-1, 1)

    cg = ConjugateGradients(flat(times), flat(precondition), (right - times(x)).reshape(-1, 1))
    wanted = reduction * float(np.linalg.norm(cg.r))
    for _ in range(MOST_PRODUCTS):
        if float(np.linalg.norm(cg.r)) <= wanted or cg.rz[0] <= 0:
            break
        cg.advance(*cg.product())
        cg.turn()
    return x + cg.x.reshape(x.shape)
