"""Spaces that were kept, to look at beside the next."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...kernels import Kernel
from .pictures import Plane

MOST_KEPT = 4


@dataclass(frozen=True)
class SavedView:
    """A kernel, its picture of all rows, and its score where there is a target."""

    name: str
    kernel: Kernel
    plane: Plane
    score: float | None


class SavedViews(list[SavedView]):
    """The kept spaces, in the order in which they are shown."""

    def keep(self, kept: SavedView) -> None:
        if len(self) >= MOST_KEPT:
            raise ValueError(f"{MOST_KEPT} spaces are kept already: let one go first.")
        if any(other.name == kept.name for other in self):
            raise ValueError(f"{kept.name} is kept already.")
        self.append(kept)

    def drop(self, place: int) -> None:
        if not 0 <= place < len(self):
            raise ValueError("this space is not kept any more.")
        del self[place]

    def update(self) -> dict[str, Any]:
        """For the page: what is kept, and where its points lie."""
        places: dict[str, np.ndarray] = {}
        for place, kept in enumerate(self):
            places[f"x{place}"], places[f"y{place}"] = kept.plane.points.T.astype(np.float32)
        return {
            "kept_points": places,
            "kept": [
                {"name": k.name, "score": k.score, "view": k.plane.name, "place": place}
                for place, k in enumerate(self)
            ],
        }
