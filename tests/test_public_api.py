"""The public names: people's code uses them. A new name is one line here."""

import ast
import importlib
import inspect
import re
from pathlib import Path
from typing import Literal, get_args, get_origin

import numpy as np
import pytest

import mercer

PUBLIC = [
    "Kernel",
    "as_kernel",
    "Linear",
    "Polynomial",
    "Cosine",
    "QuadraticForm",
    "Sigmoid",
    "RBF",
    "Laplacian",
    "Matern",
    "RationalQuadratic",
    "Periodic",
    "Chi2",
    "Intersection",
    "Tanimoto",
    "Spectrum",
    "WeisfeilerLehman",
    "ShortestPaths",
    "SetOf",
    "Signature",
    "GlobalAlignment",
    "Constant",
    "OnColumns",
    "OnFeatures",
    "Rescaled",
    "Normalized",
    "Precomputed",
    "Projected",
    "FromFunction",
    "FromFeatures",
    "ForestKernel",
    "check_mercer",
    "NotPSDError",
    "KernelMap",
    "RKHSFunction",
    "KernelPCA",
    "KernelPCAL1",
    "ClassicalMDS",
    "plan",
    "preimage",
    "TableEncoder",
    "read_table",
    "Kernelized",
    "KernelDiscriminant",
    "KernelRegressor",
    "KernelClassifier",
    "learn_kernel",
    "KernelRidge",
    "KernelRidgeCV",
    "KernelSVC",
    "KernelLogistic",
    "Chunks",
    "MemoryLimitError",
    "parse_kernel",
    "explore",
    "compare_kernels",
    "FeatureSpaceDisplay",
    "SpectrumDisplay",
    "GramDisplay",
    "ResidualDisplay",
    "save",
    "two_sample_test",
    "independence_test",
    "mean_embedding",
    "distance_between",
    "DriftDetector",
    "to_onnx",
    "load",
    "ModelFileError",
]


def test_the_public_names_are_these():
    assert set(dir(mercer)) == set(PUBLIC)
    everything: dict = {}
    exec("from mercer import *", everything)
    assert set(PUBLIC) <= set(everything)


def test_every_name_of_the_reference_is_there():
    page = (Path(__file__).parent.parent / "docs/reference.md").read_text(encoding="utf-8")
    module = "mercer"
    for line in page.splitlines():
        if ".. currentmodule:: " in line:
            module = line.split()[-1]
        elif module != "mercer.explore" and (name := re.fullmatch(r"   (\w+)", line)):
            assert hasattr(importlib.import_module(module), name[1]), f"{module}.{name[1]}"


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="no attribute 'KernelPcA'"):
        _ = mercer.KernelPcA


ANSWERS = ["KernelComparison", "LearnedKernel", "MercerReport", "TestResult"]


@pytest.mark.parametrize("name", ANSWERS)
def test_types_of_answers_are_there_for_annotations(name):
    assert name not in dir(mercer)
    assert getattr(mercer, name).__name__ == name


def test_the_package_of_the_explorer_is_also_its_function(monkeypatch):
    monkeypatch.setattr("mercer.explore.live.explore", lambda *args, **options: (args, options))
    assert mercer.explore("X", y="y") == (("X",), {"y": "y"})
    assert mercer.explore.__name__ == "mercer.explore"


@pytest.mark.parametrize("name", [name for name in PUBLIC if name != "explore"])
def test_every_name_is_documented(name):
    thing = getattr(mercer, name)
    assert thing.__module__.startswith("mercer.")
    assert inspect.getdoc(thing)
    assert thing.__doc__ is not object.__doc__


KERNELS = [
    name
    for name in PUBLIC
    if isinstance(getattr(mercer, name), type) and issubclass(getattr(mercer, name), mercer.Kernel)
]


CALLABLES = [n for n in PUBLIC if n != "explore" and not n.endswith("Error")]
# Words of scikit-learn, which mean here what they mean there.
STANDARD = {
    *("fit", "fit_transform", "fit_predict", "transform", "inverse_transform", "predict", "score"),
    *("predict_proba", "predict_log_proba", "decision_function", "score_samples", "kneighbors"),
    *("get_params", "set_params", "get_feature_names_out", "get_metadata_routing"),
}
# Called by other parts of the library; their pages do not show them.
NOT_FOR_USERS = {"raw_scores", "of_metric"}
OF_A_KERNEL = {"bind", "diag", "exp", "explicit", "explicit_dim", "polynomial"}


def undescribed(thing):
    """Parameters whose page does not say what they are."""
    doc = inspect.getdoc(thing)
    section = re.split(r"^(?:Attributes|Returns|Examples)$", doc, flags=re.MULTILINE)[0] + "\n"
    for name in inspect.signature(thing).parameters:
        if not re.search(rf"^(?:\w+, )*{name}(?:, \w+)* : .*\n    \S", section, re.MULTILINE):
            yield name


@pytest.mark.parametrize("name", [n for n in CALLABLES if n != "Kernel"])
def test_every_parameter_is_described(name):
    assert list(undescribed(getattr(mercer, name))) == []


def test_parameters_without_a_description_are_found():
    def f(a, b, c):
        """Do.

        Parameters
        ----------
        a : int
        b : int
            Something.
        """

    assert list(undescribed(f)) == ["a", "c"]


CLASSES = [n for n in CALLABLES if isinstance(getattr(mercer, n), type)]
ATTRIBUTE = re.compile(r"^(\w+(?:, \w+)*) : .*\n(?!    \S)", re.MULTILINE)
# What scikit-learn's own words mean, and what a method passes on.
KNOWN = {"self", "cls", "X", "y", "sample_weight", "input_features", "args", "kwargs", "params"}


@pytest.mark.parametrize("name", CLASSES + ANSWERS)
def test_every_attribute_is_described(name):
    _, _, section = inspect.getdoc(getattr(mercer, name)).partition("Attributes\n----------\n")
    section = re.split(r"^\w+\n-+$", section, flags=re.MULTILINE)[0].rstrip() + "\n"
    assert ATTRIBUTE.findall(section) == []


@pytest.mark.parametrize("name", [n for n in CLASSES if n not in KERNELS] + ANSWERS)
def test_every_argument_of_a_method_is_mentioned(name):
    """In its own words: one sentence is enough."""
    missing = [
        f"{key}({argument})"
        for key, method in inspect.getmembers(getattr(mercer, name), callable)
        if key[0] != "_" and getattr(method, "__module__", "").startswith("mercer")
        if key not in NOT_FOR_USERS and ":meta private:" not in (inspect.getdoc(method) or "")
        for argument in inspect.signature(method).parameters
        if argument not in KNOWN and not re.search(rf"\b{argument}\b", inspect.getdoc(method))
    ]
    assert missing == []


@pytest.mark.parametrize("name", CALLABLES + ANSWERS)
def test_every_name_has_an_example(name):
    assert ">>> " in inspect.getdoc(getattr(mercer, name))


def without_example(cls):
    """Methods that neither their own page nor that of their class shows in use."""
    for name in dir(cls):
        value = getattr(cls, name, None)
        owner = next(base for base in cls.__mro__ if name in vars(base) or base is object)
        if name.startswith("_") or not callable(value) or name in STANDARD | NOT_FOR_USERS:
            continue
        if not owner.__module__.startswith("mercer.") or name.endswith("_request"):
            continue
        if issubclass(cls, mercer.Kernel) and name not in OF_A_KERNEL:
            continue
        shown = f"{inspect.getdoc(value)}{inspect.getdoc(cls)}"
        if f".{name}(" not in shown:
            yield name


@pytest.mark.parametrize("name", [n for n in CLASSES if n == "Kernel" or n not in KERNELS])
def test_every_method_has_an_example(name):
    assert list(without_example(getattr(mercer, name))) == []


def members_of_page(cls):
    """What Sphinx writes on the page of a class, which docs/stability.md promises."""
    tree = ast.parse((Path(__file__).parent.parent / "docs/conf.py").read_text(encoding="utf-8"))
    (internal,) = (
        eval(ast.unparse(line.value))
        for line in tree.body
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "INTERNAL"
    )
    for name in set(dir(cls)) - internal:
        value = inspect.getattr_static(cls, name)
        value = getattr(value, "fget", getattr(value, "__func__", value))
        doc, module = inspect.getdoc(value), getattr(value, "__module__", None) or ""
        private = name[0] == "_" or ":meta private:" in (doc or "")
        if doc and module.startswith("mercer") and not private:
            yield name


def test_plumbing_is_not_on_the_page_of_a_kernel():
    for_people_who_write_kernels = {"against", "diagonal", "features", "is_psd"}
    words = OF_A_KERNEL | for_people_who_write_kernels | {"get_params", "set_params"}
    assert set(members_of_page(mercer.Kernel)) == words


@pytest.mark.parametrize("name", KERNELS)
def test_what_completion_shows_of_a_kernel_is_written_down(name):
    """For users on its page, or for people who write kernels in CONTRIBUTING.md."""
    recipes = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    parameters = {p for k in KERNELS for p in inspect.signature(getattr(mercer, k)).parameters}
    shown = {key for key in dir(getattr(mercer, name)) if key[0] != "_"}
    written = {word for code in re.findall("`(.+?)`", recipes) for word in re.findall(r"\w+", code)}
    assert shown - parameters - OF_A_KERNEL - {"get_params", "set_params"} - written == set()


@pytest.mark.parametrize("name", [n for n in CLASSES if n not in KERNELS])
def test_attributes_of_a_page_are_described_with_the_class(name):
    cls = getattr(mercer, name)
    fitted = [n for n in members_of_page(cls) if n.endswith("_")]
    assert [n for n in fitted if not re.search(rf"\b{n}\b", inspect.getdoc(cls))] == []


ROWS = np.random.default_rng(0).normal(size=(40, 2))
NUMBERS, LABELS = ROWS[:, 0], ROWS[:, 0] > 0
FITTED = {
    **{name: NUMBERS for name in ("KernelRidge", "KernelRidgeCV", "KernelRegressor")},
    **{name: LABELS for name in ("KernelSVC", "KernelLogistic", "KernelClassifier")},
    **{name: LABELS for name in ("KernelDiscriminant", "KernelMap", "KernelPCA", "KernelPCAL1")},
    **{name: LABELS for name in ("ClassicalMDS", "TableEncoder", "DriftDetector")},
}


@pytest.mark.parametrize("name", FITTED)
def test_every_fitted_attribute_is_described(name):
    """With the class, or (those of all estimators) on the page of the reference."""
    page = (Path(__file__).parent.parent / "docs/reference.md").read_text(encoding="utf-8")
    cls = getattr(mercer, name)
    few = {"n_rounds": 0} if "n_rounds" in inspect.signature(cls).parameters else {}
    model = cls(**few).fit(ROWS, FITTED[name])
    attributes = inspect.getdoc(cls).partition("Attributes\n----------\n")[2]
    described = set(re.findall(r"\w+_\b", attributes)) | set(re.findall(r"`(\w+_)`", page))
    assert {n for n in vars(model) if n[0] != "_" and n[-1] == "_"} <= described


@pytest.mark.parametrize("name", PUBLIC)
def test_every_method_is_documented(name):
    thing = getattr(mercer, name)
    if isinstance(thing, type):
        for attribute, value in vars(thing).items():
            if not attribute.startswith("_") and callable(value):
                assert inspect.getdoc(getattr(thing, attribute)), f"{name}.{attribute}"


@pytest.mark.parametrize("name", CALLABLES)
def test_every_choice_has_a_line_in_the_table_of_options(name):
    page = (Path(__file__).parent.parent / "docs/how-to/options.md").read_text(encoding="utf-8")
    for parameter, choices in choices_of(name).items():
        assert [v for v in choices if f'"{v}"`' not in page] == [], f"{parameter} of {name}"


def choices_of(name):
    """The values of each parameter that has a few."""
    if name.endswith("Display"):
        return {}
    thing = getattr(mercer, name)
    function = inspect.unwrap(thing.__init__ if isinstance(thing, type) else thing)
    own = getattr(function, "__globals__", {})  # none: object's, without parameters
    given = inspect.signature(thing).parameters.items()
    kinds = {p: eval(k, own) if isinstance(k := v.annotation, str) else k for p, v in given}
    return {p: get_args(kind) for p, kind in kinds.items() if get_origin(kind) is Literal}


def test_choices_are_seen():
    assert choices_of("KernelSVC") == {"solver": ("auto", "dual", "landmarks")}


def signatures(thing):
    """What `help` writes of a name and its methods."""
    members = inspect.getmembers(thing, callable) if isinstance(thing, type) else [("", thing)]
    for name, function in members:
        own = (getattr(function, "__module__", None) or "").startswith("mercer")
        if own and inspect.isroutine(function) and (name[:1] != "_" or name == "__init__"):
            yield f"{name}{inspect.signature(function)}"


@pytest.mark.parametrize("name", CALLABLES)
def test_help_shows_signatures_that_people_can_read(name):
    """`ArrayLike`, not the union of everything that it stands for."""
    written = list(signatures(getattr(mercer, name)))
    assert written
    assert [line for line in written if re.search(r"numpy\._typing|collections\.abc", line)] == []


@pytest.mark.parametrize("name", PUBLIC)
def test_each_method_has_an_example(name):
    """In its own docstring or in that of its class; what all kernels have is with `Kernel`."""
    cls = getattr(mercer, name)
    if not inspect.isclass(cls) or issubclass(cls, (mercer.Kernel, BaseException)):
        pytest.skip("not a class with methods of its own")
    lines = [line for base in cls.__mro__ for line in (inspect.getdoc(base) or "").splitlines()]
    examples = "\n".join(line for line in lines if line[:3] in (">>>", "..."))
    methods = {
        key: method
        for key, method in inspect.getmembers(cls, callable)
        if key[0] != "_"
        and method.__module__.startswith("mercer")
        and ":meta private:" not in (inspect.getdoc(method) or "")
    }
    for scikit_learns in ("predict_log_proba", "get_metadata_routing"):
        methods.pop(scikit_learns, None)
    assert [
        key
        for key, method in methods.items()
        if ">>>" not in (inspect.getdoc(method) or "") and f".{key}(" not in examples
    ] == []
