"""Dask collections: rows in partitions, and tasks over them.

Nothing here starts a cluster: tasks run where the user's Dask runs them (the client that is active,
else the local scheduler).
"""

import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from ..engine.memory import coordinates_bytes
from ..engine.types import Array
from .dask_compat import empty_frame, made_up_frame
from .dask_graphs import fuse_reads, total_on_cluster, tree
from .tasks import Sized, client_of, opened, require_on_workers, share, share_with_all


def is_dask(X: Array):
    """True for Dask collections, without importing Dask to find out."""
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(
        X, "__dask_graph__"
    )


def is_dask_frame(X: Array):
    return is_dask(X) and hasattr(X, "npartitions") and hasattr(X, "map_partitions")


def check_unchanged(seen: int, expected: int):
    """Refuse a collection whose rows are others each time it is computed."""
    if seen != expected:
        raise RuntimeError(
            f"{seen} rows were read where {expected} had been counted: X changes each time it is "
            "computed. Write it to files, or X.persist() it."
        )


class Partitions:
    """The blocks of rows of a Dask array or DataFrame, as delayed objects."""

    def __init__(self, X, name="X"):
        self.frame = is_dask_frame(X) and hasattr(X, "columns") and X.ndim == 2
        if not self.frame and not (hasattr(X, "chunks") and X.ndim == 2):
            raise TypeError(
                f"{name} must be a 2-D Dask array or a Dask DataFrame, got {type(X).__name__}"
                f"{f' with {X.ndim} dimension(s)' if hasattr(X, 'ndim') else ''}: convert it, for "
                "example with to_frame(), to_dataframe() or reshape."
            )
        self.given = X
        self.X = X if self.frame else _whole_rows(X)
        self.blocks = delayed_blocks(self.X)
        self.client = client_of(X)
        require_on_workers(self.client)
        self._lengths = None

    @property
    def lengths(self):
        """Rows in each partition; counted once where Dask does not know."""
        if self._lengths is None:
            self._lengths = _counted_once(self.given, lambda: _lengths(self.X, self.blocks))
        return self._lengths

    @property
    def n(self):
        """Rows of all partitions; none at all are refused."""
        n = int(self.lengths.sum())
        if n == 0:
            raise ValueError("Found array with 0 sample(s): all partitions of X are empty.")
        return n

    def bytes(self):
        """About how much all rows take, as numbers."""
        return coordinates_bytes(int(self.lengths.sum()), max(1, self.X.shape[1]))

    def example(self):
        """One made-up row of the right type: shapes and names are learned from it."""
        return example_row(self.X)

    def aligned(self, values: Any, name: Any = "y"):
        """y or weights in the same blocks of rows: a collection, or a list of delayed objects."""
        if values is None:
            return [None] * len(self.blocks)
        if is_dask(values):
            values = _one_chunk_per_row(values, self, name)
            if values.npartitions == self.X.npartitions:
                return values
            raise ValueError(
                f"{name} has {values.npartitions} partitions and X {self.X.npartitions}: both must "
                f"be cut at the same rows. Take {name} from the collection that X is from."
            )
        values, n = np.asarray(values), int(self.lengths.sum())
        if values.shape[:1] != (n,):
            raise ValueError(f"X has {n} rows, and {name} has shape {values.shape}.")
        parts = np.split(values, self.lengths.cumsum()[:-1])
        return [share(part, self.client) for part in parts]

    def aligned_columns(self, *columns):
        """(block of X, block of each (values, name) or None), as delayed objects.

        Collections of one kind are read by the same task, so that no worker waits for the y of
        rows that it has read itself.
        """
        from dask import delayed

        values = [self.aligned(*column) for column in columns]
        read = {i: v for i, v in enumerate(values) if is_dask(v)}
        rest = [v for v in values if not is_dask(v)]
        if read and all(v[0] is None for v in rest) and all(map(self._alike, read.values())):
            return _read_together(self.X, list(read.values()), list(read), len(values))
        pack, every = delayed(_pack, pure=False, traverse=False), range(len(values))
        blocks = [delayed_blocks(v) if is_dask(v) else v for v in values]
        return [
            pack(*row, places=every, n=len(every)) for row in zip(self.blocks, *blocks, strict=True)
        ]

    def _alike(self, values):
        return hasattr(values, "chunks") != self.frame

    def each(self, function: Callable[..., Any], shared: Any, *columns, blocks: Any = None):
        """[function(shared, block, *one of each column)] as delayed objects."""
        from dask import delayed

        task = delayed(function, pure=False, traverse=False)
        # Strict: a reader of files may cut the same files otherwise for other columns.
        rows = zip(self.blocks if blocks is None else blocks, *columns, strict=True)
        return [task(shared, *row) for row in rows]

    @staticmethod
    def delayed(function: Callable[..., Any], *args):
        """One task on things that tasks made."""
        from dask import delayed

        return delayed(function, pure=False, traverse=False)(*args)

    def share(self, thing: Any):
        return share_with_all(thing, self.client)

    def collect(self, tasks: Any):
        """The results of all tasks, here: for small ones."""
        import dask

        if not tasks:
            return []
        tasks = fuse_reads(tasks)
        return [opened(r) for r in dask.compute(*tasks, optimize_graph=False)]

    def keep(self, tasks: Any):
        """The same tasks with their results held where they were made (and made again if lost)."""
        import dask

        return list(dask.persist(*fuse_reads(tasks), optimize_graph=False))

    def total(self, tasks: Any):
        """The sum of all results (None counts as nothing): only sums travel."""
        tasks = fuse_reads(tasks)
        if self.client is None:
            return self.collect([tree(tasks)])[0]
        return total_on_cluster(self.client, tasks)


# --- blocks ---------------------------------------------------------------------------------------


def example_row(X: Array):
    if is_dask_frame(X):
        return made_up_frame(X).iloc[:1]
    return np.ones((1, X.shape[1]), dtype=X.dtype)


def _whole_rows(X):
    """All columns in one chunk."""
    if np.isnan(X.shape[1]):
        raise ValueError("X has an unknown number of columns: call X.compute_chunk_sizes() first.")
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def delayed_blocks(X: Any):
    blocks = X.to_delayed()
    return list(blocks.ravel()) if hasattr(blocks, "ravel") else list(blocks)


def _pack(block, *values, places, n):
    """(block, n values or None): those given stand at their places."""
    row = [None] * n
    for place, value in zip(places, values):
        row[place] = opened(value)
    return Sized((block, *row))


def _read_together(X, values, places, n):
    where = {"places": places, "n": n}
    if not hasattr(X, "chunks"):
        meta = empty_frame(X).iloc[:, :1]  # never looked at: packed blocks are taken out one by one
        made = X.map_partitions(
            _pack, *values, meta=meta, enforce_metadata=False, align_dataframes=False, **where
        )
        return delayed_blocks(made)
    import dask.array as da

    letters = ["i" if v.ndim == 1 else f"i{'jkl'[k]}" for k, v in enumerate(values)]
    pairs = [x for pair in zip(values, letters) for x in pair]
    packed = da.blockwise(
        _pack,
        "iz",
        X,
        "iz",
        *pairs,
        meta=np.empty((0, 0)),
        align_arrays=False,
        concatenate=True,
        **where,
    )
    return delayed_blocks(packed)


# Of collections whose lengths Dask does not know, while they live: id -> (collection, lengths).
_COUNTED: dict = {}


def _counted_once(X, count):
    """One fit looks at a collection several times, and counts its rows once."""
    found = _COUNTED.get(id(X))
    if found is not None and found[0]() is X:
        return found[1]
    key, lengths = id(X), count()
    with suppress(TypeError):  # some collections cannot be referred to weakly
        _COUNTED[key] = weakref.ref(X, lambda _: _COUNTED.pop(key, None)), lengths
    return lengths


def _lengths(X, blocks):
    import dask

    if hasattr(X, "chunks") and not np.isnan(X.chunks[0]).any():
        return np.array(X.chunks[0], dtype=int)
    count = dask.delayed(_count, pure=False)
    return np.array(dask.compute(*[count(block) for block in blocks]), dtype=int)


def _count(block):
    return block.shape[0]


def _one_chunk_per_row(values, parts, name):
    """y with whole rows, cut where X is cut where both know where that is."""
    if not hasattr(values, "chunks"):
        return values
    if values.ndim == 2:
        values = _whole_rows(values)
    if parts.frame or np.isnan(values.shape[0]):
        return values
    if np.isnan(parts.X.shape[0]) or values.chunks[0] == parts.X.chunks[0]:
        return values
    if values.shape[0] != parts.X.shape[0]:
        raise ValueError(f"X has {parts.X.shape[0]} rows, and {name} has {values.shape[0]}.")
    return values.rechunk({0: parts.X.chunks[0]})
