"""How wrong can phi(x) . phi(z) be? A bound that holds in floating point.

In exact arithmetic |k(x, z) - phi(x) . phi(z)| <= rho(x) rho(z) (Cauchy-Schwarz in the orthogonal
complement). Rounding adds to it: with a = C^-T phi(z) and tau(z) = sqrt k(z, z) + sum_i |a_i|
sqrt k(s_i, s_i), errors of size eta = u (sqrt r + c_k) in kernel values and solves move rho^2 by at
most 2 eta tau^2 (MATH.md section 7, tested there on 3e8 pairs).
"""

import numpy as np

from ..engine.arrays import namespace


def omega(dtype):
    """What underflow can hide."""
    info = np.finfo(np.float32 if "32" in str(dtype) else np.float64)
    return float(info.tiny) / float(info.eps)


def bound(left, right, eta, mean_radius=0.0):
    """|k(x, z) - phi(x) . phi(z)| for all pairs, from (rho^2, tau, is_landmark) of both sides.

    Centring subtracts means, each with an error of its own: their radius adds to both sides.
    """
    rho2_x, tau_x, landmark_x = left
    rho2_z, tau_z, landmark_z = right
    xp, least = namespace(rho2_x), omega(rho2_x.dtype)
    R_x = xp.sqrt(rho2_x + 2 * eta * tau_x**2 + least) + mean_radius
    R_z = xp.sqrt(rho2_z + 2 * eta * tau_z**2 + least) + mean_radius
    general = R_x[:, None] * R_z[None, :]
    if not landmark_x.any() and not landmark_z.any():
        return general
    # A landmark lies in the span: only rounding is left.
    exact = 2 * eta * tau_x[:, None] * tau_z[None, :] + least
    either = landmark_x[:, None] | landmark_z[None, :]
    return xp.where(either & (exact < general), exact, general)


def landmark_rows(X, S):
    """Which rows of X are landmarks, to the bit; no rows where that cannot be told."""
    n = X.shape[0]
    if (
        isinstance(X, np.ndarray)
        and isinstance(S, np.ndarray)
        and X.ndim == 2
        and X.dtype != object
    ):
        X, S = np.ascontiguousarray(X + 0.0), np.ascontiguousarray(S + 0.0)  # -0.0 equals 0.0
        if X.dtype == S.dtype and X.shape[1] == S.shape[1]:
            row = np.dtype((np.void, X.dtype.itemsize * X.shape[1]))
            return np.isin(X.view(row).ravel(), S.view(row).ravel())
    return np.zeros(n, dtype=bool)
