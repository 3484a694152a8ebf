"""ComparisonDisplay: every kernel's space side by side, each with its spectrum."""

import numpy as np

from .feature_space import FeatureSpaceDisplay
from .spectrum import SpectrumDisplay
from .style import as_comparison, is_numeric_target, literally, pyplot


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

    def __init__(self, comparison):
        self.comparison = comparison

    def plot(self, embedding=None, *, spectra=True):
        """Draw all embeddings, or the one named."""
        c = as_comparison(self.comparison)
        if embedding is not None and not isinstance(embedding, str):
            raise TypeError(f"embedding must be the name of one, or None, got {embedding!r}.")
        names = [embedding] if embedding else list(c.spaces[0].embeddings)
        unknown = [name for name in names if name not in c.spaces[0].embeddings]
        if unknown:
            raise ValueError(f"no embedding {unknown[0]!r}; made: {list(c.spaces[0].embeddings)}.")
        spectra = spectra or not names  # without embeddings the spectra are the picture
        n_rows, n_columns = len(names) + bool(spectra), len(c.spaces)
        self.figure_, self.axes_ = pyplot().subplots(
            n_rows,
            n_columns,
            figsize=(1.2 + 3.5 * n_columns, 0.9 + 3.2 * len(names) + 2.0 * bool(spectra)),
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
                ax.set_ylabel(name if column == 0 else "", fontsize="large")
            self.axes_[0, column].set_title(self._heading(space), loc="left", fontsize="medium")
            if spectra:
                ax = self.axes_[-1, column]
                SpectrumDisplay(space.spectrum).plot(ax)
                ax.set_ylabel("variance, %" if column == 0 else "")
        if spectra:
            self._share_limits(self.axes_[-1])
        if names:
            self._legend()
        self.figure_.suptitle(
            literally(c.headline, 160), x=0.01, ha="left", fontsize="x-large", weight="bold"
        )
        return self

    def _heading(self, space):
        text = literally(space.name, 34)
        if space.score is None:
            return text
        scores = ", ".join(
            f"{method} {np.mean(folds):.3f}" for method, folds in space.scores.items()
        )
        return f"{text}\n{scores}"

    def _share_limits(self, axes):
        """One scale for all spectra, so that they compare."""
        longest = max(len(space.spectrum) for space in self.comparison.spaces)
        for ax in axes:
            if longest > 20:
                ax.set_xscale("log")
                ax.set_xlim(0.8, longest)
                ax.xaxis.set_major_formatter("{x:g}")

    def _legend(self):
        c = self.comparison
        if c.target is None:
            return
        first = self.axes_[0, 0]
        if is_numeric_target(c.target):
            points = first.collections[-1]
            self.figure_.colorbar(points, ax=self.axes_[:, -1].tolist(), shrink=0.4)
            return
        handles, labels = first.get_legend_handles_labels()
        legend = self.figure_.legend(
            handles[:24], labels[:24], loc="outside right upper", frameon=False
        )
        for handle in legend.legend_handles:
            handle.set_sizes([40])
            handle.set_alpha(1)
