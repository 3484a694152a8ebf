r"""
6. Principal components: dual, primal, and robust
=================================================

Principal component analysis (PCA) finds the directions along which points spread most. Straight
directions of a feature space are curves in the data. PCA can be solved in the coordinates
(primal), or with the kernel matrix (dual).

The statement
-------------
Let the rows of :math:`\Phi` be the coordinates of the points, :math:`m` their mean, and
:math:`\Phi_c = H \Phi` the centred coordinates, with :math:`H = I - \mathbf{1} \mathbf{1}^T / n`
and the column :math:`\mathbf{1}` of :math:`n` ones.
**The unit vector**
:math:`v` **is a principal axis with variance** :math:`\lambda > 0` **if and only if there is a unit
vector** :math:`u` **with**

.. math:: H K H\, u = n \lambda\, u , \quad v = \Phi_c^T u / \sqrt{n \lambda} .

**Then the score of any point is** :math:`(\varphi(z) - m) \cdot v = (k_z - K \mathbf{1} / n)^T H u
/ \sqrt{n \lambda}`.

*Proof.* Note that :math:`\Phi_c \Phi_c^T = H K H`. A principal axis with variance :math:`\lambda`
is a unit eigenvector of the covariance: :math:`\Phi_c^T \Phi_c v = n \lambda v`. Put :math:`u =
\Phi_c v / \sqrt{n \lambda}`. Then :math:`H K H u = \Phi_c (\Phi_c^T \Phi_c v) / \sqrt{n \lambda} =
n \lambda u`, and :math:`|u|^2 = v^T \Phi_c^T \Phi_c v / (n \lambda) = 1`, and :math:`\Phi_c^T u /
\sqrt{n \lambda} = v`. The other direction is the same with :math:`\Phi_c^T` in place of
:math:`\Phi_c`. Finally, :math:`\Phi \varphi(z) = k_z` and :math:`\Phi m = K \mathbf{1} / n`, so
:math:`\Phi_c (\varphi(z) - m) = H (k_z - K \mathbf{1} / n)`, which gives the score. ∎

Ten lines of NumPy
------------------
[SLIDES] works through four points on a parabola with the kernel :math:`(x \cdot z + 1)^2`.
"""

import numpy as np

X = np.array([[1.0, 1.0], [2.0, 4.0], [-1.0, 1.0], [-2.0, 4.0]])
n = len(X)
K, H = (X @ X.T + 1) ** 2, np.eye(n) - 1 / n
values, U = np.linalg.eigh(H @ K @ H)
values, U = values[:0:-1], U[:, :0:-1]  # largest first; the smallest is 0
alpha = U / np.sqrt(values)
print("n lambda =", values.round(4))
print("scores =", (H @ K @ H @ alpha).round(4), sep="\n")
k_z = (X @ np.array([0.5, 2.0]) + 1) ** 2
print("a new point:", ((k_z - K.mean(axis=1)) @ H @ alpha).round(4))

# %%
# Four centred points span at most three dimensions, so the fourth eigenvalue is 0.
#
# In mercer
# ---------
# :class:`~mercer.KernelPCA` fixes the sign of each component. The forms of the sources differ by
# rounding errors only, and ordinary PCA on the coordinates of a map *is* kernel PCA.

from sklearn.decomposition import PCA

from mercer import RBF, KernelMap, KernelPCA, Polynomial

print(KernelPCA(kernel=Polynomial(2)).fit(X).eigenvalues_.round(4))
rng = np.random.default_rng(0)
centres = np.array([[0.0, 0.9], [-0.8, -0.5], [0.8, -0.5]])
clusters = np.repeat(centres, 40, axis=0) + 0.17 * rng.normal(size=(120, 2))
Z = rng.uniform(-1.5, 1.5, size=(50, 2))
forms = ("combined", "dual", "primal", "classical")
scores = {form: KernelPCA(4, RBF(2.0), form=form).fit(clusters).transform(Z) for form in forms}
fitted = KernelMap(RBF(2.0)).fit(clusters)
scores["PCA on the map"] = PCA(4).fit(fitted.transform(clusters)).transform(fitted.transform(Z))
for form, score in scores.items():
    apart = np.abs(np.abs(score) - np.abs(scores["combined"])).max()
    print(f"{form:14} differs by {apart:.0e}")

# %%
# The picture
# -----------
# A component is a function on the input space, and the line is where it is 0. The data are three
# clusters. The first two components tell the clusters apart, since the variance is between them.
# Later components cut through the clusters.

import matplotlib.pyplot as plt
from matplotlib.colors import LinearSegmentedColormap

signs = LinearSegmentedColormap.from_list("signs", ["C1", "#80808000", "C0"])
grid = np.linspace(-1.6, 1.6, 70)
plane = np.column_stack([g.ravel() for g in np.meshgrid(grid, grid)])
pca = KernelPCA(6, RBF(2.0)).fit(clusters)
between = pca.transform(clusters).reshape(3, 40, 6).mean(axis=1).var(axis=0)
shares = between / pca.transform(clusters).var(axis=0)
fig, axes = plt.subplots(2, 3, figsize=(8, 5.6), sharex=True, sharey=True)
for j, ax in enumerate(axes.ravel()):
    value = pca.transform(plane)[:, j].reshape(70, 70)
    size = np.abs(value).max()
    ax.contourf(grid, grid, value, levels=np.linspace(-size, size, 22), cmap=signs)
    ax.contour(grid, grid, value, levels=[0], colors="grey", linewidths=1.5)
    ax.plot(*clusters.T, ".", color="grey", ms=3)
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.set_title(f"{j + 1}: {shares[j]:.0%} between clusters", fontsize="small")
plt.show()

# %%
# Move the slider: it shows the first two components as coordinates, and the first as a function.
#
# .. slider:: spectrum pca component
#
# Exercise
# --------
# Squares give an outlier much weight. PCA-L1 maximises :math:`\sum_i |w \cdot y_i|` over unit
# vectors instead, where :math:`y_i` are the centred coordinates: take the signs :math:`p_i` of
# :math:`w \cdot y_i`, replace :math:`w` by :math:`\sum_i p_i y_i` scaled to length 1, repeat.
# Prove that the sum never decreases, and run it from the first principal axis.
#
# Solution
# --------
# The new :math:`w'` maximises :math:`\sum_i p_i\, w \cdot y_i` over unit vectors, so
#
# .. math:: \sum_i |w' \cdot y_i| \ge \sum_i p_i\, w' \cdot y_i
#
# .. math:: \ge \sum_i p_i\, w \cdot y_i = \sum_i |w \cdot y_i| .
#
# The iteration can end in a local maximum, so :class:`~mercer.KernelPCAL1` tries several starts.

from mercer import KernelPCAL1

Y = fitted.transform(clusters) - fitted.transform(clusters).mean(axis=0)
w, sums = PCA(1).fit(Y).components_[0], []
for _ in range(20):
    sums.append(np.abs(Y @ w).sum())
    w = np.where(Y @ w >= 0, 1, -1) @ Y
    w /= np.linalg.norm(w)
best = KernelPCAL1(1, RBF(2.0), random_state=0).fit(clusters).dispersions_[0]
assert (np.diff(sums) >= -1e-9).all()
assert sums[-1] <= best + 1e-6
print(f"from PCA's axis {sums[0]:.3f} to {sums[-1]:.3f}; the best of several starts {best:.3f}")

# %%
# In the sources
# --------------
# [EXACT] (14) to (16) primal, (21) to (23) dual, (25) both combined, appendix A classical;
# [SLIDES] steps 1 to 4; [MDS] 2.3; [NPT] (8) to (16), and (33) to (35) for PCA-L1. Errata:
#
# - [EXACT]: the last line of (A.3) means :math:`\bar K`, not :math:`K`; (A.9) uses :math:`e` as a
#   matrix; in (A.10) the double sum has the opposite sign inside its bracket, and the last term
#   lacks a factor :math:`N`.
# - [SLIDES]: the third entry of :math:`\alpha_3` is +0.486; :math:`K \alpha` means
#   :math:`K^C \alpha`; Question 1: one of the six features is constant, so there are
#   five components, which is still more than two columns.
# - [NPT] (15) and the line above it need :math:`\Lambda^{-1/2}`.
# - [MDS] Algorithm 8 (b): the indices start at :math:`k(y_1, y_1)`; (e) lacks the centring and
#   :math:`1 / \sqrt\lambda`; in (2) the covariance is :math:`\frac1N \Phi^T \Phi`,
#   and a centred :math:`K` has no inverse; before (3), the :math:`v_j` are orthogonal, but not of
#   unit length.
