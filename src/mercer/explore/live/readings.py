"""Readings of a space: numbers, spectrum, findings, kernel matrix, certificate, prior draws."""

from typing import Any

import numpy as np

from ... import Kernel
from ...engine import as_numpy, evenly, one_blas_thread
from ..compare.measures import BY_CONSTRUCTION, REFUTED
from ..compare.verdict import findings
from ..data import Explored
from ..plots.style import as_bytes
from .space import LiveSpace

# Rows of the kernel matrix and of the certificate.
MATRIX_ROWS, CERTIFIED = 120, 60
# Bars of the spectrum.
_SPECTRUM = 24
# Prior draws: points along one column, along each of two, and functions drawn.
ALONG, ACROSS, DRAWN = 90, 18, 5


def readings_of(
    space: LiveSpace, kernel: Kernel, rows: np.ndarray, data: Explored
) -> dict[str, Any]:
    """Numbers, spectrum and findings of a space; and k among some rows of all data, as bytes from
    its smallest to its largest value."""
    # Shares of the variance, in percent; what the landmarks miss is in the total.
    total = float(space.values.sum() + space.residuals @ space.diagonal)
    shares = 100 * space.values[:_SPECTRUM] / (total or 1.0)
    K = np.asarray(as_numpy(space.kernel_map.kernel_(data.take(rows))), dtype=float)
    found, judged = findings(space, len(space.diagonal), kernel), space.judged
    return {
        "numbers": {
            "score": None if judged is None else judged.score,
            "score_name": None if judged is None else judged.name,
            "wrong": 0 if judged is None else int(judged.wrong.sum()),
            "rows": len(space.diagonal),
            "alpha": space.alpha,
            "rank": int(space.kernel_map.rank_),
            "rank_is_bound": not space.exact,
            "dimension": space.effective_dimension,
            "missed": float(space.residuals.mean()),
            "worst": float(space.residuals.max(initial=0.0)),
            "exact": space.exact,
            "validity": space.validity,
        },
        "spectrum": [round(float(share), 3) for share in shares],
        "matrix": {
            "size": len(rows),
            "low": float(K.min()),
            "high": float(K.max()),
            "values": as_bytes(K).ravel(),
        },
        "findings": [f"{text[0].upper()}{text[1:]}." for text in found],
    }


def certificate(space: LiveSpace) -> dict[str, Any]:
    """A bound for the inner products of the coordinates, on some rows; None without one."""
    if space.validity == REFUTED:
        return {"bound": None, "proven": False, "rows": 0}
    some = evenly(len(space.data), CERTIFIED)
    bound = np.asarray(as_numpy(space.kernel_map.error_bound(space.data.take(some))))
    size = float(space.diagonal[some].max(initial=0.0)) or 1.0
    return {
        "bound": float(bound.max()) / size,
        "proven": space.validity == BY_CONSTRUCTION,
        "rows": len(some),
    }


def prior_draws(kernel: Kernel, data: Explored, columns: list[int]) -> dict[str, Any] | None:
    """Functions of one column (curves) or two (a surface), the other columns at their medians.

    f = K^(1/2) e with normal e is a draw of the Gaussian process with covariance k. The same e for
    every kernel, and the symmetric root: when a knob turns, the functions change shape and do not
    jump. None where points are not vectors.
    """
    if not data.vectors or not 1 <= len(columns) <= 2:
        return None
    low, high = np.quantile(data.X[:, columns], [0.01, 0.99], axis=0)
    ends = [(a, b) if b > a else (a - 0.5, b + 0.5) for a, b in zip(low, high)]
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
