r"""
1. Kernels, valid ones, and how to build them
=============================================

A kernel is a similarity :math:`k(x, z)` that is secretly an inner product: there is some space into
which points can be moved, :math:`x \mapsto \varphi(x)`, so that

.. math:: k(x, z) = \varphi(x) \cdot \varphi(z).

This is useful because most of what we do with vectors (lines, planes, projections, distances,
regressions) needs only inner products. A straight line in the space of a good kernel can be a
circle in the original data.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles

from mercer import RBF, Linear, OnColumns, Polynomial, QuadraticForm, check_mercer

X, ring = make_circles(160, factor=0.45, noise=0.06, random_state=0)

# %%
# A space that we can see
# -----------------------
# The quadratic kernel :math:`(x \cdot z)^2` of two variables is the inner product of
# :math:`(x_1^2, \; \sqrt2\, x_1 x_2, \; x_2^2)`: multiply it out ([KERNELS] page 1, [SLIDES] Q1 to
# Q3, [MDS] Example 7). Three coordinates can be drawn: the two rings lie on a cone, one above the
# other, and the grey plane separates them. (The axes are rotated, so that the height is
# :math:`(x_1^2 + x_2^2) / \sqrt2`.)

quadratic = Polynomial(degree=2, coef0=0.0)
Phi = quadratic.explicit(X)
print("columns:", Phi.shape[1])
print("largest difference from the kernel:", np.abs(Phi @ Phi.T - quadratic(X)).max().round(15))

# Rotate the axes, so that the height is the sum of the squares and the plane is horizontal.
across, height = (Phi[:, 0] - Phi[:, 2]) / np.sqrt(2), (Phi[:, 0] + Phi[:, 2]) / np.sqrt(2)
between = (height[ring == 1].max() + height[ring == 0].min()) / 2
turn, up = np.meshgrid(np.linspace(0, 2 * np.pi, 60), np.linspace(0, height.max(), 12))
colours = np.where(ring == 1, "#D55E00", "#0072B2")

fig = plt.figure(figsize=(8, 4.4))
left = fig.add_subplot(1, 2, 1, aspect="equal", title="the data: no straight line works")
left.scatter(*X.T, c=colours, s=16)
left.set(xlabel="$x_1$", ylabel="$x_2$", xticks=[-1, 0, 1], yticks=[-1, 0, 1])
right = fig.add_subplot(1, 2, 2, projection="3d", title="feature space: a plane works")
right.scatter(across, Phi[:, 1], height, c=colours, s=16, depthshade=False)
right.plot_wireframe(up * np.cos(turn), up * np.sin(turn), up, color="grey", lw=0.3, ccount=24)
corner = np.array([-0.9, 0.9])
right.plot_surface(*np.meshgrid(corner, corner), np.full((2, 2), between), color="grey", alpha=0.35)
right.view_init(elev=12, azim=-60)
right.set(xlabel=r"$(x_1^2 - x_2^2) / \sqrt{2}$", ylabel=r"$\sqrt{2} x_1 x_2$")
right.set(xticks=[], yticks=[], zticks=[])
for axis in (right.xaxis, right.yaxis):
    axis.labelpad = -8
right.set(xlim=(-0.9, 0.9), ylim=(-0.9, 0.9), zlim=(0, 0.9))
right.set_box_aspect((2, 2, 1), zoom=1.25)
right.title.set_y(0.95)
plt.show()

# %%
# Not every similarity is a kernel
# --------------------------------
# Lengths squared are never negative: for any numbers :math:`a_i`,
# :math:`|\sum_i a_i \varphi(x_i)|^2 = a^T K a \ge 0`. So the kernel matrix of any sample must be
# symmetric and have no negative eigenvalue (positive semi-definite). Mercer's theorem is the other
# direction: if that holds for every sample, the space exists ([SLIDES]; [KERNELS]; [MDS]
# Definition 4).
#
# A sample can therefore *refute* a similarity: one vector :math:`a` with :math:`a^T K a < 0` is
# enough. It is called a witness. A sample can never prove that a similarity is a kernel, because
# the next sample might refute it. A proof comes from the way a kernel is built, and mercer's
# kernels remember how they were built.

from mercer import FromFunction, Sigmoid


def overlap_minus_difference(x, z):
    """Someone's invention: what two points share, minus what they do not."""
    return np.minimum(x, z).sum() - np.abs(x - z).sum()


candidates = {
    "RBF()": RBF(),
    "tanh, often used": Sigmoid(gamma=1.0, coef0=-1.0),
    "invented": FromFunction(overlap_minus_difference),
}
reports = {name: check_mercer(k, np.abs(X[:60])) for name, k in candidates.items()}
for report in reports.values():
    print(report, end="\n\n")

# %%
# The eigenvalues show it at a glance: those of a kernel are never below zero.

fig, axes = plt.subplots(3, 1, figsize=(7, 6.4), sharex=True)
for ax, (name, report) in zip(axes, reports.items()):
    values = np.linalg.eigvalsh(report.kernel(np.abs(X[:60])))
    ax.bar(range(60), values, color=np.where(values < -1e-9, "#D55E00", "#0072B2"))
    ax.set_yscale("symlog", linthresh=1e-3)
    ax.axhline(0, color="black", lw=0.8)
    ax.set_title(f"{name}: {'a kernel' if report else 'refuted'}")
    ax.set_yticks([-10, -0.1, 0, 0.1, 10], ["-10", "-0.1", "0", "0.1", "10"])
axes[-1].set_xlabel("eigenvalue number")
plt.show()

# %%
# Building kernels: ten rules
# ---------------------------
# Valid kernels can be combined into new valid kernels ([KERNELS] has a list of ten rules). Here are
# the rules as code; every line is checked on the data as well.
#
# .. list-table::
#    :header-rows: 1
#    :widths: 6 44 50
#
#    * - rule
#      - formula
#      - in mercer
#    * - 1
#      - :math:`c\, k_1(x, z)`, :math:`c \ge 0`
#      - ``c * k1``
#    * - 2
#      - :math:`f(x)\, k_1(x, z)\, f(z)`
#      - ``Rescaled(k1, f)``
#    * - 3
#      - :math:`q(k_1)`, a polynomial with coefficients :math:`\ge 0`
#      - ``k1.polynomial([c0, c1, c2])``, ``k1 ** p``
#    * - 4
#      - :math:`\exp(k_1)`
#      - ``k1.exp()``
#    * - 5
#      - :math:`k_1 + k_2`
#      - ``k1 + k2``
#    * - 6
#      - :math:`k_1 k_2`
#      - ``k1 * k2``
#    * - 7
#      - :math:`k_3(g(x), g(z))`
#      - ``OnFeatures(k3, g)``
#    * - 8
#      - :math:`x^T A z`, :math:`A` positive semi-definite
#      - ``QuadraticForm(A)``
#    * - 9
#      - :math:`k_a(x_a, z_a) + k_b(x_b, z_b)`, separate variables
#      - ``OnColumns(ka, a) + OnColumns(kb, b)``
#    * - 10
#      - :math:`k_a(x_a, z_a)\, k_b(x_b, z_b)`
#      - ``OnColumns(ka, a) * OnColumns(kb, b)``

from mercer import OnFeatures, Rescaled


def length(X):
    return np.sqrt((X**2).sum(axis=1))


def both_squares(X):
    return X**2


k1, k2 = Linear(), Polynomial(degree=2)
rules = [
    3.0 * k1,
    Rescaled(k1, length),
    k1.polynomial([1.0, 0.5, 2.0]),
    k1.exp(),
    k1 + k2,
    k1 * k2,
    OnFeatures(RBF(1.0), both_squares),
    QuadraticForm([[2.0, 1.0], [1.0, 2.0]]),
    OnColumns(RBF(1.0), 0) + OnColumns(k1, 1),
    OnColumns(RBF(1.0), 0) * OnColumns(k1, 1),
]
print(f"{'rule':>4}  {'is_psd':7}{'on data':9}{'own dimension':15}kernel")
for number, kernel in enumerate(rules, 1):
    on_data = "agrees" if check_mercer(kernel, X[:80]) else "refuted"
    own = kernel.explicit_dim(2)
    print(f"{number:>4}  {kernel.is_psd!s:7}{on_data:9}{own or 'infinite'!s:15}{kernel!r}")

# %%
# The column "own dimension" shows that the rules combine feature maps, too: a sum concatenates
# coordinates, a product multiplies all pairs of them, :math:`f` scales them, and :math:`g` is
# applied first. So `k1 * k2` has a finite map, and nobody had to derive it. `exp` and RBF need
# infinitely many coordinates, and for these the :ref:`next page
# <sphx_glr_auto_ideas_plot_2_exact_map.py>` finds a finite map that is exact on your data.
#
# An expression that is not always a kernel is refused as soon as you write it, with the reason:

from textwrap import fill

for attempt in ("RBF(1.0) - Linear()", "-1.0 * RBF(1.0)", "Linear() ** 0.5"):
    try:
        eval(attempt)
    except (TypeError, ValueError) as reason:
        print(fill(f"{attempt}: {reason}", 90, subsequent_indent="    "))

# %%
# Polynomials grow
# ----------------
# :math:`(x \cdot z + c)^p` on :math:`d` variables has :math:`\binom{d+p}{p}` coordinates, one for
# each monomial up to degree :math:`p`; with :math:`c = 0` only those of degree exactly :math:`p`,
# :math:`\binom{d+p-1}{p}` ([SLIDES] Q2: three variables and degree two give ten). For images of 784
# pixels and degree nine the number is astronomical. Yet an exact map of 60 000 images needs no more
# than 60 000 coordinates.

from math import comb

for d, p in ((2, 2), (3, 2), (10, 3), (784, 9)):
    print(f"d = {d:3}, degree {p}: {comb(d + p, p):,} coordinates")

# %%
# Three ways to write one Gaussian
# --------------------------------
# Books disagree on the width of the Gaussian kernel. mercer uses :math:`\gamma` as scikit-learn
# does:
#
# ====================================  ==========================================
# if your source writes                 write
# ====================================  ==========================================
# :math:`\exp(-\gamma |x - z|^2)`       ``RBF(gamma)``
# :math:`\exp(-|x - z|^2 / (2 s^2))`    ``RBF(1 / (2 * s**2))``
# :math:`\exp(-|x - z|^2 / s^2)`        ``RBF(1 / s**2)``
# ====================================  ==========================================
#
# ``RBF()`` takes :math:`\gamma` from the variance of the data, ``RBF("median")`` from their median
# distance, and a list gives every column its own.
#
# **Try it.** Run ``mercer explore --demo`` and type ``RBF() * Linear()`` or ``Sigmoid(1, -1)``. You
# see its space, and whether it is a kernel (:doc:`/how-to/explore`).
