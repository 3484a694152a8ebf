"""Feature spaces: K = F F', by landmarks, by a kernel's own features, or by a correction."""

from .certificate import Radii
from .choice import MapOptions, refute_by_a_look, refute_by_sample, space_of
from .cholesky import Fit, factorize
from .fourier import Fourier
from .fourier_grid import Extent, FourierPlan, fourier_space
from .grow import certify_and_grow, empty_factor, extended, sampled_space, space_of_sample
from .indefinite import check_symmetric
from .landmarks import Corrected, Landmarks
from .own_features import OwnFeatures
from .protocol import Space
from .spectra import (
    Eigenpairs,
    eigen_rotation,
    rotation_from_scatter,
    signs,
    spectrum,
    symmetric_rotation,
)

__all__ = ["Landmarks", "factorize"]
