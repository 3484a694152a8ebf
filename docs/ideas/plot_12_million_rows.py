r"""
12. A million rows
==================

For a million rows the kernel matrix would take 8 TB. Exact ridge regression is possible all the
same, by **conjugate gradients**: an iteration that solves :math:`A a = t` with one product
:math:`A p` per step, and never needs the entries of :math:`A`. It takes few steps if it is given a
matrix :math:`P` (a *preconditioner*) that is near :math:`A` and easy to invert. The map of lesson
11, with few landmarks, helps twice: it gives such a :math:`P`, and it proves how far from the exact
answer the iteration is.

The statement
-------------
Let :math:`F` be the pivoted Cholesky factor of lesson 11 after any number of steps, and
:math:`P = F F^T + \alpha I`. Let :math:`a` be any approximate solution of
:math:`(K + \alpha I) a = t`, with residual :math:`s = t - (K + \alpha I) a`. **Then the function**
:math:`f = \sum_i a_i k(x_i, \cdot)` **and the exact** :math:`f^*` **satisfy, at every point,**

.. math:: |f(z) - f^*(z)| \le \sqrt{k(z, z)} \, \sqrt{s^T P^{-1} s} .

*Proof.* :math:`K - F F^T` is positive semi-definite, since it holds the inner products of the parts
:math:`\psi_\perp` that the landmarks do not see (lesson 11). So :math:`v^T P v \le v^T (K + \alpha
I) v` for all :math:`v`. For the inverses the inequality is reversed, because :math:`s^T A^{-1} s`
is the largest value of :math:`2\, s^T v - v^T A v` over all :math:`v`: so :math:`s^T (K + \alpha
I)^{-1} s \le s^T P^{-1} s`. The coefficients are off by :math:`e = (K + \alpha I)^{-1} s`, so

.. math::

    \|f - f^*\|^2 = e^T K e \le e^T (K + \alpha I) e

.. math::

    = s^T (K + \alpha I)^{-1} s \le s^T P^{-1} s .

Finally, :math:`|g(z)| \le \|g\| \sqrt{k(z, z)}` for every function :math:`g` of the space. ∎

:math:`K` is needed only in products :math:`K v`, which are computed tile by tile and never stored;
and :math:`s^T P^{-1} s` is a number that conjugate gradients with :math:`P` compute in every step
anyway.

Ten lines of NumPy
------------------
These are conjugate gradients with the factor of 150 landmarks.
"""

import numpy as np

rng = np.random.default_rng(0)
X, alpha = rng.normal(size=(800, 4)), 0.01
t = np.sin(X.sum(axis=1)) + 0.1 * rng.normal(size=800)
K = np.exp(-0.1 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
S = rng.choice(800, 150, replace=False)  # any landmarks; pivoted Cholesky chooses better ones
F = np.linalg.solve(np.linalg.cholesky(K[np.ix_(S, S)] + 1e-12 * np.eye(150)), K[S]).T
P = F @ F.T + alpha * np.eye(800)
a, s = np.zeros(800), t.copy()
q = p = np.linalg.solve(P, s)
for step in range(1, 10):
    Kp, old = K @ p + alpha * p, s @ q
    a, s = a + old / (p @ Kp) * p, s - old / (p @ Kp) * Kp
    q = np.linalg.solve(P, s)
    p = q + (s @ q) / old * p
    print(f"after product {step} every prediction is within {np.sqrt(s @ q):.0e}")

# %%
# In mercer
# ---------
# ``form="auto"`` chooses the cheapest solver for the sizes at hand, and :func:`~mercer.plan` prints
# the table by which it decides. Every form has an ``error_bound``. On a GPU the same line runs
# there, if the rows are on it.

from mercer import KernelRidge, Matern, plan

print(plan(KernelRidge(alpha=0.01, kernel=Matern(1.5, 2.0)), (1_000_000, 8)))
model = KernelRidge(alpha=0.01, kernel=Matern(1.5, 2.0), form="iterative", tol=1e-6).fit(X, t)
print(f"{model.n_iter_} products, error at most {model.error_bound(X).max():.0e}")

# %%
# One core would need days for a million rows with this rough kernel. A GPU takes seconds to minutes
# (:doc:`/performance`).
#
# The picture
# -----------
# The lines are the bound after each product with :math:`K`, and the true error, which is never
# above it. With more landmarks both fall faster. Since the bound holds after any number of
# products, an interrupted fit is a result with a known error.

import warnings

import matplotlib.pyplot as plt
from sklearn.exceptions import ConvergenceWarning

from mercer import KernelMap

kernel, Z = Matern(1.5, 2.0), rng.normal(size=(500, 4))
exact = kernel(Z, X) @ np.linalg.solve(kernel(X) + 0.01 * np.eye(800), t)
fig, ax = plt.subplots(figsize=(7, 3.8))
for i, rank in enumerate((30, 300)):
    products, bounds, errors = [], [], []
    for most in (3, 4, 6, 8, 10, 13, 16, 20, 25, 30, 36):
        ridge = KernelRidge(
            0.01, KernelMap(kernel, max_rank=rank), form="iterative", tol=1e-6, max_iter=most
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            ridge.fit(X, t)
        products.append(ridge.n_iter_)
        bounds.append(ridge.error_bound(Z).max())
        errors.append(np.abs(ridge.predict(Z) - exact).max())
        if ridge.converged_:
            break
    ax.semilogy(products, bounds, color=f"C{i}", label=f"{rank} landmarks: bound")
    ax.semilogy(products, errors, color=f"C{i}", ls=":", label="largest true error")
ax.set(xlabel="products with the kernel matrix", ylabel="error of 500 predictions")
ax.set_title("the bound and the true error fall together")
ax.set_ylim(bottom=1e-10)
ax.legend(frameon=False, ncols=2, loc="lower left")
plt.show()

# %%
# Exercise
# --------
# With a fixed map of rank :math:`r`, ridge needs the data only through two sums over rows,
# :math:`\Phi^T \Phi = \sum_i \varphi(x_i) \varphi(x_i)^T` and :math:`\Phi^T t`. So rows can be
# read in chunks and forgotten. Write this, and compare it with a stream in mercer.
#
# Solution
# --------
# Memory holds one chunk and :math:`r^2` numbers, for any number of rows.

from mercer import Chunks

fixed = KernelMap(kernel, max_rank=100).fit(X)
A, c = 0.01 * np.eye(100), np.zeros(100)
for rows in np.array_split(np.arange(800), 10):
    Phi = fixed.transform(X[rows])
    A, c = A + Phi.T @ Phi, c + Phi.T @ t[rows]
in_chunks = fixed.transform(Z) @ np.linalg.solve(A, c)
at_once = KernelRidge(0.01, KernelMap(kernel, max_rank=100)).fit(X, t).predict(Z)


def chunks():
    """Files, for example: rows with their targets, again from the start at every call."""
    for rows in np.array_split(np.arange(800), 10):
        yield X[rows], t[rows]


streamed = KernelRidge(0.01, KernelMap(kernel, max_rank=100)).fit(Chunks(chunks)).predict(Z)
assert np.abs(in_chunks - at_once).max() < 1e-8
assert np.abs(in_chunks - streamed).max() < 1e-8
print(f"from all at once {np.abs(in_chunks - at_once).max():.0e},", end=" ")
print(f"from the stream {np.abs(in_chunks - streamed).max():.0e}")

# %%
# In the sources
# --------------
# [KERNELS] (7) is the equation that is solved. The documents assume that :math:`K` can be stored;
# preconditioned conjugate gradients and the bound are not in them. :doc:`/performance` has figures
# for a million rows, and the commands that repeat them. In practice: :doc:`/how-to/large-data`,
# :doc:`/how-to/gpu`, :doc:`/how-to/dask`.
