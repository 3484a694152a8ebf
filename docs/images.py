"""The pictures of the pages: `python docs/images.py [NAME ...]` draws rings, demo, certain.

rings.png opens README.md and the site: it is transparent and its words are grey, so that it reads
on a light and on a dark page. demo.png is the comparison of `mercer demo` ([EXACT] section 4 on the
digits that scikit-learn brings along). certain.png is that of docs/how-to/svm.md.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.datasets import make_circles, make_moons
from sklearn.svm import LinearSVC

from mercer import RBF, FeatureSpaceDisplay, KernelMap, KernelSVC, Linear, compare_kernels
from mercer.cli import demo

HERE = Path(__file__).parent
GREY, RINGS = "#808080", ("#d55e00", "#0086d1")


def certain():
    """Where a support vector machine on few landmarks provably answers as the exact one does: that
    of the page, with its new rows."""
    X, y = make_moons(400, noise=0.25, random_state=0)
    model = KernelSVC(C=10.0, kernel=KernelMap(RBF(1.0), max_rank=40)).fit(X[:200], y[:200])
    X, y = X[200:], y[200:]
    sides = [np.linspace(X[:, j].min() - 0.5, X[:, j].max() + 0.5, 300) for j in (0, 1)]
    Z = np.stack([side.ravel() for side in np.meshgrid(*sides)], axis=1)
    values = model.decision_function(Z).reshape(300, 300)
    sure = model.certain(Z).reshape(300, 300)
    fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    regions = np.where(sure, np.where(values > 0, 2.0, 0.0), 1.0)
    colors = ListedColormap(["#f6c9a8", "#ffffff", "#a8cfe8"])
    ax.contourf(*sides, regions, levels=[-0.5, 0.5, 1.5, 2.5], cmap=colors)
    ax.contour(*sides, values, levels=[0.0], colors="#1a1a1a", linewidths=1.2)
    for label, color in ((0, "#b34700"), (1, "#005b96")):
        ax.plot(*X[y == label].T, "o", ms=3.5, color=color, label=f"new, class {label}")
    ax.set(xticks=[], yticks=[], title="coloured: provably the class of the exact machine")
    ax.legend(loc="upper right")
    fig.savefig(HERE / "images/certain.png", dpi=110)
    plt.close(fig)


def rings():
    """Two rings, their exact coordinates under (x.z)^2, and the plane between them drawn back."""
    X, y = make_circles(300, noise=0.06, factor=0.45, random_state=0)
    kernel_map = KernelMap(Linear() ** 2, basis="eigen").fit(X)
    model = LinearSVC(C=10.0).fit(kernel_map.transform(X), y)
    plane, offset = model.coef_[0], float(model.intercept_[0])
    plt.rcParams.update({"font.size": 11, "text.color": GREY, "savefig.transparent": True})
    fig = plt.figure(figsize=(10.2, 3.7), layout="constrained")
    flat = fig.add_subplot(1, 3, 1), fig.add_subplot(1, 3, 3)
    space = fig.add_subplot(1, 3, 2, projection="3d")
    sides = np.linspace(-1.3, 1.3, 200)
    Z = np.stack([side.ravel() for side in np.meshgrid(sides, sides)], axis=1)
    values = model.decision_function(kernel_map.transform(Z)).reshape(200, 200)
    for label, color in enumerate(RINGS):
        for ax in flat:
            ax.plot(*X[y == label].T, "o", ms=3.2, color=color)
        across, side, up = kernel_map.transform(X[y == label])[:, [1, 2, 0]].T
        space.plot(across, side, np.sign(up.sum()) * up, "o", ms=3, color=color)
    upward = np.sign(kernel_map.transform(X)[:, 0].sum())
    edge = 0.75 * np.array([-1.0, 1.0])
    across, side = np.meshgrid(edge, edge)
    height = -(offset + plane[1] * across + plane[2] * side) / plane[0] * upward
    space.plot_surface(across, side, height, color=GREY, alpha=0.3)
    # The cone that all of the plane goes to, as a net.
    angles, radii = np.meshgrid(np.linspace(0, 2 * np.pi, 40), np.linspace(0, 1.12, 6))
    net = np.stack([radii * np.cos(angles / 2), radii * np.sin(angles / 2)], axis=-1)
    up, across, side = np.moveaxis(kernel_map.transform(net.reshape(-1, 2)).reshape(6, 40, 3), 2, 0)
    space.plot_wireframe(across, side, upward * up, color=GREY, lw=0.4, alpha=0.7)
    space.view_init(12, -60)
    space.set_axis_off()
    space.set_box_aspect((1, 1, 0.9), zoom=1.35)
    flat[1].contour(sides, sides, values, levels=[0.0], colors=GREY, linewidths=2)
    for ax in flat:
        ax.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), aspect="equal")
        ax.set_axis_off()
    flat[0].set_title("no line separates the rings")
    space.set_title("under $k = (x \\cdot z)^2$ they lie on a cone")
    flat[1].set_title("the plane, seen from the data")
    fig.savefig(HERE / "images/rings.png", dpi=150, bbox_inches="tight", pad_inches=0.08)
    plt.close(fig)


def front():
    """The comparison of `mercer demo`."""
    X, y, shape = demo.digits()
    kernels = demo.kernels(X.shape[1])
    comparison = compare_kernels(X, y, kernels, **demo.FROM_FEW)
    plt.rcParams["font.size"] = 12
    names = [n for n in ("t-SNE", "discriminant") if n in comparison.spaces[0].embeddings]
    fig, axes = plt.subplots(
        len(names), len(kernels), figsize=(9, 3.1 * len(names)), layout="constrained"
    )
    images = X[comparison.rows].reshape(-1, *shape)
    for column, space in enumerate(comparison.spaces):
        for row, name in enumerate(names):
            ax = axes[row, column]
            display = FeatureSpaceDisplay(space.embeddings[name], comparison.target)
            display.plot(ax, legend=False, size=14, images=images, n_images=5)
            ax.set(xticks=[], yticks=[], ylabel=name if column == 0 else "")
            ax.set_aspect("equal", adjustable="datalim")
        axes[0, column].set_title(f"{space.name}: {100 * space.score:.1f} % right", loc="left")
    fig.savefig(HERE / "images/demo.png", dpi=130)
    print(comparison.headline)


def main(names):
    drawn = {"rings": rings, "demo": front, "certain": certain}
    for name in names or drawn:
        with plt.rc_context():
            drawn[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
