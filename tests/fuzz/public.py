"""Every public name with a call that works, found by itself: what is new is driven, or is missed.

A call is a function, good arguments for all that it requires, and a check of its answer. Arguments
are then replaced one by one, so that no parameter of any public name is left untried.
"""

import copy
import inspect
import re
from functools import lru_cache
from importlib import import_module

import numpy as np
from sklearn.base import BaseEstimator, clone

import mercer
from fuzz.outcomes import Fault, at_most, finite
from mercer import KernelMap, KernelPCA, Linear, RKHSFunction
from mercer.kernels.expressions import parse_kernel

# Where public names live beside mercer itself.
MODULES = (
    "explore.compare",
    "explore.plots",
    "explore.report",
    "onnx",
    "kernels.expressions",
)
# Made by mercer and handed out; their methods are driven, their constructors are not the caller's.
HANDED_OUT = {
    "Kernel",  # abstract
    "KernelComparison",
    "KernelSpace",
    "LearnedKernel",
    "MercerReport",
    "Plan",
    "NotPSDError",
    "ModelFileError",
    "MemoryLimitError",
    "KernelExpressionError",
    "TestResult",
}
# Of a kernel and a map, what users call; the other methods are for those who write kernels.
KERNEL_METHODS = ("__call__", "diag", "explicit", "explicit_dim", "bind", "polynomial")
NOT_FOR_USERS = {"set_params", "get_params", "of_metric", "raw_scores"}

X = np.abs(np.random.default_rng(7).normal(size=(12, 2)))
Y = np.arange(12) % 2
GRAM = X @ X.T
# Points of kernels on objects.
WORDS = ["banana", "bandana", "dandy", "candy"] * 3
GRAPHS = [([(0, 1), (1, 2)], "CCO"), ([(0, 1)], "CO"), ([], "C")] * 4
OBJECTS = {
    "Spectrum": WORDS,
    "WeisfeilerLehman": GRAPHS,
    "ShortestPaths": GRAPHS,
    "SetOf": [X[:2], X[2:5], X[:0]] * 4,
}


def names():
    """Public name -> object."""
    found = {name: getattr(mercer, name) for name in mercer.__all__ if name != "explore"}
    found |= {name: getattr(mercer, name) for name in ("LearnedKernel", "TestResult")}
    for module in MODULES:
        module = import_module(f"mercer.{module}")
        found |= {name: getattr(module, name) for name in module.__all__}
    return found


def example(cls, examples):
    """A fitted estimator, a kernel, or a result of a class."""
    if cls in examples:
        made = examples[cls]
        return made if isinstance(made, mercer.Kernel) else clone(made)
    return {
        "RKHSFunction": lambda: RKHSFunction("rbf", X, np.ones(12)),
        "KernelSVC": mercer.KernelSVC,
        "KernelLogistic": mercer.KernelLogistic,
        "KernelComparison": comparison,
        "LearnedKernel": lambda: mercer.learn_kernel(X, Y, "rbf", n_rounds=1),
        "TestResult": lambda: mercer.two_sample_test(X, X + 1, n_permutations=19, random_state=0),
        "FeatureSpaceDisplay": lambda: mercer.FeatureSpaceDisplay(X, Y),
        "GramDisplay": lambda: mercer.GramDisplay(GRAM, Y),
        "SpectrumDisplay": lambda: mercer.SpectrumDisplay([2.0, 1.0]),
        "ResidualDisplay": lambda: mercer.ResidualDisplay([0, 1, 2], [0, 1, 2], np.eye(3)),
        "ComparisonDisplay": lambda: mercer.explore.plots.ComparisonDisplay(comparison()),
    }[cls.__name__]()


@lru_cache
def comparison():
    options = {"embeddings": ["kernel PCA"], "cv": 2, "repeats": 1}
    return mercer.compare_kernels(X, Y, [Linear(), mercer.RBF()], **options)


def fitted(model):
    pairwise = model.__sklearn_tags__().input_tags.pairwise
    return model.fit(GRAM if pairwise else X, Y)


def good(parameter, owner=None):
    """A value that works for a required parameter."""
    if parameter in ("X", "Y") and type(owner).__name__ in OBJECTS:
        return OBJECTS[type(owner).__name__]
    if parameter == "X" and isinstance(owner, mercer.Kernel):
        wide = isinstance(owner, mercer.QuadraticForm)
        return GRAM if owner.kind == "gram" else np.column_stack([X, X[:, :1]]) if wide else X
    if parameter == "X" and isinstance(owner, BaseEstimator):
        return GRAM if owner.__sklearn_tags__().input_tags.pairwise else X
    known = {
        "X": lambda: X,
        "y": lambda: Y,
        "Y": lambda: X,
        "kernel": lambda: "rbf",
        "kernels": lambda: [Linear(), mercer.RBF()],
        "model": lambda: KernelMap().fit(X),
        "kernel_map": lambda: KernelMap().fit(X),
        "estimator": lambda: KernelPCA(2).fit(X),
        "comparison": comparison,
        "coef": lambda: np.ones(owner.rank_ if hasattr(owner, "rank_") else 12),
        "points": lambda: X,
        "function": lambda: RKHSFunction(owner.kernel_, X, np.ones(12)),
        "other": lambda: RKHSFunction("rbf", X, np.ones(12)),
        "coefficients": lambda: [1.0, 0.5],
        "n_features": lambda: 2,
        "share": lambda: 0.9,
        "coordinates": lambda: X,
        "matrix": lambda: GRAM,
        "eigenvalues": lambda: [2.0, 1.0],
        "xs": lambda: [0.0, 1.0, 2.0],
        "ys": lambda: [0.0, 1.0, 2.0],
        "residual": lambda: np.eye(3),
        "path": lambda: "model.mercer",
        "text": lambda: "RBF(0.1) + Linear()",
        "open_chunks": lambda: lambda: iter([X]),
        "n": lambda: 1000,
        "d": lambda: 3,
        "products": lambda: 1e11,
        "values": lambda: 1e9,
    }
    if parameter == "Z":
        return X  # replaced by scores of the owner
    if parameter not in known:
        raise KeyError(f"say in tests/fuzz/public.py what a good {parameter!r} is")
    return known[parameter]()


# Arguments beside the required ones that make calls short, or meaningful.
SHORT = {
    "compare_kernels": {"kernels": ["linear"], "embeddings": ["kernel PCA"], "cv": 2},
    "plan": {"y": Y},
    "preimage": {"Z": None},
    "ResidualDisplay.from_estimator": {"resolution": 5},
    "to_onnx": {},
    "two_sample_test": {"n_permutations": 19},
    "independence_test": {"n_permutations": 19},
    "learn_kernel": {"kernel": "rbf", "n_rounds": 1},
}


def calls(examples):
    """(name, function, good arguments) of everything public that takes arguments."""
    for name, thing in names().items():
        if inspect.isclass(thing):
            yield from calls_of_class(name, thing, examples)
        elif name not in ("load", "read_table", "register"):  # see test_public.py
            yield name, thing, arguments(name, thing)


def calls_of_class(name, cls, examples):
    kernel, estimator = issubclass(cls, mercer.Kernel), issubclass(cls, BaseEstimator)
    if name not in HANDED_OUT and not kernel and not estimator:
        yield name, cls, arguments(name, cls)
    if name in ("Kernel", "KernelSpace", "Plan", "MercerReport", "Chunks"):
        return
    for method in KERNEL_METHODS if kernel else methods(cls):
        bound = lambda cls=cls, method=method: getattr(owner_of(cls, examples), method)  # noqa: E731
        finite_map = method != "explicit" or owner_of(cls, examples).explicit_dim(2) is not None
        if finite_map and hasattr(owner_of(cls, examples), method):
            label = f"{name}.{method}"
            yield label, call_of(bound), arguments(label, bound(), owner_of(cls, examples))


MADE: dict[type, object] = {}


def owner_of(cls, examples):
    """An object of the class, fitted where it can be; a copy, so that calls leave no trace."""
    if cls not in MADE:
        made = example(cls, examples)
        MADE[cls] = fitted(made) if hasattr(made, "fit") else made
    return copy.deepcopy(MADE[cls])


def call_of(bound):
    """The bound method of a fresh object at each call: nothing is left from the call before."""

    def call(*args, **kwargs):
        return bound()(*args, **kwargs)

    call.__signature__ = inspect.signature(bound())
    return call


def methods(cls):
    """Public methods that mercer wrote."""
    for method in sorted(dir(cls)):
        function = getattr(cls, method, None)
        function = inspect.unwrap(function) if callable(function) else function
        ours = getattr(function, "__module__", None) or ""
        public = method[0] != "_" and method not in NOT_FOR_USERS
        if method == "error_bound" and "Ridge" in cls.__name__:
            continue  # of iterative solutions alone; the examples are solved directly
        if public and callable(function) and ours.startswith("mercer"):
            yield method


def arguments(label, function, owner=None):
    given = dict(SHORT.get(label, {}))
    if label == "preimage":
        given["model"] = good("kernel_map")
        given["Z"] = given["model"].transform(X)
    for name in parameters(function):
        required = inspect.signature(function).parameters[name].default is inspect.Parameter.empty
        required |= name == "y"
        if required and name not in given:
            given[name] = good(name, owner)
    if label == "KernelMap.project":
        given["coef"] = np.ones((owner.rank_, 2))
    if label.endswith("inverse_transform"):
        name = "Z" if "Z" in given else "X"
        given[name] = np.asarray(owner.transform(good("X", owner)))
    return given


def parameters(function):
    variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [n for n, p in inspect.signature(function).parameters.items() if p.kind not in variadic]


# --- is the answer right? -----------------------------------------------------------------------


def check_answer(label, answer):
    """What must hold of any answer: finite numbers, and an identity where there is one."""
    name = type(answer).__name__
    if isinstance(answer, tuple):
        for part in answer:
            check_answer(label, part)
    elif isinstance(answer, mercer.Kernel):
        if label == "parse_kernel":
            at_most(float(parse_kernel(repr(answer)) != answer), 0, "repr")
    elif name in ANSWERS:
        ANSWERS[name](answer)
    elif isinstance(answer, (np.ndarray, float, list)) and label != "KernelComparison.records":
        finite(np.asarray(answer))


def check_comparison(answer):
    for record, space in zip(answer.records(), answer.spaces):
        finite(record["rank"], record["effective_dimension"], *space.embeddings.values())
        at_most(space.rank, len(answer), "rank")
        if space.scores:
            at_most(abs(record["score"] - np.mean(space.folds)), 1e-12, "mean of folds")
            at_most(record["score"], 1.0, "score")
    if not answer.recommendation or re.search(r"\bnan\b", answer.recommendation):
        raise Fault(f"verdict without sense: {answer.recommendation!r}")


def check_spectrum(answer):
    finite(answer.shares)
    if answer.total is None:
        at_most(np.abs(answer.shares).sum(), 1 + 1e-9, "sum of shares")


def check_residual(answer):
    finite(answer.residual)
    at_most(np.abs(np.asarray(answer.residual, float) - 0.5), 0.5 + 1e-12, "share unseen")


def check_plan(answer):
    costs = [(way.seconds, way.bytes) for way in answer.ways if way.refusal is None]
    finite(*(number for cost in costs for number in cost))
    if not answer.ways or re.search(r"\bnan\b", str(answer)):
        raise Fault(f"a plan without sense: {answer}")


ANSWERS = {
    "KernelComparison": check_comparison,
    "SpectrumDisplay": check_spectrum,
    "ResidualDisplay": check_residual,
    "Plan": check_plan,
    "FeatureSpaceDisplay": lambda d: finite(np.asarray(d.coordinates, float)),
    "GramDisplay": lambda d: finite(np.asarray(d.matrix, float)),
    "RKHSFunction": lambda f: finite(f(X)) if np.ndim(f.points) == 2 else None,
}
