"""Sphinx configuration: `make docs` builds the site, runs every example and checks every link."""

import os
import re
import sys
import warnings
from importlib.metadata import version as installed_version
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert

HERE = Path(__file__).parent
os.environ["MERCER_DOWNLOAD"] = "0"  # pages are the same with and without a network
sys.path[:0] = [str(HERE), str(HERE.parent)]  # slider; the examples' own helpers, benchmarks

from atlas import KernelAtlas
from figures import plain_figures
from phone import for_phones
from slider import Slider

project = "mercer"
author = "The mercer developers"
copyright = author
version = release = installed_version("mercer")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "ideas", "images", "**/GALLERY_HEADER.rst", "auto_*/*.ipynb"]
root_doc = "index"
default_role = "code"
smartquotes = False  # docstrings quote values: "scale"
toc_object_entries_show_parents = "hide"
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_block"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]  # functions below are part of the configuration
copybutton_prompt_text = ">>> "

# --- reference ------------------------------------------------------------------------------------

autosummary_generate = True
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False
numpydoc_validation_checks = set()

CODE = re.compile(r"(``.+?``|:[a-z:]+:`.+?`|`.+?`)")
SUBSTITUTION = re.compile(r"\|")
REFERENCE = re.compile(r"(?<=[A-Za-z0-9])_(?![A-Za-z0-9_])")


def escape_mathematics(app, what, name, obj, options, lines):
    """Docstrings write |phi(z)|^2 and kernel_ plainly; reStructuredText must not read them."""
    in_example = in_formula = False
    for i, line in enumerate(lines):
        in_formula = ".. math::" in line or (in_formula and line[:1] in ("", " "))
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        if in_example or in_formula or line.lstrip().startswith(".. "):
            continue
        parts = CODE.split(line)
        for j in range(0, len(parts), 2):
            parts[j] = REFERENCE.sub(r"\\_", SUBSTITUTION.sub(r"\\|", parts[j]))
        lines[i] = "".join(parts)


# What the parts of the library say to each other. People who write kernels find `against`,
# `diagonal` and `features` in the reference, and the rest in the source.
INTERNAL = {
    *("of_metric", "facts", "for_raw_panels", "fit_coordinates", "expansion", "with_parameters"),
    *("bind_points", "check_parameters", "check_range", "fused_form", "is_proven", "kind"),
    *("landmarks", "largest_terms", "magnitude", "one_call_per_value", "points", "precedence"),
    *("rounding", "runs_user_code", "symmetric", "with_operands", "get_metadata_routing"),
    *("in_expressions", "is_linear", "slope", "formula", "gamma"),
    *("has_slope", "slopes", "slope_against", "length_powers", "length_parameters", "rescaled"),
    *("has_magnitude", "magnitude_of_sums", "moved", "domains", "widths", "scale_powers"),
    *("drawn_as", "term", "copied", "finite", "parts"),
    *("layout", "single_sums", "fourier_form", "single_target_"),
    *("cached", "forget", "with_weight", "kept", "is_small", "is_judged", "in_double", "limit"),
    *("misses", "per_target", "with_variance"),
}


def only_our_own(app, what, name, obj, skip, options):
    """Leave out internals, and members that scikit-learn adds to every estimator."""
    if name in INTERNAL:
        return True
    function = getattr(obj, "fget", None) or getattr(obj, "method", None) or obj
    module = getattr(function, "__module__", None) or ""
    foreign = not module.startswith("mercer")
    return True if foreign or re.fullmatch(r"set_\w+_request", name) else skip


# --- mathematics: MathML, which browsers draw without scripts and without a network ---------------


def mathml(formula, display="inline"):
    """MathML whose letters browsers draw: they ignore mathvariant, so that ones were an eleven."""
    text = convert(formula, display=display)
    text = text.replace('<mn mathvariant="bold">1</mn>', "<mn>\N{MATHEMATICAL BOLD DIGIT ONE}</mn>")
    return text.replace('<mi mathvariant="script">H</mi>', "<mi>\N{SCRIPT CAPITAL H}</mi>")


def inline_math(self, node):
    self.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def display_math(self, node):
    self.body.append(f'<div class="formula">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


html_math_renderer = "mathml"

# --- gallery --------------------------------------------------------------------------------------


ORDER = [
    *("exact_mnist", "any_method", "kernel_kmeans", "million_points", "strings", "denoising"),
    *("uncertainty", "novelty", "road_distances", "choose_kernel", "columns", "functions"),
    *("landmarks", "l1_outliers", "indefinite", "leave_one_out"),
]


class MostTellingFirst:
    """Examples in the order above, others after them; the idea pages by their numbers."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, filename):
        name = Path(filename).stem.removeprefix("plot_")
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)


warnings.filterwarnings("error", module=r"mercer\.")
sphinx_gallery_conf = {
    "examples_dirs": ["../examples", "ideas"],
    "gallery_dirs": ["auto_examples", "auto_ideas"],
    "filename_pattern": r"plot_",
    "ignore_pattern": r"(first_steps|__init__)\.py",
    "within_subsection_order": MostTellingFirst,
    "reset_modules": ("matplotlib", plain_figures),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("mercer",),
    "image_srcset": ["2x"],
    "matplotlib_animations": False,
    "plot_gallery": "True",
    "write_computation_times": False,
    "min_reported_time": 3600,  # times of a busy machine tell a reader nothing
}

# --- the course -----------------------------------------------------------------------------------


def fold_solutions(app, doctree, docname):
    """A section "Solution" is folded, and opens with a click."""
    for section in list(doctree.findall(nodes.section)):
        if section[0].astext() == "Solution":
            start = (
                f'<details class="solution" id="{section["ids"][0]}"><summary>Solution</summary>'
            )
            inside = [nodes.raw("", start, format="html"), *section[1:]]
            section.parent.replace(section, [*inside, nodes.raw("", "</details>", format="html")])


# --- pages ----------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "mercer"
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["mercer.css"]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {
        "text": f"mercer {version}",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
    },
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "article_footer_items": [],
    "secondary_sidebar_items": ["page-toc", "sg_download_links"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {"index": [], "start": [], "performance": [], "trust": []}


def setup(app):
    # numpydoc turns docstrings into reStructuredText at 500; what is plain text there stays so.
    app.connect("autodoc-process-docstring", escape_mathematics, priority=900)
    app.connect("autodoc-skip-member", only_our_own)
    app.add_directive("slider", Slider)
    app.add_directive("kernel-atlas", KernelAtlas)
    app.connect("doctree-resolved", fold_solutions)
    app.connect("html-page-context", for_phones)
    app.add_html_math_renderer("mathml", (inline_math, None), (display_math, None))
    return {"parallel_read_safe": True}
