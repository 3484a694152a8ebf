"""`python -m benchmarks.fourier_bound [--pairs 1e7] [--seed 0] [--jobs 1] [--memory 1GB]`.

Is the a-priori bound of Fourier coordinates ever violated? Kernels, length scales, tolerances,
boxes and their distance from the origin are drawn at random. For each draw, |k(x, z) - phi(x) .
phi(z)| is compared with error_bound for pairs of points in the box, corners among them. The kernel
is evaluated by its formula and the coordinates by cosines and sines: nothing needs finufft.

No draw is left out because it is large: one with many coordinates gets fewer pairs. The only draws
that are not judged are those that the map itself refuses, for it would need more frequencies than
fit --memory; they are counted by kernel. A draw depends on --seed and its number alone, so that
--jobs changes nothing but the time.
"""

import argparse
import itertools
import os
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from mercer import RBF, KernelMap, Laplacian, Matern, OnColumns, Periodic, RationalQuadratic

# Points on each side of the pairs of a draw, and coordinates of one side that are held.
MOST_POINTS, FEWEST_POINTS, COORDINATES = 100, 4, 10_000_000


@dataclass(frozen=True)
class Draw:
    """What one draw said; without pairs where the map was refused."""

    name: str  # of the kernel
    text: str
    rank: int = 0
    pairs: int = 0
    violations: int = 0
    ratio: float = 0.0  # the largest error / bound
    refusal: str = ""


def random_kernel(rng, d):
    """(name, kernel): a leaf, at times scaled and added to another, or multiplied by one."""
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
    name = type(kernel).__name__
    if isinstance(kernel, Matern):
        name += f" nu={kernel.nu:g}"
    if rng.random() < 0.3:
        kernel, name = float(10 ** rng.uniform(-2, 2)) * kernel + leaves[rng.integers(3)], "Sum"
    if rng.random() < 0.1:
        kernel, name = kernel * leaves[0], "Product"
    return name, kernel


def judged(number, seed, memory) -> Draw:
    """The draw of this number."""
    rng = np.random.default_rng([seed, number])
    d = int(rng.integers(1, 4))
    (name, kernel), tol = random_kernel(rng, d), float(10 ** rng.uniform(-10, -1))
    low = rng.uniform(-1, 1, size=d) * 10 ** rng.uniform(-1, 3)
    width = 10 ** rng.uniform(-1, 0.7, size=d)
    corners = np.stack([low, low + width])
    name, text = f"{name} in {d}-D", f"{kernel!r}, tol {tol:g}, low {low}, width {width}"
    try:
        # Two rows span the box: its frequencies need no others.
        chosen = KernelMap(kernel, basis="fourier", tol=tol, memory_limit=memory).fit(corners)
    except ValueError as why:
        return Draw(name, text, refusal=str(why))
    side = int(np.clip(COORDINATES // chosen.rank_, FEWEST_POINTS, MOST_POINTS))
    X, Z = (np.vstack([corners, low + width * rng.uniform(size=(side - 2, d))]) for _ in range(2))
    error = np.abs(chosen.transform(X) @ chosen.transform(Z).T - kernel(X, Z))
    bound = chosen.error_bound(X, Z)
    ratio, violations = float((error / bound).max()), int((error > bound).sum())
    return Draw(name, text, chosen.rank_, error.size, violations, ratio)


def one_thread():
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)  # the processes are the threads


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=float, default=1e7)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes; -1: one per core")
    parser.add_argument("--memory", default="1GB", help="memory_limit of each map")
    options = parser.parse_args(argv)
    jobs = os.cpu_count() if options.jobs < 0 else options.jobs
    judge = partial(judged, seed=options.seed, memory=options.memory)
    start, draws, pairs = time.perf_counter(), [], 0
    with ProcessPoolExecutor(jobs, initializer=one_thread) as pool:
        for batch in itertools.count():
            # In the order of their numbers, whichever process was first.
            for draw in pool.map(judge, range(batch * 16 * jobs, (batch + 1) * 16 * jobs)):
                if pairs >= options.pairs:
                    break
                draws.append(draw)
                pairs += draw.pairs
                if draw.violations:
                    print(f"violated {draw.violations} times: {draw.text}", flush=True)
            print(f"  {pairs:.3g} pairs, {time.perf_counter() - start:.0f} s", flush=True)
            if pairs >= options.pairs:
                break
    return report(draws, options)


def report(draws, options):
    """Print what was found; 1 if the bound was violated."""
    done = [draw for draw in draws if not draw.refusal]
    refused = Counter(draw.name for draw in draws if draw.refusal)
    ranks, ratios = np.array([d.rank for d in done]), np.array([d.ratio for d in done])
    violations = sum(draw.violations for draw in done)
    pairs = sum(draw.pairs for draw in done)
    print(
        f"{violations} violations among {pairs:.4g} pairs of {len(done)} draws (seed "
        f"{options.seed}); largest error / bound {ratios.max():.3f}, median of the largest per "
        f"draw {np.median(ratios):.2f}"
    )
    print(
        f"coordinates: median {np.median(ranks):.0f}, largest {ranks.max()}; "
        f"{np.sum(ranks > 2500)} draws have over 2500, {np.sum(ranks > 100_000)} over 100000"
    )
    print(
        f"{refused.total()} more draws were refused by the map itself: too many frequencies for "
        f"memory_limit={options.memory}"
    )
    drawn = Counter(draw.name for draw in draws)
    for name, count in refused.most_common():
        print(f"  {name}: {count} of {drawn[name]}")
    odd = [d for d in draws if d.refusal and "frequencies" not in d.refusal]
    for draw in odd:
        print(f"  for another reason: {draw.refusal}")
    return int(violations > 0)


if __name__ == "__main__":
    raise SystemExit(main())
