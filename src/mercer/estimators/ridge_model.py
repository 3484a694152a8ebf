"""What ridge regressions share: four forms of one solution, predictions, their uncertainty."""

import warnings
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from ..engine import tiles
from ..engine.arrays import as_numpy, namespace, on_device_of
from ..engine.memory import MemoryLimitError
from ..expansion import Expansion, RKHSFunction
from ..fit import OfSpace, Statistic
from ..kernels import points as pts
from ..kernels.types import Array, Data
from ..rows.moments import Moments, Spread
from ..rows.source import in_pieces
from ..solve.direct import Shifted, factor_shifted, solve_regularized
from ..solve.quick import solved_quickly
from ..solve.system import double_like
from ..space import Landmarks
from .base import on_fitted, validated_points
from .fourier_choice import (
    MOST_PRODUCTS,
    by_fourier,
    cheaper_plan,
    may_be_cheapest,
    plan_asked_for,
)
from .fourier_expansion import FourierExpansion
from .kernel_map import KernelMap
from .map_method import MapMethod, functions
from .ridge_choice import cheapest_form, form_for
from .ridge_fourier import SumsFor, equations_of, fourier_variance
from .ridge_iterative import SolverOptions, points_in_double
from .ridge_variance import (
    dual_variance,
    fourier_form_variance,
    iterative_variance,
    own_similarities,
    primal_variance,
)
from .targets import as_host, score_weights, target_column, weight_column


class RidgeModel(MultiOutputMixin, RegressorMixin, MapMethod):
    """Ridge in either form. Subclasses say which alphas: given, or chosen from what is at hand."""

    form: Any
    tol: float
    max_iter: int
    keep_partial: bool
    prediction_: Any  # an Expansion, or a LinearOnMap
    # n x n matrices that the dual form holds at once.
    _matrices = 2
    # Whether alpha is known before the kernel matrix is.
    _alpha_is_given = False

    def _alphas_of_matrix(self, K, T, weights):
        """One alpha per target, the kernel matrix at hand."""
        raise NotImplementedError

    def _alphas_of_coordinates(self, Phi, T, weights, sums):
        """One alpha per target, coordinates (None where rows were passed over) and sums at hand."""
        raise NotImplementedError

    def _alphas_of_sample(self, kernel, points, T, weights):
        """One alpha per target, where the kernel matrix of all points is too large."""
        raise NotImplementedError

    def _alphas_of_equations(self, equations):
        """One alpha per target, the normal equations in Fourier coordinates at hand."""
        raise NotImplementedError

    def _smallest_alpha(self):
        """The smallest penalty that may be used."""
        raise NotImplementedError

    # --- fitting ----------------------------------------------------------------------------------

    def _fit(self, X, T, weights, workers=None) -> Self:
        """Solve in the form that costs least; T and weights may be Dask collections, as X may."""
        self.form_, self.n_iter_ = self._chosen_form(X), 1  # a direct solve is one step
        fits: dict[str, Any] = {
            "dual": self._fit_dual,
            "primal": self._fit_primal,
            "iterative": partial(self._fit_iterative, workers=workers),
            "fourier": self._fit_dual_by_fourier,
        }
        dual = self._fit_where_fourier_is_cheapest(X, T, weights)
        if dual is None:
            dual = fits[self.form_](X, T, weights)
        if dual is not None:  # one coefficient per sample would need another pass over the rows
            self.dual_coef_ = dual[:, 0] if self.single_target_ else dual
        return self

    def _fit_primal(self, X, T, weights):
        """w = (Phi'Phi + alpha I)^-1 Phi't: [KERNELS] (3). Returns one coefficient per sample."""
        if self._new_map().is_plain_fourier:
            return self._fit_fourier(X, T, weights)
        fused = weights is None and self._new_map().needs_sums
        if fused:
            statistic = Statistic(Spread.of, [target_column(T)])
        else:
            columns = [target_column(T), weight_column(weights)]
            statistic = Statistic(Moments.of, columns, movable=False)
        fit = self._fit_map(X, statistic)
        sums, Phi = fit.sums.moments() if fused else fit.sums, fit.coordinates()
        if not sums.n > 0:
            raise ValueError("sample_weight must not be all zero.")
        if Phi is not None:
            T = on_device_of(T, Phi)
            weights = None if weights is None else on_device_of(weights, Phi)
        alphas = self._alphas_of_coordinates(Phi, T, weights, sums)
        self.alphas_ = tuple(map(float, alphas))
        self.coef_, self._factors_ = solve_regularized(sums.second, sums.cross, alphas)
        self.prediction_ = fit.map.linear(self.coef_)
        return None if Phi is None else self._dual_of_primal(Phi, T, weights)

    def _fit_fourier(self, X, T, weights):
        """The same w from sums of exponentials: directly for few coordinates, else iterated."""
        columns = [target_column(T), weight_column(weights)]
        accuracy = SumsFor(self._smallest_alpha(), self._new_map().n_jobs)
        fit = self._fit_map(X, OfSpace(accuracy, columns))
        if not fit.sums.n > 0:
            raise ValueError("sample_weight must not be all zero.")
        equations = equations_of(fit.map.space, fit.sums, self.kernel_map_.memory_limit)
        alphas = self._alphas_of_equations(equations)
        self.alphas_ = tuple(map(float, alphas))
        solution = equations.solve(np.asarray(alphas), self.tol, self.max_iter)
        self.coef_ = on_device_of(solution.coef, fit.map.space.example)
        self._factors_, self._generator_ = solution.factors, solution.generator
        if solution.error_norms is not None:
            self.error_norms_ = on_device_of(solution.error_norms, self.coef_)
            self.n_iter_, self.converged_ = solution.n_iter, solution.converged
            if not solution.converged:
                warnings.warn(
                    f"after max_iter={self.max_iter} products the certified error of the function "
                    f"is {float(solution.error_norms.max()):.2g}, more than tol={self.tol:g} times "
                    "its norm: raise max_iter or alpha.",
                    ConvergenceWarning,
                    stacklevel=5,
                )
        self.prediction_ = fit.map.linear(self.coef_)

    def _fit_dual(self, X, T, weights):
        """a = (K + alpha I)^-1 t: [KERNELS] (7). Weighted rows have noise alpha / weight."""
        kernel, points = self._bound(X)
        if self.form == "auto" and self._alpha_is_given:
            alphas = self._alphas_of_sample(kernel, points, T, weights)
            solution = solved_quickly(kernel, points, T, alphas, weights)
            if solution is not None:
                return self._with_solution(solution, kernel, points, weights, alphas)
        kept = np.arange(len(T)) if weights is None else np.flatnonzero(weights > 0)
        rows = pts.take(points, kept)
        S = kernel.landmarks(points, kept)
        K = tiles.evaluate(kernel, rows) if kernel.kind != "gram" else kernel.against(S)(rows)
        T = on_device_of(T[kept], K)
        weights = None if weights is None else on_device_of(weights[kept], K)
        alphas = self._alphas_of_matrix(K, T, weights)
        self.alphas_ = tuple(map(float, alphas))
        self.noise_ = None if weights is None else 1 / weights
        W, factors = solve_regularized(K, T, alphas, self.noise_)
        self.kernel_ = kernel
        if kernel.kind == "gram":  # the matrix cannot be made again
            self._factors_ = [replace(f, C=Landmarks(kernel, S, f.C, kept)) for f in factors]
        self.prediction_ = Expansion(kernel, S, W, namespace(W).zeros_like(W[0, :]))
        return _scattered(W, kept, points.shape[0])

    def _fit_iterative(self, X, T, weights, workers=None):
        """The same a by conjugate gradients, with a bound of its error: MATH.md section 8."""
        options = SolverOptions.of(self)
        kernel, points = self._bound(X)
        alphas = self._alphas_of_sample(kernel, points, T, weights)
        solution = options.solve(kernel, points, T, alphas, weights, workers=workers)
        return self._with_solution(solution, kernel, points, weights, alphas)

    def _with_solution(self, solution, kernel, points, weights, alphas):
        """The prediction, and what is known of its error; returns one coefficient per sample."""
        self.kernel_, self.alphas_ = kernel, tuple(map(float, alphas))
        self.error_norms_ = on_device_of(solution.error_norms, solution.coef)
        self.n_iter_, self.converged_ = solution.n_iter, solution.converged
        self.history_, self.preconditioner_rank_ = solution.history, solution.rank
        n = solution.coef.shape[0]
        kept = np.arange(n) if weights is None else np.flatnonzero(weights > 0)
        S, W = points_in_double(kernel, points), solution.coef
        if weights is not None:
            W = pts.take(W, kept)
        self.noise_ = None if weights is None else on_device_of(1 / weights[kept], W)
        S = kernel.landmarks(S, kept) if len(kept) < n else kernel.landmarks(S)
        self.prediction_ = Expansion(kernel, S, W, namespace(W).zeros_like(W[0, :]))
        return solution.coef

    def _fit_where_fourier_is_cheapest(self, X, T, weights):
        """One coefficient per sample, or None where "auto" does better with the form it has."""
        may = self.form == "auto" and not (in_pieces(X) or isinstance(self.kernel, KernelMap))
        if not may or not may_be_cheapest(len(T)) or not self._may_take_fourier(len(T)):
            return None
        kernel, points = self._bound(X)
        noise = self._smallest_noise(weights)
        plan = cheaper_plan(self.form_, kernel, points, T.shape[1], noise, self.tol)
        if plan is None:
            return None
        alphas = self._alphas_of_sample(kernel, points, T, weights)
        try:
            most = min(self.max_iter, MOST_PRODUCTS)
            found = by_fourier(kernel, points, T, alphas, weights, plan, most)
        except MemoryLimitError:
            return None
        if not found.converged:
            return None
        self.form_ = "fourier"
        return self._with_fourier(found, kernel, points, weights, alphas)

    def _fit_dual_by_fourier(self, X, T, weights):
        """The same a from Fourier coordinates, where they are asked for."""
        kernel, points = self._bound(X)
        noise = self._smallest_noise(weights)
        plan = plan_asked_for(kernel, points, T.shape[1], noise, self.tol)
        alphas = self._alphas_of_sample(kernel, points, T, weights)
        found = by_fourier(kernel, points, T, alphas, weights, plan, self.max_iter)
        if not found.converged:
            warnings.warn(
                f"the residual is {float(found.residuals.max()):.2g} times the targets, more than "
                f"{found.aim:g}: raise alpha, max_iter or tol, or use form='iterative'.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return self._with_fourier(found, kernel, points, weights, alphas)

    def _with_fourier(self, found, kernel, points, weights, alphas):
        """The prediction, and what is known of its error; returns one coefficient per sample."""
        self.kernel_, self.alphas_ = kernel, tuple(map(float, alphas))
        n, S = points.shape[0], points_in_double(kernel, points)
        kept = np.arange(n) if weights is None else np.flatnonzero(weights > 0)
        S = kernel.landmarks(S, kept) if len(kept) < n else kernel.landmarks(S)
        W = on_device_of(found.coef, double_like(S))
        self.error_norms_ = on_device_of(found.error_norms, W)
        self.n_iter_, self.converged_ = found.n_iter, found.converged
        self.residuals_ = found.residuals
        self.noise_ = None if weights is None else on_device_of(1 / weights[kept], W)
        b, images = namespace(W).zeros_like(W[0, :]), on_device_of(found.images, W)
        self.prediction_ = FourierExpansion(kernel, S, W, b, found.space, images)
        return _scattered(W, kept, n)

    def _smallest_noise(self, weights):
        return self._smallest_alpha() / (1.0 if weights is None else float(np.max(weights)))

    def _may_take_fourier(self, n):
        """Whether "auto" may use Fourier coordinates for n rows instead of `form_`."""
        return self._smallest_alpha() > 0

    def _dual_of_primal(self, Phi, T, weights):
        """a = (t - Phi w) / alpha: the w of [KERNELS] (3) is Phi'a."""
        if min(self.alphas_) <= 0:
            try:
                W = self.kernel_map_.landmark_weights(self.coef_)[0]
            except ValueError:  # a closed map, or the residual coordinate: no sum of kernels
                return None
            return _scattered(W, self.kernel_map_.landmark_indices_, Phi.shape[0])
        left = T - Phi @ self.coef_
        left = left if weights is None else left * weights[:, None]
        return left / on_device_of(np.array(self.alphas_), Phi)[None, :]

    # --- prediction -------------------------------------------------------------------------------

    @overload
    def predict(
        self, X: Data, return_std: Literal[False] = False, *, diag: ArrayLike | None = None
    ) -> Array: ...

    @overload
    def predict(
        self, X: Data, return_std: Literal[True], *, diag: ArrayLike | None = None
    ) -> tuple[Array, Array]: ...

    @on_fitted
    def predict(self, X, return_std=False, *, diag=None):
        """The function at every row; with return_std also its uncertainty.

        The standard deviation is the posterior one of a Gaussian process with this kernel and
        noise alpha: rho^2(z) + alpha phi' (Phi'Phi + alpha I)^-1 phi, rho^2 being what the map
        does not see of z. A precomputed kernel needs `diag`, the k(z, z), for it. In the iterative
        form it is exact for up to 64 points, by further solves; for more it is a certified upper
        value, from 2000 of the training rows, and a warning says so. Form "fourier" does the same
        for points outside of the training rows' box, and for those inside it where there are more
        than 3000 coordinates.
        """
        points = validated_points(self, X, self.kernel_, reset=False)
        if not return_std:
            values = self.prediction_(points)
            return values[:, 0] if self.single_target_ else values
        variances: dict[str, Any] = {
            "dual": partial(dual_variance, self, self._sample_factors),
            "primal": self._primal_variance,
            "iterative": partial(iterative_variance, self),
            "fourier": partial(fourier_form_variance, self),
        }
        values, variance = variances[self.form_](points, diag)
        xp = namespace(values)
        variance = xp.where(variance > 0, variance, xp.zeros_like(variance))
        one = self.single_target_ or len(set(self.alphas_)) == 1
        values = values[:, 0] if self.single_target_ else values
        return values, xp.sqrt(variance[:, 0] if one else variance)

    def _primal_variance(self, points, diag):
        if not self.kernel_map_.is_plain_fourier:
            return primal_variance(self, self._factors_, points, diag)
        solved = self._factors_, self._generator_
        variance = fourier_variance(self.prediction_.map, points, self, *solved)
        return self.prediction_(points), on_device_of(variance, self.coef_)

    @on_fitted
    def error_bound(self, X: Data, *, diag: ArrayLike | None = None) -> Array:
        """How far predictions at the rows of X can be from the exact solution's, certified.

        Iterative form, and more than 3000 Fourier coordinates: sqrt(k(z, z)) times the error of the
        function in the norm of the kernel's space, `error_norms_`. One number per row, or one per
        row and target. A precomputed kernel needs `diag`, the k(z, z). Form "fourier" adds the
        largest error of its transforms; there the bound takes all errors to have the same sign, and
        is thousands of times the error that is seen (`residuals_`).
        """
        if not hasattr(self, "error_norms_"):
            raise ValueError(
                f"error_bound tells how far iterations are from the solution: form='{self.form_}' "
                "solves directly, up to rounding. A truncated map's own error is "
                "kernel_map_.error_bound(X)."
            )
        points = validated_points(self, X, self.kernel_, reset=False)
        primal = self.form_ == "primal"
        W, S = (self.coef_, None) if primal else (self.prediction_.W, self.prediction_.S)
        own = own_similarities(self.kernel_, pts.as_fitted(points, S, W.dtype), diag, W)
        lengths = namespace(own).sqrt(namespace(own).where(own > 0, own, 0 * own))
        bounds = lengths[:, None] * self.error_norms_[None, :]
        if self.form_ == "fourier":  # what transforms add, where they are used
            Z = pts.as_fitted(points, S, W.dtype)
            inside = on_device_of(self.prediction_.space.contains(Z), W)
            bounds = bounds + inside[:, None] * self.prediction_.difference()[None, :]
        return bounds[:, 0] if self.single_target_ else bounds

    def _sample_factors(self):
        """Factors of K + alpha N, made when first asked for and never saved: n x n numbers."""
        if self.kernel_.kind == "gram":
            return self._factors_
        if "_cached_factors" not in vars(self):
            S = self.prediction_.S
            K, everyone = tiles.evaluate(self.kernel_, S), np.arange(S.shape[0])

            def factor(alpha):
                C = factor_shifted(K, float(alpha), self.noise_)
                mine = np.flatnonzero(np.array(self.alphas_) == alpha)
                return Shifted(float(alpha), mine, Landmarks(self.kernel_, S, C, everyone))

            self._cached_factors = [factor(alpha) for alpha in np.unique(self.alphas_)]
        return self._cached_factors

    def __getstate__(self):
        state = super().__getstate__()
        state.pop("_cached_factors", None)
        return state

    @property
    def function_(self) -> RKHSFunction | list[RKHSFunction]:
        """The prediction as a sum of kernels; a list for several targets."""
        check_is_fitted(self)
        if self.form_ == "primal":
            return functions(self.prediction_)
        try:
            listed = [self.prediction_.column(j) for j in range(self.prediction_.W.shape[1])]
        except ValueError as reason:
            raise AttributeError(
                f"function_ is not available: {reason} dual_coef_ holds the coefficients."
            ) from reason
        return listed[0] if self.single_target_ else listed

    def score(self, X: Data, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R^2 of the predictions."""
        weights = score_weights(sample_weight)
        return r2_score(as_host(y), as_numpy(self.predict(X)), sample_weight=weights)

    def _bound(self, X):
        """The kernel bound to X, and X as its points."""
        kernel = self.leaf_kernel()
        points = validated_points(self, X, kernel, reset=True)
        kernel = kernel.bind_points(points, pts.column_names(X))
        kernel.check_range(points)
        if kernel.kind == "gram":
            kernel.landmarks(points)  # refuses a matrix that is not square
        return kernel, points

    def _chosen_form(self, X):
        form = form_for(self.form, self.kernel, X)
        if form != "auto":
            return form
        kernel, points = self._bound(X)
        return cheapest_form(kernel, points, self._smallest_alpha, self._matrices)


def _scattered(W, rows, n):
    """The rows of W at their places among n, zeros elsewhere."""
    rows = as_numpy(rows)
    if np.array_equal(rows, np.arange(n)):
        return W
    full = np.zeros((n, W.shape[1]))
    full[rows] = as_numpy(W)
    return on_device_of(full, W)
