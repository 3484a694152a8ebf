"""First steps: which similarities are kernels, and how well do they suit the digits?

For several similarities between handwritten digits this prints whether they are kernels, the
dimension of the space that the data span, and the alignment with the labels. The alignment is the
cosine, after centring, between the kernel matrix and the matrix that is 1 for pairs of the same
digit. For similarities that are not kernels it prints a proof. In the end it shows coordinates of a
finite feature space.
"""

import numpy as np
from sklearn.datasets import load_digits

from mercer import (
    RBF,
    FromFunction,
    Intersection,
    Laplacian,
    Linear,
    Normalized,
    Polynomial,
    Sigmoid,
    check_mercer,
)

pixels, digits = load_digits(return_X_y=True)
X, y = pixels[:600] / 16.0, digits[:600]


def alignment(K, y):
    """How well a kernel agrees with the classes: 1 is perfect, 0 is chance."""
    same = (y[:, None] == y[None, :]).astype(float)
    H = np.eye(len(y)) - 1 / len(y)
    A, B = H @ K @ H, H @ same @ H
    return (A * B).sum() / np.sqrt((A * A).sum() * (B * B).sum())


def ink_in_common(A, B):
    """A similarity someone might invent: pixels inked in both, minus pixels inked in one."""
    a, b = (A > 0.5).astype(float), (B > 0.5).astype(float)
    return 2 * a @ b.T - a @ (1 - b).T - (1 - a) @ b.T


KERNELS = {
    "linear": Linear(),
    "quadratic": Polynomial(degree=2),
    "RBF, gamma from the data": RBF(),
    "Laplacian (L1)": Laplacian(),
    "histogram intersection": Intersection(),
    "a product and a sum": RBF() * Normalized(Linear()) + 0.1 * Polynomial(degree=2, gamma=1 / 64),
    "sigmoid": Sigmoid(gamma=1.0, coef0=-1.0),
    "invented: ink in common": FromFunction(ink_in_common, vectorized=True),
}


def main():
    print(f"{len(X)} digits of {X.shape[1]} pixels\n")
    print(f"{'similarity':<26}{'valid?':<18}{'rank':>5}{'alignment':>11}")
    refuted = []
    for name, kernel in KERNELS.items():
        report = check_mercer(kernel, X)
        valid = "by construction" if kernel.is_psd else "not refuted" if report else "no"
        score = alignment(report.kernel(X), y)
        print(f"{name:<26}{valid:<18}{report.rank:>5}{score:>11.3f}")
        if not report:
            refuted.append(report)

    print("\nWhy not? A vector a with a'Ka < 0 proves it:\n")
    for report in refuted:
        print(report, "\n")

    kernel = Polynomial(degree=2)
    F = kernel.explicit(X[:, 20:24])
    error = np.abs(F @ F.T - kernel(X[:, 20:24])).max()
    print(f"{kernel!r} of 4 pixels has a space of {F.shape[1]} dimensions, here as coordinates:")
    print(f"their inner products are the kernel to {error:.0e}.")


if __name__ == "__main__":
    main()
