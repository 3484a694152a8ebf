"""Projected: a kernel on linear combinations of the columns, the shape of a learned metric."""

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from ..engine.arrays import namespace, on_device_of
from ..engine.checks import require
from .base import ALL, Kernel
from .images import OnImages
from .parameters import as_numbers
from .types import Array, Tensor, Tile


class Projected(OnImages):
    """Apply a kernel to linear combinations of the columns: k(x A, z A), rule 7 of [KERNELS].

    With a kernel of the Euclidean distance this is that kernel under the metric M = A A': columns
    and directions that A shrinks count for less. :func:`mercer.learn_kernel` finds an A from data.

    Parameters
    ----------
    kernel : Kernel or str
    A : array of shape (n_features, n_directions) or (n_features,)
        One row per column of the data, one column per direction that the kernel sees. One number
        per column of the data stands for the diagonal matrix of these weights.

    Examples
    --------
    >>> from mercer import RBF, Projected
    >>> Projected(RBF(1.0), [[1.0], [0.0]])([[0.0, 5.0]], [[1.0, -5.0]]).round(3)
    array([[0.368]])
    """

    kind = "vectors"

    def __init__(self, kernel: Kernel | str, A: ArrayLike) -> None:
        self.kernel = kernel
        self.A = A

    def check_parameters(self) -> None:
        super().check_parameters()
        require(
            self.kernel.kind != "gram",
            "Projected(Precomputed(), A) has no meaning: a Gram matrix has no columns of data.",
        )
        try:
            A = as_numbers(self.A)
        except (TypeError, ValueError):
            raise ValueError(
                f"Projected(kernel, A) needs a matrix of numbers, got {self.A!r}."
            ) from None
        require(
            A.ndim in (1, 2) and A.size > 0,
            "Projected(kernel, A) needs a matrix with one row per column of the data and at least "
            f"one column, or one weight per column of the data, got shape {A.shape}.",
        )
        require(bool(np.isfinite(A).all()), "Projected(kernel, A): A contains NaN or infinity.")

    def bind_points(
        self, X: Array, names: list[str] | None, weights: Array | None = None
    ) -> "Projected":
        self.check_parameters()
        return Projected(self.kernel.bind_points(self.image(X), None, weights), self.A)

    def image(self, X: Array) -> Array:
        """The points x A that the kernel sees, in double precision whatever X is."""
        A = as_numbers(self.A)
        require(
            X.shape[1] == A.shape[0],
            f"Projected: A has {A.shape[0]} rows, one per column, and X has {X.shape[1]} columns.",
        )
        if scipy.sparse.issparse(X):
            return np.asarray(X.astype(np.float64) @ (A if A.ndim == 2 else np.diag(A)))
        xp = namespace(X)
        X, A = xp.astype(X, xp.float64, copy=False), on_device_of(A, X, dtype=xp.float64)
        return X @ A if A.ndim == 2 else X * A[None, :]

    def against(self, S: Array) -> Tile:
        inner = super().against(S)
        return lambda rows, columns=ALL: _in_dtype_of(S, inner(rows, columns))

    def diagonal(self, X: Array) -> Array:
        return _in_dtype_of(X, super().diagonal(X))

    def features(self, X: Array) -> Array:
        return _in_dtype_of(X, super().features(X))

    def explicit_dim(self, n_features: int | None) -> int | None:
        if n_features is None:
            raise ValueError("Projected: n_features must be a number of columns, got None.")
        return self.kernel.explicit_dim(as_numbers(self.A).shape[-1])

    def rounding(self, S: Array) -> float:
        """That of the kernel, more where x A cancels: columns far from zero, points close by."""
        Z = self.image(S)
        xp = namespace(Z)
        A = as_numbers(self.A)
        A = np.abs(A) if A.ndim == 1 else np.sqrt((A**2).sum(axis=1))
        reach = float(xp.max(abs(S) @ on_device_of(A, Z, dtype=S.dtype)))
        spread = float(xp.max(xp.abs(Z - xp.mean(Z, axis=0))))
        return self.kernel.rounding(Z) * (2 + (reach / spread if spread > 0 else 0.0))

    def onnx_image(self, X: Tensor) -> Tensor:
        A = as_numbers(self.A)
        return X.scaled(A) if A.ndim == 1 else (X @ A).of_width(A.shape[1])


def _in_dtype_of(X, values):
    return values if values.dtype == X.dtype else namespace(values).astype(values, X.dtype)
