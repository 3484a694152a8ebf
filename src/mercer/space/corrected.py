"""Corrected: the space of a similarity that was made positive semi-definite."""

from typing import Any

from ..engine import tiles
from ..engine.types import Array
from .certificate import Radii
from .protocol import Space


class Corrected(Space):
    """phi(z) = W' k(S, z) with explicit weights: a similarity made positive semi-definite."""

    def __init__(self, kernel, S, W, indices):
        self.kernel = kernel
        self.S = S
        self.W = W
        self.indices = indices

    @property
    def rank(self) -> int:
        return self.W.shape[1]

    @property
    def example(self) -> Any:
        return self.W

    def coordinates(self, X: Array):
        return tiles.multiply(self.kernel, X, self.S, self.W)

    def weights(self, coef: Array):
        return self.W @ coef

    def radii(self, X: Any, diagonal: Any) -> Radii:
        raise ValueError(
            "a corrected similarity has no certificate: the bound holds for kernels only, and this "
            "one was changed (see correction_)."
        )

    def radii_of(self, Phi: Any, diagonal: Any, rho2: Any) -> Radii:
        return self.radii(None, diagonal)

    def radii_of_mean(self, second: Array, rho2: Any) -> Radii:
        return self.radii(None, None)

    def roundoff(self) -> float:
        return 0.0
