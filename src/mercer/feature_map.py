"""FeatureMap: a space, a rotation and a mean, which is all that a fitted map is.

Everything here takes points that a kernel has checked; estimators check what users pass.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from .engine import (
    TravelsAsNumPy,
    device,
    namespace,
    on_device_of,
    positive_part,
    row_norms,
    short,
    tiles,
)
from .expansion import Expansion
from .kernels import hashing
from .kernels import points as pts
from .space import Fourier, Radii, Space, certificate, refute_by_a_look


@dataclass(frozen=True, eq=False)
class FeatureMap(TravelsAsNumPy):
    """phi(x) V - m for coordinates phi of a space, a rotation V and a mean m."""

    space: Space  # Landmarks, OwnFeatures, SparseFeatures, Corrected or Fourier
    rotation: Any = None  # of shape (rank, width)
    mean: Any = None  # of shape (width,): of the training coordinates, after the rotation
    mean_radii: Radii | None = None  # what the certificate needs to know of the mean
    append_residual: bool = False  # whether rho(x) follows as one more coordinate

    @property
    def kernel(self) -> Any:
        return self.space.kernel

    @property
    def rank(self) -> int:
        return self.space.rank

    @property
    def width(self) -> int:
        """The number of coordinates that come out."""
        rotated = self.rank if self.rotation is None else self.rotation.shape[1]
        return rotated + self.append_residual

    # --- coordinates ------------------------------------------------------------------------------

    def __call__(self, X) -> Any:
        """Coordinates of every row, in the precision of the rows."""
        points = self.fitted(X)
        own = self.kernel.diagonal(points) if self.append_residual else None
        return self._completed(self.space.coordinates(points), own, X)

    def panels(self, X: Any) -> Iterator[tuple[Any, slice]]:
        """The same, panel after panel, and which rows these are."""
        points = self.fitted(X)
        own = self.kernel.diagonal(points) if self.append_residual else None
        for Phi, where in self.space.panels(points):
            yield self._completed(Phi, None if own is None else own[where], X), where

    def _completed(self, Phi, own, X):
        """Finished coordinates, whose residuals are known from `own` k(x, x)."""
        if own is not None:
            sparse = scipy.sparse.issparse(Phi)
            own = own - (hashing.squared_lengths(Phi) if sparse else row_norms(Phi, namespace(Phi)))
        # A kernel's own features may be its input itself.
        return self.finished(Phi, own, X, shared=self.space.may_share)

    def finished(self, Phi: Any, rho2: Any, points: Any, shared: bool = False) -> Any:
        """Coordinates of the space, rotated, centred, with the residual, in the points' dtype.

        `shared`: Phi belongs to somebody else, and the caller may write into what it gets.
        """
        if scipy.sparse.issparse(Phi):
            if self.mean is None and self.rotation is None:
                if not self.append_residual:
                    return Phi
                rho = scipy.sparse.csr_array(np.sqrt(np.maximum(rho2, 0.0))[:, None])
                return scipy.sparse.hstack([Phi, rho], format="csr")
            Phi = Phi.toarray()  # a mean or a rotation fills the zeros
        xp = namespace(Phi)
        if self.rotation is not None:
            Phi = Phi @ self.rotation
        if self.mean is not None:
            Phi = Phi - self.mean
        elif shared and self.rotation is None:
            Phi = Phi + 0
        if self.append_residual:
            rho = xp.sqrt(positive_part(rho2))
            Phi = xp.concat([Phi, rho[:, None]], axis=1)
        dtype = getattr(points, "dtype", Phi.dtype)
        if dtype in (xp.float32, xp.float64) and dtype != Phi.dtype:
            Phi = xp.astype(Phi, dtype)
        return Phi

    def fitted(self, X: Any) -> Any:
        """Rows in the precision of the fit, or their own higher one: a lower one means nothing."""
        return pts.as_fitted_points(X, self.space.S, self.space.dtype, keep_wider=True)

    # --- what the map knows of its own error ------------------------------------------------------

    def residual(self, X: Any, diag: Any = None) -> Any:
        """rho^2(x) = k(x, x) - |phi(x)|^2 for every row."""
        points = self.fitted(X)
        seen = self.space.squared_norms(points)
        return self.kernel.layout.unexplained(self.diagonal(points, diag), seen, diag)

    def bound(self, X: Any, Y: Any = None, *, diag: Any = None, diag_Y: Any = None) -> Any:
        """A bound of |k(x, y) - phi(x) . phi(y)| for every pair (space/certificate.py)."""
        radii, casts = [], []
        for rows, own in [(X, diag)] if Y is None else [(X, diag), (Y, diag_Y)]:
            points = self.fitted(rows)
            radii.append(self.space.radii(points, self.diagonal(points, own)))
            casts.append(certificate.cast_unit(rows, self.space.example))
            if own is None:  # else they may be values of a matrix: nothing is known among them
                refute_by_a_look(self.kernel, points)
        return certificate.bound(
            radii[0],
            radii[-1],
            self.space.roundoff(),
            self.mean_radii,
            appended=self.append_residual,
            casts=(casts[0], casts[-1]),
        )

    def pair_residual(self, X: Any, Y: Any = None) -> Any:
        """k(x, y) - phi(x) . phi(y) for every pair, of the space, evaluated."""
        X, other = self.fitted(X), None if Y is None else self.fitted(Y)
        K = tiles.evaluate(self.kernel, X, other)
        P = self.space.coordinates(X)
        Q = P if other is None else self.space.coordinates(other)
        return K - P @ Q.T

    def diagonal(self, points: Any, diag: Any = None) -> Any:
        """k(x, x), given or evaluated."""
        return self.kernel.layout.own_values(self.kernel, points, diag, self.space.example)

    def distances(self, X: Any, Y: Any = None, *, residual: bool = True, diag: Any = None) -> Any:
        """Distances in feature space: [EXACT] (26); of the coordinates alone without `residual`."""
        X = self.fitted(X)
        other = X if Y is None else self.fitted(Y)
        if not (residual and self.kernel.layout.on_data):
            P = self.space.coordinates(X)
            Q = P if Y is None else self.space.coordinates(other)
            xp = namespace(P)
            inner, left, right = P @ Q.T, row_norms(P, xp), row_norms(Q, xp)
            if residual:
                if Y is not None:
                    raise ValueError(
                        "distances of a precomputed kernel take one set of points (with diag=); "
                        "for two sets pass residual=False."
                    )
                own = self.diagonal(X, diag)
                left = right = left + self.kernel.layout.unexplained(own, left, diag)
        else:
            left, right = self.kernel.diagonal(X), self.kernel.diagonal(other)
            xp = namespace(left)
            inner = tiles.evaluate(self.kernel, X, None if Y is None else other)
        squared = left[:, None] + right[None, :] - 2 * inner
        squared = positive_part(squared)
        if Y is None:
            same = xp.eye(X.shape[0], dtype=squared.dtype, device=device(squared))
            squared = squared - same * squared
        return xp.sqrt(squared)

    # --- linear functions of the coordinates ------------------------------------------------------

    def expand(self, coef: Any, b: Any = 0.0) -> Expansion:
        """The functions z -> phi(z) coef + b as sums over landmarks: [NPT] Lemma 6, backwards."""
        return self.coefficients(coef, b).expanded()

    def in_space(self, coef: Any, b: Any) -> tuple[Any, Any]:
        """The same functions on the coordinates of the space, before rotation and mean."""
        if self.mean is not None:
            b = b - self.mean @ coef
        return coef if self.rotation is None else self.rotation @ coef, b

    def linear(self, coef: Any, b: Any = 0.0) -> "LinearOnMap":
        """The functions z -> phi(z) coef + b, evaluated by the cheaper of the two ways."""
        linear = self.coefficients(coef, b)
        # With many columns the coordinates themselves are cheaper, and more accurate.
        few = 2 * linear.coef.shape[1] <= self.rank
        if few and self.space.S is not None and not self.append_residual:
            return replace(linear, expansion=linear.expanded())
        return linear

    def coefficients(self, coef: Any, b: Any = 0.0) -> "LinearOnMap":
        """coef and b as checked arrays where the map is."""
        with pts.naming("coef"):
            coef = on_device_of(coef, self.space.example)
        if coef.ndim != 2 or coef.shape[0] != self.width:
            raise ValueError(
                f"coef must be a matrix with one row for each of the {self.width} coordinates, got "
                f"shape {tuple(coef.shape)}."
            )
        with pts.naming("intercept"):
            intercept = on_device_of(b, coef)
        xp = namespace(intercept)
        one_each = tuple(intercept.shape) in ((), (coef.shape[1],))
        if not one_each or not bool(xp.all(xp.isfinite(intercept))):
            raise ValueError(
                f"intercept must be a finite number, or one per column of coef ({coef.shape[1]}), "
                f"got {short(b)}."
            )
        zeros = xp.zeros((coef.shape[1],), dtype=coef.dtype, device=device(coef))
        return LinearOnMap(self, coef, intercept + zeros)

    def combination(self, Z: Any) -> Any:
        """Weights w over the landmarks, one row per row of Z: sum_j w_j image(s_j) has these
        coordinates."""
        raw = Z if self.mean is None else Z + self.mean[None, :]
        raw = raw if self.rotation is None else raw @ self.rotation.T
        return self.space.weights(raw.T).T

    def landmark_coordinates(self) -> Any:
        """Coordinates of the landmarks themselves, without the residual."""
        known = getattr(self.space, "C", None)
        Phi = self.space.coordinates(self.space.S) if known is None else known
        return replace(self, append_residual=False).finished(Phi, None, Phi)


@dataclass(frozen=True, eq=False)
class LinearOnMap(TravelsAsNumPy):
    """The functions z -> phi(z) coef + b on the coordinates of a map.

    Where few columns make it cheaper, `expansion` holds the same functions as sums over landmarks.
    """

    map: FeatureMap
    coef: Any
    b: Any
    expansion: Expansion | None = None

    @property
    def kernel(self) -> Any:
        return self.map.kernel

    def expanded(self) -> Expansion:
        """The same functions as sums over landmarks; refused where the map has no such sums."""
        if self.map.append_residual:
            raise ValueError(
                "the residual coordinate is not a linear function of kernel values; use "
                "append_residual=False."
            )
        coef, b = self.map.in_space(self.coef, self.b)
        space = self.map.space
        return Expansion(self.kernel, space.S, space.weights(coef), b)

    def with_coefficients(self, coef: Any, b: Any) -> "LinearOnMap":
        """Other functions on the same coordinates."""
        return self.map.linear(coef, b)

    def __call__(self, X) -> Any:
        if self.expansion is not None:
            return self.expansion(X)
        points, space = self.map.fitted(X), self.map.space
        if isinstance(space, Fourier) and not self.map.append_residual:
            coef, b = self.map.in_space(self.coef, self.b)
            return space.evaluate(points, coef) + b[None, :]
        Phi = self.map(points)
        return Phi @ self.coef + self.b[None, :]
