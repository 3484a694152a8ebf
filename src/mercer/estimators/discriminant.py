"""KernelDiscriminant: Fisher's discriminant in the feature space of a kernel ([NPT] IV-C)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ..engine import Domain, as_numpy, is_number, on_device_of, require
from ..expansion import Expansion, RKHSFunction
from ..kernels import Data, Input, KernelLike
from ..kernels import points as pts
from ..rows import Column, in_pieces, refuse_stream
from ..solve import CannotSolve, Fisher, RidgeProblem, Shrinkage, solve_ridge
from .base import CLASS_WEIGHT, all_or_nothing, on_fitted, to_namespace_of
from .kernel_map import KernelMap, map_options
from .map_method import ClassScores, MapMethod, as_points, functions
from .ridge import landmarks_of


class KernelDiscriminant(ClassNamePrefixFeaturesOutMixin, ClassScores, TransformerMixin, MapMethod):
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
        A kernel, its name as in scikit-learn ("rbf", "poly", "linear", ...), a function of two
        points, or a :class:`KernelMap` for options of the map.
    shrinkage : "auto" or float, default="auto"
        What is added to the diagonal of S_W, as a share of the total variance within classes,
        trace(S_W) / (n - classes). "auto" chooses it by the likelihood of left-out rows, in closed
        form, and calibrates the probabilities on the same rows; with a number, probabilities are
        those of the Gaussian model.
    priors : array of shape (n_classes,) or None, default=None
        Probabilities of the classes, in their sorted order. None: their shares of the sample.
    class_weight : dict, "balanced" or None, default=None
        Factors on the shares of the sample, by label, in place of `priors`; "balanced": every
        class is as probable as any other.
    form : {"primal", "iterative"}, default="primal"
        "primal" works on the coordinates of the map. "iterative" solves for one coefficient per
        row and class, exactly for all rows and without the kernel matrix, by the iterations of
        KernelRidge(form="iterative"): for rough kernels on more rows than a map of full rank can
        hold. "auto" shrinkage is then chosen on 2000 rows.
    tol, max_iter : as in KernelRidge, iterative form
        When iterations end, and after how many at most.

    Attributes
    ----------
    classes_ : array of the labels
        Sorted.
    priors_ : array of shape (n_classes,)
        Probabilities of the classes that were used.
    form_ : "primal" or "iterative"
        The form that was used.
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
        Share of each axis in the variance between classes.
    coef_, intercept_ : the linear decision function of the coordinates, primal form
        Present in the primal form only.
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
    >>> model.predict_proba(X[:1]).round(2), model.decision_function(X[:1]).shape
    (array([[1., 0., 0.]]), (1, 3))
    """

    n_iter_: int
    projection_: Any  # a LinearOnMap, or an Expansion
    decision_: Any
    shrinkage_: float
    temperature_: float
    n_rows_for_shrinkage_: int
    classes_: Any  # an array of numbers where X lives, or NumPy's of anything

    domains = {
        "shrinkage": Domain(
            lambda s: (isinstance(s, str) and s == "auto") or (is_number(s) and 0 <= s < np.inf),
            "'auto' or a number of at least 0",
        ),
        "form": Domain.one_of("primal", "iterative"),
        "class_weight": CLASS_WEIGHT,
    }

    def __init__(
        self,
        n_components: int | None = None,
        kernel: KernelLike | KernelMap = "rbf",
        *,
        shrinkage: float | str = "auto",
        priors: ArrayLike | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        form: Literal["primal", "iterative"] = "primal",
        tol: float = 1e-4,
        max_iter: int = 500,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.shrinkage: Any = shrinkage
        self.priors = priors
        self.class_weight = class_weight
        self.form = form
        self.tol = tol
        self.max_iter = max_iter

    @all_or_nothing
    def fit(self, X: Input, y: Input | None = None) -> Self:
        """Find the map, the class means and the axes."""
        self._fit(X, y)
        return self

    @all_or_nothing
    def fit_transform(self, X: Data, y: ArrayLike) -> np.ndarray:
        """Fit, and return the scores of the training points."""
        refuse_stream(X)
        Phi = self._fit(X, y)
        if Phi is None or in_pieces(X):
            return self.transform(X)
        return Phi @ self.projection_.coef + self.projection_.b[None, :]

    def _fit(self, X, y):
        """Coordinates of the training points, where they are held."""
        require(
            self.form == "primal" or self.shrinkage != 0,
            "form='iterative' needs shrinkage > 0: without it the equations are singular. Use "
            "form='primal', or a small number.",
        )
        given = self.kernel if isinstance(self.kernel, KernelMap) else None
        iterative = self.form == "iterative"
        found = self._read(
            X,
            y,
            targets="labels",
            why="form='iterative'" if iterative else None,
            workers=iterative,
        )
        # A discriminant is centred by definition.
        own = replace(map_options(given or KernelMap(self.kernel)), center=True)
        share = None if self.shrinkage == "auto" else float(self.shrinkage)
        problem = RidgeProblem(
            found,
            self._indicators(found),
            Shrinkage(share, self._given_priors),
            intercept=True,
            n_targets=1 if found.classes is None else len(found.classes),
            labels=found.classes is None,
            tol=self.tol,
            max_iter=self.max_iter,
            map=None if iterative else own,
            preconditioning=landmarks_of(given if iterative else None),
        )
        try:
            solution = solve_ridge(problem, self.form)
        except CannotSolve as reason:
            raise (reason if iterative else self._singular(problem.training.n)) from None
        found.keep_names(self)
        self.shrinkage_, self.temperature_ = solution.choice.share, solution.choice.temperature
        self.kernel_, Phi = solution.kernel, None
        if iterative:
            steps, self.n_rows_for_shrinkage_ = solution.steps, solution.choice.n_rows
            self.n_iter_, self.converged_ = steps.n_iter, steps.converged
            self.history_ = steps.history
            self._keep(solution, Fisher.of_solution(solution, problem), len(self.classes_))
        else:
            self.n_iter_ = 1  # a direct solve is one step
            Phi = self._keep_sums(problem, solution)
        if self.classes_.dtype.kind in "biuf" and (iterative or Phi is not None):
            self.classes_ = to_namespace_of(self.classes_, self.priors_)
        return Phi

    def _indicators(self, found):
        """Indicators of the classes; or labels, which are known once the rows have been read."""
        if found.classes is None:
            return found.T
        self.classes_ = found.classes
        self._check_classes(len(found.T))
        T = np.eye(len(self.classes_))[found.T]
        return T if found.is_held else Column(T, "y")

    def _keep_sums(self, problem, solution):
        """On the coordinates of a map, from sums over the rows."""
        fit = solution.cached("fit")
        spread, rank = fit.sums.spread if problem.labels else fit.sums, fit.map.width
        if problem.labels:
            self.classes_ = fit.sums.labels
            check_classification_targets(self.classes_)
            self._check_classes(spread.n)
        if self.shrinkage_ == 0 and rank > spread.n - len(self.classes_):
            raise self._singular(spread.n, rank)
        self._keep_map(problem.training, fit, center=True)
        self.means_ = (spread.cross / spread.target[None, :]).T + spread.mean[None, :]
        self._keep(solution, Fisher.of_solution(solution, problem, spread), rank)
        self.scalings_ = self.projection_.coef
        self.coef_, self.intercept_ = self.decision_.coef.T, self.decision_.b
        return fit.coordinates()

    def _keep(self, solution, fisher, rank):
        """Axes and decision functions, as combinations of ridge's functions."""
        most = min(len(self.classes_) - 1, rank)
        k = most if self.n_components is None else self.n_components
        require(
            k <= most,
            f"n_components={k} exceeds the {rank} dimensions that the kernel has on this data.",
        )
        given = self._given_priors(self.classes_, fisher.counts)
        priors = fisher.shares if given is None else given
        axes, explained = fisher.axes(priors, k)
        self.projection_ = axes.of(solution.prediction)
        self.decision_ = fisher.decision(priors, self.temperature_).of(solution.prediction)
        b = self.projection_.b
        self.priors_, self.explained_variance_ratio_ = (
            on_device_of(part, b) for part in (priors, explained)
        )

    def _given_priors(self, labels, counts):
        """Probabilities of the classes; None where their shares are meant."""
        if self.class_weight is None:
            return None if self.priors is None else np.asarray(self.priors, dtype=float)
        if self.class_weight == "balanced":
            return np.full(len(counts), 1 / len(counts))
        given: Any = self.class_weight
        labels = self.classes_ if labels is None else labels
        weights = np.array([float(given.get(c, 1.0)) for c in as_numpy(labels).tolist()])
        return weights * counts / (weights @ counts)

    def _singular(self, n, rank=None):
        why = ", and rows of a class do not differ: look at the columns."
        why = why if self.shrinkage == "auto" else ": raise it."
        return ValueError(
            f"the scatter within classes is singular{f' (rank {rank})' if rank else ''}: {n:g} "
            f"samples in {len(self.classes_)} classes at shrinkage={self.shrinkage!r}{why}"
        )

    # --- new points -------------------------------------------------------------------------------

    @on_fitted
    def transform(self, X: Data) -> np.ndarray:
        """Scores along the axes, for every row."""
        points = self._points(X)
        return as_points(self.projection_(points), points)

    @on_fitted
    def decision_function(self, X: Data) -> np.ndarray:
        """log p(c | x) of each class, up to a common constant; with two, their difference."""
        scores = self.decision_(self._points(X))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @property
    def function_(self) -> RKHSFunction | list[RKHSFunction]:
        """The decision function as a sum of kernels on the landmarks; a list for many classes."""
        check_is_fitted(self)
        return functions(self.decision_)

    @property
    def form_(self) -> str:
        """The form that was fitted."""
        check_is_fitted(self, "projection_")
        return "iterative" if isinstance(self.projection_, Expansion) else "primal"

    @property
    def _n_features_out(self):
        if isinstance(self.projection_, Expansion):
            return self.projection_.W.shape[1]
        return self.scalings_.shape[1]

    # --- checks -----------------------------------------------------------------------------------

    def _check_classes(self, n):
        """Samples, classes and parameters that go together."""
        labels, k, given = self.classes_.tolist(), self.n_components, self.class_weight
        C = len(labels)
        with pts.naming("priors"):
            priors = np.full(C, 1 / C) if self.priors is None else np.asarray(self.priors, float)
        proper = priors.shape == (C,) and np.all(priors > 0) and abs(priors.sum() - 1) <= 1e-6
        weights: Mapping[Any, Any] = given if isinstance(given, Mapping) else {}
        for fine, message in (
            (
                all(map(Domain.POSITIVE.accepts, weights.values())),
                f"class_weight must hold positive numbers, got {given!r}.",
            ),
            (C >= 2, f"a discriminant needs at least two classes, y has {C} class(es): {labels}."),
            (
                n > C,
                f"a discriminant needs more samples than classes, got {n} samples in {C} classes: "
                "nothing is left to measure the spread within classes.",
            ),
            (
                k is None or Domain.count(1, C - 1).accepts(k),
                f"n_components must be None or from 1 to classes - 1 = {C - 1}, got {k!r}.",
            ),
            (proper, f"priors must be {C} positive numbers that sum to 1, got {self.priors!r}."),
            (
                given is None or self.priors is None,
                "priors and class_weight both say how probable classes are: give one.",
            ),
        ):
            require(bool(fine), message)
        for label in weights:
            names = f"class_weight names {label!r}, and the classes are {labels}."
            require(label in self.classes_, names)
