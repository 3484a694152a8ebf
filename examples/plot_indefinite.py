"""
A similarity that is not a kernel, and what to do about it
==========================================================

Similarities that people invent are often not kernels: their matrix has negative eigenvalues, and
then there is no feature space. :func:`~mercer.check_mercer` finds this out and shows a witness, a
combination of points whose squared length would be negative. :class:`~mercer.KernelMap` refuses the
matrix, or repairs it in the way you choose and reports what it changed.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mercer import FeatureSpaceDisplay, KernelMap, KernelPCA, NotPSDError, Precomputed, check_mercer

images, digit = load_digits(n_class=4, return_X_y=True)
X, digit = images[:240].reshape(-1, 8, 8), digit[:240]

# %%
# The best match under shifts: slide one image over the other by up to one pixel, and take the
# largest overlap. This is sensible and popular, but not a kernel: the maximum of several kernels
# need not be a kernel.


def shifted(images, down, right):
    moved = np.roll(images, (down, right), axis=(1, 2))
    return moved.reshape(len(images), -1)


moves = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
flat = shifted(X, 0, 0)
length = np.linalg.norm(flat, axis=1)
S = np.max([shifted(X, *m) @ flat.T for m in moves], axis=0) / np.outer(length, length)
S = np.maximum(S, S.T) ** 4
print(check_mercer(Precomputed(), S))
try:
    KernelMap("precomputed").fit(S)
except NotPSDError as error:
    print("\nKernelMap:", error)

# %%
# Three repairs
# -------------
# Drop the negative eigenvalues ("clip"), take their absolute values ("flip"), or raise the diagonal
# until none is left ("shift"). All give valid coordinates; they differ in what they change.

values = np.linalg.eigvalsh(S)[::-1]
fig, axes = plt.subplots(2, 2, figsize=(8, 7.4))
axes = axes.ravel()
axes[0].plot(np.maximum(values, 0), color="#0072B2")
axes[0].plot(np.minimum(values, 0), color="#D55E00")
axes[0].set_yscale("symlog", linthresh=0.01)
axes[0].set_yticks([-1, -0.01, 0, 0.01, 1, 100], ["-1", "-0.01", "0", "0.01", "1", "100"])
axes[0].set(title=f"{(values < -1e-9).sum()} of 240 eigenvalues are negative", xlabel="number")
for ax, repair in zip(axes[1:], ("clip", "flip", "shift")):
    kernel_map = KernelMap("precomputed", indefinite=repair)
    Phi = kernel_map.fit_transform(S)
    changed = np.abs(Phi @ Phi.T - S).max()
    scores = KernelPCA(2, KernelMap("precomputed", indefinite=repair)).fit_transform(S)
    FeatureSpaceDisplay(scores, digit, title=f"{repair}: changes up to {changed:.2f}").plot(
        ax, legend=repair == "clip", size=16
    )
    ax.set(xticks=[], yticks=[])
    ax.set_aspect("equal", adjustable="datalim")
share = kernel_map.correction_["share"]
print(f"negative share of the sum of all absolute eigenvalues: {share:.1%}")
plt.show()
