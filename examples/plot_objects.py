"""
Strings, graphs, sets, fingerprints and paths
=============================================

Five kinds of objects that are not vectors. Each has its own kernel. Kernel PCA draws the feature
space, in which similar objects lie close together.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import (
    RBF,
    KernelPCA,
    Normalized,
    SetOf,
    Signature,
    Spectrum,
    Tanimoto,
    WeisfeilerLehman,
)

rng = np.random.default_rng(0)
COLOURS = np.array(["#0072B2", "#D55E00", "#009E73"])

# %%
# Three kinds of each
# -------------------
# Strings with three different frequencies of letters; molecules that are chains, rings or stars;
# clouds of points with three shapes; fingerprints close to three templates; and paths that bend up,
# down or not at all.

kinds = np.repeat([0, 1, 2], 20)


def sequence(kind):
    habits = [[0.4, 0.1, 0.1, 0.4], [0.1, 0.4, 0.4, 0.1], [0.25] * 4][kind]
    return "".join(rng.choice(list("ACGT"), size=80, p=habits))


def molecule(kind):
    n = int(rng.integers(6, 14))
    chain = [(i, i + 1) for i in range(n - 1)]
    edges = [chain, [*chain, (n - 1, 0)], [(0, i) for i in range(1, n)]][kind]
    return edges, "".join(rng.choice(list("CCCNO"), size=n))


def cloud(kind):
    angle = rng.uniform(0, 2 * np.pi, size=rng.integers(20, 40))
    radius = [1.5, 0.3, rng.uniform(0, 2)][kind]
    points = radius * np.column_stack([np.cos(angle), np.sin(angle)])
    return points + 0.2 * rng.normal(size=points.shape)


templates = rng.random((3, 128)) < 0.2


def fingerprint(kind):
    return (templates[kind] ^ (rng.random(128) < 0.06)).astype(float)


def path(kind):
    t = np.linspace(0, 1, rng.integers(20, 60))
    bend = np.column_stack([t, [1, -1, 0][kind] * np.sin(np.pi * t)])
    return bend + 0.03 * rng.normal(size=bend.shape).cumsum(axis=0)


# %%
# Five feature spaces
# -------------------

samples = {
    "strings": (Spectrum(3, normalize=True), [sequence(k) for k in kinds]),
    "graphs": (Normalized(WeisfeilerLehman(2)), [molecule(k) for k in kinds]),
    "sets": (SetOf(RBF(1.0)), [cloud(k) for k in kinds]),
    "fingerprints": (Tanimoto(), np.array([fingerprint(k) for k in kinds])),
    "paths": (Signature(3), [path(k) for k in kinds]),
}
fig, axes = plt.subplots(2, 3, figsize=(8, 6))
for ax, (name, (kernel, X)) in zip(axes.ravel(), samples.items()):
    scores = KernelPCA(2, kernel).fit_transform(X)
    ax.scatter(*scores.T, c=COLOURS[kinds], s=22)
    ax.set(title=name, xticks=[], yticks=[])
    ax.set_aspect("equal", adjustable="datalim")
    print(f"{name:13}{kernel!r}")
axes[1, 2].axis("off")
for kind, colour in enumerate(COLOURS):
    axes[1, 2].scatter([], [], c=[colour], s=40, label=f"kind {kind + 1}")
axes[1, 2].legend(loc="center", frameon=False)
plt.show()
