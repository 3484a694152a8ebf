"""OnColumns: a kernel on a group of columns, rules 9 and 10 of [KERNELS]."""

from typing import Any, Self

import numpy as np
import scipy.sparse

from ..engine import as_host, namespace, on_device_of, require
from .composite import OnImages
from .kernel import Kernel
from .spectral import ColumnsForm, FourierForm
from .types import Array, Columns


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
            raise TypeError(
                f"OnColumns takes positions, a mask, a slice or names, got {columns!r}."
            )
        columns = [columns] if _is_one(columns) else list(columns)
        require(len(columns) > 0, "OnColumns(kernel, columns) needs at least one column, got none.")
        if all(isinstance(c, str) for c in columns):
            if names is None:
                raise ValueError(
                    f"OnColumns names the columns {columns}, and the data are a plain array "
                    "without names: pass a DataFrame, or give positions."
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
        require(not bad, f"OnColumns takes positions, a mask, a slice or names, got {bad[:1]!r}.")
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
        if n_features is None:
            raise ValueError("OnColumns: n_features must be a number of columns, got None.")
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
