"""Lazy results: methods of fitted estimators on Dask collections, partition by partition."""

import copy
import pickle
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from ..engine import MemoryLimitError, coordinates_bytes, namespace, readable, tiles
from ..kernels import points as pts
from .dask import (
    Partitions,
    client_of,
    current_worker,
    example_row,
    is_dask,
    is_dask_frame,
    share,
    task,
)
from .held import rows_at
from .streams import filled_chunks, is_stream, refuse_stream

# Models up to this size stay in the graph of a lazy result, which can then be computed anywhere and
# at any time. Larger ones go to the cluster first, and leave it with its client.
_LARGEST_IN_GRAPH = 256 << 20
_Method = TypeVar("_Method", bound=Callable[..., Any])


def lazily(method: _Method) -> _Method:
    """A method that answers a Dask collection with a lazy one, refuses a stream, and answers
    anything else as it is."""

    @wraps(method)
    def wrapped(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        X = pts.collected(X)
        refuse_stream(X)
        if not is_dask(X):
            return method(self, X, *args, **kwargs)
        return _on_partitions(self, method.__name__, X, args, kwargs)

    return cast(_Method, wrapped)


def in_turn(method: _Method) -> _Method:
    """A method that answers a Dask collection with a lazy one, and a stream chunk by chunk.

    Answers are held: they are far smaller than the rows.
    """
    whole_or_lazy = lazily(method)

    @wraps(method)
    def wrapped(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        X = pts.collected(X)
        if not is_stream(X):
            return whole_or_lazy(self, X, *args, **kwargs)
        answers = [method(self, chunk, *args, **kwargs) for chunk in filled_chunks(X)]
        if not answers:
            raise ValueError("Found array with 0 sample(s): the stream holds no rows.")
        if isinstance(answers[0], tuple):
            return tuple(namespace(parts[0]).concat(parts) for parts in zip(*answers))
        return namespace(answers[0]).concat(answers)

    return cast(_Method, wrapped)


def _on_partitions(
    estimator: Any, name: str, X: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """estimator.name(X, ...) partition by partition, when it is asked for.

    Rows are cut as in X (finer where a block of results would be large), columns are known.
    """
    X = Partitions(X).X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about values of a row that is made up
        answer = getattr(estimator, name)(example_row(X), *args, **kwargs)
    if hasattr(answer, "columns"):
        raise ValueError(
            "set_output asks for a container, and a Dask collection stays one: use "
            "set_output(transform='default'); a DataFrame comes back as a DataFrame."
        )
    call, client = (copy.copy(estimator), name, args, kwargs), client_of(X)
    large = client is not None and len(pickle.dumps(call)) > _LARGEST_IN_GRAPH
    shared = share(call, client if large else None)
    several = isinstance(answer, tuple)
    arrays = map(np.asarray, answer if several else (answer,))
    made = [
        _mapped(X, shared, a, _names(estimator, f"{name}{i or ''}", a), i)
        for i, a in enumerate(arrays)
    ]
    return tuple(made) if several else made[0]


def _mapped(X: Any, shared: Any, answer: np.ndarray, names: Any, part: int) -> Any:
    """The lazy collection; `part` says which of several answers it holds."""
    if is_dask_frame(X):
        # One row tells the types: pandas sees words among objects, but not among none.
        meta = _as_frame(answer, names, example_row(X).index).iloc[:0]
        return X.map_partitions(_apply, shared=shared, part=part, empty=meta, meta=meta)
    width = answer.shape[1] if answer.ndim == 2 else 1
    X = _split_rows(X, width * answer.dtype.itemsize)
    form = {"chunks": (X.chunks[0], (width,))} if answer.ndim == 2 else {"drop_axis": 1}
    given = {"shared": shared, "part": part, "empty": answer[:0]}
    return X.map_blocks(_apply, dtype=answer.dtype, meta=answer[:0], **form, **given)


@task
def _apply(block: Any, *, shared: Any, part: int, empty: Any) -> Any:
    """One block: in panels, so that coordinates of all its rows are never held for one number."""
    model, name, args, kwargs = shared
    if block.shape[0] == 0:
        return empty
    _check_room(coordinates_bytes(block.shape[0], empty.shape[1] if empty.ndim == 2 else 1))
    pieces = []
    rank = getattr(vars(model).get("kernel_map_", model), "rank_", 1)
    for where in tiles.panel_slices(block, rank):
        answer = getattr(model, name)(rows_at(block, where), *args, **kwargs)
        pieces.append(np.asarray(answer[part] if isinstance(answer, tuple) else answer))
    values = np.concatenate(pieces) if len(pieces) > 1 else pieces[0]
    if not hasattr(empty, "iloc"):
        return values
    names = empty.columns if empty.ndim == 2 else empty.name
    return _as_frame(values, names, block.index)


def _check_room(needed: float) -> None:
    """A clear error instead of a worker that is killed again and again."""
    worker = current_worker()
    limit = getattr(getattr(worker, "memory_manager", None), "memory_limit", None)
    if limit and needed > 0.6 * limit:
        raise MemoryLimitError(
            f"the result of one partition takes {readable(needed)}, and this worker has "
            f"{readable(limit)}: use smaller partitions, X.repartition(npartitions=...)."
        )


def _names(estimator: Any, name: str, answer: np.ndarray) -> str | list[str]:
    if answer.ndim == 1:
        return name
    if name == "transform" and hasattr(estimator, "get_feature_names_out"):
        return list(estimator.get_feature_names_out())
    classes = getattr(estimator, "classes_", ())
    if name != "predict" and len(classes) == answer.shape[1]:
        return [str(c) for c in np.asarray(classes)]
    return [f"{name}{i}" for i in range(answer.shape[1])]


def _as_frame(values: np.ndarray, names: Any, index: Any) -> Any:
    import pandas as pd

    if values.ndim == 1:
        return pd.Series(values, index=index, name=names)
    return pd.DataFrame(values, index=index, columns=names)


def _split_rows(X: Any, row_bytes: int) -> Any:
    """X in smaller blocks of rows where a block of results would exceed Dask's own chunk size."""
    import dask
    from dask.utils import parse_bytes

    most = max(1, parse_bytes(dask.config.get("array.chunk-size")) // max(1, row_bytes))
    if np.isnan(X.chunks[0]).any() or max(X.chunks[0]) <= most:
        return X
    rows = []
    for n in X.chunks[0]:
        pieces = max(1, -(-n // most))
        rows += [n // pieces + (i < n % pieces) for i in range(pieces)]
    return X.rechunk({0: tuple(rows)})
