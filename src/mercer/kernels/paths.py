"""Paths: compared by their iterated integrals (Signature), or by all the ways to align them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine import Domain, require, tiles
from .feature_kernels import FeatureKernel, ObjectKernel
from .hashing import squared_lengths
from .kernel import ALL
from .monomials import require_room
from .parameters import as_numbers, per_column
from .points import as_rows, read_each
from .types import Array, PerColumn, Tile

# Values in the work space of one block of paths.
_BLOCK_VALUES = 1 << 21
_DEEPEST = 100


def read_paths(X: Array) -> list[np.ndarray]:
    """Every path as an array of points and channels, checked."""
    paths = read_each(X, _path)
    for i, path in enumerate(paths):
        require(
            path.shape[1] == paths[0].shape[1],
            f"X[{i}] has {path.shape[1]} channels, X[0] has {paths[0].shape[1]}: all paths need "
            "the same.",
        )
    return paths


def _path(x):
    path = as_rows(x, "a path, an array of points and channels")
    require(path.size > 0, f"has shape {path.shape}: a path needs a point and a channel.")
    return path


def _per_channel(parameter, given, channels):
    values = as_numbers(given)
    require(
        values.ndim == 0 or len(values) in (1, channels),
        f"{parameter} has {values.size} values for paths of {channels} channels.",
    )
    return values


class Signature(FeatureKernel):
    r"""Compare time series, trajectories or pen strokes by the shape of the path they draw.

    The coordinates are the iterated integrals of the path up to a depth (level 1: how far it goes;
    level 2: the areas it sweeps; and so on). They do not change when the path is shifted, and paths
    of different lengths are compared as they are.

    Parameters
    ----------
    depth : int, default=3
        Highest level. With c channels (and time) there are 1 + c + c^2 + ... + c^depth coordinates.
    time : bool, default=True
        Add time, from 0 at the first point to 1 at the last, as one more channel. Without it, the
        speed along the path does not matter, and a path that goes back on itself counts as nothing.
    length_scale : float or list of float, default=1.0
        Channels are divided by it: one number, or one per channel.

    Notes
    -----
    .. math::

        k(x, z) = \sum_{m \le \text{depth}} \langle S^m(x), S^m(z) \rangle

    - *Valid*: an inner product of the coordinates (Lyons; Király and Oberhauser 2019).
    - *Fails*: for many channels: c^depth coordinates; for channels of different units, unless
      `length_scale` says so.
    - *Elsewhere*: sigkernel (no truncation, without a map), iisignature and esig (the coordinates).

    A path is an array with one row per point and one column per channel; a flat list is one
    channel. Points are joined by straight lines: each piece has the signature exp(increment), and
    Chen's identity multiplies the pieces, so the coordinates are exact.

    Examples
    --------
    >>> from mercer import Signature
    >>> Signature(depth=2, time=False).explicit([[[0, 0], [1, 0], [1, 1]]])
    array([[1. , 1. , 1. , 0.5, 1. , 0. , 0.5]])
    """

    scale_powers = {"length_scale": 1}
    drawn_as = "paths"
    domains = {
        "depth": Domain.whole(1, _DEEPEST),
        "time": Domain.FLAG,
        "length_scale": per_column(),
    }

    def __init__(self, depth: int = 3, time: bool = True, length_scale: PerColumn = 1.0) -> None:
        self.depth = depth
        self.time = time
        self.length_scale = length_scale

    # --- the map ----------------------------------------------------------------------------------

    def features(self, X: Array) -> Array:
        paths = read_paths(X)
        channels = paths[0].shape[1]
        scale = _per_channel("Signature(length_scale)", self.length_scale, channels)
        width = self.explicit_dim(channels)
        assert width is not None
        require_room(np.empty((len(paths), 1)), width)
        result = np.empty((len(paths), width))
        for block, steps in self._blocks(paths, scale, width):
            *_, levels = _levels(steps, int(self.depth))
            result[block] = np.concatenate(levels, axis=1)
        return result

    def _blocks(self, paths, scale, width):
        """Paths of about one length at a time: their numbers, and their steps."""
        lengths, channels = np.array([len(path) for path in paths]), paths[0].shape[1]
        order = np.argsort(lengths, kind="stable")
        for a, b in tiles.cuts(len(order), max(1, _BLOCK_VALUES // width)):
            block = order[a:b]
            # Steps x paths x channels; shorter paths end with steps of zero.
            longest = lengths[block].max()
            steps = np.zeros((longest - 1, len(block), channels + bool(self.time)))
            for i, which in enumerate(block):
                n = lengths[which] - 1
                # Differences first: those of scaled points would carry the rounding of an offset.
                steps[:n, i, :channels] = np.diff(paths[which], axis=0) / scale
                if self.time:
                    steps[:n, i, channels] = 1.0 / max(n, 1)
            yield block, steps

    def explicit_dim(self, n_features: int | None) -> int | None:
        """Coordinates for paths of `n_features` channels."""
        if n_features is None:
            return None
        channels = n_features + bool(self.time)
        return sum(channels**level for level in range(int(self.depth) + 1))

    def magnitude(self, X: Array) -> Array:
        """Rounding at some point of the path is multiplied by the signature of the rest:
        level m by |S_i before| |S_(m-i) after|, at the worst point. (The path from its end back to
        a point has the same lengths as the rest after it.)
        """
        paths, scale, depth = read_paths(X), as_numbers(self.length_scale), int(self.depth)
        width = self.explicit_dim(paths[0].shape[1])
        result = np.empty(len(paths))
        for block, steps in self._blocks(paths, scale, width):
            before, after = (
                np.array(
                    [[np.sqrt(squared_lengths(S)) for S in levels] for levels in _levels(T, depth)]
                )
                for T in (steps, steps[::-1])
            )
            after = after[::-1]
            worst = [
                sum(before[:, i] * after[:, m - i] for i in range(m + 1)).max(axis=0)
                for m in range(depth + 1)
            ]
            lengths = np.array([len(paths[i]) for i in block])
            result[block] = lengths * (np.array(worst) ** 2).sum(axis=0)
        return result

    def rounding(self, S: Array) -> float:
        return 4.0 + 2.0 * int(self.depth)


def _levels(steps, depth):
    """Signatures of piecewise linear paths, level by level, after each step of all of them: Chen's
    identity. What is yielded is overwritten by the next step.

    S(path + step) = S(path) exp(step), whose level m is the sum over j of S_(m-j) step^j / j!. In
    Horner's form: ((step / m + S_1) step / (m - 1) + S_2) ... + S_m.
    """
    n, channels = steps.shape[1:]
    levels = [np.ones((n, 1)), *(np.zeros((n, channels**m)) for m in range(1, depth + 1))]
    yield levels
    for step in steps:
        for m in range(depth, 0, -1):  # the highest first: lower ones are still those before
            term = step / m
            for j in range(1, m):
                term += levels[j]
                products = term[:, :, None] * (step / (m - j))[:, None, :]
                term = products.reshape(n, -1)
            levels[m] += term
        yield levels


class GlobalAlignment(ObjectKernel):
    r"""Compare time series that run at different speeds, by all the ways to align them.

    An alignment walks through both series from the first points to the last ones, one step in one
    of them or in both at a time. Its weight is the product over its pairs of points of g / (2 - g),
    g = exp(-gamma |x - z|^2). k(x, z) is the sum of the weights of all alignments, divided so that
    k(x, x) = 1.

    Parameters
    ----------
    gamma : float or list of float, default=1.0
        One number, or one per channel. Long series need a small one: about 1 / (number of points x
        squared distance of two typical points).

    Notes
    -----
    .. math::

        k(x, z) = \sum_{\text{alignments}} \; \prod_{\text{pairs}} g / (2 - g)

    - *Valid*: g / (2 - g) is the sum of the powers of g / 2, and then the sum over alignments is
      positive semi-definite (Cuturi, Vert, Birkenes and Matsui 2007; Cuturi 2011).
    - *Fails*: for long series: a pair costs the product of the two lengths.
    - *Elsewhere*: tslearn's `cdist_gak`.

    A path is what :class:`Signature` accepts; lengths may differ. Series of very different lengths
    are nearly orthogonal.

    The sum is computed by tslearn's ``cdist_gak`` (``pip install 'mercer[alignment]'``), one pair
    of series at a time. Each pair costs the product of the two lengths, so :class:`Signature` is
    much faster.

    Examples
    --------
    >>> from mercer import GlobalAlignment
    >>> GlobalAlignment(gamma=0.1)([[1, 2, 3], [1, 2, 2, 3], [3, 2, 1]]).round(2)
    array([[1.  , 0.85, 0.27],
           [0.85, 1.  , 0.22],
           [0.27, 0.22, 1.  ]])
    """

    is_psd = True
    domains = {"gamma": per_column()}
    scale_powers = {"gamma": -2}
    drawn_as = "paths"

    def __init__(self, gamma: PerColumn = 1.0) -> None:
        self.gamma = gamma

    def against(self, S: Array) -> Tile:
        try:
            from tslearn.metrics import cdist_gak
        except ImportError as error:
            raise ImportError(
                "GlobalAlignment needs tslearn, which sums over alignments: pip install "
                "'mercer[alignment]'."
            ) from error
        centre = np.mean([path.mean(axis=0) for path in read_paths(S)], axis=0)
        points = self._scaled(S, centre)

        def tile(rows: Any, columns: slice = ALL) -> np.ndarray:
            others = self._scaled(rows, centre)
            if not len(points[columns]):
                return np.zeros((len(others), 0))
            return cdist_gak(others, points[columns], sigma=1.0, be="numpy")

        return tile

    def diagonal(self, X: Array) -> Array:
        return np.ones(len(read_paths(X)))

    def rounding(self, S: Array) -> float:
        # Sums of positive terms along both series, and the logarithms that normalize them.
        return 8.0 + 16.0 * max(len(path) for path in read_paths(S))

    def _scaled(self, X, centre):
        """Paths whose squared distances are 2 gamma |x - z|^2, as tslearn expects with sigma 1.
        About a centre: rounded far from the origin, their distances would lose digits."""
        paths = read_paths(X)
        channels = paths[0].shape[1]
        gamma = _per_channel("GlobalAlignment(gamma)", self.gamma, channels)
        require(
            channels == len(centre),
            f"paths of {channels} channels cannot be compared with paths of {len(centre)}.",
        )
        return [(path - centre) * np.sqrt(2 * gamma) for path in paths]
