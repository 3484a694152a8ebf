"""Kernels that see two points only through their distance."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.special import kv

from ..engine import Domain, Form, in_place, is_number, is_numpy, namespace
from .capabilities import OfOneNumber, Slopes
from .geometry import EuclideanFrame, SingleSums, full
from .kernel import ALL, Kernel
from .matern import MANY_DERIVATIVES, matern_of_large_nu, matern_of_small_nu
from .parameters import RULES, as_numbers, column_scale, is_one_number, per_column
from .spectral import FourierForm, GaussianForm, MaternForm, RationalForm
from .types import Array, Gamma, PerColumn, Tile

_UNIT = float(np.finfo(float).eps) / 2
# The square of a smaller distance vanishes.
_LEAST_DISTANCE = float(np.finfo(float).tiny) ** 0.5


class Stationary(OfOneNumber, Kernel):
    """A function of the Euclidean distance between scaled points: a formula of t = -d^2, with the
    sign that exp needs. Subclasses give the formula."""

    @property
    def _cancels(self) -> float:
        """Squared distances below this share of |x|^2 are recomputed by differences. Formulas that
        are smooth in d^2 need few of them; where d itself enters, an error e in d^2 is one of
        e / 2d."""
        return 1e-12

    def scale(self) -> Array | float:
        """The factor of coordinates: one number, or one per column."""
        return 1.0

    def _embedding(self, S: Array) -> Callable[[Array], Array]:
        """The points between which distances are taken, as a function of rows."""
        return lambda X: X

    @property
    def _is_smooth(self) -> bool:
        """Whether its slope is bounded."""
        return self._knows_slope

    @property
    def has_slope(self) -> bool:
        return self._is_smooth and is_one_number(*self.length_parameters().values())

    def slopes(self, Z: Array, S: Array) -> Slopes:
        scale = float(self.scale())
        t = EuclideanFrame(S, scale, 1e-12).minus_squared_distances(Z, ALL)
        xp = namespace(t)
        t = xp.where(t < 0, t, xp.zeros_like(t))
        p = self.slope(t, xp) * (-2 * scale**2)
        return Slopes(self._of(t), p, -p)

    def slope_against(self, S: Array) -> Tile | None:
        return self._tile(S, self.slope) if self._is_smooth else None

    def against(self, S: Array) -> Tile:
        return self._tile(S, self.formula)

    def _tile(self, S, function):
        embed, dtype = self._embedding(S), S.dtype
        S = embed(S)
        frame = EuclideanFrame(S, column_scale(S, self.scale()), self._cancels)

        def tile(rows: Any, columns: slice = ALL):
            t = frame.minus_squared_distances(embed(rows), columns)
            xp = namespace(t)
            values = function(t, xp)
            return values if values.dtype == dtype else xp.astype(values, dtype)

        return tile

    def single_sums(self, S: Array) -> SingleSums | None:
        """The formulas that have a name are mixtures of exponential functions of d^2. There the
        largest |k' / k| is at d = 0: the steepest of them vanish first."""
        if not (self._fused and self._is_smooth and is_numpy(S)):
            return None
        frame = EuclideanFrame(S, column_scale(S, self.scale()), 0.0)
        return SingleSums(frame, self.formula, self._steepest(0.0))

    def diagonal(self, X: Array) -> Array:
        return full(X, (X.shape[0],), 1.0)

    @property
    def _fused(self) -> tuple[Any, ...]:
        """The name of the formula among those of engine/fused.py, and its numbers there."""
        return ()

    def fused_form(self) -> Form | None:
        return Form.of(self.scale(), self.formula, *self._fused)

    def _steepest(self, d2: float) -> float:
        """The largest |dk / d(d^2)| at squared distances of at least d2."""
        return 1.0

    def rounding(self, S: Array) -> float:
        """A product of rows is off by (1 + sqrt(columns)) units of their squared length; a distance
        of differences by as many units of itself, and |d^2 k'(d^2)| < 1/2."""
        S = self._embedding(S)(S)
        frame = EuclideanFrame(S, column_scale(S, self.scale()), 0.0)
        r2 = float(frame.xp.max(frame.norms))
        reach = 1 + S.shape[1] ** 0.5
        return 4 + reach / 2 + (reach * self._cancelled(r2) if r2 > 0 else 0.0)

    def _cancelled(self, r2: float) -> float:
        """The largest (|x|^2 + |z|^2) |k'(d^2)| of points with squared lengths up to r2 whose d^2
        is not recomputed by differences."""
        return 2 * r2 * self._steepest(self._cancels * r2)

    def moved(self, by: np.ndarray) -> float | None:
        """|dk / dd| is at most sqrt(2 / e) for RBF, of which the others are mixtures."""
        return 0.86 * float(np.sqrt(np.sum((as_numbers(self.scale()) * by) ** 2)))


class RBF(Stationary):
    r"""Compare points by nearness, with smooth functions: exp(-gamma |x - z|^2).

    With a length scale s, gamma = 1 / (2 s^2).

    Parameters
    ----------
    gamma : float, list of one per column, "scale" or "median"
        "scale" is 1 / (d * variance of all entries), as in scikit-learn's SVC; "median" is
        1 / (2 * median squared distance).

    Notes
    -----
    .. math::

        k(x, z) = \exp(-\gamma\, |x - z|^2)

    - *Valid*: exp(2 gamma x.z) is a kernel by rule 4 of [KERNELS], and rule 2 multiplies it by
      exp(-gamma |x|^2) and exp(-gamma |z|^2).
    - *Fails*: where columns have different units; for rough answers (take Matern); with a tiny
      gamma, where the kernel matrix is numerically singular; far from the data, where predictions
      return to 0.
    - *Elsewhere*: scikit-learn's `rbf_kernel` and `RBF`, GPyTorch's `RBFKernel`, tinygp's
      `ExpSquared`, kernlab's `rbfdot`; all but the first and last with a length l, gamma = 1 / (2
      l^2).

    Examples
    --------
    >>> from mercer import RBF
    >>> RBF(gamma=0.5)([[0.0], [1.0], [2.0]]).round(3)
    array([[1.   , 0.607, 0.135],
           [0.607, 1.   , 0.607],
           [0.135, 0.607, 1.   ]])
    """

    sklearn_names = ("rbf",)
    is_psd = True
    length_powers = {"gamma": -2}
    _fused = ("exp",)
    domains = {"gamma": per_column(*RULES)}

    def __init__(self, gamma: Gamma = "scale") -> None:
        self.gamma = gamma

    def scale(self) -> Array | float:
        return np.sqrt(as_numbers(self.gamma))

    def formula(self, t: Array, xp: ModuleType) -> Array:
        return in_place(xp.exp, t)

    def slope(self, t: Array, xp: ModuleType) -> Array:
        return xp.exp(t)

    def fourier_form(self) -> FourierForm | None:
        return GaussianForm(self.scale())


class RationalQuadratic(Stationary):
    r"""Compare points by nearness on many scales at once.

    (1 + d^2 / (2 a l^2))^-a: a scale mixture of RBF kernels.

    Parameters
    ----------
    alpha : float
        a: small for heavy tails, large for RBF.
    length_scale : float or list of one per column
        The distance over which values change, l in the formula.

    Notes
    -----
    .. math::

        k(x, z) = \left( 1 + \frac{d^2}{2 a\, l^2} \right)^{-a}, \quad d = |x - z|

    - *Valid*: a mixture of RBF kernels whose gamma has a gamma distribution.
    - *Fails*: in telling a and l apart: data hardly do. Tails are heavy, so few pairs are nearly 0.
    - *Elsewhere*: scikit-learn's and tinygp's `RationalQuadratic`, GPyTorch's `RQKernel`.

    Examples
    --------
    >>> from mercer import RationalQuadratic
    >>> RationalQuadratic(alpha=1.0)([[0.0]], [[1.0], [2.0]]).round(3)
    array([[0.667, 0.333]])
    """

    sklearn_names = ("rational_quadratic",)
    is_psd = True
    length_powers = {"length_scale": 1}
    domains = {"alpha": Domain.POSITIVE, "length_scale": per_column()}

    def __init__(self, alpha: float = 1.0, length_scale: PerColumn = 1.0) -> None:
        self.alpha = alpha
        self.length_scale = length_scale

    def scale(self) -> Array | float:
        return 1 / as_numbers(self.length_scale)

    @property
    def _alpha(self) -> float:
        """Beyond 1e30 it is RBF, digit by digit, and single precision has no room."""
        return min(float(self.alpha), 1e30)

    def formula(self, t: Array, xp: ModuleType) -> Array:
        return self._power(t, xp, self._alpha)

    def slope(self, t: Array, xp: ModuleType) -> Array:
        return 0.5 * self._power(t + 0, xp, self._alpha + 1)

    def _power(self, t, xp, a):
        """By its logarithm: 1 + d^2 / (2 alpha) loses the digits of d^2 where alpha is large."""
        t /= -2 * self._alpha
        t = in_place(xp.log1p, t)
        t *= -a
        return in_place(xp.exp, t)

    def _steepest(self, d2: float) -> float:
        return 0.5

    @property
    def _fused(self) -> tuple[Any, ...]:
        return "rational", self._alpha

    def fourier_form(self) -> FourierForm | None:
        return RationalForm(self.scale(), self._alpha)


class Matern(Stationary):
    r"""Compare points by nearness, with functions as smooth as `nu` says.

    The Matern family: nu = 1/2 is exp(-d / l), nu to infinity is RBF.

    Parameters
    ----------
    nu : float
        Smoothness; inf is RBF(1 / (2 l^2)). 0.5, 1.5, 2.5 and all from 20 on run on any backend.
    length_scale : float or list of one per column
        The distance over which values change, l in the formula.

    Notes
    -----
    .. math::

        k(x, z) = \frac{2^{1-\nu}}{\Gamma(\nu)}\, t^\nu K_\nu(t), \quad t = \sqrt{2\nu}\, d / l

    - *Valid*: its spectral density, a Student t density, is positive (Bochner).
    - *Fails*: for many rows of a rough kernel: it needs one coordinate per row. Other nu than 1/2,
      3/2, 5/2 need Bessel functions, which are slow.
    - *Elsewhere*: scikit-learn's `Matern`, GPyTorch's `MaternKernel`, tinygp's `Matern32` and
      `Matern52`. kernlab's `laplacedot` is nu = 1/2.

    Examples
    --------
    >>> from mercer import Matern
    >>> Matern(nu=0.5)([[0.0]], [[0.0], [1.0], [2.0]]).round(3)
    array([[1.   , 0.368, 0.135]])
    """

    sklearn_names = ("matern",)
    is_psd = True
    length_powers = {"length_scale": 1}
    domains = {
        "nu": Domain(lambda nu: is_number(nu) and nu > 0, "a positive number", " (inf is RBF)"),
        "length_scale": per_column(),
    }

    def __init__(self, nu: float = 1.5, length_scale: PerColumn = 1.0) -> None:
        self.nu = nu
        self.length_scale = length_scale

    @property
    def _cancels(self) -> float:
        """Below nu = 3/2 the formula is not smooth in d^2."""
        return 1e-12 if self.nu >= 1.5 else 1e-4

    def _embedding(self, S: Array) -> Callable[[Any], Array]:
        """In double precision for a small nu: squares of distances must not vanish."""
        if self.nu >= 0.5 or not (is_numpy(S) or issparse(S)):
            return super()._embedding(S)
        return lambda X: X.astype(np.float64, copy=False)

    def moved(self, by: np.ndarray) -> float | None:
        """|dk / dd| is at most 1 from nu = 1/2 on; below, k changes fastest at d = 0."""
        size = float(np.sqrt(np.sum((as_numbers(self.scale()) * by) ** 2)))
        return size if self.nu >= 0.5 else self._units_from_1(size * _UNIT)

    def _units_from_1(self, d):
        return float(1 - self.formula(np.array([-d * d]), np)[0]) / _UNIT

    def _steepest(self, d2: float) -> float:
        """nu / (2 (nu - 1)) at d = 0; below nu = 3/2 by the derivative of t^nu K_nu(t)."""
        nu = float(self.nu)
        if nu >= 1.5 or (d2 == 0 and nu > 1):
            return 0.5 if nu == math.inf else nu / (2 * (nu - 1))
        t = math.sqrt(2 * nu * d2)
        return nu * 2 ** (1 - nu) / math.gamma(nu) * t ** (nu - 1) * float(kv(nu - 1, t))

    def _cancelled(self, r2: float) -> float:
        """Below nu = 3/2 the slope falls with d, and d^2 is recomputed below a share of |x|^2: not
        the longest x is the worst. With |z| <= |x| + d it is 3 |x|^2 + 2 d^2 at most, where the
        second part is one (|d^2 k'(d^2)| < 1/2). |x|^2 k' rises up to t = 2, at most, and falls.
        """
        if self.nu >= 1.5:
            return super()._cancelled(r2)
        at_most = 4.0 / (2 * float(self.nu) * self._cancels)
        lengths = np.linspace(0.0, min(r2, at_most), 101)[1:]
        return 1 + 3.1 * max(s2 * self._steepest(self._cancels * s2) for s2 in lengths.tolist())

    def scale(self) -> Array | float:
        return 1 / as_numbers(self.length_scale)

    def formula(self, t: Array, xp: ModuleType) -> Array:
        t *= -1.0
        if self.nu >= MANY_DERIVATIVES:
            return matern_of_large_nu(float(self.nu), t, xp)
        # Far away the exponential is 0; an infinite factor beside it would make 0 * inf.
        d = in_place(xp.sqrt, t)
        d = np.clip(d, 0.0, 1e18, out=d) if is_numpy(d) else xp.clip(d, 0.0, 1e18)
        if self.nu == 0.5:
            d *= -1.0
            return in_place(xp.exp, d)
        if self.nu == 1.5:
            d *= -math.sqrt(3)
            polynomial = 1 - d
            polynomial *= in_place(xp.exp, d)
            return polynomial
        if self.nu == 2.5:
            d *= -math.sqrt(5)
            polynomial = d * (1 / 3)
            polynomial -= 1
            polynomial *= d
            polynomial += 1
            polynomial *= in_place(xp.exp, d)
            return polynomial
        if not is_numpy(d):
            raise TypeError(
                f"Matern(nu={self.nu}) needs scipy.special and so NumPy arrays; on other backends "
                f"use nu = 0.5, 1.5 or 2.5, or at least {MANY_DERIVATIVES}."
            )
        return matern_of_small_nu(float(self.nu), d.astype(np.float64)).astype(d.dtype)

    def slope(self, t: Array, xp: ModuleType) -> Array:
        """Matern's kernel with nu - 1, up to a factor."""
        nu = float(self.nu)
        if nu == 0.5:
            # Not differentiable at d = 0: the average over all directions is zero.
            d = xp.sqrt(-t)
            return xp.where(d > 0, 0.5 * xp.exp(-d) / xp.where(d > 0, d, 1 + d), 0 * d)
        ratio = 1.0 if nu == math.inf else nu / (nu - 1)
        return self._steepest(0.0) * Matern(nu - 1).formula(t * ratio, xp)

    @property
    def _is_smooth(self) -> bool:
        return self.nu > 1

    @property
    def has_slope(self) -> bool:
        return (self._is_smooth or self.nu == 0.5) and is_one_number(self.length_scale)

    @property
    def _fused(self) -> tuple[Any, ...]:
        closed = {0.5: "matern12", 1.5: "matern32", 2.5: "matern52"}
        return (closed[self.nu],) if self.nu in closed else ()

    def fourier_form(self) -> FourierForm | None:
        return MaternForm(self.scale(), float(self.nu), lambda r: self.formula(-(r**2), np))

    def rounding(self, S: Array) -> float:
        units = super().rounding(S)
        if self.nu < 0.5:
            units += self._units_from_1(_LEAST_DISTANCE)
        if self.nu in (0.5, 1.5, 2.5) or self.nu >= MANY_DERIVATIVES:
            return units
        return units + 50.0 + 6.0 * float(self.nu)  # twice the most found against 40 digits
