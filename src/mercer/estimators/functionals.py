"""Functions on a map's space: linear in the coordinates, sums of kernels on the landmarks."""

from sklearn.utils.validation import check_is_fitted

from ..engine import tiles
from ..engine.arrays import namespace, on_device_of
from ..expansion import RKHSFunction
from ..kernels import points as pts
from ..rows.dask import lazily
from ..space.spaces import Closed
from .base import PartOfMap


class Functionals(PartOfMap):
    """The part of KernelMap that moves coefficients both ways: [NPT] Lemma 6 and Corollary 7."""

    def function(self, coef, intercept=0.0):
        """The function z -> coef . phi(z) + intercept as a sum of kernels on the landmarks."""
        check_is_fitted(self)
        weights, intercept = self.landmark_weights(coef, intercept)
        if self.kernel_.kind == "gram":
            raise ValueError(
                "a precomputed kernel cannot be evaluated at new points; use "
                "landmark_weights(coef) with landmark_indices_."
            )
        return RKHSFunction(self.kernel_, self._space.S, weights, intercept)

    def landmark_weights(self, coef, intercept=0.0):
        """(w, b) with coef . phi(z) + intercept = sum_j w_j k(s_j, z) + b; coef may be a matrix."""
        check_is_fitted(self)
        coef = self._coefficients(coef)
        if coef.shape[0] != self._n_features_out or self._appends_residual:
            raise ValueError(
                f"coef must hold one number for each of the {self._n_features_out} coordinates "
                f"(and the residual coordinate is no linear function), got shape "
                f"{tuple(coef.shape)}."
            )
        if self.mean_ is not None:
            intercept = intercept - self.mean_ @ coef
        if self._rotation is not None:
            coef = self._rotation @ coef
        return self._space.weights(coef), intercept

    def _coefficients(self, coef):
        """coef as an array where the map is: a vector, or a matrix of columns."""
        with pts.naming("coef"):
            coef = on_device_of(coef, self._space.example)
        if coef.ndim not in (1, 2):
            raise ValueError(
                f"coef must be a vector or a matrix of {self._n_features_out} rows, got "
                f"{coef.ndim} dimensions."
            )
        return coef

    @staticmethod
    def _intercepts(intercept, coef):
        with pts.naming("intercept"):
            intercept = on_device_of(intercept, coef)
        xp = namespace(intercept)
        one_each = tuple(intercept.shape) in ((), (coef.shape[1],))
        if not one_each or not bool(xp.all(xp.isfinite(intercept))):
            raise ValueError(
                f"intercept must be a finite number, or one a column of coef ({coef.shape[1]}), "
                f"got {pts.short(intercept)}."
            )
        return intercept

    @lazily
    def project(self, X, coef, intercept=0.0):
        """transform(X) @ coef + intercept for a matrix coef, at m kernel values a row.

        The coefficients move to the landmarks once, and kernel tiles are multiplied as they are
        made. With many columns the coordinates themselves are cheaper, and more accurate.
        """
        check_is_fitted(self)
        coef = self._coefficients(coef)
        if coef.ndim != 2 or coef.shape[0] != self._n_features_out:
            raise ValueError(
                f"coef must be a matrix with one row for each of the {self._n_features_out} "
                f"coordinates, got shape {tuple(coef.shape)}."
            )
        intercept = self._intercepts(intercept, coef)
        coordinates_needed = isinstance(self._space, Closed) or self._appends_residual
        if coordinates_needed or 2 * coef.shape[1] > self.rank_:
            return self.transform(X) @ coef + intercept
        weights, intercept = self.landmark_weights(coef, intercept)
        points = self._new_points(X)
        Y = tiles.multiply(
            self.kernel_, points, self._space.S, weights, n_jobs=self.n_jobs, verbose=self.verbose
        )
        return Y + intercept

    def coordinates(self, function):
        """b with function(z) = b . phi(z) for every z in the span: b = F'a, [NPT] Lemma 6."""
        check_is_fitted(self)
        if not isinstance(function, RKHSFunction) or function.kernel != self.kernel_:
            raise ValueError(f"expected an RKHSFunction of {self.kernel_!r}, got {function!r}.")
        Phi = self._rotated(self._space.coordinates(function.points, n_jobs=self.n_jobs))
        return function.coef @ Phi
