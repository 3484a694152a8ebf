"""mercer: kernel methods made explicit."""

from importlib import import_module as _import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .estimators.discriminant import KernelDiscriminant
from .estimators.kernel_map import KernelMap
from .estimators.kernelized import Kernelized
from .estimators.mds import ClassicalMDS
from .estimators.pca import KernelPCA
from .estimators.pca_l1 import KernelPCAL1
from .estimators.preimage import preimage
from .estimators.ridge import KernelRidge
from .estimators.ridge_cv import KernelRidgeCV
from .expansion import RKHSFunction
from .kernels import (
    RBF,
    Chi2,
    Constant,
    Cosine,
    FromFeatures,
    FromFunction,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    MercerReport,
    Normalized,
    NotPSDError,
    OnColumns,
    OnFeatures,
    Periodic,
    Polynomial,
    Precomputed,
    QuadraticForm,
    RationalQuadratic,
    Rescaled,
    Sigmoid,
    as_kernel,
    check_mercer,
)
from .rows.streamed import Chunks

if _TYPE_CHECKING:
    from .explore.compare import KernelComparison, compare_kernels
    from .explore.plots import FeatureSpaceDisplay, GramDisplay, ResidualDisplay, SpectrumDisplay
    from .export.files import ModelFileError, load, save
    from .export.onnx import to_onnx

__version__ = _version("mercer")

# Comparing, drawing and exporting load much of scikit-learn: imported when first used.
_WHERE = {
    "KernelComparison": "explore.compare",
    "compare_kernels": "explore.compare",
    "to_onnx": "export.onnx",
    "ModelFileError": "export.files",
    "load": "export.files",
    "save": "export.files",
    "FeatureSpaceDisplay": "explore.plots",
    "GramDisplay": "explore.plots",
    "ResidualDisplay": "explore.plots",
    "SpectrumDisplay": "explore.plots",
}


def __getattr__(name):
    if name not in _WHERE:
        raise AttributeError(f"module 'mercer' has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module(f".{_WHERE[name]}", __name__), name)
    return value


__all__ = [
    "Chi2",
    "Chunks",
    "ClassicalMDS",
    "Constant",
    "Cosine",
    "FeatureSpaceDisplay",
    "FromFeatures",
    "FromFunction",
    "GramDisplay",
    "Intersection",
    "Kernel",
    "KernelComparison",
    "KernelDiscriminant",
    "KernelMap",
    "KernelPCA",
    "KernelPCAL1",
    "KernelRidge",
    "KernelRidgeCV",
    "Kernelized",
    "Laplacian",
    "Linear",
    "Matern",
    "MercerReport",
    "ModelFileError",
    "Normalized",
    "NotPSDError",
    "OnColumns",
    "OnFeatures",
    "Periodic",
    "Polynomial",
    "Precomputed",
    "QuadraticForm",
    "RBF",
    "RKHSFunction",
    "RationalQuadratic",
    "Rescaled",
    "ResidualDisplay",
    "Sigmoid",
    "SpectrumDisplay",
    "as_kernel",
    "check_mercer",
    "compare_kernels",
    "load",
    "preimage",
    "save",
    "to_onnx",
]


def __dir__():
    return __all__
