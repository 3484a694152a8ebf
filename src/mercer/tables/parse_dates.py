"""Dates as people write them: "24/12/2024 5:30 PM", "2024-12-24T17:30+01:00", "5-Jan-21"."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .parse_numbers import MOSTLY

_ZONE = r"(?:\s?(Z|UTC|GMT|[-+]\d{2}:?\d{2}|[-+]\d{2}))?"
_CLOCK = (
    rf"(?:,?[ T](\d{{1,2}}):(\d{{2}})(?::(\d{{2}}(?:\.\d+)?))?(?:\s?([AaPp])\.?[Mm]\.?)?{_ZONE})?"
)
_PARTS = re.compile(rf"(\d{{1,2}})([/.-])(\d{{1,2}})\2(\d{{4}}|\d{{2}}){_CLOCK}")
_YEAR_FIRST = re.compile(rf"(\d{{4}})([-/.])(\d{{1,2}})\2(\d{{1,2}}){_CLOCK}Z?")
_MONTH = r"([A-Za-z]{3,9})\.?"
_DAY_AND_NAME = re.compile(rf"(\d{{1,2}})[ -]{_MONTH}[ -](\d{{4}}|\d{{2}}){_CLOCK}")
_NAME_AND_DAY = re.compile(rf"{_MONTH}[ -](\d{{1,2}}),?[ -](\d{{4}}){_CLOCK}")
_YEAR_AND_MONTH = re.compile(r"(\d{4})[-/](0[1-9]|1[0-2])", re.I)
_QUARTER = re.compile(r"(?P<y>\d{4})[-/ ]?Q(?P<q>[1-4])|Q(?P<p>[1-4])[-/ ]?(?P<z>\d{4})", re.I)
_NAME_AND_YEAR = re.compile(rf"{_MONTH}[ -](\d{{4}})")
_FORMS = (
    _YEAR_FIRST,
    _PARTS,
    _DAY_AND_NAME,
    _NAME_AND_DAY,
    _YEAR_AND_MONTH,
    _QUARTER,
    _NAME_AND_YEAR,
)
_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]


@dataclass(frozen=True)
class DateColumn:
    """A column of texts that are dates.

    values : datetime64[s], NaT where a value is missing or is not a date
    day_first : whether 05/02/2021 is in February
    wrong : the texts that are not dates
    open : a text that other countries read differently, where no text of the column tells
    """

    values: np.ndarray
    day_first: bool
    wrong: list[str]
    open: str | None


def read_dates(
    texts: Iterable[str | None], day_first: bool | None = None, usual: bool | None = None
) -> DateColumn | None:
    """Texts as dates; None where most are not.

    `day_first` is what the user says, `usual` what the rest of the table says: that counts where
    the column itself leaves it open.
    """
    texts = list(texts)
    known = sorted({text for text in texts if text is not None})
    if not known or sum(map(_looks_like_a_date, known)) < MOSTLY * len(known) / 2:
        return None
    parts = [found for found in map(_PARTS.fullmatch, known) if found]
    votes = (sum(int(f[1]) > 12 for f in parts), sum(int(f[3]) > 12 for f in parts))
    # 05/05/2021 is the same day either way.
    open = [f[0] for f in parts if int(f[1]) != int(f[3])] if votes[0] == votes[1] else []
    if day_first is None:
        day_first = votes[0] > votes[1]
        if open:
            day_first = _by_hints(texts, parts, usual)
    else:
        open = []
    read = {text: _date(text, day_first) for text in known}
    missing = np.datetime64("NaT", "s")
    values = [missing if t is None or read[t] is None else read[t] for t in texts]
    wrong = [text for text in known if read[text] is None]
    bad = sum(text is not None and read[text] is None for text in texts)
    total = sum(text is not None for text in texts)
    if total - bad < MOSTLY * total:
        return None
    return DateColumn(
        np.array(values, dtype="datetime64[s]"), day_first, wrong, next(iter(open), None)
    )


def parse_date(text: str, day_first: bool) -> np.datetime64 | None:
    """One date; 25/02/2021 can be read in one way only, and is."""
    value = _date(text, day_first)
    return _date(text, not day_first) if value is None else value


def _looks_like_a_date(text):
    return any(form.fullmatch(text) for form in _FORMS)


def _by_hints(texts, parts, usual):
    """Whether the day is first where no part is above 12: by order, by steps, by the table."""
    if all(found[2] == "." for found in parts):
        return True
    rising = [_share_in_order([_date(t, first) for t in texts if t]) for first in (True, False)]
    if max(rising) > 0.9 and abs(rising[0] - rising[1]) > 0.05:
        return rising[0] > rising[1]
    first, second = ({int(found[i]) for found in parts} for i in (1, 3))
    if first == {1} != second or second == {1} != first:  # the first of each month
        return first == {1}
    if max(len(first), len(second)) >= 2 * min(len(first), len(second)):  # a season
        return len(first) > len(second)
    return bool(usual)


def _share_in_order(dates):
    """Share of steps that do not go back, or that do not go forward."""
    steps = np.diff(np.array([d for d in dates if d is not None], dtype="datetime64[s]"))
    zero = np.timedelta64(0, "s")
    return max(np.mean(steps >= zero), np.mean(steps <= zero)) if len(steps) >= 5 else 0.0


def _date(text, day_first):
    try:
        found = _YEAR_FIRST.fullmatch(text)
        if found:
            return _moment(int(found[1]), int(found[3]), int(found[4]), *found.groups()[4:])
        found = _PARTS.fullmatch(text)
        if found:
            first, second, year = int(found[1]), int(found[3]), _year(found[4])
            day, month = (first, second) if day_first else (second, first)
            return _moment(year, month, day, *found.groups()[4:])
        found = _DAY_AND_NAME.fullmatch(text)
        if found:
            return _moment(_year(found[3]), _month(found[2]), int(found[1]), *found.groups()[3:])
        found = _NAME_AND_DAY.fullmatch(text)
        if found:
            return _moment(int(found[3]), _month(found[1]), int(found[2]), *found.groups()[3:])
        found = _YEAR_AND_MONTH.fullmatch(text)
        if found:  # when the month begins
            return np.datetime64(f"{found[1]}-{found[2]}-01", "s")
        found = _QUARTER.fullmatch(text)
        if found:
            month = 3 * int(found["q"] or found["p"]) - 2
            return np.datetime64(f"{found['y'] or found['z']}-{month:02d}-01", "s")
        found = _NAME_AND_YEAR.fullmatch(text)
        if found:
            return np.datetime64(f"{found[2]}-{_month(found[1]):02d}-01", "s")
    except ValueError:  # the 31st of February
        return None
    return None


def _year(text):
    """Two digits are a year of 1930 to 2029, as in spreadsheets."""
    year = int(text)
    return year if len(text) == 4 else year + (2000 if year < 30 else 1900)


def _month(name):
    """The number of a month; "Sept" and "Jan" are names, too."""
    return next((i for i, m in enumerate(_MONTHS, 1) if m.startswith(name.lower())), 0)


def _moment(year, month, day, hours, minutes, seconds, half, zone):
    """A date and perhaps a time, in UTC where the text names a zone."""
    h, m, s = (float(part or 0) for part in (hours, minutes, seconds))
    if h > (12 if half else 24) or m > 59 or s >= 61:
        return None
    if half:
        h = h % 12 + (12 if half in "pP" else 0)
    date = np.datetime64(f"{year:04d}-{month:02d}-{day:02d}", "s")
    return date + np.timedelta64(int(h * 3600 + m * 60 + s) - _ahead(zone), "s")


def _ahead(zone):
    """Seconds by which a clock of this zone is ahead of UTC: 7200 for +02:00."""
    if not zone or zone[0] not in "+-":
        return 0
    digits = zone[1:].replace(":", "")
    seconds = 3600 * int(digits[:2]) + 60 * int(digits[2:] or 0)
    return -seconds if zone[0] == "-" else seconds
