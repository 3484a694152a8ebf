"""The same kernel seen at several length scales."""

import numpy as np

from ..kernels import RBF, Kernel, Laplacian, Matern, Periodic, RationalQuadratic
from ..kernels.parameters import as_numbers

# Multiples of the kernel's own length scale that a test looks at unless it is told otherwise.
USUAL = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


def at_scale(kernel: Kernel, s: float) -> Kernel:
    """k(x / s, z / s) for every part of a bound kernel that has a length scale."""
    if isinstance(kernel, RBF):
        return RBF(_plain(as_numbers(kernel.gamma) / s**2))
    if isinstance(kernel, Laplacian):
        return Laplacian(_plain(as_numbers(kernel.gamma) / s))
    if isinstance(kernel, (Matern, RationalQuadratic, Periodic)):
        parameters = kernel.get_params(deep=False)
        length = _plain(as_numbers(parameters["length_scale"]) * s)
        return type(kernel)(**parameters | {"length_scale": length})
    return kernel.with_operands(lambda operand: at_scale(operand, s))


def has_length_scale(kernel: Kernel) -> bool:
    """Whether any part of a bound kernel changes with the scale."""
    return at_scale(kernel, 2.0) != kernel


def checked_scales(scales, kernel: Kernel) -> tuple[float, ...]:
    """The scales to look at; one for a kernel that has no length scale."""
    scaled = has_length_scale(kernel)
    if scales is None:
        return USUAL if scaled else (1.0,)
    try:
        values = np.atleast_1d(np.asarray(scales, dtype=float))
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 1 or not values.size or not ((values > 1e-100) & (values < 1e100)).all():
        raise ValueError(
            f"scales must be positive numbers, multiples of the kernel's length scale, got "
            f"{scales!r}."
        )
    if not scaled and not (values == 1).all():
        raise ValueError(
            f"{kernel!r} has no length scale to change: leave scales out, or use a kernel such as "
            "RBF() or Matern()."
        )
    return tuple(dict.fromkeys(float(s) for s in values))


def _plain(value):
    return float(value) if np.ndim(value) == 0 else value.tolist()
