"""The kernels inside a kernel: given as such or by name, checked when used."""

from . import points as pts
from .base import Kernel
from .capabilities import NAMED


class Operand:
    """A kernel that a node is built on. A name becomes its kernel as it is set, so that nothing
    else has to know of names; what is not a kernel is kept, and refused when used."""

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, node, owner=None):
        if node is not None and self.name not in vars(node):
            raise AttributeError(f"{type(node).__name__!r} object has no attribute {self.name!r}")
        return self if node is None else vars(node)[self.name]

    def __set__(self, node, value):
        known = isinstance(value, str) and value.lower() in NAMED
        vars(node)[self.name] = NAMED[value.lower()]() if known else value


def operand(node, name):
    """The kernel that a node is built on, checked when used (never in __init__)."""
    value = getattr(node, name)
    if not isinstance(value, Kernel):
        raise TypeError(
            f"{type(node).__name__}: {name} must be a kernel, got {type(value).__name__} "
            f"{pts.short(value)}; as_kernel makes one from a name or a function."
        )
    return value
