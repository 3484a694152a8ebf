"""Descriptions of points: one row, a selection of rows, and a place where there is no row."""

import csv
import io
from typing import Any

import numpy as np

from ...engine.arrays import as_numpy
from ...estimators.preimage import preimage
from ...export.safe_text import harmless_value
from ...kernels.points import is_frame
from ..embeddings import PCA
from ..plots.style import as_text
from ..report.thumbnails import thumbnails
from .data import Explored
from .live_scores import Judged
from .pictures import Plane
from .space import LiveSpace

NEAREST = 5
# Columns by which a selection differs most.
TELLING = 4
# Columns shown of a row.
MOST_VALUES = 12


def nearest_rows(space: LiveSpace, i: int, size: int = NEAREST) -> list[tuple[int, float]]:
    """(row, distance) of the nearest rows in the kernel's space."""
    Q = space.components
    squares = ((Q - Q[i]) ** 2).sum(axis=1)
    squares[i] = np.inf
    size = min(size, len(Q) - 1)
    nearest = np.argpartition(squares, size - 1)[:size]
    nearest = nearest[np.argsort(squares[nearest], kind="stable")]
    return [(int(j), float(np.sqrt(squares[j]))) for j in nearest]


def about_row(
    i: int, space: LiveSpace, plane: Plane, data: Explored, judge: Judged | None
) -> dict[str, Any]:
    """A row: its values, what is predicted for it when left out, and its nearest rows."""
    found: dict[str, Any] = {
        "row": int(data.rows[i]),
        "index": int(i),
        "label": data.label(i),
        "values": _values(data, i),
        "neighbours": [
            {"index": j, "row": int(data.rows[j]), "label": data.label(j), "distance": distance}
            for j, distance in nearest_rows(space, i)
        ],
    }
    if judge is not None:
        found["predicted"] = _answer(judge.predicted[i], data)
        found["wrong"] = bool(judge.wrong[i])
    if plane.name == PCA:
        seen = plane.scores_at(*plane.points[i])
        found["seen"] = shown_point(point_at(seen, space, data), data)
    return found


def about_place(x: float, y: float, space: LiveSpace, plane: Plane, data: Explored) -> dict:
    """A place without a row: the nearest rows, and in a picture of components the pre-image."""
    squares = ((plane.points - [x, y]) ** 2).sum(axis=1)
    nearest = np.argsort(squares, kind="stable")[: min(NEAREST, len(data))]
    found: dict[str, Any] = {
        "x": float(x),
        "y": float(y),
        "neighbours": [
            {"index": int(j), "row": int(data.rows[j]), "label": data.label(j), "distance": None}
            for j in nearest
        ],
    }
    if plane.name == PCA:
        scores = plane.scores_at(x, y)
        found["seen"] = shown_point(point_at(scores, space, data), data)
        if space.ridge is not None:  # other components are zero
            ridge = space.ridge.prediction
            values = scores @ ridge.coef[: len(scores)] + ridge.b
            found["predicted"] = _answer(
                values.argmax() if data.codes is not None else values[0], data
            )
    return found


def point_at(scores: np.ndarray, space: LiveSpace, data: Explored) -> np.ndarray | None:
    """The point whose image has these scores (and no others), by a pre-image; None without."""
    if not data.vectors:
        return None
    coordinates = space.placed(np.asarray(scores, dtype=float)[None, :])
    try:
        return np.asarray(as_numpy(preimage(space.kernel_map, coordinates)))[0]
    except (ValueError, TypeError, np.linalg.LinAlgError):
        return None  # a corrected similarity, or a kernel without a way back


def shown_point(point: np.ndarray | None, data: Explored) -> dict[str, Any] | None:
    """A point that is not a row: a picture, or values."""
    if point is None:
        return None
    if data.image_shape is not None and point.size == np.prod(data.image_shape):
        pixels = np.clip(point, data.X.min(), data.X.max()).reshape(1, *data.image_shape)
        return {"image": thumbnails(pixels)[0]}
    pairs = list(zip(data.names, point))[:MOST_VALUES]
    return {"values": [[name, f"{value:.3g}"] for name, value in pairs]}


def about_selection(indices: np.ndarray, data: Explored) -> dict[str, Any] | None:
    """How many rows of which class, and the columns by which they differ from all others."""
    indices = np.asarray(indices, dtype=int)
    if not len(indices):
        return None
    found: dict[str, Any] = {"size": len(indices), "of": len(data), "indices": indices.tolist()}
    if data.codes is not None:
        counts = np.bincount(data.codes[indices], minlength=len(data.classes))
        order = np.argsort(-counts, kind="stable")
        found["classes"] = [[data.classes[c], int(counts[c])] for c in order if counts[c]]
    elif data.target is not None:
        mean = float(np.mean(np.asarray(data.target, dtype=float)[indices]))
        found["mean"] = f"{mean:.4g}"
    if data.vectors and data.image_shape is None and len(indices) < len(data):
        found["telling"] = _telling(indices, data)
    return found


def _telling(indices, data):
    """[name, mean inside, mean outside] of the columns that differ most, in standard deviations."""
    inside = np.zeros(len(data), dtype=bool)
    inside[indices] = True
    a, b = data.X[inside].mean(axis=0), data.X[~inside].mean(axis=0)
    spread = data.X.std(axis=0)
    apart = np.abs(a - b) / np.where(spread > 0, spread, np.inf)
    order = np.argsort(-apart, kind="stable")[:TELLING]
    return [[data.names[j], f"{a[j]:.3g}", f"{b[j]:.3g}"] for j in order if apart[j] > 0]


def as_csv(indices: np.ndarray, data: Explored) -> str:
    """The rows as they were given, with their positions and target, for a file."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    shown = data.shown
    if is_frame(shown):
        names, table = [str(c) for c in shown.columns], shown.to_numpy()
    elif isinstance(shown, np.ndarray) and shown.ndim == 2:
        names, table = list(data.names), shown
        if len(names) != table.shape[1]:
            names = [f"x{j}" for j in range(table.shape[1])]
    else:
        names, table = ["text"], [[str(item)] for item in (shown if shown is not None else [])]
    target = [] if data.target is None else [data.target_name]
    writer.writerow([harmless_value(name) for name in ["row", *target, *names]])
    for i in np.asarray(indices, dtype=int):
        values = list(table[i]) if len(table) else []
        label = [] if data.target is None else [data.target[i]]
        writer.writerow([int(data.rows[i]), *(harmless_value(v) for v in [*label, *values])])
    return file.getvalue()


def _values(data, i):
    """[name, value] of the first columns of a row as it was given."""
    if data.image_shape is not None:
        return []
    shown = data.shown
    if is_frame(shown):
        row = shown.iloc[i] if hasattr(shown, "iloc") else shown.row(i)
        names = [str(c) for c in shown.columns]
        return [[n, as_text(v)] for n, v in zip(names, list(row))][:MOST_VALUES]
    if isinstance(shown, np.ndarray) and shown.ndim == 2:
        return [[n, as_text(v)] for n, v in zip(data.names, shown[i])][:MOST_VALUES]
    return []


def _answer(value, data):
    return data.classes[int(value)] if data.codes is not None else f"{float(value):.4g}"
