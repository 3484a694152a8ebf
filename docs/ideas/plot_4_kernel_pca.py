r"""
4. Kernel PCA four ways, and once by hand
=========================================

Principal component analysis finds the directions along which points spread most. In a feature space
it finds curved directions of the original data. It can be written in four ways, which all give the
same answer.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import RBF, KernelMap, KernelPCA, Polynomial

# %%
# By hand: four points on a parabola
# ----------------------------------
# [SLIDES] works through :math:`(1, 1), (2, 4), (-1, 1), (-2, 4)` with the kernel :math:`(x \cdot z
# + 1)^2`. First compute the kernel matrix, then the centred one, :math:`H K H`. It is the kernel
# matrix of the points after their mean in feature space was moved to the origin.

X = np.array([[1.0, 1.0], [2.0, 4.0], [-1.0, 1.0], [-2.0, 4.0]])
kernel = Polynomial(degree=2)
n = len(X)
H = np.eye(n) - np.ones((n, n)) / n

K = kernel(X)
K_c = H @ K @ H
print("K =\n", K.astype(int), "\n\nK centred =\n", K_c.round().astype(int))

# %%
# Its eigenvalues are :math:`n \lambda_j`, :math:`n` times the variances along the principal axes.
# Eigenvectors of unit length times the roots of the eigenvalues are the scores:

values, U = np.linalg.eigh(K_c)
values, U = values[::-1], U[:, ::-1]
print("n lambda =", np.abs(values).round(4))
print("scores =\n", (U[:, :3] * np.sqrt(values[:3])).round(4))

# %%
# The fourth eigenvalue is zero: four centred points span three dimensions. One call does all of
# this, and fixes the sign of each component (the first of the largest entries is positive):

pca = KernelPCA(kernel=kernel).fit(X)
print(pca.eigenvalues_.round(4))
print(pca.transform(X).round(4))

# %%
# Four ways
# ---------
# The score of a new point :math:`z` along a component can be written in four ways. Here :math:`a`
# is an eigenvector of the centred problem, :math:`K H a = n \lambda a` or a variant of it:
#
# - **primal** ([EXACT] (14) to (16)): ordinary PCA on the explicit coordinates;
# - **dual** ([EXACT] (21) to (23)): :math:`(k_z - K\mathbf{1}/n)^T H a`;
# - **combined** ([EXACT] (25)): :math:`k_z^T (a - \bar a \mathbf{1}) - n \lambda \bar a`, which
#   needs neither an inverse of :math:`K` nor a centred kernel matrix at prediction;
# - **classical** ([EXACT] Appendix A, [SLIDES], [MDS] 2.3, [NPT] (14)): centre every :math:`k_z`
#   with the means of the training matrix.
#
# They agree up to rounding. The forms that use the coordinates of the map differ a little more,
# because the map leaves out directions that are rounding noise:

rng = np.random.default_rng(0)
T = np.linspace(0, 2 * np.pi, 160, endpoint=False)
X = np.column_stack([np.cos(T) + 0.5 * np.cos(3 * T), np.sin(T)]) + 0.05 * rng.normal(size=(160, 2))
Z = rng.uniform(-1.6, 1.6, size=(50, 2))
scores = {
    form: KernelPCA(4, RBF(1.0), form=form).fit(X).transform(Z)
    for form in ("combined", "dual", "primal", "classical")
}
from sklearn.decomposition import PCA

kernel_map = KernelMap(RBF(1.0)).fit(X)
direct = PCA(4).fit(kernel_map.transform(X)).transform(kernel_map.transform(Z))
scores["PCA on the map"] = direct * np.sign((direct * scores["combined"]).sum(axis=0))
for form, score in scores.items():
    print(f"{form:15} differs from combined by {np.abs(score - scores['combined']).max():.0e}")

# %%
# The last line is the point of this page: ordinary PCA on the coordinates of a
# :class:`~mercer.KernelMap` *is* kernel PCA.
#
# What a component sees
# ---------------------
# A component is a function on the input space. Its contours are the curves on which the score is
# constant. The first two components tell left from right and top from bottom; later ones bend more.

grid = np.linspace(-1.9, 1.9, 70)
plane = np.column_stack([g.ravel() for g in np.meshgrid(grid, grid)])
pca = KernelPCA(4, RBF(1.0)).fit(X)
fig, axes = plt.subplots(2, 2, figsize=(7, 7), sharex=True, sharey=True)
for j, ax in enumerate(axes.ravel()):
    value = pca.transform(plane)[:, j].reshape(70, 70)
    size = np.abs(value).max()
    ax.contourf(grid, grid, value, levels=np.linspace(-size, size, 22), cmap="PuOr")
    ax.contour(grid, grid, value, levels=[0], colors="black", linewidths=0.8)
    ax.plot(*X.T, ".", color="black", ms=3)
    share = pca.explained_variance_ratio_[j]
    ax.set(aspect="equal", title=f"component {j + 1}: {100 * share:.0f} %", xticks=[], yticks=[])
plt.show()

# %%
# How many components are enough? :class:`~mercer.SpectrumDisplay` draws their shares of the
# variance. If `n_components` is a fraction, as many components are kept as are needed for that
# share.

from mercer import SpectrumDisplay

SpectrumDisplay.from_kernel(RBF(1.0), X).plot(mark=0.95)
plt.show()
print(KernelPCA(0.95, RBF(1.0)).fit(X).n_components_, "components hold 95 % of the variance")

# %%
# **Try it.** In ``mercer explore --demo`` the components and their spectrum follow a slider
# (:doc:`/how-to/explore`).
