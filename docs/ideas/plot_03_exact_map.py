r"""
3. The exact map
================

The kernel trick has a price: every algorithm must be rewritten until only inner products are left.
This lesson is the alternative. The space of a Gaussian kernel has infinitely many dimensions, but
:math:`n` training points span at most :math:`n` of them. The inner product of a new point with a
training point depends only on the projection of the new point onto that span. So finitely many
coordinates reproduce the kernel **exactly** wherever a training point is involved.

From here on there are two maps. :math:`\psi(x)` is the image of :math:`x` in the kernel's own
space (:math:`\varphi` in lessons 1 and 2), which we cannot store. :math:`\varphi(x)` is a row of
numbers, which we can.

The statement
-------------
Let :math:`K = F F^T`, where :math:`F` has :math:`n` rows and full column rank :math:`r`. Let
:math:`k_z` be the vector of all :math:`k(x_i, z)`, and :math:`\varphi(z) = F^{+} k_z`, the
least-squares solution of :math:`F \varphi = k_z`. **Then for every training point and every**
:math:`z`

.. math:: \varphi(x_i) \cdot \varphi(z) = k(x_i, z) .

*Proof.* If :math:`K a = 0`, then :math:`|\sum_i a_i \psi(x_i)|^2 = a^T K a = 0`, so
:math:`\sum_i a_i \psi(x_i) = 0`, and :math:`a \cdot k_z = \langle \sum_i a_i \psi(x_i), \psi(z)
\rangle = 0`. Hence :math:`k_z` is
orthogonal to the null space of :math:`K`: it lies in the range of :math:`K`, which is that of
:math:`F`. So the equation :math:`F \varphi(z) = k_z` is *solved*, not approximated. For
:math:`z = x_i` the right side is :math:`F F_i`, with the :math:`i`-th row :math:`F_i` of
:math:`F`, and the solution is :math:`\varphi(x_i) = F_i`. The :math:`i`-th line of
:math:`F \varphi(z) = k_z` is the claim. ∎

**The numbers** :math:`\varphi(z)` **are the coordinates of the projection of** :math:`\psi(z)`
**onto the span of the training images.** To see it, let :math:`W = (F^{+})^T`, and take the vectors
:math:`e_c = \sum_i W_{ic}\, \psi(x_i)` of the span. Their inner products are
:math:`W^T K W = F^{+} F F^T (F^{+})^T = I`. So these :math:`r` vectors are an orthonormal basis of
the span, which has :math:`r` dimensions, and :math:`\langle e_c, \psi(z) \rangle = (F^{+} k_z)_c =
\varphi(z)_c`. By Pythagoras, the rest of
:math:`\psi(z)` has the squared length :math:`\rho^2(z) = k(z, z) - |\varphi(z)|^2 \ge 0`, the
**residual**. It is 0 at training points. For a kernel that falls off with the distance, it is
nearly :math:`k(z, z)` far from all of them.

Ten lines of NumPy
------------------
Two factors of one matrix give two maps. Both reproduce the kernel between training points and new
points.
"""

import numpy as np

rng = np.random.default_rng(3)
X = (np.linspace(-3, 3, 12) + rng.uniform(-0.2, 0.2, 12))[:, None]  # training points
Z = np.linspace(-4.5, 4.5, 181)[:, None]  # new points
K, k_Z = np.exp(-((X - X.T) ** 2)), np.exp(-((X - Z.T) ** 2))
values, U = np.linalg.eigh(K)
factors = {"Cholesky": np.linalg.cholesky(K), "eigen": U * np.sqrt(values)}
for name, F in factors.items():
    phi = np.linalg.lstsq(F, k_Z)[0]  # one column per new point
    print(f"{name:8} largest error for {k_Z.size} pairs: {np.abs(F @ phi - k_Z).max():.0e}")

# %%
# In mercer
# ---------
# A :class:`~mercer.KernelMap` finds the rank and a factor. ``basis`` chooses which:
#
# =========  ========================  =======================================================
# basis      :math:`\varphi(z)`        source
# =========  ========================  =======================================================
# cholesky   :math:`C^{-1} k(S, z)`    [NPT] footnote 3: :math:`C C^T = k(S, S)`, r pivots S
# eigen      :math:`L^{-1/2} U^T k_z`  [NPT] Theorem 2, with :math:`K = U L U^T`
# symmetric  :math:`K^{-1/2} k_z`      [EXACT] (4); n coordinates, even where the rank is less
# closed     the kernel's own map      no training points; exact for two new points as well
# =========  ========================  =======================================================
#
# The first two differ by a rotation (or a reflection). The third puts the same points into
# :math:`n` dimensions, with all lengths and angles unchanged. The closed map is not a rotation of
# them: its coordinates are those of the kernel's own space and do not depend on the data; projected
# onto the span of the training points, it would be one. Cholesky is the default because it needs
# :math:`n r^2` operations instead of about :math:`9 n^3`, and because it compares a new point with
# :math:`r` *landmarks* (the pivots :math:`S`) instead of :math:`n` points.

from mercer import RBF, KernelMap

kernel = RBF(1.0)
names = ("cholesky", "eigen", "symmetric")
maps = {name: KernelMap(kernel, basis=name).fit(X) for name in names}
among_new = {}
for basis, fitted in maps.items():
    error = np.abs(fitted.transform(X) @ fitted.transform(Z).T - kernel(X, Z)).max()
    among_new[basis] = fitted.transform(Z) @ fitted.transform(Z).T
    apart = np.abs(among_new[basis] - among_new["cholesky"]).max()
    print(f"{basis:9} error {error:.0e}; between new points {apart:.0e} from the first basis")

# %%
# The picture
# -----------
# The lines are five coordinates of each basis, as functions of :math:`z`; the marks are training
# points. Symmetric coordinates are bumps, one for each training point. Eigen coordinates are waves,
# ordered by how much they explain. Cholesky coordinates are added point by point: each is 0 at the
# landmarks of those before it.

import matplotlib.pyplot as plt

fig, axes = plt.subplots(1, 3, figsize=(8.4, 3), sharey=True)
for ax, (basis, fitted) in zip(axes, maps.items()):
    Phi = fitted.transform(Z)
    ax.plot(Z, Phi[:, 3:8] if basis == "symmetric" else Phi[:, :5])
    ax.plot(X, np.full(len(X), -1.15), "|", color="grey", ms=9)
    ax.set(title=basis, xlabel="z")
axes[0].set_ylabel("coordinates")
plt.show()

# %%
# Move the slider: with a small gamma few coordinates are enough. With a large one each point needs
# its own, and the residual (grey) fills the plane between the points.
#
# .. slider:: gram spectrum map residual
#
# Exercise
# --------
# [EXACT] proves the theorem with :math:`K^{-1}`. Let every training point occur twice, so that
# :math:`K` has no inverse. Which of the maps above still work, and how many coordinates do they
# need?
#
# Solution
# --------
# All of them work, since the proof above never inverts :math:`K`. A factor of full column rank has
# 12 columns, as before. The symmetric basis has one coordinate per point, 24, with the same inner
# products.

twice = np.vstack([X, X])
assert np.linalg.matrix_rank(kernel(twice)) == 12
for basis in maps:
    fitted = KernelMap(kernel, basis=basis).fit(twice)
    error = np.abs(fitted.transform(twice) @ fitted.transform(Z).T - kernel(twice, Z)).max()
    assert error < 1e-7
    print(f"{basis:9} {fitted.transform(Z).shape[1]:2} coordinates, error {error:.0e}")

# %%
# In the sources
# --------------
# [EXACT] Theorem 1 and (4); [NPT] Lemma 1, Theorem 2, Corollary 3; Lemma 5 is the residual.
# Errata:
#
# - [EXACT] (9) should read :math:`\psi(z) = \varphi(z) - M`; there :math:`\psi` is the centred map.
# - [NPT] footnote 3: Cholesky's factor is unique, and :math:`V` a square rotation, only if
#   :math:`K` is invertible. "0 is not in P" of section III-A is wrong: P is a linear span.
#
# The map has other names. The Nyström approximation with all points, and the whitened empirical
# kernel map, are this map; the theorem says that they are exact.
