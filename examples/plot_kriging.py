"""
A map from a million noisy points
=================================

Places on a map have two columns. There a stationary kernel (a function of the difference of two
places) can be written as cosines and sines on a grid of frequencies. Kernel ridge in these
coordinates needs a few sums over the rows, for any number of rows. The prediction is the map, and
its standard deviation says where to trust it.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import RBF, KernelMap, KernelRidge

# %%
# A field on the unit square is measured at a million places, with noise eight times as large as the
# field. There are no measurements inside the circle, and few in the east. (So many rows need the
# extra ``mercer[fourier]``.)

n = 3_000_000
rng = np.random.default_rng(0)
X = rng.uniform(size=(n, 2))
X = X[rng.uniform(size=n) < 1.02 - X[:, 0] ** 0.5]
X = X[np.hypot(X[:, 0] - 0.35, X[:, 1] - 0.55) > 0.15]


def field(X):
    return np.sin(7 * X[:, 0] + 3 * X[:, 1] ** 2) + np.cos(9 * X[:, 1] - 4 * X[:, 0])


y = field(X) + 8 * rng.normal(size=len(X))
kernel_map = KernelMap(RBF(gamma=50.0), basis="fourier", tol=1e-6, box=[(0, 1), (0, 1)])
model = KernelRidge(alpha=64.0, kernel=kernel_map).fit(X, y)

# %%
# The measurements, the true field, the map, and its uncertainty.

side = np.linspace(0, 1, 90)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
value, std = model.predict(grid, return_std=True)

fig, axes = plt.subplots(2, 2, figsize=(8, 7), sharex=True, sharey=True, layout="compressed")
some = rng.permutation(len(X))[:6000]
axes[0, 0].scatter(*X[some].T, c=y[some], s=2, cmap="RdBu_r", vmin=-20, vmax=20)
axes[0, 0].set(title=f"6000 of {len(X):,} points", xlim=(0, 1), ylim=(0, 1), aspect="equal")
for ax, values, title, colours in (
    (axes[0, 1], field(grid), "the truth", {"cmap": "RdBu_r", "vmin": -2, "vmax": 2}),
    (axes[1, 0], value, "the map", {"cmap": "RdBu_r", "vmin": -2, "vmax": 2}),
    (axes[1, 1], std, "its standard deviation", {"cmap": "viridis", "vmin": 0}),
):
    drawn = ax.imshow(values.reshape(90, 90), extent=(0, 1, 0, 1), origin="lower", **colours)
    ax.set_title(title)
    fig.colorbar(drawn, ax=ax, shrink=0.85).locator = plt.MaxNLocator(4)
plt.show()

# %%
# On average, the error is as large as the standard deviation says:

ratio = (value - field(grid)) / std
print(f"root mean square of error / std: {np.sqrt(np.mean(ratio**2)):.2f}")

# %%
# A time series works in the same way, with one column: see :doc:`plot_series`.
