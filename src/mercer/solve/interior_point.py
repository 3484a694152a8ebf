"""Support vector machines on coordinates: an interior-point method whose steps cost n r^2.

The same dual as in `active_set`, for K = Phi Phi' with r columns far below the number of rows that
may be support vectors: no matrix of rows by rows is needed, and noise does not slow it down.
Mehrotra's predictor and corrector; K + diagonal is inverted through r x r matrices.
"""

from typing import Any

import numpy as np

from ..engine import as_numpy, cholesky, device, gram, namespace, on_device_of, tiles
from .active_set import balanced
from .regularized import solve_factored

MOST_STEPS = 80
# How far a step goes towards the boundary.
SHARE = 0.995
# Times the best state so far: steps have stopped to help.
WORSE = 1e3
# A coefficient nearer to its bound than this share of C, pressed against it, is at the bound.
AT_BOUND = 1e-5


def interior_point(Phi: Any, y: np.ndarray, C: np.ndarray, aim: float) -> tuple[np.ndarray, int]:
    """(signed coefficients, steps): a feasible dual point with a gap of about `aim` or less."""
    xp = namespace(Phi)
    y, C = on_device_of(y, Phi), on_device_of(C, Phi)
    zero = xp.zeros_like(y)
    low, high = xp.where(y > 0, zero, -C), xp.where(y > 0, C, zero)
    c, b = (low + high) / 2, 0.0
    # Distances to both bounds, kept apart from c: near a bound a difference would be all rounding.
    u, v = C / 2, C / 2
    slope = Phi @ (Phi.T @ c) - y
    z = xp.where(slope > 0, slope, zero)  # z - s = slope, both well away from zero
    floor = 1.0 + float(xp.mean(xp.abs(slope)))
    z, s = z + floor, z - slope + floor
    best: Any = None
    for steps in range(1, MOST_STEPS + 1):  # noqa: B007  returned
        f = Phi @ (Phi.T @ c)
        dual, total = f - y + b - z + s, float(xp.sum(c))
        mean = float(xp.sum(u * z) + xp.sum(v * s)) / (2 * y.shape[0])
        residual = float(xp.sum(C * xp.abs(dual)))
        left = 2 * y.shape[0] * mean + residual + abs(total)
        if best is None or left < best[0]:
            best = (left, c, u, v, z, s)
        # Near the end rounding undoes what steps gain.
        if left <= 0.1 * aim or not left < WORSE * best[0]:
            break
        inverse = _inverse(Phi, 1 / (z / u + s / v))
        ones = inverse(xp.ones_like(y))
        if not float(xp.sum(ones)) > 0:  # to rounding, a constant is in the space: b is anything
            break
        now = (u, v, z, s, dual, total)
        dc, db, dz, ds = _direction(inverse, ones, now, 0.0, 0.0, 0.0)
        t = _room(xp, (u, dc), (v, -dc), (z, dz), (s, ds))
        after = float(xp.sum((u + t * dc) * (z + t * dz)) + xp.sum((v - t * dc) * (s + t * ds)))
        toward = mean * min(1.0, after / (2 * y.shape[0]) / mean) ** 3
        dc, db, dz, ds = _direction(inverse, ones, now, toward, dc * dz, -dc * ds)
        # One for all: c is in `dual` too.
        t = SHARE * _room(xp, (u, dc), (v, -dc), (z, dz), (s, ds))
        if not t > 1e-10:
            break
        c, b, z, s = c + t * dc, b + t * db, z + t * dz, s + t * ds
        u, v = u + t * dc, v - t * dc
    _, c, u, v, z, s = best
    at_low, at_high = (z > s) & (u < AT_BOUND * C), (s > z) & (v < AT_BOUND * C)
    c = xp.where(at_low, low, xp.where(at_high, high, c))
    host = [as_numpy(x) for x in (c, low, high)]
    return balanced(*host), steps


def _direction(inverse, ones, now, toward, second_u, second_v):
    """Newton's step to u z = v s = toward; with the second-order terms of a step before."""
    u, v, z, s, dual, total = now
    xp = namespace(u)
    right_u, right_v = toward - u * z - second_u, toward - v * s - second_v
    first = inverse(right_u / u - right_v / v - dual)
    db = (float(xp.sum(first)) + total) / float(xp.sum(ones))
    dc = first - db * ones
    return dc, db, (right_u - z * dc) / u, (right_v + s * dc) / v


def _inverse(Phi, T):
    """v -> (Phi Phi' + diag(1 / T))^-1 v."""
    C = low_rank_factor(Phi, T)
    return lambda v: T * (v - Phi @ solve_factored(C, Phi.T @ (T * v)))


def low_rank_factor(Phi: np.ndarray, T: np.ndarray):
    """The Cholesky factor of I + Phi' diag(T) Phi, by which diag(1 / T) + Phi Phi' is inverted."""
    xp, root = namespace(Phi), namespace(Phi).sqrt(T)[:, None]
    # A panel at a time: Phi may be half of the memory that is allowed.
    A = sum(gram(Phi[part, :] * root[part, :]) for part in tiles.panel_slices(Phi, Phi.shape[1]))
    eye = xp.eye(A.shape[0], dtype=A.dtype, device=device(A))
    C = cholesky(A + eye)
    if C is None:  # rounding, with weights of many magnitudes
        C = cholesky(A + (1 + 1e-12 * float(xp.linalg.trace(A))) * eye)
    return C


def _room(xp, *pairs):
    """The longest step, 1 / SHARE at most, that keeps every value positive."""
    longest = 1.0 / SHARE
    for value, change in pairs:
        shrinks = change < 0
        ratio = xp.where(shrinks, -value / xp.where(shrinks, change, -xp.ones_like(change)), value)
        ratio = xp.where(shrinks, ratio, longest * xp.ones_like(ratio))
        longest = min(longest, float(xp.min(ratio)))
    return longest
