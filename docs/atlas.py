"""The directive `kernel-atlas`: what can be computed about a kernel from its class, with pictures.

The page of a kernel is its docstring (formula, validity, where it fails, relatives elsewhere), and
below it what this module finds: facts, prior draws, a spectral density, a kernel matrix. Instances
and points come from tests/every_kernel.py, so a new kernel needs its class and its line there.
"""

import sys
from pathlib import Path

import numpy as np
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sklearn.datasets import load_iris
from sklearn.ensemble import ExtraTreesClassifier

import mercer

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "tests"))
from every_kernel import EVERY_KERNEL, points_for

# 150 flowers of three species, one after the other; no value is below 0.
IRIS, SPECIES = load_iris(return_X_y=True)
FOREST = ExtraTreesClassifier(50, max_leaf_nodes=12, random_state=0).fit(IRIS, SPECIES)
KERNELS = [*EVERY_KERNEL, mercer.ForestKernel(FOREST)]
LINE = np.linspace(0, 4, 200)
FREQUENCIES = np.linspace(0, 12, 240)
WIDTHS = {1: 270, 2: 520}  # pixels on the page: letters are as large as with three panels


def instance(name):
    """The first kernel of this class in the list of all kernels."""
    cls = getattr(mercer, name)
    return next((kernel for kernel in KERNELS if type(kernel) is cls), None)


def bound(kernel):
    """With its parameters as numbers."""
    return kernel.bind(IRIS if on_vectors(kernel) else points_for(kernel))


def on_vectors(kernel):
    return kernel.kind not in ("objects", "gram") and accepts(kernel, IRIS)


def accepts(kernel, X):
    """Whether these points suit it: functions of the list may want words, or four columns."""
    try:
        kernel(X[:2])
    except Exception:  # a function of the list may raise anything
        return False
    return True


def line_for(kernel):
    """The line, as one column, or as four equal ones for parameters of four columns."""
    return next((X for X in (LINE[:, None], np.tile(LINE[:, None], 4)) if accepts(kernel, X)), None)


def draws(kernel):
    """Three functions from the Gaussian process with this covariance, on a line; None without."""
    X = line_for(kernel) if on_vectors(kernel) and kernel.is_psd else None
    if X is None:
        return None
    values, vectors = np.linalg.eigh(kernel.bind(X)(X))
    root = vectors * np.sqrt(np.maximum(values, 0))
    return np.random.default_rng(1).normal(size=(3, len(values))) @ root.T


def density(kernel):
    """Its spectral density in one column, by the cosine transform; None without one."""
    X = line_for(kernel) if on_vectors(kernel) else None
    if (
        X is None
        or X.shape[1] > 1
        or bound(kernel).fourier_form() is None
        or "period" in vars(kernel)
    ):
        return None
    far = np.linspace(0, 60, 6001)[:, None]
    values = kernel.bind(X)(far, far[:1])[:, 0]
    if abs(values[-1]) > 1e-3 * abs(values[0]):  # it does not decay
        return None
    return np.trapezoid(2 * values * np.cos(FREQUENCIES[:, None] * far[:, 0]), far[:, 0])


def matrix(kernel):
    """(kernel matrix, what it is of): iris flowers, or objects that suit the kernel."""
    if on_vectors(kernel) and kernel.is_psd is False:  # a sigmoid is 1 at all large products
        centred = IRIS - IRIS.mean(axis=0)
        return kernel.bind(centred)(centred), "150 iris flowers, three species, centred"
    if on_vectors(kernel):
        return kernel.bind(IRIS)(IRIS), "150 iris flowers, three species"
    points = points_for(kernel, 30)
    return kernel.bind(points)(points), "30 random objects; the last repeats the first"


def facts(kernel):
    """Lines of (question, answer) that the class answers."""
    known = {True: "yes, by construction", False: "no", None: "tested on your data"}
    yield "drawn here", f"``{kernel!r}``"
    yield "valid", known[kernel.is_psd]
    none = "none; KernelMap finds the exact map of your rows"
    if on_vectors(kernel):
        suitable = [d for d in (2, 4, 10) if accepts(kernel, np.ones((2, d)))]
        sizes = [f"{kernel.explicit_dim(d)} for {d} columns" for d in suitable]
        own = none if kernel.explicit_dim(suitable[0]) is None else ", ".join(sizes)
    else:
        own = "yes" if has_features(kernel) else none
    yield "finite map of its own", own
    yield (
        "Fourier basis (1 to 3 columns)",
        "yes" if bound(kernel).fourier_form() is not None else "no",
    )
    if on_vectors(kernel):
        yield "sparse rows", "yes" if kernel.takes_sparse else "no"
        yield "values below 0", "refused" if kernel.non_negative_only else "accepted"
    yield "cost of n x m values", cost(kernel)


def has_features(kernel):
    try:
        kernel.explicit(points_for(kernel, 3))
    except (TypeError, ValueError):
        return False
    return True


def cost(kernel):
    if kernel.kind == "gram":
        return "none: they are given"
    if kernel.one_call_per_value:
        return "n m calls of your function"
    if bound(kernel).fused_form() is not None:
        return "a matrix product of n m d operations, and n m function values; one pass on a GPU"
    if on_vectors(kernel):
        return "n m d operations, and n m function values"
    return (
        "features of n + m objects, and a product" if has_features(kernel) else "n m computations"
    )


def draw(name, kernel, folder):
    """Draw the pictures of a kernel in one file; returns what they show, and their width."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from figures import plain_figures

    plain_figures()
    panels = {"prior draws": draws(kernel), "spectral density": density(kernel), "": matrix(kernel)}
    panels = {title: values for title, values in panels.items() if values is not None}
    fig, axes = plt.subplots(1, len(panels), figsize=(3.3 * len(panels), 3.1), squeeze=False)
    for ax, (title, values) in zip(axes[0], panels.items()):
        if title == "prior draws":
            ax.plot(LINE, values.T)
        elif title == "spectral density":
            ax.fill_between(FREQUENCIES, values, color="C0", alpha=0.4)
            ax.set_xlabel("frequency")
        else:
            K, title = values
            size = np.abs(K).max()
            cmap, low = ("PuOr", -size) if K.min() < -1e-9 * size else ("Blues", 0)
            ax.imshow(K, cmap=cmap, vmin=low, vmax=size)
            ax.set(xticks=[], yticks=[])
        ax.set_title(title, fontsize="small")
    folder.mkdir(parents=True, exist_ok=True)
    fig.savefig(folder / f"{name}.png", dpi=160)
    plt.close(fig)
    return ", ".join(title or "kernel matrix" for title in panels), WIDTHS.get(len(panels))


class KernelAtlas(Directive):
    """.. kernel-atlas:: RBF"""

    required_arguments = 1

    def run(self):
        name = self.arguments[0]
        kernel = instance(name)
        if kernel is None:  # an extra that is not installed
            return []
        shown, width = draw(name, kernel, HERE / "generated" / "atlas")
        rows = [line for fact in facts(kernel) for line in (f"* - {fact[0]}", f"  - {fact[1]}")]
        text = [
            ".. rubric:: At a glance",
            "",
            f".. image:: atlas/{name}.png",
            f"   :alt: Pictures of {name}: {shown}.",
            "   :class: dark-light",  # the theme leaves it as it is
            *([f"   :width: {width}px"] if width else []),
            "",
            ".. list-table::",
            "   :widths: 30 70",
            "",
            *("   " + row for row in rows),
        ]
        body = nodes.container()
        self.state.nested_parse(StringList(text, source=f"atlas of {name}"), 0, body)
        return body.children
