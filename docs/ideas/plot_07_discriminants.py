r"""
7. Discriminants and support vector machines
============================================

There are two classical ways to separate classes by a straight line in feature space. Fisher's
discriminant looks for the direction along which classes are far apart compared with their width.
The support vector machine (SVM) looks for the widest margin: the widest gap between the line and
the points on either side. Both are linear methods on coordinates, and for the second we can prove
how exact the answer is.

The statement
-------------
Labels are :math:`y_i = \pm 1`. The exact machine :math:`f^*` minimises, over the functions
:math:`f` of the kernel's space (lesson 1),

.. math:: P(f) = \tfrac12 \|f\|^2 + C \sum_i \max(0, 1 - y_i f(x_i)) .

A solver finds coefficients :math:`a` with :math:`0 \le a_i \le C`. They give the function
:math:`f_a = \sum_i a_i y_i k(x_i, \cdot)` and the number :math:`D(a) = \sum_i a_i - \frac12
\|f_a\|^2`. **Any such** :math:`a` **comes with a certificate of how far its function is from the
exact machine, at every point:**

.. math:: |f_a(z) - f^*(z)| \le \sqrt{k(z, z)} \, \sqrt{2\, G} ,

where :math:`G = P(f_a) - D(a)` is called the **duality gap**.

*Proof.* First, :math:`C \max(0, 1 - s) \ge a_i (1 - s)` for all numbers :math:`s`. So for every
function :math:`g`

.. math:: P(g) \ge \tfrac12 \|g\|^2 + \sum_i a_i (1 - y_i g(x_i)) .

Since :math:`g(x_i) = \langle g, k(x_i, \cdot) \rangle`, the right side is

.. math:: \tfrac12 \|g\|^2 - \langle g, f_a \rangle + \sum_i a_i \ge D(a) ,

because its smallest value is at :math:`g = f_a`. So :math:`P(f^*) \ge D(a)`. Next, :math:`P` is
the square :math:`\frac12 \|f\|^2` plus a convex function. A convex function lies above a tangent
at :math:`f^*`, and the square lies above its own by exactly :math:`\frac12 \|f - f^*\|^2`. At the
minimum the slopes of the two tangents cancel, so
:math:`P(f_a) \ge P(f^*) + \frac12 \|f_a - f^*\|^2`. Together
:math:`\frac12 \|f_a - f^*\|^2 \le P(f_a) - D(a) = G`. Finally,
:math:`|f(z)| = |\langle f, k(z, \cdot) \rangle| \le \|f\| \sqrt{k(z, z)}` for
:math:`f = f_a - f^*`. ∎

:math:`P` and :math:`D` contain the data only through inner products, so a linear SVM on
coordinates is the kernel SVM (lesson 4). With an intercept, :math:`f + b` in place of :math:`f` in
the sum, the proof is the same for coefficients with :math:`\sum_i a_i y_i = 0`. It bounds the error
of :math:`f`; mercer adds a bound for that of :math:`b`.

Ten lines of NumPy
------------------
We maximise :math:`D` one coefficient at a time, since each step has a formula. The bound shrinks
from sweep to sweep.
"""

import numpy as np
from sklearn.datasets import make_moons

X, label = make_moons(120, noise=0.2, random_state=0)
y, C = 2 * label - 1, 1.0
Q = np.outer(y, y) * np.exp(-2 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
a = np.zeros(120)
for sweep in range(1, 151):
    for i in range(120):
        a[i] = np.clip(a[i] + (1 - Q[i] @ a) / Q[i, i], 0, C)
    if sweep in (1, 10, 50, 150):
        gap = a @ Q @ a + C * np.maximum(0, 1 - Q @ a).sum() - a.sum()
        print(f"after sweep {sweep:3} every decision value is within {np.sqrt(2 * gap):.0e}")

# %%
# In mercer
# ---------
# :class:`~mercer.KernelSVC` has the decision values of scikit-learn's ``SVC``, intercept included,
# and the certificate. ``gap_`` is the duality gap, ``error_bound(Z)`` the bound at each point, and
# ``certain(Z)`` says for which points the class is proven to be that of the exact machine.
# :class:`~mercer.KernelDiscriminant` is Fisher's discriminant.

from mercer import RBF, KernelDiscriminant, KernelSVC

machine = KernelSVC(C=1.0, kernel=RBF(2.0)).fit(X, label)
print(
    f"gap {machine.gap_[0]:.0e}, so errors are at most {machine.error_bound(X).max():.0e};", end=" "
)
print(f"the class is certain for {machine.certain(X).mean():.0%}")

noisy, kind = make_moons(500, noise=0.35, random_state=1)
train, test = slice(0, 150), slice(150, None)
models = {
    "discriminant without shrinkage": KernelDiscriminant(kernel=RBF(2.0), shrinkage=1e-12),
    "discriminant": KernelDiscriminant(kernel=RBF(2.0)),
    "support vector machine": KernelSVC(kernel=RBF(2.0)),
}
for name, model in models.items():
    model.fit(noisy[train], kind[train])
    seen, new = model.score(noisy[train], kind[train]), model.score(noisy[test], kind[test])
    print(f"{name:30} {seen:.0%} of the training points, {new:.0%} of new points")

# %%
# The picture
# -----------
# A feature space often has nearly as many dimensions as there are points. Then some direction
# separates the training classes perfectly, whatever they are, and Fisher's criterion finds it.
# Shrinkage prevents this: it adds a multiple of the identity to the scatter within classes. By
# default the multiple is chosen by leaving rows out. In the SVM the penalty :math:`\|f\|^2` has the
# same effect.

import matplotlib.pyplot as plt
from matplotlib.colors import ListedColormap

xs, ys = np.linspace(-2.2, 3.2, 110), np.linspace(-1.8, 2.3, 80)
plane = np.column_stack([g.ravel() for g in np.meshgrid(xs, ys)])
fig, axes = plt.subplots(1, 3, figsize=(9, 2.9), sharex=True, sharey=True)
for ax, (name, model) in zip(axes, models.items()):
    side = model.predict(plane).reshape(80, 110)
    ax.pcolormesh(xs, ys, side, cmap=ListedColormap(["C0", "C1"]), alpha=0.3, rasterized=True)
    ax.scatter(*noisy[train].T, c=np.where(kind[train], "C1", "C0"), s=8)
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.set_title(name.replace(" without", "\nwithout"), fontsize="small")
plt.show()

# %%
# Exercise
# --------
# Let :math:`K` have full rank. Find a direction :math:`w` in coordinates along which each class of
# the training set is one single point. What does Fisher's criterion, spread between classes
# divided by spread within, say about it? What would it say if the labels were coin flips? Why does
# shrinkage help?
#
# Solution
# --------
# With :math:`K = F F^T` and invertible :math:`F`, take :math:`w = F^{-1} y`: then
# :math:`\varphi(x_i) \cdot w = y_i` for all :math:`i`. The spread within classes is 0 and the
# criterion infinite, for coin flips as for true labels. So its value says nothing about new points.
# What differs is the length, :math:`|w|^2 = y^T K^{-1} y`: it is large where points near each other
# have different labels, and so mostly for coin flips. Shrinkage adds a multiple of :math:`|w|^2` to
# the spread within. A shorter direction then wins, which need not separate all training points.

kernel, labels = RBF(20.0), 2.0 * kind[train] - 1
F = np.linalg.cholesky(kernel(noisy[train]) + 1e-9 * np.eye(150))
coins = np.random.default_rng(0).choice([-1.0, 1.0], size=150)
for name, t in {"labels": labels, "coin flips": coins}.items():
    w = np.linalg.solve(F, t)
    along = F @ w
    assert max(along[t == c].std() for c in (-1, 1)) < 1e-6
    print(f"{name:10}: spread within {along[t == 1].std():.0e}, |w| = {np.linalg.norm(w):.0f}")
values = kernel(noisy[test], noisy[train]) @ np.linalg.solve(F.T, np.linalg.solve(F, labels))
right = np.mean((values > 0) == (kind[test] == 1))
shrunk = KernelDiscriminant(kernel=kernel).fit(noisy[train], kind[train])
assert right < shrunk.score(noisy[test], kind[test]) - 0.05
print(f"right for {right:.0%} of new points,", end=" ")
print(f"with shrinkage for {shrunk.score(noisy[test], kind[test]):.0%}")

# %%
# In the sources
# --------------
# [NPT] IV-B: (17) to (20), the SVM; IV-C: (21) to (32), the discriminant; [EXACT] Figures 3 and 4.
# The certificate is not in the sources. Errata in [NPT]:
#
# - (17) to (20) have no slack, so they have a solution only where the classes can be separated.
# - (22) is the total scatter, not that between classes (the best direction is the same), and its
#   mean lacks :math:`1/n`. (28) is labelled :math:`S_B`, means :math:`S_W`, and needs class means.
#   The second equality of (29), and that of the remark after (23), do not hold.
# - Neither source says that the scatter within classes is singular, so that the criterion needs
#   shrinkage.
