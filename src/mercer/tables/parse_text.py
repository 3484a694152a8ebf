"""Numbers and dates that a table holds as text: "$1,200", "12%", "3,5", "24/12/2024 5:30 PM"."""

import re

import numpy as np

# What people write where they have no value.
MISSING = frozenset(
    ["", "?", "-", "--", "—", ".", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "<na>"]
)
# A column is read as numbers (or dates) where at least this share of its values are.
MOSTLY = 0.95

# Signs as typed, and as typesetters print them (U+2212).
_MINUS = "\u2212"
_SIGN, _MONEY = rf"(?P<sign>[-+{_MINUS}]?)", r"[$€£¥]?"
_END = r"(?P<exponent>e[-+]?\d+)?\s*[$€£¥]?\s*(?P<percent>%?)"
_ENGLISH = re.compile(
    rf"{_SIGN}\s*{_MONEY}\s*(?P<whole>\d{{1,3}}(?:,\d{{3}})+|\d*)(?P<part>\.\d*)?{_END}", re.I
)
_CONTINENTAL = re.compile(
    rf"{_SIGN}\s*{_MONEY}\s*(?P<whole>\d{{1,3}}(?:[. ]\d{{3}})+|\d*)(?P<part>,\d*)?{_END}", re.I
)
_ZONE = r"(?:\s?(Z|UTC|GMT|[-+]\d{2}:?\d{2}|[-+]\d{2}))?"
_CLOCK = (
    rf"(?:,?[ T](\d{{1,2}}):(\d{{2}})(?::(\d{{2}}(?:\.\d+)?))?(?:\s?([AaPp])\.?[Mm]\.?)?{_ZONE})?"
)
_PARTS = re.compile(rf"(\d{{1,2}})([/.-])(\d{{1,2}})\2(\d{{4}}|\d{{2}}){_CLOCK}")
_YEAR_FIRST = re.compile(rf"(\d{{4}})([-/.])(\d{{1,2}})\2(\d{{1,2}}){_CLOCK}Z?")
_MONTH = r"([A-Za-z]{3,9})\.?"
_DAY_AND_NAME = re.compile(rf"(\d{{1,2}})[ -]{_MONTH}[ -](\d{{4}}|\d{{2}}){_CLOCK}")
_NAME_AND_DAY = re.compile(rf"{_MONTH} (\d{{1,2}}),? (\d{{4}}){_CLOCK}")
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


def is_missing(value) -> bool:
    """Whether a value says that there is none: None, NaN, NaT, or a text such as "?" or "NA"."""
    if value is None:
        return True
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas' NA has no truth value; lists compare item by item
        return type(value).__name__ == "NAType"


def as_texts(values) -> np.ndarray:
    """An object array of stripped strings, None where a value is missing."""
    values = list(values)
    texts = np.empty(len(values), dtype=object)
    known: dict = {}
    for i, value in enumerate(values):
        if isinstance(value, str):
            if value not in known:
                known[value] = None if is_missing(value) else value.strip()
            texts[i] = known[value]
        else:
            texts[i] = None if is_missing(value) else str(value).strip()
    return texts


def as_numbers(texts: np.ndarray) -> tuple[np.ndarray, list[str]] | None:
    """Texts as floats (NaN where missing) and the texts that are not numbers; None if most are not.

    Thousands, currency signs, percent (12% is 0.12) and continental commas are understood; all
    values of a column are read in the same way.
    """
    read = read_numbers(texts)
    return None if read is None else read[:2]


def read_numbers(texts: np.ndarray) -> tuple[np.ndarray, list[str], bool] | None:
    """What :func:`as_numbers` gives, and whether commas were read as points."""
    read = _mostly(texts, (_english, _continental), np.nan, float)
    return None if read is None else (*read[:2], read[2] is _continental)


def numbers_one_by_one(texts: np.ndarray, continental: bool) -> np.ndarray:
    """Texts as floats, each read by itself: whatever stands beside it, "1,200" is what it was.

    A text that can be read in one way only is read so.
    """
    readers = (_continental, _english) if continental else (_english, _continental)
    return _one_by_one(texts, readers, np.nan, float)


def as_dates(texts: np.ndarray) -> tuple[np.ndarray, list[str]] | None:
    """Texts as datetime64[s] (NaT where missing) and those that are not; None if most are not.

    The whole column decides which part is the day: a first part above 12 is one. If that leaves it
    open, dots mean day first and slashes mean month first.
    """
    first = is_day_first(texts)
    read = _mostly(
        texts, (lambda text: _date(text, first),), np.datetime64("NaT", "s"), "datetime64[s]"
    )
    return None if read is None else read[:2]


def dates_one_by_one(texts: np.ndarray, day_first: bool) -> np.ndarray:
    """Texts as datetime64[s], each read by itself; 25/02/2021 can be read in one way only."""
    readers = (lambda text: _date(text, day_first), lambda text: _date(text, not day_first))
    return _one_by_one(texts, readers, np.datetime64("NaT", "s"), "datetime64[s]")


def _one_by_one(texts, readers, missing, dtype):
    def value(text):
        found = (reader(text) for reader in readers) if text is not None else ()
        return next((v for v in found if v is not None), missing)

    read = {text: value(text) for text in set(texts)}
    return np.array([read[text] for text in texts], dtype=dtype)


def _mostly(texts, readers, missing, dtype):
    """(values, texts that are not, reader) of the reader that understands most of the texts."""
    known = sorted({text for text in texts if text is not None})
    counts = dict.fromkeys(known, 0)
    for text in texts:
        if text is not None:
            counts[text] += 1
    total = sum(counts.values())
    if not total:
        return None
    best = None
    for reader in readers:
        read = {text: reader(text) for text in known}
        wrong = [text for text in known if read[text] is None]
        bad = sum(counts[text] for text in wrong)
        if (total - bad) < MOSTLY * total or (best is not None and bad >= best[2]):
            continue
        best = (read, wrong, bad, reader)
    if best is None:
        return None
    read, wrong, _, reader = best
    values = [missing if t is None or read[t] is None else read[t] for t in texts]
    return np.array(values, dtype=dtype), wrong, reader


def _english(text):
    return _number(_ENGLISH.fullmatch(_without_brackets(text)), ",")


def _continental(text):
    return _number(_CONTINENTAL.fullmatch(_without_brackets(text)), ". ")


def _without_brackets(text):
    """(12) is how bookkeepers write -12."""
    return f"-{text[1:-1]}" if text.startswith("(") and text.endswith(")") else text


def _number(found, thousands):
    if found is None or not any(map(str.isdigit, f"{found['whole']}{found['part'] or ''}")):
        return None
    whole = found["whole"].translate({ord(c): None for c in thousands})
    part = (found["part"] or "").replace(",", ".")
    value = float(f"{whole}{part}{found['exponent'] or ''}")
    value = -value if found["sign"] in ("-", _MINUS) else value
    return value / 100 if found["percent"] else value


def is_day_first(texts: np.ndarray) -> bool:
    """Whether dates such as 05/02/2021 begin with the day."""
    known = {text for text in texts if text is not None}
    parts = [found for found in map(_PARTS.fullmatch, known) if found]
    if any(int(found[1]) > 12 for found in parts):
        return True
    if any(int(found[3]) > 12 for found in parts):
        return False
    return bool(parts) and all(found[2] == "." for found in parts)


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
    except ValueError:  # the 31st of February
        return None
    return None


def _year(text):
    """Two digits are a year of 1970 to 2069."""
    year = int(text)
    return year if len(text) == 4 else year + (2000 if year < 70 else 1900)


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
