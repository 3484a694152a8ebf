r"""
7. Seeing and choosing kernels
==============================

Which kernel suits my data? Look at its space, measure how well simple methods predict in it on rows
they have not seen, and do not trust differences that are noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from mercer import RBF, GramDisplay, KernelMap, Linear, Polynomial, compare_kernels

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)

# %%
# What a width does
# -----------------
# Before you compare kernels, see what one parameter does. With a tiny :math:`\gamma` all points
# look alike; with a huge one each point is similar only to itself. In between, the classes appear
# as blocks of high similarity, because rows are ordered by class.

fig, axes = plt.subplots(1, 3, figsize=(8, 3))
for ax, gamma in zip(axes, (0.001, 1 / 13, 2.0)):
    GramDisplay.from_kernel(RBF(gamma), X, y, title=f"gamma = {gamma:.2g}").plot(ax, colorbar=False)
plt.show()

# %%
# Two numbers say the same. The alignment is the cosine between the centred kernel matrix and the
# matrix that is 1 for pairs of the same class. The effective dimension says how many directions
# share the variance.


def alignment(K, y):
    H = np.eye(len(y)) - 1 / len(y)
    A, B = H @ K @ H, H @ (y[:, None] == y).astype(float) @ H
    return (A * B).sum() / np.sqrt((A * A).sum() * (B * B).sum())


gammas = np.geomspace(1e-4, 10, 16)
aligned, dimension = [], []
for gamma in gammas:
    values = KernelMap(RBF(gamma), basis="eigen", center=True).fit(X).eigenvalues_
    dimension.append(values.sum() ** 2 / (values**2).sum())
    aligned.append(alignment(RBF(gamma)(X), y))
fig, ax = plt.subplots(figsize=(7, 3.4))
ax.semilogx(gammas, aligned, color="#0072B2")
ax.set(xlabel="gamma", ylim=(0, 0.8))
ax.set_ylabel("alignment with the classes", color="#0072B2")
ax.axvline(RBF("scale").bind(X).gamma, color="grey", ls=":")
ax.text(RBF("scale").bind(X).gamma * 1.1, 0.72, '"scale"', color="grey")
other = ax.twinx()
other.loglog(gammas, dimension, color="#D55E00")
other.set_ylabel("effective dimension", color="#D55E00")
plt.show()

# %%
# Side by side
# ------------
# For every kernel, :func:`~mercer.compare_kernels` tunes a discriminant on the training rows of
# each fold and scores it on the rows left out. It does the same with ordinary models on the same
# folds. Then it draws each space, and says in words which differences are more than noise.

kernels = {
    "linear": Linear(),
    "quadratic": Polynomial(2, gamma=1 / 13),
    "RBF": RBF("scale"),
    "RBF, far too narrow": RBF(5.0),
}
comparison = compare_kernels(X, y, kernels, embeddings=["kernel PCA", "discriminant"])
print(comparison.headline)
for reason in comparison.reasons:
    print(" -", reason)

# %%
# Points in full colour were left out when the picture was fitted, and were placed afterwards. So a
# kernel cannot look good by memorising. The narrow kernel shows what memorising looks like: its
# discriminant separates the rows it was fitted to, and puts all new rows in one place.

comparison.plot()
plt.show()

# %%
# The table is a data frame. ``comparison.to_html("report.html")`` writes a page in which you can
# select points, and ``mercer compare data.csv --target column`` does all of this for a file.

columns = ["kernel", "model", "score", "within_noise_of_best", "alignment", "effective_dimension"]
print(comparison.table[columns].round(3).to_string(na_rep=""))

# %%
# Then tune
# ---------
# When the kernel is chosen, its parameters are tuned like any others, also inside sums and
# products: ``GridSearchCV(KernelRidge(kernel=RBF()), {"kernel__gamma": [...]})``. See
# :doc:`/how-to/tune`.
#
# **Try it.** ``mercer explore data.csv --target column`` puts the parameters under sliders, with
# the leave-one-out score along each (:doc:`/how-to/explore`).
