r"""
9. Distances, multidimensional scaling, and pre-images
======================================================

A kernel determines distances. Euclidean distances determine a kernel, up to the choice of an
origin. This lesson goes from distances to a map, and from a place in feature space back to a point
of the data.

The statement
-------------
Let :math:`D_2` be a symmetric :math:`n \times n` matrix with zeros on its diagonal, and as before
:math:`H = I - \mathbf{1} \mathbf{1}^T / n`. Let :math:`B = -\frac12 H D_2 H`. **Then** :math:`D_2`
**holds the squared distances of points in some Euclidean space if and only if** :math:`B` **is
positive semi-definite. In that case** :math:`B` **is the matrix of inner products of these points,
centred** (Schoenberg; Young and Householder).

*Proof.* Let the rows :math:`y_i` of :math:`Y` be points with these distances, and let :math:`q_i =
|y_i|^2`. Then
:math:`D_2 = q \mathbf{1}^T + \mathbf{1} q^T - 2 Y Y^T`. Since :math:`H \mathbf{1} = 0`, only the
last term survives: :math:`B = H Y Y^T H = (H Y)(H Y)^T`, which is positive semi-definite and holds
the inner products of the centred points. Conversely, let :math:`B = U \Lambda U^T` with
:math:`\Lambda \ge 0` and take the rows of :math:`Y = U \Lambda^{1/2}`. Their squared distances are
:math:`b_{ii} + b_{jj} - 2 b_{ij}`. Let :math:`e` have 1 at place :math:`i`, -1 at place :math:`j`
and 0 elsewhere. Then :math:`H e = e`, and the squared distance is :math:`e^T B e = -\frac12 e^T D_2
e = (D_2)_{ij}`. ∎

So kernel PCA is **classical multidimensional scaling** (MDS) of the distances in feature space:
for :math:`d_{ij}^2 = k_{ii} + k_{jj} - 2 k_{ij}`, the matrix :math:`B` is :math:`H K H` (lesson
6).

Ten lines of NumPy
------------------
We go from distances to coordinates, for two distances between the same points: Euclidean, and
city-block (Manhattan).
"""

import numpy as np

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
H = np.eye(40) - 1 / 40
for power, name in ((2, "Euclidean"), (1, "city block")):
    D = (np.abs(X[:, None] - X[None]) ** power).sum(axis=2) ** (1 / power)
    values, U = np.linalg.eigh(-H @ D**2 @ H / 2)
    Y = U[:, -2:] * np.sqrt(values[-2:])
    error = np.abs(np.linalg.norm(Y[:, None] - Y[None], axis=2) - D).max()
    print(f"{name:10} smallest eigenvalue {values[0]:8.1e}, error in the plane {error:.0e}")

# %%
# The negative eigenvalue shows that city-block distances are not Euclidean: there are no points
# with these Euclidean distances, in any number of dimensions.
#
# In mercer
# ---------
# :class:`~mercer.ClassicalMDS` reports negative eigenvalues instead of dropping them silently, and
# places new points by their distances. The way back from feature space is a *pre-image*:
# :func:`~mercer.preimage` looks for the input whose image is nearest to a given place. There is
# hardly ever an input whose image is exactly there.

from sklearn.datasets import make_moons

from mercer import RBF, ClassicalMDS, KernelMap, KernelPCA, preimage

moons, _ = make_moons(150, noise=0.03, random_state=0)
distances = KernelMap(RBF(2.0)).fit(moons).distances(moons)
embedding = ClassicalMDS(2, metric="precomputed").fit(distances).embedding_
scores = KernelPCA(2, RBF(2.0)).fit_transform(moons)
print(f"MDS and kernel PCA differ by {np.abs(np.abs(embedding) - np.abs(scores)).max():.0e}")

noisy = moons + 0.15 * rng.normal(size=moons.shape)
pca = KernelPCA(8, RBF(2.0)).fit(moons)
ways = {way: preimage(pca, pca.transform(noisy), way) for way in ("ridge", "fixed-point")}


def distance_from_moons(points):
    """The mean distance from the clean points."""
    return np.linalg.norm(points[:, None] - moons[None], axis=2).min(axis=1).mean()


print(f"noisy points are {distance_from_moons(noisy):.3f} from the moons")
for way, back in ways.items():
    print(f"pre-images by {way:11} {distance_from_moons(back):.3f}")

# %%
# The picture
# -----------
# Kernel PCA removes noise: project noisy points onto eight components that were fitted to clean
# points, and go back. The method "ridge" is a regression from scores to inputs, learned once.
# "fixed-point" iterates towards the input with the nearest image.

import matplotlib.pyplot as plt

fig, axes = plt.subplots(1, 2, figsize=(8.4, 3), sharex=True, sharey=True, layout="constrained")
for ax, (way, back) in zip(axes, ways.items()):
    ax.plot(*np.stack([noisy, back]).transpose(2, 0, 1), color="grey", lw=0.5, alpha=0.6)
    ax.scatter(*noisy.T, s=8, color="C1", label="noisy")
    ax.scatter(*back.T, s=8, color="C0", label="pre-image")
    ax.set(title=way, aspect="equal", xticks=[], yticks=[])
fig.legend(*axes[1].get_legend_handles_labels(), frameon=False, loc="outside lower center", ncols=2)
plt.show()

# %%
# Exercise
# --------
# City-block distances are not Euclidean. Show that their square roots are, on any points. (Hint:
# lesson 1, exercise.)
#
# Solution
# --------
# Shift the points so that all values are at least 0. With the kernel :math:`k = \min`, on one axis
#
# .. math:: |x - z| = x + z - 2 \min(x, z)
#
# .. math:: = k(x, x) + k(z, z) - 2 k(x, z) ,
#
# so :math:`|x - z|` is a *squared* distance in feature space. Squared distances of several columns
# add up.

city = np.abs(X[:, None] - X[None]).sum(axis=2)
plain = ClassicalMDS(2, metric="precomputed").fit(city)
rooted = ClassicalMDS(39, metric="precomputed").fit(np.sqrt(city))
assert plain.negative_share_ > 0.01
assert rooted.negative_share_ < 1e-9
exact = np.linalg.norm(rooted.embedding_[:, None] - rooted.embedding_[None], axis=2)
assert np.allclose(exact, np.sqrt(city), atol=1e-7)
print(
    f"negative share: city blocks {plain.negative_share_:.1%}, roots {rooted.negative_share_:.0%}"
)

# %%
# In the sources
# --------------
# [MDS] 1.1, 1.2 and 2.2.2; [EXACT] (26); [NPT] cites pre-images in its introduction. Errata in
# [MDS]: it says that minimising differences of distances (stress) and of inner products (strain) is
# the same. They are different problems, and classical MDS minimises strain. Its references
# "Theorem 6" and "Example 6" mean Theorem 5 and Example 7.
#
# More: :ref:`sphx_glr_auto_examples_plot_road_distances.py` and
# :ref:`sphx_glr_auto_examples_plot_denoising.py`.
