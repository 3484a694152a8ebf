"""Kernels that see two points only through their inner product."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from ..engine import Domain, Form, eigh, in_place, namespace, on_device_of, require, row_norms
from .capabilities import OfOneNumber, Slopes, above_underflow
from .geometry import inner_products
from .hashing import row_numbers, squared_lengths
from .kernel import ALL, Kernel
from .monomials import integer_power, require_dense, symmetric_power, symmetric_power_dim
from .parameters import as_numbers, checked_numbers, is_one_number, per_column, weighted_columns
from .types import Array, PerColumn, Tile


class DotProduct(OfOneNumber, Kernel):
    """A formula of <x, z>. Subclasses give it and, if need be, the inner product; a slope only
    where points enter as they are but for one weight."""

    def formula(self, t: Array, xp: ModuleType) -> Array:
        return t

    # The weight of columns in the inner product: one number, or one per column.
    gamma: PerColumn = 1.0

    @property
    def has_slope(self) -> bool:
        return self._knows_slope and is_one_number(self.gamma)

    def slopes(self, Z: Array, S: Array) -> Slopes:
        weight = float(as_numbers(self.gamma))
        t = weight * (Z @ S.T)
        e = weight * self.slope(t, namespace(t))
        return Slopes(self._of(t), None, e)

    def _left(self, X: Array) -> Array:
        """x as it enters the inner product from the left."""
        return X

    def _right(self, X: Array) -> Array:
        """x as it enters from the right, with the weights of the product."""
        return weighted_columns(X, self.gamma)

    def against(self, S: Array) -> Tile:
        S = self._right(S)
        return lambda rows, columns=ALL: self._of(inner_products(self._left(rows), S[columns, :].T))

    def diagonal(self, X: Array) -> Array:
        return self._of(self._squares(X))

    def magnitude(self, X: Array) -> Array:
        return above_underflow(self._of(above_underflow(self._squares(X))))

    def _squares(self, X):
        """<x, x> of every row."""
        left: Any = self._left(X)  # sparse, where X is
        right = left if self._right == self._left else self._right(X)
        if scipy.sparse.issparse(X):
            return np.asarray(left.multiply(right).sum(axis=1)).ravel()
        xp = namespace(X)
        return row_norms(left, xp) if left is right else xp.sum(left * right, axis=1)


class Linear(DotProduct):
    r"""Compare points by their inner product <x, z>: the space of the data itself.

    Notes
    -----
    .. math::

        k(x, z) = x \cdot z

    - *Valid*: it is an inner product; its map is x itself.
    - *Fails*: where the answer is not a straight line. Units and the origin of columns matter.
    - *Elsewhere*: scikit-learn's `linear_kernel`, GPyTorch's `LinearKernel`, kernlab's
      `vanilladot`.

    Examples
    --------
    >>> from mercer import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    sklearn_names = ("linear",)
    is_psd = True
    is_linear = True

    def slope(self, t: Array, xp: ModuleType) -> Array:
        return 0 * t + 1

    def fused_form(self) -> Form | None:
        return Form.of(1.0, self.formula, "power", 0.0, 1, of_distance=False)

    def features(self, X: Array) -> Array:
        return X

    def explicit_dim(self, n_features: int | None) -> int | None:
        return n_features

    def rounding(self, S: Array) -> float:
        return 5.0 + S.shape[1] ** 0.5


class Polynomial(DotProduct):
    r"""Use all monomials up to a degree: (gamma <x, z> + coef0)^degree.

    Parameters
    ----------
    degree : int
        The power: products of so many columns are among the features.
    gamma : float or list of one per column
        Factor of the inner product; with one per column, the weights of the columns.
    coef0 : float
        0 keeps the monomials of exactly the degree; below 0 the formula is not a kernel.

    Notes
    -----
    .. math::

        k(x, z) = (\gamma\, x \cdot z + c)^p

    - *Valid*: for c >= 0, as a power of a sum of kernels; its map has all monomials up to degree p.
    - *Fails*: far from the data, where values grow as the p-th power; scale the columns.
    - *Elsewhere*: scikit-learn's `polynomial_kernel`, GPyTorch's `PolynomialKernel`, kernlab's
      `polydot`.

    Examples
    --------
    >>> from mercer import Polynomial
    >>> k = Polynomial(degree=2)
    >>> k([[1.0, 1.0]], [[2.0, 4.0]])
    array([[49.]])
    >>> k.explicit_dim(2), k.explicit([[2.0, 3.0]]).round(2)
    (6, array([[4.  , 8.49, 2.83, 9.  , 4.24, 1.  ]]))
    """

    sklearn_names = ("poly", "polynomial")
    domains = {
        "degree": Domain.whole(1, why=": other powers of an inner product are not kernels"),
        "gamma": per_column(),
        "coef0": Domain.FINITE,
    }
    scale_powers = {"gamma": -2}

    def __init__(self, degree: int = 3, gamma: PerColumn = 1.0, coef0: float = 1.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    @property
    def is_psd(self) -> bool | None:
        # With coef0 < 0 some monomial has a negative coefficient.
        return self.coef0 >= 0

    def formula(self, t: Array, xp: ModuleType) -> Array:
        if self.coef0:
            t += float(self.coef0)
        return integer_power(t, int(self.degree))

    def slope(self, t: Array, xp: ModuleType) -> Array:
        return int(self.degree) * integer_power(t + float(self.coef0), int(self.degree) - 1)

    def fused_form(self) -> Form | None:
        scale, numbers = np.sqrt(as_numbers(self.gamma)), (float(self.coef0), int(self.degree))
        return Form.of(scale, self.formula, "power", *numbers, of_distance=False)

    def features(self, X: Array) -> Array:
        require(self.coef0 >= 0, f"{self!r} is not a kernel (coef0 < 0): it has no feature map.")
        F = weighted_columns(require_dense(X), np.sqrt(as_numbers(self.gamma)))
        if self.coef0 > 0:
            xp = namespace(F)
            F = xp.concat([F, xp.ones_like(F[:, :1]) * float(self.coef0) ** 0.5], axis=1)
        return symmetric_power(F, int(self.degree))

    def explicit_dim(self, n_features: int | None) -> int | None:
        if n_features is None or self.coef0 < 0:
            return None
        return symmetric_power_dim(n_features + (self.coef0 > 0), int(self.degree))

    def rounding(self, S: Array) -> float:
        return 4.0 + self.degree * (1 + S.shape[1] ** 0.5)

    def magnitude(self, X: Array) -> Array:
        if self.coef0 >= 0:
            return super().magnitude(X)
        return self.with_parameters(coef0=-self.coef0).magnitude(X)  # the terms cancel


class Cosine(DotProduct):
    r"""Compare rows by the angle between them alone: <x, z> / (|x| |z|).

    A zero row is orthogonal to everything.

    Notes
    -----
    .. math::

        k(x, z) = \frac{x \cdot z}{|x|\, |z|}

    - *Valid*: rule 2 of [KERNELS] with f(x) = 1 / |x|; its map is x / |x|.
    - *Fails*: where lengths carry information: all points of a ray are the same to it.
    - *Elsewhere*: scikit-learn's `cosine_similarity`; GPyTorch's `CosineKernel` is another one.

    Examples
    --------
    >>> from mercer import Cosine
    >>> Cosine()([[3.0, 0.0]], [[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]).round(3)
    array([[1.   , 0.707, 0.   ]])
    """

    sklearn_names = ("cosine",)
    is_psd = True

    def _left(self, X: Any) -> Array:
        if scipy.sparse.issparse(X):
            rows: Any = X.copy()
            of, largest = row_numbers(rows), np.zeros(X.shape[0], X.dtype)
            np.maximum.at(largest, of, np.abs(rows.data))
            rows.data /= np.where(largest == 0, 1, largest)[of]
            norms = np.sqrt(squared_lengths(rows)).astype(X.dtype)
            rows.data /= np.where(norms == 0, 1, norms)[of]
            return rows
        xp = namespace(X)
        # In two steps, here and above: norms of tiny and huge rows neither vanish nor overflow.
        largest = xp.max(xp.abs(X), axis=1, keepdims=True)
        X = X / xp.where(largest == 0, xp.ones_like(largest), largest)
        norms = xp.sqrt(row_norms(X, xp))[:, None]
        return X / xp.where(norms == 0, xp.ones_like(norms), norms)

    _right = features = _left

    def magnitude_of_sums(self, X: Array, terms: Array) -> Array:
        """An error beside |x| is one of the angle."""
        xp = namespace(X)
        lost, left = (xp.sqrt(row_norms(points, xp)) for points in (terms, X))
        nothing = xp.where(lost == 0, xp.ones_like(left), xp.inf * xp.ones_like(left))
        return (1 + xp.where(left == 0, nothing, lost / xp.where(left == 0, 1.0, left))) ** 2

    def explicit_dim(self, n_features: int | None) -> int | None:
        return n_features

    def rounding(self, S: Array) -> float:
        return 6.0 + S.shape[1] ** 0.5


class QuadraticForm(DotProduct):
    """Weight and mix the columns: x' A z for a positive semi-definite A, rule 8 of [KERNELS].

    Parameters
    ----------
    A : array of shape (n_features, n_features)
        A symmetric matrix; a kernel if it has no negative eigenvalue. For A = L L' it is
        ``Projected(Linear(), L)``, which needs no check.

    Notes
    -----
    .. math::

        k(x, z) = x^T A z

    - *Valid*: with A = B B' it is the inner product of B'x and B'z.
    - *Fails*: as Linear does: it only mixes columns.
    - *Elsewhere*: GPyTorch's `LinearKernel` with one variance per column is the case of a diagonal
      A.

    Examples
    --------
    >>> from mercer import QuadraticForm
    >>> QuadraticForm([[2.0, 1.0], [1.0, 2.0]])([[1.0, 0.0]], [[0.0, 1.0]])
    array([[1.]])
    """

    is_psd = True
    is_linear = True

    def __init__(self, A: ArrayLike) -> None:
        self.A = A

    def check_parameters(self) -> None:
        A = checked_numbers("QuadraticForm(A)", "a square matrix", self.A)
        require(
            A.ndim == 2 and A.shape[0] == A.shape[1],
            f"QuadraticForm(A) needs a square matrix, got shape {A.shape}.",
        )
        size = np.abs(A).max()
        require(
            np.abs(A - A.T).max() <= 1e-10 * size,
            f"QuadraticForm(A) needs a symmetric A; |A - A'| reaches {np.abs(A - A.T).max():.3g}. "
            "Use (A + A.T) / 2.",
        )
        smallest = np.linalg.eigvalsh((A + A.T) / 2)[0]
        require(
            smallest >= -1e-10 * max(size, np.finfo(float).tiny) * len(A),
            f"QuadraticForm(A) needs a positive semi-definite A; its smallest eigenvalue is "
            f"{smallest:.3g}. B.T @ B is always one.",
        )

    def _matrix(self, X):
        A = as_numbers(self.A)
        require(
            X.shape[1] == len(A),
            f"QuadraticForm's A is {A.shape[0]} x {A.shape[1]} and X has {X.shape[1]} columns.",
        )
        return (A + A.T) / 2

    def _root(self, A: Array) -> np.ndarray:
        """B with B B' = A: x'Az = <x B, z B> has no rounding that could make it indefinite."""
        values, vectors = eigh((A + A.T) / 2)
        kept = values > len(A) * np.finfo(float).eps * max(values[0], 0)
        return vectors[:, kept] * np.sqrt(values[kept])

    def _left(self, X: Array) -> Array:
        B = self._root(self._matrix(X))
        if scipy.sparse.issparse(X):
            return scipy.sparse.csr_array(X @ B.astype(X.dtype))
        return X @ on_device_of(B, X)

    _right = features = _left

    def explicit_dim(self, n_features: int | None) -> int | None:
        return self._root(as_numbers(self.A)).shape[1]

    def magnitude(self, X: Array) -> Array:
        """|A| |x|^2: in directions of small eigenvalues the terms of x'Ax are larger than it."""
        largest = float(np.abs(np.linalg.eigvalsh(self._matrix(X))).max())
        return above_underflow(largest * Linear().magnitude(X))

    def rounding(self, S: Array) -> float:
        return 4.0 + 2 * (1 + S.shape[1])


class Sigmoid(DotProduct):
    r"""Compare points as a neuron does: tanh(gamma <x, z> + coef0). Not a valid kernel in general.

    Parameters
    ----------
    gamma : float or list of one per column
        Factor of the inner product.
    coef0 : float
        Constant that is added to it.

    Notes
    -----
    .. math::

        k(x, z) = \tanh(\gamma\, x \cdot z + c)

    - *Valid*: not in general: the series of tanh has negative coefficients.
    - *Fails*: for large inner products, where all values are 1; wherever a method needs a kernel.
      `KernelMap(indefinite=...)` repairs it.
    - *Elsewhere*: scikit-learn's `sigmoid_kernel`, kernlab's `tanhdot`.

    Examples
    --------
    >>> from mercer import Sigmoid, check_mercer
    >>> check_mercer(Sigmoid(coef0=-1.0), [[0.0], [1.0], [2.0]]).psd
    False
    """

    sklearn_names = ("sigmoid",)
    is_psd = False
    domains = {"gamma": per_column(positive=False), "coef0": Domain.FINITE}
    scale_powers = {"gamma": -2}

    def __init__(self, gamma: PerColumn = 1.0, coef0: float = 0.0) -> None:
        self.gamma = gamma
        self.coef0 = coef0

    def formula(self, t: Array, xp: ModuleType) -> Array:
        t += float(self.coef0)
        return in_place(xp.tanh, t)

    def slope(self, t: Array, xp: ModuleType) -> Array:
        return 1 - xp.tanh(t + float(self.coef0)) ** 2

    def _largest_terms(self, X: Array) -> Array:
        # tanh hides an infinite product, until it meets another
        return Linear().diagonal(X) * max(self._steepest(), 1.0) + abs(float(self.coef0))

    def magnitude(self, X: Array) -> Array:
        """An error of the inner product is one of its tanh, at most."""
        return self._steepest() * Linear().magnitude(X) + abs(float(self.coef0))

    def _steepest(self):
        return float(np.max(np.abs(as_numbers(self.gamma))))

    def rounding(self, S: Array) -> float:
        return 6.0 + S.shape[1] ** 0.5
