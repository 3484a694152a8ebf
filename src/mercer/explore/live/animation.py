"""The space of the present kernel and its picture, while the kernel changes.

A first look at once: few landmarks, and at most DRAWN rows. All rows, on landmarks that the kernel
chooses itself, when there is time.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ... import Kernel
from ...engine import as_numpy, one_blas_thread
from ..data import Explored
from ..embeddings import DISCRIMINANT, PCA, TSNE, has_tsne
from . import readings as read
from .pictures import MOST_TURNS, MovingTSNE, Plane, projected
from .space import COARSE, FINE, LiveSpace, decomposed, space_coordinates

Update = dict[str, Any]

# Rows of the first look.
_DRAWN = 2000


class Animation:
    """The last space of all rows with its picture and scores, and the picture shown now.

    Updates are made in steps; after any of them the rest may be given up for a newer kernel. None
    is a step that has nothing to tell.
    """

    def __init__(self, data: Explored):
        order = np.random.default_rng(0).permutation(len(data))
        self.data = data
        # The planes that can be looked at here.
        self.views = [PCA] + [DISCRIMINANT] * (data.codes is not None) + [TSNE] * has_tsne()
        self.view = PCA
        # Rows of the first look, and data of these rows alone; None: all rows.
        self.drawn = np.sort(order[:_DRAWN]) if len(data) > _DRAWN else None
        self._some = data if self.drawn is None else data.part(self.drawn)
        self._landmarks = order[:COARSE]
        self.alpha: float | None = None  # the last penalty, relative to the mean variance
        self._tsne = MovingTSNE(order[:_DRAWN])
        # Rows of the kernel matrix: a part of every class, class by class; or ordered by number.
        some = np.random.default_rng(1).permutation(len(data))[: read.MATRIX_ROWS]
        key = some
        if data.targets is not None:
            key = (data.targets[:, 0] if data.codes is None else data.codes)[some]
        self.matrix_rows = some[np.argsort(key, kind="stable")]
        self.space: LiveSpace | None = None
        self.plane: Plane | None = None
        self.shown: Plane | None = None
        self.is_whole = False  # whether `space` is that of the last kernel that was looked at
        self._planes: Iterator[Plane] = iter(())

    @property
    def present(self) -> tuple[LiveSpace, Plane]:
        """The space of all rows, and its picture."""
        assert self.space is not None
        assert self.plane is not None
        return self.space, self.plane

    def first_look(self, kernel: Kernel) -> Iterator[Update]:
        """The picture, then what is read off it."""
        bound = self.data.bound(kernel)
        # Matrices are small: threads of BLAS would wait for each other, and for the browser.
        with one_blas_thread():
            found = space_coordinates(bound, self._some, self.data.take(self._landmarks))
            space = decomposed(*found, self._some)
            shown = next(self._planes_of(space, self.drawn))
        self.shown, self.is_whole = shown, self.drawn is None
        if self.is_whole:
            self.space, self.plane = space, shown
        yield self._sketch("coarse")
        with one_blas_thread():
            self._judge(space, near=self.alpha)
            update = read.readings_of(space, kernel, self.matrix_rows, self.data)
            if space.judged is not None:
                update["sketch"] = {"wrong": space.judged.wrong.astype(np.uint8)}
        yield update

    def all_rows(self, kernel: Kernel) -> Iterator[Update | None]:
        """The space of all rows; the picture turns to it, and ends with all points."""
        space = self.space
        if not self.is_whole or space is None or len(self.data) > FINE:
            kernel_map, F = space_coordinates(kernel, self.data)
            chosen = kernel_map.landmark_indices_
            if chosen is not None and kernel.is_proven:
                self._landmarks = np.asarray(as_numpy(chosen))[:COARSE]
            yield None
            space = decomposed(kernel_map, F, self.data)
            yield None
        self._judge(space)
        yield None
        yield from self.look_at(space)
        yield read.readings_of(space, kernel, self.matrix_rows, self.data)

    def look_at(self, space: LiveSpace) -> Iterator[Update]:
        """Sketches while the plane turns, then all points."""
        self._planes = self._planes_of(space, None)
        for plane in self._planes:
            self.shown = plane
            if plane.arrived:
                break
            yield self._sketch("fine")
        self.space, self.plane = space, self.shown
        self.is_whole = True
        yield self._all_points()

    def settling(self) -> Iterator[Update]:
        """t-SNE goes on for a while; other pictures rest."""
        moved = False
        for plane in self._planes:
            self.shown = self.plane = plane
            yield self._sketch("fine")
            moved = True
        if moved:
            yield self._all_points()

    def _planes_of(self, space, rows):
        if self.view == TSNE:
            yield from self._tsne.frames(space, self.shown, rows)
            return
        for _ in range(MOST_TURNS):
            plane = projected(self.view, space, self.shown, rows)
            yield plane
            if plane.arrived:
                return
        yield projected(self.view, space, None, rows)

    def _judge(self, space, near=None):
        """Scores with the best penalty, which is remembered for the next first look."""
        space.judge(near)
        if space.alpha is not None:
            variance = float(space.values.sum()) / len(space.components)
            rounding = np.finfo(float).eps * float(space.diagonal.mean())
            # One point alone gives no unit: the next penalty is then searched anew.
            self.alpha = space.alpha / variance if variance > rounding else None

    def _sketch(self, stage) -> Update:
        assert self.shown is not None
        x, y = self.shown.at(self.drawn).T.astype(np.float32)
        return {"sketch": {"x": x, "y": y}, "stage": stage}

    def _all_points(self) -> Update:
        space, plane = self.present
        x, y = plane.points.T.astype(np.float32)
        wrong = np.zeros(len(self.data)) if space.judged is None else space.judged.wrong
        return {"points": {"x": x, "y": y, "wrong": wrong.astype(np.float32)}, "stage": "fine"}
