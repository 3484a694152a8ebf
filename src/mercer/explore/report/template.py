"""One self-contained page: pictures of Bokeh's in a template, nothing fetched from outside."""

from pathlib import Path
from typing import Any

from ...export import write_output

HERE = Path(__file__).parent


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
    pages = Environment(loader=FileSystemLoader(HERE), autoescape=True)
    return pages.get_template(template).render(
        divs=divs,
        script=script,
        css=(HERE / "page.css").read_text(encoding="utf-8"),
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
