"""Kernels made of kernels: the construction rules of [KERNELS] that need no data.

Every node knows the feature map that its rule carries: sums concatenate, products take all
pairwise products, powers take the symmetric ones.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import reduce
from types import ModuleType
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..engine import Domain, Form, in_place, is_number, is_symbolic, namespace, require
from . import monomials
from .capabilities import Slopes, above_underflow
from .composite import Binary, FunctionOf, asked, combined
from .geometry import full
from .hashing import MOST_COLUMNS, row_products, side_by_side, width_side_by_side
from .kernel import ALL, Kernel
from .parametrized import printed, printed_in
from .spectral import ConstantForm, FourierForm, ProductForm, SumForm
from .types import Array, Tile

_NOT_NEGATIVE = Domain(
    lambda value: is_number(value) and 0 <= value < math.inf,
    "a finite number >= 0",
    ": a negative multiple of a kernel is not a kernel",
)


class Constant(Kernel):
    """Add a constant, such as an intercept: c for every pair of points.

    Its feature space has one dimension, in which all points coincide.

    Parameters
    ----------
    c : float
        At least 0. ``k + 1`` is ``k + Constant(1)``.

    Notes
    -----
    .. math::

        k(x, z) = c

    - *Valid*: for c >= 0; its map is the number sqrt(c).
    - *Fails*: alone, since all points are the same to it. In a sum it is an intercept.
    - *Elsewhere*: scikit-learn's and GPyTorch's `ConstantKernel`.

    Examples
    --------
    >>> from mercer import Constant, Linear
    >>> (Linear() + Constant(1.0))([[2.0]], [[3.0]])
    array([[7.]])
    """

    is_psd = True
    kind = "any"
    domains = {"c": _NOT_NEGATIVE}

    def __init__(self, c: float = 1.0) -> None:
        self.c = c

    def against(self, S: Array) -> Tile:
        places: Any = range(S.shape[0])
        return lambda rows, columns=ALL: full(rows, (rows.shape[0], len(places[columns])), self.c)

    def diagonal(self, X: Array) -> Array:
        return full(X, (X.shape[0],), self.c)

    has_slope = True

    def slopes(self, Z: Array, S: Array) -> Slopes:
        return Slopes(self.against(S)(Z), None, None)

    def fused_form(self) -> Form | None:
        return Form.constant(self.c)

    def fourier_form(self) -> FourierForm | None:
        return ConstantForm(float(self.c))

    def moved(self, by: np.ndarray) -> float | None:
        return 0.0

    def features(self, X: Array) -> Array:
        return full(X, (X.shape[0], 1), math.sqrt(self.c))

    def explicit_dim(self, n_features: int | None) -> int | None:
        return 1


class Sum(Binary):
    """k1 + k2: rule 5. Feature maps are placed side by side."""

    precedence = 1
    _symbol = "+"
    _operation = staticmethod(operator.add)
    _in_place = staticmethod(operator.iadd)
    _series = SumForm
    _dimension = staticmethod(width_side_by_side)

    def features(self, X: Array) -> Array:
        maps = self._maps(X)
        if issparse(maps[0]):
            return reduce(side_by_side, maps)
        return namespace(*maps).concat(maps, axis=1)

    def rounding(self, S: Array) -> float:
        terms = self._terms
        # Every addition beyond the first rounds once more, by half a unit.
        return max(term.rounding(S) for term in terms) + (len(terms) - 2) / 2


class Product(Binary):
    """k1 * k2: rule 6. Feature maps are multiplied coordinate by coordinate."""

    precedence = 2
    _symbol = "*"
    _operation = staticmethod(operator.mul)
    _in_place = staticmethod(operator.imul)
    _series = ProductForm
    # Beyond, pairs of sparse columns are hashed.
    _dimension = staticmethod(lambda left, right: min(left * right, MOST_COLUMNS))

    def features(self, X: Array) -> Array:
        maps = self._maps(X)
        return reduce(row_products if issparse(maps[0]) else _pairwise_products, maps)

    def magnitude(self, X: Array) -> Array:
        return above_underflow(super().magnitude(X))

    def rounding(self, S: Array) -> float:
        return sum(term.rounding(S) for term in self._terms)


def _pairwise_products(F, G):
    monomials.require_room(F, F.shape[1] * G.shape[1])
    xp = namespace(F, G)
    return xp.reshape(F[:, :, None] * G[:, None, :], (F.shape[0], F.shape[1] * G.shape[1]))


class Scaled(FunctionOf):
    """c k with c >= 0: rule 1."""

    precedence = 2
    domains = {"scale": _NOT_NEGATIVE}

    def __init__(self, kernel: Kernel | str, scale: float) -> None:
        self.kernel = kernel
        self.scale = scale

    def __repr__(self) -> str:
        return f"{printed(self.scale)} * {printed_in(self.kernel, 3)}"

    is_linear = asked("is_linear", next)

    @property
    def is_psd(self) -> bool | None:
        return True if self.scale == 0 else self.kernel.is_psd

    def slope_against(self, S: Array) -> Tile | None:
        return self.kernel.slope_against(S)

    def slope(self, t: Array, xp: ModuleType) -> Array:
        return 0 * t + float(self.scale)

    def formula(self, t: Array, xp: ModuleType) -> Array:
        t *= float(self.scale)
        return t

    @property
    def has_magnitude(self) -> bool:
        # A large scale brings back what underflow has taken.
        return self.kernel.has_magnitude or self.scale > 1

    def fused_form(self) -> Form | None:
        return combined([Form.constant(self.scale), self.kernel.fused_form()], operator.mul)

    def fourier_form(self) -> FourierForm | None:
        form = self.kernel.fourier_form()
        return None if form is None else ProductForm([ConstantForm(float(self.scale)), form])

    def features(self, X: Array) -> Array:
        return math.sqrt(self.scale) * self.kernel.features(X)


class Power(FunctionOf):
    """k ** p for an integer p >= 0: a repeated product."""

    precedence = 3
    domains = {"exponent": Domain.whole(0, why=": other powers of a kernel need not be kernels")}

    def __init__(self, kernel: Kernel | str, exponent: int) -> None:
        self.kernel = kernel
        self.exponent = exponent

    def __repr__(self) -> str:
        return f"{printed_in(self.kernel, 4)} ** {printed(self.exponent)}"

    def formula(self, t: Array, xp: ModuleType) -> Array:
        return monomials.integer_power(t, int(self.exponent))

    def slope(self, t: Array, xp: ModuleType) -> Array:
        q = int(self.exponent)
        return q * monomials.integer_power(t + 0, max(q - 1, 0))

    def fourier_form(self) -> FourierForm | None:
        form, q = self.kernel.fourier_form(), int(self.exponent)
        return None if form is None else ProductForm([ConstantForm(1.0), *[form] * q])

    def features(self, X: Array) -> Array:
        F = monomials.dense_features(self.kernel, X)
        return monomials.symmetric_power(F, int(self.exponent))

    def explicit_dim(self, n_features: int | None) -> int | None:
        d = self.kernel.explicit_dim(n_features)
        return None if d is None else monomials.symmetric_power_dim(d, int(self.exponent))

    def rounding(self, S: Array) -> float:
        return max(1, int(self.exponent)) * self.kernel.rounding(S)


class Exp(FunctionOf):
    """exp(k): rule 4, the limit of polynomials with non-negative coefficients."""

    def __repr__(self) -> str:
        return f"{printed_in(self.kernel, 4)}.exp()"

    def explicit_dim(self, n_features: int | None) -> int | None:
        return None

    def formula(self, t: Array, xp: ModuleType) -> Array:
        if is_symbolic(t):
            return xp.exp(t)
        largest, limit = float(xp.max(t)), math.log(float(xp.finfo(t.dtype).max))
        if not largest < limit:
            raise ValueError(
                f"exp(k) overflows {t.dtype}: k reaches {largest:.4g}, the limit is {limit:.4g}. "
                f"Scale the kernel first, for example ({limit / 2 / largest:.1g} * k).exp()."
            )
        return in_place(xp.exp, t)

    def slope(self, t: Array, xp: ModuleType) -> Array:
        return xp.exp(t)

    has_magnitude = True

    def magnitude(self, X: Array) -> Array:
        """An error e of k is one of exp(k) e."""
        return self.diagonal(X) * (1 + self.kernel.magnitude(X))

    def rounding(self, S: Array) -> float:
        return 4.0 + self.kernel.rounding(S)


class PolynomialOf(FunctionOf):
    """c0 + c1 k + c2 k^2 + ..., all coefficients >= 0: rule 3."""

    def __init__(self, kernel: Kernel | str, coefficients: Sequence[float]) -> None:
        self.kernel = kernel
        self.coefficients = coefficients

    def __repr__(self) -> str:
        return f"{printed_in(self.kernel, 4)}.polynomial({list(self.coefficients)!r})"

    def check_parameters(self) -> None:
        super().check_parameters()
        given = self.coefficients
        c = list(given) if np.iterable(given) else []
        require(
            len(c) > 0 and all(map(is_number, c)),
            f"polynomial(coefficients) needs a non-empty list of numbers, got {given!r}.",
        )
        negative = [x for x in c if not 0 <= x < math.inf]
        require(
            not negative,
            f"polynomial coefficients must be finite and >= 0, got {negative[:1]}: a negative one "
            "need not give a kernel.",
        )

    def formula(self, t: Array, xp: ModuleType) -> Array:
        return monomials.horner([float(c) for c in self.coefficients], t)

    def slope(self, t: Array, xp: ModuleType) -> Array:
        slopes = [q * c for q, c in enumerate(self.coefficients)][1:]
        return PolynomialOf(self.kernel, slopes or [0.0]).formula(t, xp)

    def features(self, X: Array) -> Array:
        F = monomials.dense_features(self.kernel, X)
        xp = namespace(F)
        # All powers at once, before the first of them takes its time.
        monomials.require_room(F, self._dimension(F.shape[1]), monomials.BYTES_A_MONOMIAL)
        powers = [
            math.sqrt(c) * monomials.symmetric_power(F, p)
            for p, c in enumerate(self.coefficients)
            if c > 0
        ]
        return xp.concat(powers or [monomials.symmetric_power(F, 0) * 0.0], axis=1)

    def explicit_dim(self, n_features: int | None) -> int | None:
        d = self.kernel.explicit_dim(n_features)
        return None if d is None else self._dimension(d)

    def _dimension(self, d):
        powers = [
            monomials.symmetric_power_dim(d, p) for p, c in enumerate(self.coefficients) if c > 0
        ]
        return min(sum(powers) or 1, monomials.LARGEST_DIMENSION)

    def rounding(self, S: Array) -> float:
        return max(1, len(self.coefficients) - 1) * self.kernel.rounding(S)
