"""The parameters of a kernel expression, and a bracketed search along each of them."""

from collections.abc import Callable

from sklearn.base import clone

from ..kernels import Kernel
from ..kernels.algebra import Scaled, Sum
from ..kernels.parameters import as_numbers

LENGTHS = ("gamma", "length_scale")
# Most steps outwards from the first value, and the relative gain that a further step must bring:
# towards infinite lengths the error may fall for ever, by less and less.
MOST_STEPS = 5
LEAST_GAIN = 0.01


def with_weights(kernel: Kernel) -> Kernel:
    """Every summand but the first with a weight in front, so that the weights can be tuned."""
    if not isinstance(kernel, Sum):
        return kernel
    right = kernel.right if isinstance(kernel.right, Scaled) else 1.0 * kernel.right
    return with_weights(kernel.left) + right


def tunable(kernel: Kernel) -> list[str]:
    """Names of the length scales, and of the weights of summands, as set_params takes them."""
    parameters = kernel.get_params(deep=True)
    names = [n for n, v in parameters.items() if n.split("__")[-1] in LENGTHS and v is not None]
    names += _weights(kernel, "")
    return sorted(names)


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


def bracketed(error: Callable[[float], float], step: float) -> float:
    """The factor e^x with a small error(x), found from x = 0 by steps until it is bracketed.

    The search walks downhill until the error rises again on both sides, and ends with the vertex of
    the parabola through the last three values: it cannot stop at the end of a grid.
    """
    tried = {0: error(0.0)}

    def at(i):
        if i not in tried:
            tried[i] = error(i * step)
        return tried[i]

    best = 0
    direction = 1 if at(1) < tried[0] else -1
    while at(best + direction) < (1 - LEAST_GAIN) * tried[best] and abs(best) < MOST_STEPS:
        best += direction
    a, b, c = at(best - 1), tried[best], at(best + 1)
    vertex = 0.5 * (a - c) / (a + c - 2 * b) if a + c > 2 * b else 0.0
    # Near the middle value, or on a flat floor, the vertex is worth no further evaluation.
    if abs(vertex) < 0.15 or min(a, c) < (1 + LEAST_GAIN) * b:
        return best * step
    return (best + vertex) * step if error((best + vertex) * step) < b else best * step
