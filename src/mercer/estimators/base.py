"""What every estimator shares: a `kernel` parameter, points, all-or-nothing fits."""

from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_is_fitted,
    validate_data,
)

from ..engine.arrays import device, is_array, is_numpy, namespace, to_host
from ..kernels import (
    Chi2,
    FromFeatures,
    FromFunction,
    Intersection,
    Kernel,
    Laplacian,
    Periodic,
    as_kernel,
)
from ..kernels import points as pts
from ..kernels.adapters import FromSklearn
from ..kernels.points import naming
from ..rows.dask import apply, is_dask

# Kernels that compare points column by column, or call functions that need arrays.
DENSE_ONLY = (Chi2, FromFeatures, FromFunction, FromSklearn, Intersection, Laplacian, Periodic)


def all_or_nothing(fit):
    """A fit that fails (or is interrupted) leaves the estimator as it was."""

    @wraps(fit)
    def wrapped(self, *args, **kwargs):
        _refuse_masked(args, kwargs)
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return wrapped


def _refuse_masked(args, kwargs):
    """X, y and weights alike: what a mask hides would be used."""
    names = ("X", "y", "sample_weight")
    for name, value in [*zip(names, args), *kwargs.items()]:
        pts.refuse_masked(value, name)


def on_fitted(method):
    """A method of a fitted estimator, on arrays of the kind that it was fitted on.

    On a Dask collection it is applied partition by partition, when the result is asked for.
    """

    @wraps(method)
    def wrapped(self, X, *args, **kwargs):
        check_is_fitted(self)
        _refuse_masked((X, *args), kwargs)
        if is_dask(X) and method.__name__ != "score":
            return apply(self, method.__name__, X, args, kwargs)
        _check_kind(self, X, method.__name__)
        return method(self, X, *args, **kwargs)

    return wrapped


class PartOfMap:
    """A part of KernelMap in a file of its own; what it needs of the rest, it finds on the map."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class KernelEstimator(BaseEstimator):
    """An estimator with a parameter `kernel`: a kernel, its name, or (for methods) a KernelMap."""

    kernel: Any

    def set_params(self, **params):
        """Set parameters; a kernel given by name becomes an object when one of its own is set."""
        kernel = params.get("kernel", self.kernel)
        if isinstance(kernel, str) and any(name.startswith("kernel__") for name in params):
            params = params | {"kernel": as_kernel(kernel)}
        return super().set_params(**params)

    def __getstate__(self):
        """State for pickles: what lives on a device travels as NumPy, and so loads anywhere."""
        state = to_host(super().__getstate__())
        kind = state.get("_array_kind")
        if kind is not None and not kind[1].startswith(("cpu", "CPU")):
            state["_array_kind"] = ("numpy", "cpu")
        return state

    def _leaf_kernel(self):
        """The kernel itself, also where it is given inside a map."""
        kernel = getattr(self.kernel, "kernel", self.kernel)
        kernel = self.kernel if isinstance(self.kernel, Kernel) else kernel
        return as_kernel(kernel)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        tags.input_tags.sparse = True
        try:
            kernel = self._leaf_kernel()
            tags.input_tags.pairwise = kernel.kind == "gram"
            parts = [kernel, *kernel.get_params(deep=True).values()]
            tags.input_tags.sparse = not any(isinstance(part, DENSE_ONLY) for part in parts)
            tags.input_tags.positive_only = isinstance(kernel, (Chi2, Intersection))
        except (TypeError, ValueError):
            pass  # an unknown kernel is reported by fit
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def validated_points(estimator, X, kernel, *, reset, in_range=True):
    """X as points of the kernel, with scikit-learn's checks and n_features_in_.

    New points must also be `in_range` of the kernel, which has to be bound for that.
    """
    if reset:
        for name in ("n_features_in_", "feature_names_in_"):
            estimator.__dict__.pop(name, None)
    objects = kernel.kind == "objects" or (kernel.kind == "any" and not is_array(X))
    if objects and not _is_table(X):
        estimator._array_kind = ("numpy", "cpu")
        return pts.as_objects(X)
    if is_array(X) and not is_numpy(X):
        X = pts.as_vectors(X)
        if reset:
            estimator.n_features_in_ = X.shape[1]
        else:
            _check_columns(estimator, X)
    elif pts.is_frame(X) and kernel.kind != "vectors":
        # Columns of several types: the kernel says which must be numbers.
        _check_feature_names(estimator, X, reset=reset)
        _check_n_features(estimator, X, reset=reset)
        X = kernel.points(X)
    else:
        pts.refuse_masked(X)
        pts.refuse_dates(X)
        with naming("X"), np.errstate(invalid="ignore"):  # inf - inf, before it is refused
            X = validate_data(
                estimator, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32]
            )
        if kernel.kind == "gram" and scipy.sparse.issparse(X):
            X = X.toarray()
    if reset:
        estimator._array_kind = _kind(X)
    else:
        _check_kind(estimator, X)
        if in_range:
            kernel.check_range(X)
    return X


def follow(values, X):
    """y or sample_weight as an array of X's kind."""
    if is_array(X) and not is_numpy(X):
        xp = namespace(X)
        return xp.asarray(values, device=device(X))
    return values


def _is_table(X):
    return (
        scipy.sparse.issparse(X)
        or pts.is_frame(X)
        or (is_array(X) and X.ndim == 2 and X.dtype != object)
    )


def _kind(X):
    if not is_array(X) or is_numpy(X):
        return ("numpy", "cpu")
    return (namespace(X).__name__.split(".")[-1], str(device(X)))


def _check_kind(estimator, X, method="transform"):
    """scikit-learn's wording for arrays from elsewhere."""
    fitted = getattr(estimator, "_array_kind", ("numpy", "cpu"))
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
