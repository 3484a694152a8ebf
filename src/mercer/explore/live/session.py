"""Session: all that the explorer knows and computes, without any page.

A request is a small dict, such as {"do": "turn", "knob": "gamma", "value": 0.1}. It is answered by
updates, the quick ones first: the caller shows each, and stops asking for more as soon as a newer
request waits. So a knob that moves is followed by first looks, and by all points when it rests.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...kernels import Kernel, OnColumns
from ...kernels.expressions import KERNELS, parse_kernel
from . import readings
from .animation import Animation, Update
from .code import code_of
from .data import Explored
from .knobs import Knob, knobs_of, turned
from .learned_metric import LearnedMetric, learned_metric
from .live_scores import Curves
from .pointing import Pointer
from .priors import prior_draws
from .rows import about_selection, as_csv
from .saved_views import SavedView, SavedViews
from .saving import COMPARED, comparison_of, verdict_of, write_files

# An update that tells nothing: what follows it can wait until the hand rests.
REST: Update = {}
# Kernels that the menu offers for vectors, the most used first.
OFFERED = (
    "RBF", "Laplacian", "Matern", "RationalQuadratic", "Periodic", "Linear", "Polynomial",
    "Cosine", "Sigmoid", "Constant",
)  # fmt: skip
FOR_COUNTS = ("Chi2", "Intersection", "Tanimoto")
# What a wrong request raises; it is told to the person.
REFUSED = (ValueError, TypeError, ArithmeticError, ImportError, OSError, MemoryError, LookupError)


class Session:
    """A session of the explorer: data, a kernel, the view, and what was kept.

    Parameters
    ----------
    data : Explored
    kernel : Kernel
    folder : where files are written when asked for
    """

    def __init__(self, data: Explored, kernel: Kernel, folder: str | Path = "mercer-explore"):
        self.data, self.kernel, self.folder = data, kernel, Path(folder)
        self.kernel.check_parameters()
        self.metric: LearnedMetric | None = None
        self.moving = Animation(data)
        self.pointer = Pointer(data)
        self.kept = SavedViews()
        self.selected = np.empty(0, dtype=int)
        self.columns = [int(data.X.var(axis=0).argmax())] if data.vectors else []
        self.knobs: list[Knob] = []
        self._curves = Curves(data)

    @property
    def full_kernel(self) -> Kernel:
        """The kernel with its learned metric, where that is on."""
        return self.kernel if self.metric is None else self.metric.under(self.kernel)

    @property
    def name(self) -> str:
        """The kernel as it is called when it is kept or compared."""
        return repr(self.kernel) + ("" if self.metric is None else " with a learned metric")

    # --- requests ---------------------------------------------------------------------------------

    def answer(self, request: dict[str, Any]) -> Iterator[Update | None]:
        """Updates for one request; what is refused is told, and changes nothing.

        None and REST tell nothing: a newer request may come in between.
        """
        actions = {
            "hello": self._hello,
            "type": self._typed,
            "build": self._built,
            "turn": self._turned,
            "view": self._viewed,
            "metric": self._metric,
            "columns": self._believed_columns,
            "select": self._selected,
            "export": self._exported,
            "tap": self._tapped,
            "row": self._row,
            "forget": self._forgotten,
            "keep": self._keep,
            "drop": self._drop,
            "compare": self._compared,
            "save": self._saved,
        }
        try:
            action = actions.get(str(request.get("do")))
            if action is None:
                raise ValueError(f"unknown request {request.get('do')!r}.")
            yield from action(request)
        except REFUSED as error:
            yield {"error": str(error) or type(error).__name__, "for": str(request.get("do"))}

    def _hello(self, request):
        data = self.data
        vectors = data.vectors
        offered = [*OFFERED]
        if vectors and data.X.min() >= 0:
            offered += FOR_COUNTS
        yield {
            "about": {
                "rows": len(data),
                "columns": len(data.names) if vectors else None,
                "task": data.task,
                "target": data.target_name if data.task else None,
                "classes": data.classes,
                "notes": data.notes,
                "offered": offered if vectors else [],
                "names": data.names if vectors else [],
                "images": data.image_shape is not None,
                "metric_possible": vectors and data.task is not None,
                "matrix_rows": self.moving.matrix_rows.tolist(),
            },
            "drawn": None if self.moving.drawn is None else self.moving.drawn.tolist(),
            "views": self.moving.views,
            "view": self.moving.view,
            "belief_columns": self.columns,
            "selection": about_selection(self.selected, data),
        } | self.kept.update()
        yield from self._changed(self.kernel, self.metric)

    def _typed(self, request):
        yield from self._changed(parse_kernel(str(request.get("expression", ""))), None)

    def _built(self, request):
        """Replace, add or multiply by a kernel of the menu, on all or on some columns."""
        name, how = str(request.get("kernel")), request.get("how")
        if name not in KERNELS or how not in ("replace", "add", "multiply"):
            raise ValueError(f"unknown kernel {name!r} or way {how!r} to combine it.")
        part: Kernel = parse_kernel(f"{name}()")
        columns = [str(c) for c in request.get("columns") or []]
        unknown = [c for c in columns if c not in self.data.names]
        if unknown:
            raise ValueError(f"no column named {unknown[0]!r}.")
        if columns:
            part = OnColumns(part, columns)
        made = {
            "replace": lambda: part,
            "add": lambda: self.kernel + part,
            "multiply": lambda: self.kernel * part,
        }[how]()
        yield from self._changed(made, None)

    def _turned(self, request):
        knob = next((k for k in self.knobs if k.name == request.get("knob")), None)
        if knob is None:
            raise ValueError(f"no knob {request.get('knob')!r} on {self.kernel!r}.")
        kernel = turned(self.kernel, knob, float(request["value"]))
        self.data.bound(kernel)
        before, self.kernel = self.kernel, kernel
        try:
            yield from self._frames(request.get("id"), can_wait=True)
        except REFUSED:
            self.kernel = before
            raise

    def _metric(self, request):
        if request.get("on"):
            yield {"status": "Learning a metric …"}
            yield from self._changed(*learned_metric(self.kernel, self.data))
        elif self.metric is not None:
            yield from self._changed(self.metric.before, None)

    # --- the picture ------------------------------------------------------------------------------

    def _changed(self, kernel: Kernel, metric: LearnedMetric | None) -> Iterator[Update | None]:
        """Another kernel: its knobs, then frames. Refused kernels leave the last one in place."""
        kernel.layout.require_data("Precomputed() is a matrix, not a kernel on these rows.")
        full = kernel if metric is None else metric.under(kernel)
        few = self.data.take(np.arange(min(5, len(self.data))))
        bound = self.data.bound(full)
        bound.points(few)
        bound(few)
        if metric is not self.metric:
            self._curves.forget()
        self.kernel, self.metric = kernel, metric
        self.knobs = knobs_of(kernel, self.data if metric is None else metric.seen(self.data))
        self.moving.another_kernel()
        yield {
            "expression": repr(kernel),
            "metric": {"on": False}
            if metric is None
            else {"on": True, "importances": metric.shares(self.data.names)},
            "knobs": [
                knob.record() | {"curve": self._curves.known(full, self._inside(knob))}
                for knob in self.knobs
            ],
        }
        yield from self._frames(None)

    def _inside(self, knob: Knob) -> Knob:
        """The knob by its name in the kernel with the metric."""
        if self.metric is None:
            return knob
        return Knob(**{**knob.record(), "name": f"kernel__{knob.name}"})

    def _frames(self, asked, can_wait=False) -> Iterator[Update | None]:
        """The first look, all rows, and then the curves under the knobs."""
        kernel, moving = self.full_kernel, self.moving
        for update in moving.first_look(kernel):
            if "numbers" in update and self.columns:
                update["belief"] = prior_draws(kernel, self.data, self.columns)
            yield self._with_marks(update, asked)
        if can_wait:
            yield REST
        for found in moving.all_rows(kernel):
            yield None if found is None else self._with_marks(found, asked)
        space, plane = moving.present
        yield {"certificate": readings.certificate(space, self.data), "code": self.code()}
        if isinstance(self.pointer.at, int):
            yield self.pointer.about(space, plane, moving.judge)
        for knob in self.knobs:
            yield {"curves": {knob.name: self._curves.along(kernel, self._inside(knob))}}
        for update in moving.settling():
            yield self._with_marks(update, asked)

    def _with_marks(self, update: Update, asked) -> Update:
        """An update with what belongs to each picture."""
        if "stage" not in update:
            return update
        return update | {
            "marks": self.pointer.marks(self.moving.shown),
            "answers": asked,
            "expression": repr(self.kernel),
        }

    def _all_rows(self):
        """All rows of the present kernel, where only a first look was taken so far."""
        if not self.moving.is_whole:
            for update in self.moving.all_rows(self.full_kernel):
                if update is not None:
                    yield self._with_marks(update, None)

    def _viewed(self, request):
        views = self.moving.views
        if request.get("view") not in views:
            raise ValueError(f"view must be one of {views}, got {request.get('view')!r}.")
        self.moving.view = request["view"]
        yield {"view": self.moving.view}
        if self.moving.space is None:
            return
        if self.moving.is_whole:
            for update in self.moving.look_again():
                yield self._with_marks(update, request.get("id"))
        else:
            yield from self._all_rows()
        for update in self.moving.settling():
            yield self._with_marks(update, request.get("id"))

    def _believed_columns(self, request):
        columns = [self.data.names.index(str(c)) for c in request.get("columns") or []]
        if not 1 <= len(columns) <= 2:
            raise ValueError("functions are drawn over one column or two.")
        self.columns = columns
        yield {
            "belief_columns": columns,
            "belief": prior_draws(self.full_kernel, self.data, columns),
        }

    # --- points -----------------------------------------------------------------------------------

    def _selected(self, request):
        indices = np.asarray(request.get("indices") or [], dtype=int)
        if len(indices) and not (indices.min() >= 0 and indices.max() < len(self.data)):
            raise ValueError("a selected row is not one of those shown.")
        self.selected = np.unique(indices)
        yield {"selection": about_selection(self.selected, self.data)}

    def _exported(self, request):
        yield {"csv": as_csv(self.selected, self.data)}

    def _tapped(self, request):
        x, y, reach = (float(request.get(key, 0.0)) for key in ("x", "y", "reach"))
        yield from self._pointed(lambda plane: self.pointer.tap(x, y, reach, plane))

    def _row(self, request):
        yield from self._pointed(lambda plane: self.pointer.choose(int(request["index"])))

    def _pointed(self, point):
        """Point at something of the present picture, and tell what is known of it."""
        if self.moving.space is None:
            return
        yield from self._all_rows()
        space, plane = self.moving.present
        point(plane)
        yield self.pointer.about(space, plane, self.moving.judge)

    def _forgotten(self, request):
        self.pointer.forget()
        yield {"about_point": None, "marks": self.pointer.marks(None)}

    # --- keeping ----------------------------------------------------------------------------------

    def _keep(self, request):
        yield from self._all_rows()
        _, plane = self.moving.present
        judge = self.moving.judge
        score = None if judge is None else judge.score
        self.kept.keep(SavedView(self.name, self.full_kernel, plane, score))
        yield self.kept.update()

    def _drop(self, request):
        self.kept.drop(int(request["place"]))
        yield self.kept.update() | {"comparison": None}

    def kernels(self) -> dict[str, Kernel]:
        """Those kept and the present one, by name."""
        return {kept.name: kept.kernel for kept in self.kept} | {self.name: self.full_kernel}

    def _compared(self, request):
        yield {"status": "Comparing …"}
        found = comparison_of(self.kernels(), self.data, max_points=COMPARED, embeddings=[])
        yield {"comparison": verdict_of(found), "status": ""}

    def _saved(self, request):
        yield from self._all_rows()
        yield {"status": f"Writing to {self.folder} …"}
        space, _ = self.moving.present
        paths = write_files(self.folder, self.full_kernel, self.kernels(), space, self.data)
        yield {"saved": paths, "status": ""}

    def code(self) -> str:
        """Python lines that make the present model."""
        space = self.moving.space
        if space is None:
            return ""
        before = None if self.metric is None else self.metric.before
        return code_of(self.full_kernel, space, self.data, before)
