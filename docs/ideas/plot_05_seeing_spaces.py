r"""
5. Seeing feature spaces: t-SNE, k1 and k2
==========================================

Two kernels can both be valid, and one of them much worse for your data. With coordinates you can
look at the difference: give them to any method that draws pictures. The best known is t-SNE, which
places points in the plane so that neighbours stay neighbours. In this way [EXACT] draws handwritten
digits in the spaces of two polynomial kernels of degree nine,

.. math:: k_1(x, z) = \langle x, z \rangle^9

and

.. math:: k_2(x, z) = \left( \frac{\langle 2x - 1, 2z - 1 \rangle + 1}{2} \right)^9 ,

where pixels are between 0 and 1 and :math:`\langle x, z \rangle` is the inner product divided by
the number of pixels.

The statement
-------------
**t-SNE of the coordinates is t-SNE of the feature space, for the training points and for new
points placed afterwards.**

*Proof.* t-SNE uses data only through :math:`p_{j|i} \propto \exp(-d_{ij}^2 / 2 \sigma_i^2)`, the
share of point :math:`j` in the neighbourhood of point :math:`i`; the widths :math:`\sigma_i` are
found from these shares. In feature space :math:`d_{ij} = |\psi(x_i) - \psi(x_j)|`, so that

.. math:: d_{ij}^2 = k(x_i, x_i) + k(x_j, x_j) - 2\, k(x_i, x_j) ,

and the coordinates of lesson 3 have the same inner products, hence the same distances. For a new
point :math:`z` they have :math:`|\varphi(z)|^2 = k(z, z) - \rho^2(z)`, so all its squared
distances to training points are smaller by the same :math:`\rho^2(z)`. A common factor
:math:`\exp(\rho^2(z) / 2 \sigma^2)` cancels in :math:`p_{j|z}`. ∎

Ten lines of NumPy
------------------
We first compute the reason for what the picture will show. Distances need no coordinates:
"""

import numpy as np
from sklearn.datasets import load_digits

images, digit = load_digits(return_X_y=True)
chosen = np.isin(digit, (2, 4, 7))
images, digit = images[chosen] / 16, digit[chosen]
train, test = np.arange(len(images)) % 6 == 0, np.arange(len(images)) % 6 != 0
signed, missed = 2 * images - 1, {}
for name, S in {"k1": images @ images.T / 64, "k2": (signed @ signed.T / 64 + 1) / 2}.items():
    K = S**9
    own = np.diagonal(K)
    d2 = own[test, None] + own[train] - 2 * K[np.ix_(test, train)]
    missed[name] = digit[train][d2.argmin(axis=1)] != digit[test]
    print(f"{name}: k(x, x) from {own.min():.0e} to {own.max():.0e}, less than some k(x, z) for")
    print(f"    {np.mean(K.max(axis=0) > own):.0%} of the images;", end=" ")
    print(f"the nearest neighbour is another digit for {missed[name].mean():.1%}")

# %%
# Empty pixels are 0 and add nothing to :math:`k_1`. So an image with little ink is hardly similar
# to anything, not even to itself, and all such images lie near the origin. In :math:`k_2` empty
# pixels are -1 and count as much as full ones.
#
# In mercer
# ---------
# Compute a map, and give its coordinates to any program that draws. Here openTSNE is fitted to 90
# images, and then places 447 others.

from openTSNE import TSNE

from mercer import KernelMap, OnFeatures, Polynomial


def from_minus_1_to_1(X):
    return 2 * X - 1


k1 = Polynomial(9, gamma=1 / 64, coef0=0.0)
k2 = OnFeatures(Polynomial(9, gamma=1 / 128, coef0=0.5), from_minus_1_to_1)
pictures = {}
for name, kernel in {"k1": k1, "k2": k2}.items():
    fitted = KernelMap(kernel).fit(images[train])
    size = np.sqrt(kernel.diag(images[train]).mean())  # t-SNE searches bandwidths around 1
    Phi, Phi_new = fitted.transform(images[train]) / size, fitted.transform(images[test]) / size
    embedding = TSNE(perplexity=22, negative_gradient_method="bh", random_state=0).fit(Phi)
    pictures[name] = np.asarray(embedding.transform(Phi_new))
    print(f"{name}: {fitted.rank_} coordinates for {train.sum()} images")

# %%
# ``FeatureSpaceDisplay.from_kernel(kernel, X, y, embedding="t-SNE")`` draws one space in one line.
# :func:`~mercer.compare_kernels` tunes, scores and draws several, and says which differences are
# more than noise.
#
# The picture
# -----------
# Every point is an image that t-SNE was not fitted to. A ring marks those whose nearest neighbour
# among the others, *in the space*, is another digit. In the space of :math:`k_1` they are where the
# three digits meet: in the crowd of images near the origin. [EXACT] shows both spaces on MNIST, in
# its Figures 1 and 2.

import matplotlib.pyplot as plt

fig, axes = plt.subplots(1, 2, figsize=(8, 4.3), layout="constrained")
for ax, (name, places) in zip(axes, pictures.items()):
    for i, label in enumerate((2, 4, 7)):
        ax.scatter(*places[digit[test] == label].T, s=12, color=f"C{i}", label=f"digit {label}")
    at, ring = places[missed[name]], {"s": 45, "facecolors": "none", "edgecolors": "grey"}
    ax.scatter(*at.T, **ring, label="neighbour is another digit")
    ax.set(title=f"space of {name}: {len(at)} of {len(places)} wrong", xticks=[], yticks=[])
fig.legend(*axes[1].get_legend_handles_labels(), frameon=False, loc="outside lower center", ncols=4)
plt.show()

# %%
# Exercise
# --------
# Both kernels are polynomials of an inner product, so the degree is not to blame. Repair
# :math:`k_1` with a rule of lesson 1, and check the repair with the nearest neighbour.
#
# Solution
# --------
# Rule 2 with :math:`f(x) = k_1(x, x)^{-1/2}` gives every image the length 1: a cosine in feature
# space. Then no image is more similar to another than to itself (Cauchy-Schwarz).

from sklearn.neighbors import KNeighborsClassifier

from mercer import Kernelized, Normalized

wrong = {}
for name, kernel in {"k1": k1, "k1 normalised": Normalized(k1), "k2": k2}.items():
    model = Kernelized(KNeighborsClassifier(1), kernel).fit(images[train], digit[train])
    wrong[name] = 1 - model.score(images[test], digit[test])
    print(f"{name:14} wrong for {wrong[name]:.1%}")
assert wrong["k1 normalised"] < wrong["k1"] / 3
assert (Normalized(k1)(images) <= 1 + 1e-12).all()

# %%
# In the sources
# --------------
# [EXACT] section 4: (26) is the distance, (27) to (29) the kernels, Figures 1 and 2 t-SNE, Figures
# 3 and 4 Fisher's discriminant (lesson 7). :ref:`sphx_glr_auto_examples_plot_exact_mnist.py`
# repeats all four, on MNIST where it is at hand. Errata: "kernel data" before (29) means MNIST;
# :math:`k_2(x, x)` is called nearly one, and is from 0.58 to 0.86 on the digits of the figures. A
# remark: whether :math:`k_2` separates the digits better must be judged on images that were left
# out, as here.
