"""
Six ordinary algorithms, made into kernel methods
=================================================

Six scikit-learn algorithms that can only draw straight lines, or look for round clusters, in the
space of one kernel. Nothing is derived: :class:`~mercer.Kernelized` fits them on coordinates whose
inner products are the kernel.
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
# The first panel is the algorithm as it comes. The other five see the same spirals through the same
# kernel.

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
        colors=["#cfe3f2", "#f7dcc9"],
    )
    ax.scatter(*X.T, c=np.where(arm, "#D55E00", "#0072B2"), s=7)
    ax.set(title=f"{name}: {model.score(X, arm):.2f}", xticks=[], yticks=[], aspect="equal")
plt.show()

# %%
# The rank of the map, found and not chosen, is the number of coordinates that every algorithm got:

print(algorithms["linear SVM"].kernel_map_.rank_, "coordinates for", len(X), "points")
