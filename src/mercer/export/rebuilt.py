"""Types that files hold as the arguments of their makers, and how each is made again, checked.

These are data: numbers, dates, sparse matrices, the state of a random generator. Compiled code of
NumPy and SciPy reads the last two without looking at bounds: what it indexes with is checked here,
on copies that nothing else in the file can change.
"""

import datetime
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import scipy.sparse

from .registry import public_name

WORDS_OF_MERSENNE_TWISTER = 624
# Characters of dates and times in ISO 8601: other texts would reach a parser that guesses.
ISO = re.compile(r"[0-9T:.+\- ]{1,64}")


def _expect(condition, message):
    if not condition:
        raise ValueError(message)


def _is_index(value):
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


# --- random states --------------------------------------------------------------------------------


def _random_state(kind, key, position, has_gauss, gauss):
    _expect(kind == "MT19937", f"a random state of kind {kind!r}")
    _expect(
        isinstance(key, np.ndarray)
        and key.dtype == np.uint32
        and key.shape == (WORDS_OF_MERSENNE_TWISTER,),
        "a random state whose key is not 624 words",
    )
    _expect(
        _is_index(position) and 0 <= position <= WORDS_OF_MERSENNE_TWISTER,
        f"a random state at position {position!r}",
    )
    made = np.random.RandomState()
    made.set_state((kind, key, int(position), int(bool(has_gauss)), float(gauss)))
    return made


# --- sparse matrices ------------------------------------------------------------------------------


def _compressed(cls):
    def made(rows: Any, columns: Any, data: Any, indices: Any, indptr: Any):
        _expect(
            _is_index(rows) and _is_index(columns) and rows >= 0 and columns >= 0,
            f"a sparse matrix of shape ({rows!r}, {columns!r})",
        )
        for part in (data, indices, indptr):
            _expect(
                isinstance(part, np.ndarray) and part.ndim == 1,
                "a sparse matrix whose parts are not vectors",
            )
        for part in (indices, indptr):
            _expect(part.dtype.kind == "i", "a sparse matrix whose indices are not integers")
        _expect(data.dtype.kind in "biufc", f"a sparse matrix of {data.dtype}")
        # Copies: data that are the same array as the indices would change them after the check.
        parts = (data.copy(), indices.copy(), indptr.copy())
        matrix = cls(parts, shape=(rows, columns))
        _check_indices(matrix)
        return matrix

    return made


def _check_indices(matrix):
    matrix.check_format(full_check=True)  # every index within the shape


# --- numbers and dates ----------------------------------------------------------------------------


def _iso(make):
    """Made from one text of ISO 8601."""

    def made(text: Any):
        _expect(isinstance(text, str) and ISO.fullmatch(text), f"a date {str(text)[:40]!r}")
        return make(text)

    return made


def _numbers(make):
    """Made from numbers alone."""

    def made(*numbers):
        _expect(all(isinstance(n, (int, float)) for n in numbers), "a value without numbers")
        return make(*numbers)

    return made


def _text(make):
    """Made from one text."""

    def made(text: Any):
        _expect(isinstance(text, str), f"a {make.__name__} of {str(text)[:40]!r}")
        return make(text)

    return made


def _pandas() -> Any:
    import pandas

    return pandas


def _timestamp(text, unit):
    _expect(unit in ("s", "ms", "us", "ns"), f"a time in {unit!r}")
    return _iso(_pandas().Timestamp)(text).as_unit(unit)


def _timedelta(count, unit):
    _expect(_is_index(count) and unit in ("s", "ms", "us", "ns"), f"a duration in {unit!r}")
    return _pandas().Timedelta(np.timedelta64(count, unit))


def _period(ordinal, frequency):
    _expect(
        _is_index(ordinal) and isinstance(frequency, str) and len(frequency) < 20,
        f"a period of {frequency!r}",
    )
    return _pandas().Period(ordinal=ordinal, freq=frequency)


def _interval(left, right, closed):
    _expect(closed in ("left", "right", "both", "neither"), f"an interval closed at {closed!r}")
    return _pandas().Interval(left, right, closed)


# --- the table ------------------------------------------------------------------------------------

# {name in files: (what an object is made of, how it is made again)}
MAKERS: dict[str, tuple[Callable, Callable]] = {
    "builtins.range": (lambda r: (r.start, r.stop, r.step), range),
    "builtins.complex": (lambda z: (z.real, z.imag), _numbers(complex)),
    "numpy.random.RandomState": (lambda state: state.get_state(legacy=True), _random_state),
    "decimal.Decimal": (lambda d: (str(d),), _text(Decimal)),
    "fractions.Fraction": (lambda f: (f.numerator, f.denominator), _numbers(Fraction)),
    "uuid.UUID": (lambda u: (u.hex,), _text(UUID)),
    # Time zones come back as the distance from UTC that they had then: their names are of files.
    "datetime.datetime": (lambda d: (d.isoformat(),), _iso(datetime.datetime.fromisoformat)),
    "datetime.date": (lambda d: (d.isoformat(),), _iso(datetime.date.fromisoformat)),
    "datetime.time": (lambda t: (t.isoformat(),), _iso(datetime.time.fromisoformat)),
    "datetime.timedelta": (
        lambda d: (d.days, d.seconds, d.microseconds),
        _numbers(datetime.timedelta),
    ),
    "pandas.Timestamp": (lambda t: (t.isoformat(), t.unit), _timestamp),
    "pandas.Timedelta": (lambda t: (int(t.to_numpy().astype("i8")), t.unit), _timedelta),
    "pandas.Period": (lambda p: (p.ordinal, p.freqstr), _period),
    "pandas.Interval": (lambda i: (i.left, i.right, i.closed), _interval),
    "pandas.NaT": (lambda _: (), lambda: _pandas().NaT),
    "pandas.NA": (lambda _: (), lambda: _pandas().NA),
}
for _class in (
    scipy.sparse.csr_array,
    scipy.sparse.csr_matrix,
    scipy.sparse.csc_array,
    scipy.sparse.csc_matrix,
):
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
