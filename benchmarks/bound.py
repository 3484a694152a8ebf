"""`python -m benchmarks.bound [--problems 40] [--points 25000]`: is the bound ever violated?

Ridge solved by iterations, over kernels from rough to smooth, penalties from 1e-6 to 10, single and
double precision, tolerances and ranks of all kinds, against Cholesky refined in extended precision.
Every test point of every problem is counted: |f(z) - f*(z)| <= sqrt(k(z, z)) error_norm.
"""

import argparse
import itertools
import warnings

import numpy as np
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning

from mercer import RBF, Matern, Polynomial, RationalQuadratic
from mercer.engine import tiles
from mercer.engine.resources import Resources
from mercer.solve import solve_iteratively

KERNELS = [
    Matern(0.5, 2.0),
    Matern(1.5, 2.0),
    Matern(2.5, 3.0),
    RBF(0.1),
    RationalQuadratic(1.0, 2.0) + 0.1 * Polynomial(2, 0.1),
]
ALPHAS = [1e-6, 1e-4, 1e-2, 10.0]
DTYPES = [np.float64, np.float32]


def exact(K, t, alpha):
    """Cholesky, refined with residuals in extended precision."""
    A = K + alpha * np.eye(len(K))
    factor = scipy.linalg.cho_factor(A)
    wide, a = A.astype(np.longdouble), scipy.linalg.cho_solve(factor, t).astype(np.longdouble)
    for _ in range(3):
        a = a + scipy.linalg.cho_solve(factor, np.asarray(t - wide @ a, float))
    return np.asarray(a, float)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=40)
    parser.add_argument("--points", type=int, default=25_000)
    parser.add_argument("--rows", type=int, default=800)
    options = parser.parse_args(argv)
    cases = itertools.cycle(itertools.product(KERNELS, ALPHAS, DTYPES))
    tested = violated = 0
    ratios = []
    for seed, (kernel, alpha, dtype) in zip(range(options.problems), cases):
        rng = np.random.default_rng(seed)
        d, n = int(rng.integers(1, 8)), options.rows
        X = (rng.normal(size=(n, d)) * rng.uniform(0.5, 2.0) + rng.uniform(0, 20)).astype(dtype)
        x = X.astype(float)
        t = np.sin(x.sum(axis=1)) + 0.1 * rng.normal(size=n)
        tol, rank = 10.0 ** rng.uniform(-6, -1), int(rng.integers(10, 300))
        tight = Resources(8 * n * (2 * rank + 80))  # tiles, quick products and refinement
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solution = solve_iteratively(
                kernel,
                X,
                t[:, None],
                [alpha],
                tol=tol,
                rank=rank,
                resources=tight,
                max_iter=60,
            )
        Z = rng.normal(size=(options.points, d)) * rng.uniform(0.5, 3.0) + x.mean(axis=0)
        Z[:n] = x[: options.points]
        error = solution.coef - exact(kernel(x), t, alpha)[:, None]
        difference = np.abs(tiles.multiply(kernel, Z, x, error)[:, 0])
        bound = np.sqrt(kernel.diag(Z)) * solution.error_norms[0]
        tested, violated = tested + len(Z), violated + int((difference > bound).sum())
        ratios.append(float(difference.max() / bound.max()))
        print(
            f"{kernel!r}, alpha {alpha:g}, {np.dtype(dtype)}: {solution.n_iter} products, bound "
            f"{solution.error_norms[0]:.2g}, largest error {difference.max():.2g}",
            flush=True,
        )
    print(
        f"\n{violated} violations among {tested} points of {options.problems} problems; largest "
        f"error / bound {max(ratios):.2g}, median {np.median(ratios):.2g}"
    )
    return int(violated > 0)


if __name__ == "__main__":
    raise SystemExit(main())
