"""The treatment of each column of a table: records, and sentences about them."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..kernels import listed

NUMBER, BOOLEAN, CATEGORY, DATE, TEXT = "number", "boolean", "category", "date", "text"
IDENTIFIER, CONSTANT, EMPTY, KEPT = "identifier", "constant", "empty", "kept"
IGNORED = "ignored"
_LEFT_OUT = "left out"
_AS_WELL = " as well"
EFFECT = "the effect of each value"
NO_HELP = "rows left out are predicted better without"
# Columns whose reading is shown.
SHOWN = 4


# Numbers that stand for a missing value in many files.
_SENTINELS = frozenset(s * int("9" * k) for k in range(2, 7) for s in (1, -1))
# Texts that name a sum over other rows.
_TOTALS = frozenset(
    ["total", "totals", "grand total", "subtotal", "sum", "all", "overall", "average", "mean"]
    + ["gesamt", "summe", "totale", "somme", "suma", "totaal"]
)


def decision(
    encoder: Any, name: str, kind: str, action: str, values: np.ndarray, reason: str = ""
) -> tuple[Any, dict[str, Any]]:
    """(the fitted encoder of a column or None, the record of what is done to it)."""
    if values.dtype.kind == "O":
        missing = sum(v is None for v in values)
    else:
        missing = int(np.isnan(values).sum()) if values.dtype.kind == "f" else 0
    outputs = [] if encoder is None else list(encoder.names_)
    record = {"name": name, "kind": kind, "action": action, "reason": reason, "outputs": outputs}
    return encoder, record | {"n_missing": missing, "n_pooled": 0, "not_read": []}


def sentinel_of(known: np.ndarray) -> tuple[float, int] | None:
    """(value, rows) of a number such as -999 that lies far from all others; None elsewhere."""
    for value in (known.min(), known.max()):
        rest = known[known != value]
        if value not in _SENTINELS or not len(rest):
            continue
        gap = np.abs(rest - value).min()
        if gap > 2 * np.ptp(rest) and gap > 2 * np.abs(rest).max() / 3:
            return float(value), int((known == value).sum())
    return None


def total_of(
    texts: Sequence[Any] | np.ndarray, numbers: Iterable[np.ndarray]
) -> tuple[str, int] | None:
    """(text, rows) of rows that seem to sum up others, such as "Total"; None elsewhere.

    A single one is the last row, or has the largest value in most of the columns of numbers. Where
    there are several, one per group, they are typically larger than 95 % of the others there.
    """
    named = np.array([text is not None and text.lower() in _TOTALS for text in texts])
    n = int(named.sum())
    if not 0 < n <= len(texts) / 4 or len(texts) < 10:
        return None
    known = [(x[named & ~np.isnan(x)], x[~named & ~np.isnan(x)]) for x in numbers]
    share = 1.0 if n == 1 else 0.95
    larger = [np.median(t) >= np.quantile(o, share) for t, o in known if len(t) and len(o)]
    last = n == 1 and bool(named[-1])
    return (texts[int(named.argmax())], n) if last or np.mean(larger or [0]) > 0.5 else None


def in_rows(n: int) -> str:
    return f"{n} row{'s' if n > 1 else ''}"


def notes_on_reading(read: Iterable[tuple[str, str, str, str, bool]]) -> list[str]:
    """How texts were read, from (name, kind, text, value, whether others read it differently)."""
    lines, read = [], list(read)
    for kind, option in ((NUMBER, "decimal"), (DATE, "dayfirst")):
        found = [(name, text, value, open) for name, k, text, value, open in read if k == kind]
        clear = [f"{name} ({text!r} is {value})" for name, text, value, open in found if not open]
        if clear:
            lines.append(f"text was read as {kind}s in {listed(clear, SHOWN)}")
        unclear = [f"{text!r} in {name} as {value}" for name, text, value, open in found if open]
        if unclear:
            lines.append(
                f"{kind}s that can be read in two ways: {listed(unclear, SHOWN)} "
                f"(the option {option} changes that)"
            )
    return lines


def with_further(action: str, encoder: Any) -> str:
    """The action on a column of numbers, and what else its encoder makes of it."""
    plain = action.split(", and ")[0] if action.endswith(_AS_WELL) else action
    told = {"rank": "ranked", "level": "split by value"}
    further = [words for kind, words in told.items() if kind in encoder.kinds_]
    return f"{plain}, and {' and '.join(further)}{_AS_WELL}" if further else plain


def left_out(name: str, kind: str, reason: str) -> tuple[None, dict[str, Any]]:
    """(no encoder, record) of a column that is not used."""
    return decision(None, name, kind, _LEFT_OUT, np.zeros(0), reason)


def notes_on(columns: Sequence[dict[str, Any]]) -> list[str]:
    """The treatment of the columns, in a few sentences: one per kind of treatment."""
    groups: dict[tuple, list] = {}
    for record in columns:
        groups.setdefault((record["action"], record["reason"]), []).append(record)
    lines = [_note(action, reason, records) for (action, reason), records in groups.items()]
    lines.sort(key=lambda line: "left out" in line)
    outputs = [name for record in columns for name in record["outputs"]]
    filled = [r["name"] for r in columns if r["n_missing"] and r["kind"] in (NUMBER, DATE)]
    if filled:
        marked = any(name.endswith(" is missing") for name in outputs)
        also = "; columns of 0 and 1 say where" if marked else ""
        lines.append(f"Missing values became the median in {listed(filled)}{also}.")
    effects = [r["name"] for r in columns if r.get("has_means") and r["action"] != EFFECT]
    if effects:
        lines.append(f"The effect of each frequent value is a further column in {listed(effects)}.")
    read = [(r["name"], r["kind"], *r["read"], r["open"]) for r in columns if r.get("read")]
    lines += [f"{line[0].upper()}{line[1:]}." for line in notes_on_reading(read)]
    codes = [(r["name"], *r["sentinel"]) for r in columns if r.get("sentinel")]
    if codes:
        shown = ", ".join(f"{v:g} in {name} ({in_rows(n)})" for name, v, n in codes[:4])
        lines.append(
            f"Numbers far from all others, perhaps codes for missing values: {shown}. They were "
            "read as numbers: empty these cells if nothing was measured."
        )
    totals = [r for r in columns if r.get("total")]
    if totals:
        shown = ", ".join(
            f"{r['total'][0]!r} in {r['name']} ({in_rows(r['total'][1])})" for r in totals[:4]
        )
        lines.append(f"Sums of other rows, it seems: {shown}. Leave them out if they are.")
    strange = [r for r in columns if r["not_read"]]
    if strange:
        shown = ", ".join(f"{r['not_read'][0]!r} in {r['name']}" for r in strange[:4])
        lines.append(f"Values that are not like the rest count as missing: {shown}.")
    return lines


def _note(action, reason, records):
    names = listed([record["name"] for record in records])
    n = len(records)
    columns = f"{n} column{'s' if n > 1 else ''}"
    was, kinds = ("was" if n == 1 else "were"), {record["kind"] for record in records}
    if action == _LEFT_OUT:
        what = {IDENTIFIER: " of identifiers", TEXT: " of free text"}.get(records[0]["kind"], "")
        why = f" ({reason})" if records[0]["kind"] != TEXT or reason == NO_HELP else ""
        return f"{columns}{what} {was} left out{why}: {names}."
    n_outputs = sum(len(record["outputs"]) for record in records)
    if action == EFFECT:
        became = "became the effect of each frequent value on the target"
        return f"{columns} of categories with many values {became}: {names}."
    if kinds == {CATEGORY}:
        pooled = [record["name"] for record in records if record["n_pooled"]]
        rare = f"; rare values share one column in {listed(pooled)}" if pooled else ""
        return f"{columns} of categories became {n_outputs} columns of 0 and 1: {names}{rare}."
    if kinds == {DATE}:
        return f"{columns} of dates became numbers with their cycles ({n_outputs} in all): {names}."
    if kinds == {KEPT}:
        return f"{columns} of objects {was} kept as {'it is' if n == 1 else 'they are'}: {names}."
    if kinds == {TEXT}:
        return f"{columns} of text became {n_outputs} directions of character n-grams: {names}."
    of = "yes and no" if kinds == {BOOLEAN} else "numbers"
    what = "became 0 and 1" if kinds == {BOOLEAN} else f"{was} {action}"
    only = f" ({reason})" if reason else ""
    return f"{columns} of {of} {what}{only}: {names}."
