"""The page of a two-sample test: the answer, the columns, the rows, the witness and the space."""

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from ... import KernelPCA
from ..plots.style import COLOURS, as_text, short_numbers, shortened
from .page import plain_panel, rendered, require_bokeh, write_page

# Columns whose pairs are drawn, points drawn of each sample, rows listed of each.
LEADING, POINTS, LISTED = 3, 600, 8
_GRID = 60


def write_difference(result: Any, path: Any, *, names: tuple[str, str] = ("X", "Y")) -> str:
    """Write one self-contained page about the result of a two-sample test of data frames."""
    require_bokeh()
    points = [result.samples.some_points(which, POINTS) for which in (0, 1)]
    models = {"space": _space_figure(result, points, names)}
    fields = [_WitnessField.of(result, points, pair) for pair in _leading_pairs(result, points)]
    most = max([float(np.abs(field.values).max()) for field in fields], default=0.0) or 1.0
    for number, field in enumerate(fields):
        models[f"pair{number}"] = _witness_figure(field, points, names, most)
    tables = []
    for rows in result.rows(LISTED):
        few = rows[list(rows.columns[:12])]
        cells = [[shortened(as_text(v), 40) for v in row] for row in few.to_numpy(dtype=object)]
        tables.append({"names": [str(c) for c in few.columns], "rows": cells})
    html = rendered(
        "difference.html",
        models,
        title=f"{names[0]} and {names[1]}",
        result=result,
        headline=result.headline.replace("The samples", "The files"),
        names=names,
        colours=COLOURS[:2],
        columns=result.columns,
        tables=tables,
        pairs=[field.names for field in fields],
        kernel=short_numbers(repr(result.kernel)),
    )
    return write_page(html, Path(path))


def _leading_pairs(result: Any, points: list[np.ndarray]) -> list[tuple]:
    """Pairs ((name, place), (name, place)) of the leading columns that are one number each."""
    groups = result.samples.column_groups(points[0].shape[1])
    single = [(name, groups[name][0]) for name in result.columns if len(groups[name]) == 1]
    return list(combinations(single[:LEADING], 2))


def _space_figure(result: Any, points: list[np.ndarray], names: tuple[str, str]) -> Any:
    """Both samples in one feature space: its two directions of largest variance."""
    from bokeh.plotting import figure

    Z = KernelPCA(2, kernel=result.kernel).fit_transform(np.concatenate(points))
    panel = figure(
        height=420, sizing_mode="stretch_width", tools="pan,wheel_zoom,reset", name="space"
    )
    for part, colour, name in zip(np.split(Z, [len(points[0])]), COLOURS, names):
        look: Any = {"fill_color": colour, "fill_alpha": 0.75, "line_color": None}
        panel.scatter(part[:, 0], part[:, 1], size=5, legend_label=name, **look)
    _quiet(panel)
    panel.axis.visible = False
    return panel


@dataclass(frozen=True)
class _WitnessField:
    """The witness over two columns, all others at their medians."""

    names: tuple[str, str]
    places: tuple[int, int]
    low: np.ndarray
    high: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, result: Any, points: list[np.ndarray], pair: tuple) -> "_WitnessField":
        (name_a, a), (name_b, b) = pair
        both = np.concatenate(points)
        low, high = np.quantile(both[:, [a, b]], [0.01, 0.99], axis=0)
        room = 0.1 * np.where(high > low, high - low, 1.0)
        low, high = low - room, high + room
        grid = np.tile(np.median(both, axis=0), (_GRID * _GRID, 1))
        lines = (np.linspace(low[i], high[i], _GRID) for i in (0, 1))
        grid[:, a], grid[:, b] = (side.ravel() for side in np.meshgrid(*lines))
        values = result.witness(grid).reshape(_GRID, _GRID)
        return cls((name_a, name_b), (a, b), low, high, values)


def _witness_figure(
    field: _WitnessField, points: list[np.ndarray], names: tuple[str, str], most: float
) -> Any:
    """One field with both samples; `most` is the largest |value| of all fields, so that a pale one
    says that little of the difference is seen there."""
    from bokeh.models import LinearColorMapper, Range1d
    from bokeh.palettes import interp_palette
    from bokeh.plotting import figure

    low, high, (a, b) = field.low, field.high, field.places
    white = "#ffffff"
    palette = interp_palette((COLOURS[1], white, COLOURS[0]), 256)
    panel = figure(
        height=380,
        sizing_mode="stretch_width",
        x_range=Range1d(start=low[0], end=high[0]),
        y_range=Range1d(start=low[1], end=high[1]),
        tools="pan,wheel_zoom,reset",
        name=" ".join(field.names),
    )
    panel.image(  # type: ignore[call-arg]
        image=[field.values],
        x=low[0],
        y=low[1],
        dw=high[0] - low[0],
        dh=high[1] - low[1],
        color_mapper=LinearColorMapper(palette=palette, low=-most, high=most),
        alpha=0.8,
    )
    for rows, colour, name in zip(points, COLOURS, names):
        # With a white edge, seen on its own colour too.
        look: Any = {"fill_color": colour, "line_color": white, "line_width": 0.5}
        panel.scatter(rows[:, a], rows[:, b], size=4.5, legend_label=name, **look)
    _quiet(panel)
    panel.xaxis.axis_label, panel.yaxis.axis_label = (
        f"{shortened(name, 40)} (standardised)" for name in field.names
    )
    return panel


def _quiet(panel):
    plain_panel(panel, "#88888866")
    panel.grid.visible = False
    # Above the frame, where it hides no point.
    panel.add_layout(panel.legend[0], "above")
    panel.legend.orientation = "horizontal"
    panel.legend.background_fill_color = panel.legend.border_line_color = None
    panel.legend.label_text_color = "#808080"
    panel.legend.padding = panel.legend.margin = 0
    panel.legend.click_policy = "hide"
