r"""
11. Floating point: rank, residual, certificate
===============================================

In exact arithmetic the Gaussian kernel matrix of distinct points has full rank. On a computer it
often does not: many of its eigenvalues are smaller than the rounding error. What does "exact" mean
then? The map can measure it.

The statement
-------------
Let :math:`\varphi` be the map of lesson 3 on some landmarks: all training points, or a few of
them. **For any two points, known or new, its error is at most the product of their residuals:**

.. math:: |k(x, z) - \varphi(x) \cdot \varphi(z)| \le \rho(x)\, \rho(z) ,

where :math:`\rho^2(z) = k(z, z) - |\varphi(z)|^2`.

*Proof.* In the kernel's space, split :math:`\psi(z)` into its projection onto the span of the
landmarks, whose coordinates are :math:`\varphi(z)` (lesson 3), and the orthogonal rest
:math:`\psi_\perp(z)`, of length :math:`\rho(z)`. Then :math:`k(x, z) = \varphi(x) \cdot \varphi(z)
+ \langle \psi_\perp(x), \psi_\perp(z) \rangle`, and by Cauchy-Schwarz the last term is at most
:math:`\rho(x)\, \rho(z)`. ∎

So a map of few landmarks bounds its own error, pair by pair, without the full kernel matrix.

Ten lines of NumPy
------------------
Pivoted Cholesky: take the point with the largest residual as the next landmark, subtract what it
explains, and stop when every residual is small. The number of steps is the rank.
"""

import numpy as np

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 2))
K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
F, residual = np.zeros((400, 400)), np.diagonal(K).copy()
for r in range(400):
    if residual.max() < 1e-14:
        break
    pivot = residual.argmax()
    F[:, r] = (K[:, pivot] - F[:, :r] @ F[pivot, :r]) / np.sqrt(residual[pivot])
    residual -= F[:, r] ** 2
print(f"rank {r} of 400, largest error {np.abs(F @ F.T - K).max():.0e}")
print(f"smallest eigenvalues as computed: {np.linalg.eigvalsh(K)[:3]}")

# %%
# The formula :math:`K^{-1/2} k_z` of [EXACT] would take roots of those eigenvalues, which are
# rounding errors, some of them negative. A factor that stops at the rank leaves that part out.
#
# In mercer
# ---------
# ``rank_`` is found, not chosen. (It is a little smaller here than above, because the map stops at
# 64 times the machine precision, 1.4e-14.) ``residual`` is :math:`\rho^2`. ``error_bound`` is the
# bound above, with the rounding errors of the kernel and of the triangular solves added. Without
# them the bound would be violated where residuals are as small as these errors.

from mercer import RBF, KernelMap

kernel, Z = RBF(1.0), rng.normal(size=(300, 2))
full, small = KernelMap(kernel).fit(X), KernelMap(kernel, max_rank=40).fit(X)
for name, fitted in {"all points": full, "40 landmarks": small}.items():
    error = np.abs(kernel(Z, X) - fitted.transform(Z) @ fitted.transform(X).T)
    bound = fitted.error_bound(Z, X)
    print(
        f"{name:12} rank {fitted.rank_:3}, error {error.max():.0e}, bound {bound.max():.0e},",
        end=" ",
    )
    print(f"violated {(error > bound).sum()} times of {error.size}")

# %%
# So "exact" means about 1e-14 where :math:`K` is well conditioned. In the worst case it means about
# 1e-8, the square root of the machine precision: there a new point needs coordinates along
# directions in which the training points hardly spread.
#
# The picture
# -----------
# Each dot is a pair of a new point and a training point, with the map of 40 landmarks. No dot is
# above the line.

import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(7, 3.8))
ax.loglog(
    bound.ravel()[::4],
    np.maximum(error.ravel()[::4], 1e-12),
    ".",
    ms=1.5,
    alpha=0.3,
    rasterized=True,
)
ax.plot([1e-5, 1], [1e-5, 1], color="C1", label="error = bound")
ax.set(xlabel="certified bound", ylabel="true error", xlim=(1e-5, 1), ylim=(1e-9, 1))
ax.set_title("no error is above its bound")
ax.legend(frameon=False)
plt.show()

# %%
# Exercise
# --------
# For the map of all points, compute the bare formula :math:`\rho(x) \rho(z)`, without rounding
# errors. How often is it violated?
#
# Solution
# --------
# The true residual of a training point is 0, and the computed one is a rounding error. The product
# with the residual of the new point is then often smaller than the rounding errors of the kernel
# value itself. The certificate adds those.

inner = full.transform(Z) @ full.transform(X).T
error = np.abs(kernel(Z, X) - inner)
rho = [
    np.sqrt(np.maximum(kernel.diag(P) - (full.transform(P) ** 2).sum(axis=1), 0)) for P in (Z, X)
]
bare = np.mean(error > np.outer(*rho))
certified = np.mean(error > full.error_bound(Z, X))
assert bare > 0.01
assert certified == 0
print(
    f"violated for {bare:.0%} of the pairs as printed, for {certified:.0%} with rounding included"
)

# %%
# In the sources
# --------------
# [NPT] footnote 2: the dimension is the rank of :math:`K`; Lemma 5 is the residual. Errata:
# [EXACT] (4) assumes that :math:`K` has an inverse, which on a computer holds for rough kernels or
# many columns only; [NPT] Lemma 5 for a centred map needs the centred :math:`k(x, x)`. The
# certificate, and what rounding adds to it, are in :doc:`/MATH`, sections 1 and 7.
