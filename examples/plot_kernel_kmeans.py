r"""
Rings: k-means, kernel k-means, spectral clustering
===================================================

k-means divides the plane by straight lines, so it cuts rings into pieces. A kernel alone does not
help here: it must be the right one, or one must keep only the leading directions of its space.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from mercer import RBF, FeatureSpaceDisplay, FromFeatures, Kernelized, KernelMap, Rescaled

rng = np.random.default_rng(0)
ring = np.repeat([0, 1, 2], [60, 140, 240])
radius = np.array([0.15, 1.0, 1.9])[ring] + 0.06 * rng.normal(size=440)
angle = rng.uniform(0, 2 * np.pi, 440)
X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
kmeans = KMeans(3, n_init=10, random_state=0)

# %%
# A kernel that links neighbours, and ignores density
# ---------------------------------------------------
# A narrow Gaussian kernel links neighbours. The crowded middle would dominate its space, so every
# point is divided by the root of its number of neighbours: :math:`f(x)\, k(x, z)\, f(z)`. This is
# rule 2 of the ten rules (:ref:`sphx_glr_auto_ideas_plot_01_kernels.py`), and always valid.

near = RBF(20.0)


def by_density(Z):
    return 1 / np.sqrt(near(Z, X).sum(axis=1))


kernel = Rescaled(near, by_density)
print(kernel, "is valid:", kernel.is_psd)

# %%
# **Kernel k-means** in the whole space of this kernel fails: the space has as many directions as
# there are points, and in most of them neighbours are as far apart as strangers. **Spectral
# clustering** is k-means on the three leading directions, scaled to length one. They hold what
# all points of a ring have in common.
#
# Kernel k-means does find the rings under a kernel that compares what distinguishes them: the
# squared distance from the middle.


def squared_radius(Z):
    return np.sum(Z**2, axis=1, keepdims=True)


leading = KernelMap(kernel, basis="eigen").fit_transform(X)[:, :3]
leading = leading / np.linalg.norm(leading, axis=1, keepdims=True)
found = {
    "k-means": kmeans.fit_predict(X),
    "kernel k-means, neighbours": Kernelized(kmeans, kernel).fit_predict(X),
    "spectral: three directions": kmeans.fit_predict(leading),
    "kernel k-means, radius": Kernelized(kmeans, FromFeatures(squared_radius)).fit_predict(X),
}

# %%
# Agreement with the true rings is 1 if every pair of points is grouped correctly, and 0 by chance.

fig, axes = plt.subplots(2, 2, figsize=(7.6, 7.8), sharex=True, sharey=True)
for ax, (name, labels) in zip(axes.ravel(), found.items()):
    title = f"{name}: {adjusted_rand_score(ring, labels):.2f}"
    FeatureSpaceDisplay(X, labels.astype(str), title=title).plot(ax, legend=False, size=16)
    ax.set(xticks=[], yticks=[], aspect="equal")
plt.show()

# %%
# Why three directions are enough: the picture shows the cosines between all points, sorted by ring
# and then by angle. In the leading directions all points of a ring lie the same way, and the three
# rings are at right angles. In the whole space only neighbours are alike.

signs = LinearSegmentedColormap.from_list("signs", ["#D55E00", "#80808000", "#0072B2"])
order = np.lexsort([angle, ring])
whole = KernelMap(kernel).fit_transform(X)
pictures = {
    "in the whole space": whole / np.linalg.norm(whole, axis=1, keepdims=True),
    "in three directions": leading,
}
fig, axes = plt.subplots(1, 2, figsize=(8, 4.2), sharey=True)
for ax, (name, points) in zip(axes, pictures.items()):
    drawn = ax.imshow(points[order] @ points[order].T, cmap=signs, vmin=-1, vmax=1)
    ax.set(title=name, xticks=[30, 130, 320], yticks=[30, 130, 320])
    ax.set(xticklabels=["middle", "ring", "outer ring"], yticklabels=["middle", "ring", "outer"])
fig.colorbar(drawn, ax=axes, label="cosine", ticks=[-1, 0, 1], shrink=0.8)
plt.show()
