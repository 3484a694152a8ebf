"""The last fit without a stored kernel matrix: iterations with a certified error.

Conjugate gradients solve A u = 1 and A v = t, and the intercept b = 1'v / 1'u makes f = v - b u the
ridge regression with an intercept. Their certificates e_u and e_v (MATH.md section 8) carry over:
|1'A^-1 s| <= sqrt(1'u) sqrt(s'A^-1 s) by Cauchy-Schwarz, so that

    |b - b*| <= (e_v + |b| e_u) sqrt(1'u) / 1'u,    |f - f*| <= e_v + |b| e_u + |b - b*| |u|.
"""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..engine import tiles
from ..engine.arrays import as_numpy, cholesky, namespace, put
from ..kernels import Kernel
from ..kernels.points import take
from ..solve import solve_iteratively
from .observations import Observations
from .ridge_fit import LastFit, left_out, noise_of

# Certified error of the function, relative to the function. Certificates are bounds in the norm of
# the kernel's space: the errors of predictions are 100 to 1000 times smaller, as a rule.
TOL = 1e-3
MAX_ITER = 300
HELP = "A larger memory_limit gives a better preconditioner, and solver='direct' needs none."
# Rows whose leave-one-out error is computed, and the neighbours that it is computed from.
JUDGED_ROWS, NEIGHBOURS = 500, 400
# Kernel values held at once while neighbours are looked for.
HELD_VALUES = 1 << 24


def iterative_fit(
    kernel: Kernel,
    rows: Observations,
    alpha: float,
    judged: np.ndarray,
    *,
    rng: np.random.Generator,
    limit: int,
    tol: float | None = None,
    verbose: bool = False,
) -> LastFit | None:
    """Ridge with an intercept on all rows, to a certified accuracy, K never stored.

    None where the iterations ended too early to say anything, with a warning.
    """
    xp = namespace(rows.T)
    both = xp.concat([xp.ones_like(rows.T[:, :1]), rows.T], axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solution = solve_iteratively(
            kernel,
            rows.X,
            both,
            np.full(both.shape[1], alpha),
            rows.weights,
            tol=TOL if tol is None else tol,
            max_iter=MAX_ITER,
            memory_limit=limit,
            random_state=int(rng.integers(2**31)),
            verbose=verbose,
        )
    u, v = solution.coef[:, :1], solution.coef[:, 1:]
    total = float(xp.sum(u))
    if total <= float(solution.error_norms[0]) ** 2:  # not even the sign of 1'u is certain
        warnings.warn(
            f"the iterations of the last fit found no solution with {solution.n_iter} products: "
            f"landmarks are used instead. {HELP}",
            ConvergenceWarning,
            stacklevel=4,
        )
        return None
    intercept = xp.sum(v, axis=0) / total
    a = v - u * intercept[None, :]
    norms, intercept_errors = _errors(solution, total, as_numpy(intercept))
    if not solution.converged:
        worst = float(np.max(norms))
        warnings.warn(
            f"the iterations of the last fit ended after {solution.n_iter} products with the "
            f"kernel matrix, at a certified error of {worst:.2g} sqrt(k(z, z)) in units of the "
            f"target's standard deviation. {HELP}",
            ConvergenceWarning,
            stacklevel=4,
        )
    judged = judged[:: max(1, len(judged) // JUDGED_ROWS)]
    inverse = lower_inverse_diagonal(kernel, rows, alpha, judged)
    residuals, left = left_out(rows, alpha, judged, a, u, total, inverse)
    return LastFit(
        rows.X,
        a,
        intercept,
        alpha,
        "iterative",
        judged,
        residuals,
        left,
        error_norms=norms,
        intercept_errors=intercept_errors,
    )


def _errors(solution, total, intercept):
    """(error norms, errors of the intercept), one per target."""
    of_ones, of_targets = solution.error_norms[0], solution.error_norms[1:]
    # 1'u is known to sqrt(1'u) e_u only: the smallest value that this leaves.
    least = max((max(total, 0.0) ** 0.5 - of_ones), np.finfo(float).tiny) ** 2
    both = of_targets + np.abs(intercept) * of_ones
    of_intercept = both / least**0.5
    return both + of_intercept * (solution.norms[0] + of_ones), of_intercept


def lower_inverse_diagonal(
    kernel: Kernel, rows: Observations, alpha: float, judged: np.ndarray
) -> np.ndarray:
    """(A^-1)_jj from the nearest rows: at most the exact value, and close to it.

    1 / (A^-1)_jj is the variance of observation j given all others. Given some of them it is
    larger: leave-one-out errors come out too large, never too small.
    """
    n, found = rows.n, np.empty(len(judged))
    lengths = as_numpy(kernel.diagonal(rows.X)) ** 0.5
    noise, m = noise_of(rows), min(n, NEIGHBOURS)
    block = max(1, HELD_VALUES // n)
    for start in range(0, len(judged), block):
        some = judged[start : start + block]
        near = np.abs(as_numpy(tiles.evaluate(kernel, take(rows.X, some), rows.X)))
        near /= np.maximum(lengths, np.finfo(float).tiny)
        near[np.arange(len(some)), some] = np.inf  # the row itself comes first
        nearest = np.argpartition(-near, m - 1, axis=1)[:, :m] if m < n else None
        for i, j in enumerate(some):
            these = np.arange(n) if nearest is None else nearest[i]
            found[start + i] = _one_inverse(kernel, rows, alpha, noise, these, j)
    return found


def _one_inverse(kernel, rows, alpha, noise, these, j):
    # Last in the order, the row's entry of the inverse is that of the factor alone.
    order = np.concatenate([these[these != j], [j]])
    K = tiles.evaluate(kernel, take(rows.X, order))
    diagonal, shift = np.arange(len(order)), alpha * take(noise, order)
    own = namespace(K).linalg.diagonal(K)
    C = cholesky(put(K, diagonal, diagonal, own + shift))
    if C is None:  # singular to rounding: what is known without any neighbour
        return 1 / float(own[-1] + shift[-1])
    return float(C[-1, -1]) ** -2
