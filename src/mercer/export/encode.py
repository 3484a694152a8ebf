"""Models as a table of plain data: what `save` writes.

The table lists objects, arrays and sparse matrices, each once, every one after those it holds.
A value is a JSON scalar or a dict of one key that says what it is::

    {"at": 3}                         entry 3 of the table
    {"list": [...]}, {"tuple": [...]}, {"set": [...]}, {"dict": [keys, values]}, {"slice": [...]}
    {"scalar": [dtype, bytes in hex]}, {"bytes": hex}, {"dtype": "<f8"}, {"class": "numpy.float64"}
    {"function": name}, {"method": [value, name]}

and an entry of the table is one of::

    {"type": name, "attributes": {...}}   an object and what it keeps
    {"array": "0.npy"}                    an array of numbers or text
    {"objects": shape, "items": [...]}    an array of other things
    {"made": name, "of": [...]}           a date, a sparse matrix: made by rebuilt.py
    {"reduced": name, "of": [...], "state": ..., "items": ...}   what whoever loads must trust
"""

import copyreg
import types
from typing import Any

import numpy as np

from .. import Kernel
from ..engine import as_numpy, is_array
from . import registry
from .rebuilt import MAKERS, maker_of

SCALAR_KINDS = "biufcSUmM"


class Table:
    """The entries of one model, and its arrays by the names of their files."""

    def __init__(self):
        self.entries = []
        self.arrays = {}
        self._places = {}  # id: (place, the object, lest another one get its id)
        self._open = set()

    def value(self, thing: Any, where: str = "model"):
        """The thing as plain data."""
        if thing is None or type(thing) in (bool, int, float, str):
            return thing
        kind = type(thing)
        if kind in (list, tuple):
            items = [self.value(v, f"{where}[{i}]") for i, v in enumerate(thing)]
            return {kind.__name__: items}
        if kind in (set, frozenset):
            return {kind.__name__: [self.value(v, where) for v in sorted(thing, key=repr)]}
        if kind is dict:
            keys = [self.value(k, f"a key of {where}") for k in thing]
            return {"dict": [keys, [self.value(v, f"{where}[{k!r}]") for k, v in thing.items()]]}
        if kind is slice:
            return {"slice": [self.value(v) for v in (thing.start, thing.stop, thing.step)]}
        if isinstance(thing, np.generic) and thing.dtype.kind in SCALAR_KINDS:
            return {"scalar": [thing.dtype.str, thing.tobytes().hex()]}
        if kind is bytes:
            return {"bytes": thing.hex()}
        if isinstance(thing, np.dtype) and thing.kind in SCALAR_KINDS + "O":
            return {"dtype": thing.str}
        if isinstance(thing, type):
            return {"class": registry.public_name(thing)}
        if isinstance(thing, types.MethodType):
            return {"method": [self.value(thing.__self__, where), thing.__func__.__name__]}
        if isinstance(thing, FUNCTION_TYPES):
            return {"function": _name_of_function(thing, where)}
        return {"at": self.place(thing, where)}

    def place(self, thing: Any, where: str):
        """Position of the thing in the table; it is written there the first time."""
        if id(thing) not in self._places:
            # The innermost kernels first: sums may be a thousand levels deep.
            parts = list(thing.parts())[::-1] if isinstance(thing, Kernel) else [thing]
            for part in parts:
                if id(part) not in self._places:
                    self._write(part, where)
        return self._places[id(thing)][0]

    def _write(self, thing, where):
        if id(thing) in self._open:
            raise TypeError(f"{where} holds itself, which a file cannot store.")
        self._open.add(id(thing))
        entry = self.entry(thing, where)
        self._open.discard(id(thing))
        self._places[id(thing)] = (len(self.entries), thing)
        self.entries.append(entry)

    def entry(self, thing: Any, where: str):
        made = maker_of(thing)
        if made is not None:
            parts = MAKERS[made][0](thing)
            return {"made": made, "of": [self.value(p, f"{where} ({made})") for p in parts]}
        name = registry.public_name(type(thing))
        if is_array(thing):
            return self.array(np.asarray(as_numpy(thing)), where)  # of memory maps and tensors too
        if isinstance(thing, registry.ROOTS):
            return self.object(name, registry.attributes_of(thing))
        return self.reduced(thing, name, where)

    def object(self, name: str, attributes: dict[str, Any]):
        if "array_kind_" in attributes:
            attributes["array_kind_"] = ("numpy", "cpu")
        short = name.rpartition(".")[2]
        values = {k: self.value(v, f"{short}.{k}") for k, v in attributes.items()}
        return {"type": name, "attributes": values}

    def array(self, array: np.ndarray, where: str):
        if array.dtype.hasobject:
            items = [self.value(v, f"{where}[{i}]") for i, v in enumerate(array.flat)]
            return {"objects": list(array.shape), "items": items}
        name = f"{len(self.arrays)}.npy"
        # A part of a Fortran-ordered array stays one: BLAS rounds by the order that it finds.
        by_columns = array.ndim == 2 and abs(array.strides[0]) < abs(array.strides[1])
        self.arrays[name] = np.asfortranarray(array) if by_columns else array
        return {"array": name}

    def reduced(self, thing: Any, name: str, where: str):
        """Any other object, in the parts that pickle takes it apart into."""
        try:
            function, arguments, *rest = thing.__reduce_ex__(2)
        except Exception as error:
            raise TypeError(f"{where} is a {name}, which cannot be stored: {error}") from error
        state, listed, items = (*rest, None, None, None)[:3]
        if listed is not None:
            raise TypeError(f"{where} is a {name}, which cannot be saved.")
        plain = function is copyreg.__newobj__ and arguments == (type(thing),)  # type: ignore[attr-defined]
        if plain and items is None and (state is None or isinstance(state, dict)):
            return self.object(name, dict(state or {}))
        if plain:
            function, arguments = type(thing), ()
        return {
            "reduced": _name_of_function(function, where),
            "of": [self.value(a, where) for a in arguments],
            "state": self.value(state, where),
            "items": self.value(None if items is None else dict(items), where),
        }


FUNCTION_TYPES = (types.FunctionType, types.BuiltinFunctionType, np.ufunc, type(np.sum))


def _name_of_function(function, where):
    """Its name, if that leads back to it: a file stores names, not code."""
    name = registry.public_name(function)
    try:
        found = registry.find(name)
    except (ImportError, AttributeError, ValueError):
        found = None
    if found is not function:
        short = getattr(function, "__qualname__", function.__name__)
        raise TypeError(
            f"{where} is the function {short}, which a file cannot hold: files store names, not "
            "code. Define it with def at the top level of a module; whoever loads the file then "
            "passes trusted=['module.function']."
        )
    return name
