"""Numbers as people write them: "$1,200", "1.200,50", "12 %", "1'234", "12 kg", "<0.1", "1:02:33".

"1.167" is 1167 in one country and 1.167 in another. Texts that can be read in one way only decide
for their column, and columns that are decided decide for the rest of the table.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from .parse_text import MOSTLY, Format, ReadColumn

# A word behind numbers that is not a known unit must stand behind so many of them.
_WORD_ROWS = 5
# With a larger share of "<5" and ">5" these are names of ranges, not measurements at a limit.
_MOST_BOUNDS = 0.5

# Floats hold whole numbers of so many digits exactly.
_EXACT_DIGITS = 15

# Signs as typed, and as typesetters print them (U+2212).
_MINUS = "\u2212"
_SPACES = " \u00a0\u202f\u2009"
_APOSTROPHES = "'\u2019"
_CURRENCY = (
    r"[$€£¥₹₩₽₺₪₫]|[A-Z]{1,2}\$|EUR|USD|GBP|CHF|JPY|INR|SEK|NOK|DKK|PLN|CAD|AUD|CNY|BRL|CZK|HUF|TRY"
    r"|Rs\.?|kr\.?|zł|Kč|Ft"
)
_MONEY = re.compile(rf"%|(?P<times>k|K|M|(?:[Mm]io|[Mm]n|[Bb]n)\.?)?\s*(?:{_CURRENCY})")
_SHAPE = re.compile(
    rf"(?P<bound>[<>≤≥~≈]=?)?\s*(?P<sign>[-+{_MINUS}]?)\s*(?P<money>{_CURRENCY})?\s*"
    rf"(?P<inner>[-+{_MINUS}]?)(?P<digits>[\d.,{_SPACES}{_APOSTROPHES}]*)(?P<exponent>[eE][-+]?\d+)?"
    r"\s*(?P<unit>[^\W\d_%°][^\d<>=()]{0,14}|[°%‰$€£¥₹₩₽µ][^\d<>=()]{0,8})?"
)
# Groups of three digits; a zero in front of a mark says that it is decimal.
_GROUPS = rf"[1-9]\d{{0,2}}(?:[{_SPACES}]\d{{3}})+|[1-9]\d{{0,2}}(?:[{_APOSTROPHES}]\d{{3}})+|\d*"
_WITH = {
    # 1,234,567.5 and, in India, 12,34,567.5
    ".": re.compile(
        rf"(?P<whole>[1-9]\d{{0,2}}(?:,\d{{3}})+|[1-9]\d?(?:,\d{{2}})+,\d{{3}}|{_GROUPS})"
        r"(?P<part>\.\d*)?"
    ),
    ",": re.compile(rf"(?P<whole>[1-9]\d{{0,2}}(?:\.\d{{3}})+|{_GROUPS})(?P<part>,\d*)?"),
}
_OPEN = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")
_UNITS = re.compile(
    r"kg|g|mg|µg|t|lbs?|oz|st|km|m|cm|mm|nm|µm|mi|ft|in|yd|yrs?|y|h|hrs?|mins?|s|secs?|ms|d|days?"
    r"|weeks?|months?|years?|km/h|kmh|kph|mph|m/s|kn|l|dl|cl|ml|hl|gal|m²|m³|km²|ha|sqft|sqm|sq ?ft"
    r"|[km]?w|[km]?wh|hp|ps|m?v|m?a|m?ah|[kmg]?hz|[kmgt]b|[hk]?pa|bar|psi|mmhg|°[cf]?|c|f|m?mol"
    r"|pp[mb]|db|k?cal|k?j|px|pts?|bpm|rpm|mpg|cc|u/l|mg/dl|mmol/l|g/dl|g/l|mg/l"
)
_CLOCK = re.compile(
    r"(?P<sign>-?)(?:(?P<days>\d+) days?,? )?(?P<first>\d{1,3}):(?P<second>[0-5]\d)"
    r"(?::(?P<third>[0-5]\d)(?:[.,](?P<part>\d+))?)?(?:\s?(?P<half>[AaPp])\.?[Mm]\.?)?"
)
_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "w": 604800.0}
_LENGTH = r"(\d+(?:[.,]\d+)?)\s*"
_DURATION = re.compile(
    rf"(?:{_LENGTH}(w)(?:ee)?ks?)?[,\s]*(?:{_LENGTH}(d)(?:ays?)?)?[,\s]*"
    rf"(?:{_LENGTH}(h)(?:(?:ou)?rs?)?)?[,\s]*(?:{_LENGTH}(m)(?:in(?:ute)?s?)?)?[,\s]*"
    rf"(?:{_LENGTH}(s)(?:ec(?:ond)?s?)?)?\.?",
    re.I,
)
_ISO_DURATION = re.compile(
    r"P(?:(\d+)(W))?(?:(\d+)(D))?(?:T(?:(\d+)(H))?(?:(\d+)(M))?(?:(\d+(?:[.,]\d+)?)(S))?)?"
)
_WHOLE, _LETTER_CODE = re.compile(r"\d+"), re.compile(r"[A-Za-z]{1,3}\d+")
_TIMES = {"k": 1e3, "M": 1e6, "mio": 1e6, "mn": 1e6, "million": 1e6, "B": 1e9, "bn": 1e9}
_TIMES |= {"K": 1e3, "Mio": 1e6, "Mn": 1e6, "Million": 1e6, "Bn": 1e9, "billion": 1e9}


@dataclass(frozen=True)
class NumberFormat(Format):
    """How the numbers of a column are written.

    decimal : the decimal mark; None where no text has one
    unit : what stands behind them, such as "kg"
    time : None; "hours" (08:30 is half past eight), "minutes" (08:30 are 8 minutes and 30 seconds)
        or "durations" ("1 h 30 min"). Times are counted in seconds.
    """

    decimal: str | None = None
    unit: str = ""
    time: str | None = None

    def parse(self, text: str) -> float | None:
        """The number that a text stands for; None where it is not one in this format.

        A text that can be read in one way only is read so, whatever the decimal mark is. A plain
        number among times is one of seconds.
        """
        found = _shape(text)
        if self.time is not None:
            seconds = _seconds(text, self.time)
            plain = seconds is None and found is not None and not found["unit"]
            return _number(found, ".") if plain else seconds
        if found is None:
            return None
        unit = (found["unit"] or "").strip()
        counts = not unit or unit in _TIMES or _MONEY.fullmatch(unit)
        if not counts and _plain_unit(unit) != self.unit:
            return None
        first = self.decimal or "."
        value = _number(found, first)
        return _number(found, "," if first == "." else ".") if value is None else value


class TextColumn:
    """The different texts of a column, their numbers of rows, and what they say about marks.

    `shapes` are the parts of the texts that look like numbers.
    """

    def __init__(self, texts: Iterable[str | None]):
        self.texts = list(texts)
        self.counts = Counter(text for text in self.texts if text is not None)
        self.total = sum(self.counts.values())
        shapes = ((text, _shape(text)) for text in self.counts)
        self.shapes = {text: shape for text, shape in shapes if shape is not None}

    def tally(self, what: Callable[[re.Match[str]], Any]) -> Counter:
        """How many rows have each value of something that the shape of a number tells."""
        found: Counter = Counter()
        for text, shape in self.shapes.items():
            found[what(shape)] += self.counts[text]
        return found

    def is_numeric(self) -> bool:
        """Whether nearly all texts have the shape of a number."""
        found = sum(self.counts[text] for text in self.shapes)
        return bool(self.total) and found >= MOSTLY * self.total

    def marks(self) -> Counter:
        """How many rows need "." or "," as the decimal mark, and how many are open ("?")."""
        votes = self.tally(_mark)
        del votes[None]
        return votes

    def open_texts(self) -> list[str]:
        """Texts such as "1.167", which other countries read differently."""
        return [text for text, shape in self.shapes.items() if _mark(shape) == "?"]

    def currency(self) -> str | None:
        """The decimal mark that goes with the money: "," with euros."""
        money = self.tally(lambda shape: shape["money"] or (shape["unit"] or "").strip())
        if money["€"] + money["EUR"]:
            return ","
        return "." if money["$"] + money["£"] + money["USD"] + money["GBP"] else None

    def unit(self) -> str:
        """The unit that stands behind most of the numbers, if any."""
        units = self.tally(lambda shape: _plain_unit(shape["unit"] or ""))
        del units[""]
        for unit, n in units.most_common(1):
            words = len(unit) >= 3 and n >= _WORD_ROWS and n >= MOSTLY * self.total
            if words or _UNITS.fullmatch(unit):
                return unit
        return ""


class _TableDecimal(NamedTuple):
    """The decimal mark of a table (None: nothing speaks for a comma), and whether it is sure."""

    mark: str | None
    sure: bool


def decimal_of(
    columns: Iterable[TextColumn], separator: str | None = None, points: int = 0
) -> _TableDecimal:
    """The mark of most columns that tell, or else by separator and currency.

    `points` further columns have a decimal point.
    """
    votes: Counter = Counter({".": points} if points else {})
    hints: Counter = Counter({",": 1} if separator == ";" else {})
    for column in columns:
        marks = column.marks()
        if marks["."] != marks[","]:
            votes["." if marks["."] > marks[","] else ","] += 1
        hints[column.currency()] += 1
    if votes["."] != votes[","]:
        return _TableDecimal("." if votes["."] > votes[","] else ",", len(votes) == 1)
    if votes:
        return _TableDecimal("," if separator == ";" else ".", False)
    if separator == ",":  # with decimal commas, columns would be separated by something else
        return _TableDecimal(".", True)
    return _TableDecimal("," if hints[","] and not hints["."] else None, False)


_UNKNOWN = _TableDecimal(None, False)


def read_numbers(
    column: TextColumn, decimal: str | None = None, table: _TableDecimal = _UNKNOWN
) -> ReadColumn | None:
    """Texts as numbers; None where most are not.

    `decimal` is what the user says, `table` what the other columns say: that counts where the
    column itself leaves it open.
    """
    if not column.total:
        return None
    if not column.is_numeric():
        return _read_times(column)
    marks = column.marks()
    undecided = decimal is None and marks["."] == marks[","]
    if decimal is None and not undecided:
        decimal = "." if marks["."] > marks[","] else ","
    if decimal is None and (marks["?"] or marks["."]):
        decimal = table.mark or "."
    if column.tally(lambda shape: bool(shape["bound"]))[True] > _MOST_BOUNDS * column.total:
        return None
    # A point between thousands is worth a word even where all other columns agree.
    open = column.open_texts() if undecided and not (table.sure and decimal == ".") else []
    format = NumberFormat(decimal, column.unit())
    read = ReadColumn.of(column.texts, format, next(iter(open), None))
    fits = read.fits()
    if not fits or (read.wrong and format.unit):  # "45 min" and "1 h 30 min"
        times = _read_times(column)
        if times is not None and (not fits or len(times.wrong) < len(read.wrong)):
            return times
    return read if fits else None


def read_forced(
    column: TextColumn, decimal: str | None, table: _TableDecimal = _UNKNOWN
) -> ReadColumn:
    """A column that the user calls one of numbers: what cannot be read is missing."""
    read = read_numbers(column, decimal, table)
    if read is not None:
        return read
    marks = column.marks()
    decimal = decimal or ("," if marks[","] > marks["."] else table.mark)
    return ReadColumn.of(column.texts, NumberFormat(decimal, column.unit()))


def are_codes(column: TextColumn) -> bool:
    """Whether texts are names made of digits.

    These are "02139" (nearly all of one length, some with a leading zero), whole numbers among
    which some have a letter in front ("117", "c118"), and those with so many digits that different
    ones are the same float.
    """
    whole = Counter({text: n for text, n in column.counts.items() if _WHOLE.fullmatch(text)})
    if sum(whole.values()) < MOSTLY * column.total or len(column.counts) < 2:
        return False
    if any(_LETTER_CODE.fullmatch(text) for text in column.counts):
        return True
    many = [text for text in whole if len(text) > _EXACT_DIGITS]
    if len(set(map(float, many))) < len(set(map(int, many))):
        return True
    lengths = Counter(len(text) for text in whole.elements())
    length, n = lengths.most_common(1)[0]
    # Two digits may be those of months, days, hours and minutes.
    long = length >= 3 or (length == 2 and max(map(int, whole)) > 59)
    return long and n >= MOSTLY * sum(whole.values()) and any(text[0] == "0" for text in whole)


def _read_times(column):
    """A column of clock times or durations, in seconds."""
    clocks = [found for found in map(_CLOCK.fullmatch, column.counts) if found]
    long = [found["first"] for found in clocks if found["third"]]
    two = [found["first"] for found in clocks if not found["third"]]
    half = any(found["half"] for found in clocks)
    padded = any(len(hours) == 2 and hours[0] == "0" for hours in long)
    in_minutes = any(int(hours) > 24 for hours in two) or (long and two and not padded)
    time = "minutes" if in_minutes and not half else "hours"
    read = ReadColumn.of(column.texts, NumberFormat(time=time if clocks else "durations"))
    return read if read.fits() else None


def _seconds(text, time):
    if time == "durations":
        found = _DURATION.fullmatch(text) or _ISO_DURATION.fullmatch(text)
        parts = [] if found is None else [g for g in found.groups() if g is not None]
        if not parts:
            return None
        sizes = zip(parts[::2], parts[1::2])
        return sum(float(size.replace(",", ".")) * _SECONDS[u.lower()] for size, u in sizes)
    found = _CLOCK.fullmatch(text)
    if found is None:
        return None
    first, second = float(found["first"]), float(found["second"])
    if found["third"] is None and time == "minutes":
        seconds = 60 * first + second
    else:
        if found["half"]:
            first = first % 12 + (12 if found["half"] in "pP" else 0)
        rest = float(f"{found['third'] or 0}.{found['part'] or 0}")
        seconds = 3600 * first + 60 * second + rest
    seconds += 86400 * float(found["days"] or 0)
    return -seconds if found["sign"] else seconds


def _shape(text):
    """The parts of a text that looks like a number; (12) is how bookkeepers write -12."""
    text = f"-{text[1:-1]}" if text.startswith("(") and text.endswith(")") else text
    found = _SHAPE.fullmatch(text)
    if found is None or not any(map(str.isdigit, found["digits"])):
        return None
    if found["unit"] and found["digits"].endswith((". ", ".")):  # "2. Middle Atlantic"
        return None
    return found


def _plain_unit(unit):
    """Units compared without case and plural; money in front of a number is no unit."""
    unit = unit.strip().rstrip(".").lower()
    singular = _UNITS.fullmatch(unit) and not unit.endswith("s")
    return unit if singular or len(unit) < 3 else unit.removesuffix("s")


def _mark(shape):
    """The decimal mark that these digits need: ".", ",", "?" where both would do, or None."""
    digits = shape["digits"].strip()
    if "." not in digits and "," not in digits:
        return None
    if _OPEN.fullmatch(digits):
        return "?"
    fits = [mark for mark, pattern in _WITH.items() if pattern.fullmatch(digits)]
    return fits[0] if len(fits) == 1 else None


def _number(found, decimal):
    digits = found["digits"].strip()
    parts = _WITH[decimal].fullmatch(digits)
    if parts is None:
        return None
    whole = re.sub(r"\D", "", parts["whole"])
    part = (parts["part"] or "").replace(",", ".")
    value = float(f"{whole or 0}{part}{found['exponent'] or ''}")
    value = -value if {found["sign"], found["inner"]} & {"-", _MINUS} else value
    unit = (found["unit"] or "").strip()
    money = _MONEY.fullmatch(unit)  # "k€" and "Mio. EUR" are a thousand and a million
    times = unit.split(" ")[0] if money is None else (money["times"] or "").rstrip(".")
    return value / 100 if unit == "%" else value * _TIMES.get(times, 1.0)
