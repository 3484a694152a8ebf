"""The page: pictures of points by Bokeh, everything else by plain HTML that is filled as text."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from bokeh.document import Document
from bokeh.models import ColumnDataSource, HoverTool, Range1d
from bokeh.plotting import figure
from jinja2 import Environment, FileSystemLoader

from ..plots.style import MOST_IN_LEGEND, looks
from ..report.figures import IMAGE, TOOLTIP, WRONG, appearance
from .session import MOST_KEPT, Session, Update
from .worker import Worker

HERE = Path(__file__).parent
# Beyond so many points the browser draws them with WebGL.
MANY = 4000
# Shapes of the legend as characters.
SIGNS = {"o": "●", "^": "▲", "s": "■", "D": "◆", "v": "▼", "P": "✚", "X": "✖", "*": "★"}
# Points lie between -1 and 1; the tools stand on the right, inside the picture.
REACH, TOOLS = 1.15, 0.08


def source_of(session: Session) -> ColumnDataSource:
    """Everything about every point, once; pictures that share it share their selection."""
    data = session.data
    n = len(data)
    images, texts = data.described()
    colours, shapes = appearance(data.target, n)
    columns: dict[str, Any] = {
        "colour": colours,
        "shape": shapes,
        "label": [data.label(i) for i in range(n)],
        "text": texts,
        "row": data.rows.astype(np.int32),
        "wrong": np.zeros(n, dtype=np.float32),
    }
    if images is not None:
        columns["image"] = images
    places = ["", *map(str, range(MOST_KEPT))]
    for place in places:
        for letter in "xy":
            columns[f"{letter}{place}"] = np.zeros(n, dtype=np.float32)
    return ColumnDataSource(columns, name="points")


def picture(name: str, place: str, source: ColumnDataSource, hover: bool = True) -> Any:
    """A square scatter of two columns of the source."""
    n = len(source.data["row"])
    size = float(np.clip(8 * (800 / n) ** 0.4, 3, 8))
    shift = TOOLS if hover else 0.0
    panel = figure(
        name=name,
        x_range=Range1d(start=shift - REACH, end=shift + REACH),
        y_range=Range1d(start=-REACH, end=REACH),
        aspect_ratio=1,
        sizing_mode="stretch_width",
        min_border=2,
        tools="pan,wheel_zoom,lasso_select,box_select,reset",
        active_drag="lasso_select",
        toolbar_location="right" if hover else None,
        toolbar_inner=True,  # so that the picture is square
        output_backend="webgl" if n > MANY else "canvas",
    )
    points = panel.scatter(
        f"x{place}",
        f"y{place}",
        source=source,
        size=size if hover else max(3.0, 0.7 * size),
        marker="shape",
        fill_color="colour",
        fill_alpha=0.75,
        line_color=WRONG,
        line_alpha="wrong",
        line_width=1.6,
        selection_fill_alpha=1.0,
        selection_line_color=WRONG,
        nonselection_fill_alpha=0.14,
        nonselection_line_alpha=0.05,
    )
    image = IMAGE if "image" in source.data else ""
    panel.add_tools(
        HoverTool(renderers=[points], tooltips=TOOLTIP.format(image=image), limit=2,
                  point_policy="follow_mouse")
    )  # fmt: skip
    panel.toolbar.logo = None
    panel.axis.visible = False
    panel.grid.visible = False
    panel.background_fill_color = panel.border_fill_color = None
    panel.outline_line_color = "#88888855"
    return panel


def build(doc: Document, session: Session, worker: Worker) -> None:
    """Fill a new document, and connect it with the session."""
    source = source_of(session)
    marks = ColumnDataSource({"x": [], "y": [], "size": []}, name="marks")
    ask = ColumnDataSource({"request": [""]}, name="ask")
    told = ColumnDataSource({"update": [""]}, name="told")
    space = picture("space", "", source)
    space.scatter(
        "x", "y", size="size", source=marks, fill_color=None, line_color="#888888", line_width=2.2
    )
    space.tags = [ask, told]
    kept = [picture(f"kept{i}", str(i), source, hover=False) for i in range(MOST_KEPT)]
    for root in (space, *kept):
        doc.add_root(root)

    def show(update: Update) -> None:
        """In the server's own thread."""
        update = dict(update)
        points = update.pop("points", None)
        if points is not None:
            source.patch({name: [(slice(len(v)), v)] for name, v in points.items()})
        found = update.pop("marks", None)
        if found is not None:
            marks.data = found
        told.data = {"update": [json.dumps(_plain(update))]}

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
        javascript=(HERE / "page.js").read_text(encoding="utf-8"),
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


def _plain(value):
    """What JSON can hold; numbers that are not finite become null."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (np.bool_, bool)):
        return bool(value)
    if isinstance(value, (np.integer, int)):
        return int(value)
    if isinstance(value, (np.floating, float)):
        return float(value) if np.isfinite(value) else None
    return value if value is None else str(value)
