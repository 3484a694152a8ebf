"""
Removing noise from digits with kernel PCA
==========================================

Images of digits lie near a curved surface, and noise moves them away from it. Projecting onto the
leading kernel principal components moves a digit back, and a pre-image turns the result into an
image again. Linear PCA projects onto a plane instead: it helps as well, but less. Both have about
as many components as are best for them on these ten images.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from mercer import RBF, KernelPCA, preimage

X, digit = load_digits(return_X_y=True)
X = X / 16
rng = np.random.default_rng(0)
train, test = X[:600], np.stack([X[600:][digit[600:] == d][1] for d in range(10)])
noisy = test + 0.35 * rng.normal(size=test.shape)

pca = PCA(12).fit(train)
kernel_pca = KernelPCA(30, RBF(0.06)).fit(train)
rows = {
    "original": test,
    "with noise": noisy,
    "linear PCA": pca.inverse_transform(pca.transform(noisy)),
    "kernel PCA": preimage(kernel_pca, kernel_pca.transform(noisy), "fixed-point"),
}

# %%
# The pre-image by fixed-point iteration is a combination of training digits whose weights add up to
# one (a few are negative). So it looks like a digit, but sometimes like the wrong one, if the noise
# has hidden the right one.

fig, axes = plt.subplots(4, 10, figsize=(9, 4))
fig.suptitle("ten digits: original, with noise, and two ways to remove it")
for line, (name, images) in zip(axes, rows.items()):
    for ax, image in zip(line, images):
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    line[0].set_ylabel(name, rotation=0, ha="right", va="center")
plt.show()

for name, images in rows.items():
    print(f"{name:12} distance from the original {np.sqrt(((images - test) ** 2).mean()):.3f}")
