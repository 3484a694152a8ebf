"""Which space: what the options ask for and what the kernel has, for points that are held."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from ..engine import (
    Array,
    Domain,
    MemoryLimitError,
    as_numpy,
    current,
    eps_of,
    evenly,
    is_number,
    matrix_bytes,
    namespace,
    on_device_of,
    readable,
    tiles,
)
from ..kernels import Kernel, NotPSDError, hashing
from .cholesky import factorize
from .indefinite import OPTIONS, corrected, symmetrised, value_eps
from .landmarks import Corrected
from .own_features import OwnFeatures, SparseFeatures

# Rows on which a kernel of unknown validity is tested: of a sample, and of a look at some.
_TESTED, _LOOKED_AT = 2000, 100


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
    squares: int = 0  # and of r x r numbers

    domains: ClassVar[dict[str, Domain]] = {
        "basis": Domain.one_of("cholesky", "eigen", "symmetric", "closed", "fourier", "auto"),
        "pivots": Domain.one_of("greedy", "random", "uniform"),
        "indefinite": Domain.one_of(*OPTIONS),
        "append_residual": Domain.FLAG,
        "max_rank": Domain(
            lambda rank: rank is None or Domain.count(1).accepts(rank), "a positive integer or None"
        ),
        "tol": Domain(
            lambda tol: tol is None or (is_number(tol) and 0 <= tol < 1),
            "a number from 0 to below 1 or None",
        ),
    }

    def check(self) -> None:
        """Refuse options that make no sense, before any work."""
        Domain.check(self)
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

    def basis_for(self, kernel: Kernel, points: Any) -> str:
        """The basis, where "auto" is decided."""
        if self.basis != "auto":
            return self.basis
        width = points.shape[1] if getattr(points, "ndim", 1) == 2 else None
        dimension, n = kernel.explicit_dim(width), points.shape[0]
        most = n if self.max_rank is None else min(n, self.max_rank)
        return "closed" if dimension is not None and dimension < most else "cholesky"

    def needs_all_rows(self, kernel: Kernel) -> bool:
        """Whether the fit must hold all rows at once."""
        corrects = self.indefinite != "raise" and not kernel.is_proven
        return self.basis == "symmetric" or self.pivots != "greedy" or corrects


def space_of(
    kernel: Kernel, points: Array, options: MapOptions
) -> tuple[Any, Any, np.ndarray, dict[str, Any] | None]:
    """(space, coordinates, residuals rho^2, correction) of the training points."""
    if options.basis_for(kernel, points) == "closed":
        own: OwnFeatures = OwnFeatures(kernel, points)
        n = points.shape[0]
        if scipy.sparse.issparse(own.example):
            F = kernel.features(points)
            own = SparseFeatures(kernel, points, F)
            own.check_memory(n, dense=options.needs_sums)
            return own, hashing.numbered(F, own.columns), np.zeros(n), None
        own.check_memory(n)
        return own, own.coordinates(points), np.zeros(n), None
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
            squares=options.squares,
        )
    except NotPSDError:
        if options.indefinite == "raise":
            raise
        return _corrected_space(kernel, points, options)
    return fit.factor, fit.F, fit.residuals, None


def _corrected_space(
    kernel: Kernel, points: Array, options: MapOptions
) -> tuple[Corrected, Any, np.ndarray, dict[str, Any]]:
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


def refute_by_sample(kernel: Kernel, points: Array) -> None:
    """A kernel of unknown validity is refuted here, if a sample can refute it."""
    if not kernel.is_proven:
        most = min(_TESTED, points.shape[0], matrix_rows(current().limit(points)))
        factorize(kernel, kernel.layout.subset(points, np.arange(most)))


def refute_by_a_look(kernel: Kernel, points: Any) -> None:
    """The same by a few rows, where residuals of all rows are tested too. They see pairs of a point
    and a landmark, and so next to nothing where landmarks are few.

    Functions of the user are left alone: each call is the user's time.
    """
    if kernel.is_proven or kernel.runs_user_code:
        return
    some = evenly(points.shape[0], _LOOKED_AT)
    try:
        refute_by_sample(kernel, kernel.layout.subset(points, some))
    except NotPSDError as error:
        if error.witness is not None:  # of all rows, as what its reader has
            of_some, error.witness = error.witness, np.zeros(points.shape[0])
            error.witness[some] = of_some
        raise


def matrix_rows(limit: float) -> int:
    """Rows whose matrix may be stored for a look at them."""
    return max(100, int((limit / matrix_bytes(1, 8)) ** 0.5))
