"""Kernelized: any scikit-learn estimator in the feature space of a kernel ([NPT] III-B)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import combinations
from numbers import Real
from types import MethodType
from typing import Any, Self, TypeVar, cast

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import (
    BaseEstimator,
    MetaEstimatorMixin,
    TransformerMixin,
    clone,
    is_classifier,
)
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..engine import (
    Domain,
    MemoryLimitError,
    Resources,
    eps_of,
    is_numpy,
    matrix_bytes,
    sklearn_compat,
    tiles,
)
from ..expansion import Expansion, RKHSFunction
from ..kernels import Data, Input, KernelLike, Precomputed, as_kernel
from ..rows import Column, Training, first_block, refuse_stream
from ..space import refute_by_sample
from .base import all_or_nothing, on_fitted, to_namespace_of
from .kernel_map import KernelMap
from .map_method import MapMethod, functions
from .preimages import has_points

_Fit = TypeVar("_Fit", bound=Callable[..., Any])

# Methods that scikit-learn routes metadata to (sample_weight and the like).
_ROUTED = (
    *("fit", "fit_predict", "fit_transform", "predict", "predict_proba", "predict_log_proba"),
    *("decision_function", "transform", "inverse_transform", "score"),
)
# Those of the estimator's tags that are its kernel version's, too.
_TAGS = (
    *("estimator_type", "target_tags", "transformer_tags", "classifier_tags", "regressor_tags"),
    *("non_deterministic", "array_api_support"),
)
# Attributes of an SVM on kernel values that need coordinates, which are made when asked for.
_ON_COORDINATES = ("estimator_", "kernel_map_", "coef_", "support_vectors_", "shape_fit_")


def _inner_has(name):
    """Whether the estimator inside has the method: fitted where there is one, else as given."""

    def check(self):
        getattr(vars(self).get("estimator_", self.estimator), name)
        return True

    return check


def _delegated(name: str, text: str) -> Callable[..., Any]:
    """A method that maps its points and asks the estimator inside; there only if that has it."""

    def method(self, X: Data, *args: object, **params: object) -> np.ndarray:
        inner, Phi = self._asked(X)
        return getattr(inner, name)(Phi, *args, **self._routed(name, params))

    method.__name__, method.__doc__ = name, text
    method.__qualname__ = f"Kernelized.{name}"
    return available_if(_inner_has(name))(on_fitted(method))


class _WeightedAsInner:
    """`fit`, with an argument sample_weight exactly where the estimator inside takes one.

    Meta-estimators (AdaBoost, MultiOutputRegressor) look for it in the signature.
    """

    def __init__(self, plain):
        self.plain = plain

        # Named `fit`, so that its bound method pickles as one.
        def fit(self, X, y=None, sample_weight=None, **params):
            if sample_weight is not None:
                params["sample_weight"] = sample_weight
            return plain(self, X, y, **params)

        fit.__doc__ = plain.__doc__
        self.weighted = fit

    def __get__(self, model, owner=None):
        if model is None:
            return self.plain
        inner = model.estimator
        takes = hasattr(inner, "fit") and has_fit_parameter(inner, "sample_weight")
        return MethodType(self.weighted if takes else self.plain, model)


# Type checkers see the method as it is written.
_weighted_as_inner: Callable[[_Fit], _Fit] = cast(Any, _WeightedAsInner)


class Kernelized(MetaEstimatorMixin, TransformerMixin, MapMethod):
    """Turn any scikit-learn estimator into its kernel version.

    Fits the estimator on the coordinates of the kernel's feature space, and hands it the
    coordinates of new points (algorithm KM of [NPT] III-B). Inner products of the coordinates are
    the kernel, so an estimator that works with inner products or distances alone (linear models,
    SVM, PCA, LDA, k-means, nearest neighbours) becomes exactly its kernel version. Others (lasso,
    trees, ICA, diagonal mixtures) depend on the basis, which a `KernelMap` given as `kernel`
    chooses. Distances of a new point lack its residual, the same for all training points;
    ``KernelMap(kernel, append_residual=True)`` restores it.

    Estimators that scale every direction to the same spread (StandardScaler, PCA(whiten=True),
    EllipticEnvelope, PLSRegression, LinearDiscriminantAnalysis without a number as its shrinkage)
    would scale up directions of size 1e-8, which are all rounding. With a plain kernel they get a
    map with tol=1.5e-8 (the root of the rounding unit), whose smallest directions have half of
    their digits; a `KernelMap` given as `kernel` keeps its own tolerance.

    Linear SVMs (SVC, NuSVC, SVR, NuSVR, OneClassSVM with kernel="linear") get the kernel itself
    where that is cheaper, which has the same solution ([NPT] IV-B): as fast as scikit-learn's own
    machine. Sparse rows and Gram matrices take the same way. Their `kernel_map_` and `estimator_`
    are made when they are asked for.

    Passed on to the estimator, each where it has the method: fit_predict, fit_transform, predict,
    predict_proba, predict_log_proba, decision_function, score_samples, kneighbors, score,
    transform, inverse_transform, get_feature_names_out; no other method is. Further arguments
    (sample_weight, return_std) go along, and `fit` has an argument sample_weight where the
    estimator's has. Fitted attributes (classes_, labels_, coef_, ...) are read from the estimator;
    they speak of coordinates. Nothing is centred unless the map is.

    Parameters
    ----------
    estimator : estimator
        Classifier, regressor, transformer, clusterer or outlier detector.
    kernel : Kernel, str, callable or KernelMap, default="rbf"
        A kernel, its name as in scikit-learn ("rbf", "poly", "linear", ...), a function of two
        points, or a :class:`KernelMap` for options of the map.

    Attributes
    ----------
    kernel_map_ : KernelMap
        The fitted map.
    estimator_ : the estimator, fitted on coordinates
        A clone; the estimator that was passed is left as it is.
    dual_coef_ : array
        Of a linear estimator: its coef_ on the landmarks of the map instead of the coordinates,
        row by row. Of an SVC: its own dual variables.
    function_ : RKHSFunction, or a list of one per row of coef_
        Of a linear estimator: coef_ and intercept_ as a sum of kernels, [NPT] Lemma 6.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from sklearn.linear_model import LogisticRegression
    >>> from mercer import RBF, Kernelized
    >>> X, y = make_circles(200, factor=0.3, noise=0.1, random_state=0)
    >>> model = Kernelized(LogisticRegression(), RBF(1.0)).fit(X[:100], y[:100])
    >>> model.score(X[100:], y[100:])
    1.0
    >>> model.set_params(estimator__C=10.0, kernel__gamma=2.0)
    Kernelized(estimator=LogisticRegression(C=10.0), kernel=RBF(gamma=2.0))
    >>> bool(abs(model.function_(X) - model.decision_function(X)).max() < 1e-6)
    True
    >>> model.predict_proba(X[100:101]).round(1)
    array([[0.2, 0.8]])

    What the estimator can do, its kernel version can do:

    >>> from sklearn.cluster import KMeans
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.neighbors import NearestNeighbors
    >>> Kernelized(KMeans(2, random_state=0), RBF(1.0)).fit_predict(X).shape
    (200,)
    >>> pca = Kernelized(PCA(2), RBF(1.0)).fit(X)
    >>> pca.transform(X).shape, pca.get_feature_names_out(), pca.inverse_transform([[0, 0]]).shape
    ((200, 2), array(['pca0', 'pca1'], dtype=object), (1, 2))
    >>> distances, rows = Kernelized(NearestNeighbors(), RBF(1.0)).fit(X).kneighbors(X[:1])
    >>> rows[0, 0]
    np.int64(0)
    >>> from sklearn.svm import OneClassSVM
    >>> Kernelized(OneClassSVM(kernel="linear"), RBF(1.0)).fit(X).score_samples(X).shape
    (200,)
    """

    domains = {
        "estimator": Domain(
            lambda given: hasattr(given, "fit") and not isinstance(given, type),
            "a scikit-learn estimator",
            ": Kernelized(LogisticRegression(), kernel='rbf')",
            TypeError,
        )
    }

    def __init__(self, estimator: BaseEstimator, kernel: KernelLike | KernelMap = "rbf") -> None:
        self.estimator = estimator
        self.kernel = kernel

    # --- fitting ----------------------------------------------------------------------------------

    @_weighted_as_inner
    @all_or_nothing
    def fit(self, X: Input, y: ArrayLike | None = None, **params: object) -> Self:
        """Fit the map, then the estimator on its coordinates.

        Chunked rows (a stream or a Dask collection of many rows) need an estimator with
        partial_fit, which learns from one chunk after the other.
        """
        training, changes, params = self._begin(X, y, "fit", params)
        if training.is_held:
            inner, Phi = self._inputs(training, changes)
            inner.fit(Phi, training.T, **params)
            return self
        inner = self._new_estimator()
        if not hasattr(inner, "partial_fit"):
            raise TypeError(
                f"{type(inner).__name__} has no partial_fit, and needs all coordinates at once. "
                "Use an estimator that has (SGDClassifier, SGDRegressor, MiniBatchKMeans), or "
                "KernelMap.transform(X), which is lazy, and a Dask estimator on it."
            )
        self._fit_map(training, **changes)
        self.estimator_ = _fit_in_parts(inner, self.kernel_map_, training, params)
        return self

    @available_if(_inner_has("fit_predict"))
    @all_or_nothing
    def fit_predict(self, X: Data, y: ArrayLike | None = None, **params: object) -> np.ndarray:
        """Fit, and return the estimator's labels of the training points."""
        training, changes, params = self._begin(X, y, "fit_predict", params)
        inner, Phi = self._inputs(training, changes)
        return inner.fit_predict(Phi, training.T, **params)

    @all_or_nothing
    def fit_transform(self, X: Data, y: ArrayLike | None = None, **params: object) -> np.ndarray:
        """Fit, and return the estimator's transform of the training points."""
        training, changes, params = self._begin(X, y, "fit_transform", params)
        inner, Phi = self._inputs(training, changes)
        if hasattr(inner, "fit_transform"):
            return inner.fit_transform(Phi, training.T, **params)
        return inner.fit(Phi, training.T, **params).transform(Phi)

    def _begin(self, X, y, caller, params):
        """(the rows, options of the map, what is passed on to the estimator)."""
        if caller != "fit":
            refuse_stream(X)
        params = dict(self._routed(caller, params))
        training = self._read(X, y, params.pop("sample_weight", None), targets="as given")
        if caller != "fit" and not training.is_held:
            raise TypeError(
                f"{caller} needs the coordinates of all rows at once: for chunked rows "
                f"call fit(X), then {caller.removeprefix('fit_')}(X)."
            )
        if training.is_held and training.weights is not None:
            params["sample_weight"] = to_namespace_of(training.weights, training.points)
        for name in ("machine_", "points_", "estimator_", "kernel_map_"):
            self.__dict__.pop(name, None)
        # A tolerance that is safe for the estimator, where the user has not given the map.
        safe = _whitens(self.estimator) and not isinstance(self.kernel, KernelMap)
        return training, {"tol": _safe_tol(X)} if safe else {}, params

    def _inputs(self, training, changes):
        """A fresh estimator, and its input for the training points."""
        machine = _machine_of(self, training)
        if machine is not None:
            self.kernel_, self.points_ = training.kernel, training.points
            self.machine_ = machine
            return machine, _inputs(self.kernel_, self.points_)
        inner = self._new_estimator()
        fit = self._fit_map(training, **changes)
        Phi = fit.coordinates(sparse=True)
        if Phi is None:
            raise MemoryLimitError(
                f"{type(inner).__name__} needs the coordinates of all {fit.n} rows at once, more "
                "than memory_limit allows: limit the rank with kernel=KernelMap(kernel, "
                "max_rank=...)."
            )
        self.estimator_ = inner
        return inner, Phi

    def _asked(self, X):
        """(the fitted estimator, its input for new rows): kernel values or coordinates."""
        machine = vars(self).get("machine_")
        if machine is None:
            return self.estimator_, self.kernel_map_.transform(X)
        return machine, _inputs(self.kernel_, self._points(X), self.points_)

    def _new_estimator(self):
        inner = clone(self.estimator)
        if hasattr(inner, "set_output"):
            inner.set_output(transform="default")  # containers are made here, with X's index
        return inner

    # --- what the estimator does ------------------------------------------------------------------

    predict = _delegated("predict", "The estimator's prediction for every row.")
    predict_proba = _delegated("predict_proba", "Probabilities of the classes for every row.")
    predict_log_proba = _delegated("predict_log_proba", "Their logarithms.")
    decision_function = _delegated("decision_function", "The estimator's decision values.")
    score_samples = _delegated("score_samples", "The estimator's score of every row.")
    kneighbors = _delegated("kneighbors", "Nearest training points, by distance of coordinates.")

    @available_if(_inner_has("score"))
    @on_fitted
    def score(self, X: Data, y: ArrayLike | None = None, **params: object) -> float:
        """The estimator's own score."""
        inner, Phi = self._asked(X)
        return inner.score(Phi, y, **self._routed("score", params))

    @on_fitted
    def transform(self, X: Data) -> np.ndarray:
        """The estimator's transform of the coordinates of every row."""
        return self.estimator_.transform(self.kernel_map_.transform(X))

    @available_if(lambda self: _inner_has("inverse_transform")(self) and has_points(self))
    def inverse_transform(self, Z: ArrayLike) -> np.ndarray:
        """From outputs Z to coordinates by the estimator, and to inputs by the map's pre-images."""
        check_is_fitted(self)
        return self.kernel_map_.inverse_transform(self.estimator_.inverse_transform(Z))

    @available_if(_inner_has("get_feature_names_out"))
    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Names of the columns that transform returns: the estimator's."""
        check_is_fitted(self)
        return self.estimator_.get_feature_names_out()

    # --- linear estimators as functions -----------------------------------------------------------

    @property
    def dual_coef_(self) -> np.ndarray:
        """The coefficients of the landmarks; for an SVM, its dual variables."""
        check_is_fitted(self)
        inner = vars(self).get("machine_") or self.estimator_
        if hasattr(inner, "dual_coef_"):
            return inner.dual_coef_
        coef, intercept = linear_coef(self)
        try:
            weights, _ = self.kernel_map_.landmark_weights(coef.T, intercept)
        except ValueError as reason:  # a closed map, or the residual coordinate
            raise AttributeError(f"dual_coef_ is not available: {reason}") from reason
        return weights.T if np.ndim(self.estimator_.coef_) > 1 else weights[:, 0]

    @property
    def function_(self) -> RKHSFunction | list[RKHSFunction]:
        """coef_ and intercept_ as functions of the input, sums of kernels on the landmarks."""
        check_is_fitted(self)
        machine = vars(self).get("machine_")
        if machine is not None:
            return functions(_expansion_of_machine(machine, self.kernel_, self.points_))
        coef, intercept = linear_coef(self)
        return functions(self.kernel_map_.map_.coefficients(coef.T, intercept))

    def __getattr__(self, name):
        """Fitted attributes of the estimator inside: classes_, labels_, offset_, ..."""
        own = getattr(type(self), name, None)
        if isinstance(own, property):
            return own.__get__(self)  # it raised AttributeError: say why once more
        machine, inner = vars(self).get("machine_"), vars(self).get("estimator_")
        if machine is not None and inner is None:
            inner = machine
            if name in _ON_COORDINATES:
                training = replace(Training.of(self.kernel_, self.points_), learner=self)
                fit = self._fit_map(training)
                inner = self.estimator_ = _on_coordinates(machine, fit.coordinates())
                if name in vars(self):
                    return vars(self)[name]
        if inner is None or name.startswith("_") or not name.endswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(inner, name)

    # --- scikit-learn's conventions ---------------------------------------------------------------

    def _routed(self, caller, params):
        """Metadata for the estimator: all of it, unless routing is on."""
        if not sklearn_compat.routing_enabled() or caller not in _ROUTED:
            return params
        return process_routing(self, caller, **params).estimator[caller]

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata goes to the estimator's method of the same name."""
        mapping = MethodMapping()
        for name in _ROUTED:
            mapping.add(caller=name, callee=name)
        router = MetadataRouter(owner=type(self).__name__)
        return router.add(estimator=self.estimator, method_mapping=mapping)

    def _sk_visual_block_(self):
        """Its diagram in notebooks: the kernel, then the estimator."""
        kernel = self.kernel if isinstance(self.kernel, KernelMap) else as_kernel(self.kernel)
        inner = vars(self).get("estimator_", self.estimator)
        names = [f"kernel: {kernel!r}", f"estimator: {type(inner).__name__}"]
        return sklearn_compat.visual_block([repr(kernel), inner], names)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        for name in _TAGS:
            setattr(tags, name, getattr(inner, name))
        return tags


# scikit-learn has wrapped these for set_output by now; here they are hidden where the estimator
# inside is not a transformer.
Kernelized.transform = available_if(_inner_has("transform"))(  # type: ignore[method-assign]
    Kernelized.transform
)
Kernelized.fit_transform = available_if(  # type: ignore[method-assign]
    lambda self: hasattr(self.estimator, "fit_transform") or hasattr(self.estimator, "transform")
)(Kernelized.fit_transform)


def linear_coef(model: Kernelized) -> tuple[np.ndarray, np.ndarray]:
    """(coef, intercept) of a linear estimator: one row over the coordinates per function."""
    inner, width = model.estimator_, model.kernel_map_.map_.width
    coef = getattr(inner, "coef_", None)
    if coef is None or not 1 <= np.ndim(coef) <= 2 or coef.shape[-1] != width:
        raise AttributeError(
            f"function_ and dual_coef_ exist for linear estimators (with a coef_ over the "
            f"{width} coordinates); {type(inner).__name__} is not one."
        )
    coef = coef.toarray() if scipy.sparse.issparse(coef) else coef
    coef = coef if coef.ndim == 2 else coef[None, :]
    if hasattr(inner, "x_rotations_"):
        # PLS centres its input first: its intercept_ belongs to centred coordinates.
        intercept = inner.predict(np.zeros((1, width)))
    elif hasattr(inner, "offset_") and not hasattr(inner, "intercept_"):
        intercept = -inner.offset_  # outlier detectors
    else:
        intercept = getattr(inner, "intercept_", 0.0)
    return coef, np.broadcast_to(np.ravel(intercept), (coef.shape[0],))


# --- chunked rows --------------------------------------------------------------------------------


def _fit_in_parts(estimator, kernel_map, training, params):
    """estimator.partial_fit on the coordinates of one piece of the rows after the other."""
    takes = inspect.signature(estimator.partial_fit).parameters
    if is_classifier(estimator) and "classes" in takes:
        params = {"classes": training.labels()} | params
    columns = [Column(training.T, "y")]
    if training.weights is not None:
        columns.append(training.weights)
    rows = training.rows_of(kernel_map.kernel_)
    return rows.chain(partial(_fitted_further, kernel_map.map_, params), estimator, columns)


def _fitted_further(feature_map, params, estimator, points, y=None, weights=None):
    """The estimator after one more block of rows, mapped in panels."""
    for Phi, where in feature_map.panels(points):
        targets, own = None if y is None else y[where], params
        if weights is not None:
            if not np.any(weights[where]):
                continue  # scikit-learn refuses weights that are all zero
            own = params | {"sample_weight": weights[where]}
        estimator.partial_fit(Phi, targets, **own)
    return estimator


# --- estimators that divide coordinates by their spread -----------------------------------------

# A map of full rank keeps directions down to rounding: of size 1e-8, and known to one digit or
# none. Inner products and distances do not notice. An estimator that scales every direction to the
# same spread makes noise of them as large as everything else.

# Scale every column, or every direction, to the same spread; or invert a covariance.
_WHITEN = {
    *("MaxAbsScaler", "MinMaxScaler", "PowerTransformer", "QuantileTransformer"),
    *("EllipticEnvelope", "EmpiricalCovariance", "MinCovDet", "QuadraticDiscriminantAnalysis"),
}
# The same, where their argument `scale` asks for it.
_SCALE_BY_CHOICE = {"CCA", "PLSCanonical", "PLSRegression", "PLSSVD"}


def _whitens(estimator: Any) -> bool:
    """Whether the estimator, or one inside it, scales small directions up.

    Not PCA(n, whiten=True) and FastICA(n): they scale the n largest directions alone.
    """
    inside: list[Any] = []
    if hasattr(estimator, "get_params") and not isinstance(estimator, type):
        # Steps of a pipeline, the base of a meta-estimator.
        inside = [value for value in estimator.get_params().values() if hasattr(value, "fit")]
    return any(map(_whitens_itself, [estimator, *inside]))


def _safe_tol(X: Any) -> float:
    """The root of the rounding unit: a direction that small still has half of its digits."""
    block = first_block(X)
    dtypes = getattr(block, "dtypes", None)  # a frame's, also Dask's
    if dtypes is not None and all(str(dtype).lower() == "float32" for dtype in dtypes):
        block = np.float32(0)  # frames become arrays in the precision of their columns
    return eps_of(block) ** 0.5


def _whitens_itself(estimator: Any) -> bool:
    names = {cls.__name__ for cls in type(estimator).__mro__}
    if names & {"StandardScaler", "RobustScaler"}:
        return bool(getattr(estimator, "with_std", getattr(estimator, "with_scaling", True)))
    if names & _SCALE_BY_CHOICE:
        return bool(estimator.scale)
    if "LinearDiscriminantAnalysis" in names:
        # A number shrinks towards the mean spread; "auto" standardises columns first.
        return estimator.covariance_estimator is None and not (
            isinstance(estimator.shrinkage, Real) and float(estimator.shrinkage) > 0
        )
    if names & _WHITEN:
        return True
    return bool(getattr(estimator, "whiten", False)) and (
        getattr(estimator, "n_components", None) is None
    )


# --- SVMs on kernel values: the same dual problem, [NPT] (17)-(20), for less ----------------------

_MACHINES = (SVC, NuSVC, SVR, NuSVR, OneClassSVM)
# Formulas that libsvm evaluates itself, with the same parameters, and values that are given.
_LIBSVM = ("linear", "rbf", "poly", "precomputed")
# Coordinates up to here cost libsvm less than values of the kernel.
_FEW_COORDINATES = 50
# Copies of the kernel matrix: K, and what libsvm keeps of it in single precision.
_COPIES = 1.5


def _machine_of(model, training):
    """An unfitted machine of the kernel itself, for a linear SVM; None where there is none.

    Also where coordinates are cheaper.
    """
    inner, kernel, points = model.estimator, training.kernel, training.points
    if type(inner) not in _MACHINES or inner.kernel != "linear":
        return None
    if isinstance(model.kernel, KernelMap):
        return None
    named = _named(kernel)
    if type(kernel) is Precomputed and is_numpy(points):
        refute_by_sample(kernel, points)
        return clone(inner).set_params(**named)
    if kernel.kind != "vectors" or kernel.is_psd is not True or kernel.runs_user_code:
        return None
    dense = is_numpy(points)
    if named is not None and (dense or (scipy.sparse.issparse(points) and points.nnz < 2**31)):
        return clone(inner).set_params(**named)
    if not dense:
        return None
    own = kernel.explicit_dim(points.shape[1])
    few = own is not None and own <= _FEW_COORDINATES
    if few or matrix_bytes(len(points), _COPIES) > Resources().limit():
        return None
    return clone(inner).set_params(kernel="precomputed")


def _named(kernel):
    """The kernel's name and parameters for libsvm; None where that evaluates no such formula."""
    given, names = kernel.get_params(), [name for name in kernel.sklearn_names if name in _LIBSVM]
    if not names or any(np.ndim(value) for value in given.values()):
        return None
    return {"kernel": names[0]} | given


def _inputs(kernel, points, training=None):
    """The input of the machine: points, or their kernel values."""
    if _named(kernel) is None:
        other = None if training is None else kernel.layout.in_double(training)
        return tiles.evaluate(kernel, kernel.layout.in_double(points), other)
    if not scipy.sparse.issparse(points):
        return points
    if training is not None and not scipy.sparse.issparse(training):
        return points.toarray()  # dense, as the training points are
    places = (part.astype(np.int32, copy=False) for part in (points.indices, points.indptr))
    return scipy.sparse.csr_matrix((points.data, *places), shape=points.shape)


def _on_coordinates(machine, Phi):
    """The same machine as one of coordinates: its support vectors are those of the map."""
    linear = clone(machine)
    vars(linear).update(vars(machine))
    linear.kernel, linear.n_features_in_, linear.shape_fit_ = "linear", Phi.shape[1], Phi.shape
    if scipy.sparse.issparse(machine.dual_coef_):
        names = ("dual_coef_", "_dual_coef_")
        vars(linear).update({name: vars(machine)[name].toarray() for name in names}, _sparse=False)
    vars(linear).pop("feature_names_in_", None)
    linear.support_vectors_ = np.ascontiguousarray(Phi[machine.support_])
    return linear


def _expansion_of_machine(machine, kernel, points):
    """Its functions as sums of kernels at the support vectors: one, or one for each pair."""
    dual, b = machine.dual_coef_, np.ravel(machine.intercept_)
    dual = dual.toarray() if scipy.sparse.issparse(dual) else dual
    W = dual.T
    if len(b) > 1:  # libsvm lays coefficients out by class
        codes = np.repeat(np.arange(len(machine.n_support_)), machine.n_support_)
        pairs = combinations(range(len(dual) + 1), 2)
        columns = [
            np.where(codes == i, dual[j - 1], np.where(codes == j, dual[i], 0)) for i, j in pairs
        ]
        W = np.stack(columns, axis=1)
    n = points.shape[0]
    S = kernel.layout.support(kernel, points, machine.support_, np.arange(n), n)
    return Expansion(kernel, S, np.ascontiguousarray(W), b)
