"""
Novelty: what the training data cannot explain
==============================================

The residual :math:`\\rho^2(z) = k(z, z) - |\\varphi(z)|^2` is the part of a new point that no
combination of training points reproduces ([NPT] Lemma 5). No extra model is fitted: the map that
was there anyway tells when it is asked about something it has never seen.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from mercer import RBF, KernelMap, ResidualDisplay

# %%
# In the plane
# ------------
# Bright where the map knows nothing. Forty landmarks (ringed) are enough to know the rest.

rng = np.random.default_rng(0)
angle = rng.uniform(0, 1.6 * np.pi, 250)
X = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.08 * rng.normal(size=(250, 2))
kernel_map = KernelMap(RBF(6.0), max_rank=40).fit(X)
ResidualDisplay.from_estimator(kernel_map, X, title="a ring with a gap").plot()
plt.show()

# %%
# On digits
# ---------
# A map of the digits 0 to 8 is shown nines as well. The residual tells most of them apart, and the
# least explained of all are odd indeed.

images, digit = load_digits(return_X_y=True)
images = images / 16
known, strange = images[digit < 9], images[digit == 9]
# The map keeps 300 landmarks: with a small tolerance everything known is explained to rounding,
# and with few landmarks the residual is graded.
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
