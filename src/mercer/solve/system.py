"""The equations: A = D K D + alpha I, its products, and what rounding does to them."""

from typing import Any

import numpy as np

from ..engine import (
    MatrixProduct,
    as_numpy,
    coordinates_bytes,
    current,
    evenly,
    itemsize,
    largest_power,
    namespace,
    on_device_of,
)
from ..kernels import Kernel
from ..kernels import points as pts
from .preconditioner import Preconditioner, chosen_rank

# Vectors of length n that the iterations hold, for every target.
VECTORS = 12
# Quick products help as long as their error is well below alpha.
WORTH = 0.5
# Points on which it is measured.
SAMPLE = 128
EPS = float(np.finfo(np.float64).eps)


class System:
    """A = D K D + alpha I with its products, its preconditioner, and what rounding does to it."""

    def __init__(self, kernel, X, points, T, alphas, weights, preconditioning, workers=None):
        n, limit = X.shape[0], current().limit(X)
        if workers is not None:
            workers.give(kernel, X)
        self.alphas = alphas
        self.single = itemsize(points) == 4
        self.T = on_device_of(T, X, dtype=float) + 0.0
        self.roots = None if weights is None else on_device_of(np.sqrt(weights), X, dtype=float)
        if self.roots is not None:
            self.T = self.T * self.roots[:, None]
        lengths = on_device_of(kernel.layout.lengths(kernel, X), X, dtype=float)
        lengths = lengths if self.roots is None else lengths * self.roots
        self.rounding = ResidualRounding(kernel, X, lengths)
        vectors = vectors_of(kernel, X, T.shape[1])
        rank = chosen_rank(n, max(1, limit - vectors), X, preconditioning.rank, workers)
        self.preconditioner = Preconditioner(
            kernel, X, alphas, self.roots, self.rounding.length, rank, preconditioning, workers
        )
        room = limit - 2 * self.preconditioner.F.bytes - vectors
        self.exact, self.quick = preconditioning.product, None
        if self.exact is None:
            here = workers is None
            self.exact = MatrixProduct.of(kernel, X, room) if here else workers.exact_product()
        largest = 1.0 if weights is None else float(np.max(weights))
        self.disturbance = largest / float(np.min(alphas)) * quick_error(kernel, points)
        # Stored in double precision, or factored, K has exact products at the price of quick ones.
        if self.exact.way not in ("stored", "factored") and self.disturbance < WORTH:
            if workers is None:
                self.quick = MatrixProduct.quick(kernel, points, room)
            else:
                self.quick = workers.quick_product(kernel, points)
        self.is_proven = kernel.is_proven

    def times(self, product: Any, V: Any):
        """A V."""
        D = None if self.roots is None else self.roots[:, None]
        image = product(V) if D is None else product(V * D) * D
        return image + V * on_device_of(self.alphas, V)[None, :]

    def certify(self, residual: Any, b: Any):
        """Bounds of |f - f*| for an exact residual, rounding included.

        (K + alpha I)^-1 makes at most 1/alpha of the squares of errors of the residual. The last
        term is the rounding of a prediction.
        """
        _, squares = self.preconditioner(residual)
        error = self.rounding.of_residual(b, self.T, self.alphas) / np.sqrt(self.alphas)
        return self.preconditioner.kappa * np.sqrt(squares) + error + self.rounding.of_value(b)

    def rounding_of_form(self, p: Any):
        """Rounding error of p'A p, as a rule."""
        rounding = self.rounding
        of_kernel = rounding.eta * norms(p * rounding.lengths[:, None]) ** 2
        return of_kernel + EPS * self.alphas * norms(p) ** 2

    def function_norms(self, b: Any, residual: Any):
        return function_norms(b, self.T, residual, self.alphas)


class ResidualRounding:
    """Rounding of residuals and values, for coefficients b of weighted rows.

    Residuals carry errors of eta l(x_i) |l b| in every entry, as a rule: the errors of different
    kernel values are independent. `lengths` are the l(x_i), times the roots of the weights.
    """

    def __init__(self, kernel, X, lengths, eps=EPS):
        self.lengths, self.eps = lengths, eps
        self.length = float(norms(lengths[:, None])[0])
        self.eta = eps * (float(kernel.rounding(kernel.landmarks(X))) + np.log2(X.shape[0] + 1))

    def of_value(self, b: Any) -> np.ndarray:
        """The error of a prediction, in units of sqrt(k(z, z))."""
        return self.eta * norms(b * self.lengths[:, None])

    def of_residual(self, b: Any, T: Any, alphas: np.ndarray) -> np.ndarray:
        return self.length * self.of_value(b) + self.eps * (norms(T) + alphas * norms(b))


def function_norms(b: Any, T: Any, residual: Any, alphas: np.ndarray) -> np.ndarray:
    """|f| = sqrt(b' D K D b), where D K D b = t - alpha b - s; scaled first, as norms are."""
    xp, image = namespace(b), T - b * on_device_of(alphas, b)[None, :] - residual
    sizes = [largest_power(V, axis=0) for V in (b, image)]
    left, right = (V / on_device_of(s, V)[None, :] for V, s in zip((b, image), sizes))
    squares = as_numpy(xp.sum(left * right, axis=0)).astype(np.float64)
    return np.sqrt(np.maximum(squares, 0.0)) * np.sqrt(sizes[0]) * np.sqrt(sizes[1])


def vectors_of(kernel: Kernel, X: Any, n_targets: int):
    """Bytes of the vectors that the iterations hold, of copies of the rows, and of the sums inside
    a product."""
    vectors = coordinates_bytes(X.shape[0], VECTORS * n_targets)
    return vectors + MatrixProduct.bytes_beside(kernel, X, n_targets)


def quick_error(kernel: Kernel, points: Any):
    """|E| for quick products with K + E: 2 sqrt(n) times the error of one kernel value, on a sample
    (errors of different values are independent, as a rule)."""
    n = points.shape[0]
    some = evenly(n, SAMPLE)
    sample = pts.take(points, some)
    quick = MatrixProduct.quick(kernel, sample, np.inf)
    if quick is None:
        return np.inf
    double = kernel.layout.in_double(sample)
    eye = on_device_of(np.eye(len(some)), double, dtype=float)
    difference = as_numpy(quick(eye) - MatrixProduct.of(kernel, double)(eye))
    return 2 * n**0.5 * float(np.sqrt(np.mean(difference**2)))


def scattered(W: Any, rows: np.ndarray, n: int) -> Any:
    """The rows of W at their places among n, zeros elsewhere."""
    if len(rows) == n:
        return W
    full = np.zeros((n, W.shape[1]))
    full[rows] = as_numpy(W)
    return on_device_of(full, W)


def norms(V: Any):
    """Euclidean norms of the columns, on the host: scaled first, so that no square overflows."""
    xp = namespace(V)
    sizes = largest_power(V, axis=0)
    V = V / on_device_of(sizes, V)[None, :]
    return as_numpy(xp.sum(V * V, axis=0)).astype(np.float64) ** 0.5 * sizes
