r"""
6. Distances, maps of them, and the way back
============================================

Inner products determine distances, and distances determine inner products. This page goes from a
kernel to distances, from distances to a map, and from a place in feature space back to a point of
the original data.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import RBF, ClassicalMDS, KernelMap, KernelPCA, Linear, preimage

rng = np.random.default_rng(0)

# %%
# From a kernel to distances
# --------------------------
# In feature space ([EXACT] (26))
#
# .. math:: |\varphi(x) - \varphi(z)|^2 = k(x, x) + k(z, z) - 2\, k(x, z) .
#
# For a Gaussian kernel, points that are far apart are all at the same distance,
# :math:`\sqrt2`. The kernel sees neighbourhoods in detail, and cannot tell far from farther.

line = np.linspace(0, 5, 60)[:, None]
fig, ax = plt.subplots(figsize=(7, 3.4))
for kernel in (RBF(0.1), RBF(1.0), RBF(10.0), Linear()):
    kernel_map = KernelMap(kernel).fit(line)
    ax.plot(line, kernel_map.distances(line, [[0.0]])[:, 0], label=repr(kernel))
ax.set(xlabel="|x - z|", ylabel="distance in feature space", ylim=(0, 2.5))
ax.legend()
plt.show()

# %%
# From distances to a map
# -----------------------
# Classical multidimensional scaling goes the other way. From squared distances :math:`D_2` it takes
# :math:`B = -\tfrac12 H D_2 H`, the matrix of inner products of centred points with these
# distances. Its leading eigenvectors, times the roots of their eigenvalues, are coordinates ([MDS]
# 1.1). With Euclidean distances this is PCA ([MDS] 1.2), and with distances of a feature space it
# is kernel PCA:

X, moon = make_moons(150, noise=0.08, random_state=0)
feature_map = KernelMap(RBF(2.0)).fit(X)
from_distances = ClassicalMDS(2, metric="precomputed").fit(feature_map.distances(X)).embedding_
from_kernel = KernelPCA(2, RBF(2.0)).fit_transform(X)
print("differ by", f"{np.abs(np.abs(from_distances) - np.abs(from_kernel)).max():.0e}")

# %%
# Dissimilarities that are not Euclidean distances (travel times, edit distances, votes) give some
# negative eigenvalues. They are reported and left out. A large share of them means that no map can
# show these dissimilarities faithfully. New points are placed by their distances to the old ones:

D = np.abs(X[:, None, :] - X[None, :, :]).sum(axis=2)  # city blocks
mds = ClassicalMDS(2, metric="precomputed").fit(D[1:, 1:])
print(
    "negative eigenvalues:",
    len(mds.negative_eigenvalues_),
    " share:",
    round(mds.negative_share_, 3),
)
print("the point left out:", mds.transform(D[:1, 1:]).round(3)[0])

# %%
# The way back
# ------------
# A point of feature space is hardly ever the image of an input. But one can look for the input
# whose image is nearest, its *pre-image*. So kernel PCA can remove noise: project onto the leading
# components, and go back.

noisy = X + 0.15 * rng.normal(size=X.shape)
pca = KernelPCA(6, RBF(2.0)).fit(X)
scores = pca.transform(noisy)
ways = {"ridge": pca.inverse_transform(scores), "fixed-point": preimage(pca, scores, "fixed-point")}

fig, axes = plt.subplots(3, 1, figsize=(6, 8.4), sharex=True, sharey=True)
axes[0].scatter(*noisy.T, s=9, color="#666666")
axes[0].set_title("noisy points")
for ax, (method, back) in zip(axes[1:], ways.items()):
    ax.plot(*np.stack([noisy, back]).transpose(2, 0, 1), color="#cccccc", lw=0.7)
    ax.scatter(*back.T, s=9, color="#0072B2")
    ax.set_title(f"pre-images, {method}")
for ax in axes:
    ax.set(aspect="equal", xticks=[], yticks=[])
plt.show()

# %%
# The method "ridge" learns a regression from coordinates to inputs, once. "fixed-point" looks for
# the nearest image by iteration, and stays closer to the data. For linear kernels both are the
# exact inverse.
#
# See also: :ref:`sphx_glr_auto_examples_plot_denoising.py` and
# :ref:`sphx_glr_auto_examples_plot_road_distances.py`.
#
# **Try it.** In ``mercer explore --demo`` click a point for its nearest rows in feature space, or
# an empty place for its pre-image (:doc:`/how-to/explore`).
