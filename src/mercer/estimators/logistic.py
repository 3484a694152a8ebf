"""KernelLogistic: logistic regression in the feature space of a kernel, with a certificate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import log_softmax

from ..engine import namespace, on_device_of
from ..kernels import Data, KernelLike, Precomputed
from ..rows import Training
from ..solve import LogisticProblem
from .base import on_fitted
from .certified import CANDIDATES, CertifiedClassifier, WeightedRows
from .kernel_map import KernelMap
from .map_method import ClassScores

# Rows that choose C="auto".
_ROWS_FOR_C = 1500


class KernelLogistic(ClassScores, CertifiedClassifier):
    """Probabilities of classes by logistic regression in the feature space of a kernel.

    Minimises sum_k |f_k|^2 / 2 + sum_i C_i (-log p(y_i | x_i)), p by the logistic function of one f
    for two classes and by softmax for more: what LogisticRegression does, on the features of the
    kernel. Of two classes each step of Newton's method is a weighted ridge problem, and has every
    solver that KernelRidge has; of more, iterations solve it for all functions together. The
    duality gap bounds the error of every function at every point, rounding included.

    Parameters
    ----------
    C : float or "auto", default=1.0
        Weight of the log loss against |f|^2. "auto" takes the best of 0.01, 0.1, ... 1000: for two
        classes by the log loss of rows left out one at a time, in closed form to second order; for
        more, in five folds. At most 1500 rows choose, and C grows with the square root of how many
        times more rows there are, up to 1000.
    kernel : Kernel, str, callable or KernelMap, default="rbf"
        With a KernelMap the regression is solved on its coordinates; the certificate says how far
        that is from the solution for the kernel itself. A map that centres, repairs, appends the
        residual or is a Fourier series is a kernel by itself, and the certificate is for that one.
    class_weight : dict, "balanced" or None, default=None
        What C is multiplied by for each class.
    tol : float, default=1e-4
        The certified error of the functions, relative to their norm.
    memory_limit : int, str or None, default=None
        Bytes ("2GB"); None: 60 % of what is free. The kernel matrix is stored where it fits.

    Attributes
    ----------
    classes_ : array of the labels
        Sorted.
    C_ : float
        The C that was used.
    solver_ : "dual", "primal", "iterative" or "fourier"
        What solved Newton's steps: the cheapest, as :func:`mercer.plan` says. Steps of more than
        two classes are "iterative" or "fourier".
    dual_coef_ : array of shape (n_functions, n_samples)
        C_i (y_i - p_i): one coefficient per row and function.
    intercept_ : array of shape (n_functions,)
        The constant of each function.
    gap_ : float
        P - D, at most.
    error_norms_, intercept_errors_ : ndarray of shape (n_functions,)
        |f(z) - f*(z)| <= sqrt(k(z, z)) error_norms_ for every z, and |b - b*| at most.
    converged_ : bool
        Whether the certified error has reached `tol`.
    n_iter_ : int
        Newton steps.
    decision_ : Expansion, or LinearOnMap where a map is used
        The functions from points to decision values.
    function_ : RKHSFunction, or a list of one for each class where there are more than two
        The same as sums of kernels, intercepts included.
    kernel_map_, coef_ : where a map is used
        The fitted map, and the weights on its coordinates.
    cv_losses_ : ndarray, for C="auto"
        Log loss of each candidate at rows left out.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from mercer import RBF, KernelLogistic
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = KernelLogistic(C=10.0, kernel=RBF(1.0)).fit(X[:100], y[:100])
    >>> model.predict_proba(X[100:102]).round(2)
    array([[0.03, 0.97],
           [0.08, 0.92]])
    >>> model.decision_function(X[100:102]).round(1)  # log odds
    array([3.6, 2.5])
    >>> float(model.error_bound(X).max()) < 1e-3, bool(model.certain(X).all())
    (True, True)
    """

    def __init__(
        self,
        C: float | str = 1.0,
        kernel: KernelLike | KernelMap = "rbf",
        *,
        class_weight: dict | str | None = None,
        tol: float = 1e-4,
        memory_limit: int | str | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.class_weight = class_weight
        self.tol = tol
        self.memory_limit = memory_limit

    # --- solving ----------------------------------------------------------------------------------

    def _solve(self, rows: WeightedRows) -> None:
        problem = self._problem(rows, self.C_)
        space = problem.workspace()
        found = problem.solve(self.tol, space)
        self.solver_ = space.form
        q, self.n_iter_ = found.A.shape[1], found.n_iter
        factor = 1.0 if q == 1 else 2**0.5 * (q - 1)
        C = self.C_ * rows.weights
        self._keep_certificates(rows, [found.certificate], found.dual, C, factor)
        self.gap_ = float(self.gap_[0])
        self.error_norms_ = np.full(q, self.error_norms_[0])
        self.intercept_errors_ = np.full(q, self.intercept_errors_[0])
        self._keep_functions(rows, found.A, found.b, np.arange(len(found.A)))
        full = np.zeros((self.n_rows_, q))
        full[rows.kept] = found.A
        self.dual_coef_, self.intercept_ = (
            on_device_of(part, self.decision_.b) for part in (full.T, found.b)
        )

    def _ways(self, rows):
        return [way for _, way in self._problem(rows, self.C_).offers()]

    def _problem(self, rows, C):
        points = rows.kernel.layout.in_double(rows.points)
        training = Training.of(rows.kernel, points, memory_limit=self._room(rows))
        if rows.fit is None:
            training = replace(training, workers=rows.workers)
        n_classes = len(self.classes_)
        return LogisticProblem(training, rows.codes, n_classes, C * rows.weights, rows.rounding)

    # --- C ----------------------------------------------------------------------------------------

    def _chosen_C(self, rows: WeightedRows) -> float:
        some, K = self._sample_for_C(rows, _ROWS_FOR_C)
        part = rows.part(Precomputed(), K, some)
        losses = self._left_out(part) if len(self.classes_) == 2 else self._folds(part)
        self.cv_losses_ = losses / part.weights.sum()
        # Noisy labels need the same C for more rows, clean ones a C that grows as they do.
        growth = (len(rows.codes) / len(some)) ** 0.5
        return float(min(growth * CANDIDATES[int(np.argmin(losses))], CANDIDATES[-1]))

    def _left_out(self, rows):
        """Log loss of rows left out one at a time, to second order."""
        y, losses = np.where(rows.codes == 1, 1.0, -1.0), []
        space = found = None
        for C in CANDIDATES:
            problem = self._problem(rows, C)
            space = space or problem.workspace()
            found = problem.solve(1e-4, space, found)
            values = space.left_out(problem, found)
            losses.append(rows.weights @ np.logaddexp(0.0, -y * values))
        return np.array(losses)

    def _folds(self, rows):
        """Log loss of rows left out in folds."""
        losses, K = np.zeros(len(CANDIDATES)), rows.points
        for train, test in self._folds_for_C(rows.codes):
            part = rows.part(Precomputed(), K[np.ix_(train, train)], train)
            space = found = None
            for i, C in enumerate(CANDIDATES):
                problem = self._problem(part, C)
                space = space or problem.workspace()
                found = problem.solve(1e-3, space, found)
                logs = log_softmax(K[np.ix_(test, train)] @ found.A + found.b, axis=1)
                losses[i] -= rows.weights[test] @ logs[np.arange(len(test)), rows.codes[test]]
        return losses

    # --- new points -------------------------------------------------------------------------------

    @on_fitted
    def decision_function(self, X: Data) -> np.ndarray:
        """Log odds of the second class; of more, the function of every class."""
        values = self._functions(X)
        return values[:, 0] if values.shape[1] == 1 else values

    @on_fitted
    def certain(self, X: Data, *, diag: np.ndarray | None = None) -> np.ndarray:
        """Rows whose most probable class provably is that of the exact solution.

        A precomputed kernel needs `diag`, the k(x, x).
        """
        values, bounds = self._functions(X), self._bounds(X, diag)
        xp = namespace(values)
        if values.shape[1] == 1:
            return xp.abs(values[:, 0]) > bounds[:, 0]
        ordered = xp.sort(values, axis=1)
        return ordered[:, -1] - ordered[:, -2] > 2 * bounds[:, 0]
