"""A kernel's formula in a form whose products can be computed in one pass.

A form is a sum of products of leaves, and a leaf is a function of a squared distance or of an inner
product. Kernels build their forms from those of their operands; `products` evaluates them in single
precision on the CPU and `fused` on a GPU. Neither knows a kernel by name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# More factors in one term than this, or more terms, are left to the plain tiles.
_MOST_FACTORS = 3
_MOST_TERMS = 8


@dataclass(frozen=True)
class Leaf:
    """One factor: a function of minus the squared distance, or of the inner product."""

    of_distance: bool
    scale: Any  # what coordinates are multiplied by, one number or one per column
    formula: Callable[[Any, Any], Any]  # (values, namespace) -> kernel values; may overwrite values
    function: str | None = None  # its name in `fused`, None where that has none
    numbers: tuple[float, ...] = ()  # its parameters there


@dataclass(frozen=True)
class _Term:
    coefficient: float
    leaves: tuple[Leaf, ...]


@dataclass(frozen=True)
class Form:
    """A sum of terms. ``+`` and ``*`` follow the algebra of kernels; they give None where the
    terms or factors become too many for evaluating them one by one.
    """

    terms: tuple[_Term, ...]

    @classmethod
    def of(
        cls,
        scale: Any,
        formula: Callable[[Any, Any], Any],
        function: str | None = None,
        *numbers: float,
        of_distance: bool = True,
    ) -> "Form":
        """A function of -|x - z|^2 or <x, z>, where coordinates are multiplied by the scale.

        function, numbers : its name in `fused`, if it has one, and the parameters there
        """
        return cls((_Term(1.0, (Leaf(of_distance, scale, formula, function, numbers),)),))

    @classmethod
    def constant(cls, c: float) -> "Form":
        return cls((_Term(float(c), ()),))

    def __add__(self, other: "Form") -> "Form | None":
        return _if_small(Form(self.terms + other.terms))

    def __mul__(self, other: "Form") -> "Form | None":
        products = [
            _Term(a.coefficient * b.coefficient, a.leaves + b.leaves)
            for a in self.terms
            for b in other.terms
        ]
        return _if_small(Form(tuple(products)))


def _if_small(form: Form) -> Form | None:
    factors = max(len(term.leaves) for term in form.terms)
    return form if len(form.terms) <= _MOST_TERMS and factors <= _MOST_FACTORS else None
