"""Mixed: one factor, most of it in single precision, and iterations that refine to double."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine import (
    Array,
    MatrixProduct,
    as_numpy,
    cholesky,
    coordinates_bytes,
    current,
    largest_power,
    matrix_bytes,
    solve_triangular,
    tiles,
)
from ..kernels import Kernel
from ..kernels import points as pts
from ..space import factorize
from .dual import DirectSolution, DualSolver, RightSides, certified
from .iterations import ConjugateGradients
from .problem import Choice, Given, LeaveOneOut, RidgeProblem
from .regularized import inverse_diagonal
from .ridge_path import choose_on_rows, is_chosen_before
from .solver import CannotSolve, Cost, TooLarge
from .system import vectors_of

# Rows from which on single precision saves more than the refinement costs.
LEAST_ROWS = 12_000
# One row in so many is a landmark, and at most so many: their part of the factor takes as long as a
# few products.
_ROWS_PER_LANDMARK, _MOST_LANDMARKS = 64, 1000
# Rounding in single precision, beside alpha, that a few products refine.
_MOST_ROUNDING = 0.5
# Products after which the factor is judged to be useless.
_MOST_PRODUCTS = 30
# The estimate, from recursive residuals, must be this much below what is asked for; and a bound of
# so many times that of a residual of zero is as good as any.
_MARGIN, _AT_ROUNDING = 0.5, 4.0
# The remedies of this solver.
_HELP = "use form='dual' (solver='direct' of a learned model), or a larger alpha"
_EPS32 = float(np.finfo(np.float32).eps)


class Mixed(DualSolver):
    """By a factor P of A = K + alpha N whose first rows alone are in double precision.

    The first rows are landmarks S. What they leave of K, R = K - k(X, S) k(S, S)^-1 k(S, X), is
    small, and rounding is relative to what is factored: the error of P is about 2 eps sqrt(n) times
    the mean of R_jj, with the eps of single precision. Where that is below alpha, a few steps of
    conjugate gradients, with P as preconditioner and products in double precision, give the digits
    that a factor in double precision would give, in half of its time and memory.
    """

    name = "mixed"

    def _refusal(self, problem: RidgeProblem, asked: bool) -> str | None:
        if not problem.in_double:
            return "it is for rows that are NumPy's doubles: convert them, or use form='dual'"
        if not problem.kernel.is_proven:
            return "single precision cannot test whether this kernel is valid: use form='dual'"
        if not isinstance(problem.alpha, Given | LeaveOneOut):
            return "it is for penalties that are given, or chosen by leave-one-out"
        if not asked and not isinstance(problem.alpha, Given) and not is_chosen_before(problem):
            return "it would choose alpha on a sample, and the errors of all rows fit the memory"
        if isinstance(problem.alpha, Given) and len(np.unique(problem.alpha.values)) > 1:
            return "it makes one factor, and penalties of targets differ: use form='dual'"
        if not asked and problem.n < LEAST_ROWS:
            return f"below {LEAST_ROWS:,} rows a factor in double precision is as fast"
        if not asked and problem.dimension < problem.n:
            return "the kernel has few dimensions"
        needed = self._needed(problem)
        return TooLarge.beyond("the factor, landmarks and vectors", needed, problem.limit)

    def cost(self, problem: RidgeProblem) -> Cost:
        n, needed = problem.n, self._needed(problem)
        stored = needed + matrix_bytes(n, 0.5)
        held = stored <= problem.limit
        # A half of the operations of double precision; values for the factor and for products.
        operations = n**3 / 6 + n**2 * _landmarks(n)
        values = n**2 * (1.0 if held else 2.0)
        return Cost.of(
            stored if held else needed, values=values, operations=operations, passes=6 * n**2
        )

    def _needed(self, problem: RidgeProblem) -> float:
        """Bytes beside the rows, without the values that products may store."""
        n, r, points = problem.n, _landmarks(problem.n), problem.training.points
        vectors = vectors_of(problem.kernel, points, problem.n_columns)
        return matrix_bytes(n, size=4) + coordinates_bytes(n, r, copies=2) + vectors

    def solve(self, problem: RidgeProblem) -> "_MixedSolution":
        rows, kernel = problem.with_weight, problem.kernel
        choice: Choice | None = None
        if not isinstance(rows.alpha, Given):
            choice = choose_on_rows(rows)
        alphas = rows.alphas(choice)
        noise = float(alphas[0]) * (np.ones(rows.n) if rows.weights is None else 1 / rows.weights)
        with self._competing():
            factor = _MixedFactor.of(kernel, rows.training.points, noise)
            right = RightSides.of(rows.T, alphas, problem.intercept)
            found = _refined(rows, factor, noise, right)
        solved = right.solved(*found, energy=2.0)
        S = kernel.landmarks(problem.training.points, problem.kept)
        solution = solved.solution(_MixedSolution, problem, S, alphas, self.name, choice=choice)
        solution.keep({"mixed": factor})
        return solution


def _landmarks(n: int) -> int:
    return min(_MOST_LANDMARKS, max(1, n // _ROWS_PER_LANDMARK))


def _refined(
    problem: RidgeProblem, factor: "_MixedFactor", noise: np.ndarray, right: RightSides
) -> tuple[Any, np.ndarray, np.ndarray]:
    """(X, bounds of |f - f*|, |f|) for A X = B, by conjugate gradients."""
    kernel, points, weights = problem.kernel, problem.training.points, problem.weights
    tol, sizes = min(problem.tol, problem.digits), largest_power(right.columns, axis=0)
    B = right.columns / sizes  # whose squares neither vanish nor overflow
    room = problem.limit - factor.bytes - vectors_of(kernel, points, B.shape[1])
    product = MatrixProduct.of(kernel, points, room)

    def times(V: Any) -> Any:
        return product(V) + noise[:, None] * V

    def judged(X: Any, residuals: Any) -> tuple[np.ndarray, np.ndarray]:
        return certified(kernel, points, X, residuals, B, right.penalties, weights)

    cg = ConjugateGradients(times, factor.solve, B)
    for _ in range(_MOST_PRODUCTS):
        cg.advance(*cg.product())
        bounds, norms = judged(cg.x, cg.r)
        # With a residual of zero, the bounds of rounding alone: no factor gives more digits.
        least = np.maximum(tol * norms, _AT_ROUNDING * judged(cg.x, 0 * cg.r)[0])
        if np.all(bounds <= _MARGIN * least):
            cg.r = B - times(cg.x)
            bounds, norms = judged(cg.x, cg.r)
            if np.all(bounds <= least):
                return cg.x * sizes, bounds * sizes, norms * sizes
        cg.turn()
    raise CannotSolve(f"the factor in single precision is too far from the kernel matrix: {_HELP}")


@dataclass(frozen=True, eq=False)
class _MixedFactor:
    """A = M M' with M = [C; B, D L], on rows in this order: C and B of landmarks are in double
    precision, L of what they leave in single. D are powers of two near the roots of A's diagonal.
    """

    order: np.ndarray
    C: np.ndarray
    B: np.ndarray
    D: np.ndarray
    L: np.ndarray

    @classmethod
    def of(cls, kernel: Kernel, points: Any, noise: np.ndarray) -> "_MixedFactor":
        """The factor of K + diag(noise); refused where rounding is not below the noise."""
        n, rng = len(noise), current().rng()
        fit = factorize(kernel, points, max_rank=_landmarks(n), pivots="random", rng=rng)
        D = np.ldexp(1.0, np.frexp(as_numpy(kernel.diagonal(points)) + noise)[1] // 2)
        rounding = 2 * _EPS32 * math.sqrt(n) * float((fit.residuals / D**2).mean())
        if rounding > _MOST_ROUNDING * (noise / D**2).min():
            lost = f"single precision loses {rounding:.1g} of the kernel matrix"
            raise CannotSolve(f"{lost}: {_HELP}")
        landmarks = np.asarray(fit.factor.indices)
        del fit
        order = np.r_[landmarks, np.setdiff1d(np.arange(n), landmarks)]
        r, points, noise, D = len(landmarks), pts.take(points, order), noise[order], D[order]
        first = pts.take(points, np.arange(r))
        C = cholesky(tiles.evaluate(kernel, first) + np.diag(noise[:r]))
        if C is None:
            raise CannotSolve(f"the equations of landmarks are singular to rounding: {_HELP}")
        rest = pts.take(points, np.arange(r, n))
        B = solve_triangular(C, tiles.evaluate(kernel, rest, first).T).T
        L = cholesky(_unexplained(kernel, rest, B, noise[r:], D[r:]), in_place=True)
        if L is None:
            raise CannotSolve(f"the equations are singular to single precision: {_HELP}")
        return cls(order, C, B, D[r:], L)

    @property
    def bytes(self) -> int:
        return self.C.nbytes + self.B.nbytes + self.L.nbytes

    def solve(self, V: np.ndarray) -> np.ndarray:
        """P^-1 V."""
        r, V = len(self.C), V[self.order]
        top = solve_triangular(self.C, V[:r])
        rest = self._by_single(V[r:] - self.B @ top)
        found = np.empty(V.shape)
        found[self.order[:r]] = solve_triangular(self.C, top - self.B.T @ rest, transpose=True)
        found[self.order[r:]] = rest
        return found

    def _halfway(self, V: np.ndarray) -> np.ndarray:
        """(D L)^-1 V in single precision."""
        small = np.asfortranarray(V / self.D[:, None], dtype=np.float32)
        half: np.ndarray = solve_triangular(self.L, small)
        return half

    def _by_single(self, V: np.ndarray) -> np.ndarray:
        """(D L L' D)^-1 V; columns are scaled into the range of single precision."""
        sizes = largest_power(V / self.D[:, None], axis=0)
        half = solve_triangular(self.L, self._halfway(V / sizes), transpose=True)
        found: np.ndarray = half * sizes / self.D[:, None]
        return found

    def inverse_diagonal(self, rows: np.ndarray) -> np.ndarray:
        """(P^-1)_jj = |M^-1 e_j|^2 of some rows."""
        r, place = len(self.C), np.empty(len(self.order), dtype=int)
        place[self.order] = np.arange(len(self.order))
        at, found = place[rows], np.empty(len(rows))
        rest = at[at >= r] - r
        found[at >= r] = inverse_diagonal(self.L, rest) / self.D[rest] ** 2
        if np.any(at < r):
            top = solve_triangular(self.C, np.eye(r)[:, at[at < r]])
            below = self._halfway(self.B @ top).astype(np.float64)
            found[at < r] = (top**2).sum(axis=0) + (below**2).sum(axis=0)
        return found


def _unexplained(
    kernel: Kernel, points: Any, B: np.ndarray, noise: np.ndarray, D: np.ndarray
) -> np.ndarray:
    """D^-1 (K - B B' + diag(noise)) D^-1 in single precision, the half that a factor in place
    reads."""
    n = len(B)
    R, shares = np.empty((n, n), dtype=np.float32), MatrixProduct.shares(kernel, points)

    def work(a: int, b: int) -> None:
        for c, d in shares.columns(a, b):
            tile = shares.values(a, b, c, d) - B[a:b] @ B[c:d].T
            if c == a:
                tile[np.diag_indices(b - a)] += noise[a:b]
            tile /= D[a:b, None]
            R[c:d, a:b] = tile.T / D[c:d, None]

    tiles.run_tasks(work, shares.blocks[::-1], kernel, B)
    return R


@dataclass(frozen=True, eq=False)
class _MixedSolution(DirectSolution):
    """Variances take a factor in double precision, which is made when they are asked for."""

    def _ways(self, Z: Array) -> list[tuple[np.ndarray, Callable[[Any, float], Any] | None]]:
        """Upper values where a factor in double precision is too large."""
        S = self.prediction.S
        if matrix_bytes(S.shape[0], 1.1) > current().limit(S):
            return [(np.arange(Z.shape[0]), None)]
        return super()._ways(Z)

    def _inverse_diagonal(self, alpha: float, rows: np.ndarray) -> np.ndarray:
        found: _MixedFactor | None = self.cached("mixed")
        if found is None:
            return super()._inverse_diagonal(alpha, rows)
        return found.inverse_diagonal(rows)
