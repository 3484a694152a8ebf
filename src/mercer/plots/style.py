"""One look for all pictures: colours that colour-blind readers can tell apart, quiet axes."""

import re

import numpy as np

# Okabe and Ito (2008), the best visible on white first.
COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#4D4D4D",
    "#8C6D00",
)
# Beyond eight classes colours repeat with another shape: no two classes look the same.
SHAPES = ("o", "^", "s", "D", "v", "P", "X", "*")
SEQUENTIAL = "cividis"  # read alike with and without colour vision
MOST_IN_LEGEND = 24
LONG_NUMBER = re.compile(r"\d+\.\d{5,}(e-?\d+)?")


def pyplot():
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'mercer[plots]'.") from None
    return plt


def axes_for(ax, figsize):
    """The axes given, or new ones on a new figure."""
    if ax is not None:
        return ax
    _, ax = pyplot().subplots(figsize=figsize, layout="constrained")
    return ax


def is_numeric_target(y):
    """Whether a target is coloured along a scale rather than class by class."""
    y = np.asarray(y)
    return y.dtype.kind == "f" and len(np.unique(y)) > MOST_IN_LEGEND


def classes_of(y):
    """The classes in order, and each row's position among them."""
    y = np.asarray(y)
    if y.dtype.kind == "O":
        y = y.astype(str)
    return np.unique(y, return_inverse=True)


def looks(n_classes):
    """(colour, shape) of each class."""
    n = len(COLOURS)
    return [(COLOURS[i % n], SHAPES[(i // n) % len(SHAPES)]) for i in range(n_classes)]


def quiet(ax):
    """No box: the points are the picture."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color("#9a9a9a")
    ax.tick_params(colors="#6a6a6a", labelsize="small")


def literally(text, longest=60):
    """User text as it is ($ starts mathematics in matplotlib), long numbers shortened."""
    text = LONG_NUMBER.sub(lambda found: f"{float(found[0]):.4g}", str(text))
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return text.replace("$", r"\$")
