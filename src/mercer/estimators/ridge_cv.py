"""KernelRidgeCV: the penalty of a kernel ridge by leave-one-out, in closed form."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..engine import as_host, on_device_of
from ..kernels import KernelLike
from ..kernels import points as pts
from ..rows import Column, Training
from ..solve import LeaveOneOut
from .kernel_map import KernelMap, map_options
from .ridge import RidgeEstimator


class KernelRidgeCV(RidgeEstimator):
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
        A kernel, its name as in scikit-learn ("rbf", "poly", "linear", ...), a function of two
        points, or a :class:`KernelMap` for options of the map.
    form : {"auto", "primal", "dual", "iterative", "fourier"}, default="auto"
        As in KernelRidge: which of the two eigenproblems is solved. In the forms "iterative" and
        "fourier" alpha is chosen on a sample of the rows (`n_rows_for_alpha_`), then all rows are
        solved for it; "auto" takes "fourier" only where the leave-one-out errors of all rows do
        not fit in memory.
    fit_intercept, tol, max_iter, keep_partial, memory_limit : as in KernelRidge
        A constant without a penalty; when iterations end; what is kept of them on an interrupt;
        bytes that the fit may take.

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
    form_, kernel_map_, coef_, dual_coef_, function_, alphas_ : as in KernelRidge
        Fitted with the penalty that was chosen.
    n_iter_, converged_, error_norms_, preconditioner_rank_ : as in KernelRidge
        Of the last solution; as are `residuals_` and `history_`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, KernelRidgeCV
    >>> rng = np.random.default_rng(0)
    >>> x = np.linspace(0, 6, 80)[:, None]
    >>> y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=80)
    >>> model = KernelRidgeCV([1e-4, 1e-2, 1.0], RBF(1.0)).fit(x, y)
    >>> model.alpha_, bool(model.error_bound(x).max() < 1e-8)
    (0.01, True)
    """

    def __init__(
        self,
        alphas: ArrayLike = (0.1, 1.0, 10.0),
        kernel: KernelLike | KernelMap = "rbf",
        *,
        form: Literal["auto", "primal", "dual", "iterative", "fourier"] = "auto",
        fit_intercept: bool = False,
        tol: float = 1e-4,
        max_iter: int = 500,
        keep_partial: bool = False,
        memory_limit: int | str | None = None,
    ) -> None:
        self.alphas = alphas
        self.kernel = kernel
        self.form = form
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.keep_partial = keep_partial
        self.memory_limit = memory_limit

    def _penalty(self, found: Training) -> LeaveOneOut:
        with pts.naming("alphas"):
            alphas = np.atleast_1d(np.asarray(as_host(self.alphas), dtype=float))
        if alphas.ndim != 1 or not alphas.size or not np.all((alphas > 0) & (alphas < np.inf)):
            raise ValueError(f"alphas must be a list of positive numbers, got {self.alphas!r}.")
        plain = isinstance(self.kernel, KernelMap) and map_options(self.kernel).is_plain_fourier
        if not found.is_held and not plain:
            raise TypeError(
                "KernelRidgeCV needs the errors of all rows at once; for rows that come in pieces "
                "use form='iterative', or choose alpha on a sample, and fit KernelRidge."
            )
        largest = 0.0 if isinstance(found.T, Column) else float(np.abs(found.T).max())
        if not largest < 1e150:
            raise ValueError(
                f"y reaches {largest:.4g}, and the squares of its errors overflow: scale y."
            )
        return LeaveOneOut(alphas)

    @property
    def alpha_(self) -> float:
        """The penalty that was chosen."""
        return self.solution_.choice.alpha

    @property
    def cv_errors_(self) -> np.ndarray:
        """Mean squared leave-one-out error of each alpha, in the order given."""
        errors = self.solution_.choice.errors / len(self.solution_.alphas)
        return on_device_of(errors, self.prediction_.b)

    @property
    def best_score_(self) -> float:
        """Minus the smallest of them."""
        return -float(np.min(self.solution_.choice.errors)) / len(self.solution_.alphas)

    @property
    def n_rows_for_alpha_(self) -> int:
        """Rows whose leave-one-out errors chose alpha."""
        return self.solution_.choice.n_rows
