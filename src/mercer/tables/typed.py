"""A frame of texts with numbers, truths and dates in place of the texts that stand for them."""

from collections import Counter
from dataclasses import asdict, replace

import numpy as np
import pandas as pd

from ..kernels import listed
from .columns import Dates, Numbers, declared_categories
from .encoder import TableEncoder
from .notes import DATE, NUMBER, SHOWN, in_rows, notes_on_reading
from .parse_dates import DateFormat, are_digits_of_dates, day_order
from .parse_numbers import NumberFormat, TextColumn, are_codes, decimal_of, read_forced
from .parse_text import MISSING, ReadColumn, as_texts
from .reading import Notation

# Texts that programs write for a missing value: as a target too, they say that there is none.
_NEVER_LABELS = frozenset(["", "na", "n/a", "#n/a", "nan", "null", "<na>"])
# Share of the rows from which on another such text, as "None" or "-", is a class of a target.
_FREQUENT = 0.05
# A point with other than three digits behind it, or with a zero or four digits before it.
_IS_DECIMAL = r"\.(?:\d{0,2}|\d{4,})(?:[eE].*)?$|^\D*0\d*\.|^\D*\d{4,}\."
_CODE = r"^0\d+$|^\d{16}"


def is_decimal(x: np.ndarray) -> bool:
    """Whether some of these numbers cannot have been written with a point between thousands."""
    size, thousands = np.abs(x), 1000 * np.abs(x)
    small = (size < 1) & (size > 0)
    long = np.abs(thousands - np.round(thousands)) > 1e-6 * np.maximum(thousands, 1)
    large = (size >= 1000) & (size != np.round(size))
    return bool((small | long | large).any())


def typed_frame(
    frame: pd.DataFrame,
    reading: Notation,
    target: str | None,
    like: TableEncoder | None,
    notes: list[str],
) -> pd.DataFrame:
    """The frame with typed columns; texts that stay texts are stripped, None where missing.

    Columns that the user calls categories have that dtype. What was read how is noted, and kept in
    ``attrs["formats"]``.
    """
    # A parquet file says of columns that they are categories.
    declared = {*declared_categories(frame)} - {target}
    reading = replace(reading, categories={*reading.categories, *declared})
    # `plain` are numbers that need no interpretation; some tell that the decimal mark is a point.
    texts, plain, changed = {}, {}, {}
    for name in frame.columns:
        column = frame[name]
        if not (column.dtype == object or pd.api.types.is_string_dtype(column)):
            if column.dtype.kind == "f" and reading.separator is not None:
                plain[name] = True  # of a text file, and nothing else than decimals
            continue
        simple = None
        if pd.api.types.is_string_dtype(column) and name not in reading.categories:
            simple = _simple(column)
        if simple is None:
            texts[name] = as_texts(column.tolist())
        elif isinstance(simple, tuple):
            changed[name], plain[name] = simple
        else:
            changed[name] = simple
    if target in texts:
        texts[target] = _labels(frame[target], texts[target], reading, notes)
    elif target in changed:
        _gaps(frame[target], changed[target].isna(), set(), notes)
    if like is not None:
        return _as_trained(frame, texts, plain, changed, reading, like, notes)
    read = reading.columns(texts, points=sum(plain.values()))
    for name, values in texts.items():
        new = read[name].values if name in read else values
        changed[name] = pd.Series(new, index=frame.index)
    notes += notes_on_reading(
        (name, DATE if column.is_dates else NUMBER, *shown, bool(column.open))
        for name, column in read.items()
        if (shown := column.shown()) is not None
    )
    strange = [f"{n} ({r.wrong[0]!r})" for n, r in read.items() if r.wrong]
    if strange:
        few = listed(strange, SHOWN)
        notes.append(f"values unlike the rest of their column count as missing: {few}")
    changed |= {n: changed.get(n, frame[n]).astype("category") for n in reading.categories}
    typed = _replaced(frame, changed)
    typed.attrs["formats"] = {name: asdict(r.format) for name, r in read.items()}
    return typed


def _simple(column):
    """(numbers, whether some have a point) or truths, where every text is plainly one; or None."""
    stripped = column.str.strip()
    lower = stripped.str.lower()
    missing = (stripped.isna() | lower.isin(MISSING)).fillna(True).astype(bool)
    if missing.all():
        return None
    if not missing.any() and lower.isin(["true", "false"]).all():
        return (lower == "true").astype(bool)
    numbers = pd.to_numeric(stripped.where(~missing), errors="coerce")
    if numbers.isna().ne(missing).any() or not np.issubdtype(numbers.dtype, np.number):
        return None
    known = stripped[~missing]
    if known.str.contains(_CODE).any() and are_codes(TextColumn(known.tolist())):
        return None
    points = known.str.contains(".", regex=False)
    if points.all() and are_digits_of_dates(known):  # "07.1926"
        return None
    decided = bool(points.any()) and bool(known[points].str.contains(_IS_DECIMAL).any())
    if points.any() and not decided:
        return None  # "1.167": other columns may tell
    return numbers, decided


def _labels(column, texts, reading, notes):
    """The target, with the texts for missing values that are frequent enough to be its classes."""
    raw = ["" if v is None or v != v else str(v).strip() for v in column.tolist()]
    gaps = Counter(text for text, known in zip(raw, texts) if known is None)
    labels = {
        text
        for text, n in gaps.items()
        if text.lower() not in _NEVER_LABELS and n >= _FREQUENT * len(raw)
    }
    if labels and reading.columns({"target": texts}):
        labels = set()  # gaps among numbers
    for text in sorted(labels):
        notes.append(f"{text!r} is a class of the target {column.name!r} ({in_rows(gaps[text])})")
    _gaps(column, [text is None for text in texts], labels, notes)
    if labels:
        texts = texts.copy()
        texts[:] = [raw[i] if raw[i] in labels else text for i, text in enumerate(texts)]
    return texts


def _gaps(column, missing, labels, notes):
    """A note on the texts of a target that say that there is no value."""
    written = (text.strip() for text, gap in zip(column, missing) if gap and isinstance(text, str))
    counts = Counter(text for text in written if text and text not in labels)
    if counts:
        shown = ", ".join(f"{text!r} ({in_rows(n)})" for text, n in counts.most_common(4))
        notes.append(f"texts of the target {column.name!r} for no value: {shown}")


def _as_trained(frame, texts, plain, changed, reading, like, notes):
    """New rows, as texts where a model has to read them as it read its training table."""
    numbers = {
        record["name"]: encoder
        for record, encoder in zip(like.columns_, like.encoders_)
        if isinstance(encoder, Numbers)
    }
    dates = {
        record["name"]: encoder.day_first_
        for record, encoder in zip(like.columns_, like.encoders_)
        if isinstance(encoder, Dates)
    }
    written = {name: TextColumn(values) for name, values in texts.items()}
    for name in {*texts, *(set(plain) & set(changed))} - {*numbers}:
        changed[name] = pd.Series(as_texts(frame[name].tolist()), index=frame.index, dtype=object)
    told = [column for column in written.values() if column.is_numeric()]
    table = decimal_of(told, reading.separator, sum(plain.values()))
    mark = reading.decimal or table.mark
    for name in sorted({*texts} & {*dates}):
        days = _dates_as_trained(name, texts[name], dates[name], reading, mark == ",", notes)
        # Texts that are no dates stay: the encoder says what is wrong.
        changed[name] = changed[name].mask(days.notna().to_numpy(), days.to_numpy())
    for name in {*texts} & {*numbers}:
        values, column = texts[name], written[name]
        trained, open = numbers[name].format_.get("decimal"), column.open_texts()
        if reading.decimal is not None or (open and trained is None):
            used, guessed = mark, reading.decimal is None and not table.sure
            if guessed:  # what is nearest to the training table, on a scale of powers of ten
                usual = max(abs(numbers[name].median_), 1e-300)
                sizes = {mark: np.abs(NumberFormat(mark).read(open)) for mark in ".,"}
                far = {m: np.log10(np.maximum(x, 1e-300) / usual) for m, x in sizes.items()}
                used = min(".,", key=lambda mark: float(np.abs(far[mark]).mean()))
            read = read_forced(column, used)
            if guessed:
                shown = replace(read, open=open[0]).example()
                notes += notes_on_reading([(name, NUMBER, *shown, True)])
            # Numbers so that they can be read in one way only; other texts as they are.
            values = [
                text if v != v else np.format_float_positional(v, min_digits=4)
                for v, text in zip(read.values, values)
            ]
        elif open and mark not in (None, trained):
            notes.append(
                f"{open[0]!r} in {name} was read with the decimal mark {trained!r} of the training "
                "table (the option decimal changes that)"
            )
        changed[name] = pd.Series(list(values), index=frame.index, dtype=object)
    return _replaced(frame, changed)


def _dates_as_trained(name, texts, trained, reading, usual, notes):
    """Dates of new rows so that they can be read in one way only; NaN where the model reads them.

    `trained` is whether the training table has the day first, None where it does not tell.
    """
    first, open = day_order(texts, reading.day_first, usual)
    if reading.day_first is None and trained is not None:
        if open is None and first not in (None, trained):
            stands = "day" if trained else "month"
            notes.append(
                f"dates in {name} that can be read in two ways have the {stands} first, as in the "
                "training table, but others here do not (the option dayfirst changes that)"
            )
        first = None
    read = ReadColumn.of([None if first is None else t for t in texts], DateFormat(first), open)
    if first is not None and open is not None:
        notes += notes_on_reading([(name, DATE, *read.example(), True)])
    return pd.Series(read.values).dt.strftime("%Y-%m-%d %H:%M:%S.%f")


def _replaced(frame, columns):
    """The frame with other columns of these names."""
    frame = frame.copy(deep=False)
    for name, column in columns.items():
        frame[name] = column
    return frame
