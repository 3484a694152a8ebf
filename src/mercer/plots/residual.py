"""ResidualDisplay: where on a plane a map knows the kernel, and where it does not."""

import numpy as np

from ..engine.arrays import as_numpy
from .style import COLOURS, SEQUENTIAL, axes_for, literally, quiet


class ResidualDisplay:
    """rho^2(z) / k(z, z) over a plane: 0 where the training points span z, 1 far from them all.

    It bounds the error of the map, and is the variance of a Gaussian process at zero noise.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, KernelMap, ResidualDisplay
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> display = ResidualDisplay.from_estimator(KernelMap(RBF(1.0)).fit(X), X)
    >>> display.residual.shape, float(display.residual.max()) <= 1.0
    ((120, 120), True)
    """

    def __init__(self, xs, ys, residual, *, points=(), landmarks=None, names=None, title=None):
        self.xs, self.ys, self.residual = xs, ys, residual
        self.points, self.landmarks = points, landmarks
        self.names, self.title = names, title

    @classmethod
    def from_estimator(cls, kernel_map, X, *, resolution=120, margin=0.25, title=None):
        """Of a fitted KernelMap on data with two columns, around the points X."""
        names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
        points = np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else as_numpy(X), dtype=float)
        if points.ndim != 2 or points.shape[1] != 2:
            raise ValueError(
                f"a residual map is drawn on a plane: X must have two columns, got {points.shape}."
            )
        low, high = points.min(axis=0), points.max(axis=0)
        edge = margin * np.where(high > low, high - low, 1.0)
        xs, ys = (np.linspace(low[j] - edge[j], high[j] + edge[j], resolution) for j in range(2))
        grid = np.column_stack([g.ravel() for g in np.meshgrid(xs, ys)])
        if names is not None:
            grid = type(X)(dict(zip(X.columns, grid.T)))
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

    def plot(self, ax=None, *, cmap=SEQUENTIAL, colorbar=True):
        """Draw the map with the points, landmarks ringed."""
        ax = axes_for(ax, (6.0, 4.8))
        self.ax_, self.figure_ = ax, ax.figure
        self.image_ = ax.contourf(
            self.xs, self.ys, self.residual, levels=np.linspace(0, 1, 21), cmap=cmap
        )
        if len(self.points):
            ax.scatter(*self.points.T, s=10, color="white", edgecolors="#333333", linewidths=0.4)
        if self.landmarks is not None and len(self.landmarks) < len(self.points):
            ax.scatter(
                *self.landmarks.T,
                s=42,
                facecolors="none",
                edgecolors=COLOURS[1],
                linewidths=1.4,
                label=f"{len(self.landmarks)} landmarks",
            )
            ax.legend(loc="upper right", framealpha=0.9)
        if colorbar:
            bar = self.figure_.colorbar(self.image_, ax=ax, ticks=[0, 0.25, 0.5, 0.75, 1])
            bar.set_label("unseen share ρ²(z) / k(z, z)")
            bar.outline.set_visible(False)
        for set_label, name in zip((ax.set_xlabel, ax.set_ylabel), self.names or ("", "")):
            set_label(literally(name))
        quiet(ax)
        if self.title is not None:
            ax.set_title(literally(self.title), loc="left")
        return self
