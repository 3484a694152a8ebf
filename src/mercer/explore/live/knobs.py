"""Knobs: one for each number in a kernel, the value that the data suggest, scores along it."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from ... import Kernel
from ...engine import Domain, is_number
from ...kernels import as_numbers
from ..compare.tuning import default_of, rounded, suggested_gamma
from ..data import Explored
from .space import explored_space

# The reach of a knob to either side of its mark, as a factor.
_REACH = {"gamma": 1000.0, "length_scale": 30.0, "period": 30.0}
_USUAL_REACH = 100.0
# Whole numbers are turned one by one; the coordinates of a path grow with the power of the depth.
_LARGEST_WHOLE, _DEEPEST = 12, 4
_WHOLE = ("degree", "exponent", "depth", "length", "mismatches", "gaps", "rounds")
# The curve under a knob: so many values, each on so many rows and landmarks.
CURVE_VALUES, CURVE_ROWS, CURVE_LANDMARKS = 13, 600, 80
# Numbers that choose a formula rather than a size are set by typing.
_TYPED = ("nu", "coefficients", "columns", "A")


@dataclass(frozen=True)
class Knob:
    """One number of a kernel: where it stands, and how far it turns."""

    name: str  # nested, such as "left__gamma"
    label: str  # for people: "gamma of RBF"
    value: float
    low: float
    high: float
    mark: float  # the value that the data suggest, or the default
    mark_label: str  # which of the two it is
    whole: bool = False  # whether only whole numbers make sense

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
        if last in _TYPED or isinstance(value, (bool, Kernel)) or value is None:
            continue
        try:
            numbers = as_numbers(found[name])
        except (TypeError, ValueError):
            continue
        if numbers.ndim > 1 or not numbers.size or not (numbers > 0).all():
            continue
        number = float(np.exp(np.log(numbers).mean()))  # of several their geometric mean
        if not 0 < number < math.inf:
            continue
        owner = found[head] if head else bound
        label = "weight" if last == "scale" else f"{last} of {type(owner).__name__}"
        usual = default_of(owner, last)
        usual = float(usual) if is_number(usual) and usual > 0 else None
        if last in _WHOLE:
            most = _DEEPEST if last == "depth" else _LARGEST_WHOLE
            high = float(max(most, int(number)))
            knobs.append(Knob(name, label, number, 1.0, high, usual or 2.0, "default", True))
            continue
        suggested = _suggested(name, kernel, data)
        mark, mark_label = (suggested, "from the data") if suggested else (usual or 1.0, "default")
        reach = _REACH.get(last, _USUAL_REACH)
        low, high = min(mark / reach, number), max(mark * reach, number)
        knobs.append(Knob(name, label, number, low, high, mark, mark_label))
    return knobs


def turned(kernel: Kernel, knob: Knob, value: float) -> Kernel:
    """The kernel with one number changed; of a list, one per column, all by the same factor."""
    Domain.POSITIVE(knob.label, value)
    present: Any = kernel.get_params(deep=True)[knob.name]
    changed: Any = round(value) if knob.whole else rounded(value)
    if not isinstance(present, str) and np.ndim(present) == 1:
        changed = [rounded(v) for v in as_numbers(present) * (value / knob.value)]
    return clone(kernel).set_params(**{knob.name: changed})


def _suggested(name, kernel, data):
    """The width that the data suggest; None for other parameters."""
    power = kernel.widths().get(name, 0)
    if power < 0:
        try:
            ruled = data.bound(clone(kernel).set_params(**{name: "scale"}))
            return float(as_numbers(ruled.get_params(deep=True)[name]))
        except (TypeError, ValueError):
            pass
    if power and data.vectors:
        gamma = suggested_gamma(data.X)
        return gamma if power < 0 else (2 * gamma) ** -0.5
    return None


# --- scores along a knob --------------------------------------------------------------------------


class Curves:
    """The leave-one-out score along each knob, on a part of the rows, remembered."""

    def __init__(self, data: Explored):
        order = np.random.default_rng(0).permutation(len(data))
        rows = np.sort(order[:CURVE_ROWS])
        self.data = data.part(rows)
        chosen = np.random.default_rng(0).permutation(len(rows))[:CURVE_LANDMARKS]
        self.landmarks = self.data.take(chosen)
        self._found: dict[tuple[str, str], list[tuple[float, float]]] = {}

    def along(self, kernel: Kernel, knob: Knob, *, new: bool = True) -> list[tuple[float, float]]:
        """(value, score) pairs, all other numbers as they are in the kernel. Values on which the
        kernel cannot be evaluated are left out. Without `new` there are none unless they were
        computed before."""
        # The knob, and everything about the kernel but the knob's value.
        key = knob.name, repr(clone(kernel).set_params(**{knob.name: 1}))
        if key not in self._found and new and self.data.targets is not None:
            found = []
            for value in knob.grid(CURVE_VALUES):
                changed = turned(kernel, knob, value)
                try:
                    space = explored_space(changed, self.data, self.landmarks)
                except (ValueError, ArithmeticError, np.linalg.LinAlgError):
                    continue  # an overflow at one end of the knob
                if space.judged is not None and np.isfinite(space.judged.score):
                    found.append((value, space.judged.score))
            self._found[key] = found
        return self._found.get(key, [])
