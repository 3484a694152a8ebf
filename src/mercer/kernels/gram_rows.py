"""Points as kernels keep them: rows of data, or rows of a Gram matrix.

`kernel.layout` is one of the two; what differs between them is a method here.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..engine import (
    as_numpy,
    eps_of,
    is_array,
    is_matrix,
    namespace,
    on_device_of,
    positive_part,
    require,
    tiles,
)
from .points import as_objects, as_vectors, looks_numeric, naming, take
from .types import Array


class DataRows:
    """Points that a kernel compares: vectors, columns of several types, or objects."""

    # Whether new pairs of points can be compared, and chosen points kept.
    on_data = True

    def points(self, X: Any, kind: str, name: str) -> Array:
        """User input as points that can be sliced and evaluated."""
        if kind == "objects" or (kind == "any" and not looks_numeric(X)):
            return as_objects(X, name=name)
        return as_vectors(X, name=name, mixed=kind == "table")

    def subset(self, points: Array, rows: np.ndarray) -> Array:
        """Some of the training points, as training points of their own."""
        return take(points, rows)

    def landmarks(self, kernel: Any, points: Array, rows: np.ndarray) -> Any:
        """The training points at these rows in double precision, in the form `against` takes."""
        return kernel.landmarks(self.in_double(take(points, rows)))

    def in_double(self, points: Any) -> Any:
        """Points whose kernel values come in double precision."""
        if not is_array(points):
            return points if points.dtype == np.float64 else points.astype(np.float64)
        if getattr(points.dtype, "kind", "f") == "O":
            return points
        xp = namespace(points)
        return xp.astype(points, xp.float64, copy=False)

    def numbers_per_row(self, points: Any) -> int:
        """Numbers that products with the kernel matrix copy and scale: those of dense points."""
        return points.shape[1] if is_matrix(points) else 0

    def values(self, kernel: Any, points: Array, rows: Array, others: Array | None = None) -> Array:
        """k of the training points at some rows, with each other or with those at other rows."""
        own = self.in_double(take(points, rows))
        other = None if others is None else self.in_double(take(points, others))
        return tiles.evaluate(kernel, own, other)

    def stored_rows(self, kernel: Any, points: Array) -> Callable[[Array], Array] | None:
        """A function of training points: their rows of k that stand in memory already."""
        return None

    def given_matrices(self, points: Array) -> tuple[Array, ...]:
        """Kernel matrices that were given, and not computed."""
        return ()

    def support(
        self, kernel: Any, points: Array, used: np.ndarray, kept: np.ndarray, width: int
    ) -> Any:
        """The points S of an expansion over some of the rows; `kept` are the places of the points
        among all `width` training points."""
        return self.landmarks(kernel, points, used)

    def shown(self, points: Any) -> Any:
        """Points or landmarks as users see them."""
        return points

    def magnitude(self, kernel: Any, points: Array, diagonal: Array) -> Array:
        """k(x, x), or more where terms of it cancel."""
        return kernel.magnitude(points) if kernel.has_magnitude else diagonal

    def lengths(self, kernel: Any, points: Array, diagonal: Any = None) -> Any:
        """The lengths that rounding is relative to: sqrt k(x, x), or more where terms cancel."""
        own = kernel.diagonal(points) if diagonal is None else diagonal
        xp = namespace(own)
        with np.errstate(over="ignore"):  # an infinite bound is a bound
            terms = self.magnitude(kernel, points, own)
        return xp.sqrt(positive_part(xp.where(terms > own, terms, own)))

    def absolute_noise(self, noise: float) -> float:
        """Rounding of values that does not shrink with k(x, x); `noise`: that of the largest."""
        return 0.0

    def check_same_columns(self, X: Array, Y: Array) -> None:
        """Refuse points that cannot be compared."""
        require(
            X.shape[1] == Y.shape[1],
            f"X has {X.shape[1]} columns and Y has {Y.shape[1]}: a kernel compares points with the "
            "same columns.",
        )

    def check_training(self, points: Array) -> None:
        """Refuse what cannot be training points."""

    def own_values(self, kernel: Any, points: Array, diag: Any, like: Array) -> Array:
        """k(z, z) of new points; those that are given as `diag`, as an array like another."""
        if diag is None:
            return kernel.diagonal(points)
        with naming("diag"):
            own = on_device_of(diag, like)
        require(
            tuple(own.shape) == (points.shape[0],),
            f"diag must hold k(z, z) for each of the {points.shape[0]} rows, got shape "
            f"{tuple(own.shape)}.",
        )
        host = as_numpy(own)
        wrong = host[~((host >= 0) & (host < np.inf))]
        require(not len(wrong), f"diag must hold k(z, z), 0 or more and finite, got {wrong[:1]}.")
        return own

    def unexplained(self, own: Any, explained: Any, diag: Any = None) -> Any:
        """k(z, z) less what the training rows explain of it, at least 0; said where the `diag` that
        was given for k(z, z) is less."""
        rest = own - explained
        if diag is not None:
            known, part = as_numpy(own), as_numpy(explained)
            far = np.flatnonzero(part - known > 10 * eps_of(rest) ** 0.5 * part)
            if len(far):
                warnings.warn(
                    f"diag={known[far[0]]:.4g} of row {far[0]} is not k(z, z), or these values are "
                    f"not those of a kernel: the training rows explain {part[far[0]]:.4g} of it. "
                    f"What they leave of {len(far)} such rows is taken to be 0.",
                    UserWarning,
                    stacklevel=6,
                )
        return positive_part(rest)

    def largest_terms(self, kernel: Any, points: Array) -> Array:
        """Numbers that overflow where k(x, x) does, or before."""
        return kernel.diagonal(points)

    def require_data(self, message: str, error: type[Exception] = ValueError) -> None:
        """Refuse, in these words, where points are kernel values."""


class _GramRows(DataRows):
    """Rows of kernel values k(x, training points); training points are a square matrix."""

    on_data = False

    def points(self, X: Any, kind: str, name: str) -> Array:
        X = as_vectors(X, name=name)
        return X.toarray() if issparse(X) else X

    def subset(self, points: Array, rows: np.ndarray) -> Array:
        """Their rows and their columns."""
        return take(take(points, rows).T, rows).T

    def numbers_per_row(self, points: Any) -> int:
        """Zero: kernel values are used as they are."""
        return 0

    def landmarks(self, kernel: Any, points: Array, rows: np.ndarray) -> Any:
        return kernel.landmarks(points, rows)

    def in_double(self, points: Any) -> Any:
        """Perhaps too large to be copied: products convert a block of rows at a time."""
        return points

    def values(self, kernel: Any, points: Array, rows: Array, others: Array | None = None) -> Array:
        S = kernel.landmarks(points, rows if others is None else others)
        return kernel.against(S)(take(points, rows))

    def stored_rows(self, kernel: Any, points: Array) -> Callable[[Array], Array]:
        if len(list(kernel.parts())) == 1:  # the matrix itself: no copy
            return lambda rows: rows
        return kernel.against(kernel.landmarks(points))

    def given_matrices(self, points: Array) -> tuple[Array, ...]:
        return (points,)

    def support(
        self, kernel: Any, points: Array, used: np.ndarray, kept: np.ndarray, width: int
    ) -> Any:
        """New rows have a column for every training point."""
        return kernel.landmarks(on_device_of(np.zeros((1, width)), points), kept[used])

    def shown(self, points: Any) -> None:
        """Kernel values are not points."""

    def magnitude(self, kernel: Any, points: Array, diagonal: Array) -> Array:
        """Nothing but k(x, x) is known."""
        return diagonal

    def absolute_noise(self, noise: float) -> float:
        return noise

    def check_same_columns(self, X: Array, Y: Array) -> None:
        """Rows of new points have as many columns as there are training points."""

    def check_training(self, points: Array) -> None:
        require_square(points, "at fit")

    def own_values(self, kernel: Any, points: Array, diag: Any, like: Array) -> Array:
        require(diag is not None, "a precomputed kernel does not know k(z, z): pass it as diag=.")
        return super().own_values(kernel, points, diag, like)

    def largest_terms(self, kernel: Any, points: Array) -> Array:
        """The sum of a row, which overflows first."""
        return 4 * namespace(points).sum(abs(points), axis=1)

    def require_data(self, message: str, error: type[Exception] = ValueError) -> None:
        raise error(message)


def require_square(K: Array, where: str) -> None:
    require(
        K.shape[0] == K.shape[1],
        f"Precomputed() needs a square Gram matrix {where}, got shape {tuple(K.shape)}.",
    )


DATA, GRAM = DataRows(), _GramRows()
