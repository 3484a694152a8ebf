"""Columns of a table with a part of their own: weights, groups, and the order in time."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

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


def take_roles(
    X: pd.DataFrame, target: str, named: dict[str, str | None], notes: list[str]
) -> _Roles:
    """Columns named by --group, --weights and --time; the first two are not learned from."""
    for option, name in named.items():
        if name is not None and name == target:
            raise BadInput(f"--{option} {name} is the target itself: name another column.")
        if name is not None:
            check_column(X, name, notes)
    group, weights = named["group"], named["weights"]
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
    if weights is not None:
        notes.append(f"the column {weights} says how much each row counts: not used otherwise")
    return _Roles(rest, groups, given)


def in_time(
    X: pd.DataFrame, encoder: Any, y: np.ndarray, name: str | None
) -> tuple[str, np.ndarray] | None:
    """(column, times) by which the rows are ordered: `name`, or what the table suggests.

    That is a date column along which the rows are sorted, where the target drifts.
    """
    if name is not None:
        when = _times(X, encoder, name)
        if when is None or np.isnan(when).all():
            raise BadInput(f"--time {name}: the column holds neither dates nor numbers.")
        return name, np.where(np.isnan(when), np.nanmin(when), when)
    for record in encoder.columns_ if y.dtype.kind in "fiu" else ():
        when = _times(X, encoder, record["name"]) if record["kind"] == "date" else None
        if when is None or np.isnan(when).any():
            continue
        steps = np.diff(when)
        ordered = np.mean(steps >= 0) >= _ORDERED or np.mean(steps <= 0) >= _ORDERED
        if ordered and _drifts(y[np.argsort(when, kind="stable")]):
            return record["name"], when
    return None


def _times(X, encoder, name):
    """A column as seconds or numbers; None where it is neither."""
    when = encoder_tools.column_as_numbers(encoder, X, name)
    if when is None:  # left out, as a number of the row is
        when = pd.to_numeric(X[name], errors="coerce").to_numpy(dtype=float)
    return when


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
    weights = None if roles.weights is None else roles.weights[known]
    again = clone(model).set_params(verbose=False)
    again.fit(roles.X.iloc[known], y[known], weights)
    rows, found = roles.X.iloc[new], {"column": name, "rows": len(new)}
    if hasattr(model, "classes_"):
        return found | {"accuracy": float(np.mean(again.predict(rows) == y[new]))}
    low, high = again.predict_interval(rows)
    inside = float(np.mean((low <= y[new]) & (y[new] <= high)))
    error = float(np.sqrt(np.mean((y[new] - again.predict(rows)) ** 2)))
    return found | {"RMSE": error, "inside_90": inside}
