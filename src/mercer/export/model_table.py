"""Models as a table of plain data: what `save` writes, and what `load` builds from it or refuses.

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

Nothing happens here that is not written here: every kind of entry is made by its own few lines.
Classes come from the registry or are named in `trusted`, their attributes are of the types that
they work with (registry.py), data are checked where they are made (rebuilt.py), and kernels check
their own parameters. A name that is not allowed is never imported.
"""

import copyreg
import math
import re
import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from .. import Kernel
from ..engine import as_numpy, is_array
from . import registry
from .rebuilt import MAKERS, maker_of
from .registry import NUMBERS_BY_NAME, PLAIN_TYPES, SETTINGS, SKLEARN, check_parts, slots_of

_SCALAR_KINDS = "biufcSUmM"
_FUNCTION_TYPES = (types.FunctionType, types.BuiltinFunctionType, np.ufunc, type(np.sum))
_DTYPE = re.compile(r"[<>|=]?[biufcSUmMO]\d*(\[\d*\w+\])?")
# Levels of lists, dicts and arrays of objects in each other: NumPy frees each by a call of its own,
# and many of them would end the interpreter. Objects may be deeper: a sum of kernels is.
MOST_LEVELS, MOST_OBJECTS = 50, 20_000
_COLLECTIONS: dict[str, type] = {made.__name__: made for made in (list, tuple, set, frozenset)}
# Kinds of values that are data: no object, and nothing that could be called.
_DATA_KINDS = {*_COLLECTIONS, "slice", "dict", "scalar", "bytes", "dtype"}


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
        if isinstance(thing, np.generic) and thing.dtype.kind in _SCALAR_KINDS:
            return {"scalar": [thing.dtype.str, thing.tobytes().hex()]}
        if kind is bytes:
            return {"bytes": thing.hex()}
        if isinstance(thing, np.dtype) and thing.kind in _SCALAR_KINDS + "O":
            return {"dtype": thing.str}
        if isinstance(thing, type):
            return {"class": registry.public_name(thing)}
        if isinstance(thing, types.MethodType):
            return {"method": [self.value(thing.__self__, where), thing.__func__.__name__]}
        if isinstance(thing, _FUNCTION_TYPES):
            return {"function": _name_of_function(thing, where)}
        return {"at": self.place(thing, where)}

    def place(self, thing: Any, where: str):
        """Position of the thing in the table; it is written there the first time."""
        parts = [thing]
        if isinstance(thing, Kernel) and id(thing) not in self._places:
            # The innermost kernels first: sums may be a thousand levels deep.
            parts = list(thing.parts())[::-1]
        for part in parts:
            if id(part) in self._open:
                raise TypeError(
                    f"{where} holds itself, which a file cannot store: fit on arrays, lists and "
                    "texts (a networkx graph as a pair of edges and node labels)."
                )
            if id(part) not in self._places:
                self._open.add(id(part))
                entry = self.entry(part, where)
                self._open.discard(id(part))
                self._places[id(part)] = (len(self.entries), part)
                self.entries.append(entry)
        return self._places[id(thing)][0]

    def entry(self, thing: Any, where: str):
        made = maker_of(thing)
        if made is not None:
            parts = MAKERS[made][0](thing)
            return {"made": made, "of": [self.value(p, f"{where} ({made})") for p in parts]}
        name = registry.public_name(type(thing))
        if is_array(thing):
            array = np.asarray(as_numpy(thing))  # of memory maps and tensors too
            if array.dtype.hasobject:
                items = [self.value(v, f"{where}[{i}]") for i, v in enumerate(array.flat)]
                return {"objects": list(array.shape), "items": items}
            # A part of a Fortran-ordered array stays one: BLAS rounds by the order that it finds.
            by_columns = array.ndim == 2 and abs(array.strides[0]) < abs(array.strides[1])
            file = f"{len(self.arrays)}.npy"
            self.arrays[file] = np.asfortranarray(array) if by_columns else array
            return {"array": file}
        if isinstance(thing, registry.ROOTS):
            if is_dataclass(thing):
                return self.object(name, {f.name: getattr(thing, f.name) for f in fields(thing)})
            state: Any = thing.__getstate__()
            return self.object(name, dict(state or {}))
        return self.reduced(thing, name, where)

    def object(self, name: str, attributes: dict[str, Any]):
        if "array_kind_" in attributes:
            attributes["array_kind_"] = ("numpy", "cpu")
        short = name.rpartition(".")[2]
        values = {k: self.value(v, f"{short}.{k}") for k, v in attributes.items()}
        return {"type": name, "attributes": values}

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


class Model:
    """The objects of a table, built in its order, so that each finds those it holds."""

    def __init__(self, entries, read_array, trusted=frozenset()):
        self.entries = _expect(entries, list)
        self.read_array = read_array
        self.trusted = trusted
        self.built = []
        self.inner = set()  # ids of kernels that other kernels hold

    def build(self, root: Any):
        self.built, self.inner = [], set()
        for entry in self.entries:
            self.built.append(self.entry(_expect(entry, dict)))
        for made in self.built:
            if isinstance(made, Kernel) and id(made) not in self.inner:
                made.check_parameters()  # which asks the kernels that it holds
        return self.value(root)

    # --- entries --------------------------------------------------------------------------------

    def entry(self, entry: dict[str, Any]):
        match entry:
            case {"type": str(name), "attributes": dict(attributes), **rest} if not rest:
                return self.object(name, attributes)
            case {"array": str(name), **rest} if not rest:
                return self.read_array(name)
            case {"objects": list(shape), "items": list(items), **rest} if not rest:
                return self.object_array(shape, items)
            case {"made": str(name), "of": list(parts), **rest} if not rest and name in MAKERS:
                return MAKERS[name][1](*[self.value(p) for p in parts])
            case {"reduced": str(name), "of": list(parts), "state": s, "items": i, **rest} if (
                not rest
            ):
                arguments = [self.value(p) for p in parts]
                return self.reduced(name, arguments, self.value(s), self.value(i))
        raise ValueError(f"an entry with {list(entry)[:3]}")

    def object(self, name: str, attributes: dict[str, Any]):
        cls = registry.listed_class(name)
        if cls is None:
            cls = self.find(name)
        if not isinstance(cls, type):
            raise ValueError(f"{name}, which is not a class")
        trusted = name in self.trusted
        bad = registry.bad_attribute(cls, attributes, trusted=trusted)
        if bad is not None:
            raise ValueError(f"an attribute {bad!r} of {name}")
        values = {key: self.value(v) for key, v in attributes.items()}
        if not trusted:
            check_parts(name, values, self.is_vouched)
        if is_dataclass(cls):
            missing = [f.name for f in fields(cls) if f.name not in values]
            if missing:
                raise ValueError(f"{name} without {missing[0]}")
        made: Any = cls.__new__(cls)  # type: ignore[call-overload]  # without a call of __init__
        self.set_state(made, values)
        if isinstance(made, Kernel):
            self.inner.update(id(v) for v in values.values() if isinstance(v, Kernel))
        return made

    @staticmethod
    def set_state(made: Any, state: Any):
        if hasattr(made, "__setstate__"):
            made.__setstate__(state)
        else:
            vars(made).update(_expect(state, dict))

    def is_vouched(self, value: Any):
        """Whether this is a function, or of a type that is trusted by name."""
        if isinstance(value, (*_FUNCTION_TYPES, types.MethodType)):
            return True  # `find` has asked for its name
        kind = value if isinstance(value, type) else type(value)
        return registry.public_name(kind) in self.trusted

    def object_array(self, shape: list, items: list):
        if not all(type(n) is int and n >= 0 for n in shape) or math.prod(shape) != len(items):
            raise ValueError(f"an array of shape {shape} with {len(items)} items")
        flat = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            flat[i] = self.value(item)
        return flat.reshape(shape)

    def reduced(self, name: str, arguments: list, state: Any, items: Any):
        function = self.find(name)
        # A class without arguments is made as pickle makes it, without a call of __init__.
        bare = isinstance(function, type) and not arguments
        made = function.__new__(function) if bare else function(*arguments)
        if state is not None:
            self.set_state(made, state)
        if items is not None:
            made.update(_expect(items, dict))
        return made

    # --- values ---------------------------------------------------------------------------------

    def value(self, value: Any):
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if not isinstance(value, dict) or len(value) != 1:
            raise ValueError(f"a value {str(value)[:40]!r}")
        [(kind, content)] = value.items()
        match kind, content:
            case "at", int(place) if 0 <= place < len(self.built):
                return self.built[place]
            case (("list" | "tuple" | "set" | "frozenset"), list()):
                return _COLLECTIONS[kind](self.value(v) for v in content)
            case "dict", [list(keys), list(values)] if len(keys) == len(values):
                return {self.value(k): self.value(v) for k, v in zip(keys, values)}
            case "slice", [start, stop, step]:
                return slice(*(self.value(v) for v in (start, stop, step)))
            case "scalar", [str(dtype), str(data)]:
                return _scalar(dtype, bytes.fromhex(data))
            case "bytes", str(data):
                return bytes.fromhex(data)
            case "dtype", str(text) if _DTYPE.fullmatch(text):
                return np.dtype(text)
            case "class", str(name) if name in PLAIN_TYPES:
                return PLAIN_TYPES[name]
            case "class", str(name):
                return registry.listed_class(name) or self.find(name)
            case "function", str(name):
                return self.find(name)
            case "method", [holder, str(name)]:
                self.vouch(self.method_name(holder, name))
                return getattr(self.value(holder), name)
        raise ValueError(f"a value of kind {kind!r}")

    def find(self, name: str):
        self.vouch(name)
        return registry.find(name)

    def vouch(self, name: str):
        """A second look, in case `untrusted` has missed a name that is about to be used."""
        if name not in self.trusted:
            raise ValueError(f"the name {name}")

    def method_name(self, holder: Any, name: str):
        match holder:
            case {"at": int(place)} if 0 <= place < len(self.entries):
                return f"{self.entries[place].get('type')}.{name}"
        raise ValueError(f"a method {name} of {str(holder)[:40]}")

    # --- trust ----------------------------------------------------------------------------------

    def untrusted(self, root: Any):
        """Names that the model needs, and that nobody vouches for; nothing is imported."""
        return sorted(n for n in self.names(root) if n not in self.trusted)

    def names(self, root: Any):
        """Names of classes and functions that a stranger's file may not use."""
        plain: list[bool] = []  # of each entry: whether it is data alone
        found = set()
        for entry in self.entries:
            data = False
            match entry:
                case {"array": str()} | {"made": str()}:
                    data = True
                case {"objects": list(), "items": list(items)}:
                    data = _are_data(items, plain)
                case {"type": str(name), "attributes": dict(attributes)}:
                    by_name = attributes.get(NUMBERS_BY_NAME)
                    calls = name in SKLEARN and not _is_plain_state(name, attributes, plain)
                    if calls or not _are_numbers(by_name):
                        found.add(name)
            plain.append(data)
        for part in _dicts([root, *self.entries]):
            match part:
                case {"type": str(name)} if registry.listed_class(name) is None:
                    found.add(name)
                case {"reduced": str(name)} | {"function": str(name)}:
                    found.add(name)
                case {"class": str(name)} if (
                    name not in PLAIN_TYPES and registry.listed_class(name) is None
                ):
                    found.add(name)
                case {"method": [holder, str(name)]}:
                    found.add(self.method_name(holder, name))
        return found

    def check_depth(self, root: Any):
        """ValueError where data or objects lie too deep in each other to be freed one by one."""
        depths: list[tuple[int, int]] = []  # of each entry: levels of data, and of objects
        for entry in [*self.entries, {"root": root}]:
            data, objects = 0, 0
            left = [(entry, 0)]
            while left:
                part, level = left.pop()
                if isinstance(part, dict) and set(part) == {"at"}:
                    d, o = depths[part["at"]]
                    data, objects = max(data, level + d), max(objects, o)
                elif isinstance(part, (dict, list)):
                    inner = part.values() if isinstance(part, dict) else part
                    # A kind and its content are one level of data: {"list": [...]}.
                    left += [(p, level + isinstance(part, dict)) for p in inner]
                    data = max(data, level)
            if data > MOST_LEVELS or objects > MOST_OBJECTS:
                raise ValueError("objects in more levels than any model has")
            is_object = "type" in entry or "reduced" in entry
            depths.append((0, objects + 1) if is_object else (data, objects))


def _dicts(part) -> Iterator[dict[str, Any]]:
    """The dicts in plain data, wherever they are."""
    left = [part]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            yield part
            left.extend(part.values())
        elif isinstance(part, list):
            left.extend(part)


def _are_data(values, plain):
    return all(
        plain[part["at"]] if "at" in part else len(part) == 1 and part.keys() <= _DATA_KINDS
        for part in _dicts(values)
    )


def _is_plain_state(name, attributes, plain):
    """Whether an object's attributes are data, its slots aside, and its settings harmless."""
    harmless = all(attributes.get(key, usual) is usual for key, usual in SETTINGS.items())
    slots = slots_of(name)
    return harmless and _are_data([v for k, v in attributes.items() if k not in slots], plain)


def _are_numbers(value):
    """Whether this is None, or a dict of numbers and texts."""
    match value:
        case None:
            return True
        case {"dict": [list(), list(values)]}:
            return all(not isinstance(v, dict) or "scalar" in v for v in values)
    return False


def _scalar(text, data):
    if not _DTYPE.fullmatch(text):
        raise ValueError(f"a number of type {text!r}")
    dtype = np.dtype(text)
    if dtype.kind not in _SCALAR_KINDS or not 0 < dtype.itemsize == len(data):
        raise ValueError(f"a number of type {text!r} in {len(data)} bytes")
    return np.frombuffer(data, dtype)[0]


def _expect(value, kind):
    if not isinstance(value, kind):
        raise ValueError(f"a {type(value).__name__} where a {kind.__name__} belongs")
    return value


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
