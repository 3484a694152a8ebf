"""The page put together: verdict, panels, table; all text escaped, nothing fetched from outside."""

import json
import os
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import confusion_matrix

from ...export import write_output
from ...kernels import points as pts
from ..plots import style
from .thumbnails import values_of

if TYPE_CHECKING:
    from ..compare import KernelComparison

_MOST_IN_CONFUSION = 20


def write_report(
    comparison: "KernelComparison",
    path: str | PathLike[str] | None = None,
    *,
    title: str = "Kernels compared",
) -> str:
    """The page as a file (its path is returned), or as text where no path is given."""
    style.as_comparison(comparison)
    if path is not None:
        with pts.naming("path"):
            path = Path(os.fspath(path))
    require_bokeh()
    from . import figures

    target = comparison.target
    numeric = target is not None and style.is_numeric_target(target)
    settings = {  # for the page's own script
        "axes": figures.AXES,
        "n_panels": len(comparison.spaces) if comparison.spaces[0].embeddings else 0,
        "new": comparison.held_out.tolist() if comparison.held_out.any() else None,
        "classes": comparison.task == "classification",
        "scale": numeric,
        "target": comparison.target_name,
        "table": values_of(comparison.data),
    }
    html = rendered(
        "page.html",
        figures.models_of(comparison),
        title=title,
        comparison=comparison,
        records=list(zip(comparison.spaces, comparison.records())),
        others=list(comparison.spaces[0].scores)[1:],
        confusion=_confusion(comparison),
        n_wrong=int(figures.wrong_rows(comparison).sum()),
        version=version("mercer"),
        legend=None if target is None or numeric else _legend(target),
        scale=[f"{v:.4g}" for v in (target.min(), target.max())] if numeric else None,
        mean=lambda folds: float(np.mean(folds)),
        # JSON that cannot end the script element it stands in.
        settings=json.dumps(settings).replace("<", "\\u003c").replace("&", "\\u0026"),
        javascript=(_HERE / "page.js").read_text(encoding="utf-8"),
    )
    return html if path is None else write_page(html, path)


def _legend(target):
    """All classes with their colours, up to as many as a legend holds."""
    classes, codes = style.classes_of(target)
    shown = zip(classes, style.looks(len(classes)), np.bincount(codes).tolist())
    return [
        {"label": style.as_text(name), "colour": colour, "size": size}
        for name, (colour, _), size in shown
    ][: style.MOST_IN_LEGEND]


def _confusion(comparison):
    """(classes, counts of true by predicted) for the best kernel; None for numbers."""
    predicted, classes = comparison.spaces[0].predicted, comparison.classes
    if predicted is None or not 0 < len(classes) <= _MOST_IN_CONFUSION:
        return None
    return classes, confusion_matrix(comparison.codes, predicted.astype(int)).tolist()


# --- any page: pictures of Bokeh's in a template, nothing fetched from outside --------------------

_HERE = Path(__file__).parent


def require_bokeh() -> None:
    """Say what is missing before the work, not after it."""
    try:
        import bokeh  # noqa: F401
        import jinja2  # noqa: F401
    except ImportError:
        raise ImportError("the page needs Bokeh: pip install 'mercer[report]'.") from None


def rendered(template: str, models: dict[str, Any], **context: Any) -> str:
    """The page as text; all that is not said to be safe is escaped."""
    from bokeh.embed import components
    from bokeh.resources import Resources
    from jinja2 import Environment, FileSystemLoader

    script, divs = components(models)
    pages = Environment(loader=FileSystemLoader(_HERE), autoescape=True)
    return pages.get_template(template).render(
        divs=divs,
        script=script,
        css=(_HERE / "page.css").read_text(encoding="utf-8"),
        bokeh=Resources(mode="inline", components=["bokeh"], minified=True).render(),
        **context,
    )


def write_page(html: str, path: Path) -> str:
    """The page as a file, written whole or not at all; its path is returned."""
    if path.is_dir():
        raise IsADirectoryError(f"path {str(path)!r} is a folder: name a file in it.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"no folder {str(path.parent)!r} to write {path.name} into.")
    write_output(path, html.encode("utf-8"))
    return str(path)


def plain_panel(panel: Any, outline: str | None = None) -> None:
    """Colours that are read on a light page and on a dark one, which shines through."""
    panel.toolbar.logo = None
    panel.background_fill_color = panel.border_fill_color = None
    panel.outline_line_color = outline
    for axis in panel.axis:
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_color = axis.major_label_text_color = "#808080"
        axis.axis_line_color = axis.major_tick_line_color = "#999999"
        axis.minor_tick_line_color = None
