"""Conjugate gradients for several right-hand sides, each with steps of its own."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..engine import as_numpy, namespace, on_device_of


class ConjugateGradients:
    """A x = b from products with A and with an approximate inverse; `step` makes one product.

    x : the solution so far
    r : b - A x, by recursion; whoever computes it again may put it here
    z : the approximate inverse of A times r, from `precondition`
    p : the direction of the last step
    frozen : columns that stay as they are
    live : columns that the last step has moved
    """

    def __init__(self, times: Callable, precondition: Callable, B: Any):
        self.times, self.precondition = times, precondition
        self.x, self.r = namespace(B).zeros_like(B), B + 0.0
        self.z = precondition(self.r)
        self.p, self.rz = self.z + 0.0, dots(self.r, self.z)
        self.frozen = np.zeros(B.shape[1], dtype=bool)

    def product(self) -> tuple[Any, np.ndarray]:
        """(A p, p'A p)."""
        image = self.times(self.p)
        return image, dots(self.p, image)

    def advance(self, image: Any, curvature: np.ndarray) -> None:
        """Along p as far as its columns go."""
        live = ~self.frozen & (curvature > 0)
        self.frozen = self.frozen | ~live
        step = on_device_of(_quotient(self.rz, curvature, live), self.p)[None, :]
        self.x = self.x + self.p * step
        self.r = self.r - image * step
        self.live = live

    def turn(self) -> None:
        """To the next direction."""
        self.z = self.precondition(self.r)
        old, self.rz = self.rz, dots(self.r, self.z)
        beta = on_device_of(_quotient(self.rz, old, self.live & (old > 0)), self.p)[None, :]
        self.p = self.z + self.p * beta


def _quotient(a, b, where):
    return np.where(where, a / np.where(where, b, 1.0), 0.0)


def dots(U: Any, V: Any) -> np.ndarray:
    """Inner products of the columns, on the host."""
    return as_numpy(namespace(U).sum(U * V, axis=0)).astype(np.float64)
