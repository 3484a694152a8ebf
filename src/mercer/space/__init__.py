"""K = F F': arrays in, Factor out."""

from .base import Factor
from .cholesky import factorize

__all__ = ["Factor", "factorize"]
