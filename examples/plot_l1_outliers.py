"""
L1 against L2: principal components under outliers
==================================================

Ordinary PCA maximises a sum of squares, so a few far points can turn an axis. Kernel PCA-L1
maximises a sum of absolute values instead ([NPT] section IV-D). Both work in any feature space. The
first picture has a linear kernel, the second a quadratic one.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelPCA, KernelPCAL1, Linear, Polynomial

rng = np.random.default_rng(2)
X = rng.normal(size=(80, 2)) @ np.diag([1.6, 0.35])
X = X @ np.array([[0.94, 0.34], [-0.34, 0.94]])
outliers = np.array([[-5.0, 6.5], [-4.4, 7.4], [-5.8, 7.0]])
dirty = np.vstack([X, outliers])


def axis(model, data):
    """The first direction in the plane, of a linear kernel."""
    scores = model.fit(data).transform(np.vstack([np.eye(2), np.zeros((1, 2))]))[:, 0]
    direction = scores[:2] - scores[2]
    return direction / np.linalg.norm(direction)


truth = axis(KernelPCA(1, Linear()), X)
fig, ax = plt.subplots(figsize=(5.6, 4))
ax.scatter(*X.T, s=10, color="grey")
ax.scatter(*outliers.T, s=36, marker="x", color="grey", label="three outliers")
for model, colour, name in (
    (KernelPCA(1, Linear()), "#D55E00", "L2"),
    (KernelPCAL1(1, Linear(), random_state=0), "#0072B2", "L1"),
):
    v = axis(model, dirty)
    angle = np.degrees(np.arccos(min(1.0, abs(v @ truth))))
    ax.plot(*np.outer(v, [-9, 9]), color=colour, lw=2, label=f"{name}: {angle:.0f}° off")
ax.plot(*np.outer(truth, [-9, 9]), color="grey", lw=1, ls="--", label="without outliers")
ax.set(xlim=(-7, 7), ylim=(-4.5, 8), aspect="equal", title="first axis, linear kernel")
ax.legend(loc="upper right")
plt.show()

# %%
# In the space of a quadratic kernel: one outlier moves further and further away. How much does it
# change the scores of the *other* points? Agreement is the absolute correlation between their
# scores with and without the outlier.

clean = {
    name: model.fit_transform(X)[:, 0]
    for name, model in (
        ("L2", KernelPCA(1, Polynomial(2, gamma=0.2))),
        ("L1", KernelPCAL1(1, Polynomial(2, gamma=0.2), random_state=0)),
    )
}
distances = np.linspace(0, 12, 13)
fig, ax = plt.subplots(figsize=(5.6, 3))
for name, colour in (("L2", "#D55E00"), ("L1", "#0072B2")):
    agreement = []
    for distance in distances:
        one = np.vstack([X, distance * np.array([[-0.6, 0.8]])])
        model = (
            KernelPCA(1, Polynomial(2, gamma=0.2))
            if name == "L2"
            else KernelPCAL1(1, Polynomial(2, gamma=0.2), random_state=0)
        )
        scores = model.fit(one).transform(X)[:, 0]
        agreement.append(abs(np.corrcoef(scores, clean[name])[0, 1]))
    ax.plot(distances, agreement, "o-", ms=4, color=colour, label=name)
ax.set(xlabel="distance of one outlier", ylabel="agreement", ylim=(0, 1.05))
ax.set_title("first component, quadratic kernel")
ax.legend()
plt.show()
