"""Arguments that make no sense are refused by name, with the value seen, before any work."""

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np


def require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_integer(value: Any) -> bool:
    """2 and 2.0, not 2.5, nan or inf."""
    return is_number(value) and math.isfinite(value) and value == int(value)


def short(x: object) -> str:
    text = repr(x)
    return text if len(text) <= 40 else text[:37] + "..."


def check_at_least(name: str, value: Any, least: int) -> None:
    Domain.count(least)(name, value)


def check_classes(y: np.ndarray) -> None:
    """Refuse classes that cannot be told apart: missing ones, and texts beside numbers."""
    if y.dtype.kind != "O":
        return
    gaps = ("NoneType", "NAType", "NaTType")
    missing = [v for v in y if type(v).__name__ in gaps or (isinstance(v, float) and v != v)]
    if missing:
        raise ValueError(
            f"y has no class in {len(missing)} of {len(y)} rows ({missing[0]}): leave them out."
        )
    if any(isinstance(value, str) for value in y) and not all(isinstance(v, str) for v in y):
        kinds = ", ".join(sorted({type(value).__name__ for value in y}))
        raise ValueError(
            f"y holds classes of several types ({kinds}): write all of them in one, such as str."
        )


@dataclass(frozen=True)
class Domain:
    """Values that a parameter may have: a class declares `domains` of its parameters by name.

    Called with a name and a value, it refuses a value outside of it. Of a kernel, messages also
    name the class, `owner`.
    """

    accepts: Callable[[Any], bool]
    what: str
    why: str = ""
    error: type[Exception] = ValueError

    FINITE: ClassVar["Domain"]
    POSITIVE: ClassVar["Domain"]
    SHARE: ClassVar["Domain"]
    FLAG: ClassVar["Domain"]
    FUNCTION: ClassVar["Domain"]

    def __call__(self, name: str, value: Any, owner: str = "") -> None:
        if not self.accepts(value):
            called = f"{owner}({name})" if owner else name
            raise self.error(f"{called} must be {self.what}, got {short(value)}{self.why}.")

    @staticmethod
    def check(declared: Any, owner: str = "") -> None:
        """Refuse parameters outside of the domains that their class declares."""
        for name, check in declared.domains.items():
            check(name, getattr(declared, name), owner)

    @classmethod
    def whole(cls, least: int, most: float = math.inf, why: str = "") -> "Domain":
        """2, and 2.0."""
        what = f"an integer from {least} to {most}" if most < math.inf else f"an integer >= {least}"
        return cls(lambda value: is_integer(value) and least <= value <= most, what, why)

    @classmethod
    def count(cls, least: int, most: float = math.inf) -> "Domain":
        """2, not 2.0."""
        what = f"an integer of at least {least}" + f" and at most {most}" * (most < math.inf)
        whole = cls.whole(least, most)
        return cls(lambda v: isinstance(v, numbers.Integral) and whole.accepts(v), what)

    @classmethod
    def one_of(cls, *options: Any) -> "Domain":
        """Texts, or True, False and None."""
        texts = all(isinstance(option, str) for option in options)
        what = f"one of {', '.join(options)}" if texts else " or ".join(map(repr, options))

        def accepts(value: Any) -> bool:
            plain = value.item() if isinstance(value, np.generic) else value
            return any(isinstance(plain, type(one)) and plain == one for one in options)

        return cls(accepts, what)


Domain.FINITE = Domain(lambda v: is_number(v) and math.isfinite(v), "a finite number")
Domain.POSITIVE = Domain(lambda v: is_number(v) and 0 < v < math.inf, "a positive number")
Domain.SHARE = Domain(lambda v: is_number(v) and 0 < v < 1, "a number between 0 and 1")
Domain.FLAG = Domain(lambda v: isinstance(v, (bool, np.bool_)), "True or False")
Domain.FUNCTION = Domain(callable, "a function", error=TypeError)
