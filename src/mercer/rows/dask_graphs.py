"""Graphs of tasks: blocks stay where they are read, and sums are added where they are made."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from .dask_compat import graph_nodes
from .tasks import is_future, opened, sized

# Sums that are added in one task.
FAN_IN = 8


def fuse_reads(tasks: Any):
    """Each task and what only it needs, the reading of its block above all, as one task.

    Dask would make a block on one worker and use it on another that is idle: rows would travel.
    """
    known = graph_nodes()
    if known is None:  # another Dask: the same answer, and blocks may travel
        return tasks
    GraphNode, Task, Alias = known
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    layers: dict = {}
    for one in tasks:
        layers |= one.__dask_graph__().layers
    graph = {key: node for layer in layers.values() for key, node in layer.items()}
    # What is on the cluster already stands in the graph as a future.
    if not all(isinstance(node, GraphNode) or is_future(node) for node in graph.values()):
        return tasks
    owner = _owners(graph, [one.key for one in tasks], (Task, Alias))
    groups = defaultdict(list)
    for key, of in owner.items():
        groups[key if of is None else of].append(graph[key])
    fused = {
        key: Task.fuse(*group) if len(group) > 1 else group[0] for key, group in groups.items()
    }
    name = f"mercer-tasks-{uuid4().hex}"
    whole = HighLevelGraph({name: fused}, {name: set()})
    return [Delayed(one.key, whole, layer=name) for one in tasks]


def _owners(graph, outputs, movable):
    """{key: the one output that it serves, or None where it serves several or must stay}."""
    users: dict = {key: 0 for key in outputs}
    ahead, asked_for = list(outputs), set(outputs)
    while ahead:  # what is needed at all, and by how many
        for key in _needs(graph[ahead.pop()]):
            if key not in users and key in graph:
                ahead.append(key)
            if key in graph:
                users[key] = users.get(key, 0) + 1
    owner = {key: key if users[key] == 0 else None for key in outputs}
    ready = [key for key in outputs if users[key] == 0]
    while ready:  # users first, what they use after them
        key = ready.pop()
        for used in _needs(graph[key]):
            if used not in graph:
                continue
            free = isinstance(graph[used], movable) and used not in asked_for
            mine = owner[key] if free else None
            owner[used] = mine if owner.get(used, mine) == mine else None
            users[used] -= 1
            if users[used] == 0:
                ready.append(used)
    return owner


def _needs(node):
    return getattr(node, "dependencies", ())


def tree(tasks: Any):
    from dask import delayed

    add = delayed(_add_up, pure=False, traverse=False)
    while len(tasks) > 1:
        tasks = [add(tasks[i : i + FAN_IN]) for i in range(0, len(tasks), FAN_IN)]
    return tasks[0]


def total_on_cluster(client: Any, tasks: Any):
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
        if len(here[worker]) == FAN_IN:
            arrivals.add(_added(client, here.pop(worker), worker))
    sums = [_added(client, group, worker) for worker, group in here.items()]
    while len(sums) > 1:
        sums = [_added(client, sums[i : i + FAN_IN]) for i in range(0, len(sums), FAN_IN)]
    return opened(sums[0].result())


def _added(client, futures, worker=None):
    if worker is None:
        return client.submit(_add_up, futures, pure=False)
    # A preference: the sum is made elsewhere when this worker is lost.
    return client.submit(_add_up, futures, workers=[worker], allow_other_workers=True, pure=False)


def _add_up(parts: Iterable[Any]):
    total = None
    for part in map(opened, parts):
        if part is not None:
            total = part if total is None else total + part
    return sized(total)
