"""Which space: what the options ask for, what the kernel has, and what fits the memory.

Held points are factored as a whole. Where their coordinates would not fit, landmarks of a sample
are where passes over all rows begin.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from ..engine import (
    Array,
    MapBytes,
    MemoryLimitError,
    as_numpy,
    check_one_of,
    current,
    eps_of,
    evenly,
    is_count,
    is_number,
    itemsize,
    matrix_bytes,
    namespace,
    on_device_of,
    readable,
    tiles,
)
from ..kernels import Kernel, NotPSDError, hashing
from ..kernels import points as pts
from ..rows import HeldRows, gather
from .cholesky import default_tol, factorize, matrix_fits
from .grow import sample_factor
from .indefinite import OPTIONS, corrected, symmetrised, value_eps
from .landmarks import Corrected
from .own_features import OwnFeatures, SparseFeatures

BASES = ("cholesky", "eigen", "symmetric", "closed", "fourier", "auto")
PIVOTS = ("greedy", "random", "uniform")
# Rows on which a kernel of unknown validity is tested: of a sample, and of a look at some.
TESTED, LOOKED_AT = 2000, 100
# Rows whose ranks tell how the rank grows, and how much of the prediction is certain enough to
# refuse by: ranks grow more slowly with more rows, never faster.
PROBED, CERTAIN = (1000, 2000), 0.5


@dataclass(frozen=True)
class MapOptions:
    """How a map is fitted: the parameters of KernelMap other than the kernel."""

    basis: str = "cholesky"
    max_rank: int | None = None
    tol: float | None = None
    pivots: str = "greedy"
    center: bool = False
    append_residual: bool = False
    indefinite: str = "raise"
    box: Any = None  # of Fourier coordinates; None: that of the rows, and a margin
    held: int = 0  # further arrays of coordinates that the method holds

    def check(self) -> None:
        """Refuse options that make no sense, before any work."""
        for name, options in (("basis", BASES), ("pivots", PIVOTS), ("indefinite", OPTIONS)):
            check_one_of(name, getattr(self, name), options)
        if not isinstance(self.append_residual, (bool, np.bool_)):
            raise ValueError(
                f"append_residual must be True or False, got {pts.short(self.append_residual)}."
            )
        if self.max_rank is not None and not (is_count(self.max_rank) and self.max_rank >= 1):
            raise ValueError(f"max_rank must be a positive integer or None, got {self.max_rank!r}.")
        if self.tol is not None and not (is_number(self.tol) and 0 <= self.tol < 1):
            raise ValueError(f"tol must be a number from 0 to below 1 or None, got {self.tol!r}.")
        if self.box is not None and self.basis != "fourier":
            raise ValueError(
                f"box belongs to basis='fourier', got basis={self.basis!r}: leave it out, other "
                "maps hold everywhere."
            )

    @property
    def copies(self) -> int:
        """Arrays of coordinates that a fit holds at once: the factor's, centred ones and the
        result's; to rotate them takes rotated ones, and the work space of LAPACK."""
        fitted = {"eigen": 8, "symmetric": 12}.get(self.basis, 3 if self.center else 2)
        return fitted + self.held

    @property
    def needs_sums(self) -> bool:
        """Whether mean or eigenvectors are needed, which sums over all rows give."""
        return self.basis == "eigen" or self.center

    @property
    def is_plain_fourier(self) -> bool:
        """Whether coordinates are Fourier's as they are: then ridge needs sums of exponentials."""
        return self.basis == "fourier" and not (self.center or self.append_residual)

    def needs_all_rows(self, kernel: Kernel) -> bool:
        """Whether the fit must hold all rows at once."""
        corrects = self.indefinite != "raise" and not kernel.is_proven
        return self.basis == "symmetric" or self.pivots != "greedy" or corrects


def space_of(kernel: Kernel, points: Array, options: MapOptions):
    """(space, coordinates, residuals rho^2, correction) of the training points."""
    if _basis_for(kernel, points, options) == "closed":
        return *_own_space(kernel, points, options), np.zeros(points.shape[0]), None
    try:
        fit = factorize(
            kernel,
            points,
            tol=options.tol,
            max_rank=options.max_rank,
            pivots=options.pivots,
            rng=current().rng(),
            memory_limit=current().memory_limit,
            copies=options.copies,
        )
    except NotPSDError:
        if options.indefinite == "raise":
            raise
        return _corrected_space(kernel, points, options)
    return fit.factor, fit.F, fit.residuals, None


def _own_space(kernel, points, options):
    """The kernel's own features, and the coordinates of the training points in them."""
    own, n = OwnFeatures(kernel, points), points.shape[0]
    if not scipy.sparse.issparse(own.example):
        own.check_memory(n)
        return own, own.coordinates(points)
    F = kernel.features(points)
    sparse = SparseFeatures(kernel, points, F)
    sparse.check_memory(n, dense=options.needs_sums)
    return sparse, hashing.numbered(F, sparse.columns)


def _corrected_space(kernel, points, options):
    n, limit = points.shape[0], current().limit(points)
    needed = matrix_bytes(n, copies=6)
    if needed > limit:
        raise MemoryLimitError(
            f"indefinite={options.indefinite!r} needs all eigenvalues of the {n} x {n} matrix, "
            f"{readable(needed)}; memory_limit allows {readable(limit)}. Fit on fewer "
            "points, or raise memory_limit."
        )
    K = tiles.evaluate(kernel, points)
    values = as_numpy(K).astype(np.float64)
    eps = value_eps(values, eps_of(K))
    F, W, summary = corrected(symmetrised(kernel, values, eps), options.indefinite)
    r = F.shape[1] if options.max_rank is None else options.max_rank
    left = (F[:, r:] ** 2).sum(axis=1)
    # In double precision whatever the data: weights of small eigenvalues cancel.
    F, W = (on_device_of(A[:, :r], K, dtype=namespace(K).float64) for A in (F, W))
    S = kernel.landmarks(kernel.layout.in_double(points), np.arange(n))
    space = Corrected(kernel, S, W, np.arange(n))
    return space, F, left, summary


def _basis_for(kernel, points, options):
    if options.basis != "auto":
        return options.basis
    width = points.shape[1] if getattr(points, "ndim", 1) == 2 else None
    dimension = kernel.explicit_dim(width)
    most = points.shape[0] if options.max_rank is None else min(points.shape[0], options.max_rank)
    return "closed" if dimension is not None and dimension < most else "cholesky"


def sampled_space(kernel: Kernel, points: Array, options: MapOptions):
    """Landmarks of a sample where the coordinates of all points would not fit; else None."""
    n = points.shape[0]
    if n <= 2 * gather.SAMPLE or options.needs_all_rows(kernel) or not kernel.layout.on_data:
        return None
    if _basis_for(kernel, points, options) == "closed":
        return None
    like, limit = tiles.allocate(points, (1, 1)), current().limit(points)
    most = MapBytes.partial_rank(n, limit, itemsize(like), options.copies)
    whole = matrix_fits(kernel, like, n, limit, options.copies)
    if whole or min(n, options.max_rank or n) <= most:
        return None
    sample = HeldRows(points).sample(gather.SAMPLE, current().rng())
    refute_by_sample(kernel, sample.points)
    space = space_of_sample(kernel, sample, options)
    # All rows have a somewhat larger rank than the sample.
    return None if 1.5 * space.rank <= most else space


def refute_by_sample(kernel: Kernel, points: Array):
    """A kernel of unknown validity is refuted here, if a sample can refute it."""
    if not kernel.is_proven:
        most = min(TESTED, points.shape[0], _matrix_rows(current().limit(points)))
        factorize(kernel, kernel.layout.subset(points, np.arange(most)))


def refute_by_a_look(kernel: Kernel, points: Any):
    """The same by a few rows, where residuals of all rows are tested too. They see pairs of a point
    and a landmark, and so next to nothing where landmarks are few.

    Functions of the user are left alone: each call is the user's time.
    """
    if kernel.is_proven or kernel.runs_user_code:
        return
    some = evenly(points.shape[0], LOOKED_AT)
    try:
        refute_by_sample(kernel, kernel.layout.subset(points, some))
    except NotPSDError as error:
        if error.witness is not None:  # of all rows, as what its reader has
            of_some, error.witness = error.witness, np.zeros(points.shape[0])
            error.witness[some] = of_some
        raise


def _matrix_rows(limit):
    """Rows whose matrix may be stored for a look at them."""
    return max(100, int((limit / matrix_bytes(1, 8)) ** 0.5))


def space_of_sample(kernel: Kernel, sample: Any, options: MapOptions):
    if _basis_for(kernel, sample.points, options) == "closed":
        return OwnFeatures(kernel, sample.points)
    sample = _sample_that_fits(kernel, sample, options)
    return sample_factor(kernel, sample, options.tol, options.max_rank)


def _sample_that_fits(kernel, sample, options):
    """The sample, or a part of it: the coordinates of its rows must fit beside the landmarks.

    Where no part is small enough, that is said before minutes are spent. The ranks of two small
    parts tell how the rank grows with the rows.
    """
    points, n = sample.points, sample.points.shape[0]
    limit, size = current().limit(points), itemsize(tiles.allocate(points, (1, 1)))
    most = n if options.max_rank is None else min(n, options.max_rank)
    probed = [min(m, _matrix_rows(limit) * m // PROBED[-1]) for m in PROBED]
    if most <= MapBytes.streamed_rank(n, limit, size) or n <= probed[-1]:
        return sample
    tol, order = default_tol(eps_of(points), options.tol), current().rng().permutation(n)
    ranks = [factorize(kernel, pts.take(points, order[:m]), tol=tol).factor.rank for m in probed]
    few, many = (max(rank, 1) for rank in ranks)
    growth = np.log(many / few) / np.log(probed[1] / probed[0])
    predicted = min(n, int(many * (n / probed[1]) ** growth))
    rank = min(most, max(many, int(CERTAIN * predicted)))
    for rows in (n, n // 2, n // 4, n // 8):
        fits = MapBytes.streamed_rank(rows, limit, size)
        if min(most, predicted) <= min(fits, rows // 2):
            break
    if rank <= fits:
        some = np.sort(order[:rows])
        return replace(sample, points=pts.take(points, some), positions=sample.positions[some])
    needed = MapBytes.streamed(rank, rows, 0, size)
    raise MemoryLimitError(
        f"tol={tol:.3g} needs about {predicted} landmarks for a sample of {n} rows ({few} for "
        f"{probed[0]} rows, {many} for {probed[1]}) and more for all rows: at least "
        f"{readable(needed)}; memory_limit allows {readable(limit)}. What fits: max_rank={fits}, "
        "or a larger tol; else a larger memory_limit. KernelRidge(form='iterative') needs no such "
        "map."
    )
