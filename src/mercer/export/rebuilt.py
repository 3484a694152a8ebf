"""Types that files hold as the arguments of their makers, and how each is made again, checked.

These are data: numbers, dates, sparse matrices, the state of a random generator. Compiled code of
NumPy and SciPy reads the last two without looking at bounds: what it indexes with is checked here,
on copies that nothing else in the file can change.
"""

import datetime
import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import scipy.sparse

from .registry import public_name

_NUMBERS = (int, float)
_WORDS = 624  # of the Mersenne twister
# Characters of dates and times in ISO 8601: other texts would reach a parser that guesses.
_ISO = re.compile(r"[0-9T:.+\- ]{1,64}")


def _expect(condition, message):
    if not condition:
        raise ValueError(message)


def _is_index(value):
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _random_state(kind, key, position, has_gauss, gauss):
    _expect(kind == "MT19937", f"a random state of kind {kind!r}")
    words = isinstance(key, np.ndarray) and key.dtype == np.uint32 and key.shape == (_WORDS,)
    _expect(words, f"a random state whose key is not {_WORDS} words")
    within = _is_index(position) and 0 <= position <= _WORDS
    _expect(within, f"a random state at position {position!r}")
    made = np.random.RandomState()
    made.set_state((kind, key, int(position), int(bool(has_gauss)), float(gauss)))
    return made


def _compressed(cls):
    def made(rows: Any, columns: Any, data: Any, indices: Any, indptr: Any):
        shaped = all(_is_index(size) and size >= 0 for size in (rows, columns))
        _expect(shaped, f"a sparse matrix of shape ({rows!r}, {columns!r})")
        parts = (data, indices, indptr)
        vectors = all(isinstance(part, np.ndarray) and part.ndim == 1 for part in parts)
        _expect(vectors, "a sparse matrix whose parts are not vectors")
        integers = indices.dtype.kind == indptr.dtype.kind == "i"
        _expect(integers, "a sparse matrix whose indices are not integers")
        _expect(data.dtype.kind in "biufc", f"a sparse matrix of {data.dtype}")
        # Copies: data that are the same array as the indices would change them after the check.
        matrix = cls(tuple(part.copy() for part in parts), shape=(rows, columns))
        _check_indices(matrix)
        return matrix

    return made


def _check_indices(matrix):
    matrix.check_format(full_check=True)  # every index within the shape


def _of(kinds, make, form=None):
    """Made from values of these types alone, from texts of this form."""

    def made(*parts):
        fits = all(isinstance(p, kinds) and (form is None or form.fullmatch(p)) for p in parts)
        _expect(fits, f"a {make.__qualname__} of {str(parts)[:40]}")
        return make(*parts)

    return made


def _pandas() -> Any:
    import pandas

    return pandas


def _timestamp(text, unit):
    _expect(unit in ("s", "ms", "us", "ns"), f"a time in {unit!r}")
    return _of(str, _pandas().Timestamp, _ISO)(text).as_unit(unit)


def _timedelta(count, unit):
    _expect(_is_index(count) and unit in ("s", "ms", "us", "ns"), f"a duration in {unit!r}")
    return _pandas().Timedelta(np.timedelta64(count, unit))


def _period(ordinal, frequency):
    short = isinstance(frequency, str) and len(frequency) < 20
    _expect(_is_index(ordinal) and short, f"a period of {frequency!r}")
    return _pandas().Period(ordinal=ordinal, freq=frequency)


def _interval(left, right, closed):
    _expect(closed in ("left", "right", "both", "neither"), f"an interval closed at {closed!r}")
    return _pandas().Interval(left, right, closed)


# {name in files: (what an object is made of, how it is made again)}
MAKERS: dict[str, tuple[Callable, Callable]] = {
    "builtins.range": (lambda r: (r.start, r.stop, r.step), range),
    "builtins.complex": (lambda z: (z.real, z.imag), _of(_NUMBERS, complex)),
    "numpy.random.RandomState": (lambda state: state.get_state(legacy=True), _random_state),
    "decimal.Decimal": (lambda d: (str(d),), _of(str, Decimal)),
    "fractions.Fraction": (lambda f: (f.numerator, f.denominator), _of(_NUMBERS, Fraction)),
    "uuid.UUID": (lambda u: (u.hex,), _of(str, UUID)),
    # Time zones come back as the distance from UTC that they had then: their names are of files.
    "datetime.datetime": (
        lambda d: (d.isoformat(),),
        _of(str, datetime.datetime.fromisoformat, _ISO),
    ),
    "datetime.date": (lambda d: (d.isoformat(),), _of(str, datetime.date.fromisoformat, _ISO)),
    "datetime.time": (lambda t: (t.isoformat(),), _of(str, datetime.time.fromisoformat, _ISO)),
    "datetime.timedelta": (lambda d: (d.days, d.seconds, d.microseconds), _of(_NUMBERS, timedelta)),
    "pandas.Timestamp": (lambda t: (t.isoformat(), t.unit), _timestamp),
    "pandas.Timedelta": (lambda t: (int(t.to_numpy().astype("i8")), t.unit), _timedelta),
    "pandas.Period": (lambda p: (p.ordinal, p.freqstr), _period),
    "pandas.Interval": (lambda i: (i.left, i.right, i.closed), _interval),
    "pandas.NaT": (lambda _: (), lambda: _pandas().NaT),
    "pandas.NA": (lambda _: (), lambda: _pandas().NA),
}
for _name in ("csr_array", "csr_matrix", "csc_array", "csc_matrix"):
    _class = getattr(scipy.sparse, _name)
    MAKERS[public_name(_class)] = (
        lambda m: (*m.shape, m.data, m.indices, m.indptr),
        _compressed(_class),
    )


def maker_of(thing: Any):
    """The name of the maker of a thing in MAKERS, or None."""
    kind = type(thing)
    if kind.__name__ in ("NaTType", "NAType") and kind.__module__.split(".")[0] == "pandas":
        return f"pandas.{kind.__name__.removesuffix('Type')}"
    name = public_name(kind)
    return name if name in MAKERS else None
