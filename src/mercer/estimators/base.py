"""The base of every estimator: a `kernel` parameter, points, all-or-nothing fits."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..engine import (
    Domain,
    Resources,
    TravelsAsNumPy,
    device,
    is_array,
    is_numpy,
    namespace,
    using,
)
from ..kernels import Kernel, as_kernel
from ..kernels import points as pts
from ..rows import check_kind, lazily, validated_points

_Method = TypeVar("_Method", bound=Callable[..., Any])

CLASS_WEIGHT = Domain(
    lambda given: isinstance(given, Mapping) or Domain.one_of(None, "balanced").accepts(given),
    "None, 'balanced' or a dictionary",
)


def all_or_nothing(fit: _Method) -> _Method:
    """A fit that fails (or is interrupted) leaves the estimator as it was.

    The fit runs on a copy without the attributes of earlier fits, and the copy's state replaces the
    estimator's in one assignment: whoever predicts meanwhile, in another thread, sees the old model
    or the new one. Attributes of a fit end with "_", private ones too: the copy leaves them out.
    Parameters outside of their domains are refused before anything is done.
    """
    return _on_a_copy(fit, lambda name: not name.endswith("_") and not name.startswith("_cached"))


def all_or_nothing_more(partial_fit: _Method) -> _Method:
    """The same for fits that go on from what is there."""
    return _on_a_copy(partial_fit, lambda name: True)


def _on_a_copy(fit: _Method, keeps: Callable[[str], bool]) -> _Method:
    @wraps(fit)
    def wrapped(self, *args, **kwargs):
        Domain.check(self)
        args = tuple(pts.collected(a) for a in args)
        kwargs = {name: pts.collected(a) for name, a in kwargs.items()}
        _refuse_masked(args, kwargs)
        work = object.__new__(type(self))
        work.__dict__ = {name: value for name, value in vars(self).items() if keeps(name)}
        with using(Resources.of(self, getattr(self, "kernel", None))):
            answer = fit(work, *args, **kwargs)
        self.__dict__ = vars(work)
        return self if answer is work else answer

    return cast(_Method, wrapped)


def with_resources(method: _Method) -> _Method:
    """A method that works on the estimator's threads, and shows its progress where asked."""

    @wraps(method)
    def wrapped(self, *args, **kwargs):
        with using(Resources.of(self, getattr(self, "kernel", None))):
            return method(self, *args, **kwargs)

    return cast(_Method, wrapped)


def _refuse_masked(args, kwargs):
    """X, y and weights alike: what a mask hides would be used."""
    names = ("X", "y", "sample_weight")
    for name, value in [*zip(names, args), *kwargs.items()]:
        pts.refuse_masked(value, name)


def on_fitted(method: _Method) -> _Method:
    """A method of a fitted estimator, on arrays of the kind that it was fitted on.

    On a Dask collection it is applied partition by partition, when the result is asked for.
    """

    @wraps(method)
    def wrapped(self, X: Any, *args, **kwargs):
        check_is_fitted(self)
        _refuse_masked((X, *args), kwargs)
        return answer(self, X, *args, **kwargs)

    @wraps(method)
    def here(self, X: Any, *args, **kwargs):
        check_kind(self, X, method.__name__)
        with using(Resources.of(self, getattr(self, "kernel", None))):
            return method(self, X, *args, **kwargs)

    answer = here if method.__name__ == "score" else lazily(here)
    return cast(_Method, wrapped)


class HasKernel(BaseEstimator):
    """An estimator with a parameter `kernel`, whose own parameters can be set."""

    domains: ClassVar[dict[str, Domain]] = {}  # of the parameters
    kernel: Any
    n_features_in_: int
    feature_names_in_: np.ndarray

    def set_params(self, **params: object) -> Self:
        """Set parameters; a kernel given by name becomes an object when one of its own is set."""
        kernel: Any = params.get("kernel", self.kernel)
        inner = any(name.startswith("kernel__") for name in params)
        if inner and not hasattr(kernel, "set_params"):
            params = params | {"kernel": as_kernel(kernel)}
        return super().set_params(**params)


class KernelEstimator(TravelsAsNumPy, HasKernel):
    """An estimator whose kernel may also be given by its name, or (for methods) in a KernelMap."""

    kernel_: Any  # bound to the training rows

    def __getstate__(self):
        state = super().__getstate__()
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
            tags.input_tags.pairwise = not kernel.layout.on_data
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


def to_namespace_of(values: Any, X: Any):
    """y or sample_weight as an array of X's kind."""
    if is_array(X) and not is_numpy(X):
        xp = namespace(X)
        return xp.asarray(values, device=device(X))
    return values
