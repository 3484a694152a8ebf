"""One look for all pictures: colours that colour-blind readers can tell apart, quiet axes."""

import re
from typing import TYPE_CHECKING

import numpy as np

from ...engine.checks import is_number
from ...kernels.points import naming

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
LONG_NUMBER = re.compile(r"\d+\.\d{5,}(e[+-]?\d+)?")


def pyplot():
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'mercer[plots]'.") from None
    return plt


def axes_for(ax: "Axes | None", figsize: tuple[float, float]) -> "Axes":
    """The axes given, or new ones on a new figure."""
    if ax is not None and not (hasattr(ax, "figure") and hasattr(ax, "scatter")):
        raise TypeError(f"ax must be matplotlib axes or None, got {type(ax).__name__}.")
    if ax is not None:
        return ax
    _, ax = pyplot().subplots(figsize=figsize, layout="constrained")
    return ax


def numbers_of(values, name, ndim, *, empty=False):
    """An argument as a finite array of floats of so many dimensions."""
    with naming(name):
        values = np.asarray(values, dtype=float)
        if values.ndim != ndim or not (values.size or empty) or not np.isfinite(values).all():
            raise ValueError(
                f"{name} must be finite numbers in {ndim} dimension(s), got shape {values.shape}."
            )
    return values


def target_of(y, n):
    """The classes or numbers of n points, one each."""
    if y is None:
        return None
    y = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if y.shape != (n,):
        raise ValueError(f"y must hold one value for each of {n} points, got shape {y.shape}.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("y contains NaN or infinity.")
    return y


def share_of(value, name, most=1.0):
    """A number from 0 to most."""
    if not is_number(value) or not 0 <= value <= most:
        raise ValueError(f"{name} must be a number from 0 to {most:g}, got {value!r}.")
    return float(value)


def two_names(names):
    """Labels of two axes."""
    if names is not None and np.shape(names) != (2,):
        raise ValueError(f"names must be two texts, one for each axis, or None, got {names!r}.")
    return names


def fitted(model, *attributes, name="estimator"):
    """An estimator that has what a picture needs of it."""
    missing = [a for a in attributes if not hasattr(model, a)]
    if missing:
        raise TypeError(
            f"{name} must be a fitted estimator with {missing[0]}, got {type(model).__name__}."
        )
    return model


def as_comparison(comparison):
    if not hasattr(comparison, "spaces"):
        raise TypeError(
            f"comparison must be what compare_kernels returns, got {type(comparison).__name__}."
        )
    return comparison


def is_numeric_target(y):
    """Whether a target is coloured along a scale rather than class by class."""
    y = np.asarray(y)
    if y.dtype.kind != "f":
        return False
    return len(np.unique(y)) > MOST_IN_LEGEND or bool((y != np.round(y)).any())


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


def titled(ax, title):
    """The title, where there is one, above the left edge."""
    if title is not None:
        ax.set_title(literally(title), loc="left")


def literally(text, longest=60):
    """User text as it is ($ starts mathematics in matplotlib), long numbers shortened."""
    return shortened(short_numbers(str(text)), longest).replace("$", r"\$")


def shortened(text, longest):
    return text if len(text) <= longest else text[: longest - 1] + "…"


def short_numbers(text):
    """The numbers of a kernel with four digits."""
    return LONG_NUMBER.sub(lambda found: f"{float(found[0]):.4g}", text)


def as_text(value):
    """A value of a table or target as a person writes it."""
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)
