"""The same kernel seen at several length scales."""

from typing import Any

import numpy as np

from ..kernels import Kernel

# Multiples of the kernel's own length scale that a test looks at unless it is told otherwise.
USUAL = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


def _has_length_scale(kernel: Kernel) -> bool:
    """Whether any part of a bound kernel changes with the scale."""
    return kernel.rescaled(2.0) != kernel


def checked_scales(scales: Any, kernel: Kernel) -> tuple[float, ...]:
    """The scales to look at; one for a kernel that has no length scale."""
    scaled = _has_length_scale(kernel)
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
