"""ResidualDisplay: where on a plane a map knows the kernel, and where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ... import KernelMap
from ...engine import Domain, as_numpy, is_array
from ...kernels import Data
from ...kernels import points as pts
from .style import COLOURS, SEQUENTIAL, Display, fitted, numbers_of, share_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

FINEST, WIDEST = 2000, 1e6


@dataclass(eq=False, repr=False)
class ResidualDisplay(Display):
    """Draw where a map knows the data: rho^2(z) / k(z, z), from 0 (known) to 1 (unknown).

    It bounds the error of the map, and is the variance of a Gaussian process at zero noise.

    Parameters
    ----------
    xs, ys : arrays of numbers
        Where the columns and rows of the picture stand.
    residual : array of shape (len(ys), len(xs))
        rho^2(z) / k(z, z) there.
    points : array of shape (n, 2)
        Data to draw on it.
    landmarks : array of shape (r, 2) or None
        Points to mark among these.
    names : two texts or None
        Labels of the axes.
    title : str or None
        What stands above the picture.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, KernelMap, ResidualDisplay
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> display = ResidualDisplay.from_estimator(KernelMap(RBF(1.0)).fit(X), X)
    >>> display.residual.shape, float(display.residual.max()) <= 1.0
    ((120, 120), True)
    >>> display.plot().ax_.has_data()
    True
    """

    xs: ArrayLike
    ys: ArrayLike
    residual: ArrayLike
    _: KW_ONLY
    points: ArrayLike = ()
    landmarks: ArrayLike | None = None
    names: Sequence[str] | None = None
    title: str | None = None

    @classmethod
    def from_estimator(
        cls,
        kernel_map: KernelMap,
        X: Data,
        *,
        resolution: int = 120,
        margin: float = 0.25,
        title: str | None = None,
    ) -> Self:
        """Take a fitted `kernel_map` on data with two columns, around the points X.

        The grid has `resolution` points a side, and reaches beyond the points by `margin` times
        their extent. `title` stands above the picture.
        """
        fitted(kernel_map, "residual", "kernel_", "landmarks_", name="kernel_map")
        Domain.whole(2, FINEST)("resolution", resolution)
        resolution, margin = int(resolution), share_of(margin, "margin", WIDEST)
        rows: Any = X
        names = [str(name) for name in rows.columns] if hasattr(rows, "columns") else None
        rows = rows if names is not None or not is_array(rows) else as_numpy(rows)
        points = numbers_of(rows.to_numpy() if names is not None else rows, "X", 2)
        if points.ndim != 2 or points.shape[1] != 2:
            raise ValueError(
                f"a residual map is drawn on a plane: X must have two columns, got {points.shape}."
            )
        low, high = points.min(axis=0), points.max(axis=0)
        edge = margin * np.where(high > low, high - low, 1.0)
        xs, ys = (np.linspace(low[j] - edge[j], high[j] + edge[j], resolution) for j in range(2))
        grid: Any = np.column_stack([g.ravel() for g in np.meshgrid(xs, ys)])
        if names is not None:
            grid = type(rows)(dict(zip(rows.columns, grid.T)))
        rho2 = as_numpy(kernel_map.residual(grid))
        length = as_numpy(kernel_map.kernel_.diag(grid))
        relative = rho2 / np.where(length > 0, length, 1)
        S = kernel_map.landmarks_
        title = f"{kernel_map.kernel_!r}, rank {kernel_map.rank_}" if title is None else title
        return cls(
            xs,
            ys,
            np.clip(relative, 0, 1).reshape(resolution, resolution),
            points=points,
            landmarks=None if S is None else np.asarray(as_numpy(S), dtype=float),
            names=names,
            title=title,
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        cmap: str | Colormap = SEQUENTIAL,
        colorbar: bool = True,
    ) -> Self:
        """Draw the map with the points, landmarks ringed.

        On `ax` (None: a new figure), in the colours of `cmap`, with or without `colorbar`.
        """
        ax = self._begin(ax, (6.0, 4.8))
        xs, ys = numbers_of(self.xs, "xs", 1), numbers_of(self.ys, "ys", 1)
        residual = np.clip(numbers_of(self.residual, "residual", 2), 0, 1)
        if residual.shape != (len(ys), len(xs)) or min(residual.shape) < 2:
            raise ValueError(
                f"residual must have a row for each of ys and a column for each of xs, at least "
                f"two: ({len(ys)}, {len(xs)}), got {residual.shape}."
            )
        points = numbers_of(self.points, "points", 2) if np.size(self.points) else np.empty((0, 2))
        landmarks = None if self.landmarks is None else numbers_of(self.landmarks, "landmarks", 2)
        if any(A is not None and len(A) and A.shape[1] != 2 for A in (points, landmarks)):
            raise ValueError("points and landmarks must have two columns.")
        with pts.naming("cmap"):
            self.image_ = ax.contourf(xs, ys, residual, levels=np.linspace(0, 1, 21), cmap=cmap)
        if len(points):
            self._scatter(points, s=10, color="white", edgecolors="#333333", linewidths=0.4)
        if landmarks is not None and len(landmarks) < len(points):
            rings: Any = {"facecolors": "none", "edgecolors": COLOURS[1], "linewidths": 1.4}
            self._scatter(landmarks, s=42, label=f"{len(landmarks)} landmarks", **rings)
            ax.legend(loc="upper right", framealpha=0.9)
        if colorbar:
            bar = self._colorbar(self.image_, ticks=[0, 0.25, 0.5, 0.75, 1])
            bar.set_label("unseen share ρ²(z) / k(z, z)")
        return self._finish()
