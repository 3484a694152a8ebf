"""One look for all pictures: colours that colour-blind readers can tell apart, quiet axes."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ...engine import is_number
from ...kernels import points as pts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito (2008), the best visible on white first.
COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7"),
    *("#E69F00", "#56B4E9", "#4D4D4D", "#8C6D00"),
)
# Beyond eight classes colours repeat with another shape: no two classes look the same.
SHAPES = ("o", "^", "s", "D", "v", "P", "X", "*")
SEQUENTIAL = "cividis"  # read alike with and without colour vision
INK = "#737373"
MOST_IN_LEGEND = 24
_LONG_NUMBER = re.compile(r"\d+\.\d{5,}(e[+-]?\d+)?")


class Display:
    """The base of all pictures: axes to draw on, a title, and a quiet look.

    After `plot`, `ax_` and `figure_` are matplotlib's.
    """

    title: str | None = None
    names: Any = None
    ax_: "Axes"
    figure_: Any

    def _begin(self, ax: "Axes | None", figsize: tuple[float, float]) -> "Axes":
        """Draw on the axes given, or on new ones."""
        if ax is not None and not (hasattr(ax, "figure") and hasattr(ax, "scatter")):
            raise TypeError(f"ax must be matplotlib axes or None, got {type(ax).__name__}.")
        if ax is None:
            _, ax = pyplot().subplots(figsize=figsize, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax

    def _scatter(self, Z: np.ndarray, **options: Any) -> Any:
        return self.ax_.scatter(Z[:, 0], Z[:, 1], **options)

    def _colorbar(self, drawn: Any, **options: Any) -> Any:
        bar = self.figure_.colorbar(drawn, ax=self.ax_, **options)
        bar.outline.set_visible(False)
        return bar

    def _finish(self, *, quiet: bool = True) -> Self:
        """Names of the axes and the title, where there are any; no box around the points."""
        ax, names = self.ax_, self.names
        if names is not None and np.shape(names) != (2,):
            raise ValueError(f"names must be two texts, one for each axis, or None, got {names!r}.")
        if names is not None:
            ax.set_xlabel(literally(names[0]), color=INK)
            ax.set_ylabel(literally(names[1]), color=INK)
        if quiet:
            ax.spines[["top", "right"]].set_visible(False)
            ax.spines[["left", "bottom"]].set_color("#9a9a9a")
            ax.tick_params(colors="#6a6a6a", labelsize="small")
        if self.title is not None:
            ax.set_title(literally(self.title), loc="left")
        return self


def pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'mercer[plots]'.") from None
    return plt


def numbers_of(values: Any, name: str, ndim: int, *, empty: bool = False) -> np.ndarray:
    """An argument as a finite array of floats of so many dimensions."""
    with pts.naming(name):
        values = np.asarray(values, dtype=float)
        if values.ndim != ndim or not (values.size or empty) or not np.isfinite(values).all():
            raise ValueError(
                f"{name} must be finite numbers in {ndim} dimension(s), got shape {values.shape}."
            )
    return values


def target_of(y: Any, n: int) -> np.ndarray | None:
    """The classes or numbers of n points, one each."""
    if y is None:
        return None
    y = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if y.shape != (n,):
        raise ValueError(f"y must hold one value for each of {n} points, got shape {y.shape}.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("y contains NaN or infinity.")
    return y


def share_of(value: Any, name: str, most: float = 1.0) -> float:
    """A number from 0 to most."""
    if not is_number(value) or not 0 <= value <= most:
        raise ValueError(f"{name} must be a number from 0 to {most:g}, got {value!r}.")
    return float(value)


def fitted(model: Any, *attributes: str, name: str = "estimator") -> Any:
    """An estimator that has what a picture needs of it."""
    missing = [a for a in attributes if not hasattr(model, a)]
    if missing:
        raise TypeError(
            f"{name} must be a fitted estimator with {missing[0]}, got {type(model).__name__}."
        )
    return model


def as_comparison(comparison: Any) -> Any:
    """Refuse anything but what compare_kernels returns."""
    if not hasattr(comparison, "spaces"):
        raise TypeError(
            f"comparison must be what compare_kernels returns, got {type(comparison).__name__}."
        )
    return comparison


def is_numeric_target(y: Any) -> bool:
    """Whether a target is coloured along a scale rather than class by class."""
    y = np.asarray(y)
    if y.dtype.kind != "f":
        return False
    return len(np.unique(y)) > MOST_IN_LEGEND or bool((y != np.round(y)).any())


def classes_of(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """The classes in order, and each row's position among them."""
    y = np.asarray(y)
    return np.unique(y.astype(str) if y.dtype.kind == "O" else y, return_inverse=True)


def looks(n_classes: int) -> list[tuple[str, str]]:
    """(colour, shape) of each class."""
    n = len(COLOURS)
    return [(COLOURS[i % n], SHAPES[(i // n) % len(SHAPES)]) for i in range(n_classes)]


def as_bytes(values: np.ndarray) -> np.ndarray:
    """Values on a scale from 0, the smallest, to 255, the largest."""
    low, spread = values.min(), np.ptp(values) or 1.0
    return (255 * ((values - low) / spread)).round().astype(np.uint8)


def show_plainly(handles: Sequence[Any]) -> None:
    """Points of a legend, all of one size, whatever they are in the picture."""
    for handle in handles:
        handle.set_sizes([40])
        handle.set_alpha(1)


def literally(text: object, longest: int = 60) -> str:
    """User text as it is ($ starts mathematics in matplotlib), long numbers shortened."""
    return shortened(short_numbers(str(text)), longest).replace("$", r"\$")


def shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def short_numbers(text: str) -> str:
    """The numbers of a kernel with four digits."""
    return _LONG_NUMBER.sub(lambda found: f"{float(found[0]):.4g}", text)


def as_text(value: Any) -> str:
    """A value of a table or target as a person writes it."""
    if not isinstance(value, (float, np.floating)):
        return str(value)
    # A column of integers with gaps is read as floats.
    number = float(value)
    whole = number.is_integer() and abs(number) < 1e15
    return f"{number:.0f}" if whole else f"{number:.4g}"
