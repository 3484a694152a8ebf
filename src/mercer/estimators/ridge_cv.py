"""KernelRidgeCV: the penalty of a kernel ridge by leave-one-out, in closed form."""

from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from ..engine.arrays import eigh, evenly, namespace, on_device_of
from ..engine.memory import MemoryLimitError, budget, coordinates
from ..kernels import points as pts
from ..kernels.adapters import KernelLike
from ..kernels.types import Input
from ..rows.gather import held_if_few
from ..rows.in_step import split_pairs
from ..rows.source import in_pieces
from ..solve.leave_one_out import LeaveOneOut, best_alpha
from .base import all_or_nothing
from .kernel_map import KernelMap
from .ridge_iterative import gathered_rows
from .ridge_model import RidgeModel
from .ridge_targets import read_targets
from .targets import as_host

# Rows that choose alpha where all of them are too many.
ROWS_FOR_ALPHA = 3000
# Coordinates that a map of very many rows has at least, where "auto" looks for a cheaper form.
FEW_COORDINATES = 400


class KernelRidgeCV(RidgeModel):
    """Fit kernel ridge regression and choose alpha by leave-one-out, at the price of one fit.

    Nothing is fitted again: one eigendecomposition serves every alpha. With Phi'Phi = V D V' and
    Q = Phi V (or, the same Q, K = U D U' and Q = U D^1/2), the error at a left-out row is
    (t_i - f_i) / (1 - h_i) with h_i = sum_j Q_ij^2 / (D_j + alpha). On a centred map the mean
    counts as well: h_i + 1/n.

    With Fourier coordinates (``kernel=KernelMap(kernel, basis="fourier")``) the leverage of a
    single row is not known. There alpha is chosen by *generalised* cross-validation: the mean
    squared residual divided by (1 - mean leverage)^2, from the same sums as the fit. Beyond 3000
    coordinates the mean leverage is estimated with 16 random vectors.

    Parameters
    ----------
    alphas : array of positive numbers, default=(0.1, 1.0, 10.0)
        To choose from.
    kernel : Kernel, str, callable or KernelMap, default="rbf"
    form : {"auto", "primal", "dual", "iterative", "fourier"}, default="auto"
        As in KernelRidge: which of the two eigenproblems is solved. In the forms "iterative" and
        "fourier" alpha is chosen on a sample of the rows (`n_rows_for_alpha_`), then all rows are
        solved for it; "auto" takes "fourier" only where the leave-one-out errors of all rows do
        not fit in memory.
    tol, max_iter, keep_partial : as in KernelRidge

    Attributes
    ----------
    alpha_ : float
        The chosen one.
    cv_errors_ : array of shape (n_alphas,)
        Mean squared leave-one-out error of each alpha, in the order given (generalised
        cross-validation error, with Fourier coordinates).
    best_score_ : float
        Minus the smallest of them.
    n_rows_for_alpha_ : int
        Rows whose leave-one-out errors chose alpha: all, but for "iterative" and "fourier".
    form_, kernel_map_, coef_, dual_coef_, function_ : as in KernelRidge

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

    # K, its eigenvectors with what LAPACK needs for them, and their scaled copy.
    _matrices = 6

    def __init__(
        self,
        alphas: ArrayLike = (0.1, 1.0, 10.0),
        kernel: KernelLike | KernelMap = "rbf",
        *,
        form: Literal["auto", "primal", "dual", "iterative", "fourier"] = "auto",
        tol: float = 1e-4,
        max_iter: int = 500,
        keep_partial: bool = False,
    ) -> None:
        self.alphas = alphas
        self.kernel = kernel
        self.form = form
        self.tol = tol
        self.max_iter = max_iter
        self.keep_partial = keep_partial

    @all_or_nothing
    def fit(self, X: Input, y: Input | None = None, sample_weight: Input | None = None) -> Self:
        """Choose alpha, and solve; X, y and sample_weight as in KernelRidge.fit."""
        X, y = split_pairs(X, y)
        X, workers = gathered_rows(self, held_if_few(X))
        if in_pieces(X) and not self._new_map().is_plain_fourier:
            raise TypeError(
                "KernelRidgeCV needs the errors of all rows at once; for rows that come in pieces "
                "use form='iterative', or choose alpha on a sample, and fit KernelRidge."
            )
        name = type(self).__name__
        T, weights, _, self.single_target_ = read_targets(X, y, sample_weight, name)
        self._check_alphas()
        if not in_pieces(T):
            self._refuse_overflow(float(np.abs(T).max()))
        return self._fit(X, T, weights, workers)

    def _alphas_of_matrix(self, K, T, weights):
        """K = V D V': the rows of Q = V D^1/2 are coordinates."""
        xp = namespace(K)
        if weights is not None:
            root = xp.sqrt(weights)[:, None]
            K, T = K * root * root.T, T * root
        values, V = eigh(K)
        Q = V * xp.sqrt(xp.where(values > 0, values, xp.zeros_like(values)))[None, :]
        return self._chosen(Q, values, T, weights)

    def _alphas_of_sample(self, kernel, points, T, weights):
        """On as many rows as their kernel matrix is quickly decomposed, spread over all."""
        kept = np.arange(len(T)) if weights is None else np.flatnonzero(weights > 0)
        spread = evenly(len(kept), ROWS_FOR_ALPHA)
        some = kept[np.unique(spread)]
        rows = pts.take(points, some)
        K = kernel.against(kernel.landmarks(points, some))(rows)
        sample_weight = None if weights is None else on_device_of(weights[some], K)
        self._alphas_of_matrix(K, on_device_of(T[some], K), sample_weight)
        return np.full(T.shape[1], self.alpha_)

    def _alphas_of_coordinates(self, Phi, T, weights, sums):
        """Phi'Phi = V D V': Q = Phi V."""
        if Phi is None:
            raise MemoryLimitError(
                f"KernelRidgeCV needs all {len(T)} rows of {self.kernel_map_.rank_} coordinates at "
                "once, more than memory_limit allows: choose alpha on a sample, fit KernelRidge."
            )
        values, V = eigh(sums.second)
        if weights is not None:
            if self.kernel_map_.mean_ is not None:
                raise ValueError(
                    "KernelRidgeCV with sample_weight has no closed-form leave-one-out error on a "
                    "centred map: use center=False."
                )
            root = namespace(Phi).sqrt(weights)[:, None]
            Phi, T = Phi * root, T * root
        return self._chosen(Phi @ V, values, T, weights, self.kernel_map_.mean_ is not None)

    def _alphas_of_equations(self, equations):
        """By generalised cross-validation: every row has the leverage of the average row."""
        candidates = self._check_alphas()
        self._refuse_overflow(float(np.max(equations.sums.squares)) ** 0.5)
        errors = equations.generalized_errors(candidates, self.tol, self.max_iter)
        best = best_alpha(candidates, errors)
        self.alpha_, self.best_score_ = float(candidates[best]), -float(errors[best])
        self.cv_errors_, self.n_rows_for_alpha_ = errors, equations.sums.rows
        return np.full(equations.n_targets, self.alpha_)

    def _may_take_fourier(self, n):
        """Where the leave-one-out errors of all rows do not fit the memory in any case."""
        held = coordinates(n, FEW_COORDINATES, copies=4) <= budget(None)
        return self.form_ == "iterative" or (self.form_ == "primal" and not held)

    def _smallest_alpha(self):
        return float(self._check_alphas().min())

    def _chosen(self, Q, values, T, weights, centred=False):
        candidates, xp, n = self._check_alphas(), namespace(Q), T.shape[0]
        in_mean, offsets = None, None
        if centred:
            # Predictions do not add the mean of the targets: of the other rows' mean they see
            # nothing, and it is added to the errors around it.
            mean = xp.mean(T, axis=0)[None, :]
            in_mean, offsets = xp.full_like(Q[:, 0], 1 / n), (n * mean - T) / (n - 1)
            T = T - mean
        left_out = LeaveOneOut(Q, values, T, in_mean=in_mean, offsets=offsets)
        errors = left_out.squared_errors(candidates)
        errors /= T.shape[1] * (n if weights is None else float(xp.sum(weights)))
        best = best_alpha(candidates, errors)
        self.alpha_, self.best_score_ = float(candidates[best]), -float(errors[best])
        self.cv_errors_ = on_device_of(errors, Q)
        self.n_rows_for_alpha_ = T.shape[0]
        return np.full(T.shape[1], self.alpha_)

    @staticmethod
    def _refuse_overflow(largest):
        if not largest < 1e150:
            raise ValueError(
                f"y reaches {largest:.4g}, and the squares of its errors overflow: scale y."
            )

    def _check_alphas(self):
        with pts.naming("alphas"):
            alphas = np.atleast_1d(np.asarray(as_host(self.alphas), dtype=float))
        if alphas.ndim != 1 or not alphas.size or not np.all((alphas > 0) & (alphas < np.inf)):
            raise ValueError(f"alphas must be a list of positive numbers, got {self.alphas!r}.")
        return alphas
