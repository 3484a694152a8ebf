"""The look of all figures that the site draws, on light and on dark pages."""

MIDDLE_GREY = "#737b85"
MIDDLE_COLOURS = ["#2b8cc4", "#e0701b", "#2ca27c", "#b86fa5", "#c9a227", "#7f7f7f"]


def plain_figures(gallery_conf=None, fname=None):
    """The same look for every example, whatever the one before has set."""
    import matplotlib.pyplot as plt

    plt.rcdefaults()
    plt.rcParams.update(
        {
            "figure.constrained_layout.use": True,
            # On a light and on a dark page: no background, and colours that show on both.
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "savefig.facecolor": "none",
            "legend.framealpha": 0.0,
            **dict.fromkeys(["text.color", "axes.labelcolor", "axes.titlecolor"], MIDDLE_GREY),
            **dict.fromkeys(["axes.edgecolor", "xtick.color", "ytick.color"], MIDDLE_GREY),
            "axes.prop_cycle": plt.cycler(color=MIDDLE_COLOURS),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlelocation": "left",
            "axes.titlesize": "medium",
            "font.size": 12,  # readable when the page shows the figure at half its width
            "legend.fontsize": "small",
        }
    )
