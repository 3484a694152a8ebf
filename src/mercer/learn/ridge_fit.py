"""Ridge with an intercept, solved: its coefficients, and its leave-one-out errors.

With A = K + alpha W^-1 (W the weights), u = A^-1 1 and P = A^-1 - u u' / (1'u), the coefficients
are a = P t and the residuals alpha W^-1 a. The leverage of row j, intercept included, is
1 - alpha P_jj / w_j: the leave-one-out errors follow from the diagonal of P.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.arrays import as_numpy, namespace
from .landmark_model import LandmarkModel
from .observations import Observations


@dataclass
class LastFit:
    """f(z) = k(z, S) coef + intercept, and what leaving out some rows gave.

    solver : "direct", "iterative" or "landmarks"
    judged : rows whose leave-one-out errors are known
    residuals : these errors, t - f without one observation of the row: (judged, targets)
    left : 1 - leverage of one observation at these rows
    uncertainty : ridge on the landmarks of the fit, where it has landmarks
    error_norms, intercept_errors : iterative only, one per target. For every z, f(z) differs from
        the exact solution by at most sqrt(k(z, z)) * error_norm + intercept_error
    """

    S: Any
    coef: Any
    intercept: Any
    alpha: float
    solver: str
    judged: np.ndarray
    residuals: np.ndarray
    left: np.ndarray
    error_norms: np.ndarray | None = None
    intercept_errors: np.ndarray | None = None
    uncertainty: LandmarkModel | None = None

    @property
    def exact(self) -> bool:
        """Whether the coefficients solve the full system, one per row."""
        return self.solver != "landmarks"


def noise_of(rows: Observations) -> Any:
    """1 / weights."""
    xp = namespace(rows.T)
    return xp.ones_like(rows.T[:, 0]) if rows.weights is None else 1 / rows.weights


def left_out(rows, alpha, judged, a, u, total, inverse) -> tuple[np.ndarray, np.ndarray]:
    """(errors, 1 - leverage) of the judged rows without one observation, from diag(A^-1)."""
    own, noise = as_numpy(a)[judged], as_numpy(noise_of(rows))[judged]
    P = np.maximum(inverse - as_numpy(u)[judged, 0] ** 2 / total, 1e-3 * inverse)
    left = alpha * noise * P
    residuals = alpha * noise[:, None] * own
    if rows.share is not None:
        left = 1 - as_numpy(rows.share)[judged] * (1 - left)
    return residuals / left[:, None], left
