"""Kernels of a search: families, from rough to smooth; lengths and weights of expressions."""

from sklearn.base import clone

from ..kernels import RBF, Kernel, Matern, Scaled, Sum, as_numbers

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


def with_weights(kernel: Kernel) -> Kernel:
    """Every summand but the first with a weight in front, so that the weights can be tuned."""
    if not isinstance(kernel, Sum):
        return kernel
    right = kernel.right if isinstance(kernel.right, Scaled) else 1.0 * kernel.right
    return with_weights(kernel.left) + right


def tunable(kernel: Kernel) -> list[str]:
    """Names of the length scales, and of the weights of summands, as set_params takes them."""
    return sorted([*kernel.widths(), *_weights(kernel, "")])


def _weights(kernel, prefix):
    if not isinstance(kernel, Sum):
        return []
    own = [f"{prefix}right__scale"] if isinstance(kernel.right, Scaled) else []
    own = [name for name in own if kernel.right.scale > 0]
    return own + _weights(kernel.left, f"{prefix}left__")


def scaled(kernel: Kernel, name: str, factor: float) -> Kernel:
    """A copy with one parameter multiplied by a factor."""
    value = as_numbers(kernel.get_params(deep=True)[name]) * factor
    return clone(kernel).set_params(**{name: float(value) if value.ndim == 0 else value})
