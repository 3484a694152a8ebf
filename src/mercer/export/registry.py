"""Types that a file of `save` may hold, in one list, and the names that files call them by.

Files use public names ("mercer.KernelMap", "sklearn.preprocessing.StandardScaler"), so a class may
move between modules. Kernels, estimators and state of fits (below TravelsAsNumPy) are found by
themselves. Classes of scikit-learn are listed in allowed.py, each with its reason.
"""

import inspect
import pkgutil
import sys
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from sklearn.base import BaseEstimator

# Imported for their classes, which are found by themselves.
from .. import Kernel, fit, learn, preimage, solve  # noqa: F401
from ..engine import TravelsAsNumPy
from ..estimators import ClassShares, Trees  # noqa: F401
from .allowed import SKLEARN

# Files may hold every class of this library below these, and arrays.
ROOTS = (Kernel, BaseEstimator, TravelsAsNumPy)

# Native modules that name themselves without their package (scikit-learn before 1.7).
UNPACKAGED = {"_loss": "sklearn._loss._loss"}


# --- names ----------------------------------------------------------------------------------------


def public_name(thing: Any):
    """The name of a class or function in files: where it is public, if it is."""
    name = getattr(thing, "__qualname__", None) or thing.__name__
    module = getattr(thing, "__module__", None) or _module_of_ufunc(thing)
    module = UNPACKAGED.get(module, module)
    root = module.split(".")[0]
    if root == "mercer":
        return f"mercer.{name}"
    if root in ("numpy", "pandas", "scipy", "sklearn"):
        parts = module.split(".")
        for i in range(1, len(parts)):
            parent = ".".join(parts[:i])
            if getattr(sys.modules.get(parent), name, None) is thing:
                return f"{parent}.{name}"
    return f"{module}.{name}"


def _module_of_ufunc(thing):
    for module in ("numpy", "scipy.special"):
        if getattr(sys.modules.get(module), thing.__name__, None) is thing:
            return module
    return "__main__"


def find(name: str):
    """The class or function of this name; its module is imported, which runs the module's code."""
    return pkgutil.resolve_name(name)


def own_classes():
    """Classes of this library that files may hold, by name."""
    found = [c for root in ROOTS for c in _subclasses(root)]
    return {public_name(c): c for c in found if c.__module__.split(".")[0] == "mercer"}


def listed_class(name: str):
    """The class that a file means by this name, or None where it is not listed here."""
    if name in SKLEARN:
        return find(name)
    if not name.startswith("mercer."):
        return None
    if name not in _KNOWN:  # perhaps of a module that is imported when it is first used
        mercer = sys.modules["mercer"]
        attribute = name.removeprefix("mercer.")
        if attribute in mercer.__all__:
            getattr(mercer, attribute)
        _KNOWN.update(own_classes())
    return _KNOWN.get(name)


# Classes that were asked for by name: listing all of them for every entry of a file is slow.
_KNOWN: dict[str, type] = {}


def _subclasses(base):
    for c in base.__subclasses__():
        yield c
        yield from _subclasses(c)


# --- attributes -----------------------------------------------------------------------------------


def attributes_of(thing: Any):
    """Attributes of an object that a file keeps: fields of a dataclass, or pickle's state."""
    if is_dataclass(thing):
        return {f.name: getattr(thing, f.name) for f in fields(thing)}
    return dict(thing.__getstate__() or {})


def bad_attribute(cls, names: Iterable[str], trusted: bool = False):
    """The first of these names that an object of this class does not keep, or None.

    Kernels keep parameters, and estimators also fitted attributes (with an underscore at the end)
    and private ones; others keep what is not an attribute of the class, so that no method is
    replaced. Names
    with two leading underscores change what Python or NumPy do with an object
    (``__array_interface__``), and are never kept, by trusted classes either.
    """
    own = {f.name for f in fields(cls)} if is_dataclass(cls) else _parameters(cls)

    def is_kept(name: str):
        if not name.isidentifier() or name.startswith("__"):
            return False
        if trusted or name in own:
            return True
        if is_dataclass(cls) or issubclass(cls, Kernel) or hasattr(cls, name):
            return False
        return not issubclass(cls, BaseEstimator) or "_" in (name[0], name[-1])

    return next((name for name in names if not is_kept(name)), None)


def _parameters(cls):
    """Names of parameters, of base classes too: SVC keeps an epsilon that only its base takes."""
    names: set[str] = set()
    for base in cls.__mro__:
        if "__init__" in vars(base) and base is not object:
            names.update(inspect.signature(base.__init__).parameters)
    return names - {"self", "args", "kwargs"}


def with_attributes(cls, attributes: dict[str, Any]):
    """An object of this class with these attributes; its __init__ is not called."""
    made = cls.__new__(cls)
    if is_dataclass(cls):
        missing = [f.name for f in fields(cls) if f.name not in attributes]
        if missing:
            raise ValueError(f"{public_name(cls)} without {missing[0]}")
    if hasattr(made, "__setstate__"):
        made.__setstate__(attributes)
    else:
        vars(made).update(attributes)
    return made
