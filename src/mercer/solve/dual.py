"""One coefficient per row, f(z) = sum_i a_i k(x_i, z) + b ([KERNELS] (6)-(8)); Direct, which finds
them by one factorisation of the kernel matrix."""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from ..engine import (
    Array,
    MatrixProduct,
    MemoryLimitError,
    as_numpy,
    current,
    eps_of,
    evenly,
    is_numpy,
    matrix_bytes,
    namespace,
    on_device_of,
    row_norms,
    solve_triangular,
    tiles,
)
from ..expansion import Expansion
from ..kernels import Kernel, NotPSDError, Precomputed
from ..kernels import points as pts
from ..space import Landmarks, refute_by_sample
from .problem import Given, LeaveOneOut, RidgeProblem
from .regularized import (
    STEP,
    factor_shifted,
    inverse_diagonal,
    solve_factored,
    solve_regularized,
    without_mean,
)
from .ridge_path import ROWS_FOR_SEARCH, choose_on_matrix, choose_on_rows, is_chosen_before
from .solver import CannotSolve, Cost, LeftOut, RidgeSolution, Solver, TooLarge
from .system import ResidualRounding, column_norms, function_norms, scattered

# Points whose standard deviation is worth a solve of its own, and training rows that certify an
# upper value for all others.
FEW, WITNESSES = 64, 2000
# Nearest rows from which the leave-one-out error of a row is computed, and kernel values held at
# once while they are looked for.
NEIGHBOURS, HELD_VALUES = 400, 1 << 24

_DualKind = TypeVar("_DualKind", bound="DualSolution")


class DualSolver(Solver):
    """A solver for one coefficient per row, with the kernel itself.

    iterates : whether it divides by alpha
    quick : whether it competes with others; it then gives up where it would take too long
    """

    iterates = True

    def __init__(self, quick: bool = False):
        self.quick = quick

    def refusal(self, problem: RidgeProblem, asked: bool = True) -> str | None:
        smallest = problem.alpha.smallest
        if not problem.training.is_held:
            return (
                "it needs all rows at once, and these are chunked: use form='iterative', which "
                "gathers them, or form='primal'"
            )
        if problem.map is not None:
            return (
                "it solves with the kernel itself and has no use for a KernelMap: pass its kernel, "
                "or form='primal'"
            )
        if self.iterates and not smallest > 0:
            return (
                f"it needs alpha > 0, got {smallest:g}: without a penalty neither the equations "
                "nor their certificate hold in floating point. Use form='dual'"
            )
        if not asked and not problem.kernel.is_proven:
            return "the validity of this kernel is not proven: the map tests it"
        return self._refusal(problem, asked)

    @abstractmethod
    def _refusal(self, problem: RidgeProblem, asked: bool) -> str | None:
        """Further reasons."""

    def _replaces_a_factor(self, problem: RidgeProblem) -> bool:
        return self.quick and Direct().too_large(problem) is None

    @contextmanager
    def _competing(self) -> Iterator[None]:
        """One of several that compete makes room for the next where memory is short."""
        try:
            yield
        except MemoryLimitError as error:
            raise (CannotSolve(str(error)) if self.quick else error) from None


@dataclass(frozen=True)
class _Dual:
    """Coefficients of the rows and an intercept, bounds of their errors, and u with A u = 1."""

    W: Any
    b: Any
    error_norms: Any = None
    intercept_errors: Any = None
    ones: Any = None

    def solution(
        self,
        kind: type[_DualKind],
        problem: RidgeProblem,
        S: Any,
        alphas: np.ndarray,
        name: str,
        **known: Any,
    ) -> _DualKind:
        """A solution of this kind; S are the rows that have a weight."""
        weights, kept = problem.weights, problem.kept
        prediction = known.pop("prediction", None)
        return kind(
            Expansion(problem.kernel, S, self.W, self.b) if prediction is None else prediction,
            alphas,
            name,
            self.error_norms,
            self.intercept_errors,
            weights=None if weights is None else on_device_of(pts.some(weights, kept), self.W),
            dual=scattered(self.W, kept, problem.n),
            ones=self.ones,
            **known,
        )


@dataclass(frozen=True)
class RightSides:
    """The columns t for which A v = t is solved: targets and, for an intercept, ones.

    With A u = 1 the intercept is b = 1'v / 1'u, and the coefficients are v - b u. Bounds e_u, e_v
    of the errors sqrt(s'A^-1 s) carry over: |1'A^-1 s| <= sqrt(1'u) sqrt(s'A^-1 s) by Cauchy and
    Schwarz, so that |b - b*| <= (e_v + |b| e_u) / sqrt(1'u), and
    |f - f*| <= e_v + |b| e_u + |b - b*| |u|.
    """

    columns: Any
    penalties: np.ndarray  # one per column
    which: np.ndarray | None = None  # of the columns of ones, for each target; None: no intercept

    @classmethod
    def of(cls, T: Any, alphas: np.ndarray, intercept: bool) -> "RightSides":
        if not intercept:
            return cls(T, alphas)
        different, which = np.unique(alphas, return_inverse=True)
        ones = [namespace(T).ones_like(T[:, :1])] * len(different)
        columns = namespace(T).concat([T, *ones], axis=1)
        return cls(columns, np.concatenate([alphas, different]), which)

    def solved(self, X: Any, errors: Any, lengths: Any, energy: float = 1.0) -> "_Dual":
        """Ridge with its intercept, from solutions X, bounds of |f - f*|, and the |f|.

        energy : times `errors` bounds sqrt(s'A^-1 s) of the residuals s, which can be larger than
            |f - f*|: by the factor 2 where |s| / (2 sqrt(alpha)) is the bound
        """
        xp, which = namespace(X), self.which
        if which is None:
            return _Dual(X, xp.zeros_like(X[0, :]), on_device_of(errors, X))
        t = len(which)
        v, u = X[:, :t], X[:, t:]
        totals = as_numpy(xp.sum(u, axis=0)).astype(np.float64)
        b = xp.sum(v, axis=0) / on_device_of(totals[which], v)
        e_v, e_u = errors[:t], errors[t:][which]
        # 1'u is known to sqrt(1'u) e_u only: the smallest value that this leaves.
        least = np.maximum(np.sqrt(np.maximum(totals, 0.0))[which] - energy * e_u, 0.0)
        with np.errstate(all="ignore"):  # an infinite bound is a bound
            of_v = e_v + np.abs(as_numpy(b)) * e_u
            of_b = energy * of_v / least
            of_f = of_v + of_b * (lengths[t:][which] + e_u)
        of_f, of_b = (on_device_of(np.where(np.isnan(e), np.inf, e), v) for e in (of_f, of_b))
        return _Dual(v - pts.take(u.T, which).T * b[None, :], b, of_f, of_b, u)


@dataclass(frozen=True, eq=False)
class DualSolution(RidgeSolution):
    """A = K + alpha N, N the inverse weights; solvers know its inverse."""

    # u with A u = 1, one column per different penalty, where there is an intercept
    ones: Any = None

    @abstractmethod
    def _ways(self, Z: Any) -> list[tuple[np.ndarray, Callable[[Any, float], Any] | None]]:
        """(points, how k_z' A^-1 k_z is found there); None: from below, by some of the rows."""

    def variance(self, points: Any, diag: Any = None) -> Any:
        Z = self.prediction.fitted(points)
        ways, layout = self._ways(Z), self.kernel.layout
        own = layout.own_values(self.kernel, Z, diag, self.prediction.W)
        upper = sum(len(where) for where, exact in ways if exact is None)
        if upper:
            warnings.warn(
                f"the standard deviations of {upper} points are certified upper values, from some "
                f"of the training rows; for exact ones pass at most {FEW} points at a time.",
                UserWarning,
                stacklevel=5,
            )

        def of(alpha: float) -> Any:
            explained = np.empty(Z.shape[0])
            for where, exact in ways:
                if len(where):
                    explained[where] = as_numpy((exact or self._by_some)(pts.take(Z, where), alpha))
            rest = layout.unexplained(own, on_device_of(explained, own), diag)
            return rest + self._of_mean(Z, alpha)

        return self.per_target(of)

    def left_out(self, rows: np.ndarray | None = None, share: Any = None) -> LeftOut:
        W = as_numpy(self.prediction.W)
        some = np.arange(len(W)) if rows is None else np.asarray(rows)
        lefts = as_numpy(self.per_target(lambda alpha: self._left(alpha, some)))
        residuals = self.alphas[None, :] * self._noise(some)[:, None] * W[some]
        return LeftOut.of(residuals, lefts, share)

    def _inverse_diagonal(self, alpha: float, rows: np.ndarray) -> np.ndarray:
        """(A^-1)_jj of some rows, from the nearest rows of each: at most the exact value.

        1 / (A^-1)_jj is the variance of observation j given all others. Given some of them it is
        larger: leave-one-out errors come out too large, never too small. Where many rows are asked
        for, one factor of all costs less, and is exact.
        """
        kernel, X = self.kernel, self.prediction.S
        n, found = X.shape[0], np.empty(len(rows))
        if n**3 <= len(rows) * NEIGHBOURS**3 and matrix_bytes(n, 3) <= current().limit(X):
            K = tiles.evaluate(kernel, X)
            C = factor_shifted(K, alpha, on_device_of(self._noise(np.arange(n)), K))
            if C is not None:
                return inverse_diagonal(C, rows)
        noise, lengths = alpha * self._noise(np.arange(n)), as_numpy(kernel.diagonal(X)) ** 0.5
        m, block = min(n, NEIGHBOURS), max(1, HELD_VALUES // n)
        for start in range(0, len(rows), block):
            some = rows[start : start + block]
            near = np.abs(as_numpy(tiles.evaluate(kernel, pts.take(X, some), X)))
            near /= np.maximum(lengths, np.finfo(float).tiny)
            near[np.arange(len(some)), some] = np.inf  # the row itself comes first
            nearest = np.argpartition(-near, m - 1, axis=1)[:, :m] if m < n else None
            for i, j in enumerate(some):
                these = np.arange(n) if nearest is None else nearest[i]
                # Last in the order, the row's entry of the inverse is that of the factor alone.
                order = np.append(these[these != j], j)
                K = tiles.evaluate(kernel, pts.take(X, order))
                C = factor_shifted(K, 1.0, on_device_of(noise[order], K))
                # Singular to rounding: what is known without any neighbour.
                square = K[-1, -1] + noise[j] if C is None else C[-1, -1] ** 2
                found[start + i] = 1 / float(square)
        return found

    def _noise(self, rows: np.ndarray) -> np.ndarray:
        return np.ones(len(rows)) if self.weights is None else 1 / as_numpy(self.weights).take(rows)

    def _left(self, alpha: float, rows: np.ndarray) -> np.ndarray:
        """1 - leverage: alpha n_j (A^-1)_jj, less the part in the mean."""
        inverse = self._inverse_diagonal(alpha, rows)
        if self.ones is not None:
            u = as_numpy(self._unit(alpha))
            inverse = without_mean(inverse, u[rows], float(u.sum()))
        left: np.ndarray = alpha * self._noise(rows) * inverse
        return left

    def _unit(self, alpha: float) -> Any:
        """u with A u = 1."""
        return self.ones[:, int(np.flatnonzero(np.unique(self.alphas) == alpha)[0])]

    def _of_mean(self, Z: Array, alpha: float) -> Any:
        """Variance that an unknown mean adds: (1 - u'k_z)^2 / 1'u."""
        if self.ones is None:
            return 0.0
        S = self.prediction.S
        u = on_device_of(self._unit(alpha), S, dtype=float)
        told = tiles.multiply(self.kernel, Z, S, u[:, None])[:, 0]
        return (1 - told) ** 2 / namespace(u).sum(u)

    def _by_solves(self, Z: Array, alpha: float) -> Any:
        """k_z' a for the a whose targets are k_z: one more right-hand side per point."""
        S = self.prediction.S
        K_Z = tiles.multiply(self.kernel, S, Z, on_device_of(np.eye(Z.shape[0]), S, dtype=float))
        found = self._coefficients(K_Z, np.full(Z.shape[0], alpha))
        return namespace(K_Z).sum(K_Z * found, axis=0)

    def _coefficients(self, T: Array, alphas: np.ndarray) -> Any:
        """The coefficients of other targets, without an intercept."""
        raise NotImplementedError

    def _by_some(self, Z: Array, alpha: float) -> Any:
        """At most k_z' A^-1 k_z: some of the rows know less than all of them."""
        S = self.prediction.S
        some = evenly(S.shape[0], WITNESSES)
        witnesses = pts.take(S, some)
        K = tiles.evaluate(self.kernel, witnesses)
        C = factor_shifted(K, alpha, on_device_of(self._noise(some), K))
        half = solve_triangular(C, tiles.evaluate(self.kernel, Z, witnesses).T)
        return row_norms(half.T, namespace(K))


# --- by one factorisation -------------------------------------------------------------------------


class Direct(DualSolver):
    """By the Cholesky factor of K + alpha N, N the inverse weights: n x n numbers."""

    name = "direct"
    iterates = False

    def _refusal(self, problem: RidgeProblem, asked: bool) -> str | None:
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
        counts = {"values": n**2 / 2, "operations": n**3 / 3, "passes": 6 * n**2}
        # The only factor may stand in the place of K; those of a Gram matrix are kept.
        factors = len(np.unique(rule.values)) if isinstance(rule, Given) else 1
        fits = matrix_bytes(n, 2) <= problem.limit or not is_numpy(problem.training.points)
        copies = 2.0 if fits or factors > 1 else 1.1
        given = problem.kernel.layout.given_matrices(problem.training.points)
        copies += (factors - 1) * len(given)
        if isinstance(rule, LeaveOneOut) and rule.near is None:
            copies = 6  # eigenvectors, with what LAPACK needs for them, and their scaled copy
            counts["eigen"] = n**3
        elif isinstance(rule, LeaveOneOut):
            counts["operations"] += 8 * min(n, ROWS_FOR_SEARCH) ** 3 / 3
        return Cost.of(matrix_bytes(n, copies), **counts)

    def solve(self, problem: RidgeProblem) -> "DirectSolution":
        rows, kernel = problem.with_weight, problem.kernel
        is_gram = not kernel.layout.on_data
        choice = path = None
        if is_chosen_before(rows):
            choice = choose_on_rows(rows)
        K = tiles.evaluate(kernel, rows.training.points)
        T = on_device_of(rows.T, K)
        w = None if rows.weights is None else on_device_of(rows.weights, K)
        if choice is None and not isinstance(rows.alpha, Given):
            choice, path = choose_on_matrix(K, T, w, rows)
        if kernel.is_proven:
            path = None  # several matrices of the size of K are free for the factor
        alphas, found, is_refuted = rows.alphas(choice), None, not kernel.is_proven and _refuted(K)
        if path is None or not path.is_indefinite:
            try:
                found = _solved(rows, K, T, w, alphas, fixed=path is not None)
            except CannotSolve:
                if path is None:
                    raise
        if found is not None:
            (solved, alphas, factors), path = found, None
            if is_refuted:  # there is no space whose norm would bound anything
                solved = replace(solved, error_norms=None, intercept_errors=None)
        elif path is not None:  # it has set the negative eigenvalues of a similarity to zero
            (W, b), ones, factors = path.duals(alphas[0]), None, {}
            if rows.intercept and not is_gram:  # where leave-one-out errors and variances are known
                C = factor_shifted(K, alphas[0], None if w is None else 1 / w)
                ones = None if C is None else solve_factored(C, namespace(K).ones_like(K[:, :1]))
            solved = _Dual(W, b, ones=ones)
        S = kernel.landmarks(problem.training.points, problem.kept)
        known = None
        if is_gram and factors:  # the matrix cannot be made again
            known = {alpha: Landmarks(kernel, S, C, problem.kept) for alpha, C in factors.items()}
        solution = solved.solution(
            DirectSolution, problem, S, alphas, self.name, choice=choice, factors=known
        )
        if path is not None:
            solution.keep({"misses": path.misses(alphas[0])})
        if known is None:
            solution.keep(factors)
        return solution


def _refuted(K: Array) -> bool:
    """Tell whether some of the rows show that these are not the values of a kernel."""
    try:
        refute_by_sample(Precomputed(), K)
    except NotPSDError:
        return True
    return False


def _solved(
    problem: RidgeProblem,
    K: Array,
    T: Array,
    w: Array | None,
    alphas: np.ndarray,
    *,
    fixed: bool = False,
) -> tuple[_Dual, np.ndarray, dict[float, Any]]:
    """(coefficients with their certified errors, the penalties that were used, factors).

    fixed : whether a penalty that is too small is refused, as it is where it was given
    """
    one, noise = len(np.unique(alphas)) == 1, None if w is None else 1 / w
    chosen = float(alphas.max())
    in_place = is_numpy(K) and one and matrix_bytes(K.shape[0], 2) > problem.limit
    kernel, rows = problem.kernel, problem.training.points
    keep = one or bool(kernel.layout.given_matrices(rows))
    while True:
        right = RightSides.of(T, alphas, problem.intercept)
        B, penalties = right.columns, right.penalties
        try:
            how = {"in_place": in_place, "keep": keep}
            X, left, factors = solve_regularized(K, B, penalties, noise, **how)
            break
        except CannotSolve:
            if fixed or isinstance(problem.alpha, Given) or in_place:
                raise
            alphas = STEP * alphas  # the next penalty that is not singular to rounding
    given = isinstance(problem.alpha, LeaveOneOut) and problem.alpha.candidates is not None
    if given and alphas.max() > chosen:
        warnings.warn(
            f"alpha={chosen:.2g} has the smallest errors, but is lost in rounding: "
            f"{alphas.max():.2g} is used. Give larger alphas, or a KernelMap as the kernel.",
            stacklevel=2,
        )
    if in_place:  # the factor stands where K was
        shift = on_device_of(penalties, X)[None, :] * (X if w is None else X / w[:, None])
        left = B - MatrixProduct.of(kernel, rows)(X) - shift
    solved = right.solved(X, *certified(kernel, rows, X, left, B, penalties, w), energy=2.0)
    return solved, alphas, factors


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
        bound = (column_norms(s) + error) / (2 * np.sqrt(alphas)) + rounding.of_value(b)
    valid = (alphas > 0) & np.isfinite(bound)
    return np.where(valid, bound, np.inf), function_norms(b, T, s, alphas)


@dataclass(frozen=True, eq=False)
class DirectSolution(DualSolution):
    """Factors are made again when they are asked for."""

    factors: dict[float, Landmarks] | None = None  # of a Gram matrix, which cannot be made again

    def _factor(self, alpha: float) -> Landmarks:
        """As a space of its own: |C^-1 k_z|^2 is what the samples explain of k(z, z)."""
        if self.factors is not None:
            return self.factors[alpha]
        S, noise = self.prediction.S, None if self.weights is None else 1 / self.weights

        def make() -> Any:
            self.kernel.layout.require_data(
                "form='dual' has no standard deviations here: the matrix has negative eigenvalues, "
                "or alpha is lost in its rounding. Use KernelMap('precomputed', indefinite='clip') "
                "as the kernel."
            )
            K = tiles.evaluate(self.kernel, S)
            return factor_shifted(K, alpha, noise, in_place=is_numpy(K))

        return Landmarks(self.kernel, S, self.cached(alpha, make), np.arange(S.shape[0]))

    def _ways(self, Z: Array) -> list[tuple[np.ndarray, Callable[[Any, float], Any] | None]]:
        return [(np.arange(Z.shape[0]), lambda Z, alpha: self._factor(alpha).squared_norms(Z))]

    def _inverse_diagonal(self, alpha: float, rows: np.ndarray) -> np.ndarray:
        return inverse_diagonal(self._factor(alpha).C, rows)
