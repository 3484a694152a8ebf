"""Feature spaces: K = F F', by landmarks, by a kernel's own features, or by a correction."""

from .cholesky import factorize
from .landmarks import Landmarks

__all__ = ["Landmarks", "factorize"]
