"""
A kernel learned from data
==========================

The target depends on one diagonal direction in two of ten columns. A plain kernel treats all
columns alike and predicts almost nothing; the learned kernel finds the direction.
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
# The error falls from step to step, and in the end only two columns matter.

errors, shares = learned.plot()
errors.set(title="the error of each step")
shares.set(title="the columns that matter")
plt.show()

# %%
# The target, drawn against one of the two columns and against the main direction of the learned
# metric. On the right the target is a function of that one number.

direction = X @ learned.directions[:, 0]
figure, axes = plt.subplots(1, 2, figsize=(8, 3.8), sharey=True, layout="constrained")
for axis, values, name in (
    (axes[0], X[:, 0], "column 0"),
    (axes[1], direction, "the learned direction"),
):
    axis.scatter(values, y, s=12, color="#0072B2")
    axis.set(xlabel=name, title=f"the target against {name}")
axes[0].set(ylabel="target")
plt.show()
