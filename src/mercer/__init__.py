"""mercer: kernel methods made explicit."""

from importlib.metadata import version as _version

from .compare import KernelComparison, compare_kernels
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
from .methods.ridge import KernelRidge, KernelRidgeCV
from .onnx import to_onnx
from .persistence import ModelFileError, load, save
from .plots import FeatureSpaceDisplay, GramDisplay, ResidualDisplay, SpectrumDisplay
from .preimage import preimage
from .rkhs import RKHSFunction

__version__ = _version("mercer")
