"""scikit-learn's protocol of parameters: what `clone`, grids and nested names rest on."""

import inspect
from functools import cache
from typing import Any, Self


class Parametrized:
    """An object whose constructor says what its parameters are; each is an attribute.

    Not a BaseEstimator: scikit-learn prints and draws these by their parameters, and a kernel by
    the expression that it is (as it does with its own Gaussian-process kernels).
    """

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return list(_parameter_names(cls.__init__))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with `deep` also those of kernels inside, as "left__gamma"."""
        if not deep:
            return {name: getattr(self, name) for name in self._get_param_names()}
        # A list instead of calls: sums of a thousand terms are a thousand levels deep.
        found: dict[str, Any] = {}
        todo = _to_name("", self)
        while todo:
            name, value, is_open = todo.pop()
            if not is_open or not hasattr(value, "get_params") or isinstance(value, type):
                found[name] = value
                continue
            todo.append((name, value, False))
            if isinstance(value, Parametrized):
                todo += _to_name(f"{name}__", value)
            else:
                found |= {f"{name}__{inner}": v for inner, v in value.get_params().items()}
        return found

    def set_params(self, **params: object) -> Self:
        """Set parameters by name, nested ones as in ``set_params(left__gamma=0.1)``."""
        todo: list[tuple[Any, dict[str, object]]] = [(self, params)]
        while todo:
            thing, values = todo.pop()
            if isinstance(thing, Parametrized):
                todo += _set_own(thing, values)
            else:
                thing.set_params(**values)
        return self

    def with_parameters(self, **changed: object) -> Self:
        """A copy of the same class with some parameters changed."""
        return type(self)(**self.get_params(deep=False) | changed)


@cache
def _parameter_names(init):
    if init is object.__init__:
        return ()
    return tuple(sorted(list(inspect.signature(init).parameters)[1:]))  # all but self


def _to_name(prefix, thing):
    """Names, values and whether their own parameters are wanted; the first one last."""
    given = thing.get_params(deep=False)
    return [(prefix + name, given[name], True) for name in reversed(given)]


def _set_own(thing, params):
    """Set a thing's own parameters; returns what is left to set in those that it holds."""
    names = list(thing.get_params(deep=False))
    inside: dict[str, dict[str, object]] = {}
    for name, value in params.items():
        own, nested, rest = name.partition("__")
        if own not in names:
            raise ValueError(
                f"Invalid parameter {own!r} for estimator {thing!r}. Valid parameters are: "
                f"{names!r}."
            )
        if nested:
            inside.setdefault(own, {})[rest] = value
        else:
            setattr(thing, own, value)
    # After whole parameters: a kernel that is replaced takes the values of its own.
    return [(getattr(thing, own), values) for own, values in reversed(inside.items())]
