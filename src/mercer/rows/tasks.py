"""Tasks on any Dask scheduler: what they share, how large it is, and how many threads they use.

What tasks share (landmarks and their factor) is one node of the graph: it travels once to each
worker, and again if one is lost.
"""

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from importlib.util import find_spec
from numbers import Integral
from typing import Any
from uuid import uuid4
from weakref import WeakSet

from ..engine import one_blas_thread, single_threaded
from ..kernels import Kernel

# Clients whose workers were asked.
_ASKED: WeakSet = WeakSet()


def client_of(*collections):
    """The distributed client that would compute the collections; None for local schedulers."""
    if "distributed" not in sys.modules:
        return None
    from dask.base import get_scheduler
    from distributed import Client

    owner = getattr(get_scheduler(collections=collections), "__self__", None)
    return owner if isinstance(owner, Client) else None


def require_on_workers(client: Any):
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


def is_future(thing: Any):
    if "distributed" not in sys.modules:
        return False
    from distributed import Future

    return isinstance(thing, Future)


def share(thing: Any, client: Any = None):
    """A node of the graph that holds a thing. On a cluster it is sent now, once for all tasks.

    Not client.scatter: what was scattered is gone with the worker that held it, while a task is
    run again.
    """
    import dask

    node = dask.delayed(sized(thing), traverse=False, name=f"mercer-shared-{uuid4().hex}")
    if client is None:
        return node
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        return client.persist(node, optimize_graph=False)


def share_with_all(thing: Any, client: Any = None):
    """As share, and with a copy on every worker: rows are then worked on where they are."""
    node = share(thing, client)
    if client is not None:
        from distributed import futures_of, wait

        wait(node)
        with suppress(OSError, KeyError, ValueError):  # a worker that is lost fetches it later
            client.replicate(futures_of(node))
    return node


def task(function: Callable[..., Any]):
    """A function that runs as a task: one thread each, since Dask runs several at once."""

    @wraps(function)
    def wrapped(*args, **kwargs):
        given, named = map(opened, args), {k: opened(v) for k, v in kwargs.items()}
        if _alone():
            return sized(function(*given, **named))
        with single_threaded(), one_blas_thread():
            return sized(function(*given, **named))

    return wrapped


class Sized:
    """A thing that tells Dask its size, by which tasks are placed and memory is watched."""

    def __init__(self, thing):
        self.thing = thing
        self.size = bytes_of(thing)

    def __sizeof__(self):
        return self.size


def sized(thing: Any):
    """Arrays and frames tell their size already."""
    return thing if thing is None or hasattr(thing, "shape") else Sized(thing)


def opened(thing: Any):
    return thing.thing if isinstance(thing, Sized) else thing


def bytes_of(thing: Any):
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


def _alone():
    """Whether this task has its process for itself: n_jobs and BLAS are then what the user set."""
    worker = current_worker()
    if worker is not None:
        return worker.state.nthreads == 1
    return threading.current_thread() is threading.main_thread()


def current_worker():
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        return get_worker()
    except ValueError:
        return None
