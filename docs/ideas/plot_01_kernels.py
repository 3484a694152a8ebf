r"""
1. Kernels, and which similarities are kernels
==============================================

A kernel is a similarity :math:`k(x, z)` that is an inner product in disguise: there is a space
into which points can be moved, :math:`x \mapsto \varphi(x)`, such that

.. math:: k(x, z) = \langle \varphi(x), \varphi(z) \rangle .

Lines, projections, distances and least squares need nothing but inner products. So all of these
can be done with kernels, and a straight line in the space of a kernel can be a circle in the data.

The statement
-------------
**A symmetric function** :math:`k` **is a kernel if and only if all its kernel matrices**
:math:`K = (k(x_i, x_j))_{ij}` **are positive semi-definite:** for all points :math:`x_1, \dots,
x_n` and numbers :math:`a_i`, :math:`a^T K a = \sum_{i,j} a_i a_j k(x_i, x_j) \ge 0` (Moore and
Aronszajn).

*Proof.* Kernels have this property, because :math:`a^T K a = \|\sum_i a_i \varphi(x_i)\|^2`.
Conversely, for :math:`n` fixed points take the eigenvectors and eigenvalues of :math:`K`, that is
:math:`K = U \Lambda U^T`. No eigenvalue is negative, so :math:`\Lambda` has a square root, and the
rows of :math:`U \Lambda^{1/2}` have the inner products :math:`K`. (Lesson 3 is about this.) For all
points at once, let functions be the points of the space. Take all functions :math:`f = \sum_i a_i
k(x_i, \cdot)`, and for :math:`g = \sum_j b_j k(y_j, \cdot)` define

.. math::

    \langle f, g \rangle = \sum_{i,j} a_i b_j k(x_i, y_j) .

This is :math:`\sum_j b_j f(y_j)` and also :math:`\sum_i a_i g(x_i)`, which shows that the value
does not depend on how :math:`f` and :math:`g` are written. By assumption :math:`\langle f, f
\rangle \ge 0`. With :math:`g = k(z, \cdot)` we read :math:`\langle f, k(z, \cdot) \rangle = f(z)`,
so by Cauchy-Schwarz :math:`f(z)^2 \le \langle f, f \rangle \, k(z, z)`: only :math:`f = 0` has
length 0. This is an inner product, and :math:`\varphi(z) = k(z, \cdot)` is the map: :math:`\langle
\varphi(x), \varphi(z) \rangle = k(x, z)`. (With the limits of its sequences added, the space is a
Hilbert space.) ∎

So the points of this space are functions on the data. It is called the *reproducing kernel Hilbert
space* (RKHS) of the kernel, and lesson 8 uses it again.

One sample can *refute* a similarity: a vector :math:`a` with :math:`a^T K a < 0` is a **witness**.
No sample can prove that a similarity is a kernel, because the next sample might refute it. Proofs
come from the way a kernel is built.

Ten lines of NumPy
------------------
The eigenvector of a negative eigenvalue is a witness.
"""

import numpy as np

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
D2 = ((X[:, None] - X[None]) ** 2).sum(axis=2)
candidates = [np.exp(-D2), np.tanh(X @ X.T - 1), 1 - D2]
for name, K in zip(["exp(-|x - z|^2)", "tanh(x.z - 1)", "1 - |x - z|^2"], candidates):
    values, vectors = np.linalg.eigh(K)
    a = vectors[:, 0]
    print(f"{name:16} smallest eigenvalue {values[0]:9.1e}, a'Ka = {a @ K @ a:9.1e}")

# %%
# The first is not refuted: even its smallest eigenvalue is positive. (It is the Gaussian kernel,
# and rules 1, 2 and 4 below prove it:
# :math:`e^{-|x - z|^2} = e^{-|x|^2}\, e^{2 x \cdot z}\, e^{-|z|^2}`.) The other two are refuted:
# here :math:`a` is a witness. Yet the hyperbolic tangent is often used as a "kernel".
#
# In mercer
# ---------
# Kernels remember how they were built, so they know whether they are valid. A similarity without
# such a proof is tested on your data.

from mercer import RBF, Linear, OnColumns, Polynomial, Sigmoid, check_mercer

print(check_mercer(Sigmoid(gamma=1.0, coef0=-1.0), X), end="\n\n")
kernel = RBF(0.5) * Linear() + OnColumns(Polynomial(2), 0)
print(f"{kernel!r}: valid by construction: {kernel.is_psd}")
try:
    RBF(0.5) - Linear()
except TypeError as reason:
    print(reason)

# %%
# Ten rules make new kernels from old ones ([KERNELS]). Each of them also says what happens to the
# map :math:`\varphi`:
#
# .. list-table::
#    :header-rows: 1
#    :widths: 6 40 34 30
#
#    * - rule
#      - new kernel
#      - in mercer
#      - its map
#    * - 1
#      - :math:`c\, k_1`, :math:`c \ge 0`
#      - ``c * k1``
#      - times :math:`\sqrt c`
#    * - 2
#      - :math:`f(x)\, k_1(x, z)\, f(z)`
#      - ``Rescaled(k1, f)``
#      - times :math:`f(x)`
#    * - 3
#      - polynomials of :math:`k_1`, coefficients :math:`\ge 0`
#      - ``k1 ** p``, ``k1.polynomial([...])``
#      - by rules 1, 5 and 6
#    * - 4
#      - :math:`\exp(k_1)`
#      - ``k1.exp()``
#      - infinite
#    * - 5
#      - :math:`k_1 + k_2`
#      - ``k1 + k2``
#      - one after the other
#    * - 6
#      - :math:`k_1 k_2`
#      - ``k1 * k2``
#      - all products of pairs
#    * - 7
#      - :math:`k_3(g(x), g(z))`
#      - ``OnFeatures(k3, g)``
#      - that of :math:`k_3` at :math:`g(x)`
#    * - 8
#      - :math:`x^T A z`, :math:`A` positive semi-definite
#      - ``QuadraticForm(A)``
#      - :math:`A^{1/2} x`
#    * - 9, 10
#      - sums and products over groups of columns
#      - ``OnColumns(ka, a) * OnColumns(kb, b)``
#      - as in 5 and 6
#
# The picture
# -----------
# :math:`(x \cdot z)^2` of two variables is the inner product of
# :math:`(x_1^2, \; \sqrt2\, x_1 x_2, \; x_2^2)`: multiply it out. Three coordinates can be drawn.
# Two rings, which no line separates, lie on a cone, one above the other, and a plane separates
# them. (The axes are rotated, so that the height is :math:`(x_1^2 + x_2^2) / \sqrt2`.)

import matplotlib.pyplot as plt
from sklearn.datasets import make_circles

rings, ring = make_circles(160, factor=0.45, noise=0.06, random_state=0)
Phi = Polynomial(degree=2, coef0=0.0).explicit(rings)
across, height = (Phi[:, 0] - Phi[:, 2]) / np.sqrt(2), (Phi[:, 0] + Phi[:, 2]) / np.sqrt(2)
between = (height[ring == 1].max() + height[ring == 0].min()) / 2
turn, up = np.meshgrid(np.linspace(0, 2 * np.pi, 60), np.linspace(0, height.max(), 12))
colours = np.where(ring == 1, "C1", "C0")

fig = plt.figure(figsize=(8, 4.4))
left = fig.add_subplot(1, 2, 1, aspect="equal", title="the data: no straight line works")
left.scatter(*rings.T, c=colours, s=16)
left.set(xlabel="$x_1$", ylabel="$x_2$", xticks=[-1, 0, 1], yticks=[-1, 0, 1])
right = fig.add_subplot(1, 2, 2, projection="3d", title="feature space: a plane works")
right.scatter(across, Phi[:, 1], height, c=colours, s=16, depthshade=False)
right.plot_wireframe(up * np.cos(turn), up * np.sin(turn), up, color="grey", lw=0.3, ccount=24)
corner = np.array([-0.9, 0.9])
right.plot_surface(*np.meshgrid(corner, corner), np.full((2, 2), between), color="grey", alpha=0.35)
right.view_init(elev=12, azim=-60)
right.set(xlabel=r"$(x_1^2 - x_2^2) / \sqrt{2}$", ylabel=r"$\sqrt{2} x_1 x_2$")
right.set(xticks=[], yticks=[], zticks=[], xlim=(-0.9, 0.9), ylim=(-0.9, 0.9), zlim=(0, 0.9))
for axis in (right.xaxis, right.yaxis, right.zaxis):
    axis.labelpad = -8
    axis.set_pane_color((0.5, 0.5, 0.5, 0.08))
right.set_box_aspect((2, 2, 1), zoom=1.25)
right.title.set_y(0.95)
plt.show()

# %%
# Move the slider. It shows the kernel matrix of two half moons, 20 points each, and its
# eigenvalues. Negative values are orange.
#
# .. slider:: gram spectrum
#    :kernels: rbf polynomial sigmoid distance
#
# Exercise
# --------
# For numbers :math:`x, z \ge 0`: is :math:`\min(x, z)` a kernel? Is :math:`\max(x, z)`? Find a map
# or a witness.
#
# Solution
# --------
# :math:`\min(x, z) = \int_0^\infty [t \le x]\,[t \le z]\, dt` is the inner product of two
# indicator functions, so it is a kernel (:class:`~mercer.Intersection`). For :math:`\max` and the
# points 0 and 1, :math:`K = \bigl(\begin{smallmatrix} 0 & 1 \\ 1 & 1 \end{smallmatrix}\bigr)` has
# determinant -1, and :math:`a = (1, -\tfrac12)` is a witness: :math:`a^T K a = -\tfrac34`.

from mercer import FromFunction, Intersection

points = np.array([[0.0], [1.0]])
a = np.array([1.0, -0.5])
largest = FromFunction(lambda x, z: max(x[0], z[0]))
assert Intersection().is_psd
assert a @ largest(points) @ a == -0.75
assert not check_mercer(largest, points)
print("min is a kernel; max has the witness", a)

# %%
# In the sources
# --------------
# [KERNELS] (1) and the ten rules; [MDS] Definition 4 and Theorem 5, which is the proof above;
# [SLIDES] on validity and Questions 1 to 3. Errata:
#
# - [KERNELS] and [SLIDES] call the statement Mercer's theorem. It is that of Moore and Aronszajn.
#   Mercer's theorem says more under more assumptions: a continuous kernel on a compact set is a
#   convergent sum :math:`\sum_j \lambda_j e_j(x) e_j(z)` over eigenfunctions of its integral
#   operator.
# - [KERNELS] rule 1 needs :math:`c \ge 0`.
# - [MDS] Example 7 (a): the function of the linear kernel is :math:`k_x(y) = x \cdot y`, and not
#   :math:`x`; (b) prints :math:`\sqrt{y_1 y_2}` for :math:`\sqrt2\, y_1 y_2`; (c) the Gaussian
#   kernel does have an explicit map, of infinitely many coordinates (in one dimension
#   :math:`e^{-x^2 / s^2} \sqrt{(2 / s^2)^m / m!}\; x^m` for :math:`m = 0, 1, \dots`).
# - The Gaussian kernel is written in three ways: :math:`\exp(-\gamma |x-z|^2)` is ``RBF(gamma)``,
#   :math:`\exp(-|x-z|^2 / (2 s^2))` is ``RBF(1 / (2 * s**2))``, :math:`\exp(-|x-z|^2 / s^2)` is
#   ``RBF(1 / s**2)``.
