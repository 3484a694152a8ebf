"""
Novelty: what the training data cannot explain
==============================================

The residual :math:`\\rho^2(z) = k(z, z) - |\\varphi(z)|^2` is the part of a new point that no
combination of training points reproduces ([NPT] Lemma 5). So a fitted map can tell that a point is
unlike everything it was fitted to, and no extra model is needed.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from mercer import RBF, KernelMap, ResidualDisplay

# %%
# In the plane
# ------------
# The residual is large (yellow) away from the data. Forty landmarks (circles) are enough for this
# map.

rng = np.random.default_rng(0)
angle = rng.uniform(0, 1.6 * np.pi, 250)
X = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.08 * rng.normal(size=(250, 2))
kernel_map = KernelMap(RBF(6.0), max_rank=40).fit(X)
ResidualDisplay.from_estimator(kernel_map, X, title="a ring with a gap").plot()
plt.show()

# %%
# On digits
# ---------
# A map is fitted to the digits 0 to 8, and then sees nines. Their residuals are mostly larger than
# those of new digits from 0 to 8. The digits with the largest residuals are unusual indeed.

images, digit = load_digits(return_X_y=True)
images = images / 16
known, strange = images[digit < 9], images[digit == 9]
# With 300 landmarks digits of the fit have a residual, too; with an exact map it would be 0.
kernel_map = KernelMap(RBF(0.15), max_rank=300).fit(known[:1000])
score_known, score_strange = kernel_map.residual(known[1000:]), kernel_map.residual(strange)
scores = np.concatenate([score_known, score_strange])
area = roc_auc_score(np.repeat([0, 1], [len(score_known), len(score_strange)]), scores)

fig = plt.figure(figsize=(8, 3.6))
left, right = fig.subfigures(1, 2, width_ratios=[1, 1])
ax = left.subplots()
bins = np.linspace(0, scores.max(), 32)
ax.hist(score_known, bins, color="#0072B2", alpha=0.7, density=True, label="new digits 0 to 8")
ax.hist(score_strange, bins, color="#D55E00", alpha=0.7, density=True, label="nines")
ax.set(xlabel=r"residual $\rho^2$", yticks=[], title=f"area under the ROC curve {area:.2f}")
ax.legend()
axes = right.subplots(2, 6)
everything = np.vstack([known[1000:], strange])
for line, order, name in (
    (axes[0], np.argsort(scores), "best explained"),
    (axes[1], np.argsort(-scores), "least explained"),
):
    for ax, i in zip(line, order):
        ax.imshow(everything[i].reshape(8, 8), cmap="gray_r")
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    line[0].set_title(name)
plt.show()
