"""Kernels: similarity by formula, their algebra, and checks on data."""

from .adapters import (
    FromFeatures,
    FromFunction,
    FromSklearn,
    GramColumns,
    KernelLike,
    Precomputed,
    as_kernel,
)
from .algebra import Constant, Exp, PolynomialOf, Power, Product, Scaled, Sum
from .calls import remembering
from .columnwise import Chi2, Intersection, Laplacian, Tanimoto
from .dot_product import Cosine, Linear, Polynomial, QuadraticForm, Sigmoid
from .forests import ForestKernel
from .graphs import ShortestPaths, WeisfeilerLehman
from .kernel import Kernel, alike
from .parameters import as_numbers, rules_in
from .paths import GlobalAlignment, Signature, read_paths
from .periodic import Periodic
from .points import listed
from .projected import Projected
from .sets import SetOf
from .spectral import TooManyModesError
from .stationary import RBF, Matern, RationalQuadratic
from .strings import Spectrum
from .types import Data, Input, RandomState
from .validity import MercerReport, NotPSDError, check_mercer, check_own_diagonal, html_rows
from .wrappers import Normalized, OnColumns, OnFeatures, Rescaled

__all__: list[str] = [
    "Chi2",
    "Constant",
    "Cosine",
    "Exp",
    "ForestKernel",
    "FromFeatures",
    "FromFunction",
    "FromSklearn",
    "GlobalAlignment",
    "Intersection",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "MercerReport",
    "Normalized",
    "NotPSDError",
    "OnColumns",
    "OnFeatures",
    "Periodic",
    "Polynomial",
    "PolynomialOf",
    "Power",
    "Precomputed",
    "Product",
    "Projected",
    "QuadraticForm",
    "RBF",
    "RationalQuadratic",
    "Rescaled",
    "Scaled",
    "SetOf",
    "ShortestPaths",
    "Sigmoid",
    "Signature",
    "Spectrum",
    "Sum",
    "Tanimoto",
    "WeisfeilerLehman",
    "as_kernel",
    "check_mercer",
]

# Kernels that plain text can describe, by the names of their classes.
KERNELS: dict[str, type[Kernel]] = {
    name: value
    for name, value in sorted(vars().items())
    if isinstance(value, type) and issubclass(value, Kernel)
    if value is not Kernel and value.in_expressions
}
