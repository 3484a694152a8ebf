"""P = F F' + alpha I: it preconditions, and it certifies (MATH.md section 8).

F holds the coordinates of the points in a map with few landmarks. Pivoted Cholesky leaves K - F F'
positive semi-definite, so P <= K + alpha I, and for the residual s of any approximate solution

    |f - f*|^2 <= s' (K + alpha I)^-1 s <= s' P^-1 s = min over w of |s - F w|^2 / alpha + |w|^2.

The last form is what the code evaluates: whatever w rounding gives, it is an upper bound.
"""

from typing import Any

import numpy as np

from ..engine import (
    MapBytes,
    as_numpy,
    coordinates_bytes,
    current,
    eps_of,
    gram,
    is_cpu,
    itemsize,
    matrix_bytes,
    namespace,
)
from ..rows import HeldRows, gather
from ..space import factorize
from .regularized import by_penalty, factor_shifted, solve_factored

# Where computing F costs about as much as a few products with K: rank = this times sqrt(n).
RANK_PER_ROOT = {"cpu": 10.0, "device": 4.0}
LEAST_RANK = 100
# Directions of K far below alpha need no landmark.
SHARE_OF_ALPHA = 0.1
# Below this residual the factorization stops by itself.
NOISE = 1e-13


def chosen_rank(n: int, limit: int, X: Any, rank: int | None = None, workers: Any = None):
    """The rank asked for, or one that pays: more would cost more than it saves. Memory permitting,
    since with fewer landmarks the iterations take longer and end at the same solution."""
    limit = int(MapBytes.LANDMARK_SHARE * limit)
    fits = MapBytes.partial_rank(n, limit if rank is not None else _beside_matrix(n, limit))
    if workers is not None:  # a sample of the rows here, all rows there
        share = 1 if rank is not None else 2
        here = MapBytes.partial_rank(min(n, gather.SAMPLE), limit // share)
        fits = min(here, MapBytes.partial_rank(n, workers.room(limit) // share, copies=1))
    if rank is not None:
        return min(int(rank), n, fits)
    wanted = max(LEAST_RANK, RANK_PER_ROOT["cpu" if is_cpu(X) else "device"] * n**0.5)
    return max(1, min(n, int(wanted), fits))


def _beside_matrix(n, limit):
    """Bytes for landmarks: half of the limit, or what a stored kernel matrix leaves of it. All of
    it where the matrix would leave too little: products are then made of tiles."""
    left = min(limit // 2, limit - matrix_bytes(n, size=4))
    return left if left > 0 and MapBytes.partial_rank(n, left) >= LEAST_RANK else limit


class HeldCoordinates:
    """F in memory: F'F, F'S and F w."""

    def __init__(self, F, roots=None):
        xp = namespace(F)
        F = xp.astype(F, xp.float64, copy=False)  # of a Gram matrix in single precision
        self.F = F if roots is None else F * roots[:, None]
        self.rank = F.shape[1]

    def gram(self):
        return gram(self.F)

    def project(self, S: Any):
        """F'S."""
        return self.F.T @ S

    def lift(self, w: Any):
        """F w."""
        return self.F @ w

    @property
    def bytes(self):
        return coordinates_bytes(self.F.shape[0], self.rank, size=itemsize(self.F))


class Preconditioner:
    """P^-1 v and the certificate, for one or several alphas.

    kernel, X : bound kernel and its points, in double precision
    roots : square roots of the sample weights, by which rows of F are multiplied; or None
    length : the root of the sum of k(x, x), weighted
    choice : Preconditioning; without a tolerance landmarks leave little beside alpha
    workers : where the rows of F are: landmarks then come from a sample of the points; or None
    """

    def __init__(self, kernel, X, alphas, roots, length, rank, choice, workers):
        smallest, tol = float(np.min(alphas)), choice.landmark_tol
        if tol is None:
            enough = SHARE_OF_ALPHA * smallest / length**2 if length > 0 else 1.0
            tol = min(0.5, enough) if enough > NOISE else None
        rng = current().rng()
        fit = choice.landmarks or factorize(
            kernel,
            X if workers is None else HeldRows(X).sample(gather.SAMPLE, rng).points,
            tol=tol,
            max_rank=rank,
            pivots=choice.pivots,
            rng=rng,
            memory_limit=current().limit(X),
        )
        self.rank = fit.factor.rank
        self.F: Any = (
            HeldCoordinates(fit.F, roots)
            if workers is None
            else workers.coordinates(fit.factor, roots)
        )
        # With F + E instead of F, P <= (1 + |E| / sqrt(alpha))^2 (K + alpha I): Young's inequality.
        self.kappa = 1.0 + length * fit.misplaced / smallest**0.5
        self.alphas, self.factors = np.asarray(alphas), {}
        if self.rank:
            second = self.F.gram()
            # F'F is semi-definite to rounding: alpha, or that rounding, makes it definite.
            noise = float(namespace(second).linalg.trace(second)) * eps_of(second)
            for alpha in map(float, np.unique(alphas)):
                self.factors[alpha] = factor_shifted(second, max(alpha, noise))

    def __call__(self, S):
        """P^-1 S and, for every column s, an upper bound of s' P^-1 s."""
        xp = namespace(S)

        def inverse(alpha: float, s: Any):
            rest, squares = s, xp.zeros_like(s[0, :])
            if self.rank:
                w = solve_factored(self.factors[alpha], self.F.project(s))
                rest, squares = s - self.F.lift(w), xp.sum(w * w, axis=0)
            return rest / alpha, xp.sum(rest * rest, axis=0) / alpha + squares

        Z, bounds = by_penalty(self.alphas, S, inverse)
        return Z, as_numpy(bounds)
