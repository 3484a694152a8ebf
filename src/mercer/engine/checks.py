"""Arguments that make no sense are refused by name, with the value seen, before any work."""

import math
import numbers
from collections.abc import Collection
from typing import Any

import numpy as np


def require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_integer(value: Any) -> bool:
    """2 and 2.0, not 2.5, nan or inf."""
    return is_number(value) and math.isfinite(value) and value == int(value)


def is_count(value: Any) -> bool:
    """2, not 2.0."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def check_at_least(name: str, value: Any, least: int) -> None:
    require(
        is_count(value) and value >= least,
        f"{name} must be an integer of at least {least}, got {value!r}.",
    )


def check_one_of(name: str, value: Any, options: Collection[str]) -> None:
    known = isinstance(value, str) and value in options
    require(known, f"{name} must be one of {', '.join(options)}, got {value!r}.")


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
