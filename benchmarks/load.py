"""Under load: 10 000 predictions of one row, and 100 batches at once. Memory and latencies.

``python -m benchmarks.load`` prints the table of docs/contribute/tested.md.
"""

import gc
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from mercer import RBF, KernelDiscriminant, KernelMap, KernelPCA, KernelRidge

SINGLES, BATCHES, CLIENTS = 10_000, 100, (8, 100)
WARM_UP = 500


def resident():
    """Bytes of this process that are in memory now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def models(rng):
    X = rng.normal(size=(1000, 10))
    y = np.sin(X[:, 0])
    return {
        "KernelMap, 200 landmarks": KernelMap(RBF(0.05), max_rank=200).fit(X).transform,
        "KernelRidge": KernelRidge(0.1, RBF(0.05)).fit(X, y).predict,
        "KernelPCA, 10 components": KernelPCA(10, RBF(0.05)).fit(X).transform,
        "KernelDiscriminant": KernelDiscriminant(kernel=RBF(0.05)).fit(X, y > 0).predict,
    }


def singles(call, rows):
    """Seconds of each call, and the growth of memory after a warm-up."""
    for row in rows[:WARM_UP]:
        call(row[None, :])
    gc.collect()
    before, seconds = resident(), np.empty(len(rows))
    for i, row in enumerate(rows):
        started = time.perf_counter()
        call(row[None, :])
        seconds[i] = time.perf_counter() - started
    gc.collect()
    return seconds, resident() - before


def batches(call, clients, rng):
    """The same for batches of 500 rows from several clients at once."""
    work = [rng.normal(size=(500, 10)) for _ in range(BATCHES)]

    def one(X):
        started = time.perf_counter()
        call(X)
        return time.perf_counter() - started

    with ThreadPoolExecutor(clients) as pool:
        for _ in range(5):  # a warm-up: allocators of all threads reach what they will keep
            list(pool.map(one, work))
        gc.collect()
        before = resident()
        seconds = np.array([s for _ in range(3) for s in pool.map(one, work)])
        gc.collect()
    return seconds, resident() - before


def row(name, seconds, growth):
    p50, p95, p99, most = (1e3 * np.quantile(seconds, [0.5, 0.95, 0.99, 1.0])).tolist()
    return (
        f"| {name} | {p50:.2f} | {p95:.2f} | {p99:.2f} | {most:.1f} | {growth / 2**20:+.1f} MiB |"
    )


def main():
    rng = np.random.default_rng(0)
    ready = models(rng)
    rows = rng.normal(size=(SINGLES, 10))
    head = "| p50 ms | p95 ms | p99 ms | most ms | memory after |\n|---|---|---|---|---|---|"
    print(f"| {SINGLES} single rows {head}")
    for name, call in ready.items():
        print(row(name, *singles(call, rows)))
        sys.stdout.flush()
    for clients in CLIENTS:
        print(f"\n| 3 x {BATCHES} batches of 500 rows, {clients} at once {head}")
        for name, call in ready.items():
            print(row(name, *batches(call, clients, rng)))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
