"""Kernels on objects, and among them those that are inner products of features, such as counts."""

import numpy as np

from ..engine import is_array, is_numpy
from .base import Kernel
from .hashing import squared_lengths
from .map_products import map_products
from .types import Array, Data, Tile


class ObjectKernel(Kernel):
    """A kernel on objects, given as a list, an array of objects, or one column of a frame."""

    @property
    def kind(self) -> str:
        return "objects"

    def points(self, X: Data, name: str = "X") -> Array:
        if is_array(X) and not is_numpy(X):
            raise TypeError(
                f"{name} is an array of {type(X).__module__}: {type(self).__name__} reads objects "
                "on the host; convert it to NumPy first."
            )
        X = super().points(X, name)
        if X.dtype == np.float32:
            X = X.astype(np.float64)  # values of paths may be beyond single precision
        if X.ndim == 2 and getattr(X.dtype, "kind", "") == "O":
            if X.shape[1] > 1:
                raise ValueError(
                    f"{name} is a table of {X.shape[1]} columns, and {type(self).__name__} "
                    f"compares the objects of one: OnColumns({self!r}, column)."
                )
            X = X[:, 0]
        return X


class FeatureKernel(ObjectKernel):
    """k(x, z) = <features of x, features of z>: a subclass gives `features`, dense or sparse.

    Valid because it is an inner product.
    """

    is_psd = True

    def features(self, X: Array) -> Array:
        raise NotImplementedError(f"{type(self).__name__} must define features(X).")

    def against(self, S: Array) -> Tile:
        return map_products(self.features, S)

    def diagonal(self, X: Array) -> Array:
        return squared_lengths(self.features(X))
