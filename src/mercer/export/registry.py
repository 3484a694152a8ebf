"""Types that a file of `save` may hold, the names that files call them by, and what they may keep.

Files use public names ("mercer.KernelMap", "sklearn.preprocessing.StandardScaler"), so a class may
move between modules. Kernels, estimators and state of fits (below TravelsAsNumPy) are found by
themselves.

A class of scikit-learn is listed only if its fitted state is numbers and arrays that NumPy and
SciPy read, which check every index, and if no attribute is the name of something to call. So there
is nothing to check in the state itself: whatever numbers a stranger writes, the answer is a wrong
number or an exception. Not on the list, for this reason: support vector machines and trees
(compiled code indexes with their arrays), encoders and vectorizers (private caches become indices),
clusters and neighbours (compiled loops), covariances (SciPy's Mahalanobis distance does not look at
shapes), estimators made of estimators (they call methods by name), and all that holds a function.
docs/contribute/tested.md has the same table, and a test compares them.
"""

import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.gaussian_process.kernels import Kernel as GaussianKernel
from sklearn.preprocessing import StandardScaler

# Imported for their classes, which are found by themselves.
from .. import Kernel, fit, learn, preimage, solve  # noqa: F401
from ..engine import TravelsAsNumPy
from ..estimators import ClassShares, Trees  # noqa: F401

# Files may hold every class of this library below these, and arrays.
ROOTS = (Kernel, BaseEstimator, TravelsAsNumPy)

# Native modules that name themselves without their package (scikit-learn before 1.7).
_UNPACKAGED = {"_loss": "sklearn._loss._loss"}

# (module, classes, the reason why any numbers will do)
_REASONS = (
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
SKLEARN = frozenset(f"{module}.{name}" for module, names, _ in _REASONS for name in names.split())

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

_ESTIMATOR, _ESTIMATOR_OR_NONE = (BaseEstimator,), (BaseEstimator, type(None))
_KERNEL = (Kernel, str, type(None))
# A kernel, its name, a map, or a kernel of Gaussian processes.
_KERNEL_LIKE = (*_KERNEL, BaseEstimator, GaussianKernel)
_GAUSSIAN = (GaussianKernel,)
_GAUSSIANS = "sklearn.gaussian_process.kernels"

# {class: {attribute: types that it may hold}}; "mercer" stands for every class of this library.
_SLOTS: dict[str, dict[str, tuple[type, ...]]] = {
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
    "mercer.Texts": {"weights_": (TfidfTransformer,), "directions_": (TruncatedSVD,)},
    "sklearn.pipeline.Pipeline": {"steps": _ESTIMATOR_OR_NONE},  # each of them
    "sklearn.preprocessing.PowerTransformer": {"_scaler": (StandardScaler,)},
    f"{_GAUSSIANS}.Sum": {"k1": _GAUSSIAN, "k2": _GAUSSIAN},
    f"{_GAUSSIANS}.Product": {"k1": _GAUSSIAN, "k2": _GAUSSIAN},
    f"{_GAUSSIANS}.Exponentiation": {"kernel": _GAUSSIAN},
}


def slots_of(name: str) -> dict[str, tuple[type, ...]]:
    """Types that the attributes of a class must have, where declared."""
    own = _SLOTS["mercer"] if name.startswith("mercer.") else {}
    return own | _SLOTS.get(name, {})


def check_parts(name: str, values: dict[str, Any], vouched: Callable[[Any], bool]) -> None:
    """ValueError where an attribute holds what its class would call by other methods than its own.

    Slots hold what they are made for, or what is trusted by name (`vouched`). Elsewhere a class of
    this library holds data and objects of this library, but no estimator of scikit-learn, and no
    type, which could be called.
    """
    slots = slots_of(name)
    for attribute, value in values.items():
        if attribute in slots:
            parts = _steps(value) if attribute == "steps" else [value]
            fits = [isinstance(part, slots[attribute]) or vouched(part) for part in parts or ()]
            bad = [] if parts is not None and all(fits) else [value]
        elif name.startswith("mercer."):
            bad = [part for part in _inside(value) if _is_foreign(part) and not vouched(part)]
        else:
            continue  # of scikit-learn: seen to be plain data before it was built
        if bad:
            kind = bad[0].__name__ if isinstance(bad[0], type) else type(bad[0]).__name__
            raise ValueError(f"{name}.{attribute} cannot hold {kind}")


def _steps(value):
    """The steps of a pipeline, None for one that passes rows on; None where these are no steps."""
    pairs: list[Any] = value if isinstance(value, list) else [None]
    if not all(isinstance(p, tuple) and len(p) == 2 and isinstance(p[0], str) for p in pairs):
        return None
    return [None if isinstance(s, str) and s == "passthrough" else s for _, s in pairs]


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


# --- names ----------------------------------------------------------------------------------------


def public_name(thing: Any):
    """The name of a class or function in files: where it is public, if it is."""
    name = getattr(thing, "__qualname__", None) or thing.__name__
    module = getattr(thing, "__module__", None)
    if module is None:  # a ufunc
        homes = ("numpy", "scipy.special")
        held = (home for home in homes if getattr(sys.modules.get(home), name, None) is thing)
        module = next(held, "__main__")
    module = _UNPACKAGED.get(module, module)
    root = module.split(".")[0]
    if root == "mercer":  # a class that only its own file uses is found without its underscore
        return f"mercer.{name.lstrip('_')}"
    if root in ("numpy", "pandas", "scipy", "sklearn"):
        parts = module.split(".")
        for i in range(1, len(parts)):
            parent = ".".join(parts[:i])
            if getattr(sys.modules.get(parent), name, None) is thing:
                return f"{parent}.{name}"
    return f"{module}.{name}"


def find(name: str):
    """The class or function of this name; its module is imported, which runs the module's code."""
    return pkgutil.resolve_name(name)


def _own_classes():
    """Classes of this library that files may hold, by name."""
    found = [c for root in ROOTS for c in _subclasses(root)]
    return {public_name(c): c for c in found if c.__module__.split(".")[0] == "mercer"}


def listed_class(name: str):
    """The class that a file means by this name, or None where it is not listed here."""
    if name in SKLEARN:
        return find(name)
    if not name.startswith("mercer."):
        return None
    if name not in _KNOWN:  # perhaps of a module that is imported when it is first used
        mercer = sys.modules["mercer"]
        attribute = name.removeprefix("mercer.")
        if attribute in mercer.__all__:
            getattr(mercer, attribute)
        _KNOWN.update(_own_classes())
    return _KNOWN.get(name)


# Classes that were asked for by name: listing all of them for every entry of a file is slow.
_KNOWN: dict[str, type] = {}


def _subclasses(base):
    for c in base.__subclasses__():
        yield c
        yield from _subclasses(c)


def bad_attribute(cls, names: Iterable[str], trusted: bool = False):
    """The first of these names that an object of this class does not keep, or None.

    Kernels keep parameters, and estimators also fitted attributes (with an underscore at the end)
    and private ones; others keep what is not an attribute of the class, so that no method is
    replaced. Names
    with two leading underscores change what Python or NumPy do with an object
    (``__array_interface__``), and are never kept, by trusted classes either.
    """
    if is_dataclass(cls):
        own = {f.name for f in fields(cls)}
    else:
        # Parameters, of base classes too: SVC keeps an epsilon that only its base takes.
        starts = [vars(base)["__init__"] for base in cls.__mro__[:-1] if "__init__" in vars(base)]
        own = {name for start in starts for name in inspect.signature(start).parameters}
        own -= {"self", "args", "kwargs"}

    def is_kept(name: str):
        if not name.isidentifier() or name.startswith("__"):
            return False
        if trusted or name in own:
            return True
        if is_dataclass(cls) or issubclass(cls, Kernel) or hasattr(cls, name):
            return False
        return not issubclass(cls, BaseEstimator) or "_" in (name[0], name[-1])

    return next((name for name in names if not is_kept(name)), None)
