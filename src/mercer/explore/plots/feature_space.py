"""FeatureSpaceDisplay: points of a feature space in two of its coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler

from ... import KernelMap
from ...engine import Domain, as_numpy
from ...kernels import Data, KernelLike
from ...kernels import points as pts
from ..embeddings import DISCRIMINANT, PCA, available, embed
from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class FeatureSpaceDisplay(style.Display):
    """Draw points in two coordinates of a feature space.

    Parameters
    ----------
    coordinates : array of shape (n, 2) or wider
        The first two columns are drawn.
    y : array of shape (n,) or None
        Classes or numbers to colour by.
    names : two texts or None
        Labels of the axes.
    title : str or None
        What stands above the picture.

    Attributes
    ----------
    ax_, figure_ : matplotlib's, after plot
        Where the picture is.
    points_ : list of the drawn collections, one per class
        To change colours or sizes afterwards.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import RBF, FeatureSpaceDisplay, KernelPCA
    >>> X, y = load_iris(return_X_y=True)
    >>> display = FeatureSpaceDisplay.from_kernel(RBF(0.5), X, y)
    >>> display.plot().ax_.get_xlabel()
    'kernel PCA 1'
    >>> fitted = KernelPCA(2, RBF(0.5)).fit(X)
    >>> FeatureSpaceDisplay.from_estimator(fitted, X, y).coordinates.shape
    (150, 2)
    """

    coordinates: ArrayLike
    y: ArrayLike | None = None
    _: KW_ONLY
    names: Sequence[str] | None = None
    title: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: Data,
        y: ArrayLike | None = None,
        *,
        title: str | None = None,
    ) -> Self:
        """The first two columns of a fitted `estimator`: KernelPCA, KernelDiscriminant, a map.

        `title` stands above the picture.
        """
        style.fitted(estimator, "transform", "get_feature_names_out")
        Z = as_numpy(estimator.transform(X))
        y = style.target_of(y, len(Z))
        if Z.ndim != 2:
            raise ValueError(f"transform must return a table of coordinates, got shape {Z.shape}.")
        names = [str(name) for name in estimator.get_feature_names_out()[:2]]
        if Z.shape[1] == 1:
            # Heights keep the points apart: a strip for each class.
            heights = np.random.default_rng(0).uniform(-0.35, 0.35, size=len(Z))
            if y is not None and not style.is_numeric_target(y):
                heights += style.classes_of(y)[1]
            Z, names = np.column_stack([Z, heights]), [*names, ""]
        return cls(Z, y, names=names, title=title)

    @classmethod
    def from_kernel(
        cls,
        kernel: KernelLike,
        X: Data,
        y: ArrayLike | None = None,
        *,
        embedding: str = PCA,
        random_state: int = 0,
        title: str | None = None,
    ) -> Self:
        """The space of a kernel on X.

        `embedding` is "kernel PCA", "discriminant" (needs y) or "t-SNE", which starts from
        `random_state`. `title` stands above the picture; None: the kernel.
        """
        available([embedding], "classification", [])
        if embedding == DISCRIMINANT and y is None:
            raise ValueError("discriminant axes need the classes y.")
        kernel_map = KernelMap(kernel)
        Phi = as_numpy(kernel_map.fit_transform(X)).astype(float)
        y = style.target_of(y, len(Phi))
        codes = None if y is None else style.classes_of(y)[1]
        Z = embed(embedding, Phi, Phi[:0], codes, random_state)
        title = repr(kernel_map.kernel_) if title is None else title
        return cls(Z, y, names=(f"{embedding} 1", f"{embedding} 2"), title=title)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        images: ArrayLike | None = None,
        n_images: int = 40,
        legend: bool = True,
        size: float | None = None,
        alpha: float = 0.8,
        faded: ArrayLike | None = None,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes or None
        images : array of shape (n, height, width), shown next to some of the points
        n_images : how many, spread over the picture
        legend : bool
        size, alpha : of the points; None: by their number
        faded : mask of points drawn small and pale (those that an embedding was fitted to)
        """
        ax = self._begin(ax, (6.2, 5.0))
        Z = style.numbers_of(self.coordinates, "coordinates", 2)[:, :2]
        if Z.shape[1] < 2:
            raise ValueError(f"coordinates must have at least two columns, got {Z.shape[1]}.")
        self.y = y = style.target_of(self.y, len(Z))
        n = len(Z)
        size = float(np.clip(12000 / n, 8, 36)) if size is None else size
        Domain.POSITIVE("size", size)
        size = float(size)  # integers beyond 64 bits would be objects to matplotlib
        alpha = style.share_of(alpha, "alpha")
        faded = np.zeros(n, dtype=bool) if faded is None else np.asarray(faded)
        if faded.shape != (n,) or faded.dtype != bool:
            raise ValueError(f"faded must be a mask of {n} booleans, got {faded!r}.")
        Domain.whole(0)("n_images", n_images)
        draw = self._plot_classes
        if y is not None and style.is_numeric_target(y):
            draw = self._plot_numbers
        draw(Z, faded, size, alpha, legend)
        if images is not None:
            self._plot_images(Z, images, int(n_images))
        ax.margins(0.06)
        return self._finish()

    def _plot_classes(self, Z, faded, size, alpha, legend):
        labels, codes = np.array([""]), np.zeros(len(Z), dtype=int)
        if self.y is not None:
            labels, codes = style.classes_of(self.y)
        self.points_ = []
        for code, (colour, shape) in enumerate(style.looks(len(labels))):
            mine = codes == code
            look: dict[str, Any] = dict(marker=shape, color=colour, edgecolors="none")
            if faded.any():
                self._scatter(Z[mine & faded], s=0.4 * size, alpha=0.18, zorder=1, **look)
            look |= {"alpha": alpha, "zorder": 2, "label": style.literally(labels[code], 30)}
            self.points_.append(self._scatter(Z[mine & ~faded], s=size, **look))
        if legend and self.y is not None:
            n, most = len(labels), style.MOST_IN_LEGEND
            drawn = self.ax_.legend(
                handles=self.points_[:most],
                loc="center left",
                bbox_to_anchor=(1.01, 0.5),
                fontsize="medium" if n <= 12 else "small",  # one column: long names leave no room
                frameon=False,
                title=None if n <= most else f"{most} of {n} classes",
            )
            style.show_plainly(drawn.legend_handles)

    def _plot_numbers(self, Z, faded, size, alpha, legend):
        values = np.asarray(self.y, dtype=float)
        scale: dict[str, Any] = dict(
            cmap=style.SEQUENTIAL, vmin=values.min(), vmax=values.max(), edgecolors="none"
        )
        if faded.any():
            self._scatter(Z[faded], c=values[faded], s=0.4 * size, alpha=0.25, **scale)
        here = ~faded
        drawn = self._scatter(Z[here], c=values[here], s=size, alpha=alpha, **scale)
        self.points_ = [drawn]
        if legend:
            self._colorbar(drawn, shrink=0.8)

    def _plot_images(self, Z, images, n_images):
        """Thumbnails; each next one belongs to the point farthest from those already shown."""
        from matplotlib.offsetbox import AnnotationBbox, OffsetImage

        with pts.naming("images"):
            images = np.asarray(images)
            if images.ndim < 3 or images.dtype.kind not in "biuf":
                raise ValueError(f"images must have shape (n, height, width), got {images.shape}.")
        if len(images) != len(Z):
            raise ValueError(f"images holds {len(images)} entries for {len(Z)} points.")
        P = StandardScaler().fit_transform(Z)
        chosen, distance = [], np.full(len(P), np.inf)
        for _ in range(min(n_images, len(P))):
            chosen.append(int(distance.argmax()))
            distance = np.minimum(distance, ((P - P[chosen[-1]]) ** 2).sum(axis=1))
        zoom = 20 / max(images.shape[1:3])
        self.images_ = []
        for i in chosen:
            box = OffsetImage(images[i], zoom=zoom, cmap="gray_r", interpolation="nearest")
            note = AnnotationBbox(box, Z[i], pad=0.1, bboxprops={"lw": 0.4, "ec": "#aaaaaa"})
            self.images_.append(self.ax_.add_artist(note))
