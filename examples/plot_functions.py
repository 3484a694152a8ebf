"""
What a kernel expects: functions drawn from its space
=====================================================

Before it has seen any data, a model with a kernel already expects a certain kind of function:
smooth or rough, periodic or not. Coordinates make this visible, because a random vector :math:`w`
gives a random function :math:`w \\cdot \\varphi(x)`.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import (
    RBF,
    KernelMap,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
)

x = np.linspace(-3, 3, 200)[:, None]
kernels = {
    "RBF(1)": RBF(1.0),
    "Matern(1.5): one derivative": Matern(nu=1.5),
    "Laplacian(1): no derivative": Laplacian(1.0),
    "RationalQuadratic(0.3): many scales": RationalQuadratic(alpha=0.3, length_scale=0.5),
    "Periodic(period=1.5)": Periodic(period=1.5),
    "Polynomial(3)": Polynomial(degree=3, gamma=0.5),
    "Linear() + 0.5 * RBF(4)": Linear() + 0.5 * RBF(4.0),
    "Linear() * Periodic(1.5)": Linear() * Periodic(period=1.5),
    "Periodic * RBF: a season that changes": Periodic(period=1.0) * RBF(0.3),
}

# %%
# Three functions for each kernel, and in grey the similarity to the point 0.5. A draw from a sum of
# kernels is a sum of independent draws. A draw from a product of kernels is not a product of draws:
# that would not be Gaussian. But the covariances are multiplied, so a draw varies where a draw from
# either factor does: a season whose shape changes, or one that grows.

rng = np.random.default_rng(5)
fig, axes = plt.subplots(5, 2, figsize=(8, 9.5), sharex=True)
for ax, (name, kernel) in zip(axes.ravel(), kernels.items()):
    Phi = KernelMap(kernel, tol=1e-10).fit_transform(x)
    functions = Phi @ rng.normal(size=(Phi.shape[1], 3))
    similarity = kernel(x, [[0.5]])[:, 0]
    height = np.abs(functions).max() / np.abs(similarity).max()
    ax.fill_between(x[:, 0], height * similarity, color="grey", alpha=0.35, lw=0)
    ax.plot(x, functions, lw=1.4)
    ax.set(title=name, yticks=[])
    ax.set_title(f"rank {Phi.shape[1]}", loc="right", fontsize="small")
axes[-1, -1].axis("off")
axes[-2, -1].tick_params(labelbottom=True)
plt.show()
