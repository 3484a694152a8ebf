"""`python -m benchmarks.fourier_bound [--pairs 1e7]`: is the a-priori bound ever violated?

Kernels, length scales, tolerances, boxes and their distance from the origin are drawn at random.
For each, |k(x, z) - phi(x) . phi(z)| is compared with error_bound for pairs of points in the box,
corners among them. The kernel is evaluated by its formula, in double precision.
"""

import argparse

import numpy as np

from mercer import RBF, KernelMap, Laplacian, Matern, OnColumns, Periodic, RationalQuadratic

# Pairs of one problem, as left times right points.
SIDE = 200
MOST = 2500


def random_kernel(rng, d):
    length = 10 ** rng.uniform(-1, 0.5, size=d)
    leaves = [
        RBF(1 / (2 * length**2)),
        Matern(float(rng.choice([0.5, 1.5, 2.5, 3.7, 30.0])), length),
        RationalQuadratic(float(rng.uniform(d / 2 + 1, 6)), length),
        Laplacian(1 / (10 * length)),
        Periodic(length, 10 ** rng.uniform(-0.5, 0.5)),
        OnColumns(RBF(1.0), [0]) * OnColumns(Matern(3.5, 1.0), list(range(d))),
    ]
    kernel = leaves[rng.integers(len(leaves))]
    if rng.random() < 0.3:
        kernel = float(10 ** rng.uniform(-2, 2)) * kernel + leaves[rng.integers(3)]
    if rng.random() < 0.1:
        kernel = kernel * leaves[0]
    return kernel


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=float, default=1e7)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    rng = np.random.default_rng(options.seed)
    pairs = violated = problems = refused = 0
    ratios = []
    while pairs < options.pairs:
        d = int(rng.integers(1, 4))
        kernel, tol = random_kernel(rng, d), float(10 ** rng.uniform(-10, -1))
        low = rng.uniform(-1, 1, size=d) * 10 ** rng.uniform(-1, 3)
        width = 10 ** rng.uniform(-1, 0.7, size=d)
        X = low + width * rng.uniform(size=(SIDE, d))
        X[0], X[1] = low, low + width
        try:
            kernel_map = KernelMap(kernel, basis="fourier", tol=tol, max_rank=MOST).fit(X)
        except ValueError:  # rough kernels need more coordinates than this simulation has time for
            refused += 1
            continue
        Z = np.vstack([X[:2], low + width * rng.uniform(size=(SIDE - 2, d))])
        error = np.abs(kernel_map.transform(X) @ kernel_map.transform(Z).T - kernel(X, Z))
        bound = kernel_map.error_bound(X, Z)
        pairs, problems = pairs + error.size, problems + 1
        violated += int((error > bound).sum())
        ratios.append(float((error / bound).max()))
        if (error > bound).any():
            print(f"violated: {kernel!r}, tol {tol:g}, low {low}, width {width}", flush=True)
    print(
        f"{violated} violations among {pairs:.3g} pairs of {problems} problems ({refused} more "
        f"needed over {MOST} coordinates); largest error / bound {max(ratios):.3f}, median of the "
        f"largest per problem {np.median(ratios):.2f}"
    )
    return int(violated > 0)


if __name__ == "__main__":
    raise SystemExit(main())
