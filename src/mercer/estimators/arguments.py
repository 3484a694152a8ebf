"""Arguments of scikit-learn's kernel methods that are written differently here.

There kernel parameters are copied onto every estimator; here they belong to the kernel. A call
with the old spelling is answered with the new one, which means the same: also what was left out,
since some defaults differ.
"""

from collections.abc import Callable, Mapping
from functools import partial, wraps
from inspect import signature
from typing import Any, Self

from sklearn.base import BaseEstimator

from ..kernels.capabilities import NAMED
from ..kernels.texts import printed

OF_THE_KERNEL = ("gamma", "degree", "coef0", "kernel_params")
# What scikit-learn's kernels are where nothing is given (pairwise_kernels, KernelPCA, KernelRidge,
# Nystroem), as text.
PER_COLUMN = "1 / X.shape[1]"
THERE: dict[str, dict[str, str]] = {
    "rbf": {"gamma": PER_COLUMN},
    "laplacian": {"gamma": PER_COLUMN},
    "poly": {"degree": "3", "gamma": PER_COLUMN, "coef0": "1"},
    "polynomial": {"degree": "3", "gamma": PER_COLUMN, "coef0": "1"},
    "sigmoid": {"gamma": PER_COLUMN, "coef0": "1"},
    "chi2": {"gamma": "1.0"},
    "linear": {},
    "cosine": {},
}
# SVC's words for gamma.
WORDS = {"auto": PER_COLUMN, "scale": "1 / (X.shape[1] * X.var())"}
# Estimators whose namesakes have a linear kernel where none is given.
LINEAR_THERE = ("KernelPCA", "KernelRidge")
LEARNED = (
    "the kernel, its parameters and the penalty are learned from the table. For values of your own "
    "use KernelRidge or KernelDiscriminant, with kernel=RBF(gamma=...) or another kernel"
)
# What replaces other arguments, by class.
SPELLINGS: dict[str, dict[str, str]] = {
    "KernelMap": {
        "n_components": "write max_rank=..., the largest dimension of the map",
    },
    "KernelPCA": {
        "eigen_solver": "use solver='dense', 'krylov', 'factor' or 'auto'",
        "fit_inverse_transform": "inverse_transform always works; it is fitted at its first use",
        "alpha": "the ridge of pre-images is an argument of mercer.preimage(model, Z, alpha=...)",
        "remove_zero_eig": "n_components=None leaves zero eigenvalues out",
        "copy_X": "X is never changed",
        "tol": "'krylov' stops at residuals of 1e-7",
        "max_iter": "'krylov' runs until it has converged",
        "iterated_power": "there is no randomized solver; 'krylov' is faster and exact",
        "n_jobs": "give the threads to the map: kernel=KernelMap(kernel, n_jobs=...)",
    },
    "KernelRidgeCV": {
        "alpha": "write alphas=[...], from which it chooses",
        "cv": "it leaves out one row at a time, at the price of one fit; for other folds use "
        "GridSearchCV(KernelRidge(), {'alpha': [...]}, cv=...)",
        "scoring": "it minimises the squared error of rows left out; for other scores use "
        "GridSearchCV(KernelRidge(), {'alpha': [...]}, scoring=...)",
    },
    "KernelDiscriminant": {
        "solver": "there is one solver; shrinkage= works with it",
        "store_covariance": "the covariance lives in feature space and is not kept",
        "covariance_estimator": "only shrinkage= changes the covariance",
    },
    "KernelSVC": {
        "probability": "use KernelLogistic, whose probabilities are part of the model",
        "shrinking": "rows far from the margin are always left out of the work",
        "cache_size": "write memory_limit=..., in bytes or as '2GB'",
        "max_iter": "it solves until tol is certified; a larger tol ends earlier",
        "decision_function_shape": "pair_values(X) has one value per pair of classes",
        "break_ties": "ties of votes are always broken by the confidences",
        "verbose": "there is nothing to print",
        "random_state": "nothing is random",
    },
    "KernelLogistic": {
        "penalty": "the penalty is |f|^2 / 2, the norm of the kernel's space",
        "l1_ratio": "the penalty is |f|^2 / 2, the norm of the kernel's space",
        "solver": "there is one solver, with a certificate",
        "max_iter": "it solves until tol is certified; a larger tol ends earlier",
        "fit_intercept": "the intercept costs nothing; it is always there",
    },
    "ClassicalMDS": {
        "dissimilarity": "write metric=..., 'precomputed' or any metric",
        "n_init": "classical MDS is one eigenproblem: there is nothing to start again",
        "max_iter": "classical MDS is one eigenproblem: there are no iterations",
        "eps": "classical MDS is one eigenproblem: there are no iterations",
    },
    "LearnedModel": dict.fromkeys((*OF_THE_KERNEL, "alpha"), LEARNED)
    | {"n_components": "write max_landmarks=..., the largest number of landmarks"},
}
SPELLINGS["KernelClassifier"] = SPELLINGS["LearnedModel"]  # it has an __init__ of its own


class NewSpelling(BaseEstimator):
    """An estimator that answers scikit-learn's spelling with the one used here."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = shows_new_spelling(  # type: ignore[method-assign]
                cls.__init__, cls.__name__
            )

    def set_params(self, **params: object) -> Self:
        """Set parameters by name, nested ones as in ``set_params(kernel__gamma=0.1)``."""
        own = self.get_params(deep=False)
        for old in [name for name in params if name not in own]:
            instead = _parameter_instead(self, old)
            if instead:
                raise ValueError(f"{type(self).__name__} has no parameter {old}: {instead}.")
        return super().set_params(**params)


def shows_new_spelling(init: Callable[..., None], class_name: str) -> Callable[..., None]:
    """__init__, with TypeErrors for scikit-learn's arguments that show what to write."""
    parameters = signature(init)
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.parameters.values())
    spellings = SPELLINGS.get(class_name, {})

    @wraps(init)  # scikit-learn reads the signature through it
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> None:
        unknown = kwargs.keys() - parameters.parameters.keys()
        if unknown and not takes_any:
            name = type(self).__name__
            of_kernel = {k: kwargs[k] for k in OF_THE_KERNEL if k in unknown - spellings.keys()}
            if of_kernel and "kernel" in parameters.parameters:
                known = {k: v for k, v in kwargs.items() if k not in unknown}
                given = parameters.bind_partial(self, *args, **known).arguments
                raise TypeError(_belongs_to_kernel(name, class_name, of_kernel, given))
            for old in [k for k in kwargs if k in unknown and k in spellings]:
                raise TypeError(f"{name} has no argument {old}: {spellings[old]}.")
            first = next(k for k in kwargs if k in unknown)  # Python would name the base class
            raise TypeError(f"{name}.__init__() got an unexpected keyword argument {first!r}")
        init(self, *args, **kwargs)

    return wrapped


def _parameter_instead(estimator: Any, old: str) -> str | None:
    """The parameter to set instead, in a search or by set_params; None where there is none."""
    for cls in type(estimator).__mro__:
        if old in SPELLINGS.get(cls.__name__, {}):
            return SPELLINGS[cls.__name__][old]
    kernel = getattr(estimator, "kernel", None)
    if old not in OF_THE_KERNEL or kernel is None:
        return None
    path = "kernel__kernel__" if isinstance(kernel, NewSpelling) else "kernel__"
    name = "gamma" if old == "kernel_params" else old
    return f"parameters of a kernel belong to the kernel. Write {path}{name}=..."


def _belongs_to_kernel(
    name: str, class_name: str, loose: Mapping[str, Any], given: Mapping[str, Any]
) -> str:
    text, filled_in = spelled(given.get("kernel", "rbf"), loose)
    message = (
        f"{name} has no argument {', '.join(loose)}: parameters of a kernel belong to the kernel. "
        f"Write {name}(kernel={text})."
    )
    if filled_in:
        message += f" What was left out has scikit-learn's default: {', '.join(filled_in)}."
    if class_name in LINEAR_THERE and "kernel" not in given:
        message += (
            f" (scikit-learn's {class_name} without kernel= is linear and ignores them: "
            "kernel=Linear().)"
        )
    return message


def spelled(kernel: Any, loose: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The kernel for scikit-learn's name and loose parameters, as text; and what was left out."""
    fixed = loose.get("kernel_params") or {}
    if not isinstance(kernel, str):
        if callable(kernel) and hasattr(kernel, "__name__") and fixed:
            listed = ", ".join(f"{k}={v!r}" for k, v in fixed.items())
            return f"functools.partial({kernel.__name__}, {listed})", []
        return f"{kernel!r}, with its own parameters", []
    if kernel.lower() not in THERE:
        return f"{kernel!r}, with parameters of its own", []
    defaults = THERE[kernel.lower()]
    values = {k: v for k, v in {**loose, **fixed}.items() if k in defaults and v is not None}
    shown = partial(_shown, kernel.lower())
    texts = {k: shown(k, values[k]) if k in values else text for k, text in defaults.items()}
    cls = NAMED[kernel.lower()]
    listed = ", ".join(f"{k}={text}" for k, text in texts.items())
    return f"{cls.__name__}({listed})", [f"{k}={t}" for k, t in texts.items() if k not in values]


def _shown(kernel: str, name: str, value: Any) -> str:
    # RBF and Laplacian have a rule "scale" of their own; Laplacian's is another one.
    if name == "gamma" and value in ("auto", "scale") and (kernel, value) != ("rbf", "scale"):
        return WORDS[value]
    return printed(value)
