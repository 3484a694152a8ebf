"""What a map knows of its own error: residuals, a bound for every pair, true distances."""

from sklearn.utils.validation import check_is_fitted

from ..engine import tiles
from ..engine.arrays import device, namespace, on_device_of
from ..kernels import points as pts
from ..rows.dask import lazily
from ..space import certificate
from ..space.spaces import Closed
from .base import PartOfMap, validated_points


class parameter_and_method:
    """A constructor parameter and a method of one name: KernelMap(residual=True).residual(X).

    The value lives in the instance's dict, where get_params looks; attribute access finds the
    method.
    """

    def __init__(self, method):
        self.method = method
        self.__doc__ = method.__doc__
        self.name = method.__name__

    def __get__(self, instance, owner=None):
        return self if instance is None else self.method.__get__(instance, owner)

    def __set__(self, instance, value):
        vars(instance)[self.name] = value


class Certified(PartOfMap):
    """The part of KernelMap that compares coordinates with the kernel they stand for."""

    @parameter_and_method
    @lazily
    def residual(self, X, diag=None):
        """rho^2(x) = k(x, x) - |phi(x)|^2 for every row: what the map does not see of it.

        Zero at training points of an untruncated map; a novelty score and the Gaussian-process
        variance at zero noise elsewhere. A precomputed kernel needs `diag`, the k(x, x).
        """
        check_is_fitted(self)
        points = self._new_points(X)
        rho2 = self._diagonal(points, diag) - self._space.squared_norms(points, n_jobs=self.n_jobs)
        xp = namespace(rho2)
        return xp.where(rho2 > 0, rho2, xp.zeros_like(rho2))

    def error_bound(self, X, Y=None, diag=None, diag_Y=None):
        """A bound of |k(x, y) - phi(x) . phi(y)| for every pair, rounding included.

        Holds for any points, training or not (space/certificate.py has the argument), where the
        kernel is valid. With ``kernel_.is_proven`` that follows from its construction; else it was
        tested on the training rows, and is on these: a residual below zero raises NotPSDError. For
        a centred map the bound is that of the centred kernel. A precomputed kernel needs `diag`
        (and `diag_Y`), the k(x, x).

        Between two new points the bound is rho(x) rho(y), which says little where the kernel is
        rough and the points are far from all landmarks. Where k(x, y) can be evaluated, the error
        itself is known: see :meth:`pair_residual`.
        """
        check_is_fitted(self)
        left, left_cast = self._radii(X, diag)
        right, right_cast = (left, left_cast) if Y is None else self._radii(Y, diag_Y)
        return certificate.bound(
            left,
            right,
            self._space.roundoff(),
            self._mean_radii,
            appended=self._appends_residual,
            casts=(left_cast, right_cast),
        )

    def pair_residual(self, X, Y=None):
        """k(x, y) - phi(x) . phi(y) for every pair, evaluated: what the coordinates miss of it.

        The exact error where :meth:`error_bound` can only be cautious, at the price of the kernel
        matrix of X and Y. Of the uncentred kernel, without an appended residual.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import KernelMap, Matern
        >>> X = np.random.default_rng(0).normal(size=(40, 3))
        >>> kernel_map = KernelMap(Matern(0.5), max_rank=10).fit(X[:20])
        >>> missed = kernel_map.pair_residual(X[20:])
        >>> bool(np.all(np.abs(missed) <= kernel_map.error_bound(X[20:])))
        True
        """
        check_is_fitted(self)
        if self.kernel_.kind == "gram":
            raise TypeError("a precomputed kernel cannot be evaluated between two new points.")
        X = self._new_points(X)
        other = None if Y is None else self._new_points(Y)
        K = tiles.evaluate(self.kernel_, X, other, n_jobs=self.n_jobs)
        P = self._space.coordinates(X, n_jobs=self.n_jobs)
        Q = P if other is None else self._space.coordinates(other, n_jobs=self.n_jobs)
        return K - P @ Q.T

    def _radii(self, X, diag):
        """The certificate's radii of some rows, and what casting their coordinates costs."""
        given = validated_points(self, X, self.kernel_, reset=False)
        points = self._as_fitted(given)
        radii = self._space.radii(points, self._diagonal(points, diag), n_jobs=self.n_jobs)
        return radii, certificate.cast_unit(given, self._space.dtype)

    def _radii_of_mean(self, F, residuals, points):
        """The certificate's radii of the mean of the training points."""
        if self.correction_:
            return None
        diagonal = self.kernel_.diagonal(points)
        if isinstance(self._space, Closed):
            return self._space.radii(points, diagonal).mean()
        return self._space.radii_of(F, diagonal, on_device_of(residuals, F)).mean()

    def distances(self, X, Y=None, *, residual=True, diag=None):
        """Distances in feature space, sqrt(k(x,x) + k(y,y) - 2 k(x,y)): [EXACT] (26).

        With ``residual=False``: distances between the coordinates alone. A precomputed kernel does
        not know k(x, y) of two new points; there the coordinates stand in for it.
        """
        check_is_fitted(self)
        X = self._new_points(X)
        other = X if Y is None else self._new_points(Y)
        if self.kernel_.kind == "gram" or not residual:
            P = self._space.coordinates(X, n_jobs=self.n_jobs)
            Q = P if Y is None else self._space.coordinates(other, n_jobs=self.n_jobs)
            xp = namespace(P)
            inner, left, right = P @ Q.T, xp.sum(P * P, axis=1), xp.sum(Q * Q, axis=1)
            if residual:
                if Y is not None:
                    raise ValueError(
                        "distances of a precomputed kernel take one set of points (with diag=); "
                        "for two sets pass residual=False."
                    )
                left = right = self._diagonal(X, diag)
        else:
            xp = namespace(self.kernel_.diagonal(X))
            inner = tiles.evaluate(
                self.kernel_, X, None if Y is None else other, n_jobs=self.n_jobs
            )
            left, right = self.kernel_.diagonal(X), self.kernel_.diagonal(other)
        squared = left[:, None] + right[None, :] - 2 * inner
        squared = xp.where(squared > 0, squared, xp.zeros_like(squared))
        if Y is None:
            same = xp.eye(X.shape[0], dtype=squared.dtype, device=device(squared))
            squared = squared - same * squared
        return xp.sqrt(squared)

    def _diagonal(self, points, diag):
        """k(x, x), given or evaluated."""
        if diag is not None:
            with pts.naming("diag"):
                diagonal = on_device_of(diag, self._space.example)
            if tuple(diagonal.shape) != (points.shape[0],):
                raise ValueError(
                    f"diag must hold k(x, x) for each of the {points.shape[0]} rows, got shape "
                    f"{tuple(diagonal.shape)}."
                )
            return diagonal
        if self.kernel_.kind == "gram":
            raise ValueError(
                "a precomputed kernel does not know k(x, x) of the given rows: pass it as diag=."
            )
        return self.kernel_.diagonal(points)
