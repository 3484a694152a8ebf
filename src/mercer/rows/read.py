"""read and Training: what a user passes to fit, validated, converted and bound to a kernel once."""

# mypy: untyped-calls-exclude="dask"

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from sklearn.utils import assert_all_finite, check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from ..engine import (
    Resources,
    as_host,
    check_classes,
    current,
    device,
    is_array,
    is_numpy,
    namespace,
)
from ..kernels import Kernel
from ..kernels import points as pts
from .dask import Partitions, delayed_blocks, example_row, is_dask, is_dask_frame
from .gather import gather_few, held_column, in_pieces, load_all
from .held import Column, HeldRows, Rows
from .partitioned import PartitionedRows
from .streams import (
    StreamedRows,
    filled_chunks,
    first_block,
    is_stream,
    n_rows,
    refuse_iterator,
    refuse_stream,
    sides,
)
from .workers import Workers

# Attributes that a fit learns about its input.
_INPUT_NAMES = ("n_features_in_", "feature_names_in_", "array_kind_")


@dataclass(frozen=True)
class Training:
    """The rows of a fit, with their targets and weights."""

    kernel: Kernel  # bound to the rows where they are held; else it is bound to a sample of them
    rows: Rows  # held, streamed or partitioned
    resources: Resources = field(default_factory=Resources)
    workers: Any = None  # of the cluster that held rows came from
    check: "_PointCheck | None" = None  # of the blocks of rows that are not held
    learner: Any = None  # the estimator, or a copy of it, that has learned about the columns
    T: Any = None  # an array where rows are held, else a column that is read with the rows
    weights: Any = None  # as T
    n_targets: int = 0  # columns of T; 0 for labels
    single: bool = True  # whether y is one-dimensional
    classes: Any = None  # sorted labels, where T holds their numbers
    name: str = "X"  # of the rows, in messages

    @classmethod
    def of(cls, kernel: Kernel, points: Any, **resources: Any) -> "Training":
        """Points of a bound kernel that are in memory."""
        return cls(kernel, HeldRows(points), Resources(**resources))

    @property
    def is_held(self) -> bool:
        return isinstance(self.rows, HeldRows)

    @property
    def points(self) -> Any:
        """All rows, in memory."""
        assert isinstance(self.rows, HeldRows)
        return self.rows.points

    @property
    def n(self) -> int | None:
        """None where the rows have not been counted yet."""
        return int(self.points.shape[0]) if self.is_held else None

    def some(self, rows: np.ndarray) -> "Training":
        """Some of the held rows; of a Gram matrix, their rows and columns."""
        return replace(self, rows=HeldRows(self.kernel.layout.subset(self.points, rows)))

    def labels(self) -> np.ndarray:
        """The sorted labels of rows that pass by; they are read for it."""
        if is_dask(self.T):
            import dask

            task = dask.delayed(_distinct, pure=False)
            found = dask.compute(*map(task, delayed_blocks(self.T)))
        else:
            found = map(_distinct, filled_chunks(self.T) if is_stream(self.T) else [self.T])
        return np.unique(np.concatenate([labels for labels in found if len(labels)]))

    def rows_of(self, kernel: Kernel) -> Rows:
        """The rows, whose blocks are checked against the range of the bound kernel as well."""
        return self.rows if self.check is None else self.rows.checked(self.check.of_bound(kernel))

    def keep_names(self, estimator: Any) -> None:
        """Keep what was learned about the columns; of rows that pass by, once they have."""
        _take_input_names(estimator, self.learner)


def read(
    estimator: Any,
    X: Any,
    kernel: Kernel,
    y: Any = None,
    sample_weight: Any = None,
    *,
    targets: Literal["numbers", "labels", "as given"] | None = None,
    why: str | None = None,
    resources: Resources | None = None,
    workers: bool = False,
) -> Training:
    """The rows of X with their targets and weights.

    estimator : learns names and number of the columns; messages name it
    kernel : unbound
    targets : what y holds; None for methods without targets
    why : which option or method needs all rows in memory; None: passes over them will do
    workers : whether those of a Dask collection whose rows are gathered may help
    """
    resources = Resources.of(estimator) if resources is None else resources
    name, helpers = type(estimator).__name__, None
    held = not in_pieces(X)
    if not held:
        if targets is not None:
            X, y, sample_weight = sides(X, y, sample_weight)
        X = gather_few(X)
        if in_pieces(X) and why is not None:
            helpers = Workers(X) if workers and is_dask(X) else None
            X = load_all(X, resources.limit(), why)
        held = not in_pieces(X)
    if not held:
        kernel.layout.require_data(
            "a Gram matrix is not cut into pieces; pass it whole, as an array.", TypeError
        )
    given: dict[str, Any] = {"resources": resources, "workers": helpers}
    weights = held_column(sample_weight, X, "sample_weight")
    if targets is not None:
        y = held_column(y, X)
        if targets != "as given":
            pts.require_y(y, name)
        given |= _READERS[targets](y)
        if held and y is not None:
            check_consistent_length(X, given["T"])
        elif targets == "numbers" and not isinstance(given["T"], Column):
            given["T"] = Column(given["T"], "y")
    if not held:
        check = _PointCheck.of(estimator, kernel, first=True)
        rows = _source_of(X, check, resources.limit() // 6)
        if weights is not None:
            weights = Column(_checked_if_held(weights, X), "sample_weight", pts.row_weights)
        given |= {"check": check, "learner": check.estimator}
        return Training(kernel, rows, weights=weights, **given)
    points, names = validated_points(estimator, X, kernel, reset=True), pts.column_names(X)
    weights = pts.row_weights(weights, points.shape[0])
    kernel.layout.check_training(points)
    kernel = kernel.bind_points(points, names, weights)
    kernel.check_range(points)
    rows = HeldRows(points, names)
    return Training(kernel, rows, learner=estimator, weights=weights, **given)


def _source_of(X: Any, check: Any, room: int = 1 << 30) -> Rows:
    """The rows of X, as points that are checked when they are read.

    room : bytes of rows that a filter of a stream may keep in memory
    """
    if is_dask(X):
        parts = Partitions(X)
        if check.first:  # what is wrong with the columns is said before any work
            check(example_row(parts.X))
        return PartitionedRows(parts, check)
    if is_stream(X):
        return StreamedRows(X, check, room=room)
    return HeldRows(check(X), pts.column_names(X))


def read_whole(
    name: str, X: Any, y: Any, sample_weight: Any, *, needs_y: bool = True
) -> tuple[Any, Any, Any]:
    """(X, y, weights) in memory, as they were given: for methods that read tables by themselves.

    name : of the method, for messages
    """
    X, y, sample_weight = sides(X, y, sample_weight)
    if needs_y:
        pts.require_y(y, name)
    X = load_all(X, current().limit(), name)
    return X, held_column(y, X), held_column(sample_weight, X, "sample_weight")


def read_sample(
    X: Any, kernel: Kernel, name: str, reader: Any = None, new: bool = True
) -> Training:
    """A sample for a test: frames stay frames, as samples are encoded together, and the kernel is
    not bound, as it is bound to all of them.

    reader : an estimator, which learns the columns of a `new` sample, or is fitted on another one
    """
    kernel.layout.require_data(
        "a precomputed kernel has no values for rows in other samples: give the rows and a kernel "
        "on them, or coordinates of your matrix (KernelMap('precomputed'))."
    )
    X = pts.collected(X)
    if is_stream(X):
        refuse_iterator(X, name, "a test")
    X = gather_few(X)  # then a test sees what it sees of an array
    columns = list(X.columns) if is_dask_frame(X) else pts.column_names(first_block(X))
    check = _PointCheck(None, kernel, columns=columns, name=name)
    if reader is not None:
        check = _PointCheck.of(reader, kernel, first=new, bound=not new, columns=columns)
    return Training(kernel, _source_of(X, check), check=check, learner=check.estimator, name=name)


# --- points: scikit-learn's checks, and what they teach an estimator ------------------------------


def validated_points(
    estimator: Any, X: Any, kernel: Kernel, *, reset: bool, in_range: bool = True
) -> Any:
    """X as points of the kernel, with scikit-learn's checks and n_features_in_.

    New points must also be `in_range` of the kernel, which has to be bound for that.
    """
    refuse_stream(X)
    if is_dask(X):  # scikit-learn would not see the names of the columns of a collection
        X = Partitions(X).X.compute()
    if reset:
        for name in ("n_features_in_", "feature_names_in_"):
            estimator.__dict__.pop(name, None)
    if pts.is_frame(X):  # what is wrong with the names says more than the values can
        with pts.naming("X"):
            validate_data(estimator, X, skip_check_array=True, reset=reset)
        X = kernel.points(X)
    else:
        X = kernel.points(X)
        if X.ndim == 2:
            validate_data(estimator, X, skip_check_array=True, reset=reset)
    if reset:
        estimator.array_kind_ = _kind(X)
    elif X.ndim == 2:
        check_kind(estimator, X)
        if in_range:
            kernel.check_range(X)
    return X


def check_n_columns(estimator: Any, n_columns: int) -> None:
    """scikit-learn's wording for rows that its own check does not see."""
    if n_columns != estimator.n_features_in_:
        raise ValueError(
            f"X has {n_columns} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )


def check_kind(estimator: Any, X: Any, method: str = "transform") -> None:
    """scikit-learn's wording for arrays from elsewhere."""
    fitted = getattr(estimator, "array_kind_", ("numpy", "cpu"))
    if fitted != _kind(X):
        raise ValueError(
            f"Inputs passed to {type(estimator).__name__}.{method}() must use the same namespace "
            f"and the same device as those passed to fit(): fitted on {fitted[0]} ({fitted[1]}), "
            f"got {_kind(X)[0]} ({_kind(X)[1]}). Convert X, or fit again."
        )


def _kind(X: Any) -> tuple[str, str]:
    if not is_array(X) or is_numpy(X):
        return ("numpy", "cpu")
    return (namespace(X).__name__.split(".")[-1], str(device(X)))


@dataclass
class _PointCheck:
    """A block of rows as checked points of a kernel, or as it is where frames stay frames.

    Before the kernel is bound to data only types and columns are checked, not its range. The
    check's own copy of the estimator learns about the input: `_take_input_names` has it from there.
    """

    estimator: Any
    kernel: Any
    bound: bool = False
    first: bool = False  # whether the next block decides the columns
    columns: list[Any] | None = None  # of frames that stay frames
    name: str = "X"  # in messages, where no estimator reads the rows

    @classmethod
    def of(cls, estimator: Any, kernel: Kernel, **options: Any) -> "_PointCheck":
        """With a copy of the estimator without fitted parts: it travels to workers."""
        bare = copy(estimator)
        bare.__dict__ = {k: v for k, v in vars(estimator).items() if not k.endswith("_")}
        _take_input_names(bare, estimator)
        return cls(bare, kernel, **options)

    @property
    def names(self) -> list[Any] | None:
        """Column names, known once a block has been read."""
        if self.columns is not None:
            return self.columns
        names = getattr(self.estimator, "feature_names_in_", None)
        return None if names is None else list(names)

    def of_bound(self, kernel: Kernel) -> "_PointCheck":
        """The same check for blocks that are read again, with the range of the bound kernel."""
        return replace(self, kernel=kernel, bound=True, first=False)

    def __call__(self, block: Any) -> Any:
        reset, self.first = self.first, False
        if self.columns is not None:
            if reset:
                validate_data(self.estimator, block, skip_check_array=True)
            return block
        if self.estimator is None:
            return self.kernel.points(block, name=self.name)
        return validated_points(
            self.estimator, block, self.kernel, reset=reset, in_range=self.bound
        )


def _take_input_names(estimator: Any, fitted: Any) -> None:
    """Copy the column names and their number from another estimator."""
    for name in _INPUT_NAMES if fitted is not estimator else ():
        estimator.__dict__.pop(name, None)
        if hasattr(fitted, name):
            setattr(estimator, name, getattr(fitted, name))


# --- targets and weights --------------------------------------------------------------------------


def _checked_if_held(weights: Any, X: Any) -> Any:
    """Weights beside rows that come in pieces: those that are held are refused before a pass."""
    if in_pieces(weights):
        return weights
    weights = np.asarray(as_host(weights))
    if weights.ndim:
        return pts.row_weights(weights, len(weights))
    return pts.row_weights(weights, Partitions(X).n if is_dask(X) else sum(map(n_rows, X)))


def _numbers(y: Any) -> dict[str, Any]:
    """Targets as columns of numbers."""
    if in_pieces(y):
        first = y
        if is_stream(y):
            first = np.asarray(as_host(next(filled_chunks(y), np.empty(0))))
        width = first.shape[1] if first.ndim > 1 else None
        return {"T": Column(y, "y", _as_columns), "n_targets": width or 1, "single": width is None}
    values = np.asarray(as_host(y))
    T = _as_columns(values, least=1)
    return {"T": T, "n_targets": T.shape[1], "single": values.ndim == 1}


def _labels(y: Any) -> dict[str, Any]:
    """Numbers of the classes; or labels, which are known once the rows have been read."""
    if in_pieces(y):
        return {"T": Column(y, "y", _labels_of)}
    y = column_or_1d(as_host(y), warn=True)
    check_classes(y)
    assert_all_finite(y, input_name="y")
    with np.errstate(invalid="ignore"):  # scikit-learn tries y as integers
        check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    return {"T": codes, "classes": classes}


_READERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "numbers": _numbers,
    "labels": _labels,
    "as given": lambda y: {"T": y},
}


def _as_columns(block: Any, least: int = 0) -> np.ndarray:
    """Targets as columns of numbers, of at least so many rows."""
    with pts.naming("y"):
        T: np.ndarray = check_array(
            np.asarray(block),
            ensure_2d=False,
            dtype=[np.float64, np.float32],
            input_name="y",
            ensure_min_samples=least,
        )
    return T[:, None] if T.ndim == 1 else T


def _labels_of(block: Any) -> np.ndarray:
    """One label per row, as NumPy compares them."""
    labels = np.asarray(block)
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim != 1:
        raise ValueError(f"y must hold one label per row, got shape {labels.shape}.")
    check_classes(labels)
    if labels.dtype.kind == "O" and all(isinstance(v, str) for v in labels):
        labels = labels.astype(str)
    assert_all_finite(labels, input_name="y")
    return labels


def _distinct(block: Any) -> np.ndarray:
    return np.unique(_labels_of(block)) if len(block) else np.empty(0)
