"""Projected: a kernel on linear combinations of the columns, the shape of a learned metric."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from ..engine import as_numpy, namespace, on_device_of, require
from .capabilities import above_underflow
from .composite import Binary, FunctionOf, OnImages
from .kernel import ALL, Kernel
from .parameters import as_numbers, checked_numbers
from .types import Array, Tile
from .wrappers import Normalized, OnColumns, OnFeatures, Rescaled


class Projected(OnImages):
    """Apply a kernel to linear combinations of the columns: k(x A, z A), rule 7 of [KERNELS].

    With a kernel of the Euclidean distance this is that kernel under the metric M = A A': columns
    and directions that A shrinks count for less. :func:`mercer.learn_kernel` finds an A from data.

    Parameters
    ----------
    kernel : Kernel or str
        What compares two points, or its name as in scikit-learn ("rbf", "poly", "linear", ...).
    A : array of shape (n_features, n_directions) or (n_features,)
        One row per column of the data, one column per direction that the kernel sees. One number
        per column of the data stands for the diagonal matrix of these weights.

    Notes
    -----
    .. math::

        k(A^T x, A^T z)

    - *Valid*: where the inner kernel is.
    - *Fails*: where a column of A is missing: what A maps to 0 is not seen.
    - *Elsewhere*: tinygp's `Linear` transform; a Mahalanobis metric in other words.

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
        A = checked_numbers("Projected(kernel, A)", "a matrix", self.A)
        require(
            A.ndim in (1, 2) and A.size > 0,
            "Projected(kernel, A) needs a matrix with one row per column of the data and at least "
            f"one column, or one weight per column of the data, got shape {A.shape}.",
        )

    def image(self, X: Any, centre: Array | None = None) -> Array:
        """The points x A, or (x - centre) A, that the kernel sees, in double precision."""
        A = as_numbers(self.A)
        require(
            X.shape[1] == A.shape[0],
            f"Projected: A has {A.shape[0]} rows, one per column, and X has {X.shape[1]} columns.",
        )
        if scipy.sparse.issparse(X):
            return np.asarray(X.astype(np.float64) @ (A if A.ndim == 2 else np.diag(A)))
        xp = namespace(X)
        X = xp.astype(X, xp.float64, copy=False)
        X = X if centre is None else X - centre
        if A.ndim == 1:
            return X * on_device_of(A[None, :], X, dtype=xp.float64)
        return X @ on_device_of(A, X, dtype=xp.float64)

    # --- values: every part of the kernel on images of its own ------------------------------------

    def parts_projected(self) -> Kernel:
        """The same kernel in double precision, with the projection around each of its parts: what
        depends on differences alone is then computed about a centre, and the rest as it is."""
        kernel = self.kernel
        if isinstance(kernel, (Binary, FunctionOf, Normalized)):
            return kernel.with_operands(lambda part: Projected(part, self.A).parts_projected())
        if isinstance(kernel, OnColumns):  # columns of x A are x times columns of A
            A = as_numbers(self.A)
            A = A if A.ndim == 2 else np.diag(A)
            chosen = A[:, kernel.positions(A.shape[1])]
            return Projected(kernel.kernel, chosen).parts_projected()
        if isinstance(kernel, Projected) and not isinstance(kernel, _ProjectedPart):
            return Projected(kernel.parts_projected(), self.A).parts_projected()
        if isinstance(kernel, Rescaled):
            return _RescaledPart(
                Projected(kernel.kernel, self.A).parts_projected(), kernel.f, self.A
            )
        if isinstance(kernel, OnFeatures):
            inner, g = kernel.kernel, kernel.g
            if isinstance(inner, (Binary, FunctionOf, Normalized)):
                return inner.with_operands(
                    lambda part: Projected(OnFeatures(part, g), self.A).parts_projected()
                )
            return _FeaturesPart(kernel, self.A)
        return _ProjectedPart(kernel, self.A)

    def moved(self, by: np.ndarray) -> float | None:
        A = np.abs(as_numbers(self.A))
        return self.kernel.moved(by * A if A.ndim == 1 else by @ A)

    def against(self, S: Array) -> Tile:
        inner = self.parts_projected().against(S)
        return lambda rows, columns=ALL: _in_dtype_of(S, inner(rows, columns))

    def diagonal(self, X: Array) -> Array:
        return _in_dtype_of(X, super().diagonal(X))

    def features(self, X: Array) -> Array:
        return _in_dtype_of(X, super().features(X))

    def explicit_dim(self, n_features: int | None) -> int | None:
        if n_features is None:
            return None
        return self.kernel.explicit_dim(as_numbers(self.A).shape[-1])

    # --- rounding ---------------------------------------------------------------------------------

    has_magnitude = True

    def magnitude(self, X: Array) -> Array:
        return above_underflow(_in_dtype_of(X, self.parts_projected().magnitude(X)))

    def rounding(self, S: Array) -> float:
        return self.parts_projected().rounding(S)


# Units of rounding that nobody can state: bounds say nothing then. (Infinity times 0 is NaN.)
_UNKNOWN = 1e100


class _ProjectedPart(Projected):
    """A kernel without operands on projected points, in double precision."""

    in_expressions = False

    def parts_projected(self) -> Kernel:
        return self

    def _centre(self, S: Array) -> Array | None:
        """A shift to take off all points: x A would cancel where columns are far from zero."""
        if scipy.sparse.issparse(S) or self.moved(np.zeros(S.shape[1])) is None:
            return None
        xp = namespace(S)
        return xp.mean(xp.astype(S, xp.float64, copy=False), axis=0)

    def against(self, S: Array) -> Tile:
        centre = self._centre(S)
        inner = self.kernel.against(self.kernel.landmarks(self.image(S, centre)))
        return lambda rows, columns=ALL: inner(self.image(rows, centre), columns)

    def diagonal(self, X: Array) -> Array:
        return self.kernel.diagonal(self.image(X))

    def absolute_terms(self, X: Array, centre: Array | None = None) -> Array:
        """|x - centre| |A|: what the sums x A are made of."""
        X = X if centre is None else X - centre
        return _ProjectedPart(self.kernel, np.abs(as_numbers(self.A))).image(abs(X))

    def _seen(self, X: Array, centre: Array | None = None) -> tuple[Kernel, Array, Array]:
        """The kernel, the points that it sees, and the terms that their coordinates are made of."""
        return self.kernel, self.image(X, centre), self.absolute_terms(X, centre)

    @property
    def _is_measurable(self) -> bool:
        return not self.kernel.runs_user_code

    def magnitude(self, X: Array) -> Array:
        inner, Z, terms = self._seen(X)
        if inner.moved(np.zeros(Z.shape[1])) is not None:
            return inner.magnitude(Z)
        return inner.magnitude_of_sums(Z, terms)

    def magnitude_of_sums(self, X: Array, terms: Array) -> Array:
        return self.kernel.magnitude_of_sums(self.image(X), self.absolute_terms(terms))

    def rounding(self, S: Array) -> float:
        """A coordinate of the image is off by (1 + sqrt(columns)) units of its terms."""
        if not self._is_measurable:
            return _UNKNOWN
        inner, Z, terms = self._seen(S, self._centre(S))
        reach = 2 * _units(S) * as_numpy(namespace(terms).max(terms, axis=0))
        moved, c = inner.moved(reach), inner.rounding(Z)
        return (1 + _units(S)) * c if moved is None else c + moved


class _FeaturesPart(_ProjectedPart):
    """A kernel without operands on features of projected points: how a function of the user carries
    the rounding of its points on is measured."""

    def _seen(self, X: Array, centre: Array | None = None) -> tuple[Kernel, Array, Array]:
        points, terms = self.image(X), self.absolute_terms(X)
        return self.kernel.kernel, *_carried(self.kernel.image, points, terms)

    @property
    def _is_measurable(self) -> bool:
        inner = self.kernel.kernel
        return inner.kind == "vectors" and not inner.runs_user_code


class _RescaledPart(Rescaled):
    """f(x A) k(x, z) f(z A) for a kernel k that is projected already."""

    def __init__(self, kernel: Kernel, f: Callable[[Any], ArrayLike], A: ArrayLike) -> None:
        super().__init__(kernel, f)
        self.A = A

    def _factors(self, X: Array) -> Array:
        return super()._factors(_ProjectedPart(self.kernel, self.A).image(X))

    has_magnitude = True

    def magnitude(self, X: Array) -> Array:
        part = _ProjectedPart(self.kernel, self.A)
        _, terms = _carried(super()._factors, part.image(X), part.absolute_terms(X))
        return above_underflow(self.kernel.magnitude(X) * terms**2)

    def rounding(self, S: Array) -> float:
        return self.kernel.rounding(S) + 2 + 2 * _units(S)


# Units that points are moved by to see what a function makes of it: enough to be more than its own
# rounding. Directions that are tried, and how much more another one may do.
_STEP, _DIRECTIONS, _SPARE = 16, 4, 2.0


def _carried(g: Callable[[Array], Array], Z: Array, terms: Array) -> tuple[Array, Array]:
    """g(Z), and what stands for its terms where the coordinates of Z are sums of `terms`: |g|, or
    how far g moves when its points do, in units."""
    G, xp = g(Z), namespace(Z)
    unit = float(np.finfo(np.float64).eps) / 2
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (_DIRECTIONS, Z.shape[1]))
    largest = abs(G)
    for sign in signs:
        moves = _STEP * unit * on_device_of(sign[None, :], Z, dtype=Z.dtype) * terms
        try:
            change = _SPARE / (_STEP * unit) * abs(g(Z + moves) - G)
        except Exception:  # user code on made-up points: there it has no value
            return G, xp.inf * xp.ones_like(G)
        largest = xp.where(change > largest, change, largest)
    return G, largest


def _units(S):
    """How many units of its terms a coordinate of x A is off."""
    return 1 + S.shape[1] ** 0.5


def _in_dtype_of(X, values):
    return values if values.dtype == X.dtype else namespace(values).astype(values, X.dtype)
