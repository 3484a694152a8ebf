"""How far a kernel's values may be off: every certificate is made of what is said here.

|computed - true k(s, z)| <= u rounding(S) sqrt(magnitude(s) magnitude(z)), with the unit roundoff
u of the data's precision (MATH.md section 7). A law of the tests holds every kernel to it.
"""

from typing import TYPE_CHECKING

import numpy as np

from ..engine import namespace
from .types import Array

if TYPE_CHECKING:
    from collections.abc import Callable


class Accuracy:
    """Declarations of a kernel about its rounding, with the defaults of most kernels."""

    diagonal: "Callable[[Array], Array]"

    def rounding(self, S: Array) -> float:
        """Units of roundoff in k(s, z), relative to sqrt(magnitude(s) magnitude(z))."""
        return 4.0

    def magnitude(self, X: Array) -> Array:
        """Scale of the rounding of k(x, z), for every row: k(x, x), or the sum of the
        absolute terms of it where these cancel, or what underflow can hide of it."""
        return self.diagonal(X)

    @property
    def has_magnitude(self) -> bool:
        """Whether `magnitude` may be more than k(x, x): if not, nobody needs to ask for it."""
        return type(self).magnitude is not Accuracy.magnitude

    def magnitude_of_sums(self, X: Array, terms: Array) -> Array:
        """`magnitude` of points whose coordinates are sums of larger terms, in absolute values."""
        return self.magnitude(terms)

    def moved(self, by: np.ndarray) -> float | None:
        """Units by which k(x, z) changes at most where columns of x - z change by so many units;
        None where k is not a function of x - z alone."""
        return None


def above_underflow(magnitudes: Array) -> Array:
    """Magnitudes as they are, or the least at which products of numbers keep all their digits."""
    info = namespace(magnitudes).finfo(magnitudes.dtype)
    return magnitudes + float(info.smallest_normal) / float(info.eps)
