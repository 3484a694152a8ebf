"""The page put together: verdict, panels, table; all text escaped, nothing fetched from outside."""

import json
import os
from pathlib import Path

import numpy as np

from ...kernels.points import naming
from ..plots.style import MOST_IN_LEGEND, as_comparison, classes_of, is_numeric_target, looks
from .samples import described

HERE = Path(__file__).parent


def write_report(comparison, path=None, *, title="Kernels compared"):
    """The page as a file (its path is returned), or as text where no path is given."""
    as_comparison(comparison)
    if path is not None:
        with naming("path"):
            path = Path(os.fspath(path))
    if not comparison.spaces[0].embeddings:
        raise ValueError(
            "a page shows embeddings, and none were made: compare with embeddings='auto'."
        )
    html = page(comparison, title)
    if path is None:
        return html
    if path.is_dir():
        raise IsADirectoryError(f"path {str(path)!r} is a folder: name a file in it.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"no folder {str(path.parent)!r} to write {path.name} into.")
    path.write_text(html, encoding="utf-8")
    return str(path)


def page(comparison, title):
    try:
        from bokeh.embed import components
        from bokeh.resources import Resources
        from jinja2 import Environment, FileSystemLoader
    except ImportError:
        raise ImportError("the page needs Bokeh: pip install 'mercer[report]'.") from None
    from . import figures

    images, texts = described(comparison)
    source = figures.data_source(comparison, images, texts)
    shown = figures.everyone()
    longest = max(len(space.spectrum) for space in comparison.spaces)
    models = {}
    for number, space in enumerate(comparison.spaces):
        models[f"panel{number}"] = figures.scatter(number, space, source, shown)
        models[f"spectrum{number}"] = figures.spectrum(number, space, longest)
    script, divs = components(models)
    template = Environment(loader=FileSystemLoader(HERE), autoescape=True).get_template("page.html")
    return template.render(
        title=title,
        comparison=comparison,
        records=list(zip(comparison.spaces, comparison.records())),
        methods=list(comparison.spaces[0].scores),
        score_name="accuracy" if comparison.task == "classes" else "R²",
        legend=_legend(comparison),
        scale=_scale(comparison),
        divs=divs,
        mean=lambda folds: float(np.mean(folds)),
        css=(HERE / "page.css").read_text(encoding="utf-8"),
        bokeh=Resources(mode="inline", components=["bokeh"], minified=True).render(),
        script=script,
        settings=_in_script(_settings(comparison, figures)),
        javascript=(HERE / "page.js").read_text(encoding="utf-8"),
    )


def _settings(comparison, figures):
    """What the page's own script needs to know."""
    return {
        "embeddings": list(comparison.spaces[0].embeddings),
        "limits": [
            {name: figures.limits(Z) for name, Z in space.embeddings.items()}
            for space in comparison.spaces
        ],
        "new": comparison.held_out.tolist() if comparison.held_out.any() else None,
        "classes": comparison.task == "classes",
    }


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
        {"label": str(label), "colour": colour, "size": int(size)}
        for label, (colour, _), size in zip(labels, looks(len(labels)), sizes)
    ]
    return entries[:MOST_IN_LEGEND]


def _scale(comparison):
    """Ends of the colour scale of a numeric target."""
    if comparison.target is None or not is_numeric_target(comparison.target):
        return None
    return [f"{v:.4g}" for v in (comparison.target.min(), comparison.target.max())]
