"""`python -m benchmarks.against_cholesky [--rows 8000 12000]`: do both solve the same model?

Exact ridge by iterations and by Cholesky, on the same rows: the largest difference of their
predictions beside the certified bound, the time of each, and the largest memory of the iterations.
The limit of memory of the iterations is far below the kernel matrix, so that they never store it.

Cholesky is form="dual" by default; the command then says, too, which of the two form="auto" takes.
It needs 16 n^2 bytes: 21 GB for the 36000 rows of kin40k. `--reference blocked` factors in place,
in blocks: 10 GB, and no LAPACK build fails on it. `--reference torch` is the dual form on a GPU, or
on the CPU where there is none.
"""

import argparse
import resource
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


def dual(kernel, alpha, X, t, Z):
    from mercer import KernelRidge

    return KernelRidge(alpha, kernel, form="dual").fit(X, t).predict(Z)


def blocked(kernel, alpha, X, t, Z):
    from mercer.engine import cholesky, tiles

    K = tiles.evaluate(kernel, X)
    K[np.diag_indices(len(K))] += alpha
    C = cholesky(K, in_place=True)
    if C is None:
        raise ValueError(f"K + {alpha:g} I is singular to rounding.")
    a = _backward(C, _forward(C, t))
    return tiles.multiply(kernel, Z, X, a[:, None])[:, 0]


def _forward(C, b, block=2048):
    """C^-1 b for a lower triangular C, a block of rows at a time."""
    from mercer.engine.arrays import solve_triangular

    b = b.copy()
    for i in range(0, len(b), block):
        rows = slice(i, i + block)
        b[rows] = solve_triangular(C[rows, rows], b[rows] - C[rows, :i] @ b[:i])
    return b


def _backward(C, b, block=2048):
    """C^-T b."""
    from mercer.engine.arrays import solve_triangular

    b = b.copy()
    for i in reversed(range(0, len(b), block)):
        rows, after = slice(i, i + block), min(i + block, len(b))
        right = b[rows] - C[after:, rows].T @ b[after:]
        b[rows] = solve_triangular(C[rows, rows], right, transpose=True)
    return b


def on_torch(kernel, alpha, X, t, Z):
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    X, t, Z = (torch.as_tensor(A, dtype=torch.float64, device=device) for A in (X, t, Z))
    return dual(kernel, alpha, X, t, Z).cpu().numpy()


REFERENCES = {"dual": dual, "blocked": blocked, "torch": on_torch}


def timed(call):
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def main(argv=None):
    from mercer import KernelMap, KernelRidge

    parser = argparse.ArgumentParser(prog="benchmarks.against_cholesky", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[8000, 12000])
    parser.add_argument("--data", choices=["kin40k", "normal"], default="kin40k")
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--memory-limit", default="300MB")
    parser.add_argument("--reference", choices=sorted(REFERENCES), default="dual")
    options = parser.parse_args(argv)
    violated = 0
    for n in options.rows:
        kernel, alpha, X, t, Z = rows_of(options.data, n)
        given = KernelMap(kernel, memory_limit=options.memory_limit, random_state=0)
        model = KernelRidge(alpha, given, form="iterative", tol=options.tol)
        iterative, iterative_s = timed(
            lambda model=model, X=X, t=t, Z=Z: model.fit(X, t).predict(Z)
        )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        problem = kernel, alpha, X, t, Z
        exact, exact_s = timed(lambda p=problem: REFERENCES[options.reference](*p))
        difference, bound = np.abs(iterative - exact), model.error_bound(Z)
        violated += int((difference > bound).sum())
        message = (
            f"{len(X)} x {X.shape[1]}, {kernel!r}, alpha {alpha:g}: predictions differ by at most "
            f"{difference.max():.2g}, bound {bound.max():.2g}; {model.n_iter_} products, rank "
            f"{model.preconditioner_rank_}; iterations {iterative_s:.1f} s and {peak:.2f} GiB, "
            f"Cholesky ({options.reference}) {exact_s:.1f} s"
        )
        if options.reference == "dual":
            message += f"; auto takes {KernelRidge(alpha, kernel).fit(X, t).form_!r}"
        print(message, flush=True)
    return int(violated > 0)


if __name__ == "__main__":
    raise SystemExit(main())
