"""KernelRidge: least squares in a feature space ([KERNELS] (2)-(8))."""

from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from ..kernels import points as pts
from ..kernels.adapters import KernelLike
from ..kernels.types import Input
from ..rows.gather import held_if_few
from ..rows.in_step import split_pairs
from .base import all_or_nothing
from .kernel_map import KernelMap
from .ridge_iterative import gathered_rows
from .ridge_model import RidgeModel
from .ridge_targets import read_targets
from .targets import as_host


class KernelRidge(RidgeModel):
    """Fit a regression function that is linear in the feature space of a kernel.

    Minimises ``sum_i (t_i - w . phi(x_i))^2 + alpha |w|^2``: [KERNELS] (2)-(8). Equal to
    scikit-learn's KernelRidge for the same kernel; uncentred and without intercept, unless `kernel`
    is a centred map.

    Parameters
    ----------
    alpha : float or array of shape (n_targets,), default=1.0
        Strength of the penalty: the variance of the noise, to a Gaussian process.
    kernel : Kernel, str, callable or KernelMap, default="rbf"
    form : {"auto", "primal", "dual", "iterative", "fourier"}, default="auto"
        "primal" solves for w on the coordinates of the map (r x r, [KERNELS] (3)), "dual" for one
        coefficient per sample (n x n, [KERNELS] (7)), without a map, and "iterative" for the same
        coefficients without storing the kernel matrix: conjugate gradients with a certified bound
        of their error. All give the same function. "auto" is "dual" where the kernel matrix fits
        the memory and a sample of it has full rank, or alpha is very small (there the dual form is
        more accurate), "iterative" where a sample has full rank and the matrix does not fit; else
        "primal". From 4000 rows on it solves the dual form by iterations to eight digits, if the
        first of them show that this is faster than a factorisation. "fourier" finds the dual
        coefficients by nonuniform Fourier transforms: for stationary kernels of one to three
        columns, and very many rows. "auto" takes it where finufft is installed, it is clearly the
        cheapest, and the residuals of 64 rows, computed with the kernel itself, show that it is as
        accurate (eight digits of y; `tol` where "iterative" would be taken). Rows of a Dask
        collection or a stream are solved for in the primal form; where "iterative" or "fourier" is
        asked for they are gathered (all rows, not the kernel matrix), and for "iterative" the
        workers of the Dask cluster compute the products.
        A KernelMap given as `kernel` is "primal", unless form is "iterative": then its max_rank,
        tol and pivots choose the landmarks that precondition the iterations, and options that would
        change the function are refused.
    tol : float, default=1e-4
        Iterative form: end when the certified error of the function is at most tol times the
        function, both in the norm of the kernel's space. Form "fourier": residuals are at most tol
        times y (their root mean square), where eight digits would take too many frequencies.
    max_iter : int, default=500
        Iterative form: largest number of products with the kernel matrix.
    keep_partial : bool, default=False
        Iterative form: on KeyboardInterrupt keep the solution so far, with its bound. Else the
        estimator stays as it was.

    Attributes
    ----------
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_targets)
        a, with f(z) = sum_i a_i k(x_i, z).
    coef_ : array of shape (rank, n_targets)
        w on the coordinates; primal form.
    kernel_map_ : KernelMap, primal form
    kernel_ : Kernel
        Bound to the training data.
    form_ : "primal", "dual", "iterative" or "fourier"
    residuals_ : array of shape (n_targets,), form "fourier"
        The largest residual y - K a - alpha a at 64 of the rows, computed with the kernel itself
        and divided by the root mean square of y: about the error of predictions.
    error_norms_ : array of shape (n_targets,), iterative form and form "fourier"
        The certified error of each function: see `error_bound`.
    n_iter_, converged_, history_, preconditioner_rank_ : where iterations did
        Products with the kernel matrix, whether `tol` was reached, a list of
        :class:`mercer.solve.Step`, and the number of landmarks.
    alphas_ : tuple of one number per target
        The penalties that were used.
    prediction_ : Expansion or LinearOnMap
        The function from points to predictions. In form "fourier" it is evaluated by transforms in
        the box of the training rows (and 5 % of their extent), and as the sum of kernels outside of
        it; ``prediction_.difference()`` bounds how far the two can be apart.
    function_ : RKHSFunction, or a list of one per target

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

    _alpha_is_given = True

    def __init__(
        self,
        alpha: ArrayLike = 1.0,
        kernel: KernelLike | KernelMap = "rbf",
        *,
        form: Literal["auto", "primal", "dual", "iterative", "fourier"] = "auto",
        tol: float = 1e-4,
        max_iter: int = 500,
        keep_partial: bool = False,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.form = form
        self.tol = tol
        self.max_iter = max_iter
        self.keep_partial = keep_partial

    @all_or_nothing
    def fit(self, X: Input, y: Input | None = None, sample_weight: Input | None = None) -> Self:
        """Solve for the coefficients.

        For more rows than memory X is a stream of chunks, and y an array or a stream of its own;
        or X gives pairs (rows, targets), and y is left out. sample_weight is what y can be.
        """
        X, y = split_pairs(X, y)
        X, workers = gathered_rows(self, held_if_few(X))
        name = type(self).__name__
        T, weights, columns, self.single_target_ = read_targets(X, y, sample_weight, name)
        self._check_alpha(columns)
        return self._fit(X, T, weights, workers)

    def _alphas_of_matrix(self, K, T, weights):
        return self._check_alpha(T.shape[1])

    def _alphas_of_coordinates(self, Phi, T, weights, sums):
        return self._check_alpha(sums.cross.shape[1])

    def _alphas_of_sample(self, kernel, points, T, weights):
        return self._check_alpha(T.shape[1])

    def _alphas_of_equations(self, equations):
        return self._check_alpha(equations.n_targets)

    def _smallest_alpha(self):
        return float(np.min(as_host(self.alpha)))

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
