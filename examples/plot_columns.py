"""
One kernel for a table with columns of several kinds
====================================================

Hours are periodic, temperatures are near or far, places are the same or not. Each group of columns
gets the kernel that suits it, and sums and products say how the groups work together (rules 9 and
10 of [KERNELS]).
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import cross_val_score

from mercer import RBF, FromFunction, KernelRidge, OnColumns, Periodic

# %%
# Rented bicycles: two peaks per day at the station, one at the lake, more when it is warm.

rng = np.random.default_rng(0)
n = 500
table = pd.DataFrame(
    {
        "hour": rng.uniform(0, 24, n),
        "warmth": rng.uniform(-5, 30, n),
        "place": rng.choice(["station", "lake"], n),
    }
)


def demand(t):
    commute = np.exp(-((t.hour - 8) ** 2) / 3) + np.exp(-((t.hour - 17.5) ** 2) / 5)
    leisure = 1.3 * np.exp(-((t.hour - 15) ** 2) / 14)
    shape = np.where(t.place == "station", commute, leisure)
    return 40 * shape * (0.4 + 0.6 / (1 + np.exp(-(t.warmth - 12) / 4)))


rented = demand(table) + 2 * rng.normal(size=n)


def same(a, b):
    return float(a == b)


# %%
# Three kernels with more and more knowledge. A product means *and*: two rows are similar if the
# hour and the warmth and the place are similar.

hour = OnColumns(Periodic(period=24.0, length_scale=0.7), "hour")
warmth = OnColumns(RBF(0.005), "warmth")
place = OnColumns(FromFunction(same), "place")
kernels = {
    "hour": hour,
    "hour + warmth + place": hour + warmth + place,
    "hour * warmth * place": hour * warmth * place,
}
for name, kernel in kernels.items():
    scores = cross_val_score(KernelRidge(0.1, kernel), table[:250], rented[:250], cv=3)
    print(f"{name:24} R² {scores.mean():.3f}")

# %%
# What the model has learned, for each place. White dots are the data.

model = KernelRidge(0.1, kernels["hour * warmth * place"]).fit(table, rented)
hours, degrees = np.linspace(0, 24, 37), np.linspace(-5, 30, 22)
grid = np.meshgrid(hours, degrees)
fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True)
for ax, where in zip(axes, ("station", "lake")):
    asked = pd.DataFrame({"hour": grid[0].ravel(), "warmth": grid[1].ravel(), "place": where})
    value = model.predict(asked).reshape(22, 37)
    drawn = ax.contourf(
        hours, degrees, value, levels=np.linspace(-2, 54, 15), cmap="cividis", extend="both"
    )
    here = table[table.place == where]
    ax.plot(here.hour, here.warmth, ".", color="white", ms=2)
    ax.set(title=where, xlabel="hour", xticks=[0, 6, 12, 18, 24])
axes[0].set_ylabel("degrees")
fig.colorbar(drawn, ax=axes, label="bicycles per hour", ticks=[0, 20, 40])
plt.show()
