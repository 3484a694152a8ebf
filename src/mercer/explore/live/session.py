"""Session: all that the explorer knows and computes, without any page.

A request is a small dict, such as {"do": "turn", "knob": "gamma", "value": 0.1}. It is answered by
updates, the quick ones first: the caller shows each, and stops asking for more as soon as a newer
request waits. So a knob that moves is followed by first looks, and by all points when it rests.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from ... import Kernel, OnColumns, Projected, learn_kernel, parse_kernel, save
from ...kernels import KERNELS
from ..compare.model import fit_model
from ..compare.tuning import rounded
from ..data import Explored
from . import readings
from . import saved_views as views
from .animation import Animation, Update
from .knobs import Curves, Knob, knobs_of, turned
from .row_facts import Pointer, about_selection, as_csv

_Request = dict[str, Any]
_Updates = Iterator[Update | None]
# An empty update: the ones after it may wait until no request has come for a moment.
REST: Update = {}
# Errors of wrong requests, which the page shows.
_REFUSED = (ValueError, TypeError, ArithmeticError, ImportError, OSError, MemoryError, LookupError)


class Session:
    """A session of the explorer: data, a kernel, the view, what was kept, a folder for files."""

    def __init__(self, data: Explored, kernel: Kernel, folder: str | Path = "mercer-explore"):
        self.data, self.kernel, self.folder = data, kernel, Path(folder)
        self.kernel.check_parameters()
        self.metric: _LearnedMetric | None = None
        self.animation = Animation(data)
        self.pointer = Pointer(data)
        self.saved_views: list[views.SavedView] = []
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

    def code(self) -> str:
        """Python lines that make the present model."""
        space = self.animation.space
        if space is None:
            return ""
        before = None if self.metric is None else self.metric.before
        return views.model_code(self.full_kernel, space, self.data, before)

    # --- requests ---------------------------------------------------------------------------------

    def answer(self, request: _Request) -> _Updates:
        """Updates for one request; what is refused is told, and changes nothing. None and REST tell
        nothing: a newer request may come in between."""
        try:
            action = getattr(self, f"_do_{request.get('do')}", None)
            if action is None:
                raise ValueError(f"unknown request {request.get('do')!r}.")
            yield from action(request)
        except _REFUSED as error:
            yield {"error": str(error) or type(error).__name__, "for": str(request.get("do"))}

    def _do_hello(self, request: _Request) -> _Updates:
        data, vectors, drawn = self.data, self.data.vectors, self.animation.drawn
        yield {
            "about": {
                "rows": len(data),
                "columns": len(data.names) if vectors else None,
                "task": data.task,
                "target": data.target_name if data.task else None,
                "classes": data.classes,
                "notes": data.notes,
                "offered": _offered_kernels(data),
                "names": data.names if vectors else [],
                "metric_possible": vectors and data.task is not None,
                "matrix_rows": self.animation.matrix_rows.tolist(),
            },
            "drawn": None if drawn is None else drawn.tolist(),
            "views": self.animation.views,
            "view": self.animation.view,
            "prior_columns": self.columns,
            "selection": about_selection(self.selected, data),
        } | views.shown_views(self.saved_views)
        yield from self._changed(self.kernel, self.metric)

    # --- the kernel -------------------------------------------------------------------------------

    def _do_type(self, request: _Request) -> _Updates:
        yield from self._changed(parse_kernel(str(request.get("expression", ""))), None)

    def _do_build(self, request: _Request) -> _Updates:
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
        if how != "replace":
            part = self.kernel + part if how == "add" else self.kernel * part
        yield from self._changed(part, None)

    def _do_turn(self, request: _Request) -> _Updates:
        knob = next((k for k in self.knobs if k.name == request.get("knob")), None)
        if knob is None:
            raise ValueError(f"no knob {request.get('knob')!r} on {self.kernel!r}.")
        kernel = turned(self.kernel, knob, float(request["value"]))
        self.data.bound(kernel)
        before, self.kernel = self.kernel, kernel
        try:
            yield from self._frames(request.get("id"), can_wait=True)
        except _REFUSED:
            self.kernel = before
            raise

    def _do_metric(self, request: _Request) -> _Updates:
        if request.get("on"):
            yield {"status": "Learning a metric …"}
            yield from self._changed(*_learned_metric(self.kernel, self.data))
        elif self.metric is not None:
            yield from self._changed(self.metric.before, None)

    def _changed(self, kernel: Kernel, metric: "_LearnedMetric | None") -> _Updates:
        """Another kernel: its knobs, then frames. Refused kernels leave the last one in place."""
        kernel.layout.require_data("Precomputed() is a matrix, not a kernel on these rows.")
        full = kernel if metric is None else metric.under(kernel)
        few = self.data.take(np.arange(min(5, len(self.data))))
        full.points(few)  # before a rule for gamma looks at columns that there are not
        self.data.bound(full)(few)
        if metric is not self.metric:  # the same names stand for other kernels
            self._curves = Curves(self.data)
        self.kernel, self.metric = kernel, metric
        seen = self.data
        told: Update = {"on": metric is not None}
        if metric is not None:
            names = [f"direction {j}" for j in range(metric.A.shape[1])]
            seen = replace(seen, X=seen.X @ metric.A, names=names, task=None, target=None)
            order = np.argsort(-metric.importances, kind="stable")[:_MOST_SHARES]
            shares = [round(float(share), 4) for share in metric.importances[order]]
            told["importances"] = [(self.data.names[j], s) for j, s in zip(order, shares)]
        self.knobs = knobs_of(kernel, seen)
        self.animation.alpha = None  # it says nothing of another kernel
        knobs = [
            asdict(knob) | {"curve": self._curves.along(full, self._inside(knob), new=False)}
            for knob in self.knobs
        ]
        yield {"expression": repr(kernel), "metric": told, "knobs": knobs}
        yield from self._frames(None)

    def _inside(self, knob: Knob) -> Knob:
        """The knob by its name in the kernel with the metric."""
        return knob if self.metric is None else replace(knob, name=f"kernel__{knob.name}")

    # --- the picture ------------------------------------------------------------------------------

    def _frames(self, asked: Any, can_wait: bool = False) -> _Updates:
        """The first look, all rows, and then the curves under the knobs."""
        kernel, animation = self.full_kernel, self.animation
        for update in self._marked(animation.first_look(kernel), asked):
            if update and "numbers" in update and self.columns:
                update["prior_draws"] = readings.prior_draws(kernel, self.data, self.columns)
            yield update
        if can_wait:
            yield REST
        yield from self._marked(animation.all_rows(kernel), asked)
        space, plane = animation.present
        yield {"certificate": readings.certificate(space), "code": self.code()}
        if isinstance(self.pointer.at, int):
            yield self.pointer.about(space, plane)
        for knob in self.knobs:
            yield {"curves": {knob.name: self._curves.along(kernel, self._inside(knob))}}
        yield from self._marked(animation.settling(), asked)

    def _marked(self, updates: _Updates, asked: Any) -> _Updates:
        """Updates, each picture with the marks and the request that belong to it."""
        for update in updates:
            if update and "stage" in update:
                update |= {
                    "marks": self.pointer.marks(self.animation.shown),
                    "answers": asked,
                    "expression": repr(self.kernel),
                }
            yield update

    def _all_rows(self) -> _Updates:
        """All rows of the present kernel, where only a first look was taken so far."""
        if not self.animation.is_whole:
            updates = self._marked(self.animation.all_rows(self.full_kernel), None)
            yield from (update for update in updates if update is not None)

    def _do_view(self, request: _Request) -> _Updates:
        animation, view = self.animation, request.get("view")
        if view not in animation.views:
            raise ValueError(f"view must be one of {animation.views}, got {view!r}.")
        animation.view = view
        yield {"view": view}
        if animation.space is None:
            return
        if animation.is_whole:
            yield from self._marked(animation.look_at(animation.space), request.get("id"))
        else:
            yield from self._all_rows()
        yield from self._marked(animation.settling(), request.get("id"))

    def _do_columns(self, request: _Request) -> _Updates:
        """Columns over which functions are drawn."""
        columns = [self.data.names.index(str(c)) for c in request.get("columns") or []]
        if not 1 <= len(columns) <= 2:
            raise ValueError("functions are drawn over one column or two.")
        self.columns = columns
        drawn = readings.prior_draws(self.full_kernel, self.data, columns)
        yield {"prior_columns": columns, "prior_draws": drawn}

    # --- points -----------------------------------------------------------------------------------

    def _do_select(self, request: _Request) -> _Updates:
        indices = np.asarray(request.get("indices") or [], dtype=int)
        if len(indices) and not (indices.min() >= 0 and indices.max() < len(self.data)):
            raise ValueError("a selected row is not one of those shown.")
        self.selected = np.unique(indices)
        yield {"selection": about_selection(self.selected, self.data)}

    def _do_export(self, request: _Request) -> _Updates:
        yield {"csv": as_csv(self.selected, self.data)}

    def _do_tap(self, request: _Request) -> _Updates:
        x, y, reach = (float(request.get(key, 0.0)) for key in ("x", "y", "reach"))
        yield from self._pointed((x, y), reach)

    def _do_row(self, request: _Request) -> _Updates:
        yield from self._pointed(int(request["index"]))

    def _pointed(self, at: int | tuple[float, float], reach: float = 0.0) -> _Updates:
        """Point at something of the present picture, and tell what is known of it."""
        if self.animation.space is None:
            return
        yield from self._all_rows()
        space, plane = self.animation.present
        self.pointer.point(at, plane, reach)
        yield self.pointer.about(space, plane)

    def _do_forget(self, request: _Request) -> _Updates:
        self.pointer = Pointer(self.data)
        yield {"about_point": None, "marks": self.pointer.marks(None)}

    # --- saved views ------------------------------------------------------------------------------

    def _do_keep(self, request: _Request) -> _Updates:
        yield from self._all_rows()
        space, plane = self.animation.present
        if len(self.saved_views) >= views.MOST_KEPT:
            raise ValueError(f"{views.MOST_KEPT} spaces are kept already: let one go first.")
        if any(view.name == self.name for view in self.saved_views):
            raise ValueError(f"{self.name} is kept already.")
        score = None if space.judged is None else space.judged.score
        self.saved_views.append(views.SavedView(self.name, self.full_kernel, plane, score))
        yield views.shown_views(self.saved_views)

    def _do_drop(self, request: _Request) -> _Updates:
        place = int(request["place"])
        if not 0 <= place < len(self.saved_views):
            raise ValueError("this space is not kept any more.")
        del self.saved_views[place]
        yield views.shown_views(self.saved_views) | {"comparison": None}

    def kernels(self) -> dict[str, Kernel]:
        """Those kept and the present one, by name."""
        return {view.name: view.kernel for view in self.saved_views} | {self.name: self.full_kernel}

    def _do_compare(self, request: _Request) -> _Updates:
        yield {"status": "Comparing …"}
        options: Any = {"max_points": views.COMPARED, "embeddings": []}
        found = views.comparison_of(self.kernels(), self.data, **options)
        yield {"comparison": views.verdict_of(found), "status": ""}

    def _do_save(self, request: _Request) -> _Updates:
        yield from self._all_rows()
        yield {"status": f"Writing to {self.folder} …"}
        model, report = self.folder / "model.mercer", self.folder / "report.html"
        self.folder.mkdir(parents=True, exist_ok=True)
        space, _ = self.animation.present
        save(fit_model(views.model_of(self.full_kernel, space, self.data), self.data), model)
        found = views.comparison_of(self.kernels(), self.data, max_points=views.REPORTED)
        found.to_html(report, title="Kernels explored")
        yield {"saved": [str(model), str(report)], "status": ""}


def _offered_kernels(data: Explored) -> list[str]:
    """Kernels for the menu: those on vectors that need no argument, the most used first."""
    if not data.vectors:
        return []
    negative, names = bool(data.X.min() < 0), []
    for name in sorted(KERNELS, key=lambda name: (name != "RBF", name)):
        with suppress(TypeError, ValueError):  # one that needs an argument
            kernel = parse_kernel(f"{name}()")
            if kernel.kind in ("vectors", "any") and not (kernel.non_negative_only and negative):
                names.append(name)
    return names


# --- a metric learned from the target -------------------------------------------------------------

LEARNED_ROWS, LANDMARKS, ROUNDS = 1500, 300, 5
# Columns whose share is shown.
_MOST_SHARES = 5


@dataclass(frozen=True)
class _LearnedMetric:
    """Directions A that were learned, the kernel before, and how much each column counts."""

    A: np.ndarray
    before: Kernel
    importances: np.ndarray

    def under(self, kernel: Kernel) -> Kernel:
        """The kernel on the learned directions."""
        return Projected(kernel, self.A)


def _learned_metric(kernel: Kernel, data: Explored) -> tuple[Kernel, _LearnedMetric]:
    """(kernel with learned numbers, metric), from some of the rows."""
    if not data.vectors or data.task is None:
        raise ValueError("a metric is learned from a target: start the explorer with one.")
    bound = data.bound(kernel)
    if not bound.has_slope:
        raise ValueError(
            f"a metric cannot be learned for {kernel!r}: use RBF, Matern with nu 0.5, 1.5 "
            "or 2.5, or sums of these, on all columns."
        )
    rows = np.random.default_rng(0).permutation(len(data))[:LEARNED_ROWS]
    y = np.asarray(data.target)[rows]
    learned = learn_kernel(
        data.X[rows],
        y.astype(str) if data.task == "classification" else y,
        bound,
        task=data.task,
        max_landmarks=LANDMARKS,
        n_rounds=ROUNDS,
        random_state=0,
    )
    found: Any = learned.kernel
    given = found.kernel.get_params(deep=True)
    # Numbers that learning found, in four digits, so that they can be read.
    changed = {name: rounded(value) for name, value in given.items() if isinstance(value, float)}
    readable = clone(found.kernel).set_params(**changed)
    return readable, _LearnedMetric(np.asarray(found.A), kernel, np.asarray(learned.importances))
