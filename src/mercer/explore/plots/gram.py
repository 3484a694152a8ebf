"""GramDisplay: the kernel matrix, rows ordered by class."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from ... import as_kernel
from ...engine import Domain, as_numpy, tiles
from ...kernels import Data, KernelLike
from ...kernels import points as pts
from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

# More rows than a screen has pixels show nothing more.
_MOST_ROWS = 1000


@dataclass(eq=False, repr=False)
class GramDisplay(style.Display):
    """Draw a kernel matrix as an image; a good kernel shows one bright block per class.

    Parameters
    ----------
    matrix : array of shape (n, n)
        Kernel values of every pair.
    y : array of shape (n,) or None
        Classes or numbers by which rows and columns are ordered.
    title : str or None
        What stands above the picture.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import RBF, GramDisplay, KernelMap
    >>> X, y = load_iris(return_X_y=True)
    >>> display = GramDisplay.from_kernel(RBF(0.5), X, y).plot()
    >>> [label.get_text() for label in display.ax_.get_xticklabels()]
    ['0', '1', '2']
    >>> GramDisplay.from_estimator(KernelMap(RBF(0.5)).fit(X), X, y).matrix.shape
    (150, 150)
    """

    matrix: ArrayLike
    y: ArrayLike | None = None
    _: KW_ONLY
    title: str | None = None

    @classmethod
    def from_kernel(
        cls,
        kernel: KernelLike,
        X: Data,
        y: ArrayLike | None = None,
        *,
        max_rows: int = _MOST_ROWS,
        random_state: int = 0,
        title: str | None = None,
    ) -> Self:
        """k(X, X) of a `kernel`; of more than `max_rows` rows a sample, which the title says.

        `random_state` draws the sample.
        """
        given = as_kernel(kernel)
        title = repr(given) if title is None else title
        bound = given.bind(X)
        points = bound.points(X)
        n = points.shape[0]
        target = style.target_of(y, n)
        Domain.whole(1)("max_rows", max_rows)
        max_rows = int(max_rows)
        if n > max_rows:
            with pts.naming("random_state"):
                rng = np.random.default_rng(random_state)
            rows = np.sort(rng.choice(n, max_rows, replace=False))
            points = bound.layout.subset(points, rows)
            target = None if target is None else target[rows]
            title += f" ({max_rows} of {n} rows)"
        return cls(as_numpy(tiles.evaluate(bound, points)), target, title=title)

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, X: Data, y: ArrayLike | None = None, **kwargs: Any
    ) -> Self:
        """Take the kernel of a fitted map or method (`estimator`); options as in `from_kernel`."""
        kernel = getattr(estimator, "kernel_", None)
        if kernel is None:
            kernel = style.fitted(estimator, "kernel_map_").kernel_map_.kernel_
        return cls.from_kernel(kernel, X, y, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        normalize: bool = False,
        cmap: str | Colormap = style.SEQUENTIAL,
        colorbar: bool = True,
    ) -> Self:
        """Draw on `ax` (None: a new figure), in the colours of `cmap`, with or without `colorbar`.

        With `normalize` the cosines in feature space are shown instead of the values.
        """
        ax = self._begin(ax, (5.6, 4.8))
        K = style.numbers_of(self.matrix, "matrix", 2)
        if K.shape[0] != K.shape[1]:
            raise ValueError(f"matrix must be square, got shape {K.shape}.")
        self.y = style.target_of(self.y, len(K))
        if normalize:
            length = np.sqrt(np.maximum(np.diagonal(K), 0))
            K = K / np.outer(*[np.where(length > 0, length, 1)] * 2)
        order, labels, codes = np.arange(len(K)), None, None
        if self.y is not None:
            if not style.is_numeric_target(self.y):
                labels, codes = style.classes_of(self.y)
            order = np.argsort(self.y if codes is None else codes, kind="stable")
        signed = K.min() < 0
        largest = np.abs(K).max()
        limits = {"vmin": -largest, "vmax": largest} if signed else {"vmin": 0}
        with pts.naming("cmap"):
            self.image_ = ax.imshow(
                K[np.ix_(order, order)],
                cmap="PuOr_r" if signed else cmap,
                interpolation="antialiased",
                **limits,
            )
        if colorbar:
            self._colorbar(self.image_, shrink=0.8)
        ax.tick_params(length=0)
        ax.set(xticks=[], yticks=[])
        if codes is not None:
            self._blocks(ax, labels, codes)
        return self._finish(quiet=False)

    def _blocks(self, ax, labels, codes):
        """Lines between classes, and their names in the middle of the blocks."""
        ends = np.cumsum(np.bincount(codes))
        if len(labels) <= 40:
            for end in ends[:-1]:
                ax.axhline(end - 0.5, color="white", lw=0.8)
                ax.axvline(end - 0.5, color="white", lw=0.8)
        middles = ends - np.bincount(codes) / 2 - 0.5
        step = 1 + len(labels) // 25
        names = [style.literally(label, 14) for label in labels[::step]]
        steep = max(map(len, names)) > 3 and len(names) > 4
        ax.set_xticks(middles[::step], names, rotation=90 if steep else 0)
        ax.set_yticks(middles[::step], names)
