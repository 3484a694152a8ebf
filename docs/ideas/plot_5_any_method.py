r"""
5. Any method becomes a kernel method
=====================================

Kernel methods used to be derived one by one: rewrite the algorithm so that data appear only in
inner products, then replace these by the kernel. With coordinates, nothing has to be derived. Fit
any method on :math:`\varphi(X)`, predict with :math:`\varphi(z)`, and you have the kernel version
of that method ([NPT] section III-B). This page checks this against the textbook formulas, and says
where it does *not* hold.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.neighbors import NearestCentroid
from sklearn.svm import SVC

from mercer import RBF, KernelDiscriminant, Kernelized, KernelMap, KernelRidge

X, y = make_moons(200, noise=0.2, random_state=0)
kernel = RBF(1.0)

# %%
# The support vector machine
# --------------------------
# A linear SVM on the coordinates has the same dual variables and the same intercept as the kernel
# SVM ([NPT] IV-B):

classical = SVC(kernel="rbf", gamma=1.0, tol=1e-8).fit(X, y)
explicit = Kernelized(SVC(kernel="linear", tol=1e-8), kernel).fit(X, y)
print("dual variables differ by", f"{np.abs(classical.dual_coef_ - explicit.dual_coef_).max():.0e}")
print("intercepts:", classical.intercept_.round(8), explicit.intercept_.round(8))

# %%
# Ridge regression
# ----------------
# [KERNELS] (2) to (8) derives the dual form :math:`a = (K + \lambda I)^{-1} t` and predicts with
# :math:`k_z^T a`. Ordinary ridge on the coordinates gives the same function:

t = np.sin(2 * X[:, 0]) + X[:, 1]
dual = np.linalg.solve(kernel(X) + 0.1 * np.eye(len(X)), t)
grid = np.column_stack(
    [g.ravel() for g in np.meshgrid(np.linspace(-1, 2, 30), np.linspace(-1, 1.5, 30))]
)
for form in ("primal", "dual"):
    prediction = KernelRidge(0.1, kernel, form=form).fit(X, t).predict(grid)
    error = np.abs(prediction - kernel(grid, X) @ dual).max()
    print(f"{form:7} differs from the formula by {error:.0e}")

# %%
# Nobody derived these
# --------------------
# Nearest centroid, logistic regression, and linear discriminant analysis in the space of one
# kernel. The straight boundaries of feature space are curves here.

models = {
    "nearest centroid": Kernelized(NearestCentroid(), kernel),
    "logistic regression": Kernelized(LogisticRegression(C=10), kernel),
    "discriminant": KernelDiscriminant(kernel=kernel),
}
xs, ys = np.linspace(-1.7, 2.7, 80), np.linspace(-1.3, 1.8, 60)
plane = np.column_stack([g.ravel() for g in np.meshgrid(xs, ys)])
fig, axes = plt.subplots(3, 1, figsize=(6, 9.6), sharex=True)
for ax, (name, model) in zip(axes, models.items()):
    model.fit(X, y)
    ax.contourf(
        xs,
        ys,
        model.predict(plane).reshape(60, 80),
        levels=[-1, 0.5, 2],
        colors=["#cfe3f2", "#f7dcc9"],
    )
    ax.scatter(*X.T, c=np.where(y, "#D55E00", "#0072B2"), s=9)
    ax.set(title=f"{name}: {model.score(X, y):.2f}", xticks=[], yticks=[], aspect="equal")
plt.show()

# %%
# A linear model is a function of the input, and can be taken as one: a sum of kernels, with a norm
# and inner products ([NPT] Lemma 6; [MDS] Proposition 6 for
# :math:`\langle f, k(z, \cdot)\rangle = f(z)`).

f = models["logistic regression"].function_
print(f, " norm", round(f.norm(), 3))

# %%
# Discriminants need shrinkage
# ----------------------------
# A feature space has nearly as many dimensions as there are points, so some direction separates the
# training classes perfectly by chance. Fisher's criterion ([NPT] IV-C, [EXACT] Figures 3 and 4)
# will find it. Shrinkage prevents this: it adds a multiple of the identity to the scatter within
# classes, which is the same in every basis. The default, ``shrinkage="auto"``, chooses the amount
# for which left-out rows are most likely.

noisy, kind = make_moons(500, noise=0.35, random_state=1)
train, test = slice(0, 150), slice(150, None)
xs, ys = np.linspace(-2.2, 3.2, 90), np.linspace(-1.8, 2.3, 60)
plane = np.column_stack([g.ravel() for g in np.meshgrid(xs, ys)])
fig, axes = plt.subplots(3, 1, figsize=(6, 9.6), sharex=True)
for ax, shrinkage in zip(axes, (1e-12, 1e-3, 0.1)):
    model = KernelDiscriminant(kernel=RBF(2.0), shrinkage=shrinkage).fit(noisy[train], kind[train])
    cut = model.predict(plane).reshape(60, 90)
    ax.contourf(xs, ys, cut, levels=[-1, 0.5, 2], colors=["#cfe3f2", "#f7dcc9"])
    ax.scatter(*noisy[train].T, c=np.where(kind[train], "#D55E00", "#0072B2"), s=9)
    seen, new = model.score(noisy[train], kind[train]), model.score(noisy[test], kind[test])
    ax.set(title=f"shrinkage {shrinkage:g}: {seen:.2f} seen, {new:.2f} new")
    ax.set(xticks=[], yticks=[], aspect="equal")
plt.show()

# %%
# Where it does not hold
# ----------------------
# A method on coordinates is exactly its kernel version if its answer does not depend on the basis:
# least squares, SVM, PCA, LDA, k-means, nearest neighbours, t-SNE. The answers of lasso, trees, ICA
# and diagonal mixtures do depend on it: a sparse combination of Cholesky coordinates is not sparse
# in eigen coordinates. For these methods the eigen basis is the natural choice, because it depends
# only on the kernel and the data. See :doc:`/how-to/basis`.

for basis in ("cholesky", "eigen"):
    lasso = Kernelized(Lasso(alpha=0.01), KernelMap(kernel, basis=basis)).fit(X, t)
    ridge = KernelRidge(0.1, KernelMap(kernel, basis=basis)).fit(X, t)
    print(
        f"{basis:9} lasso at one point: {lasso.predict([[0.5, 0.3]])[0]:+.6f}"
        f" ({int((lasso.coef_ != 0).sum())} coordinates used),"
        f"  ridge: {ridge.predict([[0.5, 0.3]])[0]:+.6f}"
    )

# %%
# PCA, MDS and discriminants subtract the mean by definition. Ridge and SVM must not, or they would
# no longer equal their classical forms. So :class:`~mercer.Kernelized` leaves coordinates as they
# are, unless you give it ``KernelMap(kernel, center=True)``.
#
# **Try it.** ``mercer explore --demo`` shows two methods in the same space, kernel PCA and the
# discriminant, while its kernel changes (:doc:`/how-to/explore`).
