"""Evidence: the metric, the noise and the scales with the largest marginal likelihood.

The targets are those of a Gaussian process with covariance C = s k(z, z') + l x'x' / d + c + v W^-1
on z = x B, W the weights of rows (MATH.md section 13). With a = C^-1 t and Q = C^-1 - a a', the
derivative of f = t'C^-1 t / 2 + log|C| / 2 is tr(Q dC) / 2. Where grad_z k(z, z') = p z + e z'
(learn/metric.py), that of row i of Z = X B is sum_j s Q_ij (p_ij z_i + e_ij z_j): one product
for all lengths, or for all of the matrix B, at once. Unlike leave-one-out errors of the plain
kernel, evidence has a slope where few of many columns matter.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ..engine import as_numpy, cholesky, inverse_of_factor, namespace, on_device_of, put
from ..kernels import Kernel
from .metric import applied
from .observations import Observations

# Prior deviations: of the logarithms of lengths around the start, and of s, l, c, v around 1.
LENGTHS, SCALES = 3.0, 5.0
# Bounds of the same logarithms; without them nearly noiseless targets send the first step away.
LENGTH_BOUNDS, SCALE_BOUNDS, LEAST_NOISE = (-4.0, 6.0), (-12.0, 8.0), -16.0
# A linear part smaller than this share of the kernel's scale is left out.
_NEGLIGIBLE = 1e-4
# Rows of a quick search, of the first starts, and of the last; steps of a start, and steps from the
# best of them.
QUICK, FEW, MANY = 300, 500, 1200
FIRST_STEPS, STEPS = 20, 30
# A start ends where a step gains less than this share.
_PRECISION = 1e-5
# Evidence is that of noise where it is better than without any kernel by less than this share; from
# the second share on, few rows have found where more rows go on.
SIGNAL, PLAIN_TO_SEE = 0.05, 0.5
# Starts where all are those of noise.
_STARTS = 6


@dataclass(frozen=True, eq=False)
class _Covariance:
    """s k(x B, x' B) + l x'x' / d + c + v, and the negative logarithm of its evidence.

    B : one weight per column, or a matrix
    scales : logarithms of s, l, c and v
    """

    B: np.ndarray
    scales: np.ndarray
    value: float = math.inf

    @property
    def linear(self) -> float:
        """Weight of x'x' relative to s; 0 where it is negligible."""
        share = math.exp(self.scales[1] - self.scales[0])
        return share / self.B.shape[0] if share > _NEGLIGIBLE else 0.0


class _Evidence:
    """The evidence of some rows, for a kernel that is bound.

    plain : the weight of a column in z = x B that makes the kernel's lengths moderate
    linear : whether there may be a linear part
    """

    def __init__(
        self, kernel: Kernel, rows: Observations, plain: float, linear: bool = True
    ) -> None:
        xp = namespace(rows.X)
        T = rows.T - xp.mean(rows.T, axis=0)
        size = float(xp.mean(T * T)) ** 0.5
        self.kernel, self.plain, self.X, self.T = kernel, plain, rows.X, T / (size or 1.0)
        centred = rows.X - xp.mean(rows.X, axis=0)
        self.linear, self.inner = linear, centred @ centred.T / rows.X.shape[1]
        self.shifts = xp.ones_like(T[:, 0]) if rows.weights is None else 1 / rows.weights
        self.n, self.d = rows.X.shape

    @property
    def of_noise(self) -> float:
        """f without any kernel."""
        return float(0.5 * self.T.shape[0] * self.T.shape[1])

    def signal(self, found: _Covariance, share: float = SIGNAL) -> bool:
        """Whether a covariance says more of the targets than noise would."""
        return found.value < (1 - share) * self.of_noise

    def best(self, start: _Covariance, steps: int) -> _Covariance:
        """The covariance found from a start, its B of the same kind, by at most so many steps."""
        full, unit = start.B.ndim == 2, self.d**-0.5
        # A matrix is pulled to its start, entries of B by 1 / sqrt(d); lengths to those of `plain`.
        first = np.zeros(self.d**2) if full else -np.log(start.B)
        centre = np.r_[first if full else np.full(self.d, -math.log(self.plain)), np.zeros(4)]
        deviation = np.r_[np.full(len(first), 1.0 if full else LENGTHS), np.full(4, SCALES)]

        def read(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            free, scales = theta[:-4], theta[-4:]
            B = start.B + unit * free.reshape(start.B.shape) if full else np.exp(-free)
            return B, scales

        def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
            B, scales = read(theta)
            value, of_B, of_scales = self.of(B, scales)
            off = (theta - centre) / deviation
            slope = unit * of_B.ravel() if full else -B * of_B
            return value + 0.5 * off @ off, np.r_[slope, of_scales] + off / deviation

        low, high = (-math.inf, math.inf) if full else LENGTH_BOUNDS
        bounds = [(x + low, x + high) for x in first] + [SCALE_BOUNDS] * 3
        if not self.linear:
            bounds[-2] = (SCALE_BOUNDS[0], SCALE_BOUNDS[0])
        found = minimize(
            loss,
            np.r_[first, start.scales],
            jac=True,
            method="L-BFGS-B",
            bounds=[*bounds, (LEAST_NOISE, SCALE_BOUNDS[1])],
            options={"maxiter": steps, "maxfun": 2 * steps, "ftol": _PRECISION},
        )
        B, scales = read(found.x)
        return _Covariance(B, scales, float(found.fun))

    def of(self, B: np.ndarray, scales: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """(f, its derivatives by B and by the logarithms of s, l, c and v), without the prior."""
        s, l, c, v = (float(x) for x in np.exp(scales))
        xp, X, t = namespace(self.X), self.X, self.T.shape[1]
        Z = applied(X, on_device_of(B, X))
        k, p, e = self.kernel.slopes(Z, Z)
        C = s * k
        C += l * self.inner
        C += c
        diagonal = np.arange(self.n)
        C = cholesky(put(C, diagonal, diagonal, xp.linalg.diagonal(C) + v * self.shifts))
        if C is None:  # singular to rounding: the line search comes back
            return 1e6 * self.of_noise, np.zeros(B.shape), np.zeros(4)
        logs = 2 * float(xp.sum(xp.log(xp.linalg.diagonal(C))))
        Q = inverse_of_factor(C)
        a = Q @ self.T
        value = 0.5 * float(xp.sum(a * self.T)) + 0.5 * t * logs
        Q *= t
        Q -= a @ a.T
        of_scales = 0.5 * np.array(
            [
                s * float(xp.sum(xp.vecdot(Q, k))),
                l * float(xp.sum(xp.vecdot(Q, self.inner))),
                c * float(xp.sum(Q)),
                v * float(xp.sum(xp.linalg.diagonal(Q) * self.shifts)),
            ]
        )
        of_Z = xp.zeros_like(Z)
        if p is not None:
            of_Z = xp.vecdot(Q, p)[:, None] * Z
        if e is not None:
            Q *= e
            of_Z = of_Z + Q @ Z
        of_B = xp.sum(X * of_Z, axis=0) if B.ndim == 1 else X.T @ of_Z
        return value, s * as_numpy(of_B), of_scales


def by_evidence(
    kernel: Kernel,
    rows: Observations,
    plain: float,
    rng: np.random.Generator,
    *,
    full: bool,
    linear: bool = True,
    effort: str = "whole",
) -> list[_Covariance]:
    """The covariance with one weight per column, and from there that with a full matrix.

    Moderate lengths and half of them on few rows, the better one and half of them again on more
    rows; random lengths while the evidence is that of noise. `rows` are in random order. A "quick"
    search has more starts only where the first find nothing, and no random ones; a "short" one
    does not go on from the best start either.
    """
    d, whole = rows.X.shape[1], effort == "whole"

    def of_first(m: int) -> _Evidence:
        return _Evidence(kernel, rows.some(np.arange(min(m, rows.n))), plain, linear)

    def begun(weights: Any) -> _Covariance:
        """Half of the variance is noise to begin with."""
        start = _Covariance(np.zeros(d) + weights, np.log([0.5, 0.05, 0.05, 0.5]))
        return of_rows.best(start, FIRST_STEPS)

    of_rows = of_first(FEW if whole else QUICK)
    best = begun(2 * plain)
    if whole or not of_rows.signal(best):
        best = _likelier(best, begun(plain))
    known, plain_to_see = of_rows.signal(best), of_rows.signal(best, PLAIN_TO_SEE)
    if rows.n > FEW and (whole or not known):
        of_rows = of_first(MANY)
        if not plain_to_see:
            first = begun(2 * plain)
            best = _likelier(first, of_rows.best(best, FIRST_STEPS)) if known else first
    for _ in range(_STARTS - 2 if whole else 0):
        if of_rows.signal(best):
            break
        best = _likelier(best, begun(plain * np.exp(rng.normal(size=d))))
    if not whole:
        more = effort == "quick" and known
        return [of_first(2 * QUICK).best(best, STEPS) if more else best]
    best = of_rows.best(best, STEPS)
    if not full:
        return [best]
    return [best, of_rows.best(replace(best, B=np.diag(best.B)), STEPS)]


def _likelier(a: _Covariance, b: _Covariance) -> _Covariance:
    return b if b.value < a.value else a
