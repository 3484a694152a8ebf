"""RidgeProblem: min over f and b of sum_i w_i (t_i - f(x_i) - b)^2 + alpha |f|^2."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..engine import TravelsAsNumPy, as_numpy, evenly, matrix_bytes, namespace
from ..kernels import Kernel
from ..kernels import points as pts
from ..rows import Column, Training
from ..space import MapOptions, factorize

# Rows from which a problem judges its rank and its spectrum.
SAMPLE = 400
# Rows whose factorisation takes a few hundredths of a second.
_FEW_ROWS = 1000


class Caching:
    """Holds what was computed once: of a solution factors that leave-one-out errors and variances
    need, never saved."""

    def cached(self, name: Any, make: Callable[..., Any] | None = None) -> Any:
        """The value held under this name, or None; made, once, where it is said how."""
        kept = vars(self).setdefault("_cached", {})
        if name not in kept and make is not None:
            kept[name] = make()
        return kept.get(name)

    def keep(self, found: dict[Any, Any]) -> None:
        """Hold what was computed elsewhere, by its names."""
        vars(self).setdefault("_cached", {}).update(found)

    def forget(self) -> None:
        """Drop what can be computed again."""
        vars(self).pop("_cached", None)


@dataclass(frozen=True)
class Given:
    """Penalties that are given, one per target."""

    values: np.ndarray

    @property
    def smallest(self) -> float:
        return float(np.min(self.values))


@dataclass(frozen=True)
class LeaveOneOut:
    """The penalty with the smallest leave-one-out error, the same for all targets."""

    # Penalties to choose from; None: all, from `near` or from the spread of the rows
    candidates: np.ndarray | None = None
    # Whether candidates are multiples of the mean variance of the rows in feature space
    relative: bool = False
    near: float | None = None  # where a search begins
    share: Any = None  # the part of each row's weight that one observation has; None: all of it
    spread: Any = None  # sums of squares of targets within rows of several observations; or None
    importance: Any = None  # weights of the rows in the mean of the errors alone; or None

    @property
    def smallest(self) -> float:
        """The smallest that may be chosen, where that is known."""
        if self.candidates is None or self.relative:
            return 0.1 * self.near if self.near else 1e-8
        return float(np.min(self.candidates))

    def some(self, rows: np.ndarray) -> "LeaveOneOut":
        """For some of the rows."""
        parts = {name: getattr(self, name) for name in ("share", "spread", "importance")}
        parts = {k: part for k, part in parts.items() if part is not None}
        return replace(self, **{k: pts.take(part, rows) for k, part in parts.items()})


@dataclass(frozen=True)
class Choice(TravelsAsNumPy):
    """Which penalty was chosen: mean squared errors of candidates, summed over targets."""

    alpha: float
    alphas: np.ndarray
    errors: np.ndarray
    n_rows: int
    # Squared errors of some rows at the penalty that was chosen, or None
    losses: np.ndarray | None = None
    # For a discriminant: the penalty relative to the variance within classes,
    # and the factor on distances that calibrates probabilities
    share: float | None = None
    temperature: float = 1.0

    @property
    def error(self) -> float:
        """The mean squared error of the penalty that was chosen."""
        return float(self.errors[np.flatnonzero(self.alphas == self.alpha)[0]])


@dataclass(frozen=True)
class Preconditioning:
    """Landmarks of the iterations: how many at most, what they may leave of k(x, x), and which."""

    rank: int | None = None
    landmark_tol: float | None = None
    pivots: str = "random"
    # A Fit and a MatrixProduct of the same rows, where they are known.
    landmarks: Any = None
    product: Any = None


@dataclass(frozen=True)
class RidgeProblem(Caching):
    """A ridge problem, whichever solver solves it.

    Parameters
    ----------
    training : Training
        The rows, as `fit` reads them, with their kernel and the memory allowed.
    T : array of shape (n_samples, n_targets)
        Targets; a Column is read with the rows where these are not held.
    alpha : Given, LeaveOneOut or Shrinkage
        The penalty, or how it is chosen.
    weights : array of shape (n_samples,) or None
        Non-negative numbers.
    intercept : bool, default=False
        Whether a constant, without a penalty, belongs to the function.
    n_targets : int, default=0
        0: as many as T has columns.
    labels : bool, default=False
        Whether T holds labels of classes instead of numbers.
    tol : float, default=1e-4
        Certified error of a solution by iterations, relative to the function.
    digits : float, default=1e-8
        The same, where iterations replace a factorisation.
    max_iter : int, default=500
        Largest number of products with the kernel matrix.
    map : MapOptions or None, default=None
        The coordinates that are asked for; None: the solver may choose.
    preconditioning : Preconditioning
        The landmarks of the iterations.
    exact : bool, default=True
        False: a function of a few landmarks will do.
    patience : float, default=inf
        A solver refuses beyond so many predicted seconds of one core.
    keep_partial : bool, default=False
        On KeyboardInterrupt keep the solution so far, with its bound.

    Examples
    --------
    See :func:`solve_ridge`.
    """

    training: Training
    T: Any
    alpha: Any
    weights: Any = None
    intercept: bool = False
    n_targets: int = 0
    labels: bool = False
    tol: float = 1e-4
    digits: float = 1e-8
    max_iter: int = 500
    map: MapOptions | None = None
    preconditioning: Preconditioning = Preconditioning()
    exact: bool = True
    patience: float = math.inf
    keep_partial: bool = False

    def __post_init__(self) -> None:
        if not self.n_targets:
            object.__setattr__(self, "n_targets", self.T.shape[1])

    @property
    def kernel(self) -> Kernel:
        return self.training.kernel

    @property
    def n(self) -> int:
        """Rows; 0 where they have not been counted."""
        return self.training.n or 0

    @property
    def n_columns(self) -> int:
        """Right-hand sides: targets, and ones for the intercept."""
        return self.n_targets + self.intercept

    @cached_property
    def limit(self) -> int:
        """Bytes that a solver may take: asked for once, since free memory changes."""
        return self.training.resources.limit(self.training.points)

    @property
    def columns(self) -> list[Column]:
        """Targets and weights as fit_map takes them."""
        named = ((self.T, "y"), (self.weights, "sample_weight"))
        return [c if isinstance(c, Column) else Column(c, name) for c, name in named]

    def alphas(self, choice: "Choice | None") -> np.ndarray:
        """One per target: those given, or the one that was chosen."""
        if isinstance(self.alpha, Given):
            return np.asarray(self.alpha.values, dtype=float)
        assert choice is not None
        return np.full(self.n_targets, choice.alpha)

    @cached_property
    def kept(self) -> np.ndarray:
        """Positions of the rows with a weight."""
        if self.weights is None:
            return np.arange(self.n)
        return np.flatnonzero(as_numpy(self.weights) > 0)

    @property
    def with_weight(self) -> "RidgeProblem":
        """The same problem on the rows that have a weight; not kept, since it may be this one."""
        return self if len(self.kept) == self.n else self.some(self.kept)

    def some(self, rows: np.ndarray) -> "RidgeProblem":
        """The same problem on some of the rows, which are held."""
        alpha = self.alpha
        return replace(
            self,
            training=self.training.some(rows),
            T=pts.take(self.T, rows),
            weights=None if self.weights is None else pts.take(self.weights, rows),
            alpha=alpha.some(rows) if isinstance(alpha, LeaveOneOut) else alpha,
        )

    # --- what a sample of the rows tells ----------------------------------------------------------

    @cached_property
    def is_small(self) -> bool:
        """Whether a factorisation is over sooner than a sample is judged."""
        return self.n <= _FEW_ROWS and matrix_bytes(self.n, 2) <= self.limit

    @property
    def is_judged(self) -> bool:
        """Whether a sample of the rows predicts the rank, and how iterations go."""
        return self.kernel.is_proven and not self.is_small

    @property
    def in_double(self) -> bool:
        """Whether rows are NumPy's doubles."""
        points = self.training.points
        return isinstance(points, np.ndarray) and points.dtype == np.float64

    @cached_property
    def dimension(self) -> int:
        """Dimension of the kernel's own feature space, where known; else the number of rows."""
        n, points = self.n, self.training.points
        if len(points.shape) != 2:
            return n
        own = self.kernel.explicit_dim(points.shape[1])
        return n if own is None else min(n, own)

    @cached_property
    def trace(self) -> float:
        """Trace of the kernel matrix."""
        own = self.kernel.diagonal(self.training.points)
        return float(namespace(own).sum(own))

    @cached_property
    def rank(self) -> int:
        """Rank of the kernel matrix, predicted from its growth within a sample.

        The rank of a smooth kernel grows ever more slowly: with every doubling of the rows its
        growth falls by half of what it fell by within the sample.
        """
        n, m = self.n, min(self.n, SAMPLE)
        if self.dimension < m:
            return self.dimension
        known = self._sample_factor.shape[1]
        if known == m or m == n:
            return min(self.dimension, n if known == m else known)
        half, quarter = (max(self._factor_of(m // part).shape[1], 1) for part in (2, 4))
        growth, before = math.log2(max(known, 2) / half), math.log2(max(half, 2) / quarter)
        doublings, fall = math.log2(n / m), max(before - growth, 0.0) / 2
        for k in range(math.ceil(doublings)):
            growth = min(max(growth - fall, 0.0), 1.0)
            known *= 2.0 ** (growth * min(1.0, doublings - k))
        return int(min(self.dimension, known))

    @cached_property
    def _sample_factor(self) -> np.ndarray:
        return self._factor_of(min(self.n, SAMPLE))

    def _factor_of(self, m: int) -> np.ndarray:
        """F with F F' = K, for so many rows of the sample."""
        some = evenly(self.n, SAMPLE)
        some = some[evenly(len(some), m)]
        sample = self.training.some(some).points
        return as_numpy(factorize(self.kernel, sample).F).astype(np.float64)

    @cached_property
    def spectrum(self) -> np.ndarray:
        """Eigenvalues of a sample's kernel matrix, largest first, in the unit of all rows."""
        F = self._sample_factor
        values = np.zeros(len(F))
        values[: F.shape[1]] = np.maximum(np.linalg.eigvalsh(F.T @ F)[::-1], 0.0)
        return values * (self.n / len(F))
