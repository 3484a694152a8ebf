"""RidgePath: ridge for every penalty from one decomposition, judged by leave-one-out.

With rows Q of coordinates in a basis where Q'Q is diagonal, D, the error at a left-out row is
(t_i - f_i) / (1 - h_i), h_i = sum_j Q_ij^2 / (D_j + alpha). Where the mean of the rows is taken
off, row i has a part m_i in it, and its leverage is h_i + m_i (MATH.md section 9). Without m_i the
error of a full-rank kernel tends to zero with alpha, and the smallest alpha always wins.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine import (
    Array,
    as_numpy,
    current,
    eigh,
    eps_of,
    evenly,
    gram,
    is_numpy,
    line_search,
    matrix_bytes,
    namespace,
    on_device_of,
    positive_part,
    row_norms,
    solve_triangular,
    tiles,
)
from ..fit import added_up
from ..kernels import points as pts
from ..rows import Spread
from .problem import SAMPLE, Choice, LeaveOneOut, RidgeProblem
from .regularized import (
    STEP,
    factor_shifted,
    inverse_diagonal,
    jittered_factor,
    left_by,
    solve_factored,
    solve_regularized,
    without_mean,
)
from .solver import LeftOut

# Values of errors held at once, for one penalty and one target each.
_HELD_VALUES = 1 << 24
# The search for alpha begins at these decades, relative to the mean of k(x, x).
_DECADES = np.arange(-6.0, 2.0)
# The largest penalty wins among those whose errors differ by less than this factor: rounding must
# not choose if the error does not depend on the penalty.
_EQUALLY_GOOD = 1 + 1e-6
# Rows whose kernel matrix is decomposed, or factored again and again, to choose alpha where all
# are too many; and rows whose errors decide a search.
ROWS_FOR_ALPHA, ROWS_FOR_SEARCH, JUDGED_ROWS = 3000, 4000, 1000
# Square arrays that a decomposition holds at once, its workspace included.
_MATRICES = 5


def best_alpha(alphas: Any, errors: np.ndarray) -> int:
    """Position of the alpha with the smallest error; the largest alpha where several are equal."""
    close = errors <= errors.min() * (1 + 1e-12)
    return int(max(np.flatnonzero(close), key=lambda i: alphas[i]))


@dataclass(eq=False)
class RidgePath:
    """Ridge on coordinates, and what it predicts of each row without having seen it.

    With s = alpha / (D + alpha), t - f = Q (s / D * Q't) + (t - Q D^-1 Q't), and likewise
    1 - h = Q^2 (s / D) + (1 - m - Q^2 / D): no difference of nearly equal numbers, however small
    alpha is. The second terms are what no direction explains; at full rank there is nothing, and
    what is computed of them is rounding.
    """

    Q: Any  # n x r coordinates with Q'Q = diag(values), the rows times the roots of their weights
    values: Any  # r numbers, largest first
    T: Any  # n x t targets
    root: Any = None  # n x 1 roots of the weights; None without weights
    mean: Any = None  # of the rows, where it is taken off
    offset: Any = None  # of the targets
    # n numbers m, if weighted means are taken off the rows and their targets; or None
    in_mean: Any = None
    share: Any = None  # n numbers, the part of a row's weight that is left out; None for all of it
    # n sums of squares of targets around T, within rows of several observations; or None
    spread: Any = None
    offsets: Any = None  # n x t numbers that are added to every error; or None
    is_indefinite: bool = False  # whether negative eigenvalues were set to zero, beyond rounding

    def __post_init__(self) -> None:
        Q, values, in_mean = self.Q, self.values, self.in_mean
        xp, self.n = namespace(Q), Q.shape[0]
        T = self.T if self.offset is None else self.T - self.offset[None, :]
        self.T = T if self.root is None else T * self.root
        self.share = None if self.share is None else self.share[:, None]
        self.spread = None if self.spread is None else self.spread[:, None]
        self.projected = gram(Q, self.T)
        self.scale = float(xp.sum(values)) / self.n
        # Smaller eigenvalues are rounding, and a mean that was taken off leaves one direction less.
        eps, most = eps_of(values), self.n - (in_mean is not None)
        floor = max(Q.shape) * eps * (max(float(values[0]), 0.0) if values.shape[0] else 0.0)
        rank = min(most, int(xp.sum(xp.astype(values > floor, xp.int64))))
        self._Q, self._values = Q[:, :rank], values[:rank]
        self._squares = self._Q * self._Q
        each = xp.stack([xp.ones_like(self._values), 1 / self._values], axis=1)
        sums = self._squares @ each  # one pass over the squares
        self._own = sums[:, :1]
        free = xp.ones_like(self._own) if in_mean is None else 1 - in_mean[:, None]
        self._free = xp.where(free > eps, free, eps * xp.ones_like(free))
        self._unseen, self._unseen_targets = None, None
        if rank < most:
            self._unseen = free - sums[:, 1:]
            seen = self._Q @ (self.projected[:rank, :] / self._values[:, None])
            self._unseen_targets = self.T - seen

    @classmethod
    def of_coordinates(
        cls,
        F: Any,
        T: Any,
        weights: Any = None,
        *,
        intercept: bool = True,
        second: Any = None,
        **known: Any,
    ) -> "RidgePath":
        """F'F = V D V' and Q = F V, F weighted, and centred where there is an intercept.

        second : F'F, where it is known; known : further parameters of the path
        """
        known |= _means(F, T, weights, intercept)
        F = F - known["mean"][None, :] if intercept else F
        F = F if weights is None else F * known["root"]
        values, V = eigh(gram(F) if second is None else second)
        return cls(F @ V, positive_part(values), T, **known)

    @classmethod
    def of_matrix(
        cls, K: Any, T: Any, weights: Any = None, *, intercept: bool = False, **known: Any
    ) -> "RidgePath":
        """K = U D U' and Q = U D^1/2, K centred where there is an intercept.

        What is not a kernel has negative eigenvalues: they are set to zero, as its map does.
        """
        known |= _means(K, T, weights, intercept)
        if intercept:
            mean = known["mean"]
            K = K - mean[None, :] - mean[:, None] + known["in_mean"] @ mean
        K = K if weights is None else K * known["root"] * known["root"].T
        values, U = eigh(K)
        if values.shape[0]:
            noise = K.shape[0] * eps_of(values) * abs(float(values[0]))
            known |= {"is_indefinite": float(values[-1]) < -noise}
        values = positive_part(values)
        return cls(U * namespace(U).sqrt(values)[None, :], values, T, **known)

    # --- the penalty ------------------------------------------------------------------------------

    def errors(self, alphas: Any, importance: Any = None) -> np.ndarray:
        """Mean squared leave-one-out error of each alpha, summed over targets.

        importance : weights of the rows in the mean alone; or None
        """
        alphas = on_device_of(np.asarray(alphas, dtype=float), self.Q)
        xp, t, left = namespace(self.Q), self.T.shape[1], self._left(alphas)
        losses = xp.zeros_like(left) if self.spread is None else self.spread / (left * left)
        together = max(1, _HELD_VALUES // (self.n * alphas.shape[0]))
        for a in range(0, t, together):
            errors = self._errors(alphas, left, a, min(a + together, t))
            losses = losses + xp.sum(errors * errors, axis=1)
        if importance is not None:
            return as_numpy(importance @ losses) / float(importance.sum())
        total = float(self.n if self.root is None else (self.root**2).sum())
        return as_numpy(xp.sum(losses, axis=0)) / total

    def best(self) -> tuple[float, float]:
        """(alpha, error) with the smallest error of all penalties above rounding.

        The grid grows until its best value is not at an end, and is refined there.
        """
        smallest = max(100 * eps_of(self.values) * float(self.values[0]), 1e-10 * self.scale)
        least, unit = np.log10(max(smallest, 1e-300)), np.log10(max(self.scale, 1e-300))
        tried: dict[float, float] = {}

        def at(grid: Any) -> float:
            new = np.unique([max(g, least) for g in grid if max(g, least) not in tried])
            if len(new):
                tried.update(zip(new.tolist(), self.errors(10.0**new).tolist()))
            least_error = min(tried.values())
            return max(g for g, error in tried.items() if error <= _EQUALLY_GOOD * least_error)

        best = at(_DECADES + unit)
        while best == max(tried) and best < unit + 8:
            best = at([best + 1, best + 2])
        while best == min(tried) and best > least:
            best = at([best - 1, best - 2])
        for step in (0.5, 0.2):
            best = at([best - step, best + step])
        return float(10.0**best), tried[best]

    # --- one penalty ------------------------------------------------------------------------------

    def residuals(self, alpha: float) -> tuple[Any, Any]:
        """Leave-one-out errors t_i - f_i (n x t), and the leverages' rest 1 - h_i."""
        alphas = on_device_of([alpha], self.Q)
        left = self._left(alphas)
        errors = self._errors(alphas, left, 0, self.T.shape[1])[:, :, 0]
        return errors if self.root is None else errors / self.root, left[:, 0]

    def duals(self, alpha: float) -> tuple[Any, Any]:
        """(a, b) with f(z) = sum_i a_i k(x_i, z) + b: a = W (t - f) / alpha."""
        # Without the directions that no row is in: what is not a kernel has values there.
        gains = 1 / (self._values * (self._values + alpha))
        a = self._Q @ (self.projected[: len(gains)] * gains[:, None])
        a = a if self.root is None else a * self.root
        if self.in_mean is not None:  # to rounding it is so: what is left of it would grow with K
            a = a - self.in_mean[:, None] * namespace(a).sum(a, axis=0)[None, :]
        if self.offset is None:
            return a, namespace(a).zeros_like(a[0, :])
        return a, self.offset - self.mean @ a

    def misses(self, alpha: float) -> Any:
        """t - f at the rows."""
        left = self._misses(on_device_of([alpha], self.Q), 0, self.T.shape[1])[:, :, 0]
        return left if self.root is None else left / self.root

    def _gains(self, alphas: Array) -> Any:
        """s / D, one column per alpha."""
        values = self._values[:, None]
        return alphas[None, :] / (values + alphas[None, :]) / values

    def _misses(self, alphas: Array, a: int, b: int) -> Any:
        """t - f of the targets a to b, n x targets x alphas."""
        xp, gains = namespace(self.Q), self._gains(alphas)
        (rank, many), some = gains.shape, b - a
        scaled = self.projected[:rank, a:b][:, :, None] * gains[:, None, :]
        misses = self._Q @ xp.reshape(scaled, (rank, some * many))
        misses = xp.reshape(misses, (self.n, some, many))
        if self._unseen_targets is not None:
            misses += self._unseen_targets[:, a:b][:, :, None]
        return misses

    def _errors(self, alphas: Array, left: Array, a: int, b: int) -> Any:
        """Leave-one-out errors of the targets a to b, n x targets x alphas."""
        errors = self._misses(alphas, a, b)
        errors /= left[:, None, :]
        return errors if self.offsets is None else errors + self.offsets[:, a:b][:, :, None]

    def _left(self, alphas: Array) -> Any:
        """1 - h, one column per alpha."""
        xp = namespace(self.Q)
        left = self._squares @ self._gains(alphas)
        if self._unseen is not None:
            left = left + self._unseen
        # 1 - h >= alpha / (k(x, x) + alpha): a bound where the difference is all rounding. The rows
        # other than x add up to -x where they are centred, hence the factors of 1 - m.
        least = self._free * alphas[None, :] / (self._own / self._free + alphas[None, :])
        tiny = float(xp.finfo(left.dtype).smallest_normal)
        least = xp.where(least > tiny, least, tiny * xp.ones_like(least))
        left = xp.where(left > least, left, least)
        return left if self.share is None else 1 - self.share + self.share * left


def _means(A: Array, T: Array, weights: Array | None, intercept: bool) -> dict[str, Any]:
    """The roots of the weights, and the means that an intercept takes off."""
    xp = namespace(A)
    known: dict[str, Any] = {"root": None if weights is None else xp.sqrt(weights)[:, None]}
    if intercept:
        w = xp.ones_like(T[:, 0]) if weights is None else weights
        part = w / xp.sum(w)
        known |= {"in_mean": part, "mean": part @ A, "offset": part @ T}
    return known


# --- ridge on coordinates -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CoordinateRidge:
    """Ridge with an intercept on coordinates that are at hand: z -> z coef + b.

    Of the rows it keeps the coordinates F about their mean. The same as solve_ridge on a map with
    these coordinates, for those who need no more than this, again and again.
    """

    coef: Any
    b: Any
    choice: Choice
    F: Any
    misses: Any  # t - f at the rows
    weights: Any
    total: float  # the sum of the weights
    factor: Any  # of F'F + alpha I

    @classmethod
    def of(cls, F: Any, T: Any, rule: LeaveOneOut, weights: Any = None) -> "CoordinateRidge":
        T = on_device_of(T, F)
        weights = None if weights is None else on_device_of(weights, F)
        sums = added_up(Spread.of, F, [T, weights])
        known: dict[str, Any] = {"share": rule.share, "spread": rule.spread}
        choice = choose(RidgePath.of_coordinates(F, T, weights, second=sums.scatter, **known), rule)
        alphas = np.full(T.shape[1], choice.alpha)
        coef, _, factors = solve_regularized(sums.scatter, sums.cross, alphas)
        mean = sums.target / sums.n
        F = F - sums.mean[None, :]
        misses = T - F @ coef - mean[None, :]
        b, factor = mean - sums.mean @ coef, factors[choice.alpha]
        return cls(coef, b, choice, F, misses, weights, float(sums.n), factor)

    @classmethod
    def on_landmarks(
        cls, K: Any, K_S: Any, T: Any, rule: LeaveOneOut, weights: Any = None
    ) -> tuple["CoordinateRidge", Any, Any]:
        """(ridge on their coordinates, a, |phi|^2 of the rows): f(z) = k(z, S) a + b.

        K are the values of the rows with the landmarks, K_S those of the landmarks.
        """
        C = jittered_factor(K_S + 0.0)
        F = solve_triangular(C, K.T).T
        found, lengths = cls.of(F, T, rule, weights), row_norms(F, namespace(F))
        return found, solve_triangular(C, found.coef, transpose=True), lengths

    def __call__(self, Z: Any) -> Any:
        return Z @ self.coef + self.b[None, :]

    def left_out(self, share: Any = None) -> LeftOut:
        """Errors and leverages of the rows, one observation left out at a time.

        share : the part of each row's weight that one observation has; None: all of it
        """
        w = np.ones(self.F.shape[0]) if self.weights is None else as_numpy(self.weights)
        left = left_by(self.F, self.factor, self.choice.alpha, w, 1 / self.total)
        return LeftOut.of(self.misses, left[:, None], share)


# --- the choice of a penalty ----------------------------------------------------------------------


def choose(path: RidgePath, rule: LeaveOneOut) -> Choice:
    """The candidate with the smallest leave-one-out error."""
    if rule.candidates is None:
        alpha, error = path.best()
        return Choice(alpha, np.array([alpha]), np.array([error]), path.n)
    unit = (path.scale or 1.0) if rule.relative else 1.0
    alphas = unit * np.asarray(rule.candidates, dtype=float)
    errors = path.errors(alphas, rule.importance)
    best = best_alpha(alphas, errors)
    return Choice(float(alphas[best]), alphas, errors, path.n)


def choose_on_rows(problem: RidgeProblem) -> Choice:
    """On as many rows as their kernel matrix is quickly decomposed, spread over all."""
    kept, rows = problem.kept, ROWS_FOR_SEARCH if _is_searched(problem.alpha) else ROWS_FOR_ALPHA
    rows = min(rows, max(SAMPLE, math.isqrt(current().limit() // _MATRICES // 8)))
    small = problem.some(kept[evenly(len(kept), rows)])
    K = tiles.evaluate(small.kernel, small.training.points)
    weights = None if small.weights is None else on_device_of(small.weights, K)
    return choose_on_matrix(K, on_device_of(small.T, K), weights, small)[0]


def choose_on_matrix(
    K: Any, T: Any, weights: Any, problem: RidgeProblem
) -> tuple[Choice, RidgePath | None]:
    """(the choice, the path that made it) for the rows of a kernel matrix, all with a weight."""
    rule = problem.alpha
    if _is_searched(rule):
        return _search(K, T, weights, rule, problem.intercept), None
    known = {"share": rule.share, "spread": rule.spread}
    path = RidgePath.of_matrix(K, T, weights, intercept=problem.intercept, **known)
    return choose(path, rule), path


def is_chosen_before(problem: RidgeProblem) -> bool:
    """Whether the penalty is chosen on some rows, before the kernel matrix of all is stored.

    A search holds the matrix, a factor, and columns of its inverse.
    """
    many = problem.n > ROWS_FOR_SEARCH or matrix_bytes(problem.n, 3) > problem.limit
    return _is_searched(problem.alpha) and many


def _is_searched(rule: Any) -> bool:
    return isinstance(rule, LeaveOneOut) and rule.near is not None and rule.candidates is None


def _search(K: Any, T: Any, weights: Any, rule: LeaveOneOut, intercept: bool) -> Choice:
    """By exact errors, from factor to factor, beginning at `near` and, as that is often the
    penalty of some landmarks, with a smaller one.

    No penalty is tried below the rounding of K, eps times its trace.
    """
    xp, n, start = namespace(K), K.shape[0], rule.near or 1.0
    least = float(xp.finfo(K.dtype).eps) * float(xp.sum(xp.linalg.diagonal(K)))
    judged = evenly(n, JUDGED_ROWS)

    def part(values: Any, default: float) -> np.ndarray:
        return np.full(len(judged), default) if values is None else as_numpy(values)[judged]

    w, spread = part(weights, 1.0), part(rule.spread, 0.0)
    share = None if rule.share is None else part(rule.share, 1.0)
    if len(judged) < n:  # last in the order, their entries of the inverse are those of a small one
        order = np.r_[np.setdiff1d(np.arange(n), judged), judged]
        K, T = pts.take(pts.take(K, order).T, order), pts.take(T, order)
        weights = None if weights is None else pts.take(weights, order)
        judged = np.arange(n - len(judged), n)
    tried: dict[float, np.ndarray] = {}

    def error(x: float) -> float:
        alpha = max(start * math.exp(x), least)
        if alpha not in tried:
            tried[alpha] = np.full(len(judged), math.inf)
            found = _judged(K, T, weights, alpha, intercept, judged, share)
            if found is not None and np.isfinite(found.residuals).all():
                losses = w * (found.residuals**2).sum(axis=1) + spread / found.left**2
                tried[alpha] = losses / w.mean()
        return float(tried[alpha].mean())

    best = max(start * math.exp(line_search(error, -math.log(4))), least)
    while not np.isfinite(tried[best]).all():  # singular to rounding: the next that is not
        best *= STEP
        error(math.log(best / start))
        if best not in tried:
            best = max(tried)
    alphas = np.array(sorted(tried))
    errors = np.array([tried[a].mean() for a in alphas])
    return Choice(best, alphas, errors, n, tried[best])


def _judged(
    K: Array,
    T: Array,
    weights: Array | None,
    alpha: float,
    intercept: bool,
    rows: np.ndarray,
    share: np.ndarray | None,
) -> LeftOut | None:
    """LeftOut of some rows for one penalty; None where K + alpha N is singular to rounding."""
    xp, noise = namespace(K), None if weights is None else 1 / weights
    copied = is_numpy(K)
    C = factor_shifted(K + 0 if copied else K, alpha, noise, in_place=copied)
    if C is None:
        return None
    X, inverse = solve_factored(C, T), inverse_diagonal(C, rows)
    if intercept:
        u = solve_factored(C, xp.ones_like(T[:, :1]))
        X = X - u * (xp.sum(X, axis=0) / xp.sum(u))[None, :]
        inverse = without_mean(inverse, as_numpy(u)[rows, 0], float(xp.sum(u)))
    own = as_numpy((xp.ones_like(X[:, 0]) if noise is None else noise) * alpha)[rows]
    return LeftOut.of(own[:, None] * as_numpy(X)[rows], (own * inverse)[:, None], share)
