"""The parameters of a kernel expression: lengths, and weights of summands."""

from sklearn.base import clone

from ..kernels import Kernel, Scaled, Sum, as_numbers


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
