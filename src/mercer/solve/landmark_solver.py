"""Landmarks: ridge among functions of some rows, for more rows than can be solved exactly."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..engine import (
    as_numpy,
    coordinates_bytes,
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
from ..fit import MapFit, Statistic, fold
from ..kernels import points as pts
from ..rows import Spread
from ..space import Landmarks
from .primal import PrimalSolution, solve_on_map
from .problem import Given, LeaveOneOut, RidgeProblem
from .regularized import factor_shifted, solve_factored
from .ridge_path import choose_on_rows
from .solver import Cost, LeftOut, Solver

# As many as memory allows, between these.
MOST, LEAST = 4000, 500
# Values of coordinates computed at once.
PANEL_VALUES = 1 << 23
# Added to k(S, S), relative to its mean diagonal: enough for smooth kernels, whose matrices are
# singular to rounding, and far below any penalty that leave-one-out can tell from zero.
FIRST_JITTER = 1e-12


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
        if not problem.intercept:
            return "it is written for functions with an intercept"
        if not asked and problem.exact:
            return "it is not exact"
        return None

    def cost(self, problem: RidgeProblem) -> Cost:
        n, m = problem.n, landmarks_within(problem.n, problem.limit)
        return Cost.of(_bytes(n, m), values=n * m, operations=2 * n * m**2 + m**3)

    def solve(self, problem: RidgeProblem) -> "LandmarkSolution":
        training, rule, indices = problem.training, problem.alpha, self.indices
        if isinstance(rule, LeaveOneOut):  # landmarks have chosen it before
            near = rule.near if rule.near is not None else choose_on_rows(problem).alpha
            problem = replace(problem, alpha=Given(np.full(problem.n_targets, near)))
        if indices is None:
            m = landmarks_within(problem.n, problem.limit)
            indices = training.resources.rng().permutation(problem.n)[:m]
        S = pts.take(training.points, indices)
        C = jittered_factor(tiles.evaluate(training.kernel, S))
        feature_map = FeatureMap(Landmarks(training.kernel, S, C, indices))
        statistic = Statistic(Spread.of, problem.columns)
        sums = fold(training.rows, feature_map, statistic)
        fit = MapFit(feature_map, problem.n, 0.0, sums=sums)
        solution = replace(solve_on_map(problem, fit, self.name, LandmarkSolution), error_norms=None)
        solution.cached("problem", lambda: problem)
        return solution


def _bytes(n, m):
    """A few matrices of the size of the landmarks, and a panel of rows."""
    panel = min(n, max(256, PANEL_VALUES // m))
    return int(matrix_bytes(m, 6) + coordinates_bytes(panel, m, 3))


def landmarks_within(n: int, limit: int) -> int:
    """As many landmarks as the memory allows."""
    m = MOST
    while m > LEAST and _bytes(n, m) > limit:
        m = max(LEAST, int(0.8 * m))
    return min(n, m)


def jittered_factor(K: Any, shift: float = 0.0) -> Any:
    """C with C C' = K + shift I, shifted by as little as makes it positive definite to rounding."""
    jitter = FIRST_JITTER * (float(namespace(K).linalg.trace(K)) / K.shape[0] + shift)
    while (C := factor_shifted(K, shift + jitter)) is None:
        jitter *= 100
    return C


@dataclass(frozen=True, eq=False)
class LandmarkSolution(PrimalSolution):
    """Ridge on coordinates phi(z) = C^-1 k(S, z)."""

    @property
    def space(self) -> Landmarks:
        return self.prediction.map.space

    def first(self, n_landmarks: int) -> "LandmarkSolution":
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
        problem = self.cached("problem", lambda: None)
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

    def _without(self, L, landmarks, answers, F):
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

