"""The page: pictures of points by Bokeh, everything else by plain HTML that is filled as text."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from bokeh.document import Document
from bokeh.document.events import MessageSentEvent
from bokeh.models import ColumnDataSource, Range1d
from bokeh.plotting import figure
from jinja2 import Environment, FileSystemLoader

from ..plots.style import MOST_IN_LEGEND, SHAPES, looks
from ..report.figures import WRONG, add_points, appearance
from ..report.thumbnails import described
from .animation import Update
from .row_facts import label_of
from .saved_views import MOST_KEPT
from .session import Session
from .worker import Worker

HERE = Path(__file__).parent
# The kind of message by which the server tells the page what is new.
MESSAGE = "mercer"
# Shapes of the legend as characters.
SIGNS = dict(zip(SHAPES, "●▲■◆▼✚✖★"))
# Points lie between -1 and 1; the tools stand on the right, inside the picture.
REACH, TOOLS = 1.15, 0.08


def _page_source(session: Session) -> ColumnDataSource:
    """Everything about every point that stays; the page's script adds where points lie."""
    data = session.data
    n = len(data)
    images, texts = described(data)
    colours, shapes = appearance(data.target, n)
    nowhere = np.full(n, np.nan, dtype=np.float32)
    columns: dict[str, Any] = {
        "x": nowhere,
        "y": nowhere,
        "colour": colours,
        "shape": shapes,
        "label": [label_of(data, i) for i in range(n)],
        "text": texts,
        "row": data.rows.astype(np.int32),
        "wrong": np.zeros(n, dtype=np.float32),
    }
    if images is not None:
        columns["image"] = images
    return ColumnDataSource(columns, name="points")


def picture(name: str, source: ColumnDataSource, size: float, *, tools: bool = True) -> Any:
    """A square scatter of a source."""
    shift = TOOLS if tools else 0.0
    panel = figure(
        name=name,
        x_range=Range1d(start=shift - REACH, end=shift + REACH),
        y_range=Range1d(start=-REACH, end=REACH),
        aspect_ratio=1,
        sizing_mode="stretch_width",
        min_border=2,
        tools="pan,wheel_zoom,lasso_select,box_select,reset",
        active_drag="lasso_select",
        toolbar_location="right" if tools else None,
        toolbar_inner=True,  # so that the picture is square
        output_backend="canvas",  # where there is no GPU, WebGL is several times slower
    )
    add_points(
        panel, source, "x", "y", size=size, fill_alpha=0.75, line_color=WRONG, line_alpha="wrong",
        selection_line_color=WRONG, nonselection_fill_alpha=0.14, nonselection_line_alpha=0.05,
    )  # fmt: skip
    panel.toolbar.stylesheets = [":host(.bk-inner) { background-color: transparent; }"]
    panel.axis.visible = False
    return panel


def build(doc: Document, session: Session, worker: Worker) -> None:
    """Fill a new document, and connect it with the session."""
    source = _page_source(session)
    size = float(np.clip(8 * (800 / len(session.data)) ** 0.4, 3, 8))
    marks = ColumnDataSource({"x": [], "y": [], "size": []}, name="marks")
    ask = ColumnDataSource({"request": [""]}, name="ask")
    space = picture("space", source, size)
    space.scatter(
        "x", "y", size="size", source=marks, fill_color=None, line_color="#888888", line_width=2.2
    )
    space.tags = [ask, marks, {"size": size, "wrong": WRONG}]
    doc.add_root(space)
    for place in range(MOST_KEPT):
        # A source of its own, filled when a space is kept: what moves beside it costs it nothing.
        still = ColumnDataSource({key: [] for key in source.data}, selected=source.selected)
        small = max(3.0, 0.7 * size)
        doc.add_root(picture(f"kept{place}", still, small, tools=False))

    def show(update: Update) -> None:
        """In the server's own thread: a message, its arrays as they lie in memory."""
        text, arrays = packed(update)
        message = MessageSentEvent(doc, MESSAGE, [text, *arrays])
        doc.callbacks.trigger_on_change(message)

    def listen(update: Update) -> None:
        doc.add_next_tick_callback(partial(show, update))

    def asked(attr: str, old: Any, new: Any) -> None:
        try:
            request = json.loads(new["request"][0])
        except (ValueError, LookupError, TypeError):
            return
        if isinstance(request, dict):
            worker.ask(request)

    def selected(attr: str, old: Any, new: Any) -> None:
        worker.ask({"do": "select", "indices": list(new)})

    ask.on_change("data", asked)
    source.selected.on_change("indices", selected)
    worker.listeners.append(listen)

    def gone(_: Any) -> None:
        if listen in worker.listeners:
            worker.listeners.remove(listen)

    doc.on_session_destroyed(gone)
    doc.title = "mercer explore"
    doc.template = Environment(loader=FileSystemLoader(HERE), autoescape=True).get_template(
        "page.html"
    )
    doc.template_variables.update(
        css=(HERE / "page.css").read_text(encoding="utf-8"),
        javascript="\n".join(
            (HERE / name).read_text(encoding="utf-8") for name in ("sketch.js", "page.js")
        ),
        colours=_legend(session),
        n_kept=MOST_KEPT,
    )


def _legend(session):
    """(class, colour, shape) for the page, few enough to be read."""
    classes = session.data.classes
    styles = looks(len(classes))
    return [(name, colour, SIGNS[shape]) for name, (colour, shape) in zip(classes, styles)][
        :MOST_IN_LEGEND
    ]


def packed(update: Update) -> tuple[str, list[np.ndarray]]:
    """(JSON, arrays): in the JSON an array is {"array": its position}."""
    arrays: list[np.ndarray] = []

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {str(k): plain(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(v) for v in value]
        if isinstance(value, np.ndarray):
            arrays.append(value)
            return {"array": len(arrays) - 1}
        if isinstance(value, (np.bool_, bool)):
            return bool(value)
        if isinstance(value, (np.integer, int)):
            return int(value)
        if isinstance(value, (np.floating, float)):
            return float(value) if np.isfinite(value) else None  # JSON has no others
        return value if value is None else str(value)

    return json.dumps(plain(update)), arrays
