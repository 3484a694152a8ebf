"""Pictures of feature spaces, in scikit-learn's manner: from_... computes, .plot(ax) draws."""

from .comparison import ComparisonDisplay
from .feature_space import FeatureSpaceDisplay
from .gram import GramDisplay
from .residual import ResidualDisplay
from .spectrum import SpectrumDisplay

__all__ = [
    "ComparisonDisplay",
    "FeatureSpaceDisplay",
    "GramDisplay",
    "ResidualDisplay",
    "SpectrumDisplay",
]
