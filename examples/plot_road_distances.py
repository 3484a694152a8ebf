"""
From road distances to a map
============================

If you know how far it is by road between places, can you draw a map of them? Classical
multidimensional scaling turns distances into coordinates, and adds new places by their distances to
the old ones. Roads are not straight, so no map can be exact. Negative eigenvalues say how far from
exact it is.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import Delaunay

from mercer import ClassicalMDS

# %%
# A town on a river
# -----------------
# Two hundred crossings, streets between neighbours, and a river with two bridges. The distance
# between two crossings is the shortest way on foot. Two places on opposite banks can be near each
# other and still a long walk apart.

rng = np.random.default_rng(4)
places = rng.uniform(0, 1, size=(200, 2)) * [2.0, 1.2]


def river(x):
    return 0.6 + 0.12 * np.sin(4 * x)


side = places[:, 1] > river(places[:, 0])
streets = {tuple(sorted(e)) for t in Delaunay(places).simplices for e in zip(t, np.roll(t, 1))}
streets = np.array(sorted(streets))
crosses = side[streets[:, 0]] != side[streets[:, 1]]
middle = places[streets].mean(axis=1)[:, 0]
bridge = crosses & ((np.abs(middle - 0.35) < 0.08) | (np.abs(middle - 1.6) < 0.08))
streets = streets[~crosses | bridge]
length = np.linalg.norm(places[streets[:, 0]] - places[streets[:, 1]], axis=1)
short = length < 0.35  # no motorways along the edge
W = np.full((200, 200), np.inf)
W[streets[short, 0], streets[short, 1]] = length[short]
D = dijkstra(np.where(np.isinf(W), 0, W), directed=False)
linked = np.isfinite(D[0])
D, places, side = D[np.ix_(linked, linked)], places[linked], side[linked]

# %%
# Every tenth place is left out at first, and placed afterwards by its distances to the others.

later = np.arange(len(D)) % 10 == 0
mds = ClassicalMDS(2, metric="precomputed").fit(D[np.ix_(~later, ~later)])
drawn = np.empty((len(D), 2))
drawn[~later], drawn[later] = mds.embedding_, mds.transform(D[np.ix_(later, ~later)])
print(f"share of negative eigenvalues, caused by detours: {100 * mds.negative_share_:.0f} %")

# Distances do not say where north is: rotate and mirror the map like the town (Procrustes).
A, B = drawn - drawn.mean(axis=0), places - places.mean(axis=0)
U, _, V = np.linalg.svd(A.T @ B)
drawn = A @ U @ V + places.mean(axis=0)

fig, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharex=True, sharey=True)
for ax, P, title in (
    (axes[0], places, "the town"),
    (axes[1], drawn, "a map of walking distances"),
):
    ax.scatter(*P[~later].T, c=np.where(side[~later], "#0072B2", "#D55E00"), s=16)
    ax.scatter(*P[later].T, s=34, marker="x", color="grey", label="placed afterwards")
    ax.set(title=title, aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
x = np.linspace(0, 2, 60)
axes[0].plot(x, river(x), color="#56B4E9", lw=6, alpha=0.5, zorder=0)
axes[0].legend(loc="lower right", framealpha=1)
plt.show()

# %%
# In the right map the banks of the river are far apart in the middle, because the walk from one to
# the other is long. The map shows walking distances, not straight lines.
#
# Six European cities
# -------------------
# Road distances in kilometres. Both axes are reversed, so that Copenhagen is at the top and Lisbon
# on the left. North is only roughly up, because roads are not straight.

cities = ["Copenhagen", "Lisbon", "Madrid", "Paris", "Rome", "Vienna"]
D = np.zeros((6, 6))
D[np.triu_indices(6, 1)] = [2971, 2498, 1176, 2050, 1455, 668, 1799, 2700, 2937, 1273, 2097, 2409,
                            1476, 1249, 1209]  # fmt: skip
D += D.T
P = -ClassicalMDS(2, metric="precomputed").fit(D).embedding_
fig, ax = plt.subplots(figsize=(5, 3.4))
ax.scatter(*P.T, color="#0072B2")
for name, (x, y) in zip(cities, P):
    ax.annotate(name, (x, y), xytext=(5, 4), textcoords="offset points", fontsize=9)
ax.set(aspect="equal", xlabel="km", ylabel="km", xlim=(-2000, 1700), title="from road distances")
plt.show()
