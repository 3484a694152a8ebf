"""
A kernel learned from data
==========================

Ten columns, and a target that depends on one diagonal direction of two of them. The plain kernel
looks at all columns alike and sees almost nothing; the learned one finds the direction.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import learn_kernel

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 10))
y = np.sin(2 * (X[:, 0] + X[:, 1])) + 0.05 * rng.normal(size=600)
learned = learn_kernel(X, y, random_state=0)
print(learned)

# %%
# The error falls round by round, and two columns share the metric.

learned.plot()

# %%
# Two columns as they are, and the two longest directions of the learned metric: on the right the
# target is a function of one axis.

Z = X @ learned.directions[:, :2] * learned.direction_lengths[:2]
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for axis, points, title in (
    (axes[0], X[:, 2:4], "two of the columns"),
    (axes[1], Z, "the learned space"),
):
    axis.scatter(*points.T, c=y, s=12, cmap="viridis")
    axis.set(title=title, aspect="equal")
plt.show()
