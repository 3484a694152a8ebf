"""KernelDiscriminant: Fisher's discriminant in the feature space of a kernel ([NPT] IV-C)."""

import numbers
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ..engine.arrays import (
    as_host,
    as_numpy,
    cholesky,
    eps_of,
    is_array,
    is_single,
    namespace,
    on_device_of,
    put,
    solve_triangular,
)
from ..engine.checks import check_classes
from ..expansion import Expansion, RKHSFunction
from ..fit import OnPanels, Statistic, added_up
from ..kernels.adapters import KernelLike
from ..kernels.points import column_names, naming
from ..kernels.types import Array, Data, Input
from ..rows.gather import held_column, held_if_few
from ..rows.in_step import split_pairs
from ..rows.moments import ByClass, Spread
from ..rows.protocol import Column
from ..rows.source import in_pieces, refuse_stream
from ..solve.left_out_classes import LeftOut
from ..solve.system import in_double
from ..space.spectral import signs
from .base import (
    all_or_nothing,
    follow,
    new_rows,
    on_fitted,
    validated_points,
)
from .columns import as_points
from .discriminant_iterative import regularisation_of_sample, solve_classes
from .kernel_map import KernelMap
from .map_method import MapMethod, functions
from .ridge_iterative import SolverOptions, gathered_rows
from .targets import labels_of, score_weights


class KernelDiscriminant(
    ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, MapMethod
):
    """Separate classes by linear discriminants in the feature space of a kernel.

    Fisher's discriminant there ([NPT] IV-C, [EXACT] section 4): axes w that separate the class
    means best, relative to the spread within classes, ``S_B w = lambda (S_W + s I) w``. In a
    feature space S_W is singular, or nearly so, and without the shrinkage s the axes follow
    rounding errors. It is a multiple of the identity, so that every basis of the map gives the
    same axes and the same predictions.

    Parameters
    ----------
    n_components : int or None, default=None
        Axes that transform returns, at most classes - 1 (None: all of these). Predictions always
        use all.
    kernel : Kernel, str, callable or KernelMap, default="rbf"
    shrinkage : "auto" or float, default="auto"
        What is added to the diagonal of S_W, as a share of the total variance within classes,
        trace(S_W) / (n - classes). "auto" chooses it by the likelihood of left-out rows, in closed
        form, and calibrates the probabilities on the same rows; with a number, probabilities are
        those of the Gaussian model.
    priors : array of shape (n_classes,) or None, default=None
        Probabilities of the classes, in their sorted order. None: their shares of the sample.
    form : {"primal", "iterative"}, default="primal"
        "primal" works on the coordinates of the map. "iterative" solves for one coefficient per
        row and class, exactly for all rows and without the kernel matrix, by the iterations of
        KernelRidge(form="iterative"): for rough kernels on more rows than a map of full rank can
        hold. "auto" shrinkage is then chosen on 2000 rows.
    tol, max_iter : as in KernelRidge, iterative form

    Attributes
    ----------
    classes_ : array of the labels
    priors_ : array of shape (n_classes,)
    form_ : "primal" or "iterative"
    kernel_map_ : KernelMap, primal form
        Centred, whatever the map given as `kernel` says.
    shrinkage_ : float
        The share that was used.
    temperature_ : float
        The factor on squared distances that calibrates probabilities; 1 where `shrinkage` is a
        number.
    means_ : array of shape (n_classes, rank), primal form
        Coordinates of the class means.
    scalings_ : array of shape (rank, n_components), primal form
        The axes; within classes, scores along them have variance one.
    explained_variance_ratio_ : array of shape (n_components,)
    coef_, intercept_ : the linear decision function of the coordinates, primal form
    projection_, decision_ : LinearOnMap, or Expansion in the iterative form
        The functions from points to scores, and to decision values.
    n_iter_, converged_, history_, n_rows_for_shrinkage_ : iterative form
        Products with the kernel matrix, whether `tol` was reached, a list of
        :class:`mercer.solve.Step`, and the rows that chose the shrinkage.
    function_ : RKHSFunction, or a list of one for each class where there are more than two
        The decision function as a sum of kernels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import RBF, KernelDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelDiscriminant(kernel=RBF(0.1)).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 2)
    0.97
    >>> model.transform(X[1::2]).shape
    (75, 2)
    """

    keep_partial = False  # half a solution is not a discriminant
    projection_: Any  # a LinearOnMap, or an Expansion
    decision_: Any
    shrinkage_: float
    temperature_: float
    n_rows_for_shrinkage_: int
    classes_: Any  # an array of numbers where X lives, or NumPy's of anything

    def __init__(
        self,
        n_components: int | None = None,
        kernel: KernelLike | KernelMap = "rbf",
        *,
        shrinkage: float | str = "auto",
        priors: ArrayLike | None = None,
        form: Literal["primal", "iterative"] = "primal",
        tol: float = 1e-4,
        max_iter: int = 500,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.shrinkage: Any = shrinkage
        self.priors = priors
        self.form = form
        self.tol = tol
        self.max_iter = max_iter

    @all_or_nothing
    def fit(self, X: Input, y: Input | None = None) -> Self:
        """Find the map, the class means and the axes."""
        self._fit(X, y)
        return self

    @all_or_nothing
    def fit_transform(self, X: Data, y: ArrayLike) -> Array:
        """Fit, and return the scores of the training points."""
        refuse_stream(X)
        Phi = self._fit(X, y)
        if Phi is None or in_pieces(X):
            return self.transform(X)
        return Phi @ self.projection_.coef + self.projection_.b[None, :]

    def _fit(self, X, y):
        """Coordinates of the training points, where they are held."""
        X, y = split_pairs(X, y)
        self._check_given(y)
        X, workers = gathered_rows(self, held_if_few(X))
        y = held_column(y, X, in_step=True)
        self._check_shrinkage()
        self._check_form()
        self.form_, self.n_iter_ = self.form, 1  # a direct solve is one step
        if self.form == "iterative":
            self._fit_iterative(X, self._check(X, y), workers)
            return None
        if in_pieces(y):  # labels are known only after the pass that adds up their coordinates
            sums = self._fit_map(X, Statistic(ByClass.of, [Column(y, "y", labels_of)]), center=True)
            found, Phi = sums.sums, None
            self.classes_, sums = found.labels, found.spread
            check_classification_targets(self.classes_)
            self._check_classes(sums.n)
            labels = Column(y, "y", labels_of)
        else:
            codes = self._check(X, y)
            one_hot = Column(np.eye(len(self.classes_))[codes], "y")
            # A discriminant is centred by definition.
            fit = self._fit_map(X, Statistic(Spread.of, [one_hot]), center=True)
            sums, Phi, labels = fit.sums, fit.coordinates(), Column(codes, "y")
        self._solve(sums.moments(), X, Phi, labels)
        if Phi is not None and self.classes_.dtype.kind in "biuf":
            self.classes_ = follow(self.classes_, Phi)
        return Phi

    def _fit_iterative(self, X, codes, workers):
        """The same functions as sums of kernels on all rows."""
        options, kernel = SolverOptions.of(self), self.leaf_kernel()
        points = validated_points(self, X, kernel, reset=True)
        kernel = kernel.bind_points(points, column_names(X))
        kernel.check_range(points)
        shares = np.bincount(codes) / len(codes)
        priors = shares if self.priors is None else np.asarray(self.priors, dtype=float)
        self.shrinkage_, self.temperature_, self.n_rows_for_shrinkage_ = (
            regularisation_of_sample(kernel, points, codes, self.priors)
            if self.shrinkage == "auto"
            else (float(self.shrinkage), 1.0, 0)
        )
        k = len(self.classes_) - 1 if self.n_components is None else int(self.n_components)
        found = solve_classes(
            kernel, points, codes, priors, self.shrinkage_, self.temperature_, k, options, workers
        )
        S = kernel.landmarks(in_double(kernel, points))
        self.kernel_ = kernel
        self.priors_ = follow(priors, found.axes)
        self.explained_variance_ratio_ = follow(found.explained, found.axes)
        self.projection_ = Expansion(kernel, S, found.axes, found.axis_constants)
        self.decision_ = Expansion(kernel, S, found.decision, found.decision_constants)
        self.n_iter_, self.converged_ = found.solution.n_iter, found.solution.converged
        self.history_ = found.solution.history
        if self.classes_.dtype.kind in "biuf":
            self.classes_ = follow(self.classes_, found.axes)

    def _solve(self, sums, X=None, Phi=None, labels=None):
        """Axes and decision function from sums over rows: Phi'Phi, class sums, class sizes."""
        xp, r, freedom = namespace(sums.second), sums.second.shape[0], sums.n - len(self.classes_)
        self.means_ = (sums.cross / sums.target[None, :]).T
        self.priors_ = self._priors(sums)
        centre = self.priors_ @ self.means_
        within = sums.second - sums.cross @ self.means_
        self.shrinkage_, self.temperature_ = self._regularisation(within, sums, X, Phi, labels)
        i = np.arange(r)
        shrunk = xp.linalg.diagonal(within) + self._ridge(within, sums)
        C = cholesky(put(within, i, i, shrunk))
        if C is None or (self.shrinkage_ == 0 and r > freedom):
            raise ValueError(
                f"the scatter within classes is singular (rank {r} from {sums.n:g} samples in "
                f"{len(self.classes_)} classes) at shrinkage={self.shrinkage_!r}: raise it."
            )
        # S_B is made of the class means alone. So with C C' = S_W + s I its axes come from a thin
        # matrix: left singular vectors u of C^-1 (means - centre)' give w = C^-T u.
        apart = solve_triangular(C, (self.means_ - centre[None, :]).T)
        U, spread, _ = xp.linalg.svd(apart * xp.sqrt(self.priors_)[None, :], full_matrices=False)
        k = self._n_axes(r)
        axes = solve_triangular(C, U[:, :k], transpose=True) * freedom**0.5
        axes = axes * signs((self.means_ - centre[None, :]) @ axes)[None, :]
        self.scalings_ = axes
        self.projection_ = self.kernel_map_.map_.linear(axes, -(centre @ axes))
        total = xp.sum(spread**2)  # zero where all classes have one mean
        self.explained_variance_ratio_ = spread[:k] ** 2 / xp.where(
            total > 0, total, xp.ones_like(total)
        )
        # log p(c | z) = phi(z) . A^-1 m_c - m_c . A^-1 m_c / 2 + log prior, up to a constant.
        coef = solve_triangular(C, apart, transpose=True) * (freedom * self.temperature_)
        middle = centre + 0.5 * (self.means_ - centre[None, :])
        intercept = xp.log(self.priors_) - xp.sum(middle * coef.T, axis=1)
        if len(self.classes_) == 2:
            coef, intercept = coef[:, 1:] - coef[:, :1], intercept[1:] - intercept[:1]
        self.coef_, self.intercept_ = coef.T, intercept
        self.decision_ = self.kernel_map_.map_.linear(coef, intercept)

    def _regularisation(self, within, sums, X, Phi, labels):
        """(shrinkage, temperature): given, or the most likely ones for rows left out."""
        if self.shrinkage != "auto":
            return float(self.shrinkage), 1.0
        counts = np.rint(as_numpy(sums.target).astype(np.float64))
        in_classes = self.classes_ if in_pieces(labels.values) else None
        left_out = LeftOut.from_sums(within, self.means_, counts, in_classes, self.priors)
        if Phi is not None:
            return added_up(left_out, Phi, [labels.values]).best()
        rows = new_rows(self.kernel_map_, X, self.kernel_)
        return rows.fold(OnPanels(self.kernel_map_.map_, left_out), [labels]).best()

    def _ridge(self, within, sums):
        """s of S_W + s I: a share of the variance within classes, and never below rounding."""
        if self.shrinkage_ == 0:
            return 0.0
        xp, r = namespace(within), within.shape[0]
        eps = eps_of(within)
        least = eps * r * float(xp.max(xp.linalg.diagonal(sums.second)))
        total = float(xp.linalg.trace(within)) / (sums.n - len(self.classes_))
        return max(self.shrinkage_ * total, least)

    # --- new points -------------------------------------------------------------------------------

    @on_fitted
    def transform(self, X: Data) -> Array:
        """Scores along the axes, for every row."""
        points = self._points(X)
        scores = self.projection_(points)
        # Coefficients on all rows are in double precision, whatever the data.
        return as_points(scores, points) if is_single(points) else scores

    @on_fitted
    def decision_function(self, X: Data) -> Array:
        """log p(c | x) of each class, up to a common constant; with two, their difference."""
        scores = self.decision_(self._points(X))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @on_fitted
    def predict(self, X: Data) -> Array:
        """The most probable class of every row."""
        scores = self.decision_function(X)
        xp = namespace(scores)
        best = xp.astype(scores > 0, xp.int64) if scores.ndim == 1 else xp.argmax(scores, axis=1)
        if is_array(self.classes_) and namespace(self.classes_) is xp:
            return xp.take(self.classes_, best, axis=0)
        return self.classes_[as_numpy(best)]  # labels that only NumPy can hold

    @on_fitted
    def predict_log_proba(self, X: Data) -> Array:
        """log p(c | x) for every row and class."""
        scores = self.decision_function(X)
        xp = namespace(scores)
        if scores.ndim == 1:
            scores = xp.stack([xp.zeros_like(scores), scores], axis=1)
        scores = scores - xp.max(scores, axis=1, keepdims=True)
        return scores - xp.log(xp.sum(xp.exp(scores), axis=1, keepdims=True))

    @on_fitted
    def predict_proba(self, X: Data) -> Array:
        """p(c | x) for every row and class."""
        log_proba = self.predict_log_proba(X)
        return namespace(log_proba).exp(log_proba)

    def score(self, X: Data, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Share of rows whose class is predicted."""
        predicted, weights = as_numpy(self.predict(X)), score_weights(sample_weight)
        return accuracy_score(as_host(y), predicted, sample_weight=weights)

    @property
    def function_(self) -> RKHSFunction | list[RKHSFunction]:
        """The decision function as a sum of kernels on the landmarks; a list for many classes."""
        check_is_fitted(self)
        return functions(self.decision_)

    @property
    def _n_features_out(self):
        if isinstance(self.projection_, Expansion):
            return self.projection_.W.shape[1]
        return self.scalings_.shape[1]

    # --- checks -----------------------------------------------------------------------------------

    def _check(self, X, y):
        """Class numbers of the rows; what makes no sense is refused before any long computation."""
        y = column_or_1d(as_host(y), warn=True)
        check_classes(y)
        assert_all_finite(y, input_name="y")
        with np.errstate(invalid="ignore"):  # scikit-learn tries y as integers
            check_classification_targets(y)
        if not in_pieces(X):
            check_consistent_length(X, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._check_classes(len(y))
        return codes

    def _check_given(self, y):
        if y is None:
            raise ValueError(
                "KernelDiscriminant requires y to be passed, but the target y is None."
            )

    def _check_form(self):
        if self.form not in ("primal", "iterative"):
            raise ValueError(f"form must be 'primal' or 'iterative', got {self.form!r}.")
        if self.form == "iterative" and self.shrinkage != "auto" and float(self.shrinkage) == 0:
            raise ValueError(
                "form='iterative' needs shrinkage > 0: without it the equations are singular. Use "
                "form='primal', or a small number."
            )

    def _check_shrinkage(self):
        s = self.shrinkage
        number = isinstance(s, numbers.Real) and not isinstance(s, bool) and 0 <= float(s) < np.inf
        if not number and not (isinstance(s, str) and s == "auto"):
            raise ValueError(f"shrinkage must be 'auto' or a number of at least 0, got {s!r}.")

    def _check_classes(self, n):
        """Samples, classes and parameters that go together."""
        classes = len(self.classes_)
        if classes < 2:
            raise ValueError(
                f"a discriminant needs at least two classes, y has {classes} class(es): "
                f"{self.classes_.tolist()}."
            )
        if n <= classes:
            raise ValueError(
                f"a discriminant needs more samples than classes, got {n} samples in {classes} "
                "classes: nothing is left to measure the spread within classes."
            )
        k = self.n_components
        if k is not None and not (isinstance(k, numbers.Integral) and 1 <= int(k) < classes):
            raise ValueError(
                f"n_components must be None or from 1 to classes - 1 = {classes - 1}, got {k!r}."
            )
        self._check_priors(classes)

    def _check_priors(self, classes):
        if self.priors is None:
            return
        with naming("priors"):
            priors = np.asarray(self.priors, dtype=float)
        if priors.shape != (classes,) or not np.all(priors > 0) or abs(priors.sum() - 1) > 1e-6:
            raise ValueError(
                f"priors must be {classes} positive numbers that sum to 1, got {self.priors!r}."
            )

    def _priors(self, sums):
        if self.priors is None:
            return sums.target / sums.n
        return on_device_of(np.asarray(self.priors, dtype=float), sums.second)

    def _n_axes(self, rank):
        """classes - 1, or fewer where the map has fewer dimensions."""
        most = min(len(self.classes_) - 1, rank)
        k = most if self.n_components is None else self.n_components
        if k > most:
            raise ValueError(
                f"n_components={k} exceeds the {rank} dimensions that the kernel has on this data."
            )
        return k
