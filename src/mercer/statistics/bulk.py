"""The bulk of the values: length scales that a few gross errors cannot widen.

A kernel whose length scale is the standard deviation of all entries is blind where one cell in a
hundred is -9999, where columns have heavy tails, or where one lies far from the others: all rows
are at one point on that scale. So a test takes its length scales from columns whose extreme values
are pulled in, each seen from its median. The rows themselves are never changed.
"""

from typing import Any

import numpy as np
import scipy.sparse

from .. import Kernel, TableEncoder
from ..engine import as_numpy, is_matrix
from ..kernels import points as pts
from ..kernels import rules_in

# Values are pulled in to the median plus or minus so many median deviations: of normal values, one
# in 400,000 lies beyond.
_REACH = 7.0
# A column that differs from its median in a smaller share of the rows has no spread of its own.
_RARE = 0.05


def bound_to_bulk(kernel: Kernel, pool: Any) -> Kernel:
    """The kernel with its data-dependent parameters taken from the bulk of the pooled rows."""
    if not any(rules_in(kernel)):
        return kernel.bind(pool)
    # A user's function, and kernels on histograms, must be given values such as they are made for.
    centre = not (kernel.runs_user_code or kernel.non_negative_only)
    return kernel.bind_points(_pulled_in(kernel.points(pool), centre), pts.column_names(pool))


def _pulled_in(points: Any, centre: bool = False) -> Any:
    """Points with extreme values moved to the edge of the bulk of their column; with `centre`,
    columns are moved to median 0."""
    if scipy.sparse.issparse(points):
        if not points.nnz:
            return points
        inner = points.copy()
        reach = _REACH * np.median(np.abs(inner.data))
        inner.data = np.clip(inner.data, -reach, reach)
        return inner
    if not is_matrix(points) or getattr(points.dtype, "kind", "f") == "O":
        return points
    X = as_numpy(points)
    middle = np.median(X, axis=0)
    apart = np.abs(X - middle)
    share = (apart > 0).mean(axis=0)
    # The median deviation of the values that deviate.
    deviation = np.array([np.median(a[a > 0]) if s else 0.0 for a, s in zip(apart.T, share)])
    common = share >= _RARE
    if common.any():  # an error code in an otherwise constant column is no measure
        deviation = np.where(common, deviation, np.minimum(deviation, deviation[common].max()))
    inner = np.clip(X - middle, -_REACH * deviation, _REACH * deviation)
    return inner if centre else inner + middle


def column_units(X: np.ndarray, encoder: TableEncoder) -> np.ndarray:
    """Divisors of the columns of an encoded table, so that the bulk of each has variance 1:
    1, or less where extreme values have widened it. Directions of texts have no unit of their own.
    """
    whole, inner = X.std(axis=0), _pulled_in(X).std(axis=0)
    units = np.divide(inner, whole, out=np.ones_like(whole), where=(inner > 0) & (inner < whole))
    units[encoder.text_outputs_] = 1.0
    return units
