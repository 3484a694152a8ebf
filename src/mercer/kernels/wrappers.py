"""Kernels on changed points: rules 2, 7, 9 and 10 of [KERNELS]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from ..engine import Domain, as_host, is_array, is_symbolic, namespace, on_device_of, require
from .capabilities import above_underflow
from .composite import OnImages, Unary
from .hashing import scaled_rows
from .kernel import ALL, Kernel
from .spectral import ColumnsForm, FourierForm
from .types import Array, Columns, Tile


class OnFeatures(OnImages):
    """Apply a kernel after a function g of the rows: k(g(x), g(z)), rule 7 of [KERNELS].

    Parameters
    ----------
    kernel : Kernel or str
        What compares two points, or its name as in scikit-learn ("rbf", "poly", "linear", ...).
    g : callable
        Accepts a batch of points and returns the points that the kernel sees, one for each.

    Notes
    -----
    .. math::

        k(g(x), g(z))

    - *Valid*: where the inner kernel is, for any function g.
    - *Fails*: where g throws away what matters; the kernel cannot bring it back.
    - *Elsewhere*: tinygp's `Transform`, GPyTorch's deep kernel learning.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import OnFeatures, Polynomial
    >>> OnFeatures(Polynomial(degree=2), np.log)([[1.0]], [[np.e]])
    array([[1.]])
    """

    in_expressions = False
    non_negative_only = False  # of the points: what the kernel sees is up to g
    domains = {"g": Domain.FUNCTION}
    kind = "objects"
    runs_user_code = True

    def __init__(self, kernel: Kernel | str, g: Callable[[Any], Any]) -> None:
        self.kernel = kernel
        self.g = g

    def image(self, X: Array) -> Array:
        """g(X), checked: one image for each point."""
        Z = self.kernel.points(self.g(as_given(X)), name="g(X)")
        require(
            Z.shape[0] == X.shape[0],
            f"OnFeatures: g returned {Z.shape[0]} points for {X.shape[0]}; it must keep the rows.",
        )
        return Z

    def explicit_dim(self, n_features: int | None) -> int | None:
        """As many columns as g makes of n_features, found by asking it."""
        if n_features is None:
            return None
        try:
            width = int(self.g(np.zeros((1, n_features))).shape[1])
        except Exception:  # user code on made-up input: any failure means "unknown"
            return None
        return self.kernel.explicit_dim(width)


class _Weighted(Unary):
    """f(x) k(x, z) f(z): a subclass gives f as `factors`."""

    _needs_points = True

    def _factors(self, X: Array) -> Array:
        """One number for each point."""
        raise NotImplementedError(f"{type(self).__name__} must define factors(X).")

    def against(self, S: Array) -> Tile:
        inner, right = self.kernel.against(S), self._factors(S)[None, :]

        def tile(rows: Any, columns: slice = ALL):
            t = inner(rows, columns)
            t *= self._factors(rows)[:, None] * right[:, columns]  # as one: symmetric to the bit
            return t

        return lambda rows, columns=ALL: self.finite(tile, rows, columns)

    def features(self, X: Array) -> Array:
        F, factors = self.kernel.features(X), self._factors(X)
        return scaled_rows(F, factors) if scipy.sparse.issparse(F) else F * factors[:, None]


class Rescaled(_Weighted):
    r"""Weight points by a function: f(x) k(x, z) f(z), rule 2 of [KERNELS].

    Parameters
    ----------
    kernel : Kernel or str
        What compares two points, or its name as in scikit-learn ("rbf", "poly", "linear", ...).
    f : callable
        Accepts a batch of points and returns one number for each.

    Notes
    -----
    .. math::

        f(x)\, k(x, z)\, f(z)

    - *Valid*: where the inner kernel is, for any real function f: its map is multiplied by f.
    - *Fails*: where f is 0: such points have length 0.
    - *Elsewhere*: written by hand.

    Examples
    --------
    >>> from mercer import Linear, Rescaled
    >>> Rescaled(Linear(), lambda X: X[:, 0])([[2.0]], [[3.0]])
    array([[36.]])
    """

    in_expressions = False
    runs_user_code = True
    domains = {"f": Domain.FUNCTION}

    def __init__(self, kernel: Kernel | str, f: Callable[[Any], ArrayLike]) -> None:
        self.kernel = kernel
        self.f = f

    __repr__ = OnImages.__repr__

    def _factors(self, X: Array) -> Array:
        """f(X), checked: one finite number for each point."""
        values: Any = self.f(as_given(X))
        values = values if is_array(values) else np.asarray(values)
        kind = getattr(values.dtype, "kind", "f")
        require(kind != "c", "Rescaled: f returned complex numbers; kernels are real.")
        require(kind in "fiub", f"Rescaled: f must return numbers, got dtype {values.dtype}.")
        if tuple(values.shape) == (X.shape[0], 1):
            values = values[:, 0]
        require(
            tuple(values.shape) == (X.shape[0],),
            f"Rescaled: f must return one number for each of the {X.shape[0]} points, got shape "
            f"{tuple(values.shape)}.",
        )
        if scipy.sparse.issparse(X) or getattr(X.dtype, "kind", "f") == "O":
            # In the precision of X: error bounds ask k(x, x) for the rounding unit.
            values = values.astype(X.dtype if X.dtype.kind == "f" else float)
        else:
            values = on_device_of(values, X)
        xp = namespace(values)
        require(bool(xp.all(xp.isfinite(values))), "Rescaled: f returned NaN or infinity.")
        return values

    def diagonal(self, X: Array) -> Array:
        return self.finite(lambda: self.kernel.diagonal(X) * self._factors(X) ** 2)

    def magnitude(self, X: Array) -> Array:
        return above_underflow(self.kernel.magnitude(X) * self._factors(X) ** 2)

    def rounding(self, S: Array) -> float:
        return self.kernel.rounding(S) + 2


class Normalized(_Weighted):
    r"""Ignore lengths in feature space: k(x, z) / sqrt(k(x, x) k(z, z)), the cosine there.

    Parameters
    ----------
    kernel : Kernel or str
        What compares two points, or its name as in scikit-learn ("rbf", "poly", "linear", ...).

    Notes
    -----
    .. math::

        \frac{k(x, z)}{\sqrt{k(x, x)\, k(z, z)}}

    - *Valid*: where the inner kernel is: rule 2 of [KERNELS] with f(x) = k(x, x)^(-1/2).
    - *Fails*: where lengths in feature space carry information.
    - *Elsewhere*: GraKeL's `normalize=True`; for a linear kernel, scikit-learn's `Normalizer`.

    Examples
    --------
    >>> from mercer import Normalized, Polynomial
    >>> Normalized(Polynomial(degree=2)).diag([[1.0], [7.0]])
    array([1., 1.])
    """

    def _factors(self, X: Array) -> Array:
        return 1 / self._lengths(X)

    def _lengths(self, X: Array) -> Array:
        """sqrt k(x, x); 1 for a point at the origin of feature space, which stays there."""
        d = self.kernel.finite(self.kernel.diagonal, X)
        xp = namespace(d)
        if is_symbolic(d):
            return xp.sqrt(xp.where(d == 0, xp.ones_like(d), d))
        smallest = float(xp.min(d))
        if not smallest >= 0:
            raise ValueError(
                f"Normalized needs k(x, x) >= 0, and {self.kernel!r} reaches {smallest:.4g}: it is "
                "not a kernel on this data."
            )
        tiny = float(xp.finfo(d.dtype).smallest_normal)
        if bool(xp.any((d > 0) & (d < tiny))):
            raise ValueError(
                f"Normalized({self.kernel!r}): k(x, x) underflows {d.dtype} on this data, so that "
                "its digits are lost. Scale the data or the parameters, or use float64."
            )
        if bool(xp.any(d == 0)):
            self._require_origin(X, d)
        return xp.sqrt(xp.where(d == 0, xp.ones_like(d), d))

    def _require_origin(self, X, d):
        """Refuse points with k(x, x) = 0 that are not at the origin once they are made larger.

        A function of the user may be 0 at one point and not at another: it gets the same points, in
        double precision.
        """
        if scipy.sparse.issparse(X):
            stored = np.diff(X.indptr) > 0
            X, d = X[(d == 0) & stored].toarray(), d[(d == 0) & stored]
        if not is_array(X) or X.ndim != 2 or not len(X) or getattr(X.dtype, "kind", "f") == "O":
            return
        xp = namespace(X)
        rows = X[d == 0, :]
        sizes = xp.max(xp.abs(rows), axis=1)[:, None]
        if self.runs_user_code:
            larger = self.kernel.diagonal(xp.astype(rows, xp.float64))
        else:
            larger = self.kernel.diagonal(rows / xp.where(sizes == 0, xp.ones_like(sizes), sizes))
        require(
            not bool(xp.any((sizes[:, 0] < 1) & (larger > 0))),
            f"Normalized({self.kernel!r}): k(x, x) underflows to 0 in {d.dtype} on this data. "
            "Scale the data or the parameters, or use float64.",
        )

    def diagonal(self, X: Array) -> Array:
        d = self.kernel.diagonal(X)
        xp, self_similar = namespace(d), self._lengths(X) ** 2
        return xp.where(d > 0, xp.ones_like(d), d / self_similar)

    def magnitude(self, X: Array) -> Array:
        """An error of k(x, x) beside itself is one of every k(x, z)."""
        return (self.kernel.magnitude(X) / self._lengths(X) ** 2) ** 2

    def rounding(self, S: Array) -> float:
        return 2 * self.kernel.rounding(S)


def as_given(X: Any):
    """Points as a user's function expects them: a list of objects, or rows of an array."""
    return list(X) if is_array(X) and X.ndim == 1 else X


class OnColumns(OnImages):
    """Apply a kernel to some of the columns only (rules 9 and 10 of [KERNELS]).

    Parameters
    ----------
    kernel : Kernel or str
        What compares two points, or its name as in scikit-learn ("rbf", "poly", "linear", ...).
    columns : int, list of int, slice, boolean mask, str or list of str
        Positions, or names when the data are a frame. One column given without a list reaches a
        kernel on objects as its bare values, as in scikit-learn's ColumnTransformer.

    Notes
    -----
    .. math::

        k(x_c, z_c)

    - *Valid*: where the inner kernel is: it sees fewer columns.
    - *Fails*: alone, since it cannot see the other columns: add or multiply the rest.
    - *Elsewhere*: GPyTorch's `active_dims`, tinygp's `Subspace`.

    Examples
    --------
    >>> import pandas as pd
    >>> from mercer import RBF, Linear, OnColumns
    >>> frame = pd.DataFrame({"age": [30.0, 50.0], "height": [1.6, 1.8], "pay": [2.0, 3.0]})
    >>> k = OnColumns(RBF(0.01), ["age", "height"]) * OnColumns(Linear(), "pay")
    >>> k(frame).round(3)
    array([[4.  , 0.11],
           [0.11, 9.  ]])
    """

    kind = "table"

    def __init__(self, kernel: Kernel | str, columns: Columns) -> None:
        self.kernel = kernel
        self.columns = columns

    def bind_points(self, X: Array, names: list[str] | None, weights: Array | None = None) -> Self:
        self.check_parameters()
        positions = self.positions(X.shape[1], names)
        inner_names = None if names is None else [names[i] for i in positions]
        placed = self.with_parameters(columns=positions[0] if _is_one(self.columns) else positions)
        placed.kernel = self.kernel.bind_points(placed.image(X), inner_names, weights)
        return placed

    def positions(self, n_columns: int, names: list[str] | None = None) -> list[int]:
        """The selected columns as a list of integers."""
        columns: Any = as_host(self.columns)
        takes = "OnColumns takes positions, a mask, a slice or names, got"
        if isinstance(columns, slice):
            if any(isinstance(end, str) for end in (columns.start, columns.stop)):
                raise TypeError(
                    f"OnColumns takes slices of positions, got {columns!r}; list the names."
                )
            positions = list(range(n_columns))[columns]
            require(
                len(positions) > 0,
                f"OnColumns: {columns!r} selects no column of data with {n_columns} columns.",
            )
            return positions
        if not _is_one(columns) and not np.iterable(columns):
            raise TypeError(f"{takes} {columns!r}.")
        columns = [columns] if _is_one(columns) else list(columns)
        require(len(columns) > 0, "OnColumns(kernel, columns) needs at least one column, got none.")
        if all(isinstance(c, str) for c in columns):
            if names is None:
                raise ValueError(
                    f"OnColumns names the columns {columns}, and the data are a plain array "
                    "without names, as an encoded table is: pass a DataFrame where nothing encodes "
                    "it, or give positions."
                )
            missing = [c for c in columns if c not in names]
            require(not missing, f"OnColumns: no column named {missing[:1]} in {names}.")
            return [names.index(c) for c in columns]
        if all(isinstance(c, (bool, np.bool_)) for c in columns):
            require(
                len(columns) == n_columns,
                f"OnColumns got a mask of {len(columns)} values for data with {n_columns} columns.",
            )
            require(any(columns), "OnColumns got a mask that selects no column.")
            return [i for i, chosen in enumerate(columns) if chosen]
        bad = [c for c in columns if not isinstance(c, (int, np.integer))]
        require(not bad, f"{takes} {bad[:1]!r}.")
        outside = [int(c) for c in columns if not -n_columns <= c < n_columns]
        require(
            not outside,
            f"OnColumns asks for column {outside[:1]} of data with {n_columns} columns.",
        )
        return [int(c) % n_columns for c in columns]

    def image(self, X: Array) -> Array:
        positions = self.positions(X.shape[1])
        if scipy.sparse.issparse(X):
            return X[:, positions]
        xp = namespace(X)
        if xp is np:
            if _is_one(self.columns) and self.kernel.kind == "objects":
                return self.kernel.points(X[:, positions[0]])
            Z = X[:, positions]
            return self.kernel.points(Z) if Z.dtype.kind == "O" else Z
        return xp.take(X, on_device_of(np.array(positions), X, dtype=xp.int64), axis=1)

    def explicit_dim(self, n_features: int | None) -> int | None:
        if n_features is None:  # points are not vectors, such as sets of them
            return None
        return self.kernel.explicit_dim(len(self.positions(n_features)))

    def fourier_form(self) -> FourierForm | None:
        """Fourier series of a kernel that is bound to data: its columns are positions."""
        form, columns = self.kernel.fourier_form(), np.atleast_1d(np.asarray(self.columns))
        if form is None or columns.dtype.kind not in "iu":
            return None
        return ColumnsForm(form, columns)


def _is_one(columns):
    """Whether a column was given without a list around it."""
    return isinstance(columns, (str, int, np.integer)) and not isinstance(columns, bool)
