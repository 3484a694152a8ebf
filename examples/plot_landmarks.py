"""
Which points should be landmarks?
=================================

A map of limited rank keeps a few landmarks. If they are drawn uniformly, as Nyström methods do,
most of them lie where most of the data lie, and small groups are missed. Greedy landmarks are
placed where the error is largest. Random landmarks, drawn in proportion to the error, mostly give
the smallest sum of errors.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_approximation import Nystroem

from mercer import RBF, KernelMap

# %%
# One crowd, and many small groups
# --------------------------------

rng = np.random.default_rng(1)
crowd = 0.25 * rng.normal(size=(6000, 2))
centres = rng.uniform(-3, 3, size=(30, 2))
hamlets = np.repeat(centres, 8, axis=0) + 0.05 * rng.normal(size=(240, 2))
X = np.vstack([crowd, hamlets])
kernel = RBF(3.0)

fig, axes = plt.subplots(1, 3, figsize=(8, 4.2), sharex=True, sharey=True, layout="compressed")
for ax, pivots in zip(axes, ("uniform", "random", "greedy")):
    kernel_map = KernelMap(kernel, max_rank=40, pivots=pivots, random_state=0).fit(X)
    rho2 = kernel_map.residual(X)
    ax.scatter(*X.T, c=rho2, s=4, cmap="cividis", vmin=0, vmax=1)
    ax.scatter(*kernel_map.landmarks_.T, s=30, facecolors="none", edgecolors="#D55E00")
    ax.set(title=f"{pivots}\nworst {rho2.max():.2f}, mean {rho2.mean():.3f}", xticks=[], yticks=[])
    ax.set_aspect("equal")
fig.supxlabel("yellow points are not explained; circles are landmarks")
plt.show()

# %%
# What a wrong choice costs
# -------------------------
# The relative trace error is the share of the sum of all :math:`k(x, x)` that the map misses. Here
# it is drawn against the number of landmarks. A fitted map can compute it: here all
# :math:`k(x, x)` are 1, so it is the mean of ``residual(X)``. scikit-learn's Nystroem, drawn for
# comparison, has no such method. It keeps every row that it draws; mercer's uniform landmarks leave
# out rows that those before them explain, so that more of them are in the hamlets.

ranks = np.array([10, 20, 40, 60, 80, 110, 150])
fig, ax = plt.subplots(figsize=(7, 4))
for pivots, colour in (("uniform", "#999999"), ("random", "#0072B2"), ("greedy", "#D55E00")):
    errors = [
        KernelMap(kernel, max_rank=r, pivots=pivots, random_state=0).fit(X).residual(X).mean()
        for r in ranks
    ]
    ax.semilogy(ranks, errors, "o-", ms=4, color=colour, label=f"mercer, {pivots}")
errors = []
for r in ranks:
    Phi = Nystroem(gamma=3.0, n_components=r, random_state=1).fit_transform(X)
    errors.append(1 - (Phi**2).sum() / len(X))
ax.semilogy(ranks, errors, "x--", ms=5, color="grey", lw=0.8, label="scikit-learn Nystroem")
ax.set(xlabel="landmarks", ylabel="relative trace error", title="what the map misses")
ax.legend()
plt.show()
