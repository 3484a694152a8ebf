"""Expansion, the shape of every answer: z -> k(z, S) W + b; and RKHSFunction, one column of it."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from .engine import (
    TravelsAsNumPy,
    as_numpy,
    is_array,
    is_numpy,
    itemsize,
    largest_power,
    namespace,
    on_device_of,
    tiles,
)
from .kernels import Data, KernelLike, alike, as_kernel
from .kernels import points as pts
from .rows import stacked

# Functions, and the share of coefficients that are not zero, where products leave out zeros.
MANY, SPARSE = 10, 0.1


@dataclass(frozen=True, eq=False)
class Expansion(TravelsAsNumPy):
    """The functions z -> k(z, S) W + b, one per column of W.

    Scores of kernel PCA, discriminant axes, ridge predictions and functions of the RKHS are all of
    this shape. It needs nothing but kernel values against the points S.
    """

    kernel: Any  # bound to its data
    S: Any  # points, in the form that kernel.against takes
    W: Any  # of shape (n_points, n_functions)
    b: Any  # of shape (n_functions,)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """The values at every point of X (points as ``kernel.points`` returns them)."""
        X = self.fitted(X)
        W = self.W
        if is_numpy(W) and W.shape[1] >= MANY and np.count_nonzero(W) < SPARSE * W.size:
            W = scipy.sparse.csr_array(W)  # of machines of pairs of classes: mostly zero
        values = tiles.multiply(self.kernel, X, self.S, W)
        return values + self.b[None, :]

    def fitted(self, X: Any) -> Any:
        """Points in the precision of the functions."""
        return pts.as_fitted_points(X, self.S, self.W.dtype)

    def __matmul__(self, coef: np.ndarray) -> Expansion:
        """The functions z -> self(z) @ coef."""
        return self.with_coefficients(self.W @ coef, self.b @ coef)

    def __mul__(self, factor: float) -> Expansion:
        return self.with_coefficients(factor * self.W, factor * self.b)

    def with_coefficients(self, W: np.ndarray, b: np.ndarray) -> Expansion:
        """Other functions on the same points."""
        return Expansion(self.kernel, self.S, W, b)

    def column(self, j: int) -> RKHSFunction:
        """One of the functions, as an element of the RKHS."""
        self.kernel.layout.require_data(
            "a precomputed kernel cannot be evaluated at new points; use landmark_weights(coef) of "
            "the map with landmark_indices_."
        )
        return RKHSFunction(self.kernel, self.S, self.W[:, j], float(self.b[j]))


class RKHSFunction(TravelsAsNumPy):
    """Evaluate, add and compare functions of the form f = sum_i a_i k(x_i, .) (+ a constant).

    Parameters
    ----------
    kernel : Kernel, str or callable
        What compares two points, or its name as in scikit-learn ("rbf", "poly", "linear", ...).
    points : the x_i
        Where the kernels of the sum stand.
    coef : array of shape (n_points,)
        The a_i.
    intercept : float, default=0.0
        Added to values. A constant is not an element of the space in general: inner products and
        norms are those of the rest.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, RKHSFunction
    >>> f = RKHSFunction(RBF(1.0), [[0.0], [1.0]], [1.0, -1.0])
    >>> f([[0.0]]).round(4)
    array([0.6321])
    >>> k0 = RKHSFunction(RBF(1.0), [[0.0]], [1.0])
    >>> round(f.inner(k0), 4)  # the reproducing property: <f, k(z, .)> = f(z)
    0.6321
    >>> round((f + 2 * k0).norm(), 4)
    2.7915
    """

    def __init__(
        self, kernel: KernelLike, points: Data, coef: ArrayLike, intercept: float = 0.0
    ) -> None:
        self.kernel = as_kernel(kernel).bind(points)
        self.kernel.layout.require_data(
            "a precomputed kernel cannot be evaluated at new points: an RKHSFunction needs a "
            "kernel on data."
        )
        self.points = self.kernel.points(points, name="points")
        reference = self.points if is_array(self.points) and self.points.dtype != object else None
        with pts.naming("coef"):
            self.coef = (
                np.asarray(coef, float) if reference is None else on_device_of(coef, reference)
            )
        if tuple(self.coef.shape) != (self.points.shape[0],):
            raise ValueError(
                f"coef must hold one number for each of the {self.points.shape[0]} points, got "
                f"shape {tuple(self.coef.shape)}."
            )
        constant: Any = intercept
        if is_array(constant) and constant.ndim == 0:
            constant = as_numpy(constant).item()  # a number, wherever it was computed
        if np.ndim(constant) or not np.issubdtype(np.asarray(constant).dtype, np.number):
            raise TypeError(f"intercept must be a number, got {constant!r}.")
        if not np.isfinite(constant):
            raise ValueError(f"intercept must be finite, got {constant!r}.")
        self.intercept = constant

    def __call__(self, X: Data) -> np.ndarray:
        """f at every row of X."""
        return self._values(self.kernel.points(X), self.coef) + self.intercept

    @property
    def expansion(self) -> Expansion:
        """The same function as an Expansion of one column."""
        b = on_device_of(np.array([self.intercept]), self.coef)
        return Expansion(self.kernel, self.points, self.coef[:, None], b)

    def _values(self, X, coef):
        """sum_i a_i k(x_i, x) for points of any precision, sparse or dense."""
        X, points = alike(pts.as_fitted_points(X, self.points, X.dtype), self.points, self.kernel)
        return tiles.multiply(self.kernel, X, points, coef[:, None])[:, 0]

    def inner(self, other: RKHSFunction) -> float:
        """<f, g> = sum_ij a_i b_j k(x_i, y_j), where g is the `other` function."""
        scaled, a, b = self._scaled_inner(other)
        return scaled * a * b

    def norm(self) -> float:
        """|f| = sqrt(a'Ka)."""
        scaled, a, _ = self._scaled_inner(self)
        return a * max(scaled, 0.0) ** 0.5

    def _scaled_inner(self, other):
        """<f, g> of coefficients divided by their sizes, whose products stay in range; the sizes"""
        self._same_space(other)
        a, b = (largest_power(f.coef) for f in (self, other))
        values = self._values(other.points, self.coef / a)
        return float(namespace(values).sum(values * on_device_of(other.coef / b, values))), a, b

    def __add__(self, other: RKHSFunction) -> RKHSFunction:
        self._same_space(other)
        if itemsize(other.points) > itemsize(self.points):
            return other + self  # rounded to single precision, its points would be others
        points = pts.as_fitted_points(other.points, self.points, self.points.dtype)
        coef = namespace(self.coef).concat([self.coef, on_device_of(other.coef, self.coef)])
        constant = self.intercept + other.intercept
        return RKHSFunction(self.kernel, stacked(self.points, points), coef, constant)

    def __radd__(self, zero):
        """0 + f, so that sum() of functions works."""
        return self if isinstance(zero, numbers.Real) and zero == 0 else NotImplemented

    def __mul__(self, c: float) -> RKHSFunction:
        if not isinstance(c, numbers.Real):
            return NotImplemented
        return RKHSFunction(self.kernel, self.points, float(c) * self.coef, c * self.intercept)

    __rmul__ = __mul__

    def __neg__(self) -> RKHSFunction:
        return -1.0 * self

    def __sub__(self, other: RKHSFunction) -> RKHSFunction:
        return self + (-1.0) * other

    def __repr__(self):
        return f"RKHSFunction({self.kernel!r}, {self.points.shape[0]} points)"

    def _same_space(self, other):
        if not isinstance(other, RKHSFunction):
            raise TypeError(f"expected an RKHSFunction, got {type(other).__name__}.")
        if self.kernel != other.kernel:
            raise ValueError(
                f"the functions live in different spaces: {self.kernel!r} and {other.kernel!r}."
            )
