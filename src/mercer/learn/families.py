"""Kernels of a search: families, from rough to smooth; lengths and weights of expressions."""

from sklearn.base import clone

from ..kernels import RBF, Kernel, Matern, Scaled, Sum, as_kernel, as_numbers

# Lengths are in units of the median distance.
FAMILIES: tuple[Kernel, ...] = (Matern(0.5), Matern(1.5), Matern(2.5), RBF(0.5))
FIRST_FAMILY = FAMILIES[1]
# Kernels in an expression whose length scales and weights are tuned: each takes many fits.
_MOST_PARTS = 200


def first_kernel(kernel: Kernel | str | None) -> Kernel:
    """The first kernel of the search: a family, or the given expression with weighted summands."""
    if kernel is None:
        return FIRST_FAMILY
    kernel = as_kernel(kernel)
    size = sum(1 for _ in kernel.parts())
    if size > _MOST_PARTS:
        raise ValueError(
            f"the kernel is an expression of {size} kernels, and learning tunes at most "
            f"{_MOST_PARTS}, since every length scale and weight is searched for. Give a shorter "
            "expression, or use this one as it is in KernelRidge or KernelMap."
        )
    kernel = _with_weights(kernel)
    kernel.check_parameters()
    return kernel


def same_family(a: Kernel, b: Kernel) -> bool:
    """Whether two kernels differ by their lengths alone."""

    def others(kernel: Kernel) -> dict[str, object]:
        lengths = kernel.length_parameters()
        return {n: v for n, v in kernel.get_params(deep=False).items() if n not in lengths}

    return type(a) is type(b) and others(a) == others(b)


def length_of(kernel: Kernel) -> float:
    """The length scale of a member of a family."""
    unit = next(family for family in FAMILIES if same_family(family, kernel))
    return float(unit.scale() / kernel.scale())  # type: ignore[attr-defined]


def of_length(family: Kernel, length: float) -> Kernel:
    """The member of a family with this length scale."""
    member: Kernel = family.rescaled(length / length_of(family))
    return member


def _with_weights(kernel: Kernel) -> Kernel:
    """Every summand but the first with a weight in front, so that the weights can be tuned."""
    if not isinstance(kernel, Sum):
        return kernel
    right = kernel.right if isinstance(kernel.right, Scaled) else 1.0 * kernel.right
    return _with_weights(kernel.left) + right


def tunable(kernel: Kernel) -> list[str]:
    """Names of the length scales, and of the weights of summands, as set_params takes them."""
    names, prefix, rest = list(kernel.widths()), "", kernel
    while isinstance(rest, Sum):
        if isinstance(rest.right, Scaled) and rest.right.scale > 0:
            names.append(f"{prefix}right__scale")
        prefix, rest = f"{prefix}left__", rest.left
    return sorted(names)


def scaled(kernel: Kernel, name: str, factor: float) -> Kernel:
    """A copy with one parameter multiplied by a factor."""
    value = as_numbers(kernel.get_params(deep=True)[name]) * factor
    copy: Kernel = clone(kernel)
    return copy.set_params(**{name: float(value) if value.ndim == 0 else value})
