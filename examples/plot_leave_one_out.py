"""
Leave-one-out for every alpha, for the price of one fit
=======================================================

How strong should the penalty be? Leaving out each row in turn gives the least biased answer, and
usually the most expensive one. For ridge regression there is a formula: with explicit coordinates,
one eigendecomposition is enough for all rows and all alphas. Here are the curves for four kernel
widths and 60 alphas each. One by one, that would take 240 times 150 fits.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import RBF, KernelRidge, KernelRidgeCV

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 6, 150))[:, None]
y = np.sin(2 * x[:, 0]) * np.exp(-x[:, 0] / 5) + 0.2 * rng.normal(size=150)
alphas = np.logspace(-6, 2, 60)

models = {gamma: KernelRidgeCV(alphas, RBF(gamma)).fit(x, y) for gamma in (0.01, 0.3, 3.0, 100.0)}
for gamma, chosen in models.items():
    print(f"gamma {gamma:<6} alpha {chosen.alpha_:.1e}")

# %%
# The formula gives the same number as 150 separate fits. Here this is checked for one of the 240:

model = KernelRidge(0.1, RBF(3.0))
left_out = [
    model.fit(np.delete(x, i, axis=0), np.delete(y, i)).predict(x[i : i + 1])[0] for i in range(150)
]
slow = np.mean((y - left_out) ** 2)
fast = KernelRidgeCV([0.1], RBF(3.0)).fit(x, y).cv_errors_[0]
print(f"one by one {slow:.12f}, formula {fast:.12f}")

# %%
# The widest kernel cannot overfit and needs no penalty, but its functions are too smooth: it
# predicts worst. The narrowest needs a strong penalty, and still predicts worse than the two
# between. The dots are the chosen alphas.

fig, axes = plt.subplots(1, 2, figsize=(8, 3.8))
z = np.linspace(0, 6, 300)[:, None]
for (gamma, model), colour in zip(models.items(), ("#999999", "#009E73", "#0072B2", "#D55E00")):
    axes[0].loglog(alphas, model.cv_errors_, color=colour, label=f"gamma = {gamma:g}")
    axes[0].plot(model.alpha_, -model.best_score_, "o", color=colour)
    axes[1].plot(z, model.predict(z), color=colour, lw=1.3)
axes[0].set(xlabel="alpha", ylabel="leave-one-out error", ylim=(0.03, 1))
axes[0].legend()
axes[1].plot(x, y, ".", color="grey", ms=4, zorder=0)
axes[1].set(title="the four functions chosen", xlabel="x")
plt.show()
