"""Rows as points of a kernel, with scikit-learn's checks and what they teach an estimator."""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from sklearn.utils.validation import validate_data

from ..engine import device, is_array, is_numpy, namespace
from ..kernels import Kernel
from ..kernels import points as pts
from .source import in_memory

# What a fit learns about its input.
INPUT_NAMES = ("n_features_in_", "feature_names_in_", "array_kind_")


def validated_points(
    estimator: Any, X: Any, kernel: Kernel, *, reset: bool, in_range: bool = True
) -> Any:
    """X as points of the kernel, with scikit-learn's checks and n_features_in_.

    New points must also be `in_range` of the kernel, which has to be bound for that.
    """
    X = in_memory(X)
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


def _kind(X):
    if not is_array(X) or is_numpy(X):
        return ("numpy", "cpu")
    return (namespace(X).__name__.split(".")[-1], str(device(X)))


@dataclass
class PointCheck:
    """A block of rows as checked points of a kernel, or as it is where frames stay frames.

    Before the kernel is bound to data only types and columns are checked, not its range. The
    check's own copy of the estimator learns about the input: `take_input_names` has it from there.
    """

    estimator: Any
    kernel: Any
    bound: bool = False
    first: bool = False  # whether the next block decides the columns
    columns: list | None = None  # of frames that stay frames
    name: str = "X"  # in messages, where no estimator reads the rows

    @classmethod
    def of(cls, estimator: Any, kernel: Kernel, **options: Any) -> "PointCheck":
        """With a copy of the estimator without fitted parts: it travels to workers."""
        bare = copy(estimator)
        bare.__dict__ = {k: v for k, v in vars(estimator).items() if not k.endswith("_")}
        take_input_names(bare, estimator)
        return cls(bare, kernel, **options)

    @property
    def names(self) -> list | None:
        """Column names, known once a block has been read."""
        if self.columns is not None:
            return self.columns
        names = getattr(self.estimator, "feature_names_in_", None)
        return None if names is None else list(names)

    def of_bound(self, kernel: Kernel) -> "PointCheck":
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


def take_input_names(estimator: Any, fitted: Any) -> None:
    """Copy the column names and their number from another estimator."""
    for name in INPUT_NAMES if fitted is not estimator else ():
        estimator.__dict__.pop(name, None)
        if hasattr(fitted, name):
            setattr(estimator, name, getattr(fitted, name))
