"""The picture on the front page: `python docs/images.py` writes docs/images/demo.png.

The comparison of `mercer demo` ([EXACT] section 4 on the digits that scikit-learn brings along),
drawn small enough for a front page.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from mercer import FeatureSpaceDisplay, compare_kernels
from mercer.cli import demo

HERE = Path(__file__).parent


def main():
    X, y, shape = demo.digits()
    kernels = demo.kernels(X.shape[1])
    comparison = compare_kernels(X, y, kernels, train_size=60, cv=5)
    names = [n for n in ("t-SNE", "discriminant") if n in comparison.spaces[0].embeddings]
    fig, axes = plt.subplots(
        len(names), len(kernels), figsize=(9, 3.1 * len(names)), layout="constrained"
    )
    images = X[comparison.rows].reshape(-1, *shape)
    for column, space in enumerate(comparison.spaces):
        for row, name in enumerate(names):
            ax = axes[row, column]
            display = FeatureSpaceDisplay(space.embeddings[name], comparison.target)
            display.plot(ax, legend=False, size=9, images=images, n_images=14)
            ax.set(xticks=[], yticks=[], ylabel=name if column == 0 else "")
        axes[0, column].set_title(f"{space.name}: {space.score:.3f} on new digits", loc="left")
    fig.savefig(HERE / "images/demo.png", dpi=80)
    print(comparison.headline)


if __name__ == "__main__":
    main()
