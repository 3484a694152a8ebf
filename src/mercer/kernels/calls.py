"""Fewer calls of a user's function: inside one fit, a value that is known is not asked for again.

A fit looks at some pairs more than once (k(x, x), the pairs of landmarks), and Python functions on
graphs or texts can take seconds. A memory lives as long as the fit, and holds a bounded number of
values.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .kernel import Kernel

# Values remembered at most: about 20 MB.
_MOST_VALUES = 1 << 17


class _KnownValues:
    """Values of f on pairs of objects, by identity; rows of an array go by what they hold."""

    def __init__(self, symmetric: bool, most: int) -> None:
        self.symmetric, self.most = symmetric, most
        self.values: dict[tuple[Any, Any], float] = {}
        # The objects themselves, so that no other object gets the same id meanwhile.
        self.objects: dict[int, object] = {}

    def key(self, x: Any) -> Any:
        """The key of x; None where it cannot be remembered."""
        if not self.most or (isinstance(x, np.ndarray) and x.dtype.kind == "O"):
            return None
        if isinstance(x, np.ndarray):
            return hashlib.blake2b(x.tobytes(), digest_size=16).digest()
        if self.objects.get(id(x)) is not x:
            if len(self.objects) >= self.most:
                return None
            self.objects[id(x)] = x
        return id(x)

    def ask(self, f: Callable[[Any, Any], float], x: Any, z: Any, x_key: Any, z_key: Any) -> float:
        """f(x, z), called where it is not known."""
        if x_key is None or z_key is None:
            return f(x, z)
        value = self.values.get((x_key, z_key))
        if value is None and self.symmetric:
            value = self.values.get((z_key, x_key))
        if value is None:
            value = f(x, z)
            if len(self.values) < self.most:
                self.values[x_key, z_key] = value
        return value


NOTHING = _KnownValues(False, 0)


@contextmanager
def remembering(kernel: Kernel) -> Iterator[None]:
    """Let every function inside a kernel remember its values, until the block ends.

    Inside another such block, the memory of the outer one is used and kept.
    """
    parts = kernel.parts()
    leaves = [k for k in parts if getattr(k, "known", None) is NOTHING and k.one_call_per_value]
    for leaf in leaves:
        vars(leaf)["known"] = _KnownValues(bool(leaf.symmetric), _MOST_VALUES)
    try:
        yield
    finally:
        for leaf in leaves:
            vars(leaf).pop("known", None)
