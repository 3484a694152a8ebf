"""mercer: kernel methods made explicit."""

from importlib import import_module as _import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .doors import door as _door
from .engine.memory import MemoryLimitError
from .estimators.kernel_map import KernelMap
from .expansion import RKHSFunction
from .kernels import (
    RBF,
    Chi2,
    Constant,
    Cosine,
    ForestKernel,
    FromFeatures,
    FromFunction,
    GlobalAlignment,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Normalized,
    NotPSDError,
    OnColumns,
    OnFeatures,
    Periodic,
    Polynomial,
    Precomputed,
    Projected,
    QuadraticForm,
    RationalQuadratic,
    Rescaled,
    SetOf,
    ShortestPaths,
    Sigmoid,
    Signature,
    Spectrum,
    Tanimoto,
    WeisfeilerLehman,
    as_kernel,
    check_mercer,
)
from .kernels.expressions import parse_kernel
from .rows.streams import Chunks

if _TYPE_CHECKING:  # `as` exports the types of answers, which __all__ does not list
    from .estimators.classifier import KernelClassifier
    from .estimators.discriminant import KernelDiscriminant
    from .estimators.kernelized import Kernelized
    from .estimators.logistic import KernelLogistic
    from .estimators.mds import ClassicalMDS
    from .estimators.pca import KernelPCA
    from .estimators.pca_l1 import KernelPCAL1
    from .estimators.plan import plan
    from .estimators.preimages import preimage
    from .estimators.regressor import KernelRegressor
    from .estimators.ridge import KernelRidge, KernelRidgeCV
    from .estimators.svc import KernelSVC
    from .explore import explore
    from .explore.compare import KernelComparison as KernelComparison
    from .explore.compare import compare_kernels
    from .explore.plots import FeatureSpaceDisplay, GramDisplay, ResidualDisplay, SpectrumDisplay
    from .export.model_files import ModelFileError, load, save
    from .export.onnx import to_onnx
    from .kernels import MercerReport as MercerReport
    from .learn import LearnedKernel as LearnedKernel
    from .learn import learn_kernel
    from .statistics.drift import DriftDetector
    from .statistics.embedding import distance_between, mean_embedding
    from .statistics.independence import independence_test
    from .statistics.result import TestResult as TestResult
    from .statistics.two_sample import two_sample_test
    from .tables import TableEncoder, read_table

__version__ = _version("mercer")

# Kernels and their maps are imported at once, each method when it is first used: learning,
# comparing, drawing and exporting load much of scikit-learn. Four of these names are types of
# answers, for annotations: nobody makes them, so that __all__ does not list them.
_offered = _door(
    __name__,
    {
        "estimators.classifier": "KernelClassifier",
        "estimators.discriminant": "KernelDiscriminant",
        "estimators.kernelized": "Kernelized",
        "estimators.logistic": "KernelLogistic",
        "estimators.mds": "ClassicalMDS",
        "estimators.pca": "KernelPCA",
        "estimators.pca_l1": "KernelPCAL1",
        "estimators.plan": "plan",
        "estimators.preimages": "preimage",
        "estimators.regressor": "KernelRegressor",
        "estimators.ridge": "KernelRidge KernelRidgeCV",
        "estimators.svc": "KernelSVC",
        "explore.compare": "KernelComparison compare_kernels",
        "explore.plots": "FeatureSpaceDisplay GramDisplay ResidualDisplay SpectrumDisplay",
        "export.model_files": "ModelFileError load save",
        "export.onnx": "to_onnx",
        "kernels": "MercerReport",
        "learn": "LearnedKernel learn_kernel",
        "statistics.drift": "DriftDetector",
        "statistics.embedding": "distance_between mean_embedding",
        "statistics.independence": "independence_test",
        "statistics.result": "TestResult",
        "statistics.two_sample": "two_sample_test",
        "tables": "TableEncoder read_table",
    },
)


def __getattr__(name):
    if name == "explore":  # the package, which can be called as the function of its name
        return _import_module(".explore", __name__)
    return _offered(name)


__all__ = [
    "Chi2",
    "Chunks",
    "ClassicalMDS",
    "Constant",
    "Cosine",
    "DriftDetector",
    "FeatureSpaceDisplay",
    "ForestKernel",
    "FromFeatures",
    "FromFunction",
    "GlobalAlignment",
    "GramDisplay",
    "Intersection",
    "Kernel",
    "KernelClassifier",
    "KernelDiscriminant",
    "KernelLogistic",
    "KernelMap",
    "KernelPCA",
    "KernelPCAL1",
    "KernelRegressor",
    "KernelRidge",
    "KernelRidgeCV",
    "KernelSVC",
    "Kernelized",
    "Laplacian",
    "Linear",
    "Matern",
    "MemoryLimitError",
    "ModelFileError",
    "Normalized",
    "NotPSDError",
    "OnColumns",
    "OnFeatures",
    "Periodic",
    "Polynomial",
    "Precomputed",
    "Projected",
    "QuadraticForm",
    "RBF",
    "RKHSFunction",
    "RationalQuadratic",
    "Rescaled",
    "ResidualDisplay",
    "SetOf",
    "ShortestPaths",
    "Sigmoid",
    "Signature",
    "Spectrum",
    "SpectrumDisplay",
    "TableEncoder",
    "Tanimoto",
    "WeisfeilerLehman",
    "as_kernel",
    "check_mercer",
    "compare_kernels",
    "distance_between",
    "explore",
    "independence_test",
    "learn_kernel",
    "load",
    "mean_embedding",
    "parse_kernel",
    "plan",
    "preimage",
    "read_table",
    "save",
    "to_onnx",
    "two_sample_test",
]


def __dir__():
    return __all__
