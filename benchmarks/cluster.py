"""Kernel methods on a cluster: python -m benchmarks.cluster --rows 1e7

Standard normal rows in 3 columns, made lazily; RBF kernel; every residual certified; ridge and
kernel PCA on the coordinates. A LocalCluster of 2 single-threaded workers, and mercer's own stream
in one process with 2 threads on the same rows in the same chunks. Prints times, the memory that
workers took at most, the bytes that they moved, and the difference of the answers.
"""

import argparse
import resource
import time
from contextlib import contextmanager
from functools import partial

import numpy as np

from mercer import RBF, Chunks, KernelMap, KernelPCA, KernelRidge

TOL, GAMMA, ALPHA, SEED = 1e-6, 0.1, 1e-2, 0
SUBSET = 100_000
LOW_RANK = 64


def make(number, size):
    """One block of rows, the same wherever it is made."""
    return np.random.default_rng([SEED, number]).standard_normal((size, 3))


def target(X):
    return np.sin(X[:, 0]) + X[:, 1] * X[:, 2]


def sizes(n, block):
    """Rows of each block; at least 8 blocks."""
    block = min(block, n // 8)
    return [min(block, n - a) for a in range(0, n, block)]


def collection(n, block):
    """X and y as Dask arrays."""
    import dask.array as da

    def blocks(block_info=None):
        where = block_info[None]
        return make(where["chunk-location"][0], where["chunk-shape"][0])

    X = da.map_blocks(blocks, chunks=(tuple(sizes(n, block)), (3,)), dtype=float)
    return X, X.map_blocks(target, drop_axis=1, dtype=float)


def stream(n, block):
    """The same rows in the same chunks."""
    rows = partial(map, make, range(len(sizes(n, block))), sizes(n, block))
    return Chunks(rows), Chunks(lambda: map(target, rows()))


def ridge(X, y, **options):
    return KernelRidge(ALPHA, KernelMap(RBF(GAMMA), tol=TOL, **options)).fit(X, y)


def pca(X):
    return KernelPCA(10, KernelMap(RBF(GAMMA), tol=TOL)).fit(X)


# --- what is measured -----------------------------------------------------------------------------


def timed(call, client=None):
    """The result, wall time, and CPU time of all processes: the latter holds on a busy machine."""
    start, spent = time.perf_counter(), cpu_seconds(client)
    result = call()
    return result, time.perf_counter() - start, cpu_seconds(client) - spent


def cpu_seconds(client):
    workers = [] if client is None else client.run(time.process_time).values()
    return time.process_time() + sum(workers)


def traffic(dask_worker):
    """Bytes that came from other workers, and that were sent to workers or to the client."""
    came = sum(t["total"] for t in dask_worker.transfer_incoming_log)
    return came, dask_worker.transfer_outgoing_bytes_total


def moved(client):
    return np.array(list(client.run(traffic).values()), dtype=float)


def peak_memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def report(name, client, call, n):
    before = moved(client)
    model, wall, cpu = timed(call, client)
    came, went = (moved(client) - before).max(axis=0)
    fitted = model.kernel_map_
    peak = max(client.run(peak_memory).values())
    print(
        f"{n:8.0e} {name:<22} {fitted.rank_:5d} {fitted.max_residual_:9.1e} {wall:7.1f} {cpu:7.1f} "
        f"{1e6 * cpu / n:7.1f} {came / 1e6:9.2f} {went / 1e6:6.2f} "
        f"{(came + went) / (8 * fitted.rank_**2):9.1f} {peak / 1e9:7.2f}",
        flush=True,
    )
    return model


HEAD = (
    "    rows fit                     rank  residual  wall s   CPU s  us/row  received   sent  "
    "in 8r^2  peak GB"
)


# --- what is run ----------------------------------------------------------------------------------


def compare_answers(block):
    """The answers of the cluster and of one machine on the same rows."""
    (X, y), (chunks, targets) = collection(SUBSET, block), stream(SUBSET, block)
    whole = np.concatenate(list(chunks))
    many, one = ridge(X, y), ridge(chunks, targets)
    same = np.array_equal(many.kernel_map_.landmark_indices_, one.kernel_map_.landmark_indices_)
    print(f"{SUBSET:.0e} rows, cluster against one machine: same landmarks: {same}")
    there, here = many.predict(X).compute(), one.predict(whole)
    print(f"  ridge, largest difference of predictions {np.abs(there - here).max():.1e}")
    many, one = pca(X), pca(chunks)
    there, here = many.transform(X).compute(), one.transform(whole)
    print(f"  kernel PCA, largest difference of scores {np.abs(there - here).max():.1e}")


def compare_times(client, n, block, repeats):
    """Turn by turn, so that other work on the machine falls on both."""
    times = []
    for _ in range(repeats):
        _, *there = timed(lambda: ridge(*collection(n, block)), client)
        _, *here = timed(lambda: ridge(*stream(n, block)))
        times.append([*there, *here])
        print(
            "  cluster {:.1f} s, CPU {:.1f} s; one machine {:.1f} s, CPU {:.1f} s".format(
                *times[-1]
            ),
            flush=True,
        )
    wall, cpu, wall_here, cpu_here = np.median(times, axis=0)
    print(
        f"{n:.0e} rows, map and ridge, cluster / one machine, medians of {repeats}: "
        f"wall {wall / wall_here:.2f}, CPU {cpu / cpu_here:.2f}"
    )


@contextmanager
def local_cluster(workers):
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, memory_limit="2GB", dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e7, help="the largest of three sizes")
    parser.add_argument("--block", type=float, default=250_000, help="rows of a partition")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3, help="of timed runs; 0: none")
    given = parser.parse_args()
    n, block = int(given.rows), int(given.block)
    with local_cluster(given.workers) as client:
        compare_answers(block)
        if given.repeats:
            compare_times(client, n // 10, block, given.repeats)
        print(HEAD)
        for rows in (n // 100, n // 10, n):
            X, y = collection(rows, block)
            report("ridge", client, partial(ridge, X, y), rows)
            low = partial(ridge, X, y, max_rank=LOW_RANK)
            report(f"ridge, max_rank={LOW_RANK}", client, low, rows)
        report("kernel PCA", client, partial(pca, X), n)


if __name__ == "__main__":
    main()
