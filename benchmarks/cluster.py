"""Kernel methods on a cluster: python -m benchmarks.cluster --rows 1e7

Standard normal rows in 3 columns, made lazily; RBF kernel; every residual certified; ridge and
kernel PCA on the coordinates. A LocalCluster of 2 single-threaded workers against the streaming
path of one process with 2 threads, on the same rows. Prints times, the memory that workers took at
most, the bytes that they received from each other, and the difference of the answers.
"""

import argparse
import pickle
import time

import numpy as np

from mercer import RBF, Chunks, KernelMap, KernelPCA, KernelRidge
from mercer.methods.base import Moments

TOL, GAMMA, ALPHA, SEED = 1e-6, 0.1, 1e-2, 0
SUBSET = 100_000


def rows(n, block):
    import dask.array as da

    X = da.random.default_rng(SEED).standard_normal((n, 3), chunks=(block, 3))
    return X, da.sin(X[:, 0]) + X[:, 1] * X[:, 2]


def kernel_map():
    return KernelMap(RBF(GAMMA), tol=TOL)


class Clock:
    """Wall time, and CPU time of all processes: the latter also holds on a busy machine."""

    def __init__(self):
        self.wall, self.cpu = {}, {}

    def __call__(self, name, call, client=None):
        start, spent = time.perf_counter(), cpu_seconds(client)
        result = call()
        self.wall[name] = time.perf_counter() - start
        self.cpu[name] = cpu_seconds(client) - spent
        print(f"  {name:<40} {self.wall[name]:7.1f} s, CPU {self.cpu[name]:7.1f} s", flush=True)
        return result


def cpu_seconds(client):
    workers = [] if client is None else client.run(time.process_time).values()
    return time.process_time() + sum(workers)


def streamed(X, y):
    """The same rows on one machine, block by block, and the sums that ridge needs."""

    def blocks(A):
        return (A.blocks[i].compute(scheduler="synchronous") for i in range(A.numblocks[0]))

    fitted = kernel_map().fit(Chunks(lambda: blocks(X)))
    total = None
    for rows_, targets in zip(blocks(X), blocks(y)):

        def add(Phi, a, b, targets=targets):
            nonlocal total
            part = Moments.of(Phi, targets[a:b, None])
            total = part if total is None else total + part

        fitted.for_panels(rows_, add)
    w = np.linalg.solve(total.second + ALPHA * np.eye(fitted.rank_), total.cross)
    return fitted, w


def ridge(X, y):
    return KernelRidge(ALPHA, kernel_map()).fit(X, y)


def received(dask_worker):
    """Bytes that came from other workers, and that were sent anywhere."""
    came = sum(t["total"] for t in dask_worker.transfer_incoming_log)
    return came, dask_worker.transfer_outgoing_bytes_total


def peak_memory():
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def moved(client, before=None):
    now = np.array(list(client.run(received).values()), dtype=float)
    return now if before is None else now - before


def compare_subset(client, block):
    """The answer of the cluster and of one machine on the same rows."""
    X, y = rows(SUBSET, min(block, SUBSET // 8))
    model = ridge(X, y)
    fitted, w = streamed(X, y)
    there, here = model.predict(X).compute(), fitted.transform(X.compute()) @ w[:, 0]
    same = np.array_equal(model.kernel_map_.landmark_indices_, fitted.landmark_indices_)
    print(f"  {SUBSET:.0e} rows: rank {fitted.rank_}, same landmarks: {same}")
    print(f"  largest difference of predictions {np.abs(there - here).max():.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--block", type=float, default=250_000, help="rows of a partition")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--no-single", action="store_true", help="leave one machine out")
    given = parser.parse_args()
    n, block = int(given.rows), int(given.block)
    from distributed import Client, LocalCluster

    clock = Clock()
    with (
        LocalCluster(
            n_workers=given.workers,
            threads_per_worker=1,
            memory_limit="2GB",
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as client,
    ):
        compare_subset(client, block)
        for rows_here in (n // 5, n):
            X, y = rows(rows_here, block)
            print(f"{rows_here:.0e} rows in {X.numblocks[0]} partitions, {given.workers} workers")
            start = moved(client)
            model = clock("cluster: map and ridge", lambda X=X, y=y: ridge(X, y), client)
            report(model.kernel_map_, moved(client, start))
        start = moved(client)
        pca = clock(
            "cluster: map and kernel PCA", lambda: KernelPCA(10, kernel_map()).fit(X), client
        )
        report(pca.kernel_map_, moved(client, start))
        peak = max(client.run(peak_memory).values())
        print(f"  largest memory of a worker {peak / 1e9:.2f} GB")
    if not given.no_single:
        fitted, _ = clock("one machine: map and ridge", lambda: streamed(X, y))
        print(f"  rank {fitted.rank_}, largest residual {fitted.max_residual_:.2e}")
        for what, times in (("wall", clock.wall), ("CPU", clock.cpu)):
            ratio = times["cluster: map and ridge"] / times["one machine: map and ridge"]
            print(f"  cluster / one machine, {what} time: {ratio:.2f}")


def report(fitted, bytes_moved):
    size = len(pickle.dumps(fitted._space))
    came, went = bytes_moved[:, 0].max(), bytes_moved[:, 1].max()
    print(
        f"  rank {fitted.rank_}, largest residual {fitted.max_residual_:.2e}, factor "
        f"{size / 1e6:.1f} MB; a worker received at most {came / 1e6:.1f} MB and sent "
        f"{went / 1e6:.1f} MB"
    )


if __name__ == "__main__":
    main()
