"""Bokeh's part of the page: one shared data source, a scatter and a spectrum for each kernel."""

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
from bokeh.plotting import figure

from ..plots.style import as_text, classes_of, is_numeric_target, looks
from .template import plain_panel

# matplotlib's shapes in Bokeh's words.
SHAPES = {
    "o": "circle",
    "^": "triangle",
    "s": "square",
    "D": "diamond",
    "v": "inverted_triangle",
    "P": "plus",
    "X": "x",
    "*": "star",
}
# Placeholders are filled in as text by Bokeh, never as markup; the browser tests try.
# Styles stand in the markup: tooltips live in a shadow tree that the page's own do not reach.
TOOLTIP = """
<div class="tip" style="display: flex; gap: 10px; align-items: center; max-width: 340px;
 padding: 2px; font: 14px/1.35 system-ui, sans-serif; color: #1c1c1c">{image}<div>
<div class="tip-label" style="font-weight: 700; overflow-wrap: anywhere">@label</div>
<div class="tip-text" style="white-space: pre-line; overflow-wrap: anywhere">@text</div>
<div style="color: #777; font-size: 12px">row @row</div></div></div>
"""
IMAGE = """<img src="@image" alt="" style="width: 72px; height: 72px; flex: none;
 image-rendering: pixelated; object-fit: contain; border: 1px solid #ddd">"""
MOST_TIPS = 2
AXES = {
    "t-SNE": ("t-SNE 1", "t-SNE 2"),
    "kernel PCA": ("first component", "second component"),
    "discriminant": ("first axis", "second axis"),
}
WRONG = "#d00000"


def data_source(comparison, images, texts):
    """Everything about every point, once: panels that share it share their selection."""
    colours, shapes = appearance(comparison.target, len(comparison))
    fitted = ~comparison.held_out if comparison.held_out.any() else np.zeros(len(comparison), bool)
    target = comparison.target
    size = np.clip(8 * (800 / len(comparison)) ** 0.5, 4, 8)
    data = {
        "colour": colours,
        "shape": shapes,
        "size": np.where(fitted, size / 2, size).astype(np.float32),
        "alpha": np.where(fitted, 0.35, 0.85).astype(np.float32),
        "edge": edges(comparison),
        "label": [""] * len(comparison) if target is None else [as_text(v) for v in target],
        "text": texts,
        "row": comparison.rows.astype(np.int32),
    }
    if images is not None:
        data["image"] = images
    for number, space in enumerate(comparison.spaces):
        for name, Z in space.embeddings.items():
            data[f"{name} x{number}"], data[f"{name} y{number}"] = Z.T.astype(np.float32)
        for first in list(space.embeddings)[:1]:
            data[f"x{number}"] = data[f"{first} x{number}"]
            data[f"y{number}"] = data[f"{first} y{number}"]
    return ColumnDataSource(data, name="points")


def edges(comparison):
    """A red edge around points whose class the best kernel gets wrong on unseen rows."""
    wrong = wrong_rows(comparison)
    return [WRONG if w else "rgba(0,0,0,0)" for w in wrong]


def wrong_rows(comparison):
    predicted = comparison.spaces[0].predicted
    if comparison.task != "classification" or predicted is None:
        return np.zeros(len(comparison), dtype=bool)
    return predicted.astype(int) != comparison.codes


def curve(number, space):
    """Leave-one-out error along the width that was tuned, or along the penalty; None without."""
    points = space.curve or space.penalties
    if not points:
        return None
    x, y = np.array(points).T
    name = space.parameter if space.curve else "alpha (penalty)"
    panel = figure(
        name=f"curve {number}",
        height=150,
        sizing_mode="stretch_width",
        x_axis_type="log",
        tools="",
        toolbar_location=None,
    )
    line = panel.line(x, y, color="#D55E00", line_width=2)
    panel.scatter(x, y, color="#D55E00", size=5)
    best = int(np.argmin(y))
    panel.scatter(x[best : best + 1], y[best : best + 1], color="#D55E00", size=11)
    panel.add_tools(HoverTool(renderers=[line], tooltips="@x{0.0000}: @y{0.0000}", mode="vline"))
    panel.xaxis.axis_label, panel.yaxis.axis_label = name, "error"
    _quiet(panel)
    return panel


def residuals(comparison):
    """Predictions of unseen rows against the truth, for numbers."""
    predicted = comparison.spaces[0].predicted
    panel = figure(
        name="residuals",
        height=340,
        width=420,
        match_aspect=True,
        tools="pan,wheel_zoom,reset",
        output_backend="canvas",  # WebGL draws nothing in browsers without a GPU
    )
    truth = np.asarray(comparison.target, dtype=float)
    panel.scatter(predicted, truth, size=5, alpha=0.6, color="#2C8FCE", line_color=None)
    ends = [float(min(truth.min(), predicted.min())), float(max(truth.max(), predicted.max()))]
    panel.line(ends, ends, color="#888888", line_dash="dashed")
    panel.xaxis.axis_label = f"{comparison.target_name}, predicted for unseen rows"
    panel.yaxis.axis_label = comparison.target_name
    _quiet(panel)
    return panel


def _quiet(panel):
    plain_panel(panel)
    panel.xgrid.visible = False
    panel.ygrid.grid_line_color = "#88888833"


def appearance(target, n):
    """Colour and shape of every point."""
    if target is None:
        return ["#0072B2"] * n, ["circle"] * n
    if is_numeric_target(target):
        return scale_colours(target), ["circle"] * n
    labels, codes = classes_of(target)
    styles = looks(len(labels))
    return [styles[c][0] for c in codes], [SHAPES[styles[c][1]] for c in codes]


def scale_colours(values):
    from bokeh.palettes import Cividis256

    values = np.asarray(values, dtype=float)
    low, high = values.min(), values.max()
    place = np.zeros(len(values)) if high == low else (values - low) / (high - low)
    return [Cividis256[i] for i in (255 * place).round().astype(int)]


def scatter(number, space, source, shared_filter):
    """The space of one kernel; which embedding its columns hold is switched by the page.

    One unit is as long across as it is up: distances in the picture are those of the embedding.
    """
    panel = figure(
        name=f"panel {number}",
        height=400,
        sizing_mode="stretch_width",
        x_range=DataRange1d(range_padding=0.06),
        y_range=DataRange1d(range_padding=0.06),
        match_aspect=True,
        tools="lasso_select,box_select,tap,pan,wheel_zoom,reset",
        active_drag="lasso_select",
        toolbar_location="right",
        output_backend="canvas",
    )
    points = panel.scatter(
        f"x{number}",
        f"y{number}",
        source=source,
        view=CDSView(filter=shared_filter),
        size="size",
        marker="shape",
        fill_color="colour",
        fill_alpha="alpha",
        line_color="edge",
        line_width=1.6,
        selection_fill_alpha=1.0,
        selection_line_color="#111111",
        nonselection_fill_alpha=0.07,
    )
    image = IMAGE if "image" in source.data else ""
    panel.add_tools(
        HoverTool(
            renderers=[points],
            tooltips=TOOLTIP.format(image=image),
            point_policy="follow_mouse",
            limit=MOST_TIPS,
        )
    )
    plain_panel(panel, "#88888866")  # seen on white and on black
    panel.axis.ticker = []  # units of these axes mean nothing
    panel.axis.axis_line_color = None
    panel.axis.axis_label_text_font_size = "11px"
    panel.xaxis.axis_label, panel.yaxis.axis_label = AXES[next(iter(space.embeddings))]
    panel.grid.visible = False
    panel.min_border = 4
    return panel


def spectrum_figure(number, space, longest):
    """Running sum of the variance over components, on axes common to all kernels."""
    shares = space.spectrum / max(space.spectrum.sum(), np.finfo(float).tiny)
    total = 100 * np.cumsum(shares)
    component = np.arange(1.0, len(shares) + 1)
    panel = figure(
        name=f"spectrum {number}",
        height=150,
        sizing_mode="stretch_width",
        x_axis_type="log",
        x_range=Range1d(start=0.9, end=max(longest, 2)),
        y_range=Range1d(start=0, end=104),
        tools="",
        toolbar_location=None,
    )
    panel.varea(component, np.zeros(len(total)), total, color="#0072B2", alpha=0.12)
    line = panel.line(component, total, color="#0072B2", line_width=2)
    panel.add_tools(
        HoverTool(renderers=[line], tooltips="@x components hold @y{0.0} %", mode="vline")
    )
    panel.xaxis.axis_label = "components"
    panel.xaxis.formatter = NumeralTickFormatter(format="0")
    panel.yaxis.axis_label = "variance, %"
    _quiet(panel)
    panel.yaxis.ticker = [0, 50, 100]
    return panel


def everyone():
    """A filter that lets all points through until the page gives it a mask."""
    return BooleanFilter(name="shown")
