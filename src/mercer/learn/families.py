"""Families of kernels that a search tries, from rough to smooth."""

from ..kernels import RBF, Kernel, Matern
from ..kernels.parameters import as_numbers

# Lengths are in units of the median distance.
FAMILIES = (Matern(0.5), Matern(1.5), Matern(2.5), RBF(0.5))
FIRST_FAMILY = FAMILIES[1]


def same_family(a: Kernel, b: Kernel) -> bool:
    return type(a) is type(b) and getattr(a, "nu", None) == getattr(b, "nu", None)


def length_of(kernel: Kernel) -> float:
    """The length scale of a member of a family."""
    if isinstance(kernel, RBF):
        return (2 * float(as_numbers(kernel.gamma))) ** -0.5
    assert isinstance(kernel, Matern)
    return float(as_numbers(kernel.length_scale))


def of_length(family: Kernel, length: float) -> Matern | RBF:
    """The member of a family with this length scale."""
    if isinstance(family, RBF):
        return RBF(0.5 / length**2)
    assert isinstance(family, Matern)
    return Matern(family.nu, length)
