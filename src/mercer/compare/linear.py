"""The methods on coordinates: the only place where the comparison meets them.

On coordinates a linear kernel is all there is to do; none of the methods cares which orthonormal
basis it gets.
"""

import warnings

from ..methods.discriminant import KernelDiscriminant
from ..methods.pca import KernelPCA
from ..methods.ridge import KernelRidgeCV


def components(Phi):
    """A function giving scores on the (at most two) leading components."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a flat space has columns of zeros, and may be looked at
        return KernelPCA(min(2, *Phi.shape), kernel="linear", random_state=0).fit(Phi).transform


def discriminant(Phi, codes, n_components=None):
    return KernelDiscriminant(n_components, kernel="linear").fit(Phi, codes)


def ridge(Phi, y, alphas):
    """Predictions by ridge, its penalty chosen by leave-one-out; means are taken off first."""
    mean, centre = y.mean(), Phi.mean(axis=0)
    model = KernelRidgeCV(alphas, kernel="linear").fit(Phi - centre, y - mean)
    return lambda Phi_new: model.predict(Phi_new - centre) + mean
