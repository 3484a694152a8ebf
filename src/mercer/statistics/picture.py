"""Pictures of test results, by matplotlib."""

from typing import Any

import numpy as np

# Blue and vermilion of Okabe and Ito, which colour-blind readers can tell apart.
OF_X, OF_Y, QUIET = "#0072B2", "#D55E00", "#9a9a9a"
_MOST_BARS = 12
_SHOWN_ROWS = 2000


def draw_result(result: Any, axes: Any) -> Any:
    """Permutations and columns; and the witness along the leading column, or the functions of X and
    Y that vary together most."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'mercer[plots]'.") from None
    if axes is None:
        _, axes = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
    axes = np.asarray(axes, dtype=object).ravel()
    if len(axes) != 3 or not all(hasattr(ax, "scatter") for ax in axes):
        raise ValueError(f"axes must be three matplotlib axes or None, got {len(axes)} things.")
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(colors="#6a6a6a", labelsize="small")
    ax = axes[0]
    ax.hist(result.permuted, bins=40, color=QUIET, alpha=0.7, label="permuted labels")
    ax.axvline(result.threshold, color="#737373", linestyle=":", label=f"level {result.level:g}")
    ax.axvline(result.statistic, color=OF_Y, linewidth=2, label="these samples")
    ax.set(xlabel="statistic", yticks=[])
    ax.set_title(f"p = {result.p_value:.2g}", loc="left")
    ax.legend(fontsize="small", edgecolor="none")  # its background keeps the lines out
    try:
        columns = result.columns
    except ValueError:  # objects have no columns
        columns = {}
    shown = list(columns.items())[:_MOST_BARS][::-1]
    names, shares = [_plain(name) for name, _ in shown], [100 * share for _, share in shown]
    axes[1].barh(names, shares, color=OF_X)
    dependence = isinstance(result.witness, tuple)
    axes[1].set_xlabel(f"share of the {'dependence' if dependence else 'difference'}, %")
    axes[1].set_title("Columns", loc="left")
    if not shown:
        axes[1].set_axis_off()
    if not dependence:
        _along_column(result, next(iter(columns), None), axes[2])
        return axes
    f, g = result.witness
    x, y = (samples.some_points(0, _SHOWN_ROWS) for samples in (result.x, result.y))
    axes[2].scatter(result.x.at(f, x), result.y.at(g, y), s=8, alpha=0.5, color=OF_X, linewidths=0)
    axes[2].set(xlabel="f(x)", ylabel="g(y)")
    axes[2].set_title("Functions that vary together", loc="left")
    return axes


def _along_column(result, name, ax):
    """Both samples along a column, and the mean of the witness there."""
    x, y = (result.samples.some_points(which, _SHOWN_ROWS) for which in (0, 1))
    both = np.concatenate([x, y])
    values = result.samples.at(result.witness, both)
    group = None if name is None else result.samples.column_groups(x.shape[1])[name]
    if group is None or len(group) > 1:
        # No single axis: the values of the witness themselves.
        both_values = [values[: len(x)], values[len(x) :]]
        ax.hist(both_values, bins=30, density=True, color=[OF_X, OF_Y], label=["X", "Y"])
        ax.set_xlabel("witness: X has more on the right, Y on the left")
    else:
        column = both[:, group[0]]
        low, high = np.quantile(column, [0.005, 0.995])
        bins = np.linspace(low, high, 31)
        for rows, colour, label in ((x, OF_X, "X"), (y, OF_Y, "Y")):
            along = rows[:, group[0]]
            ax.hist(along, bins=bins, density=True, alpha=0.45, color=colour, label=label)
        where = np.digitize(column, bins[1:-1])
        filled = np.unique(where)
        centres = (bins[:-1] + bins[1:])[filled] / 2
        other = ax.twinx()
        other.plot(centres, [values[where == i].mean() for i in filled], color="#737373")
        other.axhline(0, color=QUIET, linewidth=0.6)
        other.set_ylabel("witness")
        other.tick_params(colors="#6a6a6a", labelsize="small")
        other.spines["top"].set_visible(False)
        unit = "" if result.samples.encoder is None else " (standardised)"
        ax.set_xlabel(_plain(name) + unit)
    ax.set_yticks([])
    ax.set_title("Where they differ", loc="left")
    ax.legend(fontsize="small", frameon=False)


def _plain(text):
    """A name as it is: $ starts mathematics in matplotlib."""
    text = str(text)
    return (text if len(text) <= 30 else text[:29] + "…").replace("$", r"\$")
