"""Spaces that are no Cholesky factor, with the same interface: a kernel's own finite map, and
explicit weights on all training points (a corrected similarity)."""

import numpy as np

from ..engine import tiles
from ..engine.arrays import namespace


class Closed:
    """The kernel's own feature map: no landmarks, no training data."""

    S = None
    indices = None

    def __init__(self, kernel, rank, example):
        self.kernel = kernel
        self.rank = rank
        self.example = example  # one training point: rounding depends on its columns
        self.dtype = example.dtype

    def coordinates(self, X, *, n_jobs=None, verbose=False):
        return self.kernel.features(X)

    def squared_norms(self, X, *, n_jobs=None):
        Phi = self.coordinates(X)
        return namespace(Phi).sum(Phi * Phi, axis=1)

    def radii(self, X, diagonal, *, n_jobs=None):
        xp = namespace(diagonal)
        return xp.zeros_like(diagonal), 2 * xp.sqrt(diagonal)

    def roundoff(self):
        eps = float(np.finfo(np.float32 if "32" in str(self.dtype) else np.float64).eps)
        return 0.5 * eps * (self.rank**0.5 + self.kernel.rounding(self.example))

    def weights(self, coef):
        raise ValueError(
            f"the closed map of {self.kernel!r} has no landmarks to write a function on: use "
            "basis='cholesky', where every linear function is a sum of kernels."
        )


class Weighted:
    """phi(z) = W' k(S, z) with explicit weights: a similarity made positive semi-definite."""

    def __init__(self, kernel, S, W, indices):
        self.kernel = kernel
        self.S = S
        self.W = W
        self.indices = indices
        self.rank = W.shape[1]
        self.dtype = W.dtype

    def coordinates(self, X, *, n_jobs=None, verbose=False):
        return tiles.multiply(self.kernel, X, self.S, self.W, n_jobs=n_jobs, verbose=verbose)

    def squared_norms(self, X, *, n_jobs=None):
        Phi = self.coordinates(X, n_jobs=n_jobs)
        return namespace(Phi).sum(Phi * Phi, axis=1)

    def radii(self, X, diagonal, *, n_jobs=None):
        raise ValueError(
            "a corrected similarity has no certificate: the bound holds for kernels only, and this "
            "one was changed (see correction_)."
        )

    def roundoff(self):
        return 0.0

    def weights(self, coef):
        return self.W @ coef
