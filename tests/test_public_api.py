"""The public names: people's code uses them. A new name is one line here."""

import inspect

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


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="no attribute 'KernelPcA'"):
        _ = mercer.KernelPcA


@pytest.mark.parametrize(
    "name", ["KernelComparison", "LearnedKernel", "MercerReport", "TestResult"]
)
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


@pytest.mark.parametrize("name", [n for n in KERNELS if n != "Kernel"])
def test_every_kernel_documents_its_parameters_and_shows_an_example(name):
    cls = getattr(mercer, name)
    doc = inspect.getdoc(cls)
    parameters = [p for p in inspect.signature(cls).parameters]
    assert ">>> " in doc
    if parameters:
        section = doc.split("Parameters\n----------\n")[1]
        assert all(f"{p} : " in section for p in parameters)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_method_is_documented(name):
    thing = getattr(mercer, name)
    if isinstance(thing, type):
        for attribute, value in vars(thing).items():
            if not attribute.startswith("_") and callable(value):
                assert inspect.getdoc(getattr(thing, attribute)), f"{name}.{attribute}"
