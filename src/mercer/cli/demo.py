"""The data and kernels of `mercer demo`: [EXACT] section 4 on what is at hand."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import RBF, KernelComparison, OnFeatures, Polynomial
from ..tables import BadInput, read_arrays

_CLASSES = (2, 4, 7)
# As many as the paper takes of each digit for training, and again for testing.
_EACH = 1000
# Learning from few shows what a space is worth; from many, all are good at small digits.
FROM_FEW: dict[str, Any] = {"cv": 8, "train_size": 60}


def signed(X: np.ndarray):
    """Map pixels from [0, 1] to [-1, 1]. People read this name in the kernels that are printed."""
    return 2 * X - 1


def kernels(n_pixels: int):
    """k1 and k2 of [EXACT] (27)-(29), and RBF.

    k1 = <x, z>^9 on pixels in [0, 1]: empty pixels add nothing, and digits with little ink are
    similar to nothing, themselves included. k2 = ((<2x-1, 2z-1> + 1) / 2)^9 counts paper as well
    as ink. <x, z> is x.z divided by the number of pixels.
    """
    return {
        "k1": Polynomial(9, gamma=1 / n_pixels, coef0=0.0),
        "k2": OnFeatures(Polynomial(9, gamma=1 / (2 * n_pixels), coef0=0.5), signed),
        "RBF": RBF("scale"),
    }


def story(comparison: KernelComparison, picture: Path):
    """The point of [EXACT], Figures 1 to 4, in words with the numbers found here."""
    k1, k2 = (next(s for s in comparison.spaces if s.name == name) for name in ("k1", "k2"))
    assert k1.score is not None
    assert k2.score is not None
    worse = comparison.contest.beats(k2, k1)
    low, high = k1.self_similarity
    return [
        f"k1 recognises {100 * k1.score:.1f} % of digits that it has not seen, k2 "
        f"{100 * k2.score:.1f} %: "
        + ("k1 is worse beyond the noise." if worse else "the difference may be noise."),
        f"Why: k1 sees ink only. k1(x, x) goes from {low:.0e} to {high:.0e}, so a digit with "
        "little ink is similar to nothing, not even to itself. k2 sees paper as well as ink: "
        "k2(x, x) goes from {:.2f} to {:.2f}.".format(*k2.self_similarity),
        f"See it: {picture} has both spaces. In that of k1 the digits run into each other, in "
        "that of k2 they form groups.",
    ]


def digits(classes: Sequence[int] = _CLASSES) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    """8 x 8 digits that scikit-learn brings along."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    chosen = np.isin(y, classes)
    return X[chosen] / 16, y[chosen], (8, 8)


def mnist(source: str):
    """MNIST from a local .npz, or downloaded once by scikit-learn."""
    if source != "mnist":
        if not Path(source).is_file():
            known = "--data takes 'digits', 'mnist' or a .npz file."
            raise BadInput(f"the file {source!r} does not exist. {known}")
        arrays = read_arrays(Path(source))
        if not {"x_train", "y_train"} <= set(arrays):
            raise BadInput(f"{source}: expected arrays x_train and y_train.")
        return _chosen(arrays["x_train"], arrays["y_train"])
    from sklearn.datasets import fetch_openml

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # each failed attempt; the last one is reported below
            X, y = fetch_openml("mnist_784", version=1, return_X_y=True, as_frame=False)
    except Exception as error:  # no network, a proxy, a changed server: all the same to a person
        raise BadInput(
            f"MNIST could not be downloaded ({str(error)[:120]}). Without --data the bundled "
            "digits are used; --data mnist.npz takes a local copy."
        ) from None
    return _chosen(X, y.astype(int))


def _chosen(X, y):
    rows = np.sort(np.concatenate([np.flatnonzero(y == c)[:_EACH] for c in _CLASSES]))
    X = X.reshape(len(X), -1)[rows].astype(float)
    side = round(X.shape[1] ** 0.5)
    return X / 255.0, y[rows], (side, side)
