"""Columns of a table with a part of their own: weights, groups, and the order in time."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

from .. import TableEncoder
from ..tables import BadInput, check_column, encoder_tools

# The share of rows, in the order of time, that are predicted from those before.
_LAST = 0.2
# The target drifts where the last rows are so many standard deviations off, or lie so often outside
# of what the rows before have.
SHIFT, OUTSIDE = 0.5, 0.1
# The share of steps from row to row that go the same way in time.
_ORDERED = 0.99


class _Roles(NamedTuple):
    """The columns that are learned from, and what was said about others."""

    X: pd.DataFrame
    groups: np.ndarray | None = None
    weights: np.ndarray | None = None
    when: tuple[str, np.ndarray] | None = None  # the column of --time, as numbers


def take_roles(
    X: pd.DataFrame, target: str, named: dict[str, str | None], notes: list[str]
) -> _Roles:
    """Columns named by --group, --weights and --time; the first two are not learned from."""
    for option, name in named.items():
        if name is not None and name == target:
            raise BadInput(f"--{option} {name} is the target itself: name another column.")
        if name is not None:
            check_column(X, name, notes)
    group, weights, time = named["group"], named["weights"], named["time"]
    groups = None if group is None else X[group].astype(str).to_numpy()
    given = None
    if weights is not None:
        given = pd.to_numeric(X[weights], errors="coerce").to_numpy(dtype=float)
        bad = np.flatnonzero(~(np.isfinite(given) & (given >= 0)))
        if len(bad):
            raise BadInput(
                f"--weights {weights}: {len(bad)} rows have no number of at least 0, the first is "
                f"row {bad[0] + 1} with {str(X[weights].iloc[bad[0]])!r}."
            )
    rest = X.drop(columns=[name for name in {group, weights} if name is not None])
    if rest.shape[1] == 0:
        raise BadInput(f"the table has no column to learn from besides {group or weights!r}.")
    if group is not None:
        notes.append(
            f"errors and intervals are those of rows with a {group} that the table does not have; "
            f"{group} itself was not used"
        )
        if X[group].isna().any():
            n = int(X[group].isna().sum())
            notes.append(f"rows without a {group} count as one group: {n} of {len(X)}")
    if weights is not None:
        notes.append(f"the column {weights} says how much each row counts: not used otherwise")
    when = None
    if time is not None:
        times = _times(X[time])
        if times is None:
            raise BadInput(f"--time {time}: the column has neither dates nor numbers that differ.")
        when = time, np.where(np.isnan(times), np.nanmin(times), times)
    return _Roles(rest, groups, given, when)


def in_time(roles: _Roles, encoder: Any, y: np.ndarray) -> tuple[str, np.ndarray] | None:
    """(column, times) by which the rows are ordered: that of --time, or what the table suggests.

    That is a date column along which the rows are sorted, where the target drifts.
    """
    if roles.when is not None:
        return roles.when
    for record in encoder.columns_ if y.dtype.kind in "fiu" else ():
        when = _times(roles.X[record["name"]]) if record["kind"] == "date" else None
        if when is None or np.isnan(when).any():
            continue
        steps = np.diff(when)
        ordered = np.mean(steps >= 0) >= _ORDERED or np.mean(steps <= 0) >= _ORDERED
        if ordered and _drifts(y[np.argsort(when, kind="stable")]):
            return record["name"], when
    return None


def _times(column):
    """A column as seconds or numbers, also where the model does not use it; None without any."""
    named = isinstance(column.dtype, pd.CategoricalDtype)  # by --id or --category: dates even so
    table = (column.astype(object) if named else column).to_frame()
    try:
        encoder = TableEncoder().fit(table)
    except ValueError:  # the same in all rows
        return None
    return encoder_tools.column_as_numbers(encoder, table, column.name)


def _drifts(y):
    """Tell whether the last fifth is unlike the rows before."""
    cut = len(y) - int(_LAST * len(y))
    before, after = y[:cut].astype(float), y[cut:].astype(float)
    if len(after) < 5:
        return False
    shift = abs(after.mean() - before.mean()) > SHIFT * before.std()
    outside = np.mean((after < before.min()) | (after > before.max()))
    return bool(shift or outside > OUTSIDE)


def last_fifth(
    model: Any, roles: _Roles, y: np.ndarray, name: str, when: np.ndarray
) -> dict[str, Any]:
    """The same model fitted to the first four fifths in time, and its error on the last."""
    order = np.argsort(when, kind="stable")
    cut = len(order) - max(1, int(_LAST * len(order)))
    known, new = order[:cut], order[cut:]
    w = np.ones(len(y)) if roles.weights is None else roles.weights
    weights = None if roles.weights is None else w[known]
    counts = w[new] if w[new].any() else None
    again = clone(model).set_params(verbose=False)
    rows, found = roles.X.iloc[new], {"column": name, "rows": len(new)}
    try:
        again.fit(roles.X.iloc[known], y[known], weights)
    except ValueError as reason:  # one class, or nothing that differs, in the rows before
        return found | {"why": str(reason)}
    if hasattr(model, "classes_"):
        right = again.predict(rows) == y[new]
        return found | {"accuracy": float(np.average(right, weights=counts))}
    low, high = again.predict_interval(rows)
    inside = float(np.average((low <= y[new]) & (y[new] <= high), weights=counts))
    error = float(np.sqrt(np.average((y[new] - again.predict(rows)) ** 2, weights=counts)))
    return found | {"RMSE": error, "inside_90": inside}
