r"""
4. Any method becomes a kernel method
=====================================

With coordinates nothing has to be rewritten. Fit any method on :math:`\varphi(X)`, give it
:math:`\varphi(z)` to predict, and it works in the feature space of the kernel. When is the result
*the* kernel version of that method, the one that the kernel trick would give?

The statement
-------------
**If a method does not depend on the axes, that is, if neither rotating all points nor adding a
coordinate that is 0 everywhere changes its answer, then its answer depends on inner products
only.** So it is the same in the coordinates of lesson 3 and in the kernel's own space.

*Proof.* Let :math:`\Phi` and :math:`\Psi` be two sets of points with the same inner products,
:math:`\Phi \Phi^T = \Psi \Psi^T`; fill the shorter rows with zeros. Then
:math:`|\sum_i a_i \Phi_i| = |\sum_i a_i \Psi_i|` for all :math:`a`, so sending :math:`\Phi_i` to
:math:`\Psi_i` defines a linear map between their spans that keeps lengths. It can be extended to a
rotation :math:`Q` of the whole space, and :math:`\Psi = \Phi Q`. The method gives both the same
answer. ∎

One caution. The inner products of lesson 3 are exact between a training point and any point.
Between two *new* points, and for the length of a new point, a residual is missing. Linear
predictions never need it, and it adds the same amount to all squared distances from a new point to
training points, so the nearest stays nearest. Methods that need lengths of new points have
``KernelMap(append_residual=True)``.

Ten lines of NumPy
------------------
The perceptron adds :math:`y_i \varphi(x_i)` to :math:`w` after each mistake. The kernel
perceptron, the oldest use of the trick, counts the mistakes at each point instead. On coordinates
the first makes the mistakes of the second.
"""

import numpy as np
from sklearn.datasets import make_moons

X, label = make_moons(100, noise=0.2, random_state=0)
y = 2 * label - 1
K = np.exp(-2 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
Phi = np.linalg.cholesky(K + 1e-12 * np.eye(100))
w, a, mistakes = np.zeros(100), np.zeros(100), [[], []]
for i in list(range(100)) * 20:
    if y[i] * (Phi[i] @ w) <= 0:  # the ordinary perceptron, on coordinates
        w, _ = w + y[i] * Phi[i], mistakes[0].append(i)
    if y[i] * (K[i] @ (a * y)) <= 0:  # the kernel perceptron
        a[i], _ = a[i] + 1, mistakes[1].append(i)
print(f"{len(mistakes[0])} mistakes, the same with the trick: {mistakes[0] == mistakes[1]}")

# %%
# In mercer
# ---------
# :class:`~mercer.Kernelized` does this for any estimator of scikit-learn. Here it kernelises
# Huber's robust regression: least squares for small errors, absolute values for large ones, a
# penalty :math:`|w|^2`. It does not depend on the axes, so this is the kernel version of it.

from sklearn.linear_model import HuberRegressor

from mercer import RBF, Kernelized, KernelRidge

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, 80))[:, None]
t = np.sin(x[:, 0]) + 0.1 * rng.normal(size=80)
t[::8] += rng.uniform(2, 4, 10)  # gross errors
robust = Kernelized(HuberRegressor(alpha=0.1, max_iter=1000), RBF(0.5)).fit(x, t)
ridge = KernelRidge(alpha=0.1, kernel=RBF(0.5)).fit(x, t)
line = np.linspace(0, 10, 300)[:, None]
for name, model in {"ridge": ridge, "Huber": robust}.items():
    error = np.sqrt(np.mean((model.predict(line) - np.sin(line[:, 0])) ** 2))
    print(f"{name}: root mean squared distance from the truth {error:.2f}")

# %%
# The picture
# -----------
# Ten of 80 values are wrong by 2 to 4. Kernel ridge follows them; kernel Huber, which nobody had
# to derive, does not.

import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(7, 3.4))
ax.plot(line, np.sin(line), color="grey", ls="--", label="truth")
ax.plot(line, ridge.predict(line), color="C1", label="kernel ridge")
ax.plot(line, robust.predict(line), color="C0", lw=2.5, label="kernel Huber")
ax.plot(x, t, ".", color="grey")
ax.set(xlabel="x", ylim=(-1.6, 4.6))
ax.legend(ncols=3, frameon=False)
plt.show()

# %%
# Exercise
# --------
# Which of these do not depend on the axes: the support vector machine, lasso, a decision tree,
# nearest neighbours? Check your answers with two bases of the map.
#
# Solution
# --------
# Lasso counts coefficients on axes, and a tree cuts along axes: both depend on the basis. For them
# the eigen basis is the natural choice, since it depends on the kernel and the data alone
# (:doc:`/how-to/basis`).

from sklearn.linear_model import Lasso
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

from mercer import KernelMap

Phi, Psi = (
    KernelMap(RBF(2.0), basis=b, max_rank=20).fit_transform(X) for b in ("cholesky", "eigen")
)
invariant = [SVR(kernel="linear", tol=1e-10), KNeighborsRegressor(5)]
others = [Lasso(alpha=0.02), DecisionTreeRegressor(max_depth=2, random_state=0)]
for method in invariant + others:
    apart = np.abs(method.fit(Phi, y).predict(Phi) - method.fit(Psi, y).predict(Psi)).max()
    assert (apart < 1e-5) == (method in invariant)
    print(f"{type(method).__name__:21} two bases differ by {apart:.0e}")

# %%
# In the sources
# --------------
# [NPT] section III-B: algorithm KM. Its examples are in lessons 6 (PCA, PCA-L1) and 7 (SVM,
# discriminants). Errata: the lemmas that section IV of [NPT] cites have numbers that are one or
# two too small or too large, and the condition above, that the method must not depend on the axes,
# is not stated there.
