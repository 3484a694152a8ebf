"""Knobs: one for each number in a kernel, the value that the data suggest, scores along it."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from ... import Kernel
from ...engine import is_number
from ...kernels import as_numbers
from ..compare.tuning import default_of, rounded, suggested_gamma
from ..data import Explored
from .space import explored_space, judged

# The reach of a knob to either side of its mark, as a factor.
REACH = {"gamma": 1000.0, "length_scale": 30.0, "period": 30.0}
USUAL_REACH = 100.0
# Whole numbers are turned one by one.
LARGEST_WHOLE = 12
WHOLE = ("degree", "exponent", "depth", "length", "mismatches", "rounds")
# The curve under a knob: so many values, each on so many rows and landmarks.
CURVE_VALUES, CURVE_ROWS, CURVE_LANDMARKS = 13, 600, 80
# Numbers that choose a formula rather than a size are set by typing.
TYPED = ("nu", "coefficients", "columns", "A")


@dataclass(frozen=True)
class Knob:
    """One number of a kernel.

    Attributes
    ----------
    name : its nested name, such as "left__gamma"
    label : for people: "gamma of RBF"
    value, low, high : where it stands, and how far it turns
    mark : the value that the data suggest, or the default
    mark_label : what the mark is
    whole : whether only whole numbers make sense
    """

    name: str
    label: str
    value: float
    low: float
    high: float
    mark: float
    mark_label: str
    whole: bool = False

    def grid(self, size: int) -> list[float]:
        """Values to try along the knob: even steps, on a logarithmic scale."""
        if self.whole:
            return [float(v) for v in range(int(self.low), int(self.high) + 1)]
        return np.geomspace(self.low, self.high, size).tolist()


def knobs_of(kernel: Kernel, data: Explored) -> list[Knob]:
    """A knob for each number of the kernel that can be turned."""
    bound = data.bound(kernel)
    found = bound.get_params(deep=True)
    knobs = []
    for name, value in kernel.get_params(deep=True).items():
        head, _, last = name.rpartition("__")
        if last in TYPED or isinstance(value, (bool, Kernel)) or value is None:
            continue
        number = _size(found[name])
        if number is None or not 0 < number < math.inf:
            continue
        owner = found[head] if head else bound
        knobs.append(_knob(name, last, number, owner, kernel, data))
    return knobs


def turned(kernel: Kernel, knob: Knob, value: float) -> Kernel:
    """The kernel with one number changed; of a list, one per column, all by the same factor."""
    if not is_number(value) or not 0 < value < math.inf:
        raise ValueError(f"{knob.label} must be a positive number, got {value!r}.")
    present: Any = kernel.get_params(deep=True)[knob.name]
    changed: Any = round(value) if knob.whole else rounded(value)
    if not isinstance(present, str) and np.ndim(present) == 1:
        changed = [rounded(v) for v in as_numbers(present) * (value / knob.value)]
    return clone(kernel).set_params(**{knob.name: changed})


def _size(value):
    """A number as it is, several as their geometric mean; None for anything else."""
    try:
        numbers = as_numbers(value)
    except (TypeError, ValueError):
        return None
    if numbers.ndim > 1 or not numbers.size or not (numbers > 0).all():
        return None
    return float(np.exp(np.log(numbers).mean()))


def _knob(name, last, value, owner, kernel, data):
    label = f"{last} of {type(owner).__name__}"
    if last == "scale":
        label = "weight"
    if last in WHOLE:
        default = _default(owner, last) or 2
        high = max(LARGEST_WHOLE, int(value))
        return Knob(name, label, value, 1.0, float(high), float(default), "default", True)
    mark, mark_label = _suggested(name, kernel, data)
    if mark is None:
        mark, mark_label = _default(owner, last) or 1.0, "default"
    reach = REACH.get(last, USUAL_REACH)
    low, high = min(mark / reach, value), max(mark * reach, value)
    return Knob(name, label, value, low, high, mark, mark_label)


def _suggested(name, kernel, data):
    """The width that the data suggest; (None, "") for other parameters."""
    power = kernel.widths().get(name, 0)
    if power < 0:
        try:
            ruled = data.bound(clone(kernel).set_params(**{name: "scale"}))
            return float(as_numbers(ruled.get_params(deep=True)[name])), "from the data"
        except (TypeError, ValueError):
            pass
    if power and data.vectors:
        gamma = suggested_gamma(data.X)
        return (gamma if power < 0 else (2 * gamma) ** -0.5), "from the data"
    return None, ""


def _default(owner, last):
    default = default_of(owner, last)
    return float(default) if is_number(default) and default > 0 else None


# --- scores along a knob --------------------------------------------------------------------------


class Curves:
    """The leave-one-out score along each knob, on a part of the rows, remembered."""

    def __init__(self, data: Explored, seed: int = 0):
        order = np.random.default_rng(seed).permutation(len(data))
        rows = np.sort(order[:CURVE_ROWS])
        self.data = data.part(rows)
        chosen = np.random.default_rng(seed).permutation(len(rows))[:CURVE_LANDMARKS]
        self.landmarks = self.data.take(chosen)
        self._found: dict[tuple[str, str], list[tuple[float, float]]] = {}

    def known(self, kernel: Kernel, knob: Knob) -> list[tuple[float, float]]:
        """The curve where it was computed before, else an empty list."""
        return self._found.get(_key(kernel, knob), [])

    def along(self, kernel: Kernel, knob: Knob) -> list[tuple[float, float]]:
        """(value, score) pairs, all other numbers as they are in the kernel.

        Values on which the kernel cannot be evaluated are left out.
        """
        if self.data.targets is None:
            return []
        key = _key(kernel, knob)
        if key not in self._found:
            self._found[key] = [
                (value, score)
                for value in knob.grid(CURVE_VALUES)
                if (score := self._score(turned(kernel, knob, value))) is not None
            ]
        return self._found[key]

    def forget(self) -> None:
        """Another metric: the same names stand for other kernels."""
        self._found.clear()

    def _score(self, kernel):
        try:
            result = judged(explored_space(kernel, self.data, self.landmarks), self.data)
        except (ValueError, ArithmeticError, np.linalg.LinAlgError):
            return None  # an overflow at one end of the knob
        return result.score if result is not None and np.isfinite(result.score) else None


def _key(kernel, knob):
    """The knob, and everything about the kernel but the knob's value."""
    return knob.name, repr(clone(kernel).set_params(**{knob.name: 1}))
