"""The point under the pointer: a row or an empty place, and the rows nearest to it."""

from typing import Any

import numpy as np

from .data import Explored
from .live_scores import Judged
from .pictures import Plane
from .rows import about_place, about_row
from .space import LiveSpace


class Pointer:
    """The thing that was clicked, if any. It follows its row while the picture moves."""

    def __init__(self, data: Explored):
        self.data = data
        self.at: int | tuple[float, float] | None = None
        self._near: list[int] = []

    def tap(self, x: float, y: float, reach: float, plane: Plane) -> None:
        """A click: on the nearest row within reach, or on the place itself."""
        if not (np.isfinite(x) and np.isfinite(y)):
            raise ValueError("a place needs two finite numbers.")
        apart = np.hypot(*(plane.points - [x, y]).T)
        nearest = int(apart.argmin())
        self.at = nearest if apart[nearest] <= reach else (x, y)

    def choose(self, i: int) -> None:
        """A row by its position."""
        if not 0 <= i < len(self.data):
            raise ValueError(f"row {i} is not one of the {len(self.data)} shown.")
        self.at = i

    def forget(self) -> None:
        self.at, self._near = None, []

    def about(self, space: LiveSpace, plane: Plane, judge: Judged | None) -> dict[str, Any]:
        """Facts about it in a space, and the marks in its picture."""
        assert self.at is not None
        if isinstance(self.at, tuple):
            about = about_place(*self.at, space, plane, self.data)
        else:
            about = about_row(self.at, space, plane, self.data, judge)
        self._near = [near["index"] for near in about["neighbours"]]
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
