"""What ridge regressions share: two forms of one solution, predictions, their uncertainty."""

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import check_is_fitted

from ..engine import tiles
from ..engine.arrays import (
    as_numpy,
    cholesky,
    is_array,
    namespace,
    on_device_of,
    put,
    row_norms,
    solve_triangular,
)
from ..engine.memory import budget
from ..expansion import RKHSFunction
from ..kernels import as_kernel
from ..kernels import points as pts
from ..rows.moments import Moments
from ..space import Factor, factorize
from .base import on_fitted, validated_points
from .kernel_map import KernelMap
from .map_method import MapMethod, functions
from .partitions import in_passes, moments, spread

FORMS = ("auto", "primal", "dual")
# Rows from which "auto" judges whether the kernel matrix has full rank.
SAMPLE = 400


class RidgeModel(MultiOutputMixin, RegressorMixin, MapMethod):
    """Ridge in either form. Subclasses say which alphas: given, or chosen from what is at hand."""

    form: Any
    # n x n matrices that the dual form holds at once.
    _matrices = 2

    def _alphas_of_matrix(self, K, T, weights):
        """One alpha a target, the kernel matrix at hand."""
        raise NotImplementedError

    def _alphas_of_coordinates(self, Phi, T, weights, sums):
        """One alpha a target, coordinates (None where they were streamed) and sums at hand."""
        raise NotImplementedError

    # --- fitting ----------------------------------------------------------------------------------

    def _fit_held(self, X, T, weights):
        """From rows held in memory, in the form that costs least."""
        self.form_ = self._chosen_form(X)
        for name in ("kernel_map_", "coef_", "_S", "_weights", "dual_coef_"):
            self.__dict__.pop(name, None)  # of an earlier fit, perhaps in the other form
        fit = self._fit_dual if self.form_ == "dual" else self._fit_primal
        dual = fit(X, T, weights)
        if dual is not None:  # a coefficient a sample would need another pass over streamed rows
            self.dual_coef_ = dual[:, 0] if self._flat else dual
        return self

    def _fit_primal(self, X, T, weights):
        """w = (Phi'Phi + alpha I)^-1 Phi't: [KERNELS] (3). Returns one coefficient a sample."""
        Phi, sums = self._fit_moments(X, T, weights)
        self.kernel_ = self.kernel_map_.kernel_
        if Phi is None:
            self._solve(sums, self._alphas_of_coordinates(None, T, weights, sums))
            return None
        T = on_device_of(T, Phi)
        weights = None if weights is None else on_device_of(weights, Phi)
        sums = Moments.of(Phi, T, weights)
        alphas = self._alphas_of_coordinates(Phi, T, weights, sums)
        self._solve(sums, alphas)
        return self._dual_of_primal(Phi, T, weights, alphas)

    def _fit_moments(self, X, T, weights):
        """(coordinates, None) or (None, moments): the latter in one pass after the map's own."""
        if weights is None and self._new_map()._needs_sums:
            Phi, sums = self._fit_sums(X, partial(spread, X=X, T=T))
            return Phi, None if sums is None else sums.moments()
        Phi = self._fit_map(X)
        return Phi, moments(self.kernel_map_, X, T, weights) if Phi is None else None

    def _fit_dual(self, X, T, weights):
        """a = (K + alpha I)^-1 t: [KERNELS] (7). Weighted rows have noise alpha / weight."""
        kernel, points = self._bound(X)
        kept = np.arange(len(T)) if weights is None else np.flatnonzero(weights > 0)
        rows = pts.take(points, kept)
        self.kernel_, self._S = kernel, kernel.landmarks(points, kept)
        K = tiles.evaluate(kernel, rows) if kernel.kind != "gram" else kernel.against(self._S)(rows)
        T = on_device_of(T[kept], K)
        weights = None if weights is None else on_device_of(weights[kept], K)
        alphas = self._alphas_of_matrix(K, T, weights)
        noise = None if weights is None else 1 / weights
        self._weights, parts = solve_regularized(K, T, alphas, noise)
        # |C^-1 k_z|^2 is what the samples explain of k(z, z).
        self._factors = [
            (alpha, mine, Factor(kernel, self._S, C, kept)) for alpha, mine, C in parts
        ]
        return _scattered(self._weights, kept, points.shape[0])

    def _solve(self, sums, alphas):
        """w = (Phi'Phi + alpha I)^-1 Phi't from sums over rows, one alpha a target."""
        self.coef_, self._factors = solve_regularized(sums.second, sums.cross, alphas)

    def _dual_of_primal(self, Phi, T, weights, alphas):
        """a = (t - Phi w) / alpha: the w of [KERNELS] (3) is Phi'a."""
        if not np.all(alphas > 0):
            w, _ = self.kernel_map_.landmark_weights(self.coef_)
            return _scattered(w, self.kernel_map_.landmark_indices_, Phi.shape[0])
        left = T - Phi @ self.coef_
        left = left if weights is None else left * weights[:, None]
        return left / on_device_of(alphas, Phi)[None, :]

    # --- prediction -------------------------------------------------------------------------------

    @on_fitted
    def predict(self, X, return_std=False, *, diag=None):
        """The function at every row; with return_std also its uncertainty.

        The standard deviation is the posterior one of a Gaussian process with this kernel and
        noise alpha: rho^2(z) + alpha phi' (Phi'Phi + alpha I)^-1 phi, rho^2 being what the map
        does not see of z. A precomputed kernel needs `diag`, the k(z, z), for it.
        """
        values = self._values(X)
        values = values[:, 0] if self._flat else values
        if not return_std:
            return values
        xp = namespace(values)
        variance = self._variances(X, diag)
        variance = xp.where(variance > 0, variance, xp.zeros_like(variance))
        one = self._flat or len(self._factors) == 1
        return values, xp.sqrt(variance[:, 0] if one else variance)

    def _values(self, X):
        """phi_z'w, or k_z'a: [KERNELS] (8)."""
        if self.form_ == "primal":
            return self.kernel_map_.project(X, self.coef_)
        return tiles.multiply(self.kernel_, self._new_points(X), self._S, self._weights)

    def _variances(self, X, diag):
        """One column a target: unseen part plus what the noise leaves open of the seen part."""
        if self.form_ == "primal":
            return self._variances_of_coordinates(X, diag)
        points = self._new_points(X)
        if diag is None and self.kernel_.kind == "gram":
            raise ValueError("a precomputed kernel does not know k(z, z): pass it as diag=.")
        own = self.kernel_.diagonal(points) if diag is None else on_device_of(diag, self._weights)
        return self._each(lambda alpha, factor: own - factor.squared_norms(points))

    def _variances_of_coordinates(self, X, diag):
        Phi = self.kernel_map_.transform(X)
        variance = self._each(
            lambda alpha, C: alpha * row_norms(solve_triangular(C, Phi.T).T, namespace(Phi))
        )
        if self.kernel_map_.get_params()["residual"]:
            return variance  # the residual is a coordinate already
        return variance + self.kernel_map_.residual(X, diag)[:, None]

    def _each(self, variance):
        """variance(alpha, factor), evaluated once for each alpha, as one column a target."""
        columns: dict[int, Any] = {}
        for alpha, mine, factor in self._factors:
            columns |= dict.fromkeys(mine.tolist(), variance(alpha, factor))
        ordered = [columns[j] for j in sorted(columns)]
        return namespace(ordered[0]).stack(ordered, axis=1)

    @property
    def function_(self):
        """The prediction as a sum of kernels; a list for several targets."""
        check_is_fitted(self)
        if self.form_ == "primal":
            return functions(self.kernel_map_, self.coef_.T, [0.0] * self.coef_.shape[1])
        if self.kernel_.kind == "gram":
            raise AttributeError(
                "function_ is not available: a precomputed kernel cannot be evaluated at new "
                "points; dual_coef_ holds the coefficients."
            )
        W = self._weights
        listed = [RKHSFunction(self.kernel_, self._S, W[:, j]) for j in range(W.shape[1])]
        return listed[0] if self._flat else listed

    def score(self, X, y, sample_weight=None):
        """R^2 of the predictions."""
        if sample_weight is not None:
            with pts.naming("sample_weight"):
                sample_weight = np.asarray(as_host(sample_weight), dtype=float)
        return r2_score(as_host(y), as_numpy(self.predict(X)), sample_weight=sample_weight)

    # --- which form -------------------------------------------------------------------------------

    def _bound(self, X):
        """The kernel bound to X, and X as its points."""
        kernel = as_kernel(self.kernel)
        points = validated_points(self, X, kernel, reset=True)
        kernel = kernel.bind_points(points, pts.column_names(X))
        kernel.check_range(points)
        if kernel.kind == "gram":
            kernel.landmarks(points)  # refuses a matrix that is not square
        return kernel, points

    def _chosen_form(self, X):
        if self.form not in FORMS:
            raise ValueError(f"form must be one of {', '.join(FORMS)}, got {self.form!r}.")
        if isinstance(self.kernel, KernelMap):
            if self.form == "dual":
                raise ValueError(
                    "form='dual' solves with the kernel matrix and has no use for a KernelMap: "
                    "pass its kernel, or form='primal'."
                )
            return "primal"
        if in_passes(X) and self.form == "dual":
            raise ValueError(
                "form='dual' has one coefficient for each row, too many for rows that are not held "
                "in memory: use form='primal'."
            )
        if in_passes(X):
            return "primal"
        if self.form != "auto":
            return self.form
        kernel, points = self._bound(X)
        n = points.shape[0]
        if kernel.is_psd is not True or 8.0 * self._matrices * n * n > budget(None, points):
            return "primal"  # the map tests validity, and needs no n x n matrix
        spread = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(int))
        rank = factorize(kernel, pts.take(points, spread)).factor.rank
        return "dual" if rank == len(spread) else "primal"

    def _new_points(self, X):
        points = validated_points(self, X, self.kernel_, reset=False)
        return pts.as_fitted(points, self._S, self._weights.dtype)

    # --- checks -----------------------------------------------------------------------------------

    def _check_targets(self, X, y, sample_weight):
        """(targets as columns, weights or None), refused early where they make no sense."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        with pts.naming("y"):
            T = check_array(
                as_host(y), ensure_2d=False, dtype=[np.float64, np.float32], input_name="y"
            )
        check_consistent_length(X, T)
        self._flat = T.ndim == 1
        T = T[:, None] if self._flat else T
        if sample_weight is None:
            return T, None
        with pts.naming("sample_weight"):
            weights = np.asarray(as_host(sample_weight), dtype=float)
        weights = np.full(T.shape[0], weights) if weights.ndim == 0 else weights
        weights = check_array(weights, ensure_2d=False, dtype=float, input_name="sample_weight")
        if weights.shape != (T.shape[0],) or np.any(weights < 0) or not np.any(weights > 0):
            raise ValueError(
                f"sample_weight must hold one non-negative number for each of the {T.shape[0]} "
                f"rows, not all zero, got {pts.short(sample_weight)}."
            )
        return T, weights


def solve_regularized(A, B, alphas, noise=None):
    """(A + alpha N)^-1 B with one alpha a column of B and a diagonal N (None: the identity).

    Also (alpha, its columns, the Cholesky factor) for each alpha.
    """
    xp, diagonal = namespace(A), np.arange(A.shape[0])
    own = xp.linalg.diagonal(A)
    columns: dict[int, Any] = {}
    factors = []
    for alpha in np.unique(alphas):
        mine = np.flatnonzero(alphas == alpha)
        shifted = own + float(alpha) * (xp.ones_like(own) if noise is None else noise)
        C = cholesky(put(A + 0, diagonal, diagonal, shifted))
        part = xp.stack([B[:, int(j)] for j in mine], axis=1)
        solved = None if C is None else _solved(C, part)
        if solved is None or not _solves(A, shifted - own, solved, part):
            safe = float(xp.sum(own)) * float(xp.finfo(A.dtype).eps)
            raise ValueError(
                f"alpha={alpha:g} is too small for this kernel: the equations are singular to "
                f"rounding. An alpha above {safe:.1g} is safe."
            )
        columns |= {int(j): solved[:, i] for i, j in enumerate(mine)}
        factors.append((float(alpha), mine, C))
    return xp.stack([columns[j] for j in range(B.shape[1])], axis=1), factors


def _solved(C, B):
    return solve_triangular(C, solve_triangular(C, B), transpose=True)


def _solves(A, ridge, X, B):
    """Whether (A + ridge) X = B, about: a factorisation can succeed on rounding alone."""
    xp = namespace(A)
    left = float(xp.max(xp.abs(A @ X + ridge[:, None] * X - B)))
    return left <= (1e-3 if "64" in str(A.dtype) else 0.1) * float(xp.max(xp.abs(B)))


def _scattered(W, rows, n):
    """The rows of W at their places among n, zeros elsewhere."""
    rows = as_numpy(rows)
    if np.array_equal(rows, np.arange(n)):
        return W
    full = np.zeros((n, W.shape[1]))
    full[rows] = as_numpy(W)
    return on_device_of(full, W)


def as_host(y):
    """y as something that NumPy reads."""
    return as_numpy(y) if is_array(y) else y
