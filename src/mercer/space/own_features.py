"""OwnFeatures: the space of a kernel that has a finite feature map of its own."""

from typing import Any

import scipy.sparse

from ..engine.arrays import eps_of, itemsize, namespace, positive_part, rows_of
from ..engine.memory import MemoryLimitError, budget, coordinates_bytes, readable
from ..engine.types import Array
from ..kernels.composite import finite_values
from .certificate import Radii, magnitudes, radii_of_one
from .protocol import Space


class OwnFeatures(Space):
    """The kernel's own feature map: no landmarks, no training data."""

    is_closed = True
    may_share = True

    def __init__(self, kernel, X):
        self.kernel = kernel
        self.point = rows_of(X, 0, 1)  # rounding depends on its columns
        self.first = features(kernel, self.point)

    @property
    def rank(self) -> int:
        return self.first.shape[1]

    @property
    def example(self) -> Any:
        return self.first

    def check_memory(self, n: int, memory_limit: float | str | None):
        """Refuse before all coordinates are computed."""
        needed = coordinates_bytes(n, self.rank, 2, itemsize(self.example))
        limit = budget(memory_limit, self.example)
        if needed > limit:
            raise MemoryLimitError(
                f"the closed map of {self.kernel!r} has {self.rank} dimensions: {n} points need "
                f"{readable(needed)}, memory_limit allows {readable(limit)}. Use basis='cholesky' "
                "with max_rank, float32, or a larger memory_limit."
            )

    def coordinates(self, X: Array):
        return features(self.kernel, X)

    def radii(self, X: Any, diagonal: Any):
        length, no = magnitudes(self.kernel, X, diagonal), diagonal < 0
        return Radii(namespace(diagonal).zeros_like(diagonal), 2 * length, length, no)

    def radii_of(self, Phi: Array, diagonal: Array, rho2: Array) -> Radii:
        xp = namespace(diagonal)
        length = xp.sqrt(positive_part(diagonal))
        return Radii(xp.zeros_like(diagonal), 2 * length, length, diagonal < 0)

    def radii_of_mean(self, second: Array, rho2: Any):
        length = float(namespace(second).linalg.trace(second)) ** 0.5
        return radii_of_one(0.0, 2 * length, length, self.example)

    def roundoff(self):
        return 0.5 * eps_of(self.example) * (self.rank**0.5 + self.kernel.rounding(self.point))

    def weights(self, coef: Array):
        raise ValueError(
            f"the closed map of {self.kernel!r} has no landmarks to write a function on: use "
            "basis='cholesky', where every linear function is a sum of kernels."
        )


def features(kernel: Any, X: Any):
    """The kernel's own coordinates; sparse rows are filled first, since few of theirs stay zero."""
    X = X.toarray() if scipy.sparse.issparse(X) else X
    return finite_values(kernel, kernel.features, X)
