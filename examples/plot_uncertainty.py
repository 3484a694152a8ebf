"""
Ridge regression that knows what it does not know
=================================================

Kernel ridge regression is the mean of a Gaussian process whose noise has variance alpha. Its
uncertainty comes from the same map. One part is due to the noise. The other is the residual
:math:`\\rho^2(z)`, the part of a new point that the data do not explain. The band is right only as
far as alpha is the variance of the noise and the function is one that the kernel expects.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import RBF, KernelRidge, Periodic

# %%
# Ten years of a quantity that grows and has a season. Two years of measurements are missing, and
# three are to be predicted.

rng = np.random.default_rng(0)
t = np.sort(rng.uniform(0, 10, 170))
t = t[(t < 5) | (t > 7)]
truth = lambda t: 0.25 * t + 0.03 * t**2 + 0.8 * np.sin(2 * np.pi * t)  # noqa: E731
noise = 0.3  # known here; `KernelRegressor` estimates it
y = truth(t) + noise * rng.normal(size=len(t))
mean = y.mean()

models = {
    "RBF": 4.0 * RBF(2.0),
    "trend + season": 25.0 * RBF(0.01) + Periodic(period=1.0, length_scale=1.0),
}

# %%
# A plain RBF kernel returns to the mean where there are no data, and its wide band says so. The sum
# of a slow trend and a season continues the season across the gap and into the future, with a much
# narrower band. The titles say how much of the truth is inside: among the data, and everywhere.
# Beyond the data the RBF's band is too narrow, since the true trend leaves what it expects. (An
# alpha chosen by the leave-one-out error would predict as well, but it is not the noise: with it
# the RBF's band holds 60 % of the truth among the data.)

z = np.linspace(-0.3, 13, 400)
seen = ((z > 0) & (z < 5)) | ((z > 7) & (z < 10))
fig, axes = plt.subplots(2, 1, figsize=(8.5, 5.2), sharex=True, sharey=True)
for ax, (name, kernel) in zip(axes, models.items()):
    model = KernelRidge(noise**2, kernel).fit(t[:, None], y - mean)
    value, std = model.predict(z[:, None], return_std=True)
    ax.plot(z, truth(z), color="grey", lw=1, ls="--", label="truth")
    ax.fill_between(
        z, value + mean - 2 * std, value + mean + 2 * std, color="#0072B2", alpha=0.2, lw=0
    )
    ax.plot(z, value + mean, color="#0072B2", lw=1.5, label="prediction, ± 2 std")
    ax.plot(t, y, ".", color="grey", ms=3.5)
    inside = np.abs(value + mean - truth(z)) < 2 * std
    shares = f"{inside[seen].mean():.0%} inside among the data, {inside.mean():.0%} everywhere"
    ax.set(title=f"{name}: {shares}", ylim=(-4, 11))
axes[0].legend(loc="upper left", ncols=2)
axes[1].set_xlabel("years")
plt.show()
