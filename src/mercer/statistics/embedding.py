"""Mean embeddings and the distance between them, with a certificate."""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from .. import Kernel, KernelMap, RKHSFunction
from ..engine import as_numpy
from ..estimators import kernel_of
from ..kernels import Input
from ..kernels import points as pts
from ..rows import Training, rows_at
from .samples import Samples
from .spaces import as_map, generator, pool_size

# Rows whose certificates are computed together: the bound is a matrix, and its diagonal is needed.
_CERTIFIED_ROWS = 64


class Distance(NamedTuple):
    """A distance in feature space, and how far it can be from the true one."""

    value: float
    error_bound: float

    def __float__(self) -> float:
        return float(self.value)


def mean_embedding(
    X: Input,
    kernel: Kernel | KernelMap | str = "rbf",
    *,
    random_state: int | np.random.Generator | None = None,
) -> RKHSFunction:
    """Represent a whole sample by one function, the mean of k(x_i, .) over its rows.

    Its value at z is the mean similarity of z to the sample; its inner product with any function f
    of the space is the mean of f over the sample. It is written on the landmarks of a map, so it
    stays small for any number of rows. Up to 4096 rows the map is exact up to rounding error; for
    more rows give a KernelMap to choose rank and tolerance.

    Parameters
    ----------
    X : array, data frame of numbers, sparse matrix, list of objects, stream or Dask collection
        The sample.
    kernel : Kernel, str or KernelMap, default="rbf"
        A kernel, its name as in scikit-learn ("rbf", "poly", "linear", ...), a function of two
        points, or a :class:`KernelMap`.
    random_state : int, RandomState, Generator or None, default=None
        For the rows that landmarks are chosen from, where there are more than 4096.

    Returns
    -------
    RKHSFunction

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, mean_embedding
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> mu = mean_embedding(X, RBF(1.0))
    >>> mu([[0.0]]).round(4), RBF(1.0)([[0.0]], X).mean().round(4)
    (array([0.456]), np.float64(0.456))
    """
    samples = Samples.read(kernel_of(kernel), encode=False, X=X)
    kernel_map = _fitted_map(samples, kernel, random_state)
    return kernel_map.function(_means(samples.all[0], samples, kernel_map, certified=False)[0])


def distance_between(
    X: Input,
    Y: Input,
    kernel: Kernel | KernelMap | str = "rbf",
    *,
    random_state: int | np.random.Generator | None = None,
) -> Distance:
    """Measure how far apart two samples are in feature space: their MMD, with an error bound.

    The distance |mean phi(x) - mean phi(y)| of the mean embeddings is computed in coordinates. What
    the coordinates miss is bounded by the map's own certificate on all rows: the true MMD of the
    kernel lies within `error_bound` of `value`. The bound is at rounding level for an exact map,
    and says what was lost for a truncated one.

    Parameters
    ----------
    X, Y : array, data frame of numbers, sparse matrix, list of objects, stream or Dask collection
        The two samples.
    kernel : Kernel, str or KernelMap, default="rbf"
        Parameters such as gamma="scale" are taken from both samples together.
    random_state : int, RandomState, Generator or None, default=None
        For the rows that landmarks are chosen from, where there are more than 4096.

    Returns
    -------
    Distance
        A pair (value, error_bound).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, distance_between
    >>> rng = np.random.default_rng(0)
    >>> distance, bound = distance_between(rng.normal(size=(300, 2)), rng.normal(1, 1, (200, 2)))
    >>> round(distance, 2), bound < 1e-6
    (0.44, True)
    """
    samples = Samples.read(kernel_of(kernel), encode=False, X=X, Y=Y)
    kernel_map = _fitted_map(samples, kernel, random_state)
    (mean_x, radius_x), (mean_y, radius_y) = (_means(s, samples, kernel_map) for s in samples.all)
    squared = float(((mean_x - mean_y) ** 2).sum())
    # The certificate bounds the error of k(x, z) by R(x) R(z), with R^2 its bound at (x, x), up to
    # rounding of the bound itself. MMD^2 is a sum over pairs with weights of total 2 x 2.
    error = 1.001 * (radius_x + radius_y) ** 2
    value = sqrt(squared)
    low, high = sqrt(max(0.0, squared - error)), sqrt(squared + error)
    return Distance(value, max(value - low, high - value))


def _fitted_map(samples: Samples, kernel: Any, random_state: Any) -> KernelMap:
    """The map that was asked for, or an exact one, on rows of all samples together."""
    pool, _ = samples.pooled(pool_size(kernel), generator(random_state))
    kernel_map = clone(as_map(kernel) or KernelMap(kernel))
    return kernel_map.set_params(center=False).set_output(transform="default").fit(pool)


def _means(
    sample: Training, samples: Samples, kernel_map: KernelMap, *, certified: bool = True
) -> tuple[np.ndarray, float]:
    """The mean of the coordinates, and (`certified`) that of R(x), with R^2 the certificate's bound
    of the error at (x, x)."""
    coordinates, radius = np.zeros(kernel_map.get_feature_names_out().shape[0]), 0.0
    for points in samples.blocks(sample):
        coordinates += as_numpy(kernel_map.transform(points)).sum(axis=0)
        for start in range(0, pts.n_points(points) if certified else 0, _CERTIFIED_ROWS):
            rows = rows_at(points, slice(start, start + _CERTIFIED_ROWS))
            radius += float(np.sqrt(np.diagonal(as_numpy(kernel_map.error_bound(rows)))).sum())
    return coordinates / sample.rows.n, radius / sample.rows.n
