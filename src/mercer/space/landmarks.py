"""Landmarks: points S with C C' = k(S, S), and what follows from them for any point.

phi(z) = C^-1 k(S, z) are the coordinates of z in an orthonormal basis of the landmarks' span
([NPT] Theorem 2, footnote 3); what they miss of k(z, z) is the residual (Lemma 5).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg

from ..engine import (
    Array,
    as_numpy,
    cholesky,
    device,
    eps_of,
    evenly,
    is_numpy,
    namespace,
    on_device_of,
    one_blas_thread,
    positive_part,
    row_norms,
    rows_of,
    solve_triangular,
    tiles,
)
from ..kernels import Kernel
from ..kernels import points as pts
from .certificate import Radii, landmark_rows, radii_of_one, refute_by_residuals
from .partial import Partial, largest_first
from .protocol import Space


class Landmarks(Space):
    """Landmarks and the triangular factor of their kernel matrix.

    kernel : bound to its data
    S : landmarks, in the form that ``kernel.against`` takes
    C : r x r lower triangular, C C' = k(S, S)
    indices : positions of the landmarks among the training points
    eps : precision of the kernel values, where it is less than that of C
    """

    def __init__(
        self, kernel: Kernel, S: Any, C: Any, indices: np.ndarray, eps: float | None = None
    ) -> None:
        self.kernel, self.S = kernel, S
        self.C = np.asfortranarray(C) if is_numpy(C) else C
        self.indices = np.asarray(indices)
        self.eps = eps_of(C) if eps is None else eps

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if is_numpy(self.C):  # BLAS reads it in Fortran order, which pickles from devices lose
            self.C = np.asfortranarray(self.C)

    @property
    def rank(self) -> int:
        return int(self.C.shape[0])

    @property
    def example(self) -> Any:
        return self.C

    def panels(self, X: Array) -> Iterator[tuple[Any, slice]]:
        n, r = X.shape[0], self.rank
        if r == 0:
            yield tiles.allocate(self.C, (n, 0)), slice(0, n)
            return
        tile = self.kernel.against(self.S)
        for where in tiles.panel_slices(X, r):
            rows = rows_of(X, where.start, where.stop)
            panel = tiles.allocate(self.C, (where.stop - where.start, r))

            def fill(c: int, d: int, rows: Array = rows, panel: Any = panel) -> None:
                panel[c:d, :] = tile(rows_of(rows, c, d))

            tiles.run_tasks(fill, tiles.row_blocks(rows, r), self.kernel, X)
            yield self.solve(panel), where

    def solve(self, panel: Any) -> Any:
        """C^-1 applied to every row of kernel values, over the panel where the backend can."""
        if is_numpy(panel):
            trsm = scipy.linalg.blas.get_blas_funcs("trsm", (self.C,))
            # A C-ordered panel is the Fortran-ordered transpose that trsm overwrites.
            return trsm(1.0, self.C, panel.T, side=0, lower=1, overwrite_b=1).T
        return solve_triangular(self.C, panel.T).T

    def weights(self, coef: Array) -> Any:
        """Coefficients on the landmarks of z -> coef . phi(z): [NPT] Lemma 6, backwards."""
        return solve_triangular(self.C, coef, transpose=True)

    def radii(self, X: Any, diagonal: Any) -> Radii:
        """The certificate's radii for every row, in O(panel) memory.

        tau(z) = sqrt k(z, z) + sum_i |a_i| sqrt k(s_i, s_i), a = C^-T phi(z): how much rounding in
        kernel values is amplified.
        """
        xp, lengths = namespace(self.C), self.rounding_lengths()
        length = on_device_of(self.kernel.layout.lengths(self.kernel, X, diagonal), self.C)
        rho2 = on_device_of(diagonal, self.C) + 0
        tau = length + 0

        for Phi, where in self.panels(X):
            rho2[where] = rho2[where] - row_norms(Phi, xp)
            tau[where] = tau[where] + xp.abs(self.weights(Phi.T).T) @ lengths
        if not self.kernel.is_proven:
            refute_by_residuals(self.kernel, rho2, tau, length, self.roundoff())
        return Radii(xp.abs(rho2), tau, length, landmark_rows(X, self.S, rho2))

    def radii_of(self, Phi: Array, diagonal: Array, rho2: Array) -> Radii:
        """The same where coordinates, magnitudes (`diagonal`) and residuals are known."""
        xp, lengths = namespace(self.C), self.rounding_lengths()
        length = on_device_of(xp.sqrt(positive_part(diagonal)), self.C)
        tau = length + 0
        for where in tiles.panel_slices(Phi, self.rank):
            tau[where] += xp.abs(self.weights(Phi[where, :].T).T) @ lengths
        return Radii(rho2, tau, length, xp.zeros(tau.shape, dtype=xp.bool, device=device(tau)))

    def radii_of_mean(self, second: Array, rho2: float) -> Radii:
        """The certificate's radii of the mean of some rows, root mean squares over them.

        From sums alone, `second` = Phi'Phi / n and the mean rho^2: by Minkowski's inequality the
        root mean square of sum_i |a_i| l_i is at most sum_i l_i rms(a_i), and the mean of a a' is
        C^-T second C^-1.
        """
        xp, length = namespace(self.C), float(namespace(second).linalg.trace(second) + rho2) ** 0.5
        lengths = self.rounding_lengths()
        if self.kernel.has_magnitude and self.rank:
            # The rows gave only sums of k(x, x); landmarks show how much of it cancels.
            length = max(length, float(xp.max(lengths)))
        half = solve_triangular(self.C, second, transpose=True)
        mean_a2 = xp.linalg.diagonal(solve_triangular(self.C, half.T, transpose=True))
        mean_a2 = positive_part(mean_a2)
        return radii_of_one(rho2, length + float(xp.sqrt(mean_a2) @ lengths), length, self.C)

    def roundoff(self) -> float:
        """eta = u (sqrt r + c_k): the relative error of one kernel value and its solve."""
        if self.rank == 0:
            return self.eps
        units: float = self.rank**0.5 + self.kernel.rounding(self.S)
        return 0.5 * self.eps * units

    def rounding_lengths(self) -> Any:
        """Scale of the rounding of the landmarks' kernel values."""
        lengths = self.lengths()
        if self.rank == 0:
            return lengths
        return on_device_of(self.kernel.layout.lengths(self.kernel, self.S, lengths**2), self.C)

    def lengths(self) -> Any:
        """sqrt k(s, s) of the landmarks."""
        xp = namespace(self.C)
        return xp.sqrt(row_norms(self.C, xp))

    def grown(self, S: Array, rows: Array, indices: np.ndarray) -> "Landmarks":
        """The factor with more landmarks: `rows` are their coordinates, last r' columns new."""
        xp, r, new = namespace(self.C), self.rank, rows.shape[0]
        C = xp.zeros((r + new, r + new), dtype=self.C.dtype, device=device(self.C))
        C[:r, :r] = self.C
        C[r:, :] = xp.tril(rows, k=r)
        return Landmarks(self.kernel, S, C, np.concatenate([self.indices, indices]), self.eps)


class Corrected(Space):
    """phi(z) = W' k(S, z) with explicit weights: a similarity made positive semi-definite."""

    def __init__(self, kernel: Kernel, S: Any, W: Any, indices: np.ndarray) -> None:
        self.kernel, self.S, self.W, self.indices = kernel, S, W, indices

    @property
    def rank(self) -> int:
        return int(self.W.shape[1])

    @property
    def example(self) -> Any:
        return self.W

    def coordinates(self, X: Array) -> Any:
        return tiles.multiply(self.kernel, X, self.S, self.W)

    def weights(self, coef: Array) -> Any:
        return self.W @ coef

    def radii(self, X: Any, diagonal: Any) -> Radii:
        raise ValueError(
            "a corrected similarity has no certificate: the bound holds for kernels only, and this "
            "one was changed (see correction_)."
        )

    def radii_of_mean(self, second: Array, rho2: float) -> Radii:
        return self.radii(None, None)

    def roundoff(self) -> float:
        return 0.0


# --- the factor of k(S, S) computed anew, once the landmarks S are chosen -------------------------

# The blocked algorithm gathers rounding on its way. And landmarks that were not taken largest
# residual first have to be put in that order: a tiny pivot before a large one amplifies rounding
# in every column after it, block after block, without a limit.

# Rounding in one landmark's coordinate, relative to its pivot: about 50 units of roundoff for
# greedy pivots at full rank. Above this limit the order is changed.
_MOST_GROWTH = 1e3
# Random products that tell the lengths of rows, each to a factor of two.
_PROBES = 32
_PROBE_MARGIN = 2.0
# Pivots below this many eps of k(s, s) are rounding (MATH.md section 7).
_NOISE = 64
# Landmarks on which two factors are compared.
_LOOKED_AT = 64


def refactorized(
    kernel: Kernel, X: Any, part: Partial, lengths: Any, eps: float | None = None
) -> tuple[Landmarks, float]:
    """The factor of the landmarks that `part` chose among X, and how much the two disagree."""
    indices = part.indices
    if len(indices) == 0:
        return Landmarks(kernel, kernel.landmarks(X, indices), part.F[:0, :], indices, eps), 0.0
    with one_blas_thread(if_small=len(indices)):
        xp = namespace(lengths)
        S, l = kernel.landmarks(X, indices), pts.take(lengths, indices)
        K = normalised_matrix(kernel, S, pts.take(X, indices), l)
        C = cholesky(K)
        if C is None and part.ordered:
            # Singular to rounding: the factor that chose the pivots is what there is.
            C = xp.tril(pts.take(part.F, indices) / l[:, None])
        if C is None or not (part.ordered or is_stable(C)):
            order, C = pivoted(K)
            indices, l = indices[order], pts.take(l, order)
            return Landmarks(
                kernel, kernel.landmarks(X, indices), C * l[:, None], indices, eps
            ), 0.0
        factor = Landmarks(kernel, S, C * l[:, None], indices, eps)
        if part.ordered:
            return factor, 0.0
        return factor, _disagreement(part.F, indices, l, C, K) / (8 * factor.roundoff())


def _disagreement(F: Array, indices: np.ndarray, lengths: Array, C: Array, K: Array) -> float:
    """How far the inner products of two factors of K, C and the rows of F, are from it.

    Looked at for the landmarks with the smallest pivots, where rounding shows, and for others
    spread over all. (8 eta is what the certificate allows between landmarks.)
    """
    xp = namespace(C)
    pivots = as_numpy(xp.linalg.diagonal(C))
    small = np.argsort(pivots, kind="stable")[:_LOOKED_AT]
    some = np.union1d(small, evenly(len(pivots), 4 * _LOOKED_AT))
    found = pts.take(F, indices[some]) / pts.take(lengths, some)[:, None]
    columns = on_device_of(some, C, dtype=xp.int64)
    difference = pts.take(C, small) @ found.T - xp.take(pts.take(K, small), columns, axis=1)
    return float(xp.max(xp.abs(difference)))


def normalised_matrix(kernel: Kernel, S: Any, points: Any, lengths: Any) -> Any:
    """k(S, S) / (l l'), where `points` are the landmarks as rows."""
    K = tiles.evaluate(kernel, points, S=S)
    K /= lengths[:, None]
    K /= lengths[None, :]
    return K


def is_stable(C: Array) -> bool:
    """Whether solves with C amplify rounding no more than those with pivots in order.

    Row j of C^-1, times its pivot, is (-a, 1): the weights of the earlier landmarks in what
    landmark j adds. An error in their kernel values enters with the sum of |a|.
    """
    C = np.asfortranarray(as_numpy(C), dtype=np.float64)  # LAPACK's order
    trtri, trtrs = scipy.linalg.lapack.get_lapack_funcs(("trtri", "trtrs"), (C,))
    n, pivots = len(C), C.diagonal()
    # The sum is at most sqrt(n) times the length of the row, and lengths show in products with
    # random signs: nearly always this settles it, for much less than the inverse.
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(_PROBES, n)).T
    products, info = trtrs(C, signs, lower=1)
    if info:
        return False
    lengths = pivots * np.sqrt((products**2).mean(axis=1))
    if _PROBE_MARGIN * n**0.5 * lengths.max() <= _MOST_GROWTH:
        return True
    inverse, info = trtri(C, lower=1)
    np.abs(inverse, out=inverse)
    return info == 0 and bool((inverse.sum(axis=1) * pivots).max() <= _MOST_GROWTH)


def pivoted(K: Array) -> tuple[np.ndarray, Any]:
    """(order, C): the rows of K that are not rounding, largest residual first, and their factor."""
    n = K.shape[0]
    tol = max(_NOISE, n**0.5) * eps_of(K)
    order, C = largest_first(as_numpy(K).astype(np.float64), tol, n)
    return order, on_device_of(C, K)
