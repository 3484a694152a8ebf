"""Plain data as models: what `load` builds, and what it refuses.

Nothing happens here that is not written here: every kind of entry is made by its own few lines,
classes come from the registry or are named in `trusted`, and what native code will index with is
checked (rebuilt.py, checks.py). A name that is not allowed is never imported.
"""

import math
import re

import numpy as np

from . import registry
from .checks import check_object, check_settings
from .encode import SCALAR_KINDS
from .rebuilt import MAKERS

DTYPE = re.compile(r"[<>|=]?[biufcSUmMO]\d*(\[\d*\w+\])?")


class Model:
    """The objects of a table, built in its order, so that each finds those it holds."""

    def __init__(self, entries, read_array, trusted=frozenset()):
        self.entries = _expect(entries, list)
        self.read_array = read_array
        self.trusted = trusted
        self.built = []

    def build(self, root):
        self.built = []
        for entry in self.entries:
            self.built.append(self.entry(_expect(entry, dict)))
        return self.value(root)

    # --- entries --------------------------------------------------------------------------------

    def entry(self, entry):
        match entry:
            case {"type": str(name), "attributes": dict(attributes), **rest} if not rest:
                return self.object(name, attributes)
            case {"array": str(name), **rest} if not rest:
                return self.read_array(name)
            case {"objects": list(shape), "items": list(items), **rest} if not rest:
                return self.object_array(shape, items)
            case {"made": str(name), "of": list(parts), **rest} if not rest and name in MAKERS:
                return MAKERS[name][1](*[self.value(p) for p in parts])
            case {"reduced": str(name), "of": list(parts), "state": state, **rest} if not rest:
                return self.reduced(name, [self.value(p) for p in parts], self.value(state))
        raise ValueError(f"an entry with {list(entry)[:3]}")

    def object(self, name, attributes):
        cls = registry.listed_class(name)
        if cls is None:
            cls = self.find(name)
        if not isinstance(cls, type):
            raise ValueError(f"{name}, which is not a class")
        bad = registry.bad_attribute(cls, attributes, trusted=name in self.trusted)
        if bad is not None:
            raise ValueError(f"an attribute {bad!r} of {name}")
        values = {key: self.value(v) for key, v in attributes.items()}
        made = registry.with_attributes(cls, values)
        check_object(made, name)
        if name not in self.trusted:
            check_settings(made, name)
        return made

    def object_array(self, shape, items):
        if not all(type(n) is int and n >= 0 for n in shape) or math.prod(shape) != len(items):
            raise ValueError(f"an array of shape {shape} with {len(items)} items")
        flat = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            flat[i] = self.value(item)
        return flat.reshape(shape)

    def reduced(self, name, arguments, state):
        made = self.find(name)(*arguments)
        if state is not None:
            if hasattr(made, "__setstate__"):
                made.__setstate__(state)
            else:
                vars(made).update(_expect(state, dict))
        return made

    # --- values ---------------------------------------------------------------------------------

    def value(self, value):
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if not isinstance(value, dict) or len(value) != 1:
            raise ValueError(f"a value {str(value)[:40]!r}")
        [(kind, content)] = value.items()
        match kind, content:
            case "at", int(place) if 0 <= place < len(self.built):
                return self.built[place]
            case "list", list():
                return [self.value(v) for v in content]
            case "tuple", list():
                return tuple(self.value(v) for v in content)
            case "set", list():
                return {self.value(v) for v in content}
            case "frozenset", list():
                return frozenset(self.value(v) for v in content)
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
            case "class", str(name) if name in registry.PLAIN_TYPES:
                return registry.PLAIN_TYPES[name]
            case "class", str(name):
                return registry.listed_class(name) or self.find(name)
            case "function", str(name) if name in registry.FUNCTIONS:
                return registry.find(name)
            case "function", str(name):
                return self.find(name)
            case "method", [holder, str(name)]:
                self.vouch(self.method_name(holder, name))
                return getattr(self.value(holder), name)
        raise ValueError(f"a value of kind {kind!r}")

    def find(self, name):
        self.vouch(name)
        return registry.find(name)

    def vouch(self, name):
        """A second look, in case `untrusted` has missed a name that is about to be used."""
        if name not in self.trusted:
            raise ValueError(f"the name {name}")

    def method_name(self, holder, name):
        match holder:
            case {"at": int(place)} if 0 <= place < len(self.entries):
                return f"{self.entries[place].get('type')}.{name}"
        raise ValueError(f"a method {name} of {str(holder)[:40]}")

    # --- trust ----------------------------------------------------------------------------------

    def untrusted(self, root):
        """Names that the model needs, and that nobody vouches for; nothing is imported."""
        return sorted(n for n in self.names(root) if n not in self.trusted)

    def names(self, root):
        """Names of classes and functions outside the registry."""
        found, left = set(), [root, *self.entries]
        while left:
            part = left.pop()
            if isinstance(part, list):
                left.extend(part)
            if not isinstance(part, dict):
                continue
            match part:
                case {"type": str(name)} if registry.listed_class(name) is None:
                    found.add(name)
                case {"reduced": str(name)}:
                    found.add(name)
                case {"function": str(name)} if name not in registry.FUNCTIONS:
                    found.add(name)
                case {"class": str(name)} if (
                    name not in registry.PLAIN_TYPES and registry.listed_class(name) is None
                ):
                    found.add(name)
                case {"method": [holder, str(name)]}:
                    found.add(self.method_name(holder, name))
            left.extend(part.values())
        return found


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
