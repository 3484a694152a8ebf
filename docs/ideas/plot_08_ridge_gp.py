r"""
8. Ridge regression, Gaussian processes, and the space of functions
===================================================================

Ridge regression in feature space, the mean of a Gaussian process, and the smoothest function near
the data are one and the same function. So ridge has error bars, and a Gaussian process has
coordinates.

A **Gaussian process** is a random function. Its values at any points :math:`x_1, \dots, x_n` are
jointly normal, with mean 0 and covariance :math:`K = k(X, X)`: the kernel says how strongly
the values at two points are correlated.

The statement
-------------
Let :math:`\mathcal H` be the kernel's Hilbert space of functions (lesson 1, its RKHS), with
:math:`\|\sum_i a_i k(x_i, \cdot)\|^2 = a^T K a`. **These three are equal:**

1. the minimiser in :math:`\mathcal H` of :math:`\sum_i (t_i - f(x_i))^2 + \alpha \|f\|^2`;
2. :math:`w \cdot \varphi(z)` with :math:`w = (\Phi^T \Phi + \alpha I)^{-1} \Phi^T t`, ridge on the
   coordinates of lesson 3;
3. the mean of :math:`f(z)` given the values :math:`t_i = f(x_i) + \text{noise}`, for a Gaussian
   process :math:`f` with covariance :math:`k`, and independent normal noise of variance
   :math:`\alpha`.

**The variance in 3 is** :math:`\rho^2(z) + \alpha\, \varphi(z)^T (\Phi^T \Phi + \alpha I)^{-1}
\varphi(z)`: *what the span does not see, plus what the noise hides.*

*Proof.* 1 equals 2 by lesson 2, and both equal :math:`k_z^T (K + \alpha I)^{-1} t`. For 3, the
values :math:`t` and :math:`f(z)` are jointly normal: :math:`t` has the covariance :math:`K + \alpha
I`, and the covariances of :math:`t` with :math:`f(z)` are :math:`k_z`. For jointly normal variables
the conditional mean is linear, :math:`k_z^T (K + \alpha I)^{-1} t`, and the conditional variance is
:math:`k(z, z) - k_z^T (K + \alpha I)^{-1} k_z`. Put :math:`k_z = \Phi \varphi` and
:math:`K = \Phi \Phi^T`. Since

.. math::

    \Phi^T (\Phi \Phi^T + \alpha I)^{-1} \Phi = (\Phi^T \Phi + \alpha I)^{-1} \Phi^T \Phi

.. math::

    = I - \alpha (\Phi^T \Phi + \alpha I)^{-1} ,

the variance is
:math:`k(z, z) - |\varphi|^2 + \alpha\, \varphi^T (\Phi^T \Phi + \alpha I)^{-1} \varphi`. ∎

Ten lines of NumPy
------------------
Mean and variance come out the same from the kernel matrix and from coordinates.
"""

import numpy as np

rng = np.random.default_rng(1)
x, z, alpha = np.sort(rng.uniform(0, 10, 14)), np.linspace(-1, 11, 241), 0.01
t = np.sin(x) + 0.1 * rng.normal(size=14)
K, k_z = np.exp(-0.5 * (x[:, None] - x) ** 2), np.exp(-0.5 * (x[:, None] - z) ** 2)
A = K + alpha * np.eye(14)
mean, variance = k_z.T @ np.linalg.solve(A, t), 1 - (k_z * np.linalg.solve(A, k_z)).sum(axis=0)
Phi = np.linalg.cholesky(K)
phi, B = np.linalg.solve(Phi, k_z), Phi.T @ Phi + alpha * np.eye(14)
again = phi.T @ np.linalg.solve(B, Phi.T @ t)
unseen, hidden = 1 - (phi**2).sum(axis=0), alpha * (phi * np.linalg.solve(B, phi)).sum(axis=0)
print(f"means differ by {np.abs(mean - again).max():.0e},", end=" ")
print(f"variances by {np.abs(variance - unseen - hidden).max():.0e}")

# %%
# In mercer
# ---------
# :class:`~mercer.KernelRidge` predicts with standard deviations. Its ``function_`` is the fitted
# function as an element of :math:`\mathcal H`, with a norm and inner products.
# :class:`~mercer.KernelRidgeCV` also chooses alpha.

from mercer import RBF, KernelRidge, RKHSFunction

model = KernelRidge(alpha=alpha, kernel=RBF(0.5)).fit(x[:, None], t)
prediction, deviation = model.predict(z[:, None], return_std=True)
print(f"means differ by {np.abs(prediction - mean).max():.0e},", end=" ")
print(f"variances by {np.abs(deviation**2 - variance).max():.0e}")
f, at = model.function_, RKHSFunction(RBF(0.5), [[3.0]], [1.0])
print(f"norm {f.norm():.2f};  <f, k(3, .)> = {f.inner(at):.6f} = f(3) = {f([[3.0]])[0]:.6f}")

# %%
# The picture
# -----------
# On the left are functions drawn from the process before any data are seen (prior draws); the
# kernel says how smooth they are. On the right is the same process given 14 values. The band is two
# standard deviations wide on each side. It is narrow near data, and away from them it becomes
# nearly as wide as on the left.

import matplotlib.pyplot as plt


def draws(covariance, mean=0.0):
    """Four functions of a Gaussian process, on the grid z."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0))
    return mean + np.random.default_rng(5).normal(size=(4, len(z))) @ root.T


prior = np.exp(-0.5 * (z[:, None] - z) ** 2)
posterior = prior - k_z.T @ np.linalg.solve(A, k_z)
fig, axes = plt.subplots(1, 2, figsize=(8.4, 3.2), sharey=True)
for ax, lines, spread, middle in zip(
    axes, (draws(prior), draws(posterior, mean)), (1.0, deviation), (0.0, prediction)
):
    ax.fill_between(z, middle - 2 * spread, middle + 2 * spread, color="C0", alpha=0.18, lw=0)
    ax.plot(z, lines.T, lw=1)
axes[1].plot(z, prediction, color="grey", lw=2, ls="--")
axes[1].plot(x, t, "o", color="grey", ms=5)
axes[0].set(title="prior", xlabel="z", ylabel="f(z)")
axes[1].set(title="given 14 values", xlabel="z")
plt.show()

# %%
# Move the sliders: ridge on labels :math:`\pm 1` is a classifier. A large gamma draws islands
# around single points, and a large alpha flattens everything.
#
# .. slider:: gram spectrum boundary
#    :sliders: gamma alpha
#
# Exercise
# --------
# Predict every value from the others. Prove that the error at a point left out is :math:`t_i -
# f_{-i}(x_i) = a_i / [(K + \alpha I)^{-1}]_{ii}` with :math:`a = (K + \alpha I)^{-1} t`, so that
# all of these errors cost one matrix inverse.
#
# Solution
# --------
# Let :math:`f_{-i}` be the fit without point :math:`i`, and replace :math:`t_i` by
# :math:`f_{-i}(x_i)`. Then :math:`f_{-i}` is also the best fit to all :math:`n` values: it was the
# best for the others, and has no error at :math:`x_i`. Its coefficients are :math:`a' = (K + \alpha
# I)^{-1} (t - \delta e_i)` with :math:`\delta = t_i - f_{-i}(x_i)`, where :math:`e_i` has 1 at
# place :math:`i` and 0 elsewhere. Since :math:`(K + \alpha I) a = t`, coefficients are errors
# divided by :math:`\alpha`. So :math:`a'_i = 0`, which reads :math:`a_i - \delta\, [(K + \alpha
# I)^{-1}]_{ii} = 0`.

inverse = np.linalg.inv(A)
formula = (inverse @ t) / np.diagonal(inverse)
refitted = []
for i in range(14):
    rest = np.arange(14) != i
    one_less = KernelRidge(alpha=alpha, kernel=RBF(0.5)).fit(x[rest, None], t[rest])
    refitted.append(t[i] - one_less.predict(x[[i], None])[0])
assert np.allclose(formula, refitted, atol=1e-9)
print(f"14 refits and the formula differ by {np.abs(formula - refitted).max():.0e}")

# %%
# In the sources
# --------------
# [KERNELS] (2) to (8) is ridge; [MDS] Proposition 6 is
# :math:`\langle f, k(z, \cdot) \rangle = f(z)`; [NPT] Lemma 6 turns coordinates into functions and
# back. [EXACT] remarks after (16) that its score formula :math:`k_z^T K^{-1} u` resembles the
# prediction of a Gaussian process. It *is* one, for the values :math:`u` without noise; the score
# is that prediction minus the mean of :math:`u`.
