"""KernelRidge and KernelRidgeCV: least squares in a feature space ([KERNELS] (2)-(8))."""

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import check_is_fitted

from ..base import all_or_nothing, on_fitted, validated_points
from ..engine import tiles
from ..engine.arrays import (
    as_numpy,
    cholesky,
    eigh,
    is_array,
    namespace,
    on_device_of,
    put,
    row_norms,
    solve_triangular,
)
from ..engine.memory import MemoryLimitError, budget
from ..factor import Factor, factorize
from ..factor.moments import Moments
from ..kernel_map import KernelMap
from ..kernels import as_kernel
from ..kernels import points as pts
from ..rkhs import RKHSFunction
from .base import MapMethod, functions
from .partitions import held, in_passes, moments, n_targets, spread

FORMS = ("auto", "primal", "dual")
# Rows from which "auto" judges whether the kernel matrix has full rank.
SAMPLE = 400


class RidgeModel(MultiOutputMixin, RegressorMixin, MapMethod):
    """A fitted ridge: coefficients of the coordinates, predictions and their uncertainty."""

    def _fit_coordinates(self, X, T, weights):
        """Map, then sums over rows: all that the solution needs."""
        Phi, sums = self._fit_moments(X, T, weights)
        if Phi is None:
            return None, T, weights, sums
        T = on_device_of(T, Phi)
        weights = None if weights is None else on_device_of(weights, Phi)
        return Phi, T, weights, Moments.of(Phi, T, weights)

    def _fit_moments(self, X, T, weights):
        """(coordinates, None) or (None, moments): the latter in one pass after the map's own."""
        if weights is None and self._new_map()._needs_sums:
            Phi, sums = self._fit_sums(X, partial(spread, X=X, T=T))
            return Phi, None if sums is None else sums.moments()
        Phi = self._fit_map(X)
        return Phi, moments(self.kernel_map_, X, T, weights) if Phi is None else None

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
        return self.kernel_map_.project(X, self.coef_)

    def _variances(self, X, diag):
        """One column a target: unseen part plus what the noise leaves open of the seen part."""
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
        """The prediction as a sum of kernels on the landmarks; a list for several targets."""
        check_is_fitted(self)
        return functions(self.kernel_map_, self.coef_.T, [0.0] * self.coef_.shape[1])

    def score(self, X, y, sample_weight=None):
        """R^2 of the predictions."""
        return r2_score(_host(y), as_numpy(self.predict(X)), sample_weight=sample_weight)

    # --- checks -----------------------------------------------------------------------------------

    def _check_targets(self, X, y, sample_weight):
        """(targets as columns, weights or None), refused early where they make no sense."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        with pts.naming("y"):
            T = check_array(
                _host(y), ensure_2d=False, dtype=[np.float64, np.float32], input_name="y"
            )
        check_consistent_length(X, T)
        self._flat = T.ndim == 1
        T = T[:, None] if self._flat else T
        if sample_weight is None:
            return T, None
        with pts.naming("sample_weight"):
            weights = np.asarray(_host(sample_weight), dtype=float)
        weights = np.full(T.shape[0], weights) if weights.ndim == 0 else weights
        weights = check_array(weights, ensure_2d=False, dtype=float, input_name="sample_weight")
        if weights.shape != (T.shape[0],) or np.any(weights < 0) or not np.any(weights > 0):
            raise ValueError(
                f"sample_weight must hold one non-negative number for each of the {T.shape[0]} "
                f"rows, not all zero, got {pts.short(sample_weight)}."
            )
        return T, weights


class KernelRidge(RidgeModel):
    """Ridge regression in the feature space of a kernel: [KERNELS] (2)-(8).

    Minimises ``sum_i (t_i - w . phi(x_i))^2 + alpha |w|^2``. Equal to scikit-learn's KernelRidge
    for the same kernel; uncentred and without intercept, unless `kernel` is a centred map.

    Parameters
    ----------
    alpha : float or array of shape (n_targets,), default=1.0
        Strength of the penalty: the variance of the noise, to a Gaussian process.
    kernel : Kernel, str, callable or KernelMap, default="rbf"
    form : {"auto", "primal", "dual"}, default="auto"
        "primal" solves for w on the coordinates of the map (r x r, [KERNELS] (3)), "dual" for one
        coefficient a sample (n x n, [KERNELS] (7)), without a map: both give the same function.
        "auto" is "dual" where the kernel matrix fits the memory and a sample of it has full rank,
        so that n x n is the least work; else "primal". A KernelMap given as `kernel` is "primal".

    Attributes
    ----------
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_targets)
        a, with f(z) = sum_i a_i k(x_i, z).
    coef_ : array of shape (rank, n_targets)
        w on the coordinates; primal form.
    kernel_map_ : KernelMap, primal form
    kernel_ : Kernel
        Bound to the training data.
    form_ : "primal" or "dual"
    function_ : RKHSFunction, or a list of one a target

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, KernelRidge
    >>> x = np.linspace(0, 6, 40)[:, None]
    >>> model = KernelRidge(alpha=0.01, kernel=RBF(1.0)).fit(x, np.sin(x[:, 0]))
    >>> value, std = model.predict([[1.5], [20.0]], return_std=True)
    >>> value.round(2), std.round(2)
    (array([1., 0.]), array([0.05, 1.  ]))
    """

    def __init__(self, alpha=1.0, kernel="rbf", *, form="auto"):
        self.alpha = alpha
        self.kernel = kernel
        self.form = form

    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        """Solve for the coefficients."""
        if in_passes(X):
            return self._fit_partitions(X, held(y), sample_weight)
        T, weights = self._check_targets(X, y, sample_weight)
        alphas = self._check_alpha(T.shape[1])
        self.form_ = self._chosen_form(X)
        for name in ("kernel_map_", "coef_", "_S", "_weights"):
            self.__dict__.pop(name, None)  # of an earlier fit, perhaps in the other form
        if self.form_ == "dual":
            self._fit_dual(X, T, weights, alphas)
        else:
            Phi, T, weights, sums = self._fit_coordinates(X, T, weights)
            self._solve(sums, alphas)
            self.kernel_ = self.kernel_map_.kernel_
            if Phi is None:  # a coefficient a sample would need another pass
                self.__dict__.pop("dual_coef_", None)
                return self
            self.dual_coef_ = self._dual_of_primal(Phi, T, weights, alphas)
        self.dual_coef_ = self.dual_coef_[:, 0] if self._flat else self.dual_coef_
        return self

    def _fit_partitions(self, X, y, sample_weight):
        """The same solution from sums over partitions; no coefficient a sample is kept."""
        if y is None:
            raise ValueError("KernelRidge requires y to be passed, but the target y is None.")
        columns = n_targets(y)
        self._flat, self.form_ = columns is None, self._chosen_form(X)
        alphas = self._check_alpha(columns or 1)
        for name in ("dual_coef_", "_S", "_weights"):
            self.__dict__.pop(name, None)
        _, sums = self._fit_moments(X, y, sample_weight)
        if not sums.n > 0:
            raise ValueError("sample_weight must not be all zero.")
        self._solve(sums, alphas)
        self.kernel_ = self.kernel_map_.kernel_
        return self

    def _fit_dual(self, X, T, weights, alphas):
        """a = (K + alpha I)^-1 t: [KERNELS] (7). Weighted rows have noise alpha / weight."""
        kernel, points = self._bound(X)
        kept = np.arange(len(T)) if weights is None else np.flatnonzero(weights > 0)
        rows = pts.take(points, kept)
        self.kernel_, self._S = kernel, kernel.landmarks(points, kept)
        K = tiles.evaluate(kernel, rows) if kernel.kind != "gram" else kernel.against(self._S)(rows)
        noise = on_device_of(np.ones(len(kept)) if weights is None else 1 / weights[kept], K)
        self._weights, parts = solve_regularized(K, on_device_of(T[kept], K), alphas, noise)
        # |C^-1 k_z|^2 is what the samples explain of k(z, z).
        self._factors = [
            (alpha, mine, Factor(kernel, self._S, C, kept)) for alpha, mine, C in parts
        ]
        self.dual_coef_ = _scattered(self._weights, kept, points.shape[0])

    def _values(self, X):
        """k_z'a: [KERNELS] (8)."""
        if self.form_ == "primal":
            return super()._values(X)
        return tiles.multiply(self.kernel_, self._new_points(X), self._S, self._weights)

    def _variances(self, X, diag):
        if self.form_ == "primal":
            return super()._variances(X, diag)
        points = self._new_points(X)
        if diag is None and self.kernel_.kind == "gram":
            raise ValueError("a precomputed kernel does not know k(z, z): pass it as diag=.")
        own = self.kernel_.diagonal(points) if diag is None else on_device_of(diag, self._weights)
        return self._each(lambda alpha, factor: own - factor.squared_norms(points))

    @property
    def function_(self):
        """The prediction as a sum of kernels; a list for several targets."""
        check_is_fitted(self)
        if self.form_ == "primal":
            return super().function_
        if self.kernel_.kind == "gram":
            raise AttributeError(
                "function_ is not available: a precomputed kernel cannot be evaluated at new "
                "points; dual_coef_ holds the coefficients."
            )
        W = self._weights
        listed = [RKHSFunction(self.kernel_, self._S, W[:, j]) for j in range(W.shape[1])]
        return listed[0] if self._flat else listed

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
        if kernel.is_psd is not True or 16.0 * n * n > budget(None, points):
            return "primal"  # the map tests validity, and needs no n x n matrix
        spread = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(int))
        rank = factorize(kernel, pts.take(points, spread)).factor.rank
        return "dual" if rank == len(spread) else "primal"

    def _new_points(self, X):
        points = validated_points(self, X, self.kernel_, reset=False)
        return pts.as_fitted(points, self._S, self._weights.dtype)

    def _check_alpha(self, n_targets):
        with pts.naming("alpha"):
            alphas = np.asarray(_host(self.alpha), dtype=float)
        proper = np.all((alphas >= 0) & (alphas < np.inf))
        if alphas.shape not in ((), (1,), (n_targets,)) or not proper:
            raise ValueError(
                f"alpha must be one non-negative number, or one for each of the {n_targets} "
                f"targets, got {self.alpha!r}."
            )
        return np.broadcast_to(alphas, (n_targets,))


class KernelRidgeCV(RidgeModel):
    """KernelRidge whose alpha has the smallest leave-one-out error, in closed form.

    One eigendecomposition serves every alpha: with Phi'Phi = V D V' and Q = Phi V, the error at a
    left-out row is (t_i - f_i) / (1 - h_i), h_i = sum_j Q_ij^2 / (D_j + alpha). Nothing is fitted
    again.

    Parameters
    ----------
    alphas : array of positive numbers, default=(0.1, 1.0, 10.0)
        To choose from.
    kernel : Kernel, str, callable or KernelMap, default="rbf"

    Attributes
    ----------
    alpha_ : float
        The chosen one.
    cv_errors_ : array of shape (n_alphas,)
        Mean squared leave-one-out error of each alpha, in the order given.
    best_score_ : float
        Minus the smallest of them.
    kernel_map_, coef_, dual_coef_, function_ : as in KernelRidge

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, KernelRidgeCV
    >>> rng = np.random.default_rng(0)
    >>> x = np.linspace(0, 6, 80)[:, None]
    >>> y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=80)
    >>> KernelRidgeCV([1e-4, 1e-2, 1.0], RBF(1.0)).fit(x, y).alpha_
    0.01
    """

    def __init__(self, alphas=(0.1, 1.0, 10.0), kernel="rbf"):
        self.alphas = alphas
        self.kernel = kernel

    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        """Choose alpha, and solve."""
        if in_passes(X):
            raise TypeError(
                "KernelRidgeCV needs the errors of all rows at once; on a Dask collection or a "
                "stream choose alpha on a sample, and fit KernelRidge."
            )
        T, weights = self._check_targets(X, y, sample_weight)
        candidates = self._check_alphas()
        largest = float(np.abs(T).max())
        if not largest < 1e150:
            raise ValueError(
                f"y reaches {largest:.4g}, and the squares of its errors overflow: scale y."
            )
        Phi, T, weights, sums = self._fit_coordinates(X, T, weights)
        if Phi is None:
            raise MemoryLimitError(
                f"KernelRidgeCV needs all {len(T)} rows of {self.kernel_map_.rank_} coordinates at "
                "once, more than memory_limit allows: choose alpha on a sample, fit KernelRidge."
            )
        self.kernel_ = self.kernel_map_.kernel_
        errors = leave_one_out_errors(Phi, T, sums, candidates, weights)
        best = int(np.argmin(errors))
        self.alpha_, self.best_score_ = float(candidates[best]), -float(errors[best])
        self.cv_errors_ = on_device_of(errors, Phi)
        chosen = np.full(T.shape[1], self.alpha_)
        self._solve(sums, chosen)
        dual = self._dual_of_primal(Phi, T, weights, chosen)
        self.dual_coef_ = dual[:, 0] if self._flat else dual
        return self

    def _check_alphas(self):
        with pts.naming("alphas"):
            alphas = np.atleast_1d(np.asarray(_host(self.alphas), dtype=float))
        if alphas.ndim != 1 or not alphas.size or not np.all((alphas > 0) & (alphas < np.inf)):
            raise ValueError(f"alphas must be a list of positive numbers, got {self.alphas!r}.")
        return alphas


def leave_one_out_errors(Phi, T, sums, alphas, weights=None):
    """Mean squared leave-one-out error of ridge on the rows of Phi, for every alpha."""
    xp = namespace(Phi)
    # At full rank K = Phi Phi' is as small as Phi'Phi, and its eigenvectors are Q's directions.
    dual = weights is None and Phi.shape[0] == Phi.shape[1]
    values, V = eigh(Phi @ Phi.T if dual else sums.second)
    # Smaller eigenvalues are rounding: without a floor a tiny alpha would divide by nothing.
    floor = max(float(values[0]), 0.0) * float(xp.finfo(values.dtype).eps)
    values = xp.where(values > floor, values, floor * xp.ones_like(values))
    Q = V * xp.sqrt(values)[None, :] if dual else Phi @ V
    projected = Q.T @ T if dual else V.T @ sums.cross
    gain = 1 / (values[:, None] + on_device_of(alphas, Phi)[None, :])  # r x alphas
    leverage = (Q * Q) @ gain
    own = row_norms(Phi, xp)
    if weights is not None:
        leverage, own = leverage * weights[:, None], own * weights
    # 1 - h >= alpha / (k(x, x) + alpha): a bound where the difference is all rounding.
    alphas = on_device_of(alphas, Phi)[None, :]
    least = alphas / (own[:, None] + alphas) + float(xp.finfo(own.dtype).eps)
    left = xp.where(1 - leverage > least, 1 - leverage, least)
    errors = xp.zeros_like(left[0, :])
    for k in range(T.shape[1]):
        squared = ((T[:, k : k + 1] - Q @ (projected[:, k : k + 1] * gain)) / left) ** 2
        errors = errors + xp.sum(squared if weights is None else squared * weights[:, None], axis=0)
    return as_numpy(errors) / (sums.n * T.shape[1])


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


def _host(y):
    """y as something that NumPy reads."""
    return as_numpy(y) if is_array(y) else y
