r"""
4. Any method becomes a kernel method
=====================================

With coordinates nothing has to be rewritten. Fit any method on :math:`\varphi(X)`, give it
:math:`\varphi(z)` to predict, and it works in the feature space of the kernel. When is the result
*the* kernel version of that method, the one that the kernel trick would give?

The statement
-------------
We say that a method does not depend on the axes if its answer stays the same when all points are
rotated or reflected, and when a coordinate is added that is 0 everywhere. **If a method does not
depend on the axes, its answer depends on inner products only.** So the answer is the same in the
coordinates of lesson 3 and in the kernel's own space.

*Proof.* Let the rows of :math:`\Phi` and of :math:`\Psi` be two sets of points with the same inner
products, :math:`\Phi \Phi^T = \Psi \Psi^T`. Fill the shorter rows with zeros. Then
:math:`|\sum_i a_i \Phi_i| = |\sum_i a_i \Psi_i|` for all :math:`a`, so sending :math:`\Phi_i` to
:math:`\Psi_i` defines a linear map between their spans that keeps lengths. It can be extended to a
rotation or reflection :math:`Q` of the whole space, and :math:`\Psi = \Phi Q`. The method gives
both the same answer. ∎

One caution. The inner products of lesson 3 are exact between a training point and any point.
Between two *new* points, and for the length of a new point, the residual is missing. Linear
predictions do not need it. In the squared distances from a new point to training points the same
amount is missing from all, so the nearest stays nearest. For methods that need the lengths of new
points there is ``KernelMap(append_residual=True)``.

Ten lines of NumPy
------------------
The perceptron learns weights :math:`w`: whenever it misclassifies a point, it adds
:math:`y_i \varphi(x_i)` to :math:`w`. The kernel perceptron, the oldest use of the kernel
trick, counts the mistakes at each point instead. On coordinates the ordinary perceptron makes the
same mistakes in the same order.
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
# Huber's robust regression. Its loss is the square of small errors and the absolute value of large
# ones, and its penalty is :math:`|w|^2`. It does not depend on the axes, so the result is its
# kernel version.

from sklearn.linear_model import HuberRegressor

from mercer import RBF, Kernelized, KernelRidgeCV

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, 80))[:, None]
t = np.sin(x[:, 0]) + 0.1 * rng.normal(size=80)
t[::8] += rng.uniform(2, 4, 10)  # gross errors
robust = Kernelized(HuberRegressor(alpha=0.1, max_iter=1000), RBF(0.5)).fit(x, t)
ridge = KernelRidgeCV(np.logspace(-3, 2, 11), RBF(0.5)).fit(x, t)  # the penalty by leave-one-out
line = np.linspace(0, 10, 300)[:, None]
for name, model in {"ridge": ridge, "Huber": robust}.items():
    error = np.sqrt(np.mean((model.predict(line) - np.sin(line[:, 0])) ** 2))
    print(f"{name}: root mean squared distance from the truth {error:.2f}")

# %%
# The picture
# -----------
# Ten of 80 values are wrong by 2 to 4. Kernel ridge is pulled towards them, with any penalty.
# Kernel Huber is not, and nobody had to derive it.

import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(7, 3.4))
ax.plot(line, np.sin(line), color="grey", ls="--", label="truth")
ax.plot(line, ridge.predict(line), color="C1", label="kernel ridge")
ax.plot(line, robust.predict(line), color="C0", lw=2.5, label="kernel Huber")
ax.plot(x, t, ".", color="grey")
ax.set(xlabel="x", ylabel="t", ylim=(-1.6, 4.6))
ax.set_title("kernel ridge and kernel Huber with gross errors")
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
# The support vector machine needs inner products only (its penalty is :math:`|w|^2`), and nearest
# neighbours need distances only: neither depends on the axes. Lasso adds up the absolute
# coefficients along the axes, and a tree cuts along them: both depend on the basis. For them the
# eigen basis is the natural choice: it orders the axes by how much they explain, and it does not
# depend on the order of the rows, as Cholesky's does (:doc:`/how-to/basis`).

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
# discriminants). Errata: the numbers of the lemmas that section IV of [NPT] cites are off by one or
# two. [NPT] does not state the condition above, that the method must not depend on the axes.
