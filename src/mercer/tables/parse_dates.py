"""Dates as people write them: "24/12/2024 5:30 PM", "2024-12-24T17:30+01:00", "5-Jan-21"."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .parse_text import MOSTLY, Format, ReadColumn

_ZONE = r"(?:\s?(?P<zone>Z|UTC|GMT|[-+]\d{2}:?\d{2}|[-+]\d{2}))?"
_CLOCK = (
    r"(?:,?[ T](?P<hours>\d{1,2}):(?P<minutes>\d{2})(?::(?P<seconds>\d{2}(?:\.\d+)?))?"
    rf"(?:\s?(?P<half>[AaPp])\.?[Mm]\.?)?{_ZONE})?"
)
_YEAR, _NAME, _DAY = r"(?P<year>\d{4})", r"(?P<name>[A-Za-z]{3,9})\.?", r"(?P<day>\d{1,2})"
_PARTS = re.compile(
    rf"(?P<first>\d{{1,2}})(?P<mark>[/.-])(?P<second>\d{{1,2}})(?P=mark)(?P<year>\d{{4}}|\d{{2}}){_CLOCK}"
)
_FORMS = (
    re.compile(rf"{_YEAR}(?P<mark>[-/.])(?P<month>\d{{1,2}})(?P=mark){_DAY}{_CLOCK}Z?"),
    _PARTS,
    re.compile(rf"{_DAY}[ -]{_NAME}[ -](?P<year>\d{{4}}|\d{{2}}){_CLOCK}"),
    re.compile(rf"{_NAME}[ -]{_DAY},?[ -]{_YEAR}{_CLOCK}"),
    re.compile(rf"{_YEAR}[-/](?P<month>0[1-9]|1[0-2])"),
    _MONTH_YEAR := re.compile(r"(?P<month>0[1-9]|1[0-2])[-/.](?P<year>1[89]\d\d|20\d\d)"),
    re.compile(rf"{_YEAR}[-/ ]?Q(?P<quarter>[1-4])", re.I),
    re.compile(rf"Q(?P<quarter>[1-4])[-/ ]?{_YEAR}", re.I),
    re.compile(r"Q(?P<quarter>[1-4])[-/ ](?P<year>\d{2})", re.I),
    _SHORT_MONTH := re.compile(rf"{_NAME}[-'](?P<year>\d{{2}})"),
    re.compile(rf"{_NAME}[ -]{_YEAR}"),
    re.compile(rf"{_YEAR}[ -]{_NAME}"),
    _DIGITS := re.compile(r"(?P<year>1[89]\d\d|20\d\d)(?P<month>0[1-9]|1[0-2])(?P<day>\d\d)?"),
)
_MONTHS = "january february march april may june july august september october november december"
# So many different numbers such as 192607 or 20120131, in several years, are not so by chance.
_LEAST_DIGITS = 10


@dataclass(frozen=True)
class DateFormat(Format):
    """How the dates of a column are written.

    day_first : whether 05/02/2021 is in February; None where no text tells, as 2021-02-05
    """

    day_first: bool | None = None
    dtype = "datetime64[us]"

    def parse(self, text: str) -> np.datetime64 | None:
        """One date; 25/02/2021 can be read in one way only, and is."""
        dates = (_date(text, day_first) for day_first in (self.day_first, True, False))
        return next((date for date in dates if date is not None), None)


def read_dates(
    texts: Iterable[str | None], day_first: bool | None = None, usual: bool | None = None
) -> ReadColumn | None:
    """Texts as dates; None where most are not.

    `day_first` is what the user says, `usual` what the rest of the table says: that counts where
    the column itself leaves it open.
    """
    texts = list(texts)
    known = sorted({text for text in texts if text is not None})
    dates = sum(any(form.fullmatch(text) for form in _FORMS) for text in known)
    if not known or dates < MOSTLY * len(known) / 2:
        return None
    short = [found for found in map(_SHORT_MONTH.fullmatch, known) if found]
    days = {int(found["year"]) for found in short}
    # "Jan-05" and others may be days of months: more of them than months, none above 31.
    if days and max(days) <= 31 and len(days) > len({found["name"] for found in short}):
        return None
    first, open = day_order(texts, day_first, usual)
    strict = partial(_date, day_first=first)
    read = ReadColumn.of(texts, DateFormat(first), open, parse=strict)
    return read if read.fits() else None


def day_order(
    texts: Iterable[str | None], day_first: bool | None = None, usual: bool | None = None
) -> tuple[bool | None, str | None]:
    """(whether the day stands first, a text that leaves it open): None where no text has an order.

    `day_first` and `usual` as for :func:`read_dates`.
    """
    texts = list(texts)
    known = sorted({text for text in texts if text is not None})
    parts = [found for found in map(_PARTS.fullmatch, known) if found]
    votes = [sum(int(f[which]) > 12 for f in parts) for which in ("first", "second")]
    if day_first is not None or votes[0] != votes[1]:
        return (votes[0] > votes[1] if day_first is None else day_first), None
    # 05/05/2021 is the same day either way.
    open = [f[0] for f in parts if int(f["first"]) != int(f["second"])]
    return (_by_hints(texts, parts, usual), open[0]) if open else (None, None)


def are_digits_of_dates(texts: Iterable[str]) -> bool:
    """Tell whether texts are all months as 192607 or 07.1926, or all days as 20120131."""
    texts = set(texts)
    if len(texts) < _LEAST_DIGITS or len({len(text) for text in texts}) > 1:
        return False
    form = _MONTH_YEAR if "." in next(iter(texts)) else _DIGITS
    found = [form.fullmatch(text) for text in texts]
    return (
        all(part is not None and _date(part[0], False) is not None for part in found)
        and len({part["year"] for part in found if part is not None}) > 1
    )


def dates_in_digits(values: np.ndarray) -> np.ndarray | None:
    """Whole numbers as datetime64[us] where their digits are those of dates; None elsewhere."""
    known = np.unique(values[~np.isnan(values)]).astype(float)
    if len(known) < _LEAST_DIGITS or known[0] < 180001 or known[-1] > 20991231 or any(known % 1):
        return None
    if not np.isin(known // (100 if known[0] > 1e7 else 1) % 100, np.arange(1, 13)).all():
        return None
    texts = [None if v != v else str(int(v)) for v in values.tolist()]
    if not are_digits_of_dates(text for text in texts if text is not None):
        return None
    return DateFormat().read(texts)


def _by_hints(texts, parts, usual):
    """Whether the day is first where no part is above 12: by order, by steps, by the table."""
    if all(found["mark"] == "." for found in parts):
        return True
    rising: list[Any] = []  # share of steps that do not go back, or that do not go forward
    for day_first in (True, False):
        dates = [_date(text, day_first) for text in texts if text]
        known = np.array([d for d in dates if d is not None], dtype=DateFormat.dtype)
        steps = np.diff(known).astype(float)
        rising.append(max(np.mean(steps >= 0), np.mean(steps <= 0)) if len(steps) >= 5 else 0.0)
    if max(rising) > 0.9 and abs(rising[0] - rising[1]) > 0.05:
        return rising[0] > rising[1]
    first, second = ({int(found[i]) for found in parts} for i in ("first", "second"))
    if first == {1} != second or second == {1} != first:  # the first of each month
        return first == {1}
    if max(len(first), len(second)) >= 2 * min(len(first), len(second)):  # a season
        return len(first) > len(second)
    return bool(usual)


def _date(text, day_first):
    found = next(filter(None, (form.fullmatch(text) for form in _FORMS)), None)
    if found is None:
        return None
    part = found.groupdict()
    if "first" in part:
        # Between points the day stands first, as a rule.
        first = part["mark"] == "." if day_first is None else day_first
        part |= dict(zip(("day", "month") if first else ("month", "day"), found.group(1, 3)))
    month = part.get("month") or 3 * int(part.get("quarter") or 0) - 2
    if part.get("name"):
        # "Sept" and "Jan" are names, too.
        names = enumerate(_MONTHS.split(), 1)
        month = next((i for i, name in names if name.startswith(part["name"].lower())), 0)
    year = int(part["year"])
    if len(part["year"]) == 2:  # of 1930 to 2029, as in spreadsheets
        year += 2000 if year < 30 else 1900
    h, m, s = (float(part.get(name) or 0) for name in ("hours", "minutes", "seconds"))
    half, zone = part.get("half"), part.get("zone") or ""
    if h > (12 if half else 24) or m > 59 or s >= 61:
        return None
    if half:
        h = h % 12 + (12 if half in "pP" else 0)
    seconds = h * 3600 + m * 60 + s
    if zone.startswith(("+", "-")):  # in UTC where the text names a zone
        digits = zone[1:].replace(":", "")
        ahead = 3600 * int(digits[:2]) + 60 * int(digits[2:] or 0)
        seconds -= -ahead if zone[0] == "-" else ahead
    try:
        date = np.datetime64(f"{year:04d}-{int(month):02d}-{int(part.get('day') or 1):02d}", "us")
    except ValueError:  # the 31st of February
        return None
    return date + np.timedelta64(round(1e6 * seconds), "us")
