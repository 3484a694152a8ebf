r"""
10. Comparing samples
=====================

Do two samples come from the same distribution? Even if their means and variances agree, they may
differ. In feature space the mean is enough: for a kernel such as RBF, different distributions have
different means there.

The statement
-------------
The squared distance between the mean images of :math:`x_1, \dots, x_m` and :math:`y_1, \dots, y_n`
is

.. math::

    \mathrm{MMD}^2 = \Bigl| \tfrac1m \sum_i \varphi(x_i) - \tfrac1n \sum_j \varphi(y_j) \Bigr|^2 ,

the square of the **maximum mean discrepancy** (MMD). With :math:`\bar K_{XY}` for the mean of all
:math:`k(x_i, y_j)`, and so on,

.. math:: \mathrm{MMD}^2 = \bar K_{XX} + \bar K_{YY} - 2\, \bar K_{XY} .

Compute it for the two samples as they are given. Then put all points together, divide them at
random into two samples of the same sizes, and compute it again; do so :math:`B` times. Let
:math:`p = (1 + \#\{\text{permuted} \ge \text{given}\}) / (1 + B)`. **If all points are drawn
independently from one distribution, then** :math:`P(p \le \alpha) \le \alpha` **for every**
:math:`\alpha`, **every kernel and every sample size.**

*Proof.* For the formula, multiply the square out. For the test, all orders of independent points
from one distribution are equally likely, so the given division is one random division like the
others. The given value is then equally likely to have any rank among the :math:`B + 1` values (ties
can only make :math:`p` larger). :math:`p \le \alpha` means that the given value is among the
:math:`\lfloor \alpha (B + 1) \rfloor` largest. The probability of this is at most :math:`\lfloor
\alpha (B + 1) \rfloor / (B + 1) \le \alpha`. ∎

So the kernel does not change the rate of false alarms. It decides which differences can be *found*:
a linear kernel compares means only.

Ten lines of NumPy
------------------
The first sample is from a normal distribution, the second from one with two peaks and the same mean
and variance.
"""

import numpy as np

rng = np.random.default_rng(0)
x = rng.normal(size=120)
y = 0.95 * rng.choice([-1, 1], size=120) + np.sqrt(1 - 0.95**2) * rng.normal(size=120)
both = np.concatenate([x, y])
signs = np.repeat([1 / 120, -1 / 120], 120)
for name, K in {
    "linear": np.outer(both, both),
    "RBF": np.exp(-2 * (both[:, None] - both) ** 2),
}.items():
    shuffled = np.array([rng.permutation(signs) for _ in range(999)])
    permuted = ((shuffled @ K) * shuffled).sum(axis=1)
    p = (1 + (permuted >= signs @ K @ signs).sum()) / 1000
    print(f"{name:6} MMD^2 = {signs @ K @ signs:.4f}, p = {p:.3f}")

# %%
# In mercer
# ---------
# :func:`~mercer.two_sample_test` accepts tables, objects, and a million rows. It tries six length
# scales with the same permutations, and remains one test at one level. The **witness** is the
# difference of the two means, as a function on the data: where it is positive, the first sample
# has more points.

from mercer import RBF, independence_test, two_sample_test

result = two_sample_test(x[:, None], y[:, None], random_state=0)
print(result)

# %%
# The picture
# -----------
# Above are the two samples, which mean and variance cannot tell apart. Below is the witness, which
# shows where they differ.

import matplotlib.pyplot as plt

line = np.linspace(-3.2, 3.2, 300)
fig, (top, bottom) = plt.subplots(2, 1, figsize=(7, 4.4), sharex=True)
bins = np.linspace(-3.2, 3.2, 25)
top.hist(x, bins, color="C0", alpha=0.55, label=f"x: mean {x.mean():.2f}, deviation {x.std():.2f}")
top.hist(y, bins, color="C1", alpha=0.55, label=f"y: mean {y.mean():.2f}, deviation {y.std():.2f}")
top.legend(frameon=False)
top.set(ylabel="points", ylim=(0, 32))
witness = result.witness(line[:, None])
bottom.fill_between(line, witness, where=witness > 0, color="C0", alpha=0.5, label="more of x")
bottom.fill_between(line, witness, where=witness < 0, color="C1", alpha=0.5, label="more of y")
bottom.plot(line, witness, color="grey", lw=1)
bottom.set(title="witness: where the samples differ", xlabel="value", ylabel="witness")
top.set_title("two samples with nearly the same mean and variance")
bottom.legend(frameon=False, loc="upper right")
plt.show()

# %%
# Exercise
# --------
# Test whether two columns are independent: if they are, the pairs :math:`(a_i, b_i)` look like
# pairs with one column shuffled. Take the product kernel :math:`k(a, a')\, l(b, b')` on pairs. What
# is the test statistic, as a matrix formula? Try it on points of a circle, whose correlation is 0.
#
# Solution
# --------
# Compare the mean image of the pairs with the product of the two mean images. Their difference is
# the covariance :math:`\frac1n \sum_i \varphi_c(a_i)\, \psi_c(b_i)^T` of the centred images
# :math:`\varphi_c(a)` of one column and :math:`\psi_c(b)` of the other. Its squared length is
# :math:`\frac{1}{n^2} \operatorname{tr}(H K H L)`, with the kernel matrices :math:`K` and :math:`L`
# of the two columns and :math:`H` of lesson 6, because :math:`|\Phi_c^T \Psi_c|^2 =
# \operatorname{tr}(\Phi_c \Phi_c^T\, \Psi_c \Psi_c^T)`. This number is called HSIC, the
# Hilbert-Schmidt independence criterion. For the permutations, shuffle one column.

angle = rng.uniform(0, 2 * np.pi, 150)
a, b = np.cos(angle) + 0.1 * rng.normal(size=150), np.sin(angle) + 0.1 * rng.normal(size=150)
H = np.eye(150) - 1 / 150
K, L = H @ RBF(2.0)(a[:, None]) @ H, RBF(2.0)(b[:, None])
order = [rng.permutation(150) for _ in range(199)]
hsic = (K * L).sum() / 150**2
p = (1 + sum((K * L[np.ix_(i, i)]).sum() / 150**2 >= hsic for i in order)) / 200
assert abs(np.corrcoef(a, b)[0, 1]) < 0.2
assert p == 1 / 200
assert independence_test(a[:, None], b[:, None], random_state=0).p_value < 0.01
print(f"correlation {np.corrcoef(a, b)[0, 1]:.2f}, HSIC {hsic:.4f}, p = {p:.3f}")

# %%
# In the sources
# --------------
# The five documents do not compare samples. The formula is (26) of [EXACT], for means in place of
# points. MMD and HSIC are due to A. Gretton and others (*A Kernel Two-Sample Test*, 2012; *A
# Kernel Statistical Test of Independence*, 2007). On tables: :doc:`/how-to/drift`.
