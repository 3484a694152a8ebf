"""The last fit where few landmarks explain nearly all of the kernel: nothing of size n is factored.

Pivoted Cholesky leaves R = K - F F' positive semi-definite. Where trace(R) / (n alpha), the part of
the kernel that the landmarks miss, is small beside the noise, ridge on F is close to the exact one:
with P = F F' + alpha I and A = K + alpha I, 0 <= P^-1 - A^-1 <= P^-1 R P^-1, so that the leverages
h = 1 - alpha (A^-1)_jj are at least those of F, and larger by at most trace(R) / (n alpha) in the
mean. Then F chooses the penalty, for all rows and all penalties at once; it preconditions the
iterations that solve the exact equations to a certified error; and it gives the leverages of the
leave-one-out errors and the variances of predictions.
"""

import numpy as np
from scipy.optimize import brentq

from ..engine.arrays import as_numpy
from ..engine.memory import coordinates, matrix
from ..engine.products import Product, exact_product
from ..kernels import Kernel
from ..solve.preconditioner import centred
from ..solve.quick import may_be_quick, solved_quickly
from ..solve.ridge_path import RidgePath
from ..space import factorize
from .landmark_model import LandmarkModel
from .landmarks import MISSED
from .observations import Observations
from .ridge_fit import LastFit

LANDMARKS = 400
# Certified error of the function, relative to the function.
TOL = 1e-5


def quick_fit(
    kernel: Kernel,
    rows: Observations,
    alpha: float,
    judged: np.ndarray,
    *,
    rng: np.random.Generator,
    limit: int,
    choose_alpha: bool = True,
) -> LastFit | None:
    """The exact fit to a certified error, at the price of a fit through landmarks.

    None where landmarks miss too much, with few or weighted rows, or where iterations are slow.
    """
    n, r = rows.n, LANDMARKS
    room = matrix(n, 0.5) + coordinates(n, r, copies=5)
    if rows.weights is not None or not may_be_quick(kernel, rows.X) or room > limit:
        return None
    found = factorize(
        kernel, rows.X, max_rank=r, pivots="random", rng=rng, memory_limit=limit, copies=5
    )
    missed = np.maximum(found.residuals, 0.0)
    if missed.mean() > MISSED * alpha:
        return None
    path = RidgePath(found.F + 0.0, rows.T)
    if choose_alpha:
        alpha = _best_near(path, alpha)
        if missed.mean() > MISSED * alpha:
            return None
    product = exact_product(kernel, rows.X, limit)
    solution = solved_quickly(
        kernel,
        rows.X,
        rows.T,
        np.full(rows.T.shape[1], alpha),
        tol=TOL,
        center=True,
        landmarks=found,
        product=product,
        memory_limit=limit,
    )
    if solution is None:
        return None
    coef = solution.coef
    left = unexplained(path, missed, alpha, product, rng)[judged]
    uncertainty = LandmarkModel.of_path(
        kernel, rows.X, found.factor.indices, found.factor.C, path, alpha
    )
    # Centred, f differs from the exact solution by sqrt of the centred k(z, z) times the error:
    # at most sqrt k(z, z), and the norm of the mean.
    of_mean = float(np.mean(as_numpy(kernel.diagonal(rows.X)))) ** 0.5
    return LastFit(
        rows.X,
        coef,
        path.offset - product(coef).mean(axis=0),
        alpha,
        "iterative",
        judged,
        alpha * coef[judged] / left[:, None],
        left,
        error_norms=solution.error_norms,
        intercept_errors=of_mean * solution.error_norms,
        uncertainty=uncertainty,
    )


def _best_near(path, alpha):
    """The penalty with the smallest error, within a decade of the search's where it lies there."""
    near = alpha * 10.0 ** np.linspace(-1, 1, 11)
    best, _ = path.best(near)
    return best if near[0] < best < near[-1] else path.best()[0]


def unexplained(
    path: RidgePath, missed: np.ndarray, alpha: float, product: Product, rng: np.random.Generator
) -> np.ndarray:
    """1 - leverage of every row in exact ridge with an intercept, from the landmarks' ridge.

    What landmarks miss of a row, R_jj, adds to its noise: 1 - h becomes (1 - h) / (1 + c (1 - h)
    R_jj / alpha). Other rows tell a part of it, so that c is below one; it follows from the mean of
    1 - h, which a random vector z of signs gives: z'A^-1 z, by one product with K.
    """
    left = path.residuals(alpha)[1]
    ratio = left * missed / alpha
    gap = leverage_gap(path, alpha, product, rng)

    def excess(c):
        return float(np.mean(left - left / (1 + c * ratio))) - gap

    if gap <= 0 or excess(1.0) <= 0:
        return left / (1 + (gap > 0) * ratio)
    return left / (1 + brentq(excess, 0.0, 1.0, xtol=1e-3) * ratio)


def leverage_gap(
    path: RidgePath, alpha: float, product: Product, rng: np.random.Generator
) -> float:
    """How much larger the mean leverage is with all rows than with landmarks, as a rule.

    For one vector z of signs, centred: alpha / n times z'(P^-1 - A^-1) z >= m1^2 / (m1 + m2) with
    x = P^-1 z, m1 = x'R x and m2 = x'R P^-1 R x, by Cauchy and Schwarz.
    """

    def inverse(v):
        return (v - path.Q @ ((path.Q.T @ v) / (path.values + alpha)[:, None])) / alpha

    z = centred(rng.choice([-1.0, 1.0], size=(path.n, 1)))
    x = inverse(z)
    s = centred(product(x)) - path.Q @ (path.Q.T @ x)
    first, second = float((x * s).sum()), float((s * inverse(s)).sum())
    return alpha / path.n * first**2 / (first + second) if first > 0 else 0.0
