"""Form "fourier": the dual coefficients of a kernel ridge by Fourier coordinates.

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

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..engine import tiles
from ..engine.arrays import as_numpy, evenly, on_device_of
from ..engine.nufft import FINEST
from ..feature_map import FeatureMap
from ..kernels import points as pts
from ..solve.direct import Shifted, factor_shifted
from ..solve.quick import QUICK_TOL
from ..solve.system import double_like
from ..solve.toeplitz import NormalEquations, solve_normal
from ..space.fourier import Fourier
from ..space.fourier_grid import Extent, fourier_space
from ..space.fourier_plan import FourierPlan, plan_fourier
from ..space.fourier_sums import FourierStep, all_pairs
from .ridge_fourier import DIRECT, MOST_SOLVES, fourier_variance
from .ridge_iterative import FEW, upper_variance

# Rows at which the residual is computed with the kernel itself.
CHECKED = 64
# The first solution is found to this accuracy, which rounding leaves room for; then the residual is
# corrected, each time by the second factor. And how often the map is refined.
FIRST, REDUCTION, CORRECTIONS, REFINEMENTS = 1e-7, 1e-4, 4, 2
# The residual in Fourier coordinates is to be this share of what is aimed at.
SHARE = 0.1
# Coordinates of all solves together that standard deviations are worth.
SOLVED_COORDINATES = 10**7
EPS = float(np.finfo(float).eps)


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

    space: Fourier
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
    kernel, points, T, alphas, weights, plan: FourierPlan, *, max_iter, may_refine
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

    def __init__(self, space: Fourier, points, alphas, weights=None, max_iter=500):
        self.space, self.points, self.max_iter = space, points, max_iter
        self.alphas = np.asarray(alphas, dtype=float)
        self.weights = np.ones(points.shape[0]) if weights is None else weights
        self.generator = FourierStep(space, None, FINEST)(points, None, weights).generator
        self.equations = NormalEquations(space, self.generator)

    def solve(self, T, tol, scales) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
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

    def error_norms(self, T, a, s) -> np.ndarray:
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


# --- uncertainty ----------------------------------------------------------------------------------


def variances_by_fourier(model, Z) -> tuple[np.ndarray, int]:
    """(k(z, z) - k_z' (K + alpha W^-1)^-1 k_z, one column per target; how many are upper values).

    In the box by Fourier coordinates, outside by one more right-hand side per point. What would
    take too many solves is bounded from above by the variance given some of the rows.
    """
    prediction = model.prediction_
    space, S = prediction.space, prediction.S
    weights = None if model.noise_ is None else 1 / as_numpy(model.noise_)
    inside = space.contains(Z)
    variance, upper = np.empty((Z.shape[0], len(model.alphas_))), 0
    solves = np.inf if space.rank <= DIRECT else most_solves(space.rank)
    for part, most, exact in (
        (np.flatnonzero(inside), solves, _inside),
        (np.flatnonzero(~inside), FEW, _outside),
    ):
        rows = pts.take(Z, part)
        if not len(part):
            continue
        if len(part) <= most:
            variance[part] = exact(model, space, S, rows, weights)
            continue
        upper += len(part)
        own = model.kernel_.diagonal(rows)
        for alpha in np.unique(model.alphas_):
            mine = np.flatnonzero(np.array(model.alphas_) == alpha)
            found = as_numpy(upper_variance(model.kernel_, S, rows, own, alpha, weights))
            variance[np.ix_(part, mine)] = found[:, None]
    return variance, upper


def most_solves(rank):
    """Points inside the box that are worth a solve each: fewer where a solve takes longer."""
    return max(FEW, min(MOST_SOLVES, SOLVED_COORDINATES // rank))


def _inside(model, space, S, Z, weights):
    generator = FourierStep(space, None, FINEST)(S, None, weights).generator
    factors = []
    if space.rank <= DIRECT:
        A, alphas = all_pairs(space.frequencies, space.amplitudes, generator), model.alphas_
        factors = [
            Shifted(float(alpha), np.flatnonzero(np.array(alphas) == alpha), C)
            for alpha in np.unique(alphas)
            if (C := factor_shifted(A, float(alpha))) is not None
        ]
    return fourier_variance(FeatureMap(space), Z, model, factors, generator)


def _outside(model, space, S, Z, weights):
    """k_z' a for the a whose targets are k_z."""
    eye = on_device_of(np.eye(Z.shape[0]), double_like(S))
    K_Z = as_numpy(tiles.multiply(model.kernel_, S, Z, eye))
    own = as_numpy(model.kernel_.diagonal(Z))
    variance = np.empty((Z.shape[0], len(model.alphas_)))
    for alpha in np.unique(model.alphas_):
        system = DualSystem(space, S, np.full(Z.shape[0], alpha), weights, model.max_iter)
        scales = np.sqrt(np.mean(K_Z**2, axis=0))
        a = system.solve(K_Z, QUICK_TOL, scales)[0]
        mine = np.flatnonzero(np.array(model.alphas_) == alpha)
        variance[:, mine] = (own - np.sum(K_Z * a, axis=0))[:, None]
    return variance
