"""Spectral densities of stationary kernels, and bounds of their images outside of a box."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import gammaln, kve, poch

# Shells of images that are added one by one; a bound of the others follows from the last.
SHELLS = 32


class TooManyModesError(ValueError):
    """The series would need more frequencies than there is room for."""


def gaussian_density(squared: np.ndarray, d: int):
    """Spectral density of exp(-r^2)."""
    return math.pi ** (d / 2) * np.exp(-(math.pi**2) * squared)


def matern_density(nu: float):
    """Spectral density of the Matern kernel with length scale 1."""
    if nu == math.inf:
        return lambda squared, d: (2 * math.pi) ** (d / 2) * np.exp(-2 * math.pi**2 * squared)

    def density(squared: np.ndarray, d: int):
        factor = (2 * math.pi / nu) ** (d / 2) * poch(nu, d / 2)
        return factor * np.exp(-(nu + d / 2) * np.log1p(2 * math.pi**2 * squared / nu))

    return density


def rational_density(a: float):
    """Spectral density of (1 + r^2 / (2a))^-a: a mixture of Gaussians, solved by K_p."""

    def density(squared: np.ndarray, d: int):
        p = a - d / 2
        if p <= 0:
            raise TooManyModesError(
                f"alpha above {d / 2:g} in {d} columns, to have a spectral density"
            )
        t = 2 * math.pi * math.sqrt(2 * a) * np.sqrt(squared)  # 2 sqrt(b)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            mixed = 2 * np.exp(p * np.log(t / 2) + np.log(kve(p, t)) - t - gammaln(a))
        at_zero = math.exp(gammaln(p) - gammaln(a))
        mixed = np.where(np.isfinite(mixed) & (t > 0), np.minimum(mixed, at_zero), at_zero)
        return (2 * math.pi * a) ** (d / 2) * mixed

    return density


def _shells(value, first, step, d):
    """How many images there are in each of the first shells, and k there."""
    s = np.arange(1, SHELLS + 1)
    return (2.0 * s + 1) ** d - (2.0 * s - 1) ** d, value(first + (s - 1) * step)


def images_of(value: Callable[[np.ndarray], Any], rate: float = math.inf):
    """The bound of RadialForm for k that falls by a constant factor per step, or faster.

    value : distances -> k, decreasing
    rate : k(r + step) <= exp(-rate * step) k(r); infinite where log k is concave, so that the
        factor from one shell to the next is largest at the first of them
    """

    def images(first: float, step: float, d: int):
        if not (first > 0 and step > 0):
            return math.inf
        counts, k = _shells(value, first, step, d)
        total = float(counts @ k)
        if k[-1] == 0:
            return total
        factor = max(k[-1] / k[-2], math.exp(-rate * step)) * counts[-1] / counts[-2]
        return total + counts[-1] * k[-1] * factor / (1 - factor) if factor < 1 else math.inf

    return images


def rational_images(a: float):
    """The same for (1 + r^2 / (2a))^-a <= (r^2 / (2a))^-a, whose shells add like a power."""

    def images(first: float, step: float, d: int):
        if not (first > 0 and step > 0) or 2 * a <= d:
            return math.inf
        counts, k = _shells(lambda r: (1 + r**2 / (2 * a)) ** -a, first, step, d)
        total = float(counts @ k)
        # Beyond: at most 2d (2s+1)^(d-1) <= 2d 3^(d-1) s^(d-1) images at least s * nearest away.
        nearest = min(first, step)
        power = (2 * a) ** a * nearest ** (-2 * a) * SHELLS ** (d - 2 * a) / (2 * a - d)
        return total + 2 * d * 3 ** (d - 1) * power

    return images
