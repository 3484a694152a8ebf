"""Dask collections: rows in partitions, and tasks over them.

Nothing here starts a cluster: tasks run where the user's Dask runs them (the client that is active,
else the local scheduler). What tasks share (landmarks and their factor) is one node of the graph:
it travels once to each worker, and again if one is lost. Blocks stay where they are read, and sums
are added where they are made.
"""

# Most of what Dask gives its users has no types.
# mypy: untyped-calls-exclude="dask,distributed"

import sys
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property, wraps
from importlib.util import find_spec
from numbers import Integral
from typing import Any
from uuid import uuid4

import numpy as np

from ..engine import one_blas_thread, single_threaded
from ..kernels import Kernel
from .dask_compat import empty_frame, graph_nodes, made_up_frame

# Sums that are added in one task.
_FAN_IN = 8
# Clients whose workers were asked.
_ASKED: weakref.WeakSet[Any] = weakref.WeakSet()
# Lengths of collections that Dask does not know, while these live: id -> (collection, lengths).
_COUNTED: dict[int, tuple[Any, np.ndarray]] = {}


def is_dask(X: Any) -> bool:
    """True for Dask collections, without importing Dask to find out."""
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(
        X, "__dask_graph__"
    )


def is_dask_frame(X: Any) -> bool:
    return is_dask(X) and hasattr(X, "npartitions") and hasattr(X, "map_partitions")


def check_unchanged(seen: int, expected: int) -> None:
    """Refuse a collection whose rows are others each time it is computed."""
    if seen != expected:
        raise RuntimeError(
            f"{seen} rows were read where {expected} had been counted: X changes each time it is "
            "computed. Write it to files, or X.persist() it."
        )


class Partitions:
    """The blocks of rows of a Dask array or DataFrame, as delayed objects."""

    def __init__(self, X: Any) -> None:
        self.frame = is_dask_frame(X) and hasattr(X, "columns") and X.ndim == 2
        if not self.frame and not (hasattr(X, "chunks") and X.ndim == 2):
            raise TypeError(
                f"X must be a 2-D Dask array or a Dask DataFrame, got {type(X).__name__}"
                f"{f' with {X.ndim} dimension(s)' if hasattr(X, 'ndim') else ''}: convert it, for "
                "example with to_frame(), to_dataframe() or reshape."
            )
        self.given = X
        self.X = X if self.frame else _whole_rows(X)
        self.blocks = delayed_blocks(self.X)
        self.client = client_of(X)
        _require_on_workers(self.client)

    @cached_property
    def lengths(self) -> np.ndarray:
        """Rows in each partition; where Dask does not know, one fit that looks several times at a
        collection counts them once."""
        import dask

        if hasattr(self.X, "chunks") and not np.isnan(self.X.chunks[0]).any():
            return np.array(self.X.chunks[0], dtype=int)
        key = id(self.given)
        found = _COUNTED.get(key)
        if found is not None and found[0]() is self.given:
            return found[1]
        count = dask.delayed(_count, pure=False)
        lengths = np.asarray(dask.compute(*map(count, self.blocks)), dtype=int)
        with suppress(TypeError):  # some collections cannot be referred to weakly
            _COUNTED[key] = weakref.ref(self.given, lambda _: _COUNTED.pop(key, None)), lengths
        return lengths

    @property
    def n(self) -> int:
        """Rows of all partitions; none at all are refused."""
        n = int(self.lengths.sum())
        if n == 0:
            raise ValueError("Found array with 0 sample(s): all partitions of X are empty.")
        return n

    def _aligned(self, values: Any, name: str) -> Any:
        """y or weights in the same blocks of rows: a collection, or a list of delayed objects."""
        if not is_dask(values):
            values, n = np.asarray(values), int(self.lengths.sum())
            if values.shape[:1] != (n,):
                raise ValueError(f"X has {n} rows, and {name} has shape {values.shape}.")
            parts = np.split(values, self.lengths.cumsum()[:-1])
            return [share(part, self.client) for part in parts]
        if hasattr(values, "chunks"):  # with whole rows, cut where X is cut if both know where
            values = _whole_rows(values) if values.ndim == 2 else values
            known = not self.frame and not np.isnan([values.shape[0], self.X.shape[0]]).any()
            if known and values.chunks[0] != self.X.chunks[0]:
                if values.shape[0] != self.X.shape[0]:
                    raise ValueError(
                        f"X has {self.X.shape[0]} rows, and {name} has {values.shape[0]}."
                    )
                values = values.rechunk({0: self.X.chunks[0]})
        if values.npartitions == self.X.npartitions:
            return values
        raise ValueError(
            f"{name} has {values.npartitions} partitions and X {self.X.npartitions}: both must "
            f"be cut at the same rows. Take {name} from the collection that X is from."
        )

    def aligned_columns(self, columns: Iterable[tuple[Any, str]]) -> list[Any]:
        """(block of X, block of each (values, name)), as delayed objects.

        Collections of one kind are read by the same task, so that no worker waits for the y of
        rows that it has read itself.
        """
        values = [self._aligned(*column) for column in columns]
        if values and all(is_dask(v) and hasattr(v, "chunks") != self.frame for v in values):
            return _read_together(self.X, values)
        blocks = [delayed_blocks(v) if is_dask(v) else v for v in values]
        return [self.delayed(_pack, *row) for row in zip(self.blocks, *blocks, strict=True)]

    def each(
        self, function: Callable[..., Any], shared: Any, *columns: Any, blocks: Any = None
    ) -> list[Any]:
        """[function(shared, block, *one of each column)] as delayed objects."""
        # Strict: a reader of files may cut the same files otherwise for other columns.
        rows = zip(self.blocks if blocks is None else blocks, *columns, strict=True)
        return [self.delayed(function, shared, *row) for row in rows]

    @staticmethod
    def delayed(function: Callable[..., Any], *args: Any) -> Any:
        """One task on things that tasks made."""
        from dask import delayed

        return delayed(function, pure=False, traverse=False)(*args)

    def share(self, thing: Any) -> Any:
        """As the function, and with a copy on every worker: rows are worked on where they are."""
        node = share(thing, self.client)
        if self.client is not None:
            from distributed import futures_of, wait

            wait(node)
            with suppress(OSError, KeyError, ValueError):  # a worker that is lost fetches it later
                self.client.replicate(futures_of(node))
        return node

    def collect(self, tasks: list[Any]) -> list[Any]:
        """The results of all tasks, here: for small ones."""
        import dask

        if not tasks:
            return []
        tasks = fuse_reads(tasks)
        return [opened(r) for r in dask.compute(*tasks, optimize_graph=False)]

    def keep(self, tasks: list[Any]) -> list[Any]:
        """The same tasks with their results held where they were made (and made again if lost)."""
        import dask

        return list(dask.persist(*fuse_reads(tasks), optimize_graph=False))

    def total(self, tasks: list[Any]) -> Any:
        """The sum of all results (None counts as nothing): only sums travel."""
        import dask

        tasks = fuse_reads(tasks)
        if self.client is not None:
            return _total_on_cluster(self.client, tasks)
        while len(tasks) > 1:
            groups = (tasks[i : i + _FAN_IN] for i in range(0, len(tasks), _FAN_IN))
            tasks = [self.delayed(_add_up, group) for group in groups]
        # Not fused again: all would be one task, on one thread.
        return opened(dask.compute(tasks[0], optimize_graph=False)[0])


# --- blocks ---------------------------------------------------------------------------------------


def example_row(X: Any) -> Any:
    """One made-up row of the right type: shapes and names are learned from it."""
    if is_dask_frame(X):
        return made_up_frame(X).iloc[:1]
    return np.ones((1, X.shape[1]), dtype=X.dtype)


def _whole_rows(X: Any) -> Any:
    """All columns in one chunk."""
    if np.isnan(X.shape[1]):
        raise ValueError("X has an unknown number of columns: call X.compute_chunk_sizes() first.")
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def delayed_blocks(X: Any) -> list[Any]:
    blocks = X.to_delayed()
    return list(blocks.ravel()) if hasattr(blocks, "ravel") else list(blocks)


def _pack(block: Any, *values: Any) -> "_Sized":
    return _Sized((block, *map(opened, values)))


def _read_together(X: Any, values: list[Any]) -> list[Any]:
    if not hasattr(X, "chunks"):
        meta = empty_frame(X).iloc[:, :1]  # never looked at: packed blocks are taken out one by one
        made = X.map_partitions(
            _pack, *values, meta=meta, enforce_metadata=False, align_dataframes=False
        )
        return delayed_blocks(made)
    import dask.array as da

    letters = ["i" if v.ndim == 1 else f"i{'jkl'[k]}" for k, v in enumerate(values)]
    pairs = [x for pair in zip(values, letters) for x in pair]
    options = {"meta": np.empty((0, 0)), "align_arrays": False, "concatenate": True}
    return delayed_blocks(da.blockwise(_pack, "iz", X, "iz", *pairs, **options))


def _count(block: Any) -> Any:
    return block.shape[0]


# --- tasks ----------------------------------------------------------------------------------------


def client_of(*collections: Any) -> Any:
    """The distributed client that would compute the collections; None for local schedulers."""
    if "distributed" not in sys.modules:
        return None
    from dask.base import get_scheduler
    from distributed import Client

    owner = getattr(get_scheduler(collections=collections), "__self__", None)
    return owner if isinstance(owner, Client) else None


def _require_on_workers(client: Any) -> None:
    """Refuse workers that cannot import this library: their tasks would never end.

    Each client is asked once. (`find_spec` is Python's own, so every worker can run it.)
    """
    if client is None or client in _ASKED or client.asynchronous:
        return
    package = __name__.split(".")[0]
    answers = client.run(find_spec, package, on_error="return")
    lacking = [worker for worker, found in answers.items() if found is None]
    if lacking:
        raise RuntimeError(
            f"{len(lacking)} of {len(answers)} Dask workers cannot import {package}, for example "
            f"{lacking[0]}. Install it in the workers' environment: pip install {package}."
        )
    if answers:  # a cluster may have no workers yet
        _ASKED.add(client)


def share(thing: Any, client: Any = None) -> Any:
    """A node of the graph that holds a thing. On a cluster it is sent now, once for all tasks.

    Not client.scatter: what was scattered is gone with the worker that held it, while a task is
    run again.
    """
    import dask

    node = dask.delayed(_sized(thing), traverse=False, name=f"mercer-shared-{uuid4().hex}")
    if client is None:
        return node
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        return client.persist(node, optimize_graph=False)


def task(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs as a task: one thread each, since Dask runs several at once."""

    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given, named = map(opened, args), {k: opened(v) for k, v in kwargs.items()}
        if _alone():
            return _sized(function(*given, **named))
        with single_threaded(), one_blas_thread():
            return _sized(function(*given, **named))

    return wrapped


class _Sized:
    """A thing that tells Dask its size, by which tasks are placed and memory is watched."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing
        self.size = bytes_of(thing)

    def __sizeof__(self) -> int:
        return self.size


def _sized(thing: Any) -> Any:
    """Arrays and frames tell their size already."""
    return thing if thing is None or hasattr(thing, "shape") else _Sized(thing)


def opened(thing: Any) -> Any:
    return thing.thing if isinstance(thing, _Sized) else thing


def bytes_of(thing: Any) -> int:
    """Bytes of all arrays in a thing."""
    size = getattr(thing, "nbytes", None)
    if isinstance(size, Integral):  # that of a class, or of a lazy array, is no number
        return int(size)
    if isinstance(thing, dict):
        return 64 + sum(map(bytes_of, thing.values()))
    if isinstance(thing, (list, tuple)):
        return 64 + sum(map(bytes_of, thing))
    if isinstance(thing, Kernel):  # sums may be a thousand levels deep
        given = (v for part in thing.parts() for v in part.get_params(deep=False).values())
        return 64 + sum(64 if isinstance(v, Kernel) else bytes_of(v) for v in given)
    return 64 + (bytes_of(vars(thing)) if hasattr(thing, "__dict__") else 0)


def _alone() -> bool:
    """Whether this task has its process for itself: n_jobs and BLAS are then what the user set."""
    worker = current_worker()
    if worker is not None:
        return bool(worker.state.nthreads == 1)
    return threading.current_thread() is threading.main_thread()


def current_worker() -> Any:
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        return get_worker()
    except ValueError:
        return None


# --- graphs ---------------------------------------------------------------------------------------


def fuse_reads(tasks: list[Any]) -> list[Any]:
    """Each task and what only it needs, the reading of its block above all, as one task.

    Dask would make a block on one worker and use it on another that is idle: rows would travel.
    """
    known = graph_nodes()
    if known is None:  # another Dask: the same answer, and blocks may travel
        return tasks
    GraphNode, Task, Alias = known
    from dask.core import reverse_dict, toposort
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    layers: dict[Any, Any] = {}
    for one in tasks:
        layers |= one.__dask_graph__().layers
    graph = {key: node for layer in layers.values() for key, node in layer.items()}
    # Data that are on the cluster already are futures in the graph.
    if not all(isinstance(node, GraphNode) or _is_future(node) for node in graph.values()):
        return tasks
    needs = {
        key: [used for used in getattr(node, "dependencies", ()) if used in graph]
        for key, node in graph.items()
    }
    users, outputs = reverse_dict(needs), {one.key for one in tasks}
    owner: dict[Any, Any] = {}  # of each node that is needed: the task that it becomes a part of
    groups = defaultdict(list)
    for key in reversed(toposort(graph, dependencies=needs)):  # users first
        owners = {owner[user] for user in users[key] if user in owner}
        if owners or key in outputs:
            free = key not in outputs and isinstance(graph[key], (Task, Alias))
            owner[key] = owners.pop() if free and len(owners) == 1 else key
            groups[owner[key]].append(graph[key])
    fused = {
        key: Task.fuse(*group) if len(group) > 1 else group[0] for key, group in groups.items()
    }
    name = f"mercer-tasks-{uuid4().hex}"
    whole = HighLevelGraph({name: fused}, {name: set()})
    return [Delayed(one.key, whole, layer=name) for one in tasks]


def _is_future(thing: Any) -> bool:
    if "distributed" not in sys.modules:
        return False
    from distributed import Future

    return isinstance(thing, Future)


def _total_on_cluster(client: Any, tasks: list[Any]) -> Any:
    """Results are added up where they are: each worker sends one sum, however many partitions."""
    from distributed import as_completed

    arrivals = as_completed(client.compute(tasks, optimize_graph=False))
    here = defaultdict(list)
    for future in arrivals:
        if future.status == "error":
            future.result()
        held = client.who_has([future])
        worker = next(iter(next(iter(held.values()), ())), None)
        here[worker].append(future)
        if len(here[worker]) == _FAN_IN:
            arrivals.add(_added(client, here.pop(worker), worker))
    sums = [_added(client, group, worker) for worker, group in here.items()]
    while len(sums) > 1:
        sums = [_added(client, sums[i : i + _FAN_IN]) for i in range(0, len(sums), _FAN_IN)]
    return opened(sums[0].result())


def _added(client: Any, futures: list[Any], worker: Any = None) -> Any:
    # A preference: the sum is made elsewhere when this worker is lost.
    where = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
    return client.submit(_add_up, futures, pure=False, **where)


def _add_up(parts: Iterable[Any]) -> Any:
    total = None
    for part in map(opened, parts):
        if part is not None:
            total = part if total is None else total + part
    return _sized(total)
