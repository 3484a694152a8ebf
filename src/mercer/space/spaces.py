"""Spaces that are no Cholesky factor, with the same interface: a kernel's own finite map, and
explicit weights on all training points (a corrected similarity)."""

import numpy as np
import scipy.sparse

from ..engine import tiles
from ..engine.arrays import TravelsAsNumPy, namespace, rows_of
from ..engine.memory import MemoryLimitError, budget, readable
from .base import panels
from .certificate import Radii, magnitudes, radii_of_one


class Closed(TravelsAsNumPy):
    """The kernel's own feature map: no landmarks, no training data."""

    S = None
    indices = None

    def __init__(self, kernel, X):
        self.kernel = kernel
        self.point = rows_of(X, 0, 1)  # rounding depends on its columns
        self.example = features(kernel, self.point)
        self.rank = self.example.shape[1]

    @property
    def dtype(self):
        return self.example.dtype

    def check_memory(self, n, memory_limit):
        """Refuse before all coordinates are computed."""
        needed, limit = (
            2 * n * self.rank * (8 if "64" in str(self.dtype) else 4),
            budget(memory_limit, self.example),
        )
        if needed > limit:
            raise MemoryLimitError(
                f"the closed map of {self.kernel!r} has {self.rank} dimensions: {n} points need "
                f"{readable(needed)}, memory_limit allows {readable(limit)}. Use basis='cholesky' "
                "with max_rank, float32, or a larger memory_limit."
            )

    def coordinates(self, X, *, n_jobs=None, verbose=False):
        return features(self.kernel, X)

    def for_panels(self, X, consume, *, n_jobs=None, verbose=False):
        for a, b in panels(X, X.shape[0], self.rank):
            consume(self.coordinates(rows_of(X, a, b)), a, b)

    def squared_norms(self, X, *, n_jobs=None):
        Phi = self.coordinates(X)
        return namespace(Phi).sum(Phi * Phi, axis=1)

    def radii(self, X, diagonal, *, n_jobs=None):
        length, no = magnitudes(self.kernel, X, diagonal), diagonal < 0
        return Radii(namespace(diagonal).zeros_like(diagonal), 2 * length, length, no)

    def radii_of_mean(self, second, rho2):
        length = float(namespace(second).linalg.trace(second)) ** 0.5
        return radii_of_one(0.0, 2 * length, length, self.example)

    def roundoff(self):
        eps = float(np.finfo(np.float32 if "32" in str(self.dtype) else np.float64).eps)
        return 0.5 * eps * (self.rank**0.5 + self.kernel.rounding(self.point))

    def weights(self, coef):
        raise ValueError(
            f"the closed map of {self.kernel!r} has no landmarks to write a function on: use "
            "basis='cholesky', where every linear function is a sum of kernels."
        )


def features(kernel, X):
    """The kernel's own coordinates; sparse rows are filled first, since few of theirs stay zero."""
    return kernel.features(X.toarray() if scipy.sparse.issparse(X) else X)


class Weighted(TravelsAsNumPy):
    """phi(z) = W' k(S, z) with explicit weights: a similarity made positive semi-definite."""

    def __init__(self, kernel, S, W, indices):
        self.kernel = kernel
        self.S = S
        self.W = W
        self.indices = indices
        self.rank = W.shape[1]

    @property
    def example(self):
        return self.W

    @property
    def dtype(self):
        return self.W.dtype

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
