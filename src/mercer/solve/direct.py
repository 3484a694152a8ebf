"""Direct: (K + alpha N) a = t by one factorisation of the kernel matrix ([KERNELS] (7))."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..engine import tiles
from ..engine.arrays import (
    as_numpy,
    cholesky,
    eps_of,
    evenly,
    is_numpy,
    namespace,
    on_device_of,
    put,
    row_norms,
    solve_triangular,
)
from ..engine.in_place import cholesky_in_place
from ..engine.line_search import line_search
from ..engine.memory import matrix
from ..engine.products import exact_product
from ..expansion import Expansion
from ..kernels import points as pts
from ..space.certificate import magnitudes
from ..space.landmarks import Landmarks
from .problem import Choice, Given, LeaveOneOut, RidgeProblem
from .ridge_path import RidgePath, best_alpha
from .solution import (
    Border,
    LeftOut,
    RidgeSolution,
    as_fitted,
    left_out_of,
    own_similarities,
    per_target,
    scattered,
)
from .solver import EIGEN, OPERATION, VALUE, CannotSolve, Cost, Solver, TooLarge

# Ten times the smallest alpha that works is tried next when an error message looks for one.
STEP = 10.0
# Rows whose kernel matrix is decomposed, or factored again and again, to choose alpha where all
# are too many; and rows whose errors decide a search.
ROWS_FOR_ALPHA, ROWS_FOR_SEARCH, JUDGED_ROWS = 3000, 4000, 1000
# Values of right-hand sides that are solved for at once.
HELD_VALUES = 1 << 23


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
        seconds, copies = n**2 / 2 * VALUE + n**3 / 3 * OPERATION, _copies(problem)
        if isinstance(problem.alpha, LeaveOneOut):
            if problem.alpha.near is None:
                seconds += n**3 * EIGEN
            else:
                seconds += 8 * min(n, ROWS_FOR_SEARCH) ** 3 / 3 * OPERATION
        return Cost(seconds, int(matrix(n, copies)))

    def solve(self, problem: RidgeProblem) -> "DirectSolution":
        training, kept = problem.training, problem.kept
        kernel, points = training.kernel, training.points
        rows, S = pts.take(points, kept), kernel.landmarks(points, kept)
        if training.is_gram:
            K = kernel.against(S)(rows)
        else:
            K = tiles.evaluate(kernel, rows, n_jobs=training.resources.n_jobs)
        T = on_device_of(pts.take(problem.T, kept), K)
        w = None if problem.weights is None else on_device_of(problem.weights[kept], K)
        alphas, choice, path = self._penalties(problem, K, T, w)
        if path is not None and not kernel.is_proven:
            # A similarity that may have negative eigenvalues, which the path has set to zero.
            W, b = path.duals(choice.alpha)
            solved = Solved(W, b)
        else:
            solved = self._solved(problem, rows, K, T, w, alphas, choice is not None)
            alphas = solved.alphas
        solution = DirectSolution(
            Expansion(kernel, S, solved.W, solved.b),
            alphas,
            self.name,
            solved.error_norms,
            solved.intercept_errors,
            choice=choice,
            weights=w,
            dual=scattered(solved.W, kept, points.shape[0]),
            intercept=problem.intercept,
        )
        if path is not None and not kernel.is_proven:
            solution.cached("misses", lambda: path.misses(choice.alpha))
        if training.is_gram and solved.factors:  # the matrix cannot be made again
            made = {f.alpha: Landmarks(kernel, S, f.C, kept) for f in solved.factors}
            return replace(solution, factors=made)
        for factor in solved.factors:
            solution.cached(factor.alpha, lambda factor=factor: factor.C)
        return solution

    def _solved(self, problem, rows, K, T, w, alphas, searched) -> "Solved":
        """Coefficients, intercept and their certified errors."""
        limit, noise = problem.training.resources.limit(K), None if w is None else 1 / w
        in_place = is_numpy(K) and len(np.unique(alphas)) == 1 and matrix(K.shape[0], 2) > limit
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
        W, b, _, totals = border.split(X)
        norms, of_intercept = border.errors(norms, sizes, b, totals)
        errors = (on_device_of(norms, X), on_device_of(of_intercept, X))
        return Solved(W, b, alphas, *errors, factors)

    def _penalties(self, problem, K, T, weights):
        """(one alpha per target, how it was chosen, the path that chose it)."""
        if isinstance(problem.alpha, Given):
            return np.asarray(problem.alpha.values, dtype=float), None, None
        small = problem.some(problem.kept)
        path = None
        if problem.alpha.near is not None and problem.alpha.candidates is None:
            if K.shape[0] > ROWS_FOR_SEARCH:
                choice = choose_on_rows(small)
            else:
                choice = search(K, T, weights, small.alpha, small.intercept)
        else:
            path = path_of_matrix(K, T, weights, small)
            choice = choose(path, small.alpha)
        return np.full(T.shape[1], choice.alpha), choice, path

    def too_large(self, problem):
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
    fits = matrix(n, 2) <= limit
    return 1.1 if not fits and is_numpy(problem.training.points) else 2


def _is_singular(problem):
    """Whether the kernel has fewer dimensions than rows, and alpha is below the rounding of K."""
    few = problem.dimension < (problem.training.n or 0)
    return few and problem.alpha.smallest <= 1e-6 * problem.trace


@dataclass(frozen=True)
class Solved:
    """The solution of the equations."""

    W: Any
    b: Any
    alphas: Any = None
    error_norms: Any = None
    intercept_errors: Any = None
    factors: Any = ()


# --- the equations --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Factor:
    """The Cholesky factor of A + alpha N."""

    alpha: float
    C: Any


def solve_regularized(A, B, alphas, noise=None, *, in_place=False) -> tuple[Any, Any, list[Factor]]:
    """((A + alpha N)^-1 B, residuals, factors) with one alpha per column of B.

    N is a diagonal, None for the identity. `in_place`: the factor overwrites A, for one alpha, and
    residuals are None.
    """
    xp = namespace(A)
    columns: dict[int, Any] = {}
    left: dict[int, Any] = {}
    factors = []
    for alpha in np.unique(alphas):
        mine = np.flatnonzero(alphas == alpha)
        part = B if len(mine) == B.shape[1] else xp.stack([B[:, int(j)] for j in mine], axis=1)
        last = in_place and len(mine) == B.shape[1]
        C, solved, residual = _solution(A, part, float(alpha), noise, last)
        if solved is None:
            at_least = "" if last else f" of at least {_safe(A, part, float(alpha), noise):.1g}"
            raise CannotSolve(
                f"alpha={alpha:g} is too small for this kernel: the equations are singular to "
                f"rounding. Use an alpha{at_least}."
            )
        columns |= {int(j): solved[:, i] for i, j in enumerate(mine)}
        left |= {int(j): residual[:, i] for i, j in enumerate(mine)} if residual is not None else {}
        factors.append(Factor(float(alpha), C))

    def joined(parts):
        return xp.stack([parts[j] for j in range(B.shape[1])], axis=1)

    return joined(columns), joined(left) if left else None, factors


def factor_shifted(A, alpha, noise=None, *, in_place=False):
    """The Cholesky factor of A + alpha N, or None where it is singular to rounding."""
    xp, diagonal = namespace(A), np.arange(A.shape[0])
    own = xp.linalg.diagonal(A)
    shifted = own + alpha * (xp.ones_like(own) if noise is None else noise)
    if in_place:
        return cholesky_in_place(put(A, diagonal, diagonal, shifted))
    return cholesky(put(A + 0, diagonal, diagonal, shifted))


def _solution(A, B, alpha, noise, in_place=False):
    """(factor, solution, residual), all None where A + alpha N is singular to rounding."""
    C = factor_shifted(A, alpha, noise, in_place=in_place)
    if C is None:
        return None, None, None
    X = solve_triangular(C, solve_triangular(C, B), transpose=True)
    if in_place:
        return C, X, None
    # A factorisation can succeed on rounding alone.
    xp = namespace(A)
    residual = B - A @ X - alpha * (X if noise is None else noise[:, None] * X)
    worst = float(xp.max(xp.abs(residual)))
    solves = worst <= (1e-3 if "64" in str(A.dtype) else 0.1) * float(xp.max(xp.abs(B)))
    return (C, X, residual) if solves else (None, None, None)


def _safe(A, B, alpha, noise):
    """An alpha with which the equations can be solved: tried, not guessed."""
    xp = namespace(A)
    trace = float(xp.sum(xp.linalg.diagonal(A)))
    alpha = max(STEP * alpha, trace * eps_of(A))
    if not alpha > 0:  # no row is anywhere: any penalty will do
        return 1.0
    while _solution(A, B, alpha, noise)[1] is None and alpha < max(trace, 1.0):
        alpha *= STEP
    return alpha


def certified(kernel, rows, X, residuals, T, alphas, noise) -> tuple[np.ndarray, np.ndarray]:
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

    def norm(V):
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
class DirectSolution(RidgeSolution):
    """One coefficient per row; factors are made again when they are asked for.

    factors : of a Gram matrix, which cannot be made again
    """

    intercept: bool = False
    factors: dict[float, Landmarks] | None = None

    @property
    def _noise(self):
        return None if self.weights is None else 1 / self.weights

    def _factor(self, alpha) -> Landmarks:
        """As a space of its own: |C^-1 k_z|^2 is what the samples explain of k(z, z)."""
        if self.factors is not None:
            return self.factors[alpha]
        S = self.prediction.S

        def make():
            if self.kernel.kind == "gram":
                raise ValueError("the kernel matrix was not kept: fit again.")
            return factor_shifted(tiles.evaluate(self.kernel, S), alpha, self._noise)

        return Landmarks(self.kernel, S, self.cached(alpha, make), np.arange(S.shape[0]))

    def _ones(self, alpha) -> tuple[Any, float]:
        """(u, 1'u) with A u = 1."""
        C = self._factor(alpha).C
        ones = namespace(C).ones_like(C[:, :1])
        u = solve_triangular(C, solve_triangular(C, ones), transpose=True)
        return u, float(namespace(C).sum(u))

    def variance(self, points: Any, diag: Any = None) -> Any:
        points = as_fitted(self.prediction, points)
        own = own_similarities(self.kernel, points, diag, self.prediction.W)

        def of_alpha(alpha):
            left = own - self._factor(alpha).squared_norms(points)
            if not self.intercept:
                return left
            u, total = self._ones(alpha)
            zero = namespace(u).zeros_like(u[0, :])
            told = Expansion(self.kernel, self.prediction.S, u, zero)(points)[:, 0]
            return left + (1 - told) ** 2 / total

        return per_target(self.alphas, of_alpha)

    def left_out(self, rows: np.ndarray | None = None, share: Any = None) -> LeftOut:
        W = as_numpy(self.prediction.W)
        some = np.arange(len(W)) if rows is None else np.asarray(rows)
        noise = np.ones(len(W)) if self.weights is None else 1 / as_numpy(self.weights)
        noise, lefts, columns = noise[some], {}, []
        for j, alpha in enumerate(self.alphas):
            if alpha not in lefts:
                C = self._factor(float(alpha)).C
                inverse = inverse_diagonal(C, some)
                if self.intercept:
                    u, total = self._ones(float(alpha))
                    inverse = without_mean(inverse, as_numpy(u)[some, 0], total)
                lefts[alpha] = alpha * noise * inverse
            columns.append(
                left_out_of(alpha * noise[:, None] * W[some, j : j + 1], lefts[alpha], share)
            )
        residuals = np.concatenate([part.residuals for part in columns], axis=1)
        return LeftOut(residuals, columns[0].left)


def without_mean(inverse: np.ndarray, u: np.ndarray, total: float) -> np.ndarray:
    """The diagonal of A^-1 - u u' / (1'u)."""
    return np.maximum(inverse - u**2 / total, 1e-3 * inverse)


def inverse_diagonal(C: Any, rows: np.ndarray) -> np.ndarray:
    """(A^-1)_jj = |C^-1 e_j|^2 for some rows, a block of right-hand sides at a time."""
    xp, n = namespace(C), C.shape[0]
    found, block = np.empty(len(rows)), max(64, HELD_VALUES // n)
    for a in range(0, len(rows), block):
        some = rows[a : a + block]
        E = np.zeros((n, len(some)), order="F")
        E[some, np.arange(len(some))] = 1.0
        found[a : a + block] = as_numpy(row_norms(solve_triangular(C, on_device_of(E, C)).T, xp))
    return found


# --- the penalty ----------------------------------------------------------------------------------


def path_of_matrix(K: Any, T: Any, weights: Any, problem: RidgeProblem) -> RidgePath:
    rule = problem.alpha
    assert isinstance(rule, LeaveOneOut)
    options = {"share": rule.share, "spread": rule.spread, "intercept": problem.intercept}
    return RidgePath.of_matrix(K, T, weights, **options)


def choose(path: RidgePath, rule: LeaveOneOut) -> Choice:
    """The candidate with the smallest leave-one-out error."""
    if rule.candidates is None:
        alpha, error = path.best()
        return Choice(alpha, np.array([alpha]), np.array([error]), path.n)
    alphas = np.asarray(rule.candidates, dtype=float) * (
        (path.scale or 1.0) if rule.relative else 1
    )
    errors = path.errors(alphas, rule.importance)
    best = best_alpha(alphas, errors)
    return Choice(float(alphas[best]), alphas, errors, path.n)


def choose_on_rows(problem: RidgeProblem) -> Choice:
    """On as many rows as their kernel matrix is quickly decomposed, spread over all."""
    rule, kept = problem.alpha, problem.kept
    assert isinstance(rule, LeaveOneOut)
    searched = rule.near is not None and rule.candidates is None
    some = kept[evenly(len(kept), ROWS_FOR_SEARCH if searched else ROWS_FOR_ALPHA)]
    small = problem.some(some)
    points = small.training.points
    K = points if small.training.is_gram else tiles.evaluate(problem.kernel, points)
    T = on_device_of(small.T, K)
    weights = None if small.weights is None else on_device_of(small.weights, K)
    if searched:
        return search(K, T, weights, small.alpha, problem.intercept)
    return choose(path_of_matrix(K, T, weights, small), small.alpha)


def search(K: Any, T: Any, weights: Any, rule: LeaveOneOut, intercept: bool) -> Choice:
    """By exact errors, from factor to factor, beginning at `near`.

    No penalty is tried below the rounding of K, eps times its trace.
    """
    xp, n = namespace(K), K.shape[0]
    start = rule.near or 1.0
    least = float(xp.finfo(K.dtype).eps) * float(xp.sum(xp.linalg.diagonal(K)))
    judged = evenly(n, JUDGED_ROWS)

    def part(values, default):
        return np.full(len(judged), default) if values is None else as_numpy(values)[judged]

    w, spread = part(weights, 1.0), part(rule.spread, 0.0)
    share = None if rule.share is None else part(rule.share, 1.0)
    tried: dict[float, np.ndarray] = {}

    def error(x):
        alpha = max(start * math.exp(x), least)
        if alpha not in tried:
            tried[alpha] = np.full(len(judged), math.inf)
            found = _judged(K, T, weights, alpha, intercept, judged, share)
            if found is not None and np.isfinite(found.residuals).all():
                losses = w * (found.residuals**2).sum(axis=1) + spread / found.left**2
                tried[alpha] = losses / w.mean()
        return float(tried[alpha].mean())

    best = max(start * math.exp(line_search(error, math.log(4))), least)
    while not np.isfinite(tried[best]).all():  # singular to rounding: the next that is not
        best *= STEP
        error(math.log(best / start))
        if best not in tried:
            best = max(tried)
    alphas = np.array(sorted(tried))
    errors = np.array([tried[a].mean() for a in alphas])
    return Choice(best, alphas, errors, n, tried[best])


def _judged(K, T, weights, alpha, intercept, rows, share):
    """LeftOut of some rows for one penalty; None where K + alpha N is singular to rounding."""
    xp, noise = namespace(K), None if weights is None else 1 / weights
    C = (
        factor_shifted(K + 0, alpha, noise, in_place=True)
        if is_numpy(K)
        else (factor_shifted(K, alpha, noise))
    )
    if C is None:
        return None
    border = Border(T, np.full(T.shape[1], alpha)) if intercept else None
    X = solve_triangular(C, solve_triangular(C, border.T if border else T), transpose=True)
    inverse = inverse_diagonal(C, rows)
    if border:
        X, _, u, totals = border.split(X)
        inverse = without_mean(inverse, as_numpy(u)[rows, 0], float(totals[0]))
    own = (xp.ones_like(X[:, 0]) if noise is None else noise) * alpha
    own = as_numpy(own)[rows]
    return left_out_of(own[:, None] * as_numpy(X)[rows], own * inverse, share)
