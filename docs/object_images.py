"""The pictures of the how-to on objects: `python docs/object_images.py` writes them.

Each shows a few objects of two kinds, and all of them in the feature space of their kernel.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
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

HERE = Path(__file__).parent
BLUE, ORANGE = "#0072B2", "#D55E00"
COLOURS = np.array([BLUE, ORANGE])
N = 60


def strings(rng):
    """Sequences with and without TATAAT."""
    texts = ["".join(rng.choice(list("ACGT"), size=60)) for _ in range(N)]
    return [s[:30] + "TATAAT" * 2 + s[30:] if i % 2 else s for i, s in enumerate(texts)]


def molecules(rng):
    """Alcohols and ethers: chains with the oxygen at the end or inside."""
    graphs = []
    for i in range(N):
        n = int(rng.integers(4, 12))
        place = int(rng.integers(1, n - 1)) if i % 2 else n - 1
        atoms = ["C"] * n
        atoms[place] = "O"
        graphs.append(([(j, j + 1) for j in range(n - 1)], atoms))
    return graphs


def paths(rng):
    """Circles drawn one way or the other."""
    drawn = []
    for i in range(N):
        t = np.linspace(0, 2 * np.pi, rng.integers(40, 80)) + rng.uniform(0, 6)
        turn = 1 if i % 2 else -1
        drawn.append(np.column_stack([np.cos(t), turn * np.sin(t)]) * rng.uniform(0.7, 1.3))
    return drawn


def sets(rng):
    """Clouds around one centre, or around two."""
    clouds = []
    for i in range(N):
        X = 0.5 * rng.normal(size=(rng.integers(20, 40), 2))
        X[:, 0] += np.where(rng.random(len(X)) < 0.5, -1.5, 1.5) * (i % 2)
        clouds.append(X)
    return clouds


def fingerprints(rng):
    """Bits around two templates."""
    templates = rng.random((2, 64)) < 0.25
    return np.array([templates[i % 2] ^ (rng.random(64) < 0.08) for i in range(N)], dtype=float)


def draw_string(ax, text, colour):
    ax.text(0.02, 0.5, text[27:43], color=colour, family="monospace", va="center", fontsize=9)


def draw_molecule(ax, graph, colour):
    edges, atoms = graph
    x = np.linspace(0.05, 0.95, len(atoms))
    y = 0.5 + 0.12 * (-1.0) ** np.arange(len(atoms))
    for i, j in edges:
        ax.plot(x[[i, j]], y[[i, j]], color=colour, lw=1.5, zorder=1)
    for place, atom in enumerate(atoms):
        size = 70 if atom == "O" else 16
        ax.scatter(x[place], y[place], s=size, color="white" if atom == "O" else colour, zorder=2)
        if atom == "O":
            ax.text(x[place], y[place], "O", color=colour, ha="center", va="center", fontsize=9)


def draw_path(ax, path, colour):
    for channel, style in zip(path.T, ("-", ":")):
        ax.plot(np.linspace(0.05, 0.95, len(path)), 0.5 + 0.3 * channel, style, color=colour)


def draw_set(ax, points, colour):
    ax.scatter(0.5 + points[:, 0] / 7, 0.5 + points[:, 1] / 4.5, s=5, color=colour)


def draw_bits(ax, bits, colour):
    ax.bar(np.linspace(0.03, 0.97, len(bits)), bits * 0.5, 0.012, bottom=0.25, color=colour)


PICTURES = {
    "strings": (strings, draw_string, Spectrum(5, normalize=True), "without and with TATAAT"),
    "graphs": (molecules, draw_molecule, Normalized(WeisfeilerLehman(3)), "alcohols and ethers"),
    "paths": (paths, draw_path, Signature(2, time=False), "clockwise and the other way"),
    "sets": (sets, draw_set, SetOf(RBF(0.5)), "one centre and two"),
    "fingerprints": (fingerprints, draw_bits, Tanimoto(), "around two templates"),
}


def picture(name):
    make, draw, kernel, what = PICTURES[name]
    X = make(np.random.default_rng(0))
    Z = KernelPCA(n_components=2, kernel=kernel).fit_transform(X)
    fig = plt.figure(figsize=(6, 2.6), layout="constrained")  # small, so that text is large
    left, right = fig.subfigures(1, 2, width_ratios=[1.1, 1])
    left.suptitle(what, fontsize=12)
    for ax, i in zip(left.subplots(2, 2).flat, (0, 1, 2, 3)):
        ax.set(xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[])
        ax.spines[:].set_color("#cccccc")
        draw(ax, X[i], COLOURS[i % 2])
    ax = right.subplots()
    ax.scatter(*Z.T, s=14, color=COLOURS[np.arange(N) % 2])
    right.suptitle("kernel PCA", fontsize=12)
    ax.set(xticks=[], yticks=[])
    ax.set_aspect("equal", adjustable="datalim")
    ax.spines[["top", "right"]].set_visible(False)
    fig.savefig(HERE / f"images/objects_{name}.png", dpi=120)
    plt.close(fig)


if __name__ == "__main__":
    for name in PICTURES:
        picture(name)
