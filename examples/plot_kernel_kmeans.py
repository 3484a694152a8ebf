r"""
Kernel k-means finds rings
==========================

k-means divides the plane by straight lines, so it cuts rings into pieces. In the right feature
space the same algorithm finds the rings, because points that are linked by short steps are close
together there.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from mercer import RBF, FeatureSpaceDisplay, KernelMap, Rescaled

rng = np.random.default_rng(0)
ring = np.repeat([0, 1, 2], [60, 140, 240])
radius = np.array([0.15, 1.0, 1.9])[ring] + 0.06 * rng.normal(size=440)
angle = rng.uniform(0, 2 * np.pi, 440)
X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])

# %%
# A kernel that ignores density
# -----------------------------
# A narrow Gaussian kernel links neighbours. The crowded middle would dominate its space, so every
# point is divided by the root of its number of neighbours: :math:`f(x)\, k(x, z)\, f(z)`. This is
# rule 2 of the ten rules (:ref:`sphx_glr_auto_ideas_plot_01_kernels.py`), and a valid kernel for any
# function f. k-means on the leading directions of this space is known as spectral clustering.

near = RBF(20.0)


def by_density(Z):
    return 1 / np.sqrt(near(Z, X).sum(axis=1))


kernel = Rescaled(near, by_density)
print(kernel, "is valid:", kernel.is_psd)
Phi = KernelMap(kernel, basis="eigen").fit_transform(X)[:, :3]  # the largest eigenvalues
Phi = Phi / np.linalg.norm(Phi, axis=1, keepdims=True)

straight = KMeans(3, n_init=10, random_state=0).fit_predict(X)
in_space = KMeans(3, n_init=10, random_state=0).fit_predict(Phi)

# %%
# Agreement with the true rings is 1 if every pair of points is grouped correctly, and 0 by chance.

fig, axes = plt.subplots(1, 2, figsize=(8, 4.4), sharex=True, sharey=True)
for ax, labels, name in zip(axes, (straight, in_space), ("k-means", "kernel k-means")):
    agreement = adjusted_rand_score(ring, labels)
    title = f"{name}: agreement {agreement:.2f}"
    FeatureSpaceDisplay(X, labels.astype(str), title=title).plot(ax, legend=False, size=16)
    ax.set(xticks=[], yticks=[], aspect="equal")
plt.show()

# %%
# Why this works: the picture shows the cosines between all points, sorted by ring and then by
# angle. In feature space all points of a ring have the same direction, and the directions of the
# three rings are at right angles, so k-means has an easy task. In the plane the same picture shows
# no blocks.

order = np.lexsort([angle, ring])
centred = X - X.mean(axis=0)
pictures = {
    "in the plane": centred / np.linalg.norm(centred, axis=1, keepdims=True),
    "in feature space": Phi,
}
fig, axes = plt.subplots(1, 2, figsize=(8, 4.2), sharey=True)
for ax, (name, points) in zip(axes, pictures.items()):
    drawn = ax.imshow(points[order] @ points[order].T, cmap="PuOr", vmin=-1, vmax=1)
    ax.set(title=name, xticks=[30, 130, 320], yticks=[30, 130, 320])
    ax.set(xticklabels=["middle", "ring", "outer ring"], yticklabels=["middle", "ring", "outer"])
fig.colorbar(drawn, ax=axes, label="cosine", ticks=[-1, 0, 1], shrink=0.8)
plt.show()
