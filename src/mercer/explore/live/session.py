"""Session: all that the explorer knows and computes, without any page.

A request is a small dict, such as {"do": "turn", "knob": "gamma", "value": 0.1}. It is answered by
updates, the quick ones first: the caller shows each, and stops asking for more as soon as a newer
request waits. So a knob that moves is followed by coarse pictures, and refined when it rests.
"""

import base64
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import clone

from ...engine.arrays import as_numpy
from ...engine.threads import one_blas_thread
from ...kernels import Kernel, OnColumns, Projected
from ...kernels.expressions import KERNELS, parse_kernel
from ...learn import learn_kernel
from ...learn.gradients import has_gradient
from ..compare.measures import BY_CONSTRUCTION, REFUTED
from ..compare.verdict import findings
from ..embeddings import PCA, TSNE
from .beliefs import believed
from .code import code_of
from .data import Explored
from .knobs import Knob, knobs_of, turned
from .pictures import MovingTSNE, Plane, projected, views_for
from .rows import about_place, about_row, about_selection, as_csv
from .saving import COMPARED, comparison_of, verdict_of, write_files
from .scores import Curves, Judged, judged
from .space import COARSE, FINE, LiveSpace, space_of

Update = dict[str, Any]

# Kernels that the menu offers for vectors, the most used first.
OFFERED = (
    "RBF", "Laplacian", "Matern", "RationalQuadratic", "Periodic", "Linear", "Polynomial",
    "Cosine", "Sigmoid", "Constant",
)  # fmt: skip
FOR_COUNTS = ("Chi2", "Intersection", "Tanimoto")
MOST_KEPT = 4
# Rows of the kernel matrix, of the certificate, and of a learned metric.
MATRIX_ROWS, CERTIFIED, LEARNED_ROWS = 120, 60, 1500
# Bars of the spectrum.
SPECTRUM = 24
# What a wrong request raises; it is told to the person.
REFUSED = (ValueError, TypeError, ArithmeticError, ImportError, OSError, MemoryError, LookupError)


@dataclass(frozen=True)
class Kept:
    """A space that was kept, to look at beside the next."""

    name: str
    kernel: Kernel
    plane: Plane
    score: float | None


class Session:
    """What is explored: data, a kernel, the view, and what was kept.

    Parameters
    ----------
    data : Explored
    kernel : Kernel
    folder : where files are written when asked for
    """

    def __init__(self, data: Explored, kernel: Kernel, folder: str | Path = "mercer-explore"):
        self.data, self.kernel, self.folder = data, kernel, Path(folder)
        self.kernel.check_parameters()
        self.A: np.ndarray | None = None  # the learned metric, where it is on
        self.before_metric: Kernel | None = None
        self.view = PCA
        self.views = views_for(data)
        self.landmarks = np.random.default_rng(0).permutation(len(data))[:COARSE]
        self.space: LiveSpace | None = None
        self.plane: Plane | None = None
        self.judge: Judged | None = None
        self.kept: list[Kept] = []
        self.selected = np.empty(0, dtype=int)
        self.columns = [int(data.X.var(axis=0).argmax())] if data.vectors else []
        self.knobs: list[Knob] = []
        self._curves = Curves(data) if data.targets is not None else None
        self._known_curves: dict[tuple[str, str], list[tuple[float, float]]] = {}
        self._tsne = MovingTSNE(data)
        # A row or a place that was clicked, and the rows nearest to it.
        self.focus: int | tuple[float, float] | None = None
        self._near: list[int] = []
        self._alpha: float | None = None  # the last penalty, relative to the mean variance
        self._matrix_rows = _rows_by_class(data)

    @property
    def full_kernel(self) -> Kernel:
        """The kernel with its learned metric, where that is on."""
        return self.kernel if self.A is None else Projected(self.kernel, self.A)

    # --- requests ---------------------------------------------------------------------------------

    def answer(self, request: dict[str, Any]) -> Iterator[Update]:
        """Updates for one request; what is refused is told, and changes nothing."""
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
            },
            "views": self.views,
            "view": self.view,
            "belief_columns": self.columns,
            "kept": self._kept_records(),
            "selection": about_selection(self.selected, data),
        }
        yield {"points": self._kept_points()}
        yield from self._changed(self.kernel, keeps_metric=True)

    def _typed(self, request):
        yield from self._changed(parse_kernel(str(request.get("expression", ""))))

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
        yield from self._changed(made)

    def _turned(self, request):
        knob = next((k for k in self.knobs if k.name == request.get("knob")), None)
        if knob is None:
            raise ValueError(f"no knob {request.get('knob')!r} on {self.kernel!r}.")
        kernel = turned(self.kernel, knob, float(request["value"]))
        self.data.bound(kernel)
        before, self.kernel = self.kernel, kernel
        try:
            yield from self._frames(request.get("id"))
        except REFUSED:
            self.kernel = before
            raise

    def _viewed(self, request):
        if request.get("view") not in self.views:
            raise ValueError(f"view must be one of {self.views}, got {request.get('view')!r}.")
        self.view = request["view"]
        yield {"view": self.view}
        yield from self._pictures(request.get("id"))

    def _believed_columns(self, request):
        columns = [self.data.names.index(str(c)) for c in request.get("columns") or []]
        if not 1 <= len(columns) <= 2:
            raise ValueError("functions are drawn over one column or two.")
        self.columns = columns
        yield {"belief_columns": columns, "belief": believed(self.full_kernel, self.data, columns)}

    def _metric(self, request):
        if not request.get("on"):
            if self.before_metric is not None:
                self.A, kernel, self.before_metric = None, self.before_metric, None
                yield from self._changed(kernel, keeps_metric=True)
            return
        data = self.data
        if not data.vectors or data.task is None:
            raise ValueError("a metric is learned from a target: start the explorer with one.")
        bound = data.bound(self.kernel)
        if not has_gradient(bound):
            raise ValueError(
                f"a metric cannot be learned for {self.kernel!r}: use RBF, Matern with nu 0.5, 1.5 "
                "or 2.5, or sums of these, on all columns."
            )
        yield {"status": "Learning a metric …"}
        rows = np.random.default_rng(0).permutation(len(data))[:LEARNED_ROWS]
        y = np.asarray(data.target)[rows]
        learned = learn_kernel(
            data.X[rows],
            y.astype(str) if data.task == "classes" else y,
            bound,
            task="classification" if data.task == "classes" else "regression",
            max_landmarks=300,
            n_rounds=5,
            random_state=0,
        )
        found: Any = learned.kernel
        self.before_metric = self.kernel
        self.A = np.asarray(found.A)
        self._importances = learned.importances
        yield from self._changed(_rounded(found.kernel), keeps_metric=True)

    # --- frames -----------------------------------------------------------------------------------

    def _changed(self, kernel: Kernel, *, keeps_metric: bool = False) -> Iterator[Update]:
        """Another kernel: its knobs, then frames. Refused kernels leave the last one in place."""
        if kernel.kind == "gram":
            raise ValueError("Precomputed() is a matrix, not a kernel on these rows.")
        if not keeps_metric:
            self.A = self.before_metric = None
        full = kernel if self.A is None else Projected(kernel, self.A)
        few = self.data.take(np.arange(min(5, len(self.data))))
        bound = self.data.bound(full)
        bound.points(few)
        bound(few)
        self.kernel = kernel
        self.knobs = self._find_knobs(kernel)
        self._alpha = None
        yield {
            "expression": repr(kernel),
            "metric": self._metric_record(),
            "knobs": [knob.record() | {"curve": self._known_curve(knob)} for knob in self.knobs],
        }
        yield from self._frames(None)

    def _find_knobs(self, kernel):
        if self.A is None:
            return knobs_of(kernel, self.data)
        # Under a metric the kernel sees other columns; marks are the values that learning found.
        seen = Explored(
            X=self.data.X @ self.A,
            names=[f"direction {j}" for j in range(self.A.shape[1])],
            task=None,
            target=None,
            rows=self.data.rows,
            given=self.data.given,
            usable=self.data.usable,
        )
        return knobs_of(kernel, seen)

    def _frames(self, asked) -> Iterator[Update]:
        """The coarse space, the fine one, and the curves under the knobs."""
        data, kernel = self.data, self.full_kernel
        # Matrices are small: threads of BLAS would wait for each other, and for the browser.
        with one_blas_thread():
            self._use(space_of(kernel, data, self.landmarks, near=self._alpha))
        yield from self._pictures(asked, "coarse", once=True)
        if len(data) > FINE:
            space = space_of(kernel, data)
            chosen = space.kernel_map.landmark_indices_
            if chosen is not None and kernel.is_proven:
                self.landmarks = np.asarray(as_numpy(chosen))[:COARSE]
        else:
            assert self.space is not None
            space = self.space  # exact already; only the penalty is searched for once more
            if space.alpha is not None:
                space.alpha = space.path.best()[0]
        self._use(space)
        if self.view == TSNE:
            yield self._frame("fine", asked)  # its points go on moving at the end
        else:
            yield from self._pictures(asked, "fine", once=True)
        yield {"certificate": self._certificate(), "code": self.code()}
        if isinstance(self.focus, int):
            yield self._about_focus()
        if self.columns:
            yield {"belief": believed(kernel, data, self.columns)}
        for knob in self.knobs:
            yield {"curves": {knob.name: self._curve(knob)}}
        if self.view == TSNE:
            yield from self._pictures(asked, "fine")

    def _use(self, space):
        self.space = space
        self.judge = judged(space, self.data)
        if space.alpha is not None:
            self._alpha = space.alpha / max(space.path.scale, 1e-300)

    def _pictures(self, asked, stage="fine", once=False) -> Iterator[Update]:
        """The view of the present space; t-SNE goes on for a while unless it is `once`."""
        if self.space is None:
            return
        if self.view == TSNE:
            planes = self._tsne.frames(self.space, self.plane)
        else:
            planes = iter([projected(self.view, self.space, self.data, self.plane)])
        for plane in planes:
            self.plane = plane
            yield self._frame(stage, asked)
            if once:
                return

    def _frame(self, stage, asked) -> Update:
        space, judge = self.space, self.judge
        assert space is not None
        assert self.plane is not None
        wrong = np.zeros(len(self.data)) if judge is None else judge.wrong
        return {
            "points": {
                "x": self.plane.points[:, 0].astype(np.float32),
                "y": self.plane.points[:, 1].astype(np.float32),
                "wrong": wrong.astype(np.float32),
            },
            "marks": self._marks(),
            "stage": stage,
            "answers": asked,
            "expression": repr(self.kernel),
            "numbers": self._numbers(),
            "spectrum": self._spectrum(),
            "matrix": self._matrix(),
            "findings": self._findings(),
        }

    def _numbers(self):
        space, judge = self.space, self.judge
        return {
            "score": None if judge is None else judge.score,
            "score_name": None if judge is None else judge.name,
            "wrong": 0 if judge is None else int(judge.wrong.sum()),
            "alpha": space.alpha,
            "rank": space.rank,
            "rank_is_bound": not space.exact,
            "dimension": space.effective_dimension,
            "missed": float(space.residuals.mean()),
            "worst": float(space.residuals.max(initial=0.0)),
            "exact": space.exact,
            "landmarks": space.rank,
            "validity": space.validity,
        }

    def _spectrum(self):
        """Shares of the variance, in percent; what the landmarks miss is in the total."""
        space = self.space
        total = float(space.values.sum() + space.residuals @ space.diagonal)
        shares = 100 * space.values[:SPECTRUM] / (total or 1.0)
        return [round(float(v), 3) for v in shares]

    def _findings(self):
        space = self.space
        measures = SimpleNamespace(
            validity=space.validity,
            longest_share=space.longest_share,
            effective_dimension=space.effective_dimension,
            relative_variance=space.relative_variance,
        )
        return [f"{text[0].upper()}{text[1:]}." for text in findings(
            measures, len(self.data), self.kernel
        )]  # fmt: skip

    def _matrix(self):
        """k among some rows, ordered by class, as bytes from the smallest to the largest value."""
        rows = self._matrix_rows
        kernel = self.space.kernel_map.kernel_
        K = np.asarray(as_numpy(kernel(self.data.take(rows))), dtype=float)
        low, high = float(K.min()), float(K.max())
        scaled = (K - low) / (high - low) if high > low else np.zeros_like(K)
        return {
            "size": len(rows),
            "low": low,
            "high": high,
            "rows": rows.tolist(),
            "bytes": base64.b64encode((255 * scaled).round().astype(np.uint8).tobytes()).decode(),
        }

    def _certificate(self):
        """A bound for the inner products of the coordinates, on some rows; None without one."""
        space = self.space
        if space.validity == REFUTED or space.kernel_map.correction_:
            return {"bound": None, "proven": False, "rows": 0}
        some = np.linspace(0, len(self.data) - 1, min(CERTIFIED, len(self.data))).astype(int)
        bound = np.asarray(as_numpy(space.kernel_map.error_bound(self.data.take(some))))
        size = float(np.sqrt(space.diagonal[some].max(initial=0.0)) ** 2) or 1.0
        return {
            "bound": float(bound.max()) / size,
            "proven": space.validity == BY_CONSTRUCTION,
            "rows": len(some),
        }

    # --- curves -----------------------------------------------------------------------------------

    def _curve_key(self, knob):
        neutral = clone(self.kernel).set_params(**{knob.name: 1})
        return knob.name, f"{neutral!r} {id(self.A) if self.A is not None else ''}"

    def _known_curve(self, knob):
        return self._known_curves.get(self._curve_key(knob), [])

    def _curve(self, knob):
        """[[value, score], ...] along the knob, all other numbers as they are now."""
        if self._curves is None:
            return []
        key = self._curve_key(knob)
        if key not in self._known_curves:
            if self.A is None:
                found = self._curves.along(self.kernel, knob)
            else:
                inside = Knob(**{**knob.record(), "name": f"kernel__{knob.name}"})
                found = self._curves.along(self.full_kernel, inside)
            self._known_curves[key] = found
        return self._known_curves[key]

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
        """A click: the row under it, or the place where there is none."""
        x, y = float(request["x"]), float(request["y"])
        if not (math.isfinite(x) and math.isfinite(y)):
            raise ValueError("a place needs two finite numbers.")
        if self.plane is None:
            return
        apart = np.hypot(*(self.plane.points - [x, y]).T)
        nearest = int(apart.argmin())
        on_a_row = apart[nearest] <= float(request.get("reach", 0.0))
        self.focus = nearest if on_a_row else (x, y)
        yield self._about_focus()

    def _row(self, request):
        i = int(request["index"])
        if not 0 <= i < len(self.data):
            raise ValueError(f"row {i} is not one of the {len(self.data)} shown.")
        if self.space is not None and self.plane is not None:
            self.focus = i
            yield self._about_focus()

    def _forgotten(self, request):
        self.focus, self._near = None, []
        yield {"about_point": None, "marks": self._marks()}

    def _about_focus(self) -> Update:
        assert self.space is not None
        assert self.plane is not None
        focus, plane = self.focus, self.plane
        if isinstance(focus, tuple):
            about = about_place(*focus, self.space, plane, self.data)
        else:
            assert focus is not None
            about = about_row(focus, self.space, plane, self.data, self.judge)
        self._near = [near["index"] for near in about["neighbours"]]
        return {"about_point": about, "marks": self._marks()}

    def _marks(self):
        """Places to ring in the picture: what was clicked first, then its nearest rows."""
        if self.focus is None or self.plane is None:
            return {"x": [], "y": [], "size": []}
        here = self.focus if isinstance(self.focus, tuple) else self.plane.points[self.focus]
        places = [here, *self.plane.points[self._near]]
        return {
            "x": [float(p[0]) for p in places],
            "y": [float(p[1]) for p in places],
            "size": [18.0] + [12.0] * len(self._near),
        }

    # --- keeping ----------------------------------------------------------------------------------

    def _keep(self, request):
        if self.plane is None or len(self.kept) >= MOST_KEPT:
            raise ValueError(f"{MOST_KEPT} spaces are kept already: let one go first.")
        name = repr(self.kernel) + (" with a learned metric" if self.A is not None else "")
        if any(kept.name == name for kept in self.kept):
            raise ValueError(f"{name} is kept already.")
        score = None if self.judge is None else self.judge.score
        self.kept.append(Kept(name, self.full_kernel, self.plane, score))
        yield {"kept": self._kept_records(), "points": self._kept_points()}

    def _drop(self, request):
        place = int(request["place"])
        if not 0 <= place < len(self.kept):
            raise ValueError("this space is not kept any more.")
        del self.kept[place]
        yield {"kept": self._kept_records(), "points": self._kept_points(), "comparison": None}

    def _kept_records(self):
        return [
            {"name": k.name, "score": k.score, "view": k.plane.name, "place": place}
            for place, k in enumerate(self.kept)
        ]

    def _kept_points(self):
        found = {}
        for place in range(MOST_KEPT):
            points = self.kept[place].plane.points if place < len(self.kept) else None
            for axis, letter in enumerate("xy"):
                column = np.zeros(len(self.data)) if points is None else points[:, axis]
                found[f"{letter}{place}"] = column.astype(np.float32)
        return found

    def kernels(self) -> dict[str, Kernel]:
        """Those kept and the present one, by name."""
        name = repr(self.kernel) + (" with a learned metric" if self.A is not None else "")
        return {kept.name: kept.kernel for kept in self.kept} | {name: self.full_kernel}

    def _compared(self, request):
        yield {"status": "Comparing …"}
        found = comparison_of(self.kernels(), self.data, max_points=COMPARED, embeddings=[])
        yield {"comparison": verdict_of(found), "status": ""}

    def _saved(self, request):
        assert self.space is not None
        yield {"status": f"Writing to {self.folder} …"}
        paths = write_files(self.folder, self.full_kernel, self.kernels(), self.space, self.data)
        yield {"saved": paths, "status": ""}

    def code(self) -> str:
        """Python lines that make the present model."""
        if self.space is None:
            return ""
        return code_of(self.full_kernel, self.space, self.data, self.before_metric)

    def _metric_record(self):
        if self.A is None:
            return {"on": False}
        order = np.argsort(-self._importances, kind="stable")[:5]
        return {
            "on": True,
            "importances": [
                [self.data.names[j], round(float(self._importances[j]), 4)] for j in order
            ],
        }


def _rounded(kernel):
    """Numbers that learning found, in four digits, so that they can be read."""
    changed = {
        name: float(f"{value:.4g}")
        for name, value in kernel.get_params(deep=True).items()
        if isinstance(value, float)
    }
    return clone(kernel).set_params(**changed)


def _rows_by_class(data):
    """Rows of the kernel matrix: a part of every class, class by class; or ordered by number."""
    order = np.random.default_rng(1).permutation(len(data))[:MATRIX_ROWS]
    if data.targets is None:
        return np.sort(order)
    key = data.codes if data.codes is not None else data.targets[:, 0]
    return order[np.argsort(np.asarray(key)[order], kind="stable")]
