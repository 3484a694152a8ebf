"""
A time series with ten million samples
======================================

A sensor is read about every two seconds, for 200 days. A Gaussian process fits all samples at once,
since in one column a kernel is a short sum of cosines and sines (see :doc:`/how-to/maps`).
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelMap, KernelRidge, Matern, Periodic

# %%
# The temperature rises and falls every day, and it wanders with the weather. The sensor is poor:
# its noise has a standard deviation of 3 degrees. It failed for six days. (So many rows need the
# extra ``mercer[fourier]``.)

n, days = 10_000_000, 200
rng = np.random.default_rng(0)
hours = np.arange(24 * days + 1) / 24
wandering = np.convolve(rng.normal(size=len(hours) + 95), np.hanning(96), mode="valid")


def temperature(t):
    return 2.5 * np.sin(2 * np.pi * t) + np.sin(4 * np.pi * t) / 2 + np.interp(t, hours, wandering)


t = np.sort(rng.uniform(0, days, n))
t = t[(t < 80) | (t > 86)]
y = temperature(t) + 3 * rng.normal(size=len(t))

# %%
# The weather has a Matern kernel with a length of a day and a half, the day a periodic one.
# ``alpha`` is the variance of the noise.

kernel = 30.0 * Matern(1.5, length_scale=1.5) + 4.0 * Periodic(length_scale=1.0, period=1.0)
kernel_map = KernelMap(kernel, basis="fourier", tol=1e-4)
start = time.perf_counter()
model = KernelRidge(alpha=9.0, kernel=kernel_map).fit(t[:, None], y)
seconds = time.perf_counter() - start
print(f"{len(t):,} samples, {model.kernel_map_.rank_} coordinates: {seconds:.1f} s")

# %%
# All days, the days around the failure, and two days of the raw samples. Where there are samples,
# the prediction is known to a tenth of a degree; in the gap the daily pattern goes on, and the
# uncertainty shows what the weather may have done.

fig, axes = plt.subplots(3, 1, figsize=(8, 8), layout="constrained")
for ax, (low, high), title in zip(
    axes,
    [(0, 200), (75, 91), (150, 152)],
    [
        f"{len(t):,} samples in 200 days",
        "six days without samples",
        "two days, and what was measured",
    ],
):
    ahead = np.linspace(low, high, 500)
    value, std = model.predict(ahead[:, None], return_std=True)
    some = rng.permutation(np.flatnonzero((t > low) & (t < high)))[:8000]
    ax.plot(t[some], y[some], ".", color="grey", alpha=0.35, ms=1.5, label="measured (some)")
    ax.fill_between(ahead, value - 2 * std, value + 2 * std, color="#0072B2", alpha=0.3, lw=0)
    ax.plot(ahead, value, color="#0072B2", lw=1.2, label="prediction ± 2 std")
    ax.plot(ahead, temperature(ahead), color="grey", lw=0.8, ls="--", label="truth")
    ax.set(title=title, xlim=(low, high), ylabel="degrees")
axes[0].legend(loc="upper left", ncols=3, markerscale=4)
axes[-1].set_xlabel("days")
plt.show()

# %%
# Away from the gap, and inside it:

for name, ahead in [
    ("with samples", np.linspace(90, 195, 900)),
    ("in the gap", np.linspace(81, 85)),
]:
    value, std = model.predict(ahead[:, None], return_std=True)
    error = np.abs(value - temperature(ahead))
    print(f"{name}: mean error {error.mean():.2f}, mean std {std.mean():.2f} degrees")
