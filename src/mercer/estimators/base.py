"""The base of every estimator: a `kernel` parameter, points, all-or-nothing fits."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Self, TypeVar, cast

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from ..engine.arrays import device, is_array, is_matrix, is_numpy, namespace, to_host
from ..engine.memory import within
from ..engine.resources import Resources, using
from ..kernels import Kernel, as_kernel
from ..kernels import points as pts
from ..kernels.points import explaining_gaps, naming, naming_columns
from ..rows.lazy import lazily
from ..rows.source import in_memory, source_of
from .sklearn_compat import check_feature_names, check_n_features

Method = TypeVar("Method", bound=Callable[..., Any])
# What a fit learns about its input.
INPUT_NAMES = ("n_features_in_", "feature_names_in_", "array_kind_")


def all_or_nothing(fit: Method) -> Method:
    """A fit that fails (or is interrupted) leaves the estimator as it was.

    The fit runs on a copy without the attributes of earlier fits, and the copy's state replaces the
    estimator's in one assignment: whoever predicts meanwhile, in another thread, sees the old model
    or the new one. What a fit leaves is known by its last letter: private names end with "_", too.
    """
    return _on_a_copy(fit, lambda name: not name.endswith("_") and not name.startswith("_cached"))


def all_or_nothing_more(partial_fit: Method) -> Method:
    """The same for fits that go on from what is there."""
    return _on_a_copy(partial_fit, lambda name: True)


def _on_a_copy(fit: Method, keeps: Callable[[str], bool]) -> Method:
    @wraps(fit)
    def wrapped(self, *args, **kwargs):
        args = tuple(pts.collected(a) for a in args)
        kwargs = {name: pts.collected(a) for name, a in kwargs.items()}
        _refuse_masked(args, kwargs)
        work = object.__new__(type(self))
        work.__dict__ = {name: value for name, value in vars(self).items() if keeps(name)}
        resources = _resources_of(self)
        limit = None if resources.memory_limit is None else resources.limit()
        with using(resources), within(limit):
            answer = fit(work, *args, **kwargs)
        self.__dict__ = vars(work)
        return self if answer is work else answer

    return cast(Method, wrapped)


def _resources_of(estimator):
    """Memory, threads and progress: those of the estimator, else of its map."""
    return Resources.of(estimator, getattr(estimator, "kernel", None))


def with_resources(method: Method) -> Method:
    """A method that works on the estimator's threads, and shows its progress where asked."""

    @wraps(method)
    def wrapped(self, *args, **kwargs):
        with using(_resources_of(self)):
            return method(self, *args, **kwargs)

    return cast(Method, wrapped)


def _refuse_masked(args, kwargs):
    """X, y and weights alike: what a mask hides would be used."""
    names = ("X", "y", "sample_weight")
    for name, value in [*zip(names, args), *kwargs.items()]:
        pts.refuse_masked(value, name)


def on_fitted(method: Method) -> Method:
    """A method of a fitted estimator, on arrays of the kind that it was fitted on.

    On a Dask collection it is applied partition by partition, when the result is asked for.
    """

    @wraps(method)
    def wrapped(self, X, *args, **kwargs):
        check_is_fitted(self)
        _refuse_masked((X, *args), kwargs)
        return answer(self, X, *args, **kwargs)

    @wraps(method)
    def here(self, X, *args, **kwargs):
        _check_kind(self, X, method.__name__)
        with using(_resources_of(self)):
            return method(self, X, *args, **kwargs)

    answer = here if method.__name__ == "score" else lazily(here)
    return cast(Method, wrapped)


class KernelEstimator(BaseEstimator):
    """An estimator with a parameter `kernel`: a kernel, its name, or (for methods) a KernelMap."""

    kernel: Any
    kernel_: Any  # bound to the training rows

    def set_params(self, **params: object) -> Self:
        """Set parameters; a kernel given by name becomes an object when one of its own is set."""
        kernel = params.get("kernel", self.kernel)
        if isinstance(kernel, str) and any(name.startswith("kernel__") for name in params):
            params = params | {"kernel": as_kernel(kernel)}
        return super().set_params(**params)

    def __getstate__(self):
        """State for pickles: what lives on a device travels as NumPy, and so loads anywhere."""
        state = to_host(super().__getstate__())
        kind = state.get("array_kind_")
        if kind is not None and not kind[1].startswith(("cpu", "CPU")):
            state["array_kind_"] = ("numpy", "cpu")
        return state

    def _points(self, X):
        """New rows as points of the fitted kernel."""
        return validated_points(self, X, self.kernel_, reset=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        tags.input_tags.sparse = True
        try:
            kernel = kernel_of(self.kernel)
            tags.input_tags.pairwise = kernel.kind == "gram"
            tags.input_tags.sparse = kernel.takes_sparse
            tags.input_tags.positive_only = kernel.non_negative_only
        except (TypeError, ValueError):
            pass  # an unknown kernel is reported by fit
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def kernel_of(kernel: Any) -> Kernel:
    """The kernel itself, also where it is given inside a map."""
    from .kernel_map import KernelMap  # which imports this file

    return as_kernel(kernel.kernel if isinstance(kernel, KernelMap) else kernel)


def validated_points(estimator, X, kernel, *, reset, in_range=True):
    """X as points of the kernel, with scikit-learn's checks and n_features_in_.

    New points must also be `in_range` of the kernel, which has to be bound for that.
    """
    X = in_memory(X)
    if reset:
        for name in ("n_features_in_", "feature_names_in_"):
            estimator.__dict__.pop(name, None)
    objects = kernel.kind == "objects" or (kernel.kind == "any" and not is_array(X))
    if objects and not (scipy.sparse.issparse(X) or pts.is_frame(X) or is_matrix(X)):
        estimator.array_kind_ = ("numpy", "cpu")
        return pts.as_objects(X)
    if is_array(X) and not is_numpy(X):
        X = pts.as_vectors(X)
        if reset:
            estimator.n_features_in_ = X.shape[1]
        else:
            _check_columns(estimator, X)
    elif pts.is_frame(X) and kernel.kind != "vectors":
        # Columns of several types: the kernel says which must be numbers.
        check_feature_names(estimator, X, reset=reset)
        check_n_features(estimator, X, reset=reset)
        X = kernel.points(X)
    else:
        pts.refuse_masked(X)
        pts.refuse_dates(X)
        # inf - inf, before it is refused
        with (
            explaining_gaps(),
            naming("X"),
            naming_columns(X),
            np.errstate(invalid="ignore"),
        ):
            X = validate_data(
                estimator, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32]
            )
        if kernel.kind == "gram" and scipy.sparse.issparse(X):
            X = X.toarray()
    if reset:
        estimator.array_kind_ = _kind(X)
    else:
        _check_kind(estimator, X)
        if in_range:
            kernel.check_range(X)
    return X


# --- rows -----------------------------------------------------------------------------------------


@dataclass
class PointCheck:
    """A block of rows as checked points of a kernel.

    Before the kernel is bound to data only types and columns are checked, not its range.
    """

    estimator: Any
    kernel: Any
    bound: bool = False
    first: bool = False  # whether the next block decides the columns

    @property
    def names(self):
        """Column names, known once a block has been read."""
        names = getattr(self.estimator, "feature_names_in_", None)
        return None if names is None else list(names)

    def of_bound(self, kernel):
        """The same check for blocks that are read again, with the range of the bound kernel."""
        return replace(self, kernel=kernel, bound=True, first=False)

    def __call__(self, block):
        reset, self.first = self.first, False
        return validated_points(
            self.estimator, block, self.kernel, reset=reset, in_range=self.bound
        )


def rows_of_input(estimator, X, kernel, room=1 << 30):
    """(the rows of X, the check of their blocks).

    The check's own estimator learns about the input: take_input_names has it from there.
    """
    check = PointCheck(_bare(estimator), kernel, first=True)
    return source_of(X, check, room), check


def new_rows(estimator, X, kernel):
    """The rows of X for a fitted estimator and a bound kernel."""
    return source_of(X, PointCheck(_bare(estimator), kernel, bound=True))


def take_input_names(estimator, fitted):
    """Copy the column names and their number from another estimator."""
    for name in INPUT_NAMES if fitted is not estimator else ():
        estimator.__dict__.pop(name, None)
        if hasattr(fitted, name):
            setattr(estimator, name, getattr(fitted, name))


def _bare(estimator):
    """A copy without fitted parts, enough for checking: it travels to workers."""
    bare = copy(estimator)
    bare.__dict__ = {k: v for k, v in vars(estimator).items() if not k.endswith("_")}
    take_input_names(bare, estimator)
    return bare


def to_namespace_of(values, X):
    """y or sample_weight as an array of X's kind."""
    if is_array(X) and not is_numpy(X):
        xp = namespace(X)
        return xp.asarray(values, device=device(X))
    return values


def _kind(X):
    if not is_array(X) or is_numpy(X):
        return ("numpy", "cpu")
    return (namespace(X).__name__.split(".")[-1], str(device(X)))


def _check_kind(estimator, X, method="transform"):
    """scikit-learn's wording for arrays from elsewhere."""
    fitted = getattr(estimator, "array_kind_", ("numpy", "cpu"))
    if fitted != _kind(X):
        raise ValueError(
            f"Inputs passed to {type(estimator).__name__}.{method}() must use the same namespace "
            f"and the same device as those passed to fit(): fitted on {fitted[0]} ({fitted[1]}), "
            f"got {_kind(X)[0]} ({_kind(X)[1]}). Convert X, or fit again."
        )


def _check_columns(estimator, X):
    if X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
