"""The equations A = D K D + alpha I: products, preconditioner, and what rounding does to them.

P = F F' + alpha I preconditions, and it certifies (MATH.md section 8). F holds the coordinates of
the points in a map with few landmarks. Pivoted Cholesky leaves K - F F' positive semi-definite, so
P <= K + alpha I, and for the residual s of any approximate solution

    |f - f*|^2 <= s' (K + alpha I)^-1 s <= s' P^-1 s = min over w of |s - F w|^2 / alpha + |w|^2.

The last form is what the code evaluates: whatever w rounding gives, it is an upper bound.
"""

from typing import Any

import numpy as np

from ..engine import (
    Array,
    MapBytes,
    MatrixProduct,
    as_numpy,
    coordinates_bytes,
    current,
    eps_of,
    evenly,
    gram,
    is_cpu,
    itemsize,
    largest_power,
    matrix_bytes,
    namespace,
    on_device_of,
)
from ..kernels import Kernel
from ..kernels import points as pts
from ..rows import HeldRows, Workers, gather
from ..space import factorize
from .problem import Preconditioning
from .regularized import by_penalty, factor_shifted, solve_factored

# Vectors of length n that the iterations hold, for every target.
VECTORS = 12
# Quick products help as long as their error is well below alpha, measured on so many points.
WORTH, SAMPLE = 0.5, 128
_EPS = float(np.finfo(np.float64).eps)
# At this rank over sqrt(n), computing F costs about as much as a few products with K.
_RANK_PER_ROOT = {"cpu": 10.0, "device": 4.0}
LEAST_RANK = 100
# Directions of K far below alpha need no landmark.
SHARE_OF_ALPHA = 0.1
# Below this residual the factorization stops by itself.
_NOISE = 1e-13


class System:
    """A = D K D + alpha I with its products, its preconditioner, and what rounding does to it.

    kernel, X, points : bound kernel and its points, in double precision and as they are
    choice : Preconditioning
    workers : where the rows of F are, and products are computed; or None
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Array,
        points: Array,
        T: Array,
        alphas: np.ndarray,
        weights: np.ndarray | None,
        choice: Preconditioning,
        workers: Workers | None = None,
    ) -> None:
        n, limit = X.shape[0], current().limit(X)
        if workers is not None:
            workers.give(kernel, X)
        self.alphas, self.is_proven = alphas, kernel.is_proven
        self.single = itemsize(points) == 4
        self.T = on_device_of(T, X, dtype=float) + 0.0
        self.roots = None if weights is None else on_device_of(np.sqrt(weights), X, dtype=float)
        lengths = on_device_of(kernel.layout.lengths(kernel, X), X, dtype=float)
        if self.roots is not None:
            self.T, lengths = self.T * self.roots[:, None], lengths * self.roots
        self.rounding = ResidualRounding(kernel, X, lengths)
        vectors = vectors_of(kernel, X, T.shape[1])
        rank = chosen_rank(n, max(1, limit - vectors), X, choice.rank, workers)
        self._make_preconditioner(kernel, X, rank, choice, workers)
        room = limit - 2 * self.F.bytes - vectors
        self.exact, self.quick = choice.product, None
        if self.exact is None:
            self.exact = workers.exact_product() if workers else MatrixProduct.of(kernel, X, room)
        largest = 1.0 if weights is None else float(np.max(weights))
        self.disturbance = largest / float(np.min(alphas)) * _quick_error(kernel, points)
        # Stored in double precision, or factored, K has exact products at the price of quick ones.
        if self.exact.way not in ("stored", "factored") and self.disturbance < WORTH:
            if workers is None:
                self.quick = MatrixProduct.quick(kernel, points, room)
            else:
                self.quick = workers.quick_product(kernel, points)

    def _make_preconditioner(
        self, kernel: Kernel, X: Array, rank: int, choice: Preconditioning, workers: Workers | None
    ) -> None:
        """Landmarks, from a sample of the points where workers hold F; they leave little beside
        alpha, where no tolerance is asked for."""
        smallest, length = float(np.min(self.alphas)), self.rounding.length
        tol, fit, rng = choice.landmark_tol, choice.landmarks, current().rng()
        if tol is None:
            enough = SHARE_OF_ALPHA * smallest / length**2 if length > 0 else 1.0
            tol = min(0.5, enough) if enough > _NOISE else None
        if fit is None:
            some = X if workers is None else HeldRows(X).sample(gather.SAMPLE, rng).points
            how: dict[str, Any] = {"max_rank": rank, "pivots": choice.pivots, "rng": rng}
            fit = factorize(kernel, some, tol=tol, memory_limit=current().limit(X), **how)
        if workers is None:
            self.F: Any = _HeldCoordinates(fit.F, self.roots)
        else:
            self.F = workers.coordinates(fit.factor, self.roots)
        self.rank, self.factors = fit.factor.rank, {}
        # With F + E instead of F, P <= (1 + |E| / sqrt(alpha))^2 (K + alpha I): Young's inequality.
        self.kappa = 1.0 + length * fit.misplaced / smallest**0.5
        if self.rank:
            second = self.F.gram()
            # F'F is semi-definite to rounding: alpha, or that rounding, makes it definite.
            noise = float(namespace(second).linalg.trace(second)) * eps_of(second)
            for alpha in map(float, np.unique(self.alphas)):
                self.factors[alpha] = factor_shifted(second, max(alpha, noise))

    def times(self, product: Any, V: Any) -> Any:
        """A V."""
        D = None if self.roots is None else self.roots[:, None]
        image = product(V) if D is None else product(V * D) * D
        return image + V * on_device_of(self.alphas, V)[None, :]

    def precondition(self, S: Any) -> tuple[Any, np.ndarray]:
        """P^-1 S and, for every column s, an upper bound of sqrt(s' A^-1 s)."""
        xp = namespace(S)

        def inverse(alpha: float, s: Any) -> tuple[Any, Any]:
            rest, squares = s, xp.zeros_like(s[0, :])
            if self.rank:
                w = solve_factored(self.factors[alpha], self.F.project(s))
                rest, squares = s - self.F.lift(w), xp.sum(w * w, axis=0)
            return rest / alpha, xp.sum(rest * rest, axis=0) / alpha + squares

        Z, squares = by_penalty(self.alphas, S, inverse)
        return Z, self.kappa * np.sqrt(as_numpy(squares))

    def certify(self, residual: Any, b: Any) -> np.ndarray:
        """Bounds of |f - f*| for an exact residual, rounding included.

        (K + alpha I)^-1 makes at most 1/alpha of the squares of errors of the residual. The last
        term is the rounding of a prediction.
        """
        error = self.rounding.of_residual(b, self.T, self.alphas) / np.sqrt(self.alphas)
        bounds: np.ndarray = self.precondition(residual)[1] + error + self.rounding.of_value(b)
        return bounds

    def rounding_of_form(self, p: Any) -> np.ndarray:
        """Rounding error of p'A p, as a rule."""
        rounding = self.rounding
        errors: np.ndarray = rounding.eta * column_norms(p * rounding.lengths[:, None]) ** 2
        errors += _EPS * self.alphas * column_norms(p) ** 2
        return errors


def chosen_rank(n: int, limit: float, X: Any, rank: int | None = None, workers: Any = None) -> int:
    """The rank asked for, or one that pays: more would cost more than it saves. Memory permitting,
    since with fewer landmarks the iterations take longer and end at the same solution.

    Bytes for landmarks: half of the limit, or what a stored kernel matrix leaves of it. All of it
    where the matrix would leave too little: products are then made of tiles.
    """
    limit = int(MapBytes.LANDMARK_SHARE * limit)
    beside = min(limit // 2, limit - matrix_bytes(n, size=4))
    has_room = rank is None and beside > 0 and MapBytes.partial_rank(n, beside) >= LEAST_RANK
    fits = MapBytes.partial_rank(n, beside if has_room else limit)
    if workers is not None:  # a sample of the rows here, all rows there
        share = 1 if rank is not None else 2
        here = MapBytes.partial_rank(min(n, gather.SAMPLE), limit // share)
        fits = min(here, MapBytes.partial_rank(n, workers.room(limit) // share, copies=1))
    if rank is not None:
        return min(int(rank), n, fits)
    wanted = max(LEAST_RANK, _RANK_PER_ROOT["cpu" if is_cpu(X) else "device"] * n**0.5)
    return max(1, min(n, int(wanted), fits))


class _HeldCoordinates:
    """F in memory: F'F, F'S and F w, as workers of a cluster have them."""

    def __init__(self, F: Array, roots: Array | None = None) -> None:
        xp = namespace(F)
        F = xp.astype(F, xp.float64, copy=False)  # of a Gram matrix in single precision
        self.F = F if roots is None else F * roots[:, None]
        self.bytes = coordinates_bytes(F.shape[0], F.shape[1], size=itemsize(self.F))

    def gram(self) -> Any:
        return gram(self.F)

    def project(self, S: Any) -> Any:
        return self.F.T @ S

    def lift(self, w: Any) -> Any:
        return self.F @ w


# --- rounding and sizes ---------------------------------------------------------------------------


class ResidualRounding:
    """Rounding of residuals and values, for coefficients b of weighted rows.

    Residuals carry errors of eta l(x_i) |l b| in every entry, as a rule: the errors of different
    kernel values are independent. `lengths` are the l(x_i), times the roots of the weights.
    """

    def __init__(self, kernel: Kernel, X: Array, lengths: Array, eps: float = _EPS) -> None:
        self.lengths, self.eps = lengths, eps
        self.length = float(column_norms(lengths[:, None])[0])
        unit = float(kernel.rounding(kernel.landmarks(X)))
        self.eta: float = eps * (unit + np.log2(X.shape[0] + 1))

    def of_value(self, b: Any) -> np.ndarray:
        """The error of a prediction, in units of sqrt(k(z, z))."""
        return self.eta * column_norms(b * self.lengths[:, None])

    def of_residual(self, b: Any, T: Any, alphas: np.ndarray) -> np.ndarray:
        of_sums: np.ndarray = column_norms(T) + alphas * column_norms(b)
        return self.length * self.of_value(b) + self.eps * of_sums


def function_norms(b: Any, T: Any, residual: Any, alphas: np.ndarray) -> np.ndarray:
    """|f| = sqrt(b' D K D b), where D K D b = t - alpha b - s; scaled first, as norms are."""
    xp, image = namespace(b), T - b * on_device_of(alphas, b)[None, :] - residual
    sizes = [largest_power(V, axis=0) for V in (b, image)]
    left, right = (V / on_device_of(s, V)[None, :] for V, s in zip((b, image), sizes))
    squares = as_numpy(xp.sum(left * right, axis=0)).astype(np.float64)
    norms: np.ndarray = np.sqrt(np.maximum(squares, 0.0)) * np.sqrt(sizes[0]) * np.sqrt(sizes[1])
    return norms


def vectors_of(kernel: Kernel, X: Any, n_targets: int) -> float:
    """Bytes of the vectors that the iterations hold, of copies of the rows, and of the sums inside
    a product."""
    vectors = coordinates_bytes(X.shape[0], VECTORS * n_targets)
    return vectors + MatrixProduct.bytes_beside(kernel, X, n_targets)


def _quick_error(kernel: Kernel, points: Any) -> float:
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
    return float(2 * n**0.5 * np.sqrt(np.mean(difference**2)))


def scattered(W: Any, rows: np.ndarray, n: int) -> Any:
    """The rows of W at their places among n, zeros elsewhere."""
    if len(rows) == n:
        return W
    full = np.zeros((n, W.shape[1]))
    full[rows] = as_numpy(W)
    return on_device_of(full, W)


def column_norms(V: Any) -> np.ndarray:
    """Euclidean norms of the columns, on the host: scaled first, so that no square overflows."""
    xp = namespace(V)
    sizes = largest_power(V, axis=0)
    V = V / on_device_of(sizes, V)[None, :]
    norms: np.ndarray = as_numpy(xp.sum(V * V, axis=0)).astype(np.float64) ** 0.5 * sizes
    return norms
