"""KernelRidge: least squares in a feature space ([KERNELS] (2)-(8))."""

from __future__ import annotations

from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from ..engine import Domain, as_host, as_numpy, namespace, on_device_of, positive_part
from ..expansion import RKHSFunction
from ..kernels import Data, Input, Kernel, KernelLike
from ..kernels import points as pts
from ..rows import Column, Training
from ..solve import (
    Given,
    LeaveOneOut,
    Preconditioning,
    RidgeProblem,
    RidgeSolution,
    solve_ridge,
)
from .base import all_or_nothing, on_fitted
from .kernel_map import KernelMap, map_options
from .map_method import MapMethod, functions

_SOLVER = {"dual": "direct"}


def _of_solution(path: str, doc: str) -> Any:
    """A fitted attribute that the solution holds."""

    def get(self):
        value = self.solution_
        for name in path.split("."):
            value = getattr(value, name, None)
        if value is None:
            raise AttributeError(f"form {self.form_!r} has no {name}_: {doc}")
        return value

    return property(get, doc=doc)


class RidgeEstimator(MultiOutputMixin, RegressorMixin, MapMethod):
    """A ridge problem, and what its solution predicts. Subclasses say which penalties."""

    domains = {
        "form": Domain.one_of("auto", "primal", "dual", "mixed", "iterative", "fourier"),
        "fit_intercept": Domain.FLAG,
    }
    form: Any
    tol: float
    max_iter: int
    keep_partial: bool
    fit_intercept: bool
    memory_limit: Any
    solution_: RidgeSolution
    single_target_: bool
    _penalty: Any  # from what was read to penalties, or to candidates to choose from

    prediction_ = _of_solution("prediction", "The function from points to predictions.")
    error_norms_ = _of_solution("error_norms", "The certified error of each function.")
    coef_ = _of_solution("coef", "w on the coordinates; primal form.")
    residuals_ = _of_solution("residuals", "The largest residuals at some rows; form fourier.")
    converged_ = _of_solution("steps.converged", "Whether the iterations reached tol.")
    history_ = _of_solution("steps.history", "One Step per product with the kernel matrix.")
    preconditioner_rank_ = _of_solution("steps.rank", "The number of landmarks.")

    @property
    def form_(self) -> str:
        """The solver that found the function."""
        name = self.solution_.solver
        return "dual" if name == "direct" else name

    @property
    def alphas_(self) -> tuple[float, ...]:
        """The penalties that were used, one per target."""
        return tuple(map(float, self.solution_.alphas))

    @property
    def n_iter_(self) -> int:
        """Products with the kernel matrix; a direct solve is one step."""
        steps = self.solution_.steps
        return 1 if steps is None else steps.n_iter

    @property
    def dual_coef_(self) -> np.ndarray:
        """a, with f(z) = sum_i a_i k(x_i, z)."""
        dual = self.solution_.dual
        if dual is None:
            raise AttributeError("dual_coef_ would need another pass over the rows.")
        return dual[:, 0] if self.single_target_ else dual

    # --- fitting ----------------------------------------------------------------------------------

    def _numbers(self, name: str) -> np.ndarray:
        given = getattr(self, name)
        if isinstance(given, Kernel | KernelMap):
            raise TypeError(
                f"{name} must be numbers, got {given!r}: {type(self).__name__}(kernel={given!r})."
            )
        with pts.naming(name):
            return np.asarray(as_host(given), dtype=float)

    def __ridge_problem__(
        self, X: Input, y: Input | None = None, sample_weight: Input | None = None
    ) -> Any:
        """(the ridge problem of these rows, the solver that `form` asks for, what was read)."""
        given = self.kernel if isinstance(self.kernel, KernelMap) else None
        iterative = self.form == "iterative"
        preconditioning = landmarks_of(given if iterative else None)
        found = self._read(
            X,
            y,
            sample_weight,
            targets="numbers",
            why=f"form='{self.form}'" if self.form in ("iterative", "fourier") else None,
            workers=iterative,
        )
        problem = RidgeProblem(
            found,
            found.T,
            self._penalty(found),
            found.weights,
            bool(self.fit_intercept),
            found.n_targets,
            tol=self.tol,
            max_iter=self.max_iter,
            map=None if given is None or iterative else map_options(given),
            preconditioning=preconditioning,
            keep_partial=self.keep_partial,
        )
        return problem, _SOLVER.get(self.form, self.form), found

    @all_or_nothing
    def fit(self, X: Input, y: Input | None = None, sample_weight: Input | None = None) -> Self:
        """Solve for the coefficients.

        For more rows than memory X is a stream of chunks, and y an array or a stream that is cut
        alike; or X gives tuples (rows, targets) or (rows, targets, weights), and y is left out.
        """
        problem, solver, found = self.__ridge_problem__(X, y, sample_weight)
        solution = solve_ridge(problem, solver, name=f"form={self.form!r}")
        found.keep_names(self)
        fit = solution.cached("fit")
        if fit is not None:
            self._keep_map(found, fit)
        solution.forget()
        self.solution_, self.single_target_ = solution, found.single
        self.kernel_ = solution.kernel
        return self

    # --- prediction -------------------------------------------------------------------------------

    @overload
    def predict(
        self, X: Data, return_std: Literal[False] = False, *, diag: ArrayLike | None = None
    ) -> np.ndarray: ...

    @overload
    def predict(
        self, X: Data, return_std: Literal[True], *, diag: ArrayLike | None = None
    ) -> tuple[np.ndarray, np.ndarray]: ...

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
        points = self._points(X)
        if not return_std:
            values = self.prediction_(points)
            return values[:, 0] if self.single_target_ else values
        values, variance = self.solution_.with_variance(points, diag)
        values = values[:, 0] if self.single_target_ else values
        std = namespace(values).sqrt(positive_part(variance))
        one = self.single_target_ or len(set(self.alphas_)) == 1
        return values, std[:, 0] if one else std

    @on_fitted
    def error_bound(self, X: Data, *, diag: ArrayLike | None = None) -> np.ndarray:
        """How far predictions at the rows of X can be from the exact solution's, certified.

        |f(z) - f*(z)| <= sqrt(k(z, z)) |f - f*|, in the norm of the kernel's space: `error_norms_`,
        rounding included. One number per row, or one per row and target. A precomputed kernel needs
        `diag`, the k(z, z). f* solves the same problem with the kernel itself: where the kernel is
        a KernelMap of few landmarks, the bound says what they miss. The primal form and form
        "fourier" take all errors to have the same sign: their bound is thousands of times the error
        that is seen. A similarity that is not a kernel has no such norm, and no bound.
        """
        points = self._points(X)
        bounds = self.solution_.error_bound(points, diag)
        return bounds[:, 0] if self.single_target_ else bounds

    @property
    def function_(self) -> RKHSFunction | list[RKHSFunction]:
        """The prediction as a sum of kernels; a list for several targets."""
        check_is_fitted(self)
        listed = functions(self.prediction_)
        return [listed] if isinstance(listed, RKHSFunction) and not self.single_target_ else listed

    def score(self, X: Data, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R^2 of the predictions."""
        predicted = as_numpy(self.predict(X))
        weights = pts.row_weights(sample_weight, len(predicted))
        return r2_score(as_host(y), predicted, sample_weight=weights)


def landmarks_of(given: KernelMap | None) -> Preconditioning:
    """The iterations solve with the kernel itself: a KernelMap gives them landmarks alone."""
    if given is None:
        return Preconditioning()
    # "auto" leaves the basis to mercer, and "cholesky" are the landmarks themselves.
    harmless = {
        "basis": ("cholesky", "auto"),
        "center": (False,),
        "append_residual": (False,),
        "indefinite": ("raise",),
    }
    values = given.get_params(deep=False)
    refused = [f"{k}={values[k]!r}" for k, fine in harmless.items() if values[k] not in fine]
    if refused:
        raise ValueError(
            f"form='iterative' solves with the kernel itself, and KernelMap({', '.join(refused)}) "
            "would have no effect. Use form='primal', or leave the option out: the iterations take "
            "max_rank, tol, pivots, memory_limit, n_jobs, random_state and verbose from a "
            "KernelMap, for the landmarks that precondition them."
        )
    return Preconditioning(given.max_rank, given.tol, given.pivots)


class KernelRidge(RidgeEstimator):
    """Fit a regression function that is linear in the feature space of a kernel.

    Minimises ``sum_i (t_i - w . phi(x_i))^2 + alpha |w|^2``: [KERNELS] (2)-(8). Equal to
    scikit-learn's KernelRidge for the same kernel: uncentred and without intercept, unless
    `fit_intercept` asks for one or `kernel` is a centred map.

    Parameters
    ----------
    alpha : float or array of shape (n_targets,), default=1.0
        Strength of the penalty: the variance of the noise, to a Gaussian process.
    kernel : Kernel, str, callable or KernelMap, default="rbf"
        A kernel, its name as in scikit-learn ("rbf", "poly", "linear", ...), a function of two
        points, or a :class:`KernelMap` for options of the map.
    form : {"auto", "primal", "dual", "mixed", "iterative", "fourier"}, default="auto"
        Which solver finds the function; all find the same one.

        =========== ==================================================================== =========
        form        solves for                                                           needs
        =========== ==================================================================== =========
        "dual"      one coefficient per row, by a factor of the kernel matrix            n x n
        "mixed"     the same, by a factor mostly in single precision, then refined       half of it
        "primal"    one coefficient per coordinate of the map ([KERNELS] (3))            n x rank
        "iterative" one coefficient per row, by products with the kernel matrix          n x 100s
        "fourier"   one coefficient per row, by transforms: stationary, 1 to 3 columns   n
        =========== ==================================================================== =========

        "auto" takes the cheapest by its predicted cost; ``mercer.plan(model, X, y)`` prints the
        table by which it decides, with the reasons of those that refuse. Iterations and transforms
        that stand in for a factorisation aim at eight digits. More than 20 000 rows of a Dask
        collection or a stream are solved for in the primal form (fewer are loaded, and solved for
        as an array is); where "iterative" or "fourier" is asked for they are gathered (all rows,
        not the kernel matrix), and for "iterative" the workers of the Dask cluster compute the
        products. A KernelMap given as `kernel` is "primal", unless form is
        "iterative": then its max_rank, tol and pivots choose the landmarks that precondition the
        iterations, and options that would change the function are refused.
    fit_intercept : bool, default=False
        Whether a constant, without a penalty, is added to the function.
    tol : float, default=1e-4
        Iterative form: end when the certified error of the function is at most tol times the
        function, both in the norm of the kernel's space. Form "fourier": residuals are at most tol
        times y (their root mean square), where eight digits would take too many frequencies.
    max_iter : int, default=500
        Iterative form: largest number of products with the kernel matrix.
    keep_partial : bool, default=False
        Iterative form: on KeyboardInterrupt keep the solution so far, with its bound. Else the
        estimator stays as it was.
    memory_limit : int, str or None, default=None
        Bytes, or a text such as "2GB", that the fit may take beside the rows; None: 60 % of the
        memory that is free. Solvers that need more refuse.

    Attributes
    ----------
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_targets)
        a, with f(z) = sum_i a_i k(x_i, z).
    coef_ : array of shape (rank, n_targets)
        w on the coordinates; primal form.
    kernel_map_ : KernelMap, primal form
        The fitted map.
    kernel_ : Kernel
        Bound to the training data.
    form_ : "primal", "dual", "mixed", "iterative" or "fourier"
        The solver that found the function.
    residuals_ : array of shape (n_targets,), form "fourier"
        The largest residual y - K a - alpha a at 64 of the rows, computed with the kernel itself
        and divided by the root mean square of y: about the error of predictions.
    error_norms_ : array of shape (n_targets,)
        The certified error of each function: see `error_bound`.
    solution_ : RidgeSolution
        Everything that the solver knows of its answer.
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
        The same as a sum of kernels, the intercept included.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, KernelRidge
    >>> x = np.linspace(0, 6, 40)[:, None]
    >>> model = KernelRidge(alpha=0.01, kernel=RBF(1.0)).fit(x, np.sin(x[:, 0]))
    >>> value, std = model.predict([[1.5], [20.0]], return_std=True)
    >>> value.round(2), std.round(2)
    (array([1., 0.]), array([0.05, 1.  ]))
    >>> bool(model.error_bound([[1.5], [20.0]]).max() < 1e-8)
    True
    """

    def __init__(
        self,
        alpha: ArrayLike = 1.0,
        kernel: KernelLike | KernelMap = "rbf",
        *,
        form: Literal["auto", "primal", "dual", "mixed", "iterative", "fourier"] = "auto",
        fit_intercept: bool = False,
        tol: float = 1e-4,
        max_iter: int = 500,
        keep_partial: bool = False,
        memory_limit: int | str | None = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.form = form
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.keep_partial = keep_partial
        self.memory_limit = memory_limit

    def _penalty(self, found: Training) -> Given:
        alphas = self._numbers("alpha")
        proper = np.all((alphas >= 0) & (alphas < np.inf))
        if alphas.shape not in ((), (1,), (found.n_targets,)) or not proper:
            raise ValueError(
                f"alpha must be one non-negative number, or one for each of the {found.n_targets} "
                f"targets, got {self.alpha!r}."
            )
        return Given(np.broadcast_to(alphas, (found.n_targets,)))


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
    form : {"auto", "primal", "dual", "mixed", "iterative", "fourier"}, default="auto"
        As in KernelRidge: which of the two eigenproblems is solved. In the forms "mixed",
        "iterative" and "fourier" alpha is chosen on a sample of the rows (`n_rows_for_alpha_`),
        then all rows are solved for it; "auto" takes one of these only where the leave-one-out
        errors of all rows do not fit in memory.
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
        Fitted with the penalty that was chosen; as are `prediction_` and `solution_`.
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
        form: Literal["auto", "primal", "dual", "mixed", "iterative", "fourier"] = "auto",
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
        alphas = np.atleast_1d(self._numbers("alphas"))
        if alphas.ndim != 1 or not alphas.size or not np.all((alphas > 0) & (alphas < np.inf)):
            raise ValueError(f"alphas must be a list of positive numbers, got {self.alphas!r}.")
        plain = isinstance(self.kernel, KernelMap) and map_options(self.kernel).is_plain_fourier
        if not found.is_held and not plain:
            raise TypeError(
                "KernelRidgeCV needs the errors of all rows at once; for chunked rows "
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
