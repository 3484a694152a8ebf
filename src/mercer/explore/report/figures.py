"""Bokeh's part of the page: one shared data source, a scatter and a spectrum for each kernel."""

from typing import Any

import numpy as np
from bokeh.models import (
    BooleanFilter,
    CDSView,
    ColumnDataSource,
    DataRange1d,
    HoverTool,
    NumeralTickFormatter,
    Range1d,
)
from bokeh.palettes import Cividis256
from bokeh.plotting import figure

from ..compare import KernelComparison, KernelSpace
from ..plots.style import COLOURS, SHAPES, as_bytes, as_text, classes_of, is_numeric_target, looks
from .page import plain_panel
from .thumbnails import described

# matplotlib's shapes in Bokeh's words.
_WORDS = ("circle", "triangle", "square", "diamond", "inverted_triangle", "plus", "x", "star")
_MARKERS = dict(zip(SHAPES, _WORDS))
# Placeholders are filled in as text by Bokeh, never as markup; the browser tests try.
# Styles stand in the markup: tooltips live in a shadow tree that the page's own do not reach.
_TOOLTIP = """
<div class="tip" style="display: flex; gap: 10px; align-items: center; max-width: 340px;
 padding: 2px; font: 14px/1.35 system-ui, sans-serif; color: #1c1c1c">{image}<div>
<div class="tip-label" style="font-weight: 700; overflow-wrap: anywhere">@label</div>
<div class="tip-text" style="white-space: pre-line; overflow-wrap: anywhere">@text</div>
<div style="color: #777; font-size: 12px">row @row</div></div></div>
"""
_IMAGE = """<img src="@image" alt="" style="width: 72px; height: 72px; flex: none;
 image-rendering: pixelated; object-fit: contain; border: 1px solid #ddd">"""
AXES = {
    "t-SNE": ("t-SNE 1", "t-SNE 2"),
    "kernel PCA": ("first component", "second component"),
    "discriminant": ("first axis", "second axis"),
}
WRONG = "#d00000"


def models_of(comparison: KernelComparison) -> dict[str, Any]:
    """All pictures of the page, by name."""
    # Objects are drawn as the best kernel sees them, unless the user gave pictures or texts.
    kernel = comparison.spaces[0].kernel if comparison.shows_points else None
    source = _data_source(comparison, *described(comparison.data, kernel))
    shown = BooleanFilter(name="shown")  # lets all points through until the page gives it a mask
    longest = max(len(space.spectrum) for space in comparison.spaces)
    models: dict[str, Any] = {}
    for number, space in enumerate(comparison.spaces):
        if space.embeddings:
            models[f"panel{number}"] = _scatter(number, space, source, shown)
        models[f"spectrum{number}"] = _spectrum(number, space, longest)
        if space.curve or space.penalties:
            models[f"curve{number}"] = _validation_curve(number, space)
    if comparison.task == "regression" and comparison.spaces[0].predicted is not None:
        models["residuals"] = _residuals(comparison)
    return models


def _data_source(
    comparison: KernelComparison, images: list[str] | None, texts: list[str]
) -> ColumnDataSource:
    """Everything about every point, once: panels that share it share their selection."""
    n, target = len(comparison), comparison.target
    fitted = ~comparison.held_out if comparison.held_out.any() else np.zeros(n, dtype=bool)
    size = np.clip(8 * (800 / n) ** 0.5, 4, 8)
    data = point_columns(comparison.data, images, texts) | {
        "size": np.where(fitted, size / 2, size).astype(np.float32),
        "alpha": np.where(fitted, 0.35, 0.85).astype(np.float32),
        "edge": [WRONG if wrong else "rgba(0,0,0,0)" for wrong in wrong_rows(comparison)],
        "label": [""] * n if target is None else [as_text(v) for v in target],
    }
    for number, space in enumerate(comparison.spaces):
        for name, Z in space.embeddings.items():
            data[f"{name} x{number}"], data[f"{name} y{number}"] = Z.T.astype(np.float32)
        for first in list(space.embeddings)[:1]:
            data[f"x{number}"] = data[f"{first} x{number}"]
            data[f"y{number}"] = data[f"{first} y{number}"]
    return ColumnDataSource(data, name="points")


def wrong_rows(comparison: KernelComparison) -> np.ndarray:
    """Rows whose class the best kernel gets wrong when it has not seen them."""
    predicted = comparison.spaces[0].predicted
    if comparison.task != "classification" or predicted is None:
        return np.zeros(len(comparison), dtype=bool)
    return predicted.astype(int) != comparison.codes


def point_columns(data: Any, images: list[str] | None, texts: list[str]) -> dict[str, Any]:
    """Colour, shape, text, position and thumbnail (if any) of every point."""
    n, target = len(data), data.target
    colours, shapes = [COLOURS[0]] * n, ["circle"] * n
    if target is not None and is_numeric_target(target):
        colours = [Cividis256[i] for i in as_bytes(np.asarray(target, dtype=float))]
    elif target is not None:
        labels, codes = classes_of(target)
        styles = looks(len(labels))
        colours = [styles[c][0] for c in codes]
        shapes = [_MARKERS[styles[c][1]] for c in codes]
    found = {"colour": colours, "shape": shapes, "text": texts, "row": data.rows.astype(np.int32)}
    return found if images is None else found | {"image": images}


# --- points ---------------------------------------------------------------------------------------


def add_points(panel: Any, source: ColumnDataSource, x: str, y: str, **options: Any) -> None:
    """Points of a source in its colours and shapes, with a tooltip; no numbers on the axes."""
    points = panel.scatter(
        x, y, source=source, marker="shape", fill_color="colour", line_width=1.6,
        selection_fill_alpha=1.0, **options,
    )  # fmt: skip
    tooltips = _TOOLTIP.format(image=_IMAGE if "image" in source.data else "")
    panel.add_tools(
        HoverTool(renderers=[points], tooltips=tooltips, point_policy="follow_mouse", limit=2)
    )
    plain_panel(panel, "#88888866")  # seen on white and on black
    panel.grid.visible = False


def _scatter(
    number: int, space: KernelSpace, source: ColumnDataSource, shown: BooleanFilter
) -> figure:
    """The space of one kernel; which embedding its columns hold is switched by the page. One unit
    is as long across as it is up: distances in the picture are those of the embedding."""
    panel = figure(
        name=f"panel {number}", height=400, sizing_mode="stretch_width", match_aspect=True,
        x_range=DataRange1d(range_padding=0.06), y_range=DataRange1d(range_padding=0.06),
        tools="lasso_select,box_select,tap,pan,wheel_zoom,reset", active_drag="lasso_select",
        toolbar_location="right", output_backend="canvas",
    )  # fmt: skip
    add_points(
        panel, source, f"x{number}", f"y{number}", view=CDSView(filter=shown), size="size",
        fill_alpha="alpha", line_color="edge", selection_line_color="#111111",
        nonselection_fill_alpha=0.07,
    )  # fmt: skip
    panel.axis.ticker = []  # units of these axes mean nothing
    panel.axis.axis_line_color = None
    panel.axis.axis_label_text_font_size = "11px"
    panel.xaxis.axis_label, panel.yaxis.axis_label = AXES[next(iter(space.embeddings))]
    panel.min_border = 4
    return panel


def _residuals(comparison: KernelComparison) -> figure:
    """Predictions of unseen rows against the truth, for numbers."""
    predicted, truth = comparison.spaces[0].predicted, np.asarray(comparison.target, dtype=float)
    assert predicted is not None
    panel = figure(
        name="residuals", height=340, width=420, match_aspect=True, tools="pan,wheel_zoom,reset",
        output_backend="canvas",  # WebGL draws nothing in browsers without a GPU
    )  # fmt: skip
    panel.scatter(predicted, truth, size=5, alpha=0.6, color="#2C8FCE", line_color=None)
    both = np.concatenate([predicted, truth])
    ends = [float(both.min()), float(both.max())]
    panel.line(ends, ends, color="#888888", line_dash="dashed")
    name = comparison.target_name
    _label(panel, f"{name}, predicted for unseen rows", name)
    return panel


# --- curves ---------------------------------------------------------------------------------------


def _validation_curve(number: int, space: KernelSpace) -> figure:
    """Leave-one-out error along the width that was tuned, or along the penalty."""
    x, y = np.array(space.curve or space.penalties).T
    panel = _curve(f"curve {number}", x, y, COLOURS[1], "@x{0.0000}: @y{0.0000}")
    panel.scatter(x, y, color=COLOURS[1], size=5)
    best = [int(np.argmin(y))]
    panel.scatter(x[best], y[best], color=COLOURS[1], size=11)
    _label(panel, space.parameter if space.curve else "alpha (penalty)", "error")
    return panel


def _spectrum(number: int, space: KernelSpace, longest: int) -> figure:
    """Running sum of the variance over components, on axes common to all kernels."""
    total = 100 * np.cumsum(space.spectrum) / max(space.spectrum.sum(), np.finfo(float).tiny)
    component = np.arange(1.0, len(total) + 1)
    name, tip = f"spectrum {number}", "@x components hold @y{0.0} %"
    panel = _curve(name, component, total, COLOURS[0], tip)
    panel.x_range = Range1d(start=0.9, end=max(longest, 2))
    panel.y_range = Range1d(start=0, end=104)
    panel.varea(component, np.zeros(len(total)), total, color=COLOURS[0], alpha=0.12)
    panel.xaxis.formatter = NumeralTickFormatter(format="0")
    _label(panel, "components", "variance, %")
    panel.yaxis.ticker = [0, 50, 100]
    return panel


def _curve(name, x, y, colour, tip):
    panel = figure(
        name=name, height=150, sizing_mode="stretch_width", x_axis_type="log", tools="",
        toolbar_location=None,
    )  # fmt: skip
    line = panel.line(x, y, color=colour, line_width=2)
    panel.add_tools(HoverTool(renderers=[line], tooltips=tip, mode="vline"))
    return panel


def _label(panel, across, up):
    panel.xaxis.axis_label, panel.yaxis.axis_label = across, up
    plain_panel(panel)
    panel.xgrid.visible = False
    panel.ygrid.grid_line_color = "#88888833"
