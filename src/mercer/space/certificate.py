"""How wrong can phi(x) . phi(z) be? A bound that holds in floating point.

Let a = C^-T phi(z): f_z = sum_i a_i k(s_i, .) is the function whose coordinates are phi(z). What is
computed satisfies C C' = k(S, S) + E and C phi(z) = k(S, z) + e with |E_ij| <= eta l_i l_j and
|e_i| <= eta l_i l(z), where l = sqrt k(x, x) and eta = u (sqrt r + c_k): as good are kernel values
and solves. With A(z) = sum_i |a_i| l_i and tau = l + A (MATH.md section 7):

1. <k_x - f_x, k_z - f_z> = k(x, z) - phi(x).phi(z), up to eta tau(x) tau(z). At x = z this says
   |k_z - f_z|^2 <= rho^2 + eta tau^2; so |error| <= R(x) R(z), R^2 = rho^2 + 2 eta tau^2.
2. phi(x).phi(z) = f_x(z), up to eta l(z) A(x). So |error| <= |<k_x - f_x, k_z>| + eta l(z) tau(x)
   <= l(z) (R(x) + eta tau(x)): z enters as it is, however badly its own weights are conditioned.
3. At a landmark x = s_j, row j of C phi(z) = k(S, z) + e says f_z(s_j) = k(s_j, z), up to
   eta l_j tau(z): with (2), |error| <= 2 eta l(x) tau(z). Nothing but rounding is left.

The smallest of these holds. eta is what rounding does as a rule, not at worst; where the argument
has eta, the code has 2 eta.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine import (
    Array,
    TravelsAsNumPy,
    as_numpy,
    is_matrix,
    itemsize,
    namespace,
    on_device_of,
    rows_of,
    tiles,
)
from ..kernels import Kernel, NotPSDError

_SINGLE_UNIT = float(np.finfo(np.float32).eps) / 2
_SINGLE_TINY = float(np.finfo(np.float32).smallest_normal)


@dataclass
class Radii(TravelsAsNumPy):
    """Quantities of some points that the certificate needs."""

    rho2: Any  # |k(x, x) - |phi(x)|^2|: below zero it is an error as well
    tau: Any  # sqrt k(x, x) + sum_i |a_i| sqrt k(s_i, s_i)
    length: Any  # sqrt k(x, x), or what its rounding is relative to where that is more
    landmark: Any  # True where x is a landmark, to the bit

    def mean(self) -> "Radii":
        """Radii of the points' mean. Every term of the bound is linear in R, tau and length,
        which are at most their root mean squares."""
        xp, squares = namespace(self.rho2), (self.rho2, self.tau**2, self.length**2)
        rho2, tau2, length2 = (xp.mean(v, keepdims=True) for v in squares)
        return Radii(rho2, xp.sqrt(tau2), xp.sqrt(length2), xp.zeros_like(self.landmark[:1]))


def radii_of_one(rho2: float, tau: float, length: float, like: Array) -> Radii:
    """Radii of a single point that is not a landmark, where and as `like` is."""
    rho2, tau, length = (on_device_of(np.array([v]), like) for v in (rho2, tau, length))
    no = on_device_of(np.zeros(1, bool), like, dtype=namespace(like).bool)
    return Radii(rho2, tau, length, no)


def _omega(length: Any, xp: Any) -> Any:
    """The part of k(x, x) that underflow can hide: next to nothing, except for tiny points."""
    info = xp.finfo(length.dtype)
    tiny, eps = float(info.smallest_normal), float(info.eps)
    one = xp.ones_like(length)
    return xp.where(length**2 < tiny / eps, tiny / eps * one, tiny * one)


@np.errstate(over="ignore")  # an infinite bound is a bound
def bound(
    x: Radii,
    z: Radii,
    eta: float,
    mean: Radii | None = None,
    *,
    appended: bool = False,
    casts: tuple[float, float] = (0.0, 0.0),
) -> Any:
    """|k(x, z) - phi(x) . phi(z)| at most, for all pairs; of the centred kernel with `mean`.

    A centred error is a sum of four: of (x, z), (x, mean), (mean, z) and (mean, mean).

    appended : whether rho follows as one more coordinate. All residuals share that one axis, so
        that two points' inner product gains rho(x) rho(z), whatever their residuals have in common
    casts : unit roundoffs of the precisions to which the coordinates of x and of z are cast, 0
        where they stay as they are
    """
    error = _pairs(x, z, eta)
    if mean is not None:
        error = error + _pairs(x, mean, eta) + _pairs(mean, z, eta) + _pairs(mean, mean, eta)
    if appended:
        error = error + _radius(x, eta)[:, None] * _radius(z, eta)[None, :]
    if any(casts):
        size_x, size_z = _size(x, eta, mean), _size(z, eta, mean)
        units = casts[0] + casts[1] + casts[0] * casts[1]
        error = error + units * size_x[:, None] * size_z[None, :]
        # Coordinates below the range of single precision vanish.
        error = error + _SINGLE_TINY * (size_x[:, None] + size_z[None, :] + _SINGLE_TINY)
    # Infinity times zero (no bound on rounding, a zero value) is not known: infinity is a bound.
    xp = namespace(error)
    return xp.where(xp.isnan(error), xp.full_like(error, xp.inf), error)


def _radius(x: Radii, eta: float) -> Any:
    """R(x) of the argument above."""
    xp = namespace(x.rho2)
    return xp.sqrt(x.rho2 + 2 * eta * x.tau**2 + _omega(x.length, xp))


def _size(x: Radii, eta: float, mean: Radii | None) -> Any:
    """|phi(x)| at most; about the mean, where there is one."""
    xp = namespace(x.rho2)
    size = xp.sqrt(x.length**2 + _radius(x, eta) ** 2)
    return size if mean is None else size + _size(mean, eta, None)


def cast_unit(given: Any, computed: Any) -> float:
    """The roundoff of handing back float32 coordinates of a map that computes in float64."""
    return _SINGLE_UNIT if itemsize(given) == 4 and itemsize(computed) == 8 else 0.0


def refute_by_residuals(kernel: Kernel, rho2: Array, tau: Array, length: Any, eta: float) -> None:
    """Refuse a certificate to a similarity that these rows refute: k(x, x) < |phi(x)|^2."""
    xp = namespace(rho2)
    excess = -rho2 - 2 * eta * tau**2 - 1e3 * eta * length**2
    if not rho2.shape[0] or float(xp.max(excess)) <= 0:
        return
    i = int(xp.argmax(excess))
    raise NotPSDError(
        f"{kernel!r} is not positive semi-definite: row {i} has k(x, x) - |phi(x)|^2 = "
        f"{float(rho2[i]):.4g}, so that no certificate holds. Fit with indefinite='clip', or use a "
        "valid kernel."
    )


def _pairs(x: Radii, z: Radii, eta: float) -> Any:
    xp = namespace(x.rho2)

    def smaller(a: Array, b: Array) -> Any:
        return xp.where(b < a, b, a)

    least_x, least_z = _omega(x.length, xp), _omega(z.length, xp)
    least = xp.sqrt(least_x)[:, None] * xp.sqrt(least_z)[None, :]
    # k(z, z) may underflow where k(x, z) does not.
    long_x, long_z = xp.sqrt(x.length**2 + least_x), xp.sqrt(z.length**2 + least_z)
    R_x, R_z = _radius(x, eta), _radius(z, eta)
    error = R_x[:, None] * R_z[None, :]
    error = smaller(error, (R_x + 2 * eta * x.tau)[:, None] * long_z[None, :] + least)
    error = smaller(error, long_x[:, None] * (R_z + 2 * eta * z.tau)[None, :] + least)
    if bool(xp.any(x.landmark)):
        exact = 4 * eta * long_x[:, None] * z.tau[None, :] + least
        error = xp.where(x.landmark[:, None] & (exact < error), exact, error)
    if bool(xp.any(z.landmark)):
        exact = 4 * eta * x.tau[:, None] * long_z[None, :] + least
        error = xp.where(z.landmark[None, :] & (exact < error), exact, error)
    return error


def landmark_rows(X: Array, S: Array, like: Array) -> Any:
    """Which rows of X are landmarks, to the bit, as an array where `like` is; no rows where that
    cannot be told."""
    rows = np.zeros(X.shape[0], dtype=bool)
    if is_matrix(X) and is_matrix(S) and X.dtype == S.dtype and X.shape[1] == S.shape[1]:
        known = set(_bytes_of_rows(S))
        for a, b in tiles.row_blocks(X, X.shape[1]):
            rows[a:b] = [row in known for row in _bytes_of_rows(rows_of(X, a, b))]
    return on_device_of(rows, like, dtype=namespace(like).bool)


def _bytes_of_rows(X: Array) -> list[bytes]:
    return [row.tobytes() for row in as_numpy(X) + 0.0]  # -0.0 equals 0.0
