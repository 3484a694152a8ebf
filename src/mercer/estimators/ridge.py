"""KernelRidge: least squares in a feature space ([KERNELS] (2)-(8))."""

import numpy as np

from ..kernels import points as pts
from .base import all_or_nothing
from .partitions import held, in_passes, n_targets
from .ridge_model import RidgeModel, as_host


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
        self._check_alpha(T.shape[1])
        return self._fit_held(X, T, weights)

    def _alphas_of_matrix(self, K, T, weights):
        return self._check_alpha(T.shape[1])

    def _alphas_of_coordinates(self, Phi, T, weights, sums):
        return self._check_alpha(T.shape[1])

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

    def _check_alpha(self, n_targets):
        with pts.naming("alpha"):
            alphas = np.asarray(as_host(self.alpha), dtype=float)
        proper = np.all((alphas >= 0) & (alphas < np.inf))
        if alphas.shape not in ((), (1,), (n_targets,)) or not proper:
            raise ValueError(
                f"alpha must be one non-negative number, or one for each of the {n_targets} "
                f"targets, got {self.alpha!r}."
            )
        return np.broadcast_to(alphas, (n_targets,))
