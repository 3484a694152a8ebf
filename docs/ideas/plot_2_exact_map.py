r"""
2. The exact map and its bases
==============================

The feature space of a Gaussian kernel has infinitely many dimensions. Yet :math:`n` training
points span at most :math:`n` of them, and a new point can be compared with the training points
only through its shadow in that span. So a *finite* set of coordinates reproduces the kernel
**exactly** wherever a training point is involved ([EXACT] Theorem 1, [NPT] Theorem 2).
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import RBF, KernelMap, Linear, Polynomial

rng = np.random.default_rng(3)
X = (np.linspace(-3, 3, 12) + rng.uniform(-0.2, 0.2, 12))[:, None]  # training points
Z = np.linspace(-4.5, 4.5, 181)[:, None]  # new points
kernel = RBF(1.0)

# %%
# One line of algebra
# -------------------
# Split the kernel matrix into a product, :math:`K = F F^T`, with :math:`F` of full column rank
# :math:`r`. For any point :math:`z`, put
#
# .. math:: \varphi(z) = F^{+} k_z ,
#
# the least-squares solution of :math:`F \varphi = k_z`. The kernel matrix of the training points
# and :math:`z` together is positive semi-definite, which forces :math:`k_z` into the range of
# :math:`K`. So the equation is *solved*, not approximated: :math:`F \varphi(z) = k_z`, which reads
# :math:`\varphi(x_i) \cdot \varphi(z) = k(x_i, z)` for every :math:`i`. [EXACT] proves it for
# invertible :math:`K`; this argument does not need that.

from scipy.linalg import cholesky, solve_triangular

K, k_z = kernel(X), kernel(X, Z)
F = cholesky(K, lower=True)
phi_by_hand = solve_triangular(F, k_z, lower=True).T
print("by hand, largest error:  ", f"{np.abs(F @ phi_by_hand.T - k_z).max():.0e}")

kernel_map = KernelMap(kernel).fit(X)
error = np.abs(kernel_map.transform(X) @ kernel_map.transform(Z).T - k_z).max()
print("KernelMap, largest error:", f"{error:.0e}", "with", kernel_map.rank_, "coordinates")

# %%
# Three bases, one space
# ----------------------
# :math:`F` is not unique, and each choice is another orthonormal basis of the same span:
#
# =========  ============================  ========================================================
# basis      :math:`\varphi(z)`            source
# =========  ============================  ========================================================
# symmetric  :math:`K^{-1/2} k_z`          [EXACT] (4)
# eigen      :math:`L^{-1/2} U^T k_z`      [NPT] Theorem 2, with :math:`K = U L U^T`
# cholesky   :math:`C^{-1} k(S, z)`        [NPT] footnote 3: :math:`C C^T = k(S, S)`, pivots S
# =========  ============================  ========================================================
#
# In the images below, every row is one coordinate of the new points. Symmetric coordinates are
# bumps, one for each training point. Eigen coordinates are waves, ordered by how much variance they
# explain. Cholesky coordinates are added point by point: each describes what the ones before could
# not.

fig, axes = plt.subplots(2, 3, figsize=(8, 5), sharex=True)
maps = {b: KernelMap(kernel, basis=b).fit(X) for b in ("symmetric", "eigen", "cholesky")}
for column, (basis, m) in enumerate(maps.items()):
    Phi = m.transform(Z)
    size = np.abs(Phi).max()
    axes[0, column].imshow(
        Phi.T,
        aspect="auto",
        extent=(-4.5, 4.5, Phi.shape[1], 0),
        cmap="PuOr",
        vmin=-size,
        vmax=size,
    )
    axes[0, column].set_title(basis)
    axes[1, column].plot(Z, Phi[:, :5] if basis != "symmetric" else Phi[:, 3:8])
    axes[1, column].plot(X, np.full(len(X), -1.15), "|", color="black", ms=9)
    axes[1, column].set_xlabel("z")
axes[0, 0].set_ylabel("coordinate")
axes[1, 0].set_ylabel("five of them")
plt.show()

# %%
# They differ by a rotation, so inner products, lengths and distances agree:

for basis, m in maps.items():
    Phi = m.transform(Z)
    worst = np.abs(Phi @ Phi.T - maps["cholesky"].transform(Z) @ maps["cholesky"].transform(Z).T)
    print(f"{basis:10} Gram matrix of new points differs by {worst.max():.0e}")

# %%
# Cholesky is the default because it is cheap: :math:`n r^2` operations, against about
# :math:`9 n^3` for an eigendecomposition, and a new point is compared with :math:`r` landmarks
# instead of :math:`n` points. The landmarks are training points, and only they have to be kept.

print("landmarks at", kernel_map.landmarks_[:, 0].round(1))

# %%
# A fourth basis: the kernel's own
# --------------------------------
# Some kernels have a finite map of their own, which needs no training points at all. `basis="auto"`
# uses that map if it is smaller than the data.

own = KernelMap(Linear() + Polynomial(degree=2), basis="auto").fit(np.hstack([X, X**2]))
print("own dimension:", own.rank_, " landmarks:", own.landmarks_)

# %%
# What the span does not see
# --------------------------
# :math:`\varphi(z)` is the projection of the image of :math:`z` onto the span. What is left has the
# squared length
#
# .. math:: \rho^2(z) = k(z, z) - |\varphi(z)|^2 \ge 0
#
# ([NPT] Lemma 5). This residual is 0 at training points, grows away from them, and tends to
# :math:`k(z, z)` far from all of them. It is the variance of a Gaussian process without noise, and
# it can serve as a novelty score. If its root is appended as one more coordinate
# (``KernelMap(append_residual=True)``), :math:`|\varphi(z)|^2 = k(z, z)` is exact, too.

fig, ax = plt.subplots(figsize=(7, 3.2))
apart = X[np.abs(X[:, 0] - 0.5) > 1.2]  # leave a gap
length = (KernelMap(kernel).fit(apart).transform(Z) ** 2).sum(axis=1)
ax.fill_between(Z[:, 0], length, color="#0072B2", alpha=0.7, label=r"seen: $|\varphi(z)|^2$")
ax.fill_between(Z[:, 0], length, 1, color="#E69F00", alpha=0.7, label=r"unseen: $\rho^2(z)$")
ax.plot(apart, np.zeros(len(apart)), "|", color="white", ms=12, mew=2)
ax.set(xlabel="z", ylim=(0, 1), xlim=(-4.5, 4.5), title="k(z, z) = 1, split in two")
ax.legend(loc="upper left", framealpha=1)
plt.show()

# %%
# Coefficients, both ways
# -----------------------
# A vector :math:`b` of coordinates defines a function of the input: :math:`b \cdot \varphi(z)`
# equals :math:`\sum_j w_j k(s_j, z)`, a sum over the landmarks :math:`s_j`. Such functions form the
# kernel's Hilbert space, and each can be turned back into coordinates ([NPT] Lemma 6 and Corollary
# 7):

b = np.zeros(kernel_map.rank_)
b[2] = 1.0
f = kernel_map.function(b)
print(f, "differs by", f"{np.abs(f(Z) - kernel_map.transform(Z) @ b).max():.0e}")
print(
    "its norm:", round(f.norm(), 6), " back to coordinates:", kernel_map.coordinates(f)[:4].round(6)
)

# %%
# **Try it.** In ``mercer explore --demo`` you see how the rank changes while you move a slider
# (:doc:`/how-to/explore`).
