r"""
8. Exact ridge without the kernel matrix
========================================

Ridge regression solves :math:`(K + \alpha I) a = t`. For a million rows :math:`K` would take 8 TB.
The map of the earlier pages, with few landmarks, helps twice: it makes conjugate gradients converge
quickly, and it bounds the error of the solution they have reached.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import Matern
from mercer.solve import solve_iteratively

rng = np.random.default_rng(0)
X = rng.normal(size=(800, 4))
t = np.sin(X.sum(axis=1)) + 0.1 * rng.normal(size=800)
kernel, alpha = Matern(1.5, 2.0), 0.01

# %%
# The proof, in two lines
# -----------------------
# Pivoted Cholesky leaves :math:`K - F F^T` positive semi-definite, whatever the rank of :math:`F`.
# So :math:`P = F F^T + \alpha I \preceq K + \alpha I`. For any approximate :math:`a` with residual
# :math:`s = t - (K + \alpha I) a`, the error :math:`e = (K + \alpha I)^{-1} s` of its coefficients
# gives the error of the function :math:`f = \sum_i a_i k(x_i, \cdot)`:
#
# .. math:: \|f - f^*\|^2 = e^T K e \le s^T (K + \alpha I)^{-1} s \le s^T P^{-1} s .
#
# By Cauchy-Schwarz every prediction obeys
# :math:`|f(z) - f^*(z)| \le \sqrt{k(z, z)} \, \sqrt{s^T P^{-1} s}`, and :math:`s^T P^{-1} s` is a
# number that conjugate gradients, preconditioned with :math:`P`, compute in every step anyway.

K = kernel(X)
exact = np.linalg.solve(K + alpha * np.eye(len(X)), t)
Z = rng.normal(size=(2000, 4))
K_Z = kernel(Z, X)

# %%
# Error and bound over the iterations
# -----------------------------------
# The iterations are stopped after various numbers of products with :math:`K`, and the solution is
# compared with the direct one. With more landmarks in the preconditioner, fewer products are
# needed.

import warnings

from sklearn.exceptions import ConvergenceWarning

fig, axes = plt.subplots(1, 2, figsize=(8, 4.2), sharey=True, layout="constrained")
for ax, rank in zip(axes, (30, 300)):
    products, bounds, norms, errors = [], [], [], []
    for most in (3, 4, 6, 8, 10, 13, 16, 20, 25, 30, 36):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solution = solve_iteratively(
                kernel, X, t[:, None], [alpha], rank=rank, tol=1e-6, max_iter=most
            )
        difference = solution.coef[:, 0] - exact
        products.append(solution.n_iter)
        bounds.append(solution.error_norms[0])
        norms.append(np.sqrt(difference @ K @ difference))
        errors.append(np.abs(K_Z @ difference).max())
        if solution.converged:
            break
    ax.semilogy(products, bounds, "C3-", label="certified bound")
    ax.semilogy(products, norms, "C0-", label=r"true $\|f - f^*\|$")
    ax.semilogy(products, errors, "C0:", label="true largest error of 2000 predictions")
    ax.set(title=f"{rank} landmarks", xlabel="products with the kernel matrix")
axes[0].set_ylabel("error")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", frameon=False)
plt.show()

# %%
# The bound is never below the error, and it is close to it if the preconditioner is good. It holds
# after any number of products, so even an interrupted fit is a result with a known error.
#
# **Try it.** The score in ``mercer explore --demo`` is the leave-one-out score of ridge
# (:doc:`/how-to/explore`).
