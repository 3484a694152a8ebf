"""Metrics: the scale of each column to begin with, and the damped average of gradients."""

from typing import Any

import numpy as np

from ..engine import as_numpy, eigh, namespace
from ..kernels import points as pts

# Pairs whose median distance is the unit of length.
PAIRS = 2000
# Directions shorter than this share of the longest are left out.
SHORTEST = 1e-5


def column_scales(X: np.ndarray) -> np.ndarray:
    """1 / standard deviation; 1 / range for columns of two values; 0 for constant columns.

    A column of two values is a flag or a category: dividing by its deviation would make the rarest
    category the loudest.
    """
    low, high = X.min(axis=0), X.max(axis=0)
    middle = low + (high - low) / 2
    flags = ((low == X) | (high == X)).all(axis=0)
    deviation = (X - middle).std(axis=0)
    spread = np.where(flags, high - low, deviation)
    varies = (high > low) & (spread > 1e-12 * np.maximum(np.abs(low), np.abs(high)))
    return np.where(varies, 1 / np.where(varies, spread, 1.0), 0.0)


def applied(X: Any, B: Any) -> Any:
    """X B; a diagonal matrix is the vector of its weights."""
    return X @ B if B.ndim == 2 else X * B[None, :]


def congruent(B: Any, G: Any) -> Any:
    """B G B', or its diagonal where G is a diagonal."""
    if G.ndim == 1:
        return B**2 * G
    return B @ G @ B.T if B.ndim == 2 else B[:, None] * G * B[None, :]


def with_unit_median(B: Any, X: Any, rng: np.random.Generator) -> Any:
    """B scaled so that the median distance between rows of X B is 1: lengths then compare."""
    n = X.shape[0]
    i = rng.integers(n, size=PAIRS)
    j = (i + rng.integers(1, max(n, 2), size=PAIRS)) % n
    xp = namespace(X)
    difference = applied(pts.take(X, i) - pts.take(X, j), B)
    distances = np.sqrt(as_numpy(xp.sum(difference * difference, axis=1)))
    distances = distances[distances > 0]
    return B / float(np.median(distances)) if len(distances) else B


def damped(G: Any) -> Any:
    """B with B B' = G^1/2, by matrix roots or weight by weight: undamped metrics oscillate."""
    xp = namespace(G)
    if G.ndim == 1:
        return xp.where(G > 0, G, xp.zeros_like(G)) ** 0.25
    values, V = eigh(G)
    lengths = xp.where(values > 0, values, xp.zeros_like(values)) ** 0.25
    kept = max(1, int(xp.sum(xp.astype(lengths > SHORTEST * lengths[0], xp.int64))))
    return V[:, :kept] * lengths[None, :kept]
