"""Ratios as bars: how many times faster than each peer, on a logarithmic scale."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def draw(table, path):
    lines = [line for line in table if line["ratio"] is not None]
    if not lines:
        return
    labels = [f"{line['title']}\nagainst {line['contender']}" for line in lines]
    ratios = [line["ratio"] for line in lines]
    fig, ax = plt.subplots(figsize=(10, 0.55 * len(lines) + 1), layout="constrained")
    colors = ["#0072B2" if ratio >= 1 else "#D55E00" for ratio in ratios]
    ax.barh(range(len(lines)), ratios, color=colors, height=0.6)
    for i, line in enumerate(lines):
        ax.text(ratios[i], i, f" {ratios[i]:.1f}x", va="center", fontsize=8)
        if line["target"]:
            ax.plot([line["target"]] * 2, [i - 0.4, i + 0.4], color="black", lw=1.5)
    ax.axvline(1, color="grey", lw=1)
    ax.set_xscale("log")
    ax.set_yticks(range(len(lines)), labels, fontsize=7)
    ax.invert_yaxis()
    ax.set_xlabel("times faster than the peer, same run (black tick: target)")
    fig.savefig(path, dpi=120)
    plt.close(fig)
