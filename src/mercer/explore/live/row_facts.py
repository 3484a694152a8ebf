"""Facts about one row, a selection of rows, and a place where there is no row."""

import csv
import io
from typing import Any

import numpy as np

from ... import preimage
from ...engine import as_numpy
from ...export import harmless_value
from ..data import Explored
from ..embeddings import PCA
from ..plots.style import as_text
from ..report.thumbnails import named_columns, thumbnails
from .pictures import Plane
from .space import LiveSpace

_NEAREST = 5
# Columns by which a selection differs most.
_TELLING = 4
# Columns shown of a row.
_MOST_VALUES = 12


class Pointer:
    """The thing that was clicked, if any. It follows its row while the picture moves."""

    def __init__(self, data: Explored):
        self.data = data
        self.at: int | tuple[float, float] | None = None
        self._near: list[int] = []

    def point(self, at: int | tuple[float, float], plane: Plane, reach: float = 0.0) -> None:
        """Choose a row by its position; or a place, or the nearest row within reach of it."""
        if isinstance(at, int):
            if not 0 <= at < len(self.data):
                raise ValueError(f"row {at} is not one of the {len(self.data)} shown.")
        elif not np.isfinite(at).all():
            raise ValueError("a place needs two finite numbers.")
        else:
            apart = np.hypot(*(plane.points - at).T)
            nearest = int(apart.argmin())
            at = nearest if apart[nearest] <= reach else at
        self.at = at

    def about(self, space: LiveSpace, plane: Plane) -> dict[str, Any]:
        """Facts about it in a space, and the marks in its picture. A row has its values, what is
        predicted for it when left out, and its nearest rows; a place without a row those that are
        nearest in the picture. In a picture of components both have a pre-image."""
        assert self.at is not None
        data, at, judged = self.data, self.at, space.judged
        if isinstance(at, tuple):
            x, y = map(float, at)
            squares = ((plane.points - [x, y]) ** 2).sum(axis=1)
            nearest = np.argsort(squares, kind="stable")[:_NEAREST].tolist()
            about: dict[str, Any] = {"x": x, "y": y}
        else:
            x, y = plane.points[at]
            nearest = _nearest_rows(space, at)
            about = {"row": int(data.rows[at]), "index": int(at), "label": label_of(data, at)}
            about["values"] = []
            columns = None if data.image_shape is not None else named_columns(data.shown)
            if columns is not None:  # the first ones of the row as it was given
                values = zip(columns[0][:_MOST_VALUES], columns[1][at])
                about["values"] = [[name, as_text(value)] for name, value in values]
            if judged is not None:
                about["predicted"] = _answer(judged.predicted[at], data)
                about["wrong"] = bool(judged.wrong[at])
        self._near = nearest
        about["neighbours"] = [
            {"index": j, "row": int(data.rows[j]), "label": label_of(data, j)} for j in nearest
        ]
        if plane.name == PCA:
            # A space of one dimension has no second component.
            scores = plane.scores_at(x, y)[: space.components.shape[1]]
            about["seen"] = _shown_point(scores, space, data)
            if isinstance(at, tuple) and space.ridge is not None:  # other components are zero
                ridge = space.ridge
                values = scores @ ridge.coef[: len(scores)] + ridge.b
                best = values.argmax() if data.codes is not None else values[0]
                about["predicted"] = _answer(best, data)
        return {"about_point": about, "marks": self.marks(plane)}

    def marks(self, plane: Plane | None) -> dict[str, list[float]]:
        """Places to ring: what was clicked first, then its nearest rows, those that are drawn."""
        if self.at is None or plane is None:
            return {"x": [], "y": [], "size": []}
        clicked = self.at if isinstance(self.at, tuple) else plane.point(self.at)
        rings = [(clicked, 18.0), *((plane.point(row), 12.0) for row in self._near)]
        places = [(place, size) for place, size in rings if place is not None]
        return {
            "x": [float(place[0]) for place, _ in places],
            "y": [float(place[1]) for place, _ in places],
            "size": [size for _, size in places],
        }


def _nearest_rows(space: LiveSpace, i: int) -> list[int]:
    Q = space.components
    squares = ((Q - Q[i]) ** 2).sum(axis=1)
    squares[i] = np.inf
    return np.argsort(squares, kind="stable")[: min(_NEAREST, len(Q) - 1)].tolist()


def label_of(data: Explored, i: int) -> str:
    """The target of one row as text; a class as the legend has it."""
    if data.codes is not None:
        return data.classes[data.codes[i]]
    return "" if data.target is None else as_text(data.target[i])


def _shown_point(scores: np.ndarray, space: LiveSpace, data: Explored) -> dict[str, Any] | None:
    """The point whose image has these scores (and no others), by a pre-image: a picture, or values.
    None without one."""
    if not data.vectors:
        return None
    coordinates = space.placed(np.asarray(scores, dtype=float)[None, :])
    try:
        point = np.asarray(as_numpy(preimage(space.kernel_map, coordinates)))[0]
    except (ValueError, TypeError, np.linalg.LinAlgError):
        return None  # a corrected similarity, or a kernel without a way back
    if data.image_shape is not None and point.size == np.prod(data.image_shape):
        pixels = np.clip(point, data.X.min(), data.X.max()).reshape(1, *data.image_shape)
        return {"image": thumbnails(pixels)[0]}
    pairs = list(zip(data.names, point))[:_MOST_VALUES]
    return {"values": [[name, f"{value:.3g}"] for name, value in pairs]}


def about_selection(indices: np.ndarray, data: Explored) -> dict[str, Any] | None:
    """How many rows of which class, and the columns by which they differ from all others."""
    indices = np.asarray(indices, dtype=int)
    if not len(indices):
        return None
    found: dict[str, Any] = {"size": len(indices), "of": len(data), "indices": indices.tolist()}
    if data.codes is not None:
        counts = np.bincount(data.codes[indices], minlength=len(data.classes))
        common = np.argsort(-counts, kind="stable")
        found["classes"] = [[data.classes[c], int(counts[c])] for c in common if counts[c]]
    elif data.target is not None:
        mean = float(np.mean(np.asarray(data.target, dtype=float)[indices]))
        found["mean"] = f"{mean:.4g}"
    if data.vectors and data.image_shape is None and len(indices) < len(data):
        inside = np.zeros(len(data), dtype=bool)
        inside[indices] = True
        a, b = data.X[inside].mean(axis=0), data.X[~inside].mean(axis=0)
        spread = data.X.std(axis=0)
        apart = np.abs(a - b) / np.where(spread > 0, spread, np.inf)
        order = [j for j in np.argsort(-apart, kind="stable")[:_TELLING] if apart[j] > 0]
        found["telling"] = [[data.names[j], f"{a[j]:.3g}", f"{b[j]:.3g}"] for j in order]
    return found


def as_csv(indices: np.ndarray, data: Explored) -> str:
    """The rows as they were given, with their positions and target, for a file."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    names, table = named_columns(data.shown) or (["text"], [[str(item)] for item in data.shown])
    target = [] if data.target is None else [data.target_name]
    writer.writerow([harmless_value(name) for name in ["row", *target, *names]])
    for i in np.asarray(indices, dtype=int):
        label = [] if data.target is None else [data.target[i]]
        writer.writerow([int(data.rows[i]), *(harmless_value(v) for v in [*label, *table[i]])])
    return file.getvalue()


def _answer(value, data):
    return data.classes[int(value)] if data.codes is not None else f"{float(value):.4g}"
