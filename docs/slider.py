"""The directive `slider`: a kernel under a slider in a page, drawn by _static/slider.js."""

from docutils import nodes
from docutils.parsers.rst import Directive, directives

OPTIONS = ("sliders", "kernels")


def block(views, root="../", **options):
    """The HTML of one slider; `root` leads from the page to the folder of _static."""
    data = "".join(f' data-{name}="{value}"' for name, value in {"views": views, **options}.items())
    return (
        f'<figure class="kernel-slider"{data}>'
        "<noscript>Here a kernel moves under a slider, if scripts are allowed.</noscript></figure>"
        f'<script src="{root}_static/slider.js" defer></script>'
    )


class Slider(Directive):
    """.. slider:: gram spectrum"""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = dict.fromkeys(OPTIONS, directives.unchanged)

    def run(self):
        page = self.state.document.settings.env.docname
        html = block(self.arguments[0], "../" * page.count("/"), **self.options)
        return [nodes.raw("", html, format="html")]
