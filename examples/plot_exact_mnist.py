"""
Does a kernel suit the data? Look at its feature space
======================================================

Two kernels of degree 9 on handwritten digits, from section 4 of "An Exact Finite-dimensional
Explicit Feature Map for Kernel Functions". Both are valid, and both are polynomials of an inner
product. Still one of them fails. With the coordinates of their feature spaces we can see why.

With ``x`` and ``z`` images of d pixels and ``<x, z> = x . z / d``::

    k1(x, z) = <x, z>^9                               pixels from 0 to 1
    k2(x, z) = ((<2x - 1, 2z - 1> + 1) / 2)^9         pixels from -1 to 1

The paper takes 500 training and 500 test images of each of 2, 4 and 7 from MNIST. Set
``MERCER_MNIST`` to a local ``mnist.npz`` (or give its path as argument), or let scikit-learn
download it. Without either, the smaller digits that come with scikit-learn are used.
"""

# %%
# The data
# --------

import os
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import fetch_openml, load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from mercer import (
    FeatureSpaceDisplay,
    KernelDiscriminant,
    KernelMap,
    Normalized,
    OnFeatures,
    Polynomial,
)

CLASSES, EACH = (2, 4, 7), 500


def first_of_each(images, labels):
    """The first 500 images of each class, pixels from 0 to 1, one row per image."""
    rows = np.concatenate([np.flatnonzero(labels == c)[:EACH] for c in CLASSES])
    return images[rows].reshape(len(rows), -1) / 255.0, labels[rows]


def digits_2_4_7():
    """(X, y, X_test, y_test, where they come from)."""
    # A gallery runs examples with arguments of its own: only an .npz is meant for this one.
    given = [a for a in sys.argv[1:] if a.endswith(".npz")] or [os.environ.get("MERCER_MNIST", "")]
    if given[0] and Path(given[0]).is_file():
        with np.load(given[0]) as a:
            training = first_of_each(a["x_train"], a["y_train"])
            return *training, *first_of_each(a["x_test"], a["y_test"]), "MNIST"
    if os.environ.get("MERCER_DOWNLOAD", "1") == "1":
        try:
            images, labels = fetch_openml("mnist_784", return_X_y=True, as_frame=False)
            labels = labels.astype(int)  # the first 60000 are the training images
            training = first_of_each(images[:60000], labels[:60000])
            return *training, *first_of_each(images[60000:], labels[60000:]), "MNIST"
        except Exception as error:  # no network here, and pictures are still worth having
            print(f"MNIST could not be downloaded ({type(error).__name__}).")
    X, y = load_digits(return_X_y=True)
    chosen = np.isin(y, CLASSES)
    # Few training images: 8 x 8 pixels leave room for few mistakes.
    X, X_test, y, y_test = train_test_split(
        X[chosen] / 16, y[chosen], train_size=90, stratify=y[chosen], random_state=0
    )
    return X, y, X_test, y_test, "scikit-learn's small digits, in place of MNIST"


X, y, X_test, y_test, source = digits_2_4_7()
n_pixels = X.shape[1]
print(f"{len(X)} training and {len(X_test)} test images of {CLASSES}: {source}.")


# %%
# The two kernels
# ---------------


def signed(X):
    """Pixels from [0, 1] to [-1, 1]."""
    return 2 * X - 1


kernels = {
    "k1": Polynomial(9, gamma=1 / n_pixels, coef0=0.0),
    "k2": OnFeatures(Polynomial(9, gamma=1 / (2 * n_pixels), coef0=0.5), signed),
}
for name, kernel in kernels.items():
    own = kernel.diag(X)
    print(f"{name}: similarity of an image to itself from {own.min():.1e} to {own.max():.1e}")

# %%
# Most pixels of a digit are 0 and add nothing to k1, so thin digits are hardly similar to anything,
# not even to themselves. In k2 white pixels count as much as black ones, and every image is similar
# to itself.
#
# Coordinates of the feature spaces
# ---------------------------------
# One line for each kernel. From here on everything is ordinary: nearest neighbours, t-SNE and
# Fisher's discriminant work on these coordinates and need to know nothing of kernels.

maps = {name: KernelMap(kernel).fit(X) for name, kernel in kernels.items()}
Phi = {name: fitted.transform(X) for name, fitted in maps.items()}
Phi_test = {name: fitted.transform(X_test) for name, fitted in maps.items()}

for name, kernel in kernels.items():
    error = np.abs(Phi[name] @ Phi_test[name].T - kernel(X, X_test)).max()
    print(f"{name}: {maps[name].rank_} coordinates, inner products exact to {error:.0e}")

# %%
# Figures 1 and 2: t-SNE
# ----------------------
# t-SNE is fitted on the training images. The test images shown are placed by its ``transform``.


def scaled(Phi, like):
    """t-SNE searches for bandwidths: it is given lengths around 1, whatever the kernel's scale."""
    return Phi / np.sqrt((like**2).sum(axis=1).mean())


def tsne_of(name):
    from openTSNE import TSNE

    perplexity = min(30, len(X) // 4)
    embedding = TSNE(perplexity=perplexity, negative_gradient_method="bh", random_state=0).fit(
        scaled(Phi[name], Phi[name])
    )
    return np.asarray(embedding.transform(scaled(Phi_test[name], Phi[name])))


side = round(n_pixels**0.5)
images = X_test.reshape(-1, side, side)
for number, name in enumerate(kernels, 1):
    title = f"Figure {number}: t-SNE of the feature space of {name}"
    FeatureSpaceDisplay(tsne_of(name), y_test, title=title).plot(images=images, n_images=30)
plt.show()

# %%
# Figures 3 and 4: Fisher's discriminant
# --------------------------------------

discriminants = {
    name: KernelDiscriminant(kernel=kernel).fit(X, y) for name, kernel in kernels.items()
}
for number, (name, model) in enumerate(discriminants.items(), 3):
    title = f"Figure {number}: discriminant axes of {name}"
    FeatureSpaceDisplay.from_estimator(model, X_test, y_test, title=title).plot()
plt.show()

# %%
# The same in numbers
# -------------------
# The accuracy on the test images confirms what the pictures show.


def accuracies(kernel):
    """By 1 and by 10 nearest neighbours in the space, and by Fisher's discriminant."""
    fitted = KernelMap(kernel).fit(X)
    Phi, Phi_test = fitted.transform(X), fitted.transform(X_test)
    near = [KNeighborsClassifier(n).fit(Phi, y).score(Phi_test, y_test) for n in (1, 10)]
    return [*near, KernelDiscriminant(kernel=kernel).fit(X, y).score(X_test, y_test)]


# %%
# The pictures also show what is wrong with k1: a few images with much ink lie far out, and all
# others crowd at the origin. Dividing by the lengths repairs this.

kernels["k1 normalised"] = Normalized(kernels["k1"])

print(f"{'accuracy on test images':<26}{'1 nearest':>10}{'10 nearest':>12}{'Fisher':>9}")
for name, kernel in kernels.items():
    one, ten, fisher = accuracies(kernel)
    print(f"{name:<26}{one:>10.3f}{ten:>12.3f}{fisher:>9.3f}")
