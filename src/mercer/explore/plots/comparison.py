"""ComparisonDisplay: every kernel's space side by side, each with its spectrum."""

import textwrap
from typing import TYPE_CHECKING, Self

from .feature_space import FeatureSpaceDisplay
from .spectrum import SpectrumDisplay
from .style import as_comparison, is_numeric_target, literally, pyplot, show_plainly

if TYPE_CHECKING:
    from ..compare import KernelComparison

_FONT_SIZE = 14  # readable when a page shows the picture at half its width
_COLUMN = 2.5  # inches for each kernel
_LETTER = 0.12  # inches, about what a letter of that size takes


class ComparisonDisplay:
    """One column per kernel, best first; one row per embedding, and one of spectra.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import RBF, Linear, compare_kernels
    >>> X, y = load_iris(return_X_y=True)
    >>> comparison = compare_kernels(X, y, [Linear(), RBF()], embeddings=["kernel PCA"])
    >>> display = comparison.plot()
    >>> display.axes_.shape
    (2, 2)
    """

    def __init__(self, comparison: "KernelComparison") -> None:
        self.comparison = comparison

    def plot(self, embedding: str | None = None, *, spectra: bool = True) -> Self:
        """Draw all embeddings, or the one named."""
        c = as_comparison(self.comparison)
        if embedding is not None and not isinstance(embedding, str):
            raise TypeError(f"embedding must be the name of one, or None, got {embedding!r}.")
        names = [embedding] if embedding else list(c.spaces[0].embeddings)
        unknown = [name for name in names if name not in c.spaces[0].embeddings]
        if unknown:
            raise ValueError(f"no embedding {unknown[0]!r}; made: {list(c.spaces[0].embeddings)}.")
        spectra = spectra or not names  # without embeddings the spectra are the picture
        with pyplot().rc_context({"font.size": _FONT_SIZE}):
            self._draw(c, names, spectra)
        return self

    def _draw(self, c, names, spectra):
        n_rows, n_columns = len(names) + bool(spectra), len(c.spaces)
        width = 0.6 + _COLUMN * max(n_columns, 2)
        self.figure_, self.axes_ = pyplot().subplots(
            n_rows,
            n_columns,
            figsize=(width, 1.6 + _COLUMN * len(names) + 1.8 * bool(spectra)),
            height_ratios=[1.0] * len(names) + [0.55] * bool(spectra),
            squeeze=False,
            layout="constrained",
        )
        faded = ~c.held_out if c.held_out.any() else None
        for column, space in enumerate(c.spaces):
            for row, name in enumerate(names):
                ax = self.axes_[row, column]
                FeatureSpaceDisplay(space.embeddings[name], c.target).plot(
                    ax, legend=False, faded=faded
                )
                ax.set_aspect("equal", adjustable="datalim")
                ax.set_xticks([])
                ax.set_yticks([])
                ax.set_ylabel(name if column == 0 else "")
            heading = textwrap.fill(literally(space.name, 40), int(_COLUMN / _LETTER))
            heading += "" if space.score is None else f"\n{space.score:.3f}"
            self.axes_[0, column].set_title(heading, loc="left", fontsize="medium")
            if spectra:
                ax = self.axes_[-1, column]
                SpectrumDisplay(space.spectrum).plot(ax)
                ax.set_ylabel("variance, %" if column == 0 else "")
        longest = max(len(space.spectrum) for space in c.spaces)
        for ax in self.axes_[-1] if spectra and longest > 20 else ():  # one scale for all
            ax.set_xscale("log")
            ax.set_xlim(0.8, longest)
            ax.xaxis.set_major_formatter("{x:g}")
        if names:
            self._legend()
        letters = int(width / (1.3 * _LETTER))  # bold and larger
        headline = textwrap.fill(literally(c.headline, 160), letters)
        if c.spaces[0].score is not None:
            headline += "\n" + textwrap.fill(f"({c.score_name} of each on left-out rows)", letters)
        self.figure_.suptitle(headline, x=0.01, ha="left", fontsize="large", weight="bold")

    def _legend(self):
        c = self.comparison
        if c.target is None:
            return
        first = self.axes_[0, 0]
        if is_numeric_target(c.target):
            points = first.collections[-1]
            self.figure_.colorbar(points, ax=self.axes_[:, -1].tolist(), shrink=0.4)
            return
        handles, labels = (each[:24] for each in first.get_legend_handles_labels())
        # A label takes a little less than headings do, and its point and the gap 0.7 inches.
        one = 0.85 * _LETTER * max(len(label) for label in labels) + 0.7
        fit = int(self.figure_.get_figwidth() / one)
        n_columns = max(1, min(len(labels), 2 * len(c.spaces), fit))
        rows = -(-len(labels) // n_columns)
        self.figure_.set_figheight(self.figure_.get_figheight() + 0.3 * max(0, rows - 2))
        legend = self.figure_.legend(
            handles, labels, loc="outside lower center", ncols=n_columns, frameon=False
        )
        show_plainly(legend.legend_handles)
