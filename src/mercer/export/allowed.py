"""Contents of a file that need no `trusted=`: the classes of scikit-learn, and what slots may hold.

A class is listed only if its fitted state is numbers and arrays that NumPy and SciPy read, which
check every index, and if no attribute is the name of something to call. So there is nothing to
check in the state itself: whatever numbers a stranger writes, the answer is a wrong number or an
exception. Not on the list, for this reason: support vector machines and trees (compiled code
indexes with their arrays), encoders and vectorizers (private caches become indices), clusters and
neighbours (compiled loops), covariances (SciPy's Mahalanobis distance does not look at shapes),
estimators made of estimators (they call methods by name), and all that holds a function.
docs/contribute/tested.md has the same table, and a test compares them.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.gaussian_process.kernels import Kernel as GaussianKernel
from sklearn.preprocessing import StandardScaler

from .. import Kernel

# (module, classes, the reason why any numbers will do)
REASONS = (
    (
        "sklearn.pipeline",
        "Pipeline",
        "hands rows from step to step by fixed methods; every step must be an estimator",
    ),
    (
        "sklearn.preprocessing",
        "Binarizer KernelCenterer MaxAbsScaler MinMaxScaler Normalizer PowerTransformer "
        "QuantileTransformer RobustScaler StandardScaler",
        "arithmetic of NumPy with one or a few numbers per column",
    ),
    ("sklearn.impute", "SimpleImputer", "NumPy puts one number per column into the gaps"),
    (
        "sklearn.feature_extraction.text",
        "TfidfTransformer",
        "NumPy takes one weight per column, and checks the column",
    ),
    ("sklearn.feature_selection", "VarianceThreshold", "columns are chosen by a mask of NumPy"),
    (
        "sklearn.decomposition",
        "FactorAnalysis FastICA IncrementalPCA PCA TruncatedSVD",
        "products of matrices",
    ),
    (
        "sklearn.cross_decomposition",
        "CCA PLSCanonical PLSRegression PLSSVD",
        "products of matrices",
    ),
    ("sklearn.random_projection", "GaussianRandomProjection", "a product of matrices"),
    (
        "sklearn.kernel_approximation",
        "RBFSampler SkewedChi2Sampler",
        "a product of matrices and a function of NumPy",
    ),
    (
        "sklearn.linear_model",
        "ARDRegression BayesianRidge ElasticNet ElasticNetCV HuberRegressor Lars LarsCV Lasso "
        "LassoCV LassoLars LassoLarsCV LassoLarsIC LinearRegression LogisticRegression "
        "LogisticRegressionCV MultiTaskElasticNet MultiTaskElasticNetCV MultiTaskLasso "
        "MultiTaskLassoCV OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV QuantileRegressor "
        "Ridge RidgeCV TheilSenRegressor",
        "rows times coefficients; NumPy looks classes up and checks their numbers",
    ),
    (
        "sklearn.svm",
        "LinearSVC LinearSVR",
        "rows times coefficients: liblinear is used by `fit` alone",
    ),
    (
        "sklearn.naive_bayes",
        "BernoulliNB ComplementNB GaussianNB MultinomialNB",
        "sums and products of NumPy",
    ),
    (
        "sklearn.discriminant_analysis",
        "LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis",
        "products of matrices",
    ),
    ("sklearn.mixture", "BayesianGaussianMixture GaussianMixture", "products of matrices"),
    (
        "sklearn.gaussian_process.kernels",
        "ConstantKernel DotProduct ExpSineSquared Exponentiation Matern Product RBF "
        "RationalQuadratic Sum WhiteKernel",
        "formulas of Euclidean distances and inner products; operands must be such kernels",
    ),
)
SKLEARN = frozenset(f"{module}.{name}" for module, names, _ in REASONS for name in names.split())

# Settings of these classes with which a model writes files, or goes on from what the file says.
SETTINGS: dict[str, Any] = {"memory": None, "warm_start": False}
# Attributes of mercer's classes that are handed on by name: numbers alone, unless trusted. SciPy's
# Mahalanobis distance does not look at the shape of its matrix.
NUMBERS_BY_NAME = "metric_params"

# Types that are given as arguments (dtype=np.float64). They can be called: only objects of trusted
# classes may hold them.
_SCALARS = {*np.sctypeDict.values(), np.number, np.integer, np.floating}
PLAIN_TYPES: dict[str, type] = {
    **{f"builtins.{t.__name__}": t for t in (bool, bytes, complex, float, int, object, str)},
    **{f"numpy.{t.__name__}": t for t in _SCALARS},
}


# --- slots ----------------------------------------------------------------------------------------

# Whether a slot may hold a value; `vouched` says whether its type is trusted by name.
Fits = Callable[[Any, Callable[[Any], bool]], bool]


def _one_of(*types: type) -> Fits:
    return lambda value, vouched: isinstance(value, types) or vouched(value)


def _steps(value: Any, vouched: Callable[[Any], bool]) -> bool:
    def is_step(pair: Any) -> bool:
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            return False
        step = pair[1]
        passes = isinstance(step, str) and step == "passthrough"
        return passes or isinstance(step, (BaseEstimator, type(None))) or vouched(step)

    return isinstance(value, list) and all(map(is_step, value))


_ESTIMATOR, _ESTIMATOR_OR_NONE = _one_of(BaseEstimator), _one_of(BaseEstimator, type(None))
_KERNEL = _one_of(Kernel, str, type(None))
# A kernel, its name, a map, or a kernel of Gaussian processes.
_KERNEL_LIKE = _one_of(Kernel, str, BaseEstimator, GaussianKernel, type(None))
_GAUSSIAN = _one_of(GaussianKernel)
_GAUSSIANS = "sklearn.gaussian_process.kernels"

# {class: {attribute: what it must hold}}; "mercer" stands for every class of this library.
SLOTS: dict[str, dict[str, Fits]] = {
    "mercer": {
        "estimator": _ESTIMATOR,
        "estimator_": _ESTIMATOR,
        "encoder": _ESTIMATOR_OR_NONE,
        "encoder_": _ESTIMATOR_OR_NONE,
        "kernel_map_": _ESTIMATOR_OR_NONE,
        "machine_": _ESTIMATOR_OR_NONE,
        "kernel": _KERNEL_LIKE,
        "kernel_": _KERNEL,
        "left": _KERNEL,
        "right": _KERNEL,
    },
    "mercer.Texts": {"weights_": _one_of(TfidfTransformer), "directions_": _one_of(TruncatedSVD)},
    "sklearn.pipeline.Pipeline": {"steps": _steps},
    "sklearn.preprocessing.PowerTransformer": {"_scaler": _one_of(StandardScaler)},
    f"{_GAUSSIANS}.Sum": {"k1": _GAUSSIAN, "k2": _GAUSSIAN},
    f"{_GAUSSIANS}.Product": {"k1": _GAUSSIAN, "k2": _GAUSSIAN},
    f"{_GAUSSIANS}.Exponentiation": {"kernel": _GAUSSIAN},
}


def slots_of(name: str) -> dict[str, Fits]:
    """Types that the attributes of a class must have, where declared."""
    own = SLOTS["mercer"] if name.startswith("mercer.") else {}
    return own | SLOTS.get(name, {})


def check_parts(name: str, values: dict[str, Any], vouched: Callable[[Any], bool]) -> None:
    """ValueError where an attribute holds what its class would call by other methods than its own.

    Slots hold what they are made for. Elsewhere a class of this library holds data and objects of
    this library, but no estimator of scikit-learn, and no type, which could be called.
    """
    slots = slots_of(name)
    for attribute, value in values.items():
        if attribute in slots:
            bad = [] if slots[attribute](value, vouched) else [value]
        elif name.startswith("mercer."):
            bad = [part for part in _inside(value) if _is_foreign(part) and not vouched(part)]
        else:
            continue  # of scikit-learn: seen to be plain data before it was built
        if bad:
            kind = bad[0].__name__ if isinstance(bad[0], type) else type(bad[0]).__name__
            raise ValueError(f"{name}.{attribute} cannot hold {kind}")


def _is_foreign(part: Any) -> bool:
    if isinstance(part, type):
        return True
    foreign = isinstance(part, (BaseEstimator, GaussianKernel))
    return foreign and type(part).__module__.split(".")[0] != "mercer"


def _inside(value: Any) -> Iterator[Any]:
    """The value and all that lists, tuples, sets, dicts and arrays of objects hold, each once."""
    seen: set[int] = set()
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, (list, tuple, set, frozenset, dict, np.ndarray)):
            if id(part) in seen:
                continue
            seen.add(id(part))
            if isinstance(part, dict):
                left += [*part, *part.values()]
            elif not isinstance(part, np.ndarray):
                left += part
            elif part.dtype == object:
                left += part.ravel().tolist()
        else:
            yield part
