"""Capabilities and accuracy of kernels, said on the class: the rest of the library asks, and lists
none.

Every certificate is made of what is said here about rounding:

    |computed - true k(s, z)| <= u rounding(S) sqrt(magnitude(s) magnitude(z))

with the unit roundoff u of the data's precision (MATH.md section 7). A law of the tests holds every
kernel to it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..engine import as_host, namespace
from .types import Array, Tile

# Kernels by the names that stand for them; every class adds its own.
NAMED: dict[str, type[Any]] = {}


class Slopes(NamedTuple):
    """k(z, s) for every pair, and the numbers p and e of grad_z k(z, s) = p z + e s.

    A function of the distance has e = -p, a function of the inner product has p = 0 (None), and
    sums, products and functions of kernels keep the shape.
    """

    value: Any
    p: Any
    e: Any

    def __add__(self, other: Any) -> Slopes:
        return Slopes(self.value + other.value, _plus(self.p, other.p), _plus(self.e, other.e))

    def __mul__(self, other: Any) -> Slopes:
        own, others = self.inside(None, other.value), other.inside(None, self.value)
        return Slopes(self.value * other.value, _plus(own.p, others.p), _plus(own.e, others.e))

    def inside(self, value: Any, slope: Any) -> Slopes:
        """Those of a function of k with this value and slope: the chain rule."""
        return Slopes(value, *(None if part is None else slope * part for part in (self.p, self.e)))


def _plus(a, b):
    return b if a is None else a if b is None else a + b


def said(value: Any, doc: str) -> Any:
    """A property with this default, which subclasses replace by another or by a value."""

    def default(self):
        return value

    default.__annotations__["return"] = type(value)
    return property(default, doc=doc)


class Capabilities:
    """Declarations with their defaults. A kernel made of kernels asks its operands."""

    # Names that stand for the kernel with its defaults, as scikit-learn writes them: "rbf".
    sklearn_names: ClassVar[tuple[str, ...]] = ()
    # Whether plain text can describe it (expressions.py): not if it takes functions, nor if it is
    # written with an operator.
    in_expressions: ClassVar[bool] = True
    # How a page can draw its points: "graphs", "paths" or "sets"; None: not at all.
    drawn_as: str | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in vars(cls).get("sklearn_names", ()):
            owner = NAMED.setdefault(name, cls)
            # The same class again is one that a notebook or a reload defined anew.
            if (owner.__module__, owner.__qualname__) != (cls.__module__, cls.__qualname__):
                raise ValueError(f"{cls.__name__}: the name {name!r} belongs to {owner.__name__}.")
            NAMED[name] = cls

    takes_sparse = said(True, "Whether rows may be sparse.")
    non_negative_only = said(False, "Whether values below zero are refused: counts, shares.")
    is_linear = said(
        False, "Whether images are a linear function of points: then pre-images are the same sums."
    )

    # --- lengths: parameters that change with the unit of the data -------------------------------

    # Their names, with the power of the unit that they have: gamma of exp(-gamma d^2) has -2.
    length_powers: ClassVar[dict[str, int]] = {}

    def length_parameters(self) -> dict[str, Any]:
        """The kernel's own length parameters with their present values."""
        return {name: getattr(self, name) for name in self.length_powers}

    def rescaled(self: Any, factor: float) -> Any:
        """k(x / factor, z / factor) for every part of a bound kernel that has a length scale."""
        changed = self.with_operands(lambda operand: operand.rescaled(factor))
        own = {
            name: np.asarray(as_host(value), dtype=float) * factor ** self.length_powers[name]
            for name, value in self.length_parameters().items()
        }
        plain = {name: v.item() if v.ndim == 0 else v.tolist() for name, v in own.items()}
        return changed.with_parameters(**plain) if own else changed

    # Parameters that scale the data without being lengths, which a search tunes like them.
    scale_powers: ClassVar[dict[str, int]] = {}

    def widths(self: Any) -> dict[str, int]:
        """Names of all parameters that scale the data, here and in the kernels inside, as
        set_params takes them; with the power of the unit that they have."""
        found = self.length_powers | self.scale_powers
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, Capabilities):
                found |= {f"{name}__{inner}": power for inner, power in value.widths().items()}
        return found

    # --- derivatives -----------------------------------------------------------------------------

    has_slope = said(False, "Whether `slopes` knows the kernel and all of its parts.")

    def slopes(self, Z: Array, S: Array) -> Slopes:
        """k(Z, S) with its derivative; for a bound kernel."""
        raise TypeError(f"the gradient of {self!r} is not known.")

    def slope_against(self, S: Array) -> Tile | None:
        """As ``against``, of -dk/d(d^2) up to a factor: for smooth kernels of the distance d."""
        return None

    # --- rounding --------------------------------------------------------------------------------

    diagonal: Callable[[Array], Array]

    def rounding(self, S: Array) -> float:
        """Units of roundoff in k(s, z), relative to sqrt(magnitude(s) magnitude(z))."""
        return 4.0

    def magnitude(self, X: Array) -> Array:
        """Scale of the rounding of k(x, z), for every row: k(x, x), or the sum of the
        absolute terms of it where these cancel, or what underflow can hide of it."""
        return self.diagonal(X)

    @property
    def has_magnitude(self) -> bool:
        """Tell whether `magnitude` may be more than k(x, x): if not, nobody needs to ask for it."""
        return type(self).magnitude is not Capabilities.magnitude

    def magnitude_of_sums(self, X: Array, terms: Array) -> Array:
        """`magnitude` of points whose coordinates are sums of larger terms, in absolute values."""
        return self.magnitude(terms)

    def moved(self, by: np.ndarray) -> float | None:
        """Units by which k(x, z) changes at most where columns of x - z change by so many units;
        None where k is not a function of x - z alone."""
        return None


class OfOneNumber:
    """A kernel that is a formula of one number t of two points. Its base class says which number:
    -|x - z|^2, <x, z>, a sum over columns, or the value of another kernel."""

    def formula(self, t: Array, xp: ModuleType) -> Array:
        """k from t, which may be overwritten."""
        raise NotImplementedError(f"{type(self).__name__} must define formula(t, xp).")

    def slope(self, t: Array, xp: ModuleType) -> Array:
        """dk / dt, where it is known; t is not overwritten."""
        raise NotImplementedError(f"{type(self).__name__} has no slope(t, xp).")

    def _of(self, t):
        return self.formula(t, namespace(t))

    @property
    def _knows_slope(self) -> bool:
        return type(self).slope is not OfOneNumber.slope


def above_underflow(magnitudes: Array) -> Array:
    """Magnitudes as they are, or the least at which products of numbers keep all their digits."""
    info = namespace(magnitudes).finfo(magnitudes.dtype)
    return magnitudes + float(info.smallest_normal) / float(info.eps)
