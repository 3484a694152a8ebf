"""Parameters: scikit-learn's protocol, which `clone`, grids and nested names rest on; as text, and
as something to compare by."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any, Self

import numpy as np

from ..engine import as_numpy, is_array


class Parametrized:
    """An object whose constructor says what its parameters are; each is an attribute.

    Not a BaseEstimator: scikit-learn prints and draws these by their parameters, and a kernel by
    the expression that it is (as it does with its own Gaussian-process kernels).
    """

    def __init_subclass__(cls) -> None:
        """Refuse a parameter whose value would stand where a method is called."""
        super().__init_subclass__()
        for name in parameters_of(cls.__init__):
            if isinstance(inspect.getattr_static(cls, name, None), (FunctionType, property)):
                raise TypeError(
                    f"{cls.__name__}: no parameter can be called {name!r}, because kernels have a "
                    "method or property of that name. Choose another one."
                )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with `deep` also those of kernels inside, as "left__gamma"."""
        found = {name: getattr(self, name) for name in parameters_of(type(self).__init__)}
        inside = found.items() if deep else ()
        nested = [
            (f"{name}__{inner}", v)
            for name, value in inside
            if hasattr(value, "get_params") and not isinstance(value, type)
            for inner, v in value.get_params().items()
        ]
        return found | dict(nested)

    def set_params(self, **params: object) -> Self:
        """Set parameters by name, nested ones as in ``set_params(left__gamma=0.1)``."""
        names = list(parameters_of(type(self).__init__))
        inside: dict[str, dict[str, object]] = {}
        for name, value in params.items():
            own, nested, rest = name.partition("__")
            if own not in names:
                raise ValueError(
                    f"Invalid parameter {own!r} for estimator {self!r}. Valid parameters are: "
                    f"{names!r}."
                )
            if nested:
                inside.setdefault(own, {})[rest] = value
            else:
                setattr(self, own, value)
        # After whole parameters: a kernel that is replaced takes the values of its own.
        for own, values in inside.items():
            getattr(self, own).set_params(**values)
        return self

    def with_parameters(self, **changed: object) -> Self:
        """A copy of the same class with some parameters changed."""
        return type(self)(**self.get_params(deep=False) | changed)


@cache
def parameters_of(init: Callable[..., None]) -> dict[str, Any]:
    """Names of an __init__'s parameters, in the order of the alphabet, with their defaults."""
    if init is object.__init__:
        return {}
    _, *found = inspect.signature(init).parameters.values()  # all but self
    return {p.name: p.default for p in sorted(found, key=lambda p: p.name)}


def printed_in(kernel: object, precedence: int):
    """An operand as text, in parentheses where it binds less strongly than its place."""
    binds = getattr(kernel, "precedence", precedence) >= precedence
    return repr(kernel) if binds else f"({kernel!r})"


def printed(value: Any):
    """A parameter as the text that gives it back; large arrays are abbreviated."""
    if isinstance(value, np.generic):
        value = value.item()
    if is_array(value):
        value = as_numpy(value)
        return repr(value.tolist()) if value.size <= 100 else f"<array of shape {value.shape}>"
    if callable(value) and hasattr(value, "__qualname__"):
        return value.__qualname__
    return repr(value)


def frozen(value: Any):
    """A hashable stand-in, equal for equal parameters (a list equals the array of its values)."""
    if isinstance(value, np.generic):
        return value.item()
    if is_array(value):
        value = as_numpy(value).tolist()
    if isinstance(value, (list, tuple)):
        return tuple(frozen(item) for item in value)
    if isinstance(value, slice):
        return ("slice", value.start, value.stop, value.step)
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value
