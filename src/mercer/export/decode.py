"""Plain data as models: what `load` builds, and what it refuses.

Nothing happens here that is not written here: every kind of entry is made by its own few lines.
Classes come from the registry or are named in `trusted`, their attributes are of the types that
they work with (allowed.py), data are checked where they are made (rebuilt.py), and kernels check
their own parameters. A name that is not allowed is never imported.
"""

import math
import re
import types
from typing import Any

import numpy as np

from .. import Kernel
from . import registry
from .allowed import NUMBERS_BY_NAME, PLAIN_TYPES, SETTINGS, SKLEARN, check_parts, slots_of
from .encode import FUNCTION_TYPES, SCALAR_KINDS
from .rebuilt import MAKERS

DTYPE = re.compile(r"[<>|=]?[biufcSUmMO]\d*(\[\d*\w+\])?")
# Levels of lists, dicts and arrays of objects in each other: NumPy frees each by a call of its own,
# and many of them would end the interpreter. Objects may be deeper: a sum of kernels is.
MOST_LEVELS, MOST_OBJECTS = 50, 20_000
COLLECTIONS: dict[str, type] = {made.__name__: made for made in (list, tuple, set, frozenset)}


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
        made = registry.with_attributes(cls, values)
        if isinstance(made, Kernel):
            self.inner.update(id(v) for v in values.values() if isinstance(v, Kernel))
        return made

    def is_vouched(self, value: Any):
        """Whether this is a function, or of a type that is trusted by name."""
        if isinstance(value, (*FUNCTION_TYPES, types.MethodType)):
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
            if hasattr(made, "__setstate__"):
                made.__setstate__(state)
            else:
                vars(made).update(_expect(state, dict))
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
                return COLLECTIONS[kind](self.value(v) for v in content)
            case "dict", [list(keys), list(values)] if len(keys) == len(values):
                return {self.value(k): self.value(v) for k, v in zip(keys, values)}
            case "slice", [start, stop, step]:
                return slice(*(self.value(v) for v in (start, stop, step)))
            case "scalar", [str(dtype), str(data)]:
                return _scalar(dtype, bytes.fromhex(data))
            case "bytes", str(data):
                return bytes.fromhex(data)
            case "dtype", str(text) if DTYPE.fullmatch(text):
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
        found, left = set(), [root]
        for entry in self.entries:
            plain.append(_is_data_entry(entry, plain))
            match entry:
                case {"type": str(name)} if name in SKLEARN and not _is_plain_state(entry, plain):
                    found.add(name)
                case {"type": str(name), "attributes": {**attributes}} if (
                    NUMBERS_BY_NAME in attributes and not _are_numbers(attributes[NUMBERS_BY_NAME])
                ):
                    found.add(name)
            left.append(entry)
        while left:
            part = left.pop()
            if isinstance(part, list):
                left.extend(part)
            if not isinstance(part, dict):
                continue
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
            left.extend(part.values())
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


def _is_plain_state(entry, plain):
    """Whether an object's attributes are data, its slots aside, and its settings harmless."""
    name, attributes = entry["type"], _expect(entry["attributes"], dict)
    slots = slots_of(name)
    for attribute, value in attributes.items():
        if attribute in SETTINGS and value is not SETTINGS[attribute]:
            return False
        if attribute not in slots and not _is_data(value, plain):
            return False
    return True


def _are_numbers(value):
    """Whether this is None, or a dict of numbers and texts."""
    match value:
        case None:
            return True
        case {"dict": [list(), list(values)]}:
            return all(not isinstance(v, dict) or "scalar" in v for v in values)
    return False


def _is_data_entry(entry, plain):
    match entry:
        case {"array": str()}:
            return True
        case {"objects": list(), "items": list(items)}:
            return all(_is_data(item, plain) for item in items)
        case {"made": str()}:
            return True
    return False


def _is_data(value, plain):
    """Whether a value is data: no object, and nothing that could be called."""
    if not isinstance(value, dict):
        return value is None or isinstance(value, (bool, int, float, str))
    [(kind, content)] = value.items()
    match kind, content:
        case "at", int(place):
            return plain[place]
        case (("list" | "tuple" | "set" | "frozenset" | "slice"), list()):
            return all(_is_data(v, plain) for v in content)
        case "dict", [list(keys), list(values)]:
            return all(_is_data(v, plain) for v in (*keys, *values))
    return kind in ("scalar", "bytes", "dtype")


def _scalar(text, data):
    if not DTYPE.fullmatch(text):
        raise ValueError(f"a number of type {text!r}")
    dtype = np.dtype(text)
    if dtype.kind not in SCALAR_KINDS or not 0 < dtype.itemsize == len(data):
        raise ValueError(f"a number of type {text!r} in {len(data)} bytes")
    return np.frombuffer(data, dtype)[0]


def _expect(value, kind):
    if not isinstance(value, kind):
        raise ValueError(f"a {type(value).__name__} where a {kind.__name__} belongs")
    return value
