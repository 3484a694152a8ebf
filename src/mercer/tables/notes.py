"""What became of each column of a table: records, and sentences about them."""

import numpy as np

from ..kernels.texts import listed

NUMBER, BOOLEAN, CATEGORY, DATE, TEXT = "number", "boolean", "category", "date", "text"
IDENTIFIER, CONSTANT, EMPTY, KEPT = "identifier", "constant", "empty", "kept"
LEFT_OUT = "left out"
AS_WELL = " as well"
EFFECT = "the effect of each value"
NO_HELP = "rows left out are predicted better without"


def record_of(name, kind, action, reason, outputs, values, not_read=()):
    if values.dtype.kind == "O":
        missing = sum(v is None for v in values)
    else:
        missing = int(np.isnan(values).sum()) if values.dtype.kind == "f" else 0
    return {
        "name": name,
        "kind": kind,
        "action": action,
        "reason": reason,
        "outputs": list(outputs),
        "n_missing": missing,
        "n_pooled": 0,
        "not_read": list(not_read)[:3],
    }


def with_further(action, encoder):
    """The action on a column of numbers, and what else its encoder makes of it."""
    plain = action.split(", and ")[0] if action.endswith(AS_WELL) else action
    further = ["ranked"] * encoder.n_ranks_ + ["split by value"] * (encoder.n_levels_ > 0)
    return f"{plain}, and {' and '.join(further)}{AS_WELL}" if further else plain


def left_out(name, kind, reason):
    """(no encoder, record) of a column that is not used."""
    return None, record_of(name, kind, LEFT_OUT, reason, [], np.zeros(0))


def notes_on(columns):
    """What was done to the columns, in a few sentences: one per kind of treatment."""
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
    if action == LEFT_OUT:
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
