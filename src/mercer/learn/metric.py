"""Metrics: the scale of each column to begin with, and the damped average of gradients.

A kernel with a slope has grad_z k(z, s) = p z + e s with numbers p, e for each pair. So the
gradients of f = sum_j a_j k(., s_j) at all rows are (P a) z + E (a S): products of matrices.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..engine import as_numpy, eigh, namespace
from ..kernels import Kernel
from ..kernels import points as pts
from .observations import Observations
from .room import block_values

# Pairs whose median distance is the unit of length.
_PAIRS = 2000
# Rows up to which all of their products are computed for it, where there are more columns.
_FEW_ROWS = 300
# Directions shorter than this share of the longest are left out.
_SHORTEST = 1e-5
# Numbers of the gradients of one block of rows.
_BLOCK_VALUES = 1 << 22


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
    i = rng.integers(n, size=_PAIRS)
    j = (i + rng.integers(1, max(n, 2), size=_PAIRS)) % n
    xp = namespace(X)
    if n <= _FEW_ROWS < X.shape[1]:
        # Products of all rows are fewer numbers than differences of the pairs.
        Z = applied(X, B)
        K = as_numpy(Z @ Z.T)
        sizes = np.diagonal(K)[i] + np.diagonal(K)[j]
        squares = sizes - 2 * K[i, j]
        distances = np.sqrt(np.where(squares > 1e-12 * sizes, squares, 0.0))
    else:
        difference = applied(pts.take(X, i) - pts.take(X, j), B)
        distances = np.sqrt(as_numpy(xp.sum(difference * difference, axis=1)))
    distances = distances[distances > 0]
    return B / float(np.median(distances)) if len(distances) else B


def most_correlated(rows: Observations, size: int) -> np.ndarray:
    """So many columns, in their order: those that, or whose squares, correlate most with a target.

    Squares are those of distances to the mean: a column may matter most at both of its ends.
    """
    xp = namespace(rows.X)
    w = xp.ones_like(rows.T[:, 0]) if rows.weights is None else rows.weights

    def centred(A: Any) -> Any:
        return A - (w @ A) / xp.sum(w)

    T, X = centred(rows.T), centred(rows.X)
    strongest = np.zeros(X.shape[1])
    for A in (X, centred(X * X)):
        products = as_numpy((T * w[:, None]).T @ A) ** 2
        sizes = np.outer(as_numpy(w @ (T * T)), as_numpy(w @ (A * A)))
        found = products / np.where(sizes > 0, sizes, np.inf)
        strongest = np.maximum(strongest, found.max(axis=0))
    return np.sort(np.argsort(-strongest, kind="stable")[:size])


def damped(G: Any) -> Any:
    """B with B B' = G^1/2, by matrix roots or weight by weight: undamped metrics oscillate."""
    xp = namespace(G)
    if G.ndim == 1:
        return xp.where(G > 0, G, xp.zeros_like(G)) ** 0.25
    values, V = eigh(G)
    lengths = xp.where(values > 0, values, xp.zeros_like(values)) ** 0.25
    kept = max(1, int(xp.sum(xp.astype(lengths > _SHORTEST * lengths[0], xp.int64))))
    return V[:, :kept] * lengths[None, :kept]


def average_outer_product(
    kernel: Kernel, Z: Any, S: Any, a: Any, weights: Any = None, *, diagonal: bool = False
) -> Any:
    """G = mean_i sum_c grad f_c(z_i) grad f_c(z_i)', for f_c = sum_j a_jc k(., s_j).

    With `diagonal` its diagonal alone.
    """
    G, total = 0.0, 0.0
    for some, g in gradients_at(kernel, Z, S, a):
        xp = namespace(g)
        w = xp.ones_like(Z[some, 0]) if weights is None else weights[some]
        g = xp.reshape(g * xp.sqrt(w)[:, None, None], (-1, Z.shape[1]))
        G = G + (xp.sum(g * g, axis=0) if diagonal else g.T @ g)
        total += float(xp.sum(w))
    return G / total


def gradients_at(kernel: Kernel, Z: Any, S: Any, a: Any) -> Iterator[tuple[slice, Any]]:
    """(rows, gradients of all f_c there): blocks of rows, n x targets x columns."""
    xp, t, width = namespace(Z), a.shape[1], Z.shape[1]
    rows = max(16, block_values(_BLOCK_VALUES) // max(S.shape[0], t * width))
    weighted = xp.reshape(a[:, :, None] * S[:, None, :], (S.shape[0], t * width))
    for i in range(0, Z.shape[0], rows):
        some = slice(i, min(i + rows, Z.shape[0]))
        z = Z[some, :]
        _, p, e = kernel.slopes(z, S)
        g = xp.zeros((z.shape[0], t, width), dtype=Z.dtype, device=Z.device)
        if p is not None:
            g = g + (p @ a)[:, :, None] * z[:, None, :]
        if e is not None:
            g = g + xp.reshape(e @ weighted, (z.shape[0], t, width))
        yield some, g
