"""Families of kernels that a search tries, from rough to smooth."""

from ..kernels import RBF, Kernel, Matern

# Lengths are in units of the median distance.
FAMILIES: tuple[Kernel, ...] = (Matern(0.5), Matern(1.5), Matern(2.5), RBF(0.5))
FIRST_FAMILY = FAMILIES[1]


def same_family(a: Kernel, b: Kernel) -> bool:
    """Whether two kernels differ by their lengths alone."""
    return type(a) is type(b) and _others(a) == _others(b)


def _others(kernel):
    lengths = kernel.length_parameters()
    return {n: v for n, v in kernel.get_params(deep=False).items() if n not in lengths}


def length_of(kernel: Kernel) -> float:
    """The length scale of a member of a family."""
    unit = next(family for family in FAMILIES if same_family(family, kernel))
    return float(unit.scale() / kernel.scale())  # type: ignore[attr-defined]


def of_length(family: Kernel, length: float) -> Kernel:
    """The member of a family with this length scale."""
    return family.rescaled(length / length_of(family))
