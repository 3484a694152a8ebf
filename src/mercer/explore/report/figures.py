"""Bokeh's part of the page: one shared data source, a scatter and a spectrum for each kernel."""

import numpy as np
from bokeh.models import (
    BooleanFilter,
    CDSView,
    ColumnDataSource,
    HoverTool,
    NumeralTickFormatter,
    Range1d,
)
from bokeh.plotting import figure

from ..plots.style import classes_of, is_numeric_target, looks

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
        "label": [""] * len(comparison) if target is None else [_label(v) for v in target],
        "text": texts,
        "row": comparison.rows.astype(np.int32),
    }
    if images is not None:
        data["image"] = images
    for number, space in enumerate(comparison.spaces):
        for name, Z in space.embeddings.items():
            data[f"{name} x{number}"], data[f"{name} y{number}"] = Z.T.astype(np.float32)
        first = next(iter(space.embeddings))
        data[f"x{number}"] = data[f"{first} x{number}"]
        data[f"y{number}"] = data[f"{first} y{number}"]
    return ColumnDataSource(data, name="points")


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


def limits(Z):
    """x and y range with room around the points."""
    low, high = Z.min(axis=0), Z.max(axis=0)
    room = 0.06 * np.where(high > low, high - low, 1.0)
    return [float(v) for pair in zip(low - room, high + room) for v in pair]


def scatter(number, space, source, shared_filter):
    """The space of one kernel; which embedding its columns hold is switched by the page."""
    x0, x1, y0, y1 = limits(next(iter(space.embeddings.values())))
    panel = figure(
        name=f"panel {number}",
        height=400,
        sizing_mode="stretch_width",
        x_range=Range1d(start=x0, end=x1),
        y_range=Range1d(start=y0, end=y1),
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
        line_color=None,
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
    panel.toolbar.logo = None
    panel.axis.visible = False
    panel.grid.visible = False
    panel.outline_line_color = "#d5d5d5"
    panel.min_border = 4
    return panel


def spectrum(number, space, longest):
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
    panel.xgrid.visible = False
    panel.ygrid.grid_line_color = "#eeeeee"
    panel.outline_line_color = None
    panel.yaxis.ticker = [0, 50, 100]
    for axis in panel.axis:
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_color = axis.major_label_text_color = "#555555"
        axis.axis_line_color = axis.major_tick_line_color = "#aaaaaa"
        axis.minor_tick_line_color = None
    return panel


def everyone():
    """A filter that lets all points through until the page gives it a mask."""
    return BooleanFilter(name="shown")


def _label(value):
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)
