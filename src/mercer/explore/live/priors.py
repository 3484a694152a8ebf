"""Prior draws: functions drawn from a kernel before it has seen any target.

f = K^(1/2) e with normal e is a draw of the Gaussian process with covariance k. The same e for
every kernel, and the symmetric root: when a knob turns, the functions change shape and do not jump.
"""

from typing import Any

import numpy as np

from ...engine.arrays import as_numpy
from ...engine.threads import one_blas_thread
from ...kernels import Kernel
from .data import Explored

ALONG, ACROSS = 90, 18
DRAWN = 5


def prior_draws(kernel: Kernel, data: Explored, columns: list[int]) -> dict[str, Any] | None:
    """Functions of one column (curves) or two (a surface), the other columns at their medians.

    None where points are not vectors.
    """
    if not data.vectors or not 1 <= len(columns) <= 2:
        return None
    ends = [_ends(data.X[:, j]) for j in columns]
    size = ALONG if len(columns) == 1 else ACROSS
    axes = [np.linspace(low, high, size) for low, high in ends]
    grid = np.stack([g.ravel() for g in np.meshgrid(*axes)], axis=1)
    points = np.tile(data.medians, (len(grid), 1))
    points[:, columns] = grid
    count = DRAWN if len(columns) == 1 else 1
    noise = np.random.default_rng(4).normal(size=(len(grid), count))
    with one_blas_thread():  # a small matrix
        K = np.asarray(as_numpy(data.bound(kernel)(points)), dtype=float)
        values, U = np.linalg.eigh((K + K.T) / 2)
        drawn = U @ (np.sqrt(np.maximum(values, 0.0))[:, None] * (U.T @ noise))
    most = float(np.abs(drawn).max()) or 1.0
    found: dict[str, Any] = {
        "names": [data.names[j] for j in columns],
        "ends": [[float(low), float(high)] for low, high in ends],
        "most": most,
    }
    shaped = np.round(drawn / most, 3)
    if len(columns) == 1:
        return found | {"curves": shaped.T.tolist()}
    return found | {"surface": shaped[:, 0].reshape(size, size).tolist()}


def _ends(column):
    low, high = np.quantile(column, [0.01, 0.99])
    return (low, high) if high > low else (low - 0.5, high + 0.5)
