"""
A million points, certified
===========================

The kernel matrix of a million points would take 8000 gigabytes. A map needs only a few hundred of
its columns. Landmarks are found on a sample, then every row is read, and rows with an error above
the tolerance become landmarks, too. In the end the error of each of the million rows is known.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import SGDClassifier

from mercer import RBF, Chunks, KernelMap

# %%
# Rows come in chunks
# -------------------
# They may come from a file, a database or, as here, a generator. The only condition is that they
# can be read again, so :class:`~mercer.Chunks` accepts a function that opens the data.


def galaxy(chunk):
    """Two spiral arms, 100 000 stars at a time."""
    rng = np.random.default_rng(chunk)
    arm = rng.integers(0, 2, 100_000)
    turn = rng.gamma(3.0, 0.7, 100_000)
    spread = 0.12 + 0.05 * turn
    angle = 1.4 * turn + np.pi * arm
    stars = 0.45 * turn[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return stars + spread[:, None] * rng.normal(size=(100_000, 2)) * 0.6, arm


stars = Chunks(lambda: (galaxy(chunk)[0] for chunk in range(10)))
kernel_map = KernelMap(RBF(2.5), tol=0.03).fit(stars)
print(f"{kernel_map.n_samples_seen_:,} rows, {kernel_map.rank_} landmarks")
print(f"largest residual of any row: {kernel_map.max_residual_:.1e}")

# %%
# Learning from a stream
# ----------------------
# Coordinates are ordinary columns, so anything with `partial_fit` learns from them chunk by chunk.

model = SGDClassifier(loss="log_loss", alpha=1e-6, random_state=0)
for chunk in range(3):
    X, arm = galaxy(chunk)
    model.partial_fit(kernel_map.transform(X), arm, classes=[0, 1])
X, arm = galaxy(99)
print(f"accuracy on new stars: {model.score(kernel_map.transform(X[:20000]), arm[:20000]):.3f}")

# %%
# On the left, the galaxy and its landmarks. They lie where the map needs them, also at the far and
# empty edge. On the right, the arm to which the model assigns every place.

everyone = np.concatenate([galaxy(chunk)[0] for chunk in range(3)])
line = np.linspace(-3.2, 3.2, 120)
plane = np.column_stack([g.ravel() for g in np.meshgrid(line, line)])
fig, axes = plt.subplots(1, 2, figsize=(8, 4.4), sharex=True, sharey=True)
bins = np.linspace(-3.2, 3.2, 260)
counts = np.histogram2d(*everyone.T, bins=[bins, bins])[0].T
axes[0].imshow(np.log1p(counts), origin="lower", extent=(-3.2, 3.2, -3.2, 3.2), cmap="magma")
axes[0].scatter(*kernel_map.landmarks_.T, s=7, color="#56B4E9", linewidths=0)
axes[0].set_title(f"stars, and {kernel_map.rank_} landmarks")
probability = model.predict_proba(kernel_map.transform(plane))[:, 1].reshape(120, 120)
axes[1].imshow(
    probability, origin="lower", extent=(-3.2, 3.2, -3.2, 3.2), cmap="PuOr", vmin=0, vmax=1
)
axes[1].set_title("which arm? learned chunk by chunk")
for ax in axes:
    ax.set(xlim=(-3.2, 3.2), ylim=(-3.2, 3.2), xticks=[], yticks=[])
plt.show()
