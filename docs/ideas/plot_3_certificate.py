r"""
3. Certificate and rank: what floating point does
=================================================

In exact arithmetic the Gaussian kernel matrix of distinct points always has full rank. On a
computer it hardly ever does: its eigenvalues fall below the rounding error long before they end.
This page says what "exact" means then, and shows that the map can bound its own error, pair by
pair, without ever seeing the full kernel matrix.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import RBF, KernelMap, Matern

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(400, 2)), rng.normal(size=(300, 2))

# %%
# Rank is found, not chosen
# -------------------------
# Smooth kernels on few columns need few coordinates; rough kernels, or many columns, need as many
# as there are points. The map stops when every training point is explained up to rounding.

fig, ax = plt.subplots(figsize=(7, 5))
for kernel, X_ in (
    (RBF(0.1), X),
    (RBF(1.0), X),
    (Matern(nu=1.5), X),
    (RBF(0.1), rng.normal(size=(400, 12))),
):
    values = np.linalg.eigvalsh(kernel(X_))[::-1]
    m = KernelMap(kernel).fit(X_)
    label = f"{kernel!r}, {X_.shape[1]} columns: rank {m.rank_}"
    (line,) = ax.semilogy(np.maximum(values / values[0], 1e-18), label=label)
    ax.axvline(m.rank_, color=line.get_color(), lw=1, ls=":")
ax.axhspan(1e-18, 2.2e-16, color="grey", alpha=0.25)
ax.text(385, 4e-18, "rounding", ha="right")
ax.set(xlabel="eigenvalue number", ylabel="relative to the largest", ylim=(1e-18, 2))
fig.legend(loc="outside lower center", ncols=2)
plt.show()

# %%
# This is why the formula :math:`K^{-1/2}` of the paper fails in double precision: the smallest
# eigenvalues are rounding noise, some of them negative, and the inverse root of noise is noise. A
# rank-revealing factorisation leaves that part out and reports the rank.
#
# The certificate
# ---------------
# For *any* two points, training points or not, the Cauchy-Schwarz inequality for the part that the
# map does not see says
#
# .. math:: |k(x, z) - \varphi(x) \cdot \varphi(z)| \le \rho(x)\, \rho(z) .
#
# The map can compute both residuals. The bound that the library returns also includes the rounding
# errors of the kernel and of the triangular solves; without them, the formula would be violated
# once residuals reach 1e-8. Here is a map with 40 landmarks, and pairs of training points and new
# points:

kernel = RBF(1.0)
small = KernelMap(kernel, max_rank=40).fit(X)
P, Q = small.transform(Z), small.transform(X)
error = np.abs(kernel(Z, X) - P @ Q.T).ravel()
bound = small.error_bound(Z, X).ravel()
print("pairs:", error.size, " violated:", int((error > bound).sum()))

fig, ax = plt.subplots(figsize=(7, 4))
ax.loglog(bound, np.maximum(error, 1e-17), ".", ms=1.2, alpha=0.25, rasterized=True)
ax.plot([1e-9, 1], [1e-9, 1], color="#D55E00", label="error = bound")
ax.set(
    xlabel="certified bound", ylabel="true error", xlim=(1e-5, 1), ylim=(1e-9, 1),
    title="40 landmarks: no pair above the line",
)  # fmt: skip
ax.legend()
plt.show()

# %%
# The more landmarks, the smaller the error, until only rounding is left. A smaller tolerance than
# that gains nothing, and the bound shows it.

tolerances = 10.0 ** -np.arange(1, 16)
worst, promised, ranks = [], [], []
for tol in tolerances:
    m = KernelMap(kernel, tol=tol).fit(X)
    difference = np.abs(kernel(X, Z) - m.transform(X) @ m.transform(Z).T)
    worst.append(difference.max())
    promised.append(m.error_bound(X, Z).max())
    ranks.append(m.rank_)
fig, ax = plt.subplots(figsize=(7, 4))
ax.loglog(ranks, promised, "o-", ms=4, color="#D55E00", label="largest certified bound")
ax.loglog(ranks, worst, "o-", ms=4, color="#0072B2", label="largest true error")
ax.set(xlabel="landmarks", title="training against new points")
ax.set_xticks([50, 100, 200], ["50", "100", "200"])
ax.minorticks_off()
ax.legend()
plt.show()

# %%
# So "exact" means an error of about 1e-14 where the kernel matrix is well conditioned, as for the
# polynomial kernels on MNIST in [EXACT]. In the worst case the error is about 1e-8, the square root
# of the machine precision: there the matrix is numerically singular, and a new point needs
# coordinates along directions that are nearly zero. Between training points the error is smaller:

m = KernelMap(kernel).fit(X)
inner = m.transform(X) @ m.transform(X).T
print("rank", m.rank_, "of", len(X))
print("training pairs:       ", f"{np.abs(inner - kernel(X)).max():.0e}")
print(
    "training against new: ",
    f"{np.abs(m.transform(X) @ m.transform(Z).T - kernel(X, Z)).max():.0e}",
)

# %%
# Tolerances are relative to each point
# -------------------------------------
# For some kernels :math:`k(x, x)` spans many orders of magnitude: for the ninth-degree kernel
# :math:`k_1` of [EXACT] on digits, from 2e-14 to 1.5e-6. A tolerance relative to the largest value
# would erase the small ones. In mercer a tolerance is relative to each point's own :math:`k(x, x)`.

from mercer import Polynomial

lengths = np.geomspace(0.01, 1, 60)[:, None]
angles = rng.uniform(0, np.pi, 60)[:, None]
ink = lengths * np.hstack([np.cos(angles), np.sin(angles), 0.3 * np.ones((60, 1))])
k9 = Polynomial(degree=9, coef0=0.0)
m = KernelMap(k9).fit(ink)
relative = np.abs(m.transform(ink) @ m.transform(ink).T - k9(ink)) / np.sqrt(
    np.outer(k9.diag(ink), k9.diag(ink))
)
print(f"k(x, x) from {k9.diag(ink).min():.0e} to {k9.diag(ink).max():.0e};", end=" ")
print(f"largest relative error {relative.max():.0e}")

# %%
# **Try it.** ``mercer explore --demo`` shows the bound next to the picture: make gamma smaller, and
# watch how the rank falls while the bound stays small (:doc:`/how-to/explore`).
