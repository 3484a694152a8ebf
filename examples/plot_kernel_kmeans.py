r"""
Kernel k-means finds rings
==========================

k-means cuts the plane into convex cells, so that it halves rings instead of finding them. In the
right feature space the same algorithm follows them: points that are linked by short steps are close
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
# A narrow Gaussian links neighbours. The crowded middle would dominate its space, so every point is
# divided by the root of its number of neighbours: :math:`f(x)\, k(x, z)\, f(z)`, rule 2 of the ten
# (:ref:`sphx_glr_auto_ideas_plot_1_kernels.py`), and a valid kernel for any function f. k-means on
# the leading directions of this space is what is known as spectral clustering.

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
# In the third panel the three rings have become three tight bunches, at right angles to each other:
# nothing is left to do for k-means.

fig = plt.figure(figsize=(9.5, 3.2))
for place, labels, name in ((1, straight, "k-means"), (2, in_space, "kernel k-means")):
    ax = fig.add_subplot(1, 3, place, aspect="equal")
    agreement = adjusted_rand_score(ring, labels)
    title = f"{name}: agreement {agreement:.2f}"
    FeatureSpaceDisplay(X, labels.astype(str), title=title).plot(ax, legend=False, size=14)
    ax.set(xticks=[], yticks=[])
ax = fig.add_subplot(1, 3, 3, projection="3d", title="the space, by true ring")
for number, colour in enumerate(("#0072B2", "#D55E00", "#009E73")):
    ax.scatter(*Phi[ring == number].T, color=colour, s=12)
ax.set(xticklabels=[], yticklabels=[], zticklabels=[])
plt.show()
