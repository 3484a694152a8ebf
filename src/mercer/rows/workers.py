"""Workers: products with K, and coordinates, computed by the workers of a Dask cluster.

The points travel to each worker once, and with every product one vector per target. Coordinates
stay in blocks where they were made. What a lost worker held is made again by another one.
"""

from typing import Any

import numpy as np

from ..engine import MatrixProduct, MemoryLimitError, coordinates_bytes, gram, readable, rows_of
from ..kernels import Kernel
from .dask import Partitions, bytes_of, task

# Shares of a product for every thread of the cluster, so that all end at about the same time.
_SHARES_PER_THREAD = 2
# Shares of the workers' memory: for coordinates, and for the points that they are given.
_FOR_COORDINATES = 0.4
_FOR_POINTS = 0.5


class Workers:
    """Compute products with the kernel matrix on the workers of a Dask cluster.

    Each worker is sent all points once. The Dask collection X says where tasks run, and in how
    many pieces at least.
    """

    def __init__(self, X: Any) -> None:
        self.parts = Partitions(X)
        client, found = self.parts.client, []
        if client is not None:
            found = list(client.scheduler_info(n_workers=-1)["workers"].values())
        threads = sum(worker["nthreads"] for worker in found)
        self.limits = [worker["memory_limit"] for worker in found if worker["memory_limit"]]
        self.exact: Any = None  # until points are given
        self.count = max(len(self.parts.blocks), _SHARES_PER_THREAD * threads)

    def room(self, limit: int) -> int:
        """Bytes for coordinates, on all workers together."""
        return int(_FOR_COORDINATES * sum(self.limits)) if self.limits else limit

    def give(self, kernel: Kernel, X: Any) -> None:
        """Send the kernel and all its points, in double precision, to every worker: once."""
        if self.exact is not None and self.exact.values.X is X:
            return
        self.exact = MatrixProduct.shares(kernel, X)
        self.given = self._send(self.exact)

    def coordinates(self, factor: Any, roots: Any = None) -> "_CoordinatesOnWorkers":
        """Those of all points on the landmarks of a factor, left where they are made."""
        return _CoordinatesOnWorkers(self, factor, roots)

    def exact_product(self) -> MatrixProduct:
        return self._product(self.exact, self.given, exact=True)

    def quick_product(self, kernel: Kernel, X: Any) -> MatrixProduct | None:
        shares = MatrixProduct.quick_shares(kernel, X)
        return None if shares is None else self._product(shares, self._send(shares), exact=False)

    def _send(self, shares: Any) -> Any:
        needed = bytes_of(shares)
        if self.limits and needed > _FOR_POINTS * min(self.limits):
            raise MemoryLimitError(
                f"every worker compares its rows with all others, {readable(needed)}, and the "
                f"smallest worker has {readable(min(self.limits))}: use workers with more memory, "
                "or form='primal'."
            )
        return self.parts.share(shares)

    def _product(self, shares: Any, given: Any, exact: bool) -> MatrixProduct:
        """V -> K V, one share per task."""
        count = min(self.count, len(shares.blocks))

        def times(V: Any) -> Any:
            vectors = self.parts.share(shares.prepared(V))
            tasks = self.parts.each(
                _share_of_product, given, [vectors] * count, [count] * count, blocks=range(count)
            )
            return self.parts.total(tasks)

        return MatrixProduct(times, "workers", exact)


class _CoordinatesOnWorkers:
    """F in blocks of rows, each where it was made: F'F, F'S and F w without F."""

    def __init__(self, workers: Workers, factor: Any, roots: Any = None) -> None:
        self.parts, self.rank, n = workers.parts, factor.rank, workers.exact.n
        ends = np.unique(np.linspace(0, n, min(workers.count, n) + 1).astype(int)).tolist()
        self.starts, self.stops = ends[:-1], ends[1:]
        factors = [self.parts.share((factor, roots))] * len(self.starts)
        tasks = self.parts.each(
            _coordinates, workers.given, self.stops, factors, blocks=self.starts
        )
        self.blocks = self.parts.keep(tasks)

    def gram(self) -> Any:
        return self.parts.total([self.parts.delayed(task(gram), block) for block in self.blocks])

    def project(self, S: Any) -> Any:
        """F'S."""
        given = self.parts.share(S)
        return self.parts.total(
            self.parts.each(_projected, given, self.starts, self.stops, blocks=self.blocks)
        )

    def lift(self, w: Any) -> Any:
        """F w."""
        given = self.parts.share(w)
        return np.concatenate(
            self.parts.collect(self.parts.each(_lifted, given, blocks=self.blocks))
        )

    @property
    def bytes(self) -> float:
        """Here: nothing but what travels."""
        return coordinates_bytes(self.rank, self.rank, 2)


# --- tasks ----------------------------------------------------------------------------------------


@task
def _share_of_product(shares: Any, first: int, right: np.ndarray, count: int) -> np.ndarray:
    total = np.zeros((shares.n, right.shape[1]))
    shares.add(right, first, count, total)
    return total


@task
def _coordinates(shares: Any, start: int, stop: int, given: tuple[Any, Any]) -> Any:
    factor, roots = given
    F = factor.coordinates(rows_of(shares.values.X, start, stop)).astype(np.float64, copy=False)
    return F if roots is None else F * roots[start:stop, None]


@task
def _projected(S: np.ndarray, F: np.ndarray, start: int, stop: int) -> Any:
    return F.T @ S[start:stop]


@task
def _lifted(w: np.ndarray, F: np.ndarray) -> Any:
    return F @ w
