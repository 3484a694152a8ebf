"""mercer: kernel methods made explicit."""

from importlib import import_module as _import_module
from importlib.metadata import version as _version
from inspect import ismodule as _is_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .engine.stream import Chunks
from .kernel_map import KernelMap
from .kernelized import Kernelized
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
from .methods.discriminant import KernelDiscriminant
from .methods.mds import ClassicalMDS
from .methods.pca import KernelPCA
from .methods.pca_l1 import KernelPCAL1
from .methods.ridge import KernelRidge
from .methods.ridge_cv import KernelRidgeCV
from .preimage import preimage
from .rkhs import RKHSFunction

if _TYPE_CHECKING:
    from .compare import KernelComparison, compare_kernels
    from .onnx import to_onnx
    from .persistence import ModelFileError, load, save
    from .plots import FeatureSpaceDisplay, GramDisplay, ResidualDisplay, SpectrumDisplay

__version__ = _version("mercer")

# Comparing, drawing and exporting load much of scikit-learn: imported when first used.
_WHERE = {
    "KernelComparison": "compare",
    "compare_kernels": "compare",
    "to_onnx": "onnx",
    "ModelFileError": "persistence",
    "load": "persistence",
    "save": "persistence",
    "FeatureSpaceDisplay": "plots",
    "GramDisplay": "plots",
    "ResidualDisplay": "plots",
    "SpectrumDisplay": "plots",
}


def __getattr__(name):
    if name not in _WHERE:
        raise AttributeError(f"module 'mercer' has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module(f".{_WHERE[name]}", __name__), name)
    return value


__all__ = sorted(
    {name for name, value in globals().items() if not (name[0] == "_" or _is_module(value))}
    | set(_WHERE)
)


def __dir__():
    return __all__
