"""Leave-one-out: how well each row is predicted by a model that has not seen it."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from ...kernels import Kernel
from ..compare.sampling import CLASSES
from ..compare.scores import ACCURACY, R2
from .data import Explored
from .knobs import Knob, turned
from .space import LiveSpace, explored_space

# The curve under a knob: so many values, each on so many rows and landmarks.
CURVE_VALUES, CURVE_ROWS, CURVE_LANDMARKS = 13, 600, 80


@dataclass(frozen=True)
class Judged:
    """The score, and the prediction of each row by the fit to all others.

    `predicted` holds codes of classes, or numbers; `wrong` marks rows of a class that is not found.
    """

    name: str
    score: float
    predicted: np.ndarray
    wrong: np.ndarray


def judged(space: LiveSpace, data: Explored) -> Judged | None:
    """Ridge in the kernel's space, each row left out in turn; None without a target.

    Classes are columns of 0 and 1, and the largest prediction decides (scikit-learn's
    RidgeClassifier).
    """
    if data.targets is None or space.ridge is None:
        return None
    misses = space.ridge.left_out().residuals
    left_out = data.targets - misses
    if data.task != CLASSES:
        y = data.targets[:, 0]
        spread = float(np.var(y)) or 1.0
        score = 1.0 - float(np.mean(misses[:, 0] ** 2)) / spread
        return Judged(R2, score, left_out[:, 0], np.zeros(len(y), dtype=bool))
    predicted = left_out.argmax(axis=1)
    wrong = predicted != data.codes
    return Judged(ACCURACY, float(np.mean(~wrong)), predicted, wrong)


class Curves:
    """The leave-one-out score along each knob, on a part of the rows, remembered."""

    def __init__(self, data: Explored, seed: int = 0):
        order = np.random.default_rng(seed).permutation(len(data))
        rows = np.sort(order[:CURVE_ROWS])
        self.data = part_of(data, rows)
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


def part_of(data: Explored, rows: np.ndarray) -> Explored:
    """Some of the rows, with the same columns and classes."""
    part = Explored(
        X=data.take(rows),
        names=data.names,
        task=data.task,
        target=None if data.target is None else data.target[rows],
        rows=data.rows[rows],
        given=data.given,
        usable=data.usable,
    )
    if data.codes is not None and data.targets is not None:  # also classes that are not drawn
        part.classes, part.codes, part.targets = (
            data.classes,
            data.codes[rows],
            data.targets[rows],
        )
    return part
