"""GlobalAlignment: time series compared by all the ways to align them."""

from typing import Any

import numpy as np

from ..engine import require
from .feature_kernels import ObjectKernel
from .kernel import ALL
from .parameters import as_numbers, per_column
from .paths import read_paths
from .types import Array, PerColumn, Tile


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

    A path is what :class:`Signature` takes; lengths may differ. Series of very different lengths
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
        values = _tslearn()
        centre = np.mean([path.mean(axis=0) for path in read_paths(S)], axis=0)
        points = self._scaled(S, centre)

        def tile(rows: Any, columns: slice = ALL) -> np.ndarray:
            others = self._scaled(rows, centre)
            if not len(points[columns]):
                return np.zeros((len(others), 0))
            return values(others, points[columns], sigma=1.0, be="numpy")

        return tile

    def diagonal(self, X: Array) -> Array:
        return np.ones(len(read_paths(X)))

    def rounding(self, S: Array) -> float:
        # Sums of positive terms along both series, and the logarithms that normalize them.
        return 8.0 + 16.0 * max(len(path) for path in read_paths(S))

    def _scaled(self, X, centre):
        """Paths whose squared distances are 2 gamma |x - z|^2, as tslearn expects with sigma 1.
        About a centre: rounded far from the origin, their distances would lose digits."""
        paths, gamma = read_paths(X), as_numbers(self.gamma)
        channels = paths[0].shape[1]
        require(
            gamma.ndim == 0 or len(gamma) in (1, channels),
            f"GlobalAlignment(gamma) has {gamma.size} values for paths of {channels} channels.",
        )
        require(
            channels == len(centre),
            f"paths of {channels} channels cannot be compared with paths of {len(centre)}.",
        )
        return [(path - centre) * np.sqrt(2 * gamma) for path in paths]


def _tslearn():
    try:
        from tslearn.metrics import cdist_gak
    except ImportError as error:
        raise ImportError(
            "GlobalAlignment needs tslearn, which sums over alignments: pip install "
            "'mercer[alignment]'."
        ) from error
    return cdist_gak
