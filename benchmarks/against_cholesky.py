"""`python -m benchmarks.against_cholesky [--rows 8000 12000]`: do both solve the same model?

Exact ridge by iterations and by Cholesky, on the same rows: the largest difference of their
predictions beside the certified bound, the time of each, and which of the two form="auto" takes.
The limit of memory of the iterations is far below the kernel matrix, so that they never store it.
Cholesky needs 16 n^2 bytes: 21 GB for the 36000 rows of kin40k.
"""

import argparse
import time

import numpy as np

from . import datasets


def rows_of(name, n, n_test=2000):
    """(kernel, alpha, X, t, Z): training rows, and rows to predict."""
    from mercer import Matern

    rng = np.random.default_rng(0)
    if name == "kin40k":
        X, t = datasets.kin40k()
    else:
        X = rng.normal(size=(n + n_test, 8))
        t = np.sin(X.sum(axis=1)) + 0.1 * rng.normal(size=len(X))
    order = rng.permutation(len(X))
    test, train = order[:n_test], order[n_test : n_test + n]
    pairs = rng.integers(len(train), size=(1000, 2))
    differences = X[train][pairs[:, 0]] - X[train][pairs[:, 1]]
    median = float(np.median(np.sqrt((differences**2).sum(axis=1))))
    return Matern(1.5, 4 * median), 1e-3, X[train], t[train], X[test]


def fitted(model, X, t, Z):
    start = time.perf_counter()
    predicted = model.fit(X, t).predict(Z)
    return predicted, time.perf_counter() - start


def main(argv=None):
    from mercer import KernelMap, KernelRidge

    parser = argparse.ArgumentParser(prog="benchmarks.against_cholesky", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[8000, 12000])
    parser.add_argument("--data", choices=["kin40k", "normal"], default="kin40k")
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--memory-limit", default="300MB")
    options = parser.parse_args(argv)
    violated = 0
    for n in options.rows:
        kernel, alpha, X, t, Z = rows_of(options.data, n)
        given = KernelMap(kernel, memory_limit=options.memory_limit, random_state=0)
        model = KernelRidge(alpha, given, form="iterative", tol=options.tol)
        iterative, iterative_s = fitted(model, X, t, Z)
        direct = KernelRidge(alpha, kernel)
        exact, direct_s = fitted(direct.set_params(form="dual"), X, t, Z)
        difference, bound = np.abs(iterative - exact), model.error_bound(Z)
        violated += int((difference > bound).sum())
        print(
            f"{len(X)} x {X.shape[1]}, {kernel!r}, alpha {alpha:g}: predictions differ by at most "
            f"{difference.max():.2g}, bound {bound.max():.2g}; {model.n_iter_} products, rank "
            f"{model.preconditioner_rank_}; iterations {iterative_s:.1f} s, Cholesky "
            f"{direct_s:.1f} s; auto takes {direct.set_params(form='auto').fit(X, t).form_!r}",
            flush=True,
        )
    return int(violated > 0)


if __name__ == "__main__":
    raise SystemExit(main())
