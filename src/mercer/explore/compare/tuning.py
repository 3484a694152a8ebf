"""Each kernel at its best: its width and penalty chosen on training rows by leave-one-out."""

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from ... import RBF, Kernel
from ...engine import as_numpy
from ...kernels import as_numbers
from ...solve import RidgeSolution
from .folds import ComparedRows
from .scores import ridge_on

# Widths tried, as factors of gamma around the value that the data suggest.
_FACTORS = tuple(4.0**j for j in range(-4, 3))
# Widths are chosen on at most so many training rows; the penalty is chosen on all of them.
_TUNED_ON = 300
# Matrices of all candidates are kept for samples of up to this size (32 MB each at 2000).
_KEPT = 2000


@dataclass
class _Tuned:
    """One candidate of a kernel, fitted to some rows."""

    number: int
    solution: RidgeSolution
    errors: list[float]  # leave-one-out error of every candidate; empty where there is one


class Candidates:
    """A kernel along its path of widths, and its matrices on the sample.

    All parameters of `kernels` are numbers. `parameter` is the (first) width that differs among
    them, with its `values`; None where there is nothing to choose.
    """

    def __init__(self, kernel: Kernel, data: ComparedRows, *, tuned: bool = True):
        self.data = data
        self.parameter, self.values, self.kernels = None, [], [kernel]
        if not data.gram:
            names = _tunable_widths(kernel) if tuned else []
            self.kernels, self.values = _path(kernel, data.X, names)
            self.parameter = names[0] if names else None
        self._matrices: dict[int, np.ndarray] = {}

    def matrix(
        self, number: int, rows: np.ndarray, columns: np.ndarray | None = None
    ) -> np.ndarray:
        """k(rows, columns) of one candidate; columns=None: against the rows themselves."""
        columns = rows if columns is None else columns
        if self.data.gram or len(self.data) <= _KEPT:
            if number not in self._matrices:
                self._matrices[number] = _values(self.kernels[number], self.data.X)
            return self._matrices[number][np.ix_(rows, columns)]
        X, Y = self.data.take(rows), self.data.take(columns)
        return _values(self.kernels[number], X, None if columns is rows else Y)

    def tune(self, rows: np.ndarray) -> _Tuned:
        """The best width and penalty for these rows."""
        Y, importance = self.data.targets[rows], None
        if self.data.balanced:
            importance = self.data.balance[rows]
        number, errors = 0, []
        if len(self.kernels) > 1:
            few = np.arange(len(rows))
            if len(rows) > _TUNED_ON:
                few = np.random.default_rng(0).permutation(len(rows))[:_TUNED_ON]
            part = Y[few], None if importance is None else importance[few]
            for j in range(len(self.kernels)):
                choice = ridge_on(self.matrix(j, rows[few]), *part).choice
                errors.append(float(choice.errors.min()))
            number = int(np.argmin(errors))
        return _Tuned(number, ridge_on(self.matrix(number, rows), Y, importance), errors)


def _tunable_widths(kernel: Kernel) -> list[str]:
    """Names of the widths that are open: left at their default, or named by a rule ("scale"). A
    number that the caller has written stays as it is."""
    names = []
    parameters = kernel.get_params(deep=True)
    for name in kernel.widths():
        head, _, last = name.rpartition("__")
        value, default = parameters[name], default_of(parameters[head] if head else kernel, last)
        rule = isinstance(value, str)
        if rule or (np.ndim(value) == 0 and type(value) is type(default) and value == default):
            names.append(name)
    return names


def default_of(kernel: Kernel, parameter: str) -> Any:
    return inspect.signature(type(kernel).__init__).parameters[parameter].default


def _path(kernel, X, names):
    """(kernels with numbers, values of the first width); a single one if no width is open. The data
    suggest gamma = "scale" (or "median" where asked for) and the length scale of the same width.
    All open widths of a composed kernel move together."""
    if not names:
        return [kernel.bind(X)], []
    given = kernel.get_params(deep=True)
    lengths = [name for name in names if kernel.widths()[name] > 0]
    numbers = [name for name in names if name not in lengths and not isinstance(given[name], str)]
    suggested = suggested_gamma(X)
    # A number at its default (Polynomial's gamma = 1) gives way to what the data suggest.
    start = clone(kernel).set_params(
        **dict.fromkeys(numbers, suggested), **dict.fromkeys(lengths, (2 * suggested) ** -0.5)
    )
    start = start.bind(X)
    found = start.get_params(deep=True)
    kernels, values = [], []
    for factor in _FACTORS:
        changed = {
            name: rounded(found[name] / factor**0.5 if name in lengths else found[name] * factor)
            for name in names
        }
        kernels.append(clone(start).set_params(**changed))
        values.append(changed[names[0]])
    return kernels, values


def rounded(value: float) -> float:
    """A number that can be written down: four significant digits."""
    return float(f"{float(value):.4g}")


def suggested_gamma(X: Any) -> float:
    """gamma = "scale" where X holds numbers; 1 for objects."""
    try:
        return float(as_numbers(RBF("scale").bind(X).gamma))
    except (TypeError, ValueError):
        return 1.0


def _values(kernel, X, Y=None):
    return np.asarray(as_numpy(kernel(X) if Y is None else kernel(X, Y)), dtype=float)
