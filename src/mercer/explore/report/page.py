"""The page put together: verdict, panels, table; all text escaped, nothing fetched from outside."""

import json
import os
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import confusion_matrix

from ...kernels import points as pts
from ..plots.style import (
    MOST_IN_LEGEND,
    as_comparison,
    as_text,
    classes_of,
    is_numeric_target,
    looks,
)
from .template import HERE, rendered, require_bokeh, write_page
from .thumbnails import described, values_of

if TYPE_CHECKING:
    from ..compare import KernelComparison

MOST_IN_CONFUSION = 20


def write_report(
    comparison: Any, path: str | PathLike[str] | None = None, *, title: str = "Kernels compared"
) -> str:
    """The page as a file (its path is returned), or as text where no path is given."""
    as_comparison(comparison)
    if path is not None:
        with pts.naming("path"):
            path = Path(os.fspath(path))
    html = page(comparison, title)
    return html if path is None else write_page(html, path)


def page(comparison: "KernelComparison", title: str) -> str:
    """The page as text."""
    require_bokeh()
    from bokeh.models import BooleanFilter

    from . import figures

    # Objects are drawn as the best kernel sees them, unless the user gave pictures or texts.
    kernel = comparison.spaces[0].kernel if comparison.shows_points else None
    source = figures.data_source(comparison, *described(comparison.data, kernel))
    shown = BooleanFilter(name="shown")  # lets all points through until the page gives it a mask
    longest = max(len(space.spectrum) for space in comparison.spaces)
    models: dict[str, Any] = {}
    for number, space in enumerate(comparison.spaces):
        if space.embeddings:
            models[f"panel{number}"] = figures.scatter(number, space, source, shown)
        models[f"spectrum{number}"] = figures.spectrum_figure(number, space, longest)
        curve = figures.validation_curve(number, space)
        if curve is not None:
            models[f"curve{number}"] = curve
    if comparison.task == "regression" and comparison.spaces[0].predicted is not None:
        models["residuals"] = figures.residuals(comparison)
    return rendered(
        "page.html",
        models,
        title=title,
        comparison=comparison,
        records=list(zip(comparison.spaces, comparison.records())),
        baselines=comparison.baselines,
        interval=comparison.contest.interval,
        others=list(comparison.spaces[0].scores)[1:],
        confusion=_confusion(comparison),
        n_wrong=int(figures.wrong_rows(comparison).sum()),
        n_classes=len(comparison.classes),
        code=comparison.code() if comparison.task else None,
        version=version("mercer"),
        legend=_legend(comparison),
        scale=_scale(comparison),
        mean=lambda folds: float(np.mean(folds)),
        settings=_in_script(_settings(comparison, figures)),
        javascript=(HERE / "page.js").read_text(encoding="utf-8"),
    )


def _settings(comparison, figures):
    """Settings for the page's own script."""
    return {
        "axes": figures.AXES,
        "n_panels": len(comparison.spaces) if comparison.spaces[0].embeddings else 0,
        "new": comparison.held_out.tolist() if comparison.held_out.any() else None,
        "classes": comparison.task == "classification",
        "scale": _scale(comparison) is not None,
        "target": comparison.target_name,
        "table": values_of(comparison.data),
    }


def _confusion(comparison):
    """(classes, counts of true by predicted) on unseen rows; None where it would not be read."""
    predicted = comparison.spaces[0].predicted
    if comparison.task != "classification" or predicted is None:
        return None
    classes = comparison.classes
    if len(classes) > MOST_IN_CONFUSION:
        return None
    labels = np.arange(len(classes))
    counts = confusion_matrix(comparison.codes, predicted.astype(int), labels=labels)
    return classes, counts.tolist()


def _in_script(value):
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value).replace("<", "\\u003c").replace("&", "\\u0026")


def _legend(comparison):
    """Name, colour and size of every class; None where there are none."""
    if comparison.target is None or is_numeric_target(comparison.target):
        return None
    labels, codes = classes_of(comparison.target)
    sizes = np.bincount(codes)
    entries = [
        {"label": as_text(label), "colour": colour, "size": int(size)}
        for label, (colour, _), size in zip(labels, looks(len(labels)), sizes)
    ]
    return entries[:MOST_IN_LEGEND]


def _scale(comparison):
    """Ends of the colour scale of a numeric target."""
    if comparison.target is None or not is_numeric_target(comparison.target):
        return None
    return [f"{v:.4g}" for v in (comparison.target.min(), comparison.target.max())]
