"""The methods on coordinates: the only place where the comparison meets them.

On coordinates a linear kernel is all there is to do; none of the methods cares which orthonormal
basis it gets.
"""

import warnings

import numpy as np

from ..methods.discriminant import KernelDiscriminant
from ..methods.pca import KernelPCA
from ..methods.ridge import KernelRidgeCV


def components(Phi):
    """A function giving scores on the (at most two) leading components."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a flat space has columns of zeros, and may be looked at
        return KernelPCA(min(2, *Phi.shape), kernel="linear", random_state=0).fit(Phi).transform


def discriminant(Phi, codes, n_components=None):
    """Fisher's; where classes have no spread at all, its limit: the nearest class mean."""
    classes, places = np.unique(codes, return_inverse=True)
    means = np.stack([Phi[codes == c].mean(axis=0) for c in classes])
    if len(classes) == 1 or np.array_equal(Phi, means[places]):
        return NearestMean(Phi, classes, means)
    return KernelDiscriminant(n_components, kernel="linear").fit(Phi, codes)


class NearestMean:
    """Classes that are points, or one class alone."""

    def __init__(self, Phi, classes, means):
        self.classes, self.means, self.transform = classes, means, components(Phi)

    def predict(self, Phi):
        # |phi - m|^2 less the |phi|^2 common to all classes
        nearest = np.argmin((self.means**2).sum(axis=1) - 2 * Phi @ self.means.T, axis=1)
        return self.classes[nearest]


def ridge(Phi, y, alphas):
    """Predictions by ridge, its penalty chosen by leave-one-out; means are taken off first."""
    mean, centre = y.mean(), Phi.mean(axis=0)
    model = KernelRidgeCV(alphas, kernel="linear").fit(Phi - centre, y - mean)
    return lambda Phi_new: model.predict(Phi_new - centre) + mean
