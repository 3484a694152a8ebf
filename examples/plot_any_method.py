"""
Five ordinary algorithms, made into kernel methods
==================================================

Linear classifiers draw straight lines. In the space of a kernel their lines become curves, and
nothing has to be derived: :class:`~mercer.Kernelized` fits any algorithm on coordinates whose inner
products are the kernel.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.neighbors import NearestCentroid
from sklearn.svm import LinearSVC

from mercer import RBF, Kernelized, KernelMap

# Two spirals, which no line can tell apart.
rng = np.random.default_rng(0)
turn = np.sqrt(rng.uniform(0.02, 1, 300)) * 2.6 * np.pi
arm = rng.integers(0, 2, 300)
X = (turn / 8)[:, None] * np.column_stack(
    [np.cos(turn + np.pi * arm), np.sin(turn + np.pi * arm)]
) + 0.03 * rng.normal(size=(300, 2))

space = KernelMap(RBF(12.0), tol=1e-4)
algorithms = {
    "no kernel": LogisticRegression(),
    "logistic": Kernelized(LogisticRegression(C=100), space),
    "linear SVM": Kernelized(LinearSVC(C=10), space),
    "nearest centroid": Kernelized(NearestCentroid(), space),
    "perceptron": Kernelized(Perceptron(), space),
    "LDA": Kernelized(LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.01), space),
}

# %%
# The first panel is logistic regression without a kernel. The other five algorithms see the same
# spirals through the same kernel. The number is the accuracy on these points.

line = np.linspace(-1.25, 1.25, 90)
plane = np.column_stack([g.ravel() for g in np.meshgrid(line, line)])
fig, axes = plt.subplots(2, 3, figsize=(8, 5.9))
for ax, (name, model) in zip(axes.ravel(), algorithms.items()):
    model.fit(X, arm)
    ax.contourf(
        line,
        line,
        model.predict(plane).reshape(90, 90),
        levels=[-1, 0.5, 2],
        colors=["#0072B2", "#D55E00"],
        alpha=0.25,
    )
    ax.scatter(*X.T, c=np.where(arm, "#D55E00", "#0072B2"), s=7)
    ax.set(title=f"{name}: {model.score(X, arm):.2f}", xticks=[], yticks=[], aspect="equal")
plt.show()

# %%
# The map finds by itself how many coordinates it needs. Every algorithm was fitted on these:

print(algorithms["linear SVM"].kernel_map_.rank_, "coordinates for", len(X), "points")
