"""Periodic: RBF on circles."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType

import numpy as np

from ..engine import Form, in_place, namespace
from .geometry import dense_rows
from .parameters import as_numbers, column_scale, per_column, weighted_columns
from .spectral import ByColumn, FourierForm, PeriodicForm
from .stationary import Stationary
from .types import Array, PerColumn


class Periodic(Stationary):
    r"""Compare points on a cycle: hours, weekdays, angles.

    exp(-2 sum_c sin^2(pi (x_c - z_c) / p) / l^2): a product over columns.

    4 sin^2(t / 2) is the squared distance between points at angle t on a circle: so this is RBF
    on circles, one for each column, and valid in any dimension.

    Parameters
    ----------
    length_scale : float or list of one per column
        The distance over which values change, l in the formula.
    period : float or list of one per column
        The length of one cycle, p in the formula.

    Notes
    -----
    .. math::

        k(x, z) = \exp \Bigl( -\frac{2}{l^2} \sum_c \sin^2 \frac{\pi (x_c - z_c)}{p} \Bigr)

    - *Valid*: RBF on circles: rule 7 of [KERNELS].
    - *Fails*: where cycles change: multiply it by an RBF. A period has to be known roughly; the
      evidence has many local maxima in it.
    - *Elsewhere*: scikit-learn's and tinygp's `ExpSineSquared`, GPyTorch's `PeriodicKernel`.

    Examples
    --------
    >>> from mercer import Periodic
    >>> Periodic(period=24.0)([[0.0]], [[6.0], [12.0], [24.0]]).round(3)
    array([[0.368, 0.135, 1.   ]])
    """

    sklearn_names = ("periodic",)
    takes_sparse = False
    is_psd = True
    length_powers = {"length_scale": 1}
    domains = {"length_scale": per_column(), "period": per_column()}

    def __init__(self, length_scale: PerColumn = 1.0, period: PerColumn = 1.0) -> None:
        self.length_scale = length_scale
        self.period = period

    def _embedding(self, S: Array) -> Callable[[Array], Array]:
        """Points on circles, seen from the first point of S: (sin t, 1 - cos t) at the angle t
        from it. Close by, both are small and have all their digits."""
        xp, first = namespace(S), dense_rows(S, self)[:1, :]
        period = column_scale(S, self.period) * xp.ones_like(xp.astype(first, xp.float64))
        weight = 1 / as_numbers(self.length_scale) / math.sqrt(2)

        def place(X: Array):
            """Between -p / 2 and p / 2, and exact, as the angle of a large x would not be. In
            double precision: a rounded period would shift every later turn."""
            xp = namespace(X)
            X = xp.astype(dense_rows(X, self), xp.float64)
            turn = xp.remainder(xp.abs(X), period)
            turn = xp.where(turn > period / 2, turn - period, turn)
            return xp.where(X < 0, -turn, turn)

        # Seen from p / 2 where the first point is closer to it: points near it stay near it.
        opposite = xp.abs(place(first)) > period / 4

        def seen(X: Array):
            turn, xp = place(X), namespace(X)
            there = turn + xp.where(turn < 0, period / 2, -period / 2)
            return xp.where(opposite, there, turn)

        start = seen(first)

        def embed(X: Array):
            angle, xp = (seen(X) - start) * (2 * math.pi / period), namespace(X)
            half = xp.sin(angle / 2)
            circles = [weighted_columns(c, weight) for c in (xp.sin(angle), 2 * half * half)]
            return xp.concat(circles, axis=1)

        return embed

    def moved(self, by: np.ndarray) -> float | None:
        rate = math.sqrt(2) * math.pi / as_numbers(self.period) / as_numbers(self.length_scale)
        return 0.86 * float(np.sqrt(np.sum((rate * by) ** 2)))

    def formula(self, t: Array, xp: ModuleType) -> Array:
        return in_place(xp.exp, t)

    def fused_form(self) -> Form | None:
        return None  # distances are between points on circles

    def fourier_form(self) -> FourierForm | None:
        length, period = as_numbers(self.length_scale), as_numbers(self.period)
        return ByColumn(lambda length, period: PeriodicForm(length**-2, period), length, period)
