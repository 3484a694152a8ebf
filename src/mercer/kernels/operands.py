"""The kernels inside a kernel: given as such or by name, checked when used."""

from . import points as pts
from .base import Kernel
from .capabilities import NAMED


class Private:
    """An operand that an operator has copied and checked, and that nobody else can change.

    Kernels share such operands, so a sum of n terms takes n steps to build. Whoever asks for one
    gets a copy, which then belongs to the kernel that was asked.
    """

    __slots__ = ("kernel", "kind")

    def __init__(self, kernel):
        kernel.check_parameters()
        self.kernel = kernel
        self.kind = kernel.kind


class Operand:
    """A kernel that a node is built on. A name becomes its kernel as it is set, so that nothing
    else has to know of names; what is not a kernel is kept, and refused when used."""

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, node, owner=None):
        if node is not None and self.name not in vars(node):
            raise AttributeError(f"{type(node).__name__!r} object has no attribute {self.name!r}")
        if node is None:
            return self
        value = vars(node)[self.name]
        if isinstance(value, Private):
            value = vars(node)[self.name] = value.kernel.copied()
        return value

    def __set__(self, node, value):
        known = isinstance(value, str) and value.lower() in NAMED
        vars(node)[self.name] = NAMED[value.lower()]() if known else value


def operand(node, name):
    """The kernel that a node is built on, checked when used (never in __init__)."""
    value = vars(node)[name]
    if isinstance(value, Private):
        return value.kernel
    if not isinstance(value, Kernel):
        raise TypeError(
            f"{type(node).__name__}: {name} must be a kernel, got {type(value).__name__} "
            f"{pts.short(value)}; as_kernel makes one from a name or a function."
        )
    return value
