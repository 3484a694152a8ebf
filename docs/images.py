"""The pictures of the pages: `python docs/images.py` writes demo.png, certain.png, which.svg.

demo.png is the comparison of `mercer demo` ([EXACT] section 4 on the digits that scikit-learn
brings along), drawn small enough for a front page. which.svg is the diagram of
docs/how-to/which.md; it is narrow, so that a phone shows its text in a readable size. certain.png
is that of docs/how-to/svm.md.
"""

from html import escape
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.datasets import make_moons

from mercer import RBF, FeatureSpaceDisplay, KernelMap, KernelSVC, compare_kernels
from mercer.cli import demo

HERE = Path(__file__).parent

# (question, letter, the names to use)
WHICH = [
    (["Two samples: do", "they differ?"], "A", ["two_sample_test"]),
    (["A matrix of", "distances?"], "B", ["ClassicalMDS"]),
    (["A matrix of", "similarities?"], "C", ['"precomputed"', "in any method"]),
    (["Strings, graphs,", "sets, time series?"], "D", ["Spectrum, SetOf, ...", "in any method"]),
    (["More rows than", "fit the memory?"], "E", ["Chunks or Dask,", "KernelMap(tol=...)"]),
    (["A GPU?"], "F", ["torch or CuPy arrays"]),
    (["A table with a", "column to predict?"], "G", ["KernelRegressor,", "KernelClassifier"]),
    (["A picture, clusters,", "your own estimator"], "H", ["KernelPCA,", "Kernelized"]),
]


def which():
    """The decision diagram: a column of questions, and what to use to the right of each."""
    step, height, left, right = 84, 58, (10, 196), (262, 188)
    parts = []

    def box(x, width, y, lines, fill, letter=""):
        parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{fill}" '
            'stroke="#0072b2"/>'
        )
        middle = x + width / 2 + (12 if letter else 0)
        if letter:
            parts.append(f'<text class="letter" x="{x + 18}" y="{y + 35}">{letter}</text>')
        for i, line in enumerate(lines):
            at = y + height / 2 + 5 + 19 * (i - (len(lines) - 1) / 2)
            parts.append(f'<text x="{middle:g}" y="{at:g}">{escape(line)}</text>')

    for i, (question, letter, answer) in enumerate(WHICH):
        y, last = 10 + i * step, i == len(WHICH) - 1
        box(*left, y, question, "#ffffff")
        box(*right, y, answer, "#e3f0f8", letter)
        across, down = y + height / 2, y + height
        parts.append(f'<path d="M{sum(left)} {across}H{right[0] - 3}"/>')
        if not last:
            parts.append(f'<text class="word" x="{sum(left) + 28}" y="{across - 6}">yes</text>')
            parts.append(f'<path d="M{left[0] + 98} {down}V{y + step - 3}"/>')
            parts.append(f'<text class="word" x="{left[0] + 116}" y="{down + 17}">no</text>')
    total = 20 + step * len(WHICH) - (step - height)
    size = f'viewBox="0 0 460 {total}" width="460"'
    return f"""<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">
<title>Which one should I use?</title>
<style>
text {{ font: 15px sans-serif; text-anchor: middle; fill: #1a1a1a; }}
.word {{ fill: #555555; font-size: 14px; }}
.letter {{ font-weight: bold; fill: #b34700; }}
path {{ stroke: #555555; stroke-width: 1.5; fill: none; marker-end: url(#tip); }}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"
 orient="auto"><path d="M0 0L8 4L0 8z" style="fill: #555555; stroke: none; marker-end: none"/>
</marker></defs>
<rect width="460" height="{total}" fill="#ffffff"/>
{chr(10).join(parts)}
</svg>
"""


def certain():
    """Where a support vector machine on few landmarks provably answers as the exact one does."""
    X, y = make_moons(200, noise=0.25, random_state=0)
    model = KernelSVC(C=10.0, kernel=KernelMap(RBF(1.0), max_rank=40)).fit(X, y)
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
        ax.plot(*X[y == label].T, "o", ms=3.5, color=color, label=f"class {label}")
    ax.set(xticks=[], yticks=[], title="coloured: provably the class of the exact machine")
    ax.legend(loc="upper right")
    fig.savefig(HERE / "images/certain.png", dpi=110)
    plt.close(fig)


def main():
    certain()
    (HERE / "images/which.svg").write_text(which())
    X, y, shape = demo.digits()
    kernels = demo.kernels(X.shape[1])
    comparison = compare_kernels(X, y, kernels, train_size=60, cv=5)
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


if __name__ == "__main__":
    main()
