"""read: what a user passes to fit, validated, converted and bound to its kernel once."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_consistent_length, check_random_state

from ..engine.arrays import as_host
from ..engine.memory import budget
from ..engine.resources import Resources
from ..kernels import points as pts
from ..rows.gather import held_column, held_if_few, load_all
from ..rows.held import HeldRows
from ..rows.interface import Column
from ..rows.source import count_rows, in_pieces
from ..rows.streams import split_pairs
from ..rows.training import Training
from ..rows.workers import Workers
from .base import kernel_of, rows_of_input, take_input_names, validated_points
from .kernel_map import KernelMap, held_if_needed
from .targets import n_targets, target_column, weight_column


@dataclass(frozen=True)
class Read:
    """Rows with their targets.

    T, weights : arrays where rows are held, else columns that are read with the rows
    n_targets : columns of T
    single : whether y is one-dimensional
    names : the estimator that knows names and number of the columns, once rows have been read
    """

    training: Training
    T: Any
    weights: Any
    n_targets: int
    single: bool
    names: Any


def read(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    gather: str | None = None,
    resources: Resources | None = None,
    targets: Callable[..., tuple[Any, Any, int, bool]] | None = None,
) -> Read:
    """The rows of X with their targets and weights.

    gather : why all rows are needed in memory, or None where passes over them will do
    targets : reads y and sample_weight; None: as numbers
    """
    given = estimator.kernel if isinstance(estimator.kernel, KernelMap) else None
    resources = resources_of(given) if resources is None else resources
    X, y = split_pairs(X, y)
    X, workers = held_if_few(X), None
    if in_pieces(X) and gather is not None:
        workers = Workers.of(X) if gather == "form='iterative'" else None
        X = load_all(X, resources.limit(), gather)
    elif in_pieces(X):
        X = held_if_needed(X, KernelMap(estimator.kernel) if given is None else given)
    name, read_y = type(estimator).__name__, targets or read_targets
    T, weights, columns, single = read_y(X, y, sample_weight, name)
    kernel = kernel_of(estimator.kernel)
    if in_pieces(X):
        rows, check = rows_of_input(estimator, X, kernel, room=resources.limit() // 6)
        training = Training(kernel, rows, resources, None, check.of_bound)
        T = T if isinstance(T, Column) else target_column(T)
        weights = None if weights is None else weight_column(weights)
        return Read(training, T, weights, columns, single, check.estimator)
    points, names = validated_points(estimator, X, kernel, reset=True), pts.column_names(X)
    kernel = kernel.bind_points(points, names, weights)
    kernel.check_range(points)
    if kernel.kind == "gram":
        kernel.landmarks(points)  # refuses a matrix that is not square
    training = Training(kernel, HeldRows(points, names), resources, workers)
    return Read(training, T, weights, columns, single, estimator)


def resources_of(given: KernelMap | None, memory_limit: Any = None) -> Resources:
    """Those of a map that was given as kernel; a limit of the estimator's own comes first."""
    if memory_limit is not None:
        budget(memory_limit)  # refuses what makes no sense
    if given is None:
        return Resources(memory_limit)
    seed = None
    if given.random_state is not None:
        seed = int(check_random_state(given.random_state).randint(np.iinfo(np.int32).max))
    own = Resources(given.memory_limit, given.n_jobs, given.verbose, seed)
    return own if memory_limit is None else replace(own, memory_limit=memory_limit)


def keep_names(estimator: Any, read: Read) -> None:
    """Keep the names and the number of columns that were read."""
    if read.names is not estimator:
        take_input_names(estimator, read.names)


def read_targets(X: Any, y: Any, sample_weight: Any, name: str) -> tuple[Any, Any, int, bool]:
    """(targets, weights or None, number of targets, whether y is one-dimensional).

    Arrays, refused early where they make no sense, unless they are read with the rows. `name` is
    the estimator's.
    """
    y = held_column(y, X, in_step=True)
    sample_weight = held_column(sample_weight, X, "sample_weight", in_step=in_pieces(y))
    if in_pieces(y):
        if np.isscalar(sample_weight):  # arrays have one per row
            sample_weight = pts.row_weights(sample_weight, count_rows(X))
        columns = n_targets(y)
        return y, sample_weight, columns or 1, columns is None
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    with pts.naming("y"):
        T = check_array(as_host(y), ensure_2d=False, dtype=[np.float64, np.float32], input_name="y")
    if not in_pieces(X):
        check_consistent_length(X, T)
    single = T.ndim == 1
    T = T[:, None] if single else T
    weights = None if sample_weight is None else pts.row_weights(sample_weight, T.shape[0])
    return T, weights, T.shape[1], single
