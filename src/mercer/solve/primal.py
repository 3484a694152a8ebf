"""Ridge on coordinates, r x r equations ([KERNELS] (3)): Primal on those of a map, LandmarkSolver
on those of some rows, for more rows than can be solved exactly."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from ..engine import (
    Array,
    MapBytes,
    MemoryLimitError,
    as_numpy,
    coordinates_bytes,
    eps_of,
    gram,
    is_array,
    itemsize,
    matrix_bytes,
    namespace,
    on_device_of,
    positive_part,
    put,
    row_norms,
    solve_triangular,
    tiles,
)
from ..feature_map import FeatureMap
from ..fit import MapFit, Statistic, fit_map, fold
from ..kernels import points as pts
from ..rows import ByClass, Spread, gather
from ..space import Corrected, Landmarks, MapOptions
from .dual import Direct
from .fourier_map import solve_on_fourier_map
from .optimal_scoring import Shrinkage
from .problem import Choice, Given, LeaveOneOut, RidgeProblem
from .regularized import (
    factor_shifted,
    jittered_factor,
    left_by,
    solve_factored,
    solve_regularized,
)
from .ridge_path import RidgePath, choose, choose_on_rows
from .solver import Cost, LeftOut, RidgeSolution, Solver, TooLarge
from .system import column_norms

# As many as memory allows, between these.
MOST, LEAST = 4000, 500
# Values of coordinates computed at once.
_PANEL_VALUES = 1 << 23
_EPS = float(np.finfo(np.float64).eps)


class Primal(Solver):
    """By the r x r equations on coordinates: from sums over the rows, wherever they are."""

    name = "primal"

    def refusal(self, problem: RidgeProblem, asked: bool = True) -> str | None:
        alpha, held = problem.alpha, problem.training.is_held
        plain = problem.map is not None and problem.map.is_plain_fourier
        if isinstance(alpha, LeaveOneOut) and not (held or plain):
            return (
                "leave-one-out needs the errors of all rows at once: for chunked rows "
                "use form='iterative', or choose alpha on a sample, and fit KernelRidge"
            )
        if problem.map is not None or not held or asked or not problem.kernel.is_proven:
            return None
        needed = self.cost(problem).bytes
        # Passes over rows need no more than the factor, and leave no errors of all rows.
        if problem.n > 2 * gather.SAMPLE and not isinstance(alpha, LeaveOneOut):
            needed = min(needed, int(MapBytes.streamed(problem.rank, gather.SAMPLE)))
        too_large = TooLarge.beyond("coordinates of all rows", needed, problem.limit)
        tiny = 0 < alpha.smallest < 1e-6 * problem.trace and problem.dimension == problem.n
        if too_large is None and tiny:
            return "alpha is so small that it shows the rounding of coordinates at new points"
        return too_large

    def cost(self, problem: RidgeProblem) -> Cost:
        n = problem.training.n
        if n is None:
            return Cost(0.0, 0)  # the only one that passes over rows
        if problem.map is not None and problem.map.max_rank is not None:
            r = min(n, problem.map.max_rank)
        else:
            r = problem.rank if problem.is_judged else problem.dimension
        # Low rank finds pivots one after another; a map of its own has none.
        factor = n**3 / 3 if r == n else 4 * n * r**2
        values = n**2 / 2 if MapBytes.stored(n) <= problem.limit else 2 * n * r
        starts = 0.5
        if problem.dimension < n:
            factor, starts, values = n * r**2, 0.0, 0.0
        counts = {"starts": starts, "values": values + n * r}
        counts["operations"] = factor + n * r**2 + r**3 / 3
        if isinstance(problem.alpha, LeaveOneOut):
            counts["eigen"] = r**3
            counts["operations"] += 2 * n * r**2
        return Cost.of(MapBytes.partial(n, r, 2 + _held(problem)), **counts)

    def solve(self, problem: RidgeProblem) -> RidgeSolution:
        options = replace(problem.map or MapOptions(), held=_held(problem))
        if options.is_plain_fourier:
            return solve_on_fourier_map(problem, options)
        weighted = problem.weights is not None
        centred = problem.intercept or (options.needs_sums and not weighted)
        of: Any = Spread.of if centred else Spread.uncentred
        statistic = Statistic(of, problem.columns, movable=centred and not weighted)
        if problem.labels:  # classes are known after the pass that adds up their coordinates
            statistic = Statistic(ByClass.of, problem.columns[:1], movable=True)
        fit = fit_map(problem.training, options, statistic)
        return _solve_on_map(problem, fit, self.name)


def chooses_by_all_errors(problem: RidgeProblem) -> bool:
    """Tell whether a solver that chooses alpha by the errors of all rows accepts the problem."""
    if isinstance(problem.alpha, Given) or problem.alpha.candidates is None:
        return False
    return any(s.refusal(problem, asked=False) is None for s in (Direct(), Primal()))


def _solve_on_map(problem: RidgeProblem, fit: MapFit, name: str) -> "_PrimalSolution":
    """From the sums of a fitted map."""
    sums = fit.sums.spread if problem.labels else fit.sums
    sums = sums if problem.intercept else sums.about_zero()
    second, cross, mean = sums.scatter, sums.cross, sums.mean if problem.intercept else None
    Phi, T, w = fit.coordinates(), None, None
    if Phi is not None and not problem.labels:
        T = on_device_of(problem.T, Phi)
        w = None if problem.weights is None else on_device_of(problem.weights, Phi)
    choice = None
    if isinstance(problem.alpha, Shrinkage):
        choice = problem.alpha.choice(problem, fit, sums, Phi)
    elif isinstance(problem.alpha, LeaveOneOut):
        choice = _choice(problem, fit, second, mean, Phi, T, w)
    alphas = problem.alphas(None) if choice is None else np.full(cross.shape[1], choice.alpha)
    coef, residuals, factors = solve_regularized(second, cross, alphas)
    xp = namespace(coef)
    b = on_device_of(np.zeros(coef.shape[1]), coef)
    if mean is not None:
        b = sums.target / sums.n - mean @ coef
    dual = None if T is None else _dual(fit, Phi, T, w, coef, b, alphas)
    errors = shifts = None
    with np.errstate(all="ignore"):  # an infinite bound is a bound
        norms = _error_norms(fit, sums, coef, residuals, alphas, dual, T, w)
    if norms is not None:
        errors = on_device_of(np.where(np.isnan(norms), np.inf, norms), coef)
        if mean is not None:
            # b differs by no more than |f - f*| times the mean of sqrt k(x, x), at most, and by the
            # rounding of the two means that it is the difference of.
            within = float(xp.linalg.trace(second)) / sums.n + float(xp.sum(mean**2))
            unit = fit.map.space.roundoff() + fit.n**0.5 * eps_of(coef) + fit.n * _EPS
            own = _target_norms(sums, T, w) / sums.n**0.5 + within**0.5 * column_norms(coef)
            shifts = errors * (within + max(fit.max_residual, 0.0)) ** 0.5
            shifts = shifts + on_device_of(unit * own, coef)
    points, kept = _kept(problem, fit, second)
    solution = _PrimalSolution(
        fit.map.linear(coef, b),
        alphas,
        name,
        errors,
        shifts,
        choice=choice,
        weights=w,
        dual=dual,
        coef=coef,
        mean=mean,
        total=float(sums.n),
        second=kept,
        points=points,
    )
    solution.keep({"fit": fit} | factors)
    return solution


def _held(problem: RidgeProblem) -> int:
    """Arrays of coordinates that leave-one-out holds: turned, squared, and what it was made of."""
    if not isinstance(problem.alpha, LeaveOneOut):
        return 0
    return 3 + problem.intercept + (problem.weights is not None)


def _kept(problem: RidgeProblem, fit: MapFit, second: Array) -> tuple[Any, Any]:
    """(rows, sums): the smaller of the two, from which factors are made again."""
    points, r = fit.points, second.shape[0]
    small = (
        not problem.kernel.runs_user_code  # which may take long
        and is_array(points)
        and getattr(points.dtype, "kind", "f") != "O"
        and points.shape[0] * points.shape[1] * itemsize(points) < r * r * itemsize(second)
    )
    return (points, None) if small else (None, second)


def _dual(
    fit: MapFit, Phi: Array, T: Array, w: Array | None, coef: Array, b: Array, alphas: np.ndarray
) -> Any:
    """a = W (t - f) / alpha: the w of [KERNELS] (3) is Phi'a. None for other functions."""
    if np.min(alphas) <= 0:
        try:
            W = fit.map.expand(coef).W
        except ValueError:  # a closed map, or the residual coordinate
            return None
        full = np.zeros((Phi.shape[0], W.shape[1]))
        full[as_numpy(fit.map.space.indices)] = as_numpy(W)
        return on_device_of(full, W)
    left = T - Phi @ coef - b[None, :]
    left = left if w is None else left * w[:, None]
    return left / on_device_of(alphas, Phi)[None, :]


def _choice(
    problem: RidgeProblem,
    fit: MapFit,
    second: Array,
    mean: Array | None,
    Phi: Array | None,
    T: Any,
    w: Array | None,
) -> Choice:
    """Every penalty at once, from Phi'Phi = V D V'."""
    rule = problem.alpha
    if Phi is None:
        raise MemoryLimitError(
            f"leave-one-out needs all {fit.n} rows of {fit.map.width} coordinates at once, more "
            "than memory_limit allows: choose alpha on a sample, fit KernelRidge."
        )
    known: dict[str, Any] = {"share": rule.share, "spread": rule.spread}
    if mean is None and fit.map.mean is not None:
        if w is not None:
            raise ValueError(
                "KernelRidgeCV with sample_weight has no closed-form leave-one-out error on a "
                "centred map: use center=False."
            )
        # Predictions do not add the mean of the targets: of the other rows' mean they see
        # nothing, and it is added to the errors around it.
        xp, n = namespace(Phi), Phi.shape[0]
        average = xp.mean(T, axis=0)[None, :]
        known |= {"in_mean": xp.full_like(Phi[:, 0], 1 / n)}
        known |= {"offsets": (n * average - T) / (n - 1)}
        T = T - average
    path = RidgePath.of_coordinates(Phi, T, w, intercept=mean is not None, second=second, **known)
    return choose(path, rule)


def _error_norms(
    fit: MapFit,
    sums: Spread,
    coef: Array,
    residuals: Array,
    alphas: np.ndarray,
    dual: Array | None,
    T: Array | None,
    w: Array | None,
) -> np.ndarray | None:
    """|f - f*| at most, f* the solution with the kernel itself.

    With R = K - Phi Phi' and a = W (t - f) / alpha, the residual of the dual equations is -R a, and
    f differs from sum_i a_i k(x_i, .) by sqrt(a'R a): both are small where all |R_ij| <= rho_i
    rho_j are. What rounding leaves of the r x r equations is divided by alpha: it is relative to
    rows and targets as they are, however little of them the sums about a mean keep.
    """
    space, second, cross = fit.map.space, sums.scatter, sums.cross
    if fit.map.append_residual or isinstance(space, Corrected) or np.min(alphas) <= 0:
        return None
    xp, eta = namespace(coef), 2 * float(space.roundoff())
    within = lengths2 = float(xp.linalg.trace(second))
    for mean in (sums.mean, fit.map.mean):
        lengths2 += 0.0 if mean is None else sums.n * float(xp.sum(mean**2))
    left, of_coef, of_rows = column_norms(residuals), column_norms(coef), eta * lengths2**0.5
    rounding = of_rows * (within**0.5 * of_coef + _target_norms(sums, T, w))
    norms: np.ndarray = (left + rounding) / alphas
    kernel, largest = fit.map.kernel, max(float(fit.max_residual), 0.0)
    if dual is not None:
        lengths = kernel.layout.lengths(kernel, fit.points)
        rho2 = np.maximum(as_numpy(fit.residuals), 0.0) + eta * as_numpy(lengths).astype(float) ** 2
        missed = np.sqrt(rho2) @ np.abs(as_numpy(dual))
        weighed = float(rho2.sum() if w is None else as_numpy(w) @ rho2)
    elif space.is_closed and largest == 0:
        return norms
    elif kernel.has_magnitude or sums.squares is None:
        return None  # rows that are gone have left neither lengths nor residuals
    else:
        # By Cauchy and Schwarz, from the largest residual and the sum of squares of t - f.
        weighed = sums.n * largest + eta * (lengths2 + sums.n * largest)
        # sum_i w_i (t_i - f_i)^2 at most: sums of nearly equal numbers are known to rounding only.
        total = sums.squares if sums.mean is None else sums.squares - sums.target**2 / sums.n
        left = total - 2 * xp.sum(coef * cross, axis=0) + xp.sum(coef * (second @ coef), axis=0)
        left = positive_part(left) + second.shape[0] * eps_of(coef) * sums.squares
        missed = np.sqrt(weighed * as_numpy(left).astype(np.float64)) / alphas
    centred = 2.0 if fit.map.mean is not None or sums.mean is not None else 1.0
    norms += centred * missed * (1 + np.sqrt(weighed) / (2 * np.sqrt(alphas)))
    return norms


def _target_norms(sums: Spread, T: Array | None, w: Array | None) -> np.ndarray:
    """Euclidean norms of the columns of the targets, times the roots of the weights."""
    if T is None:
        return np.sqrt(as_numpy(sums.squares).astype(np.float64))
    return column_norms(T if w is None else T * namespace(T).sqrt(w)[:, None])


@dataclass(frozen=True, eq=False)
class _PrimalSolution(RidgeSolution):
    """Coefficients on coordinates."""

    coef: Any = None  # w, one row per coordinate
    mean: Any = None  # of the coordinates, where there is an intercept
    total: float = 0.0  # the sum of the weights
    second: Any = None  # Phi'Phi (about the mean), or None where `points` make it again
    points: Any = None  # the training rows, or None

    def _factor(self, alpha: float) -> Any:
        def make() -> Any:
            made = self.second is None
            second = gram(self._rows(self.points, self.weights)) if made else self.second
            return factor_shifted(second, alpha)

        return self.cached(alpha, make)

    def _rows(self, points: Array, weights: Array | None = None) -> Any:
        """Coordinates, about the mean, times the roots of the weights."""
        Phi = self.prediction.map(points)
        Phi = Phi.toarray() if scipy.sparse.issparse(Phi) else Phi
        Phi = Phi if self.mean is None else Phi - self.mean[None, :]
        return Phi if weights is None else Phi * namespace(Phi).sqrt(weights)[:, None]

    def variance(self, points: Any, diag: Any = None) -> Any:
        return self.with_variance(points, diag)[1]

    def with_variance(self, points: Any, diag: Any = None) -> tuple[Any, Any]:
        """One evaluation of the kernel against the landmarks serves all parts."""
        feature_map = self.prediction.map
        rows = feature_map.fitted(points)
        Phi = feature_map.space.coordinates(rows)
        xp = namespace(Phi)
        own, layout = feature_map.diagonal(rows, diag), self.kernel.layout
        rho2 = layout.unexplained(own, row_norms(Phi, xp), diag)
        Phi = feature_map.finished(Phi, rho2, rows)
        values = Phi @ self.coef + self.prediction.b[None, :]
        Phi = Phi if self.mean is None else Phi - self.mean[None, :]
        # The residual may be a coordinate already.
        unseen = 0.0 if feature_map.append_residual else rho2

        def of_alpha(alpha: float) -> Any:
            seen = row_norms(solve_triangular(self._factor(alpha), Phi.T).T, xp)
            return unseen + alpha * (seen if self.mean is None else seen + 1 / self.total)

        return values, self.per_target(of_alpha)

    def left_out(self, rows: np.ndarray | None = None, share: Any = None) -> LeftOut:
        fit = self.cached("fit")
        points = self.points if fit is None else fit.points
        if self.dual is None or points is None:
            raise ValueError("leave-one-out needs the training rows, which were not kept.")
        some = np.arange(points.shape[0]) if rows is None else np.asarray(rows)
        Phi = self._rows(pts.take(points, some))
        weights = np.ones(len(some)) if self.weights is None else as_numpy(self.weights)[some]
        in_mean = 0.0 if self.mean is None else 1 / self.total

        def left(alpha: float) -> np.ndarray:
            return left_by(Phi, self._factor(alpha), alpha, weights, in_mean)

        residuals = self.alphas * as_numpy(self.dual)[some] / weights[:, None]
        return LeftOut.of(residuals, self.per_target(left), share)


# --- landmarks ------------------------------------------------------------------------------------


class LandmarkSolver(Solver):
    """On the coordinates of some rows, drawn at random, from one pass over all.

    indices : of the landmarks; None: as many as memory allows
    """

    name = "landmarks"

    def __init__(self, indices: np.ndarray | None = None):
        self.indices = indices

    def refusal(self, problem: RidgeProblem, asked: bool = True) -> str | None:
        if not problem.training.is_held:
            return "it draws landmarks from rows in memory: use form='primal'"
        if not problem.kernel.layout.on_data or problem.map is not None:
            return "landmarks of a Gram matrix, or of a KernelMap, are its own: use form='primal'"
        if not asked and problem.exact:
            return "it is not exact"
        if not problem.intercept:
            return "its functions have an intercept: state the problem with intercept=True"
        return None

    def cost(self, problem: RidgeProblem) -> Cost:
        n, m = problem.n, _landmarks_within(problem.n, problem.limit)
        return Cost.of(_bytes(n, m), values=n * m, operations=2 * n * m**2 + m**3)

    def solve(self, problem: RidgeProblem) -> "_LandmarkSolution":
        training, rule, indices = problem.training, problem.alpha, self.indices
        if isinstance(rule, LeaveOneOut):  # landmarks have chosen it before
            near = rule.near if rule.near is not None else choose_on_rows(problem).alpha
            problem = replace(problem, alpha=Given(np.full(problem.n_targets, near)))
        if indices is None:
            m = _landmarks_within(problem.n, problem.limit)
            indices = training.resources.rng().permutation(problem.n)[:m]
        S = pts.take(training.points, indices)
        C = jittered_factor(tiles.evaluate(training.kernel, S))
        feature_map = FeatureMap(Landmarks(training.kernel, S, C, indices))
        sums = fold(training.rows, feature_map, Statistic(Spread.of, problem.columns))
        alphas = problem.alphas(None)
        coef, _, factors = solve_regularized(sums.scatter, sums.cross, alphas)
        solution = _LandmarkSolution(
            feature_map.linear(coef, sums.target / sums.n - sums.mean @ coef),
            alphas,
            self.name,
            coef=coef,
            mean=sums.mean,
            total=float(sums.n),
            second=sums.scatter,
        )
        solution.keep({"problem": problem} | factors)
        return solution


def _bytes(n: int, m: int) -> int:
    """A few matrices of the size of the landmarks, and a panel of rows."""
    panel = min(n, max(256, _PANEL_VALUES // m))
    return int(matrix_bytes(m, 6) + coordinates_bytes(panel, m, 3))


def _landmarks_within(n: int, limit: int) -> int:
    """As many landmarks as the memory allows."""
    m = MOST
    while m > LEAST and _bytes(n, m) > limit:
        m = max(LEAST, int(0.8 * m))
    return min(n, m)


@dataclass(frozen=True, eq=False)
class _LandmarkSolution(_PrimalSolution):
    """Ridge on coordinates phi(z) = C^-1 k(S, z)."""

    @property
    def space(self) -> Landmarks:
        space: Landmarks = self.prediction.map.space
        return space

    def first(self, n_landmarks: int) -> "_LandmarkSolution":
        """The same ridge on the first landmarks only: leading blocks of both factors."""
        m, space, alpha = n_landmarks, self.space, float(self.alphas[0])
        if m >= space.rank:
            return self
        second, mean = self.second[:m, :m] + 0.0, self.mean[:m] + 0.0
        cross = (self.second @ self.coef + alpha * self.coef)[:m, :]
        w = solve_factored(jittered_factor(second, alpha), cross)
        S = pts.take(space.S, np.arange(m))
        smaller = Landmarks(space.kernel, S, space.C[:m, :m] + 0.0, space.indices[:m])
        b = self.prediction.b + self.mean @ self.coef - mean @ w
        prediction = FeatureMap(smaller).linear(w, b)
        return replace(self, prediction=prediction, coef=w, mean=mean, second=second)

    def left_out(self, rows: np.ndarray | None = None, share: Any = None) -> LeftOut:
        problem = self.cached("problem")
        if problem is None:
            raise ValueError("leave-one-out needs the training rows, which were not kept.")
        some = np.arange(problem.training.n) if rows is None else np.asarray(rows)
        weights = None if problem.weights is None else pts.take(problem.weights, some)
        T = pts.take(problem.T, some)
        return self.judged(pts.take(problem.training.points, some), T, some, weights, share)

    def judged(
        self, points: Any, T: Any, which: np.ndarray, weights: Any = None, share: Any = None
    ) -> LeftOut:
        """Training rows, each predicted without one observation of it, with variances.

        `which` are the numbers of these rows: where one is a landmark, it is left out as a landmark
        too. The variance is that of a new observation of weight one.
        """
        xp, alpha = namespace(points), float(self.alphas[0])
        F = self.prediction.map(points)
        unseen = positive_part(self.kernel.diagonal(points) - row_norms(F, xp))
        F = F - self.mean[None, :]
        L, offset = self._factor(alpha), self.prediction.b + self.mean @ self.coef
        open_part = row_norms(solve_triangular(L, F.T).T, xp)
        answers = xp.concat([unseen[:, None], open_part[:, None], F @ self.coef + offset], axis=1)
        # Rows that are landmarks and have no copies, which would stay.
        numbers = {int(i): j for j, i in enumerate(self.space.indices)}
        found = np.array([numbers.get(int(i), -1) for i in which], dtype=int)
        if share is not None:
            found[as_numpy(share) < 1] = -1
        places = np.flatnonzero(found >= 0)
        landmarks = found[places]
        if len(places):
            others = self._without(L, landmarks, pts.take(answers, places), pts.take(F, places))
            answers = put(answers, places, slice(None), others)
        unseen, open_part, fitted = answers[:, 0], answers[:, 1], answers[:, 2:]
        leverage = open_part + 1 / self.total
        # The weight that leaving one observation out takes from each row.
        weight = 1.0 if weights is None else on_device_of(weights, leverage)
        if weights is not None and share is not None:
            weight = weight * on_device_of(share, leverage)
        left = 1 - leverage * weight
        left = xp.where(left > 1e-6, left, xp.full_like(left, 1e-6))
        errors = (on_device_of(T, fitted) - fitted) / left[:, None]
        variances = unseen + alpha * (1 + leverage / left)
        return LeftOut(as_numpy(errors), as_numpy(left), as_numpy(variances))

    def _without(self, L: Array, landmarks: np.ndarray, answers: Array, F: Array) -> Any:
        """Unseen part, open part and fitted value of landmarks by all other landmarks.

        u = C^-1 e_j / |C^-1 e_j| is the direction that the others do not span: they miss
        1 / |C^-1 e_j|^2 of k(s_j, s_j), less what the jitter added to it to have a C at all. With
        M = L L', leaving the coordinate along u out takes (u' M^-1 f)^2 / u' M^-1 u from
        f' M^-1 f, and (u' M^-1 f) (u' w) / u' M^-1 u from f' w.
        """
        xp, C = namespace(F), self.space.C
        q = len(landmarks)
        E = put(xp.zeros_like(F.T), landmarks, np.arange(q), xp.ones_like(F[:, 0]))
        U = solve_triangular(C, E)
        squares = row_norms(U.T, xp)
        U = U / xp.sqrt(squares)[None, :]
        A, B = solve_triangular(L, U), solve_triangular(L, F.T)
        across, along = xp.sum(A * B, axis=0), row_norms(A.T, xp)
        open_part = positive_part(answers[:, 1] - across**2 / along)
        fitted = answers[:, 2:] - (across / along)[:, None] * (U.T @ self.coef)
        added = row_norms(pts.take(C, landmarks), xp)
        added = added - self.kernel.diagonal(pts.take(self.space.S, landmarks))
        missed = positive_part(1 / squares - added)
        return xp.concat([missed[:, None], open_part[:, None], fitted], axis=1)
