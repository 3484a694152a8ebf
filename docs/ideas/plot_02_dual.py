r"""
2. The kernel trick and the dual
================================

Least squares in a feature space has one unknown per feature. For a polynomial of degree 9 on 784
pixels there are about :math:`3 \cdot 10^{20}` features, for a Gaussian kernel infinitely many. Yet
there are only :math:`n` samples. The **kernel trick** rewrites the problem until the features
occur in inner products only, and puts :math:`k(x, z)` in their place. The problem then has
:math:`n` unknowns, and no feature is ever computed.

The statement
-------------
**Representer theorem.** Let a loss depend on the weights :math:`w` only through the values
:math:`w \cdot \varphi(x_i)` at the training points, and add a penalty that increases with
:math:`|w|`. **If there is a minimiser, there is one of the form**
:math:`w = \sum_i a_i \varphi(x_i)`, **and it predicts with the kernel alone:**

.. math:: f(z) = w \cdot \varphi(z) = \sum_i a_i\, k(x_i, z) .

*Proof.* Split :math:`w = w_\parallel + w_\perp` into its part in the span of the
:math:`\varphi(x_i)` and the rest. The rest is orthogonal to every :math:`\varphi(x_i)`, so without
it the loss is the same and :math:`|w|` is not larger. ∎

Ridge regression has the squared loss :math:`\sum_i (t_i - w \cdot \varphi(x_i))^2` for targets
:math:`t_i`, and the penalty :math:`\lambda |w|^2`. Here the coefficients have a formula. Let the
rows of :math:`\Phi` be the :math:`\varphi(x_i)`. Since :math:`(\Phi^T \Phi + \lambda
I) \Phi^T = \Phi^T (\Phi \Phi^T + \lambda I)`, the solution is

.. math:: w = (\Phi^T \Phi + \lambda I)^{-1} \Phi^T t = \Phi^T a

with

.. math:: a = (K + \lambda I)^{-1} t .

The first is the **primal** problem, with one unknown per feature; the second is the **dual**, with
one per sample.

Ten lines of NumPy
------------------
Three columns have ten monomials up to degree two. Both forms give the same predictions.
"""

import numpy as np

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(50, 3)), rng.normal(size=(5, 3))
t = X[:, 0] * X[:, 1] - X[:, 2] + 0.1 * rng.normal(size=50)


def features(X):
    pairs = X[:, [0, 0, 1]] * X[:, [1, 2, 2]]
    return np.hstack([np.ones((len(X), 1)), 2**0.5 * X, X**2, 2**0.5 * pairs])


Phi, K = features(X), (X @ X.T + 1) ** 2
w = np.linalg.solve(Phi.T @ Phi + 0.1 * np.eye(10), Phi.T @ t)  # primal: 10 unknowns
a = np.linalg.solve(K + 0.1 * np.eye(50), t)  # dual: 50 unknowns, no features
print(f"the kernel is an inner product of features: {np.abs(Phi @ Phi.T - K).max():.0e}")
print(f"predictions differ by {np.abs(features(Z) @ w - (Z @ X.T + 1) ** 2 @ a).max():.0e}")

# %%
# In mercer
# ---------
# ``form`` says which of the two problems is solved. By default :class:`~mercer.KernelRidge` chooses
# the cheapest solver. (Its ``alpha`` is :math:`\lambda`.)

from mercer import RBF, KernelRidge, Polynomial

for form in ("primal", "dual"):
    model = KernelRidge(alpha=0.1, kernel=Polynomial(2), form=form).fit(X, t)
    error = np.abs(model.predict(Z) - features(Z) @ w).max()
    print(f"{form:6} differs from NumPy by {error:.0e}")

# %%
# The picture
# -----------
# The picture shows what the theorem says: the fit (thick line) is a sum of bumps
# :math:`a_i k(x_i, \cdot)`, one per training point. Their heights :math:`a_i`, positive or
# negative, are all that is learned.

import matplotlib.pyplot as plt

x = np.sort(rng.uniform(0, 10, 16))[:, None]
y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=16)
line = np.linspace(-1, 11, 300)[:, None]
model = KernelRidge(alpha=0.1, kernel=RBF(0.8), form="dual").fit(x, y)
bumps = RBF(0.8)(line, x) * model.dual_coef_
fig, ax = plt.subplots(figsize=(7, 3.4))
for i, bump in enumerate(bumps.T):
    label = r"bumps $a_i\, k(x_i, \cdot)$" if i == 0 else None
    ax.fill_between(line[:, 0], 0, bump, color="C0", alpha=0.2, label=label)
ax.plot(line, bumps.sum(axis=1), color="C0", lw=2.5, label="their sum: the fit")
ax.plot(x, y, "o", color="C1", label="data")
ax.set(
    xlabel="z",
    ylabel="f(z)",
    xlim=(-1, 11),
    title="a fit is a sum of kernels at the training points",
)
ax.legend(ncols=3, loc="upper center", frameon=False)
ax.set_ylim(top=1.9)
plt.show()

# %%
# Exercise
# --------
# Use the trick yourself. A simple classifier gives a point the class whose mean in feature space is
# nearest. For a class mean :math:`m = \frac1n \sum_i \varphi(x_i)`, write
# :math:`|\varphi(z) - m|^2` with kernel values only.
#
# Solution
# --------
# Multiply out: :math:`k(z, z) - \frac2n \sum_i k(x_i, z) + \frac1{n^2} \sum_{i,j} k(x_i, x_j)`.
# The first term is the same for all classes. The next lessons get the same answer without algebra,
# by :class:`~mercer.Kernelized`, which runs the ordinary classifier on coordinates:

from sklearn.datasets import make_moons
from sklearn.neighbors import NearestCentroid

from mercer import Kernelized

X, y = make_moons(200, noise=0.2, random_state=0)
Z, kernel = rng.uniform(-1, 2, size=(100, 2)), RBF(2.0)


def squared_distance_to_mean(Z, X):
    return kernel.diag(Z) - 2 * kernel(Z, X).mean(axis=1) + kernel(X).mean()


by_trick = np.argmin([squared_distance_to_mean(Z, X[y == c]) for c in (0, 1)], axis=0)
by_coordinates = Kernelized(NearestCentroid(), kernel).fit(X, y).predict(Z)
assert (by_trick == by_coordinates).all()
print(f"the same class for all {len(Z)} points")

# %%
# In the sources
# --------------
# [KERNELS] (2) to (8) derives ridge regression in this way: (3) is :math:`w = \Phi^T a`, (7) the
# formula for :math:`a`, (8) the prediction. Errata: after (8), what may be infinite is the
# dimension of :math:`\varphi(x)`, not that of :math:`x`; and the dual is cheaper only where there
# are more features than samples.
