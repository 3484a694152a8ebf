"""Solver and RidgeSolution: what every way to solve a ridge problem can do, and what it leaves."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..engine import TravelsAsNumPy, as_numpy, namespace, on_device_of, positive_part, readable
from ..expansion import Expansion
from .problem import Caching, RidgeProblem

# Seconds of one core of a common machine: for one value of a kernel, for one operation of linear
# algebra (half a million of them in a product of 100 x 50 x 100), for each of the n^3 of an
# eigendecomposition, for passes over one number of a stored matrix, and to choose landmarks and
# start products at all. Only their ratios matter: the order of the solvers follows from them.
_SECONDS = {"values": 5e-9, "operations": 5e-11, "eigen": 2.5e-10, "passes": 1e-9, "starts": 0.03}
# Seconds before which neither a map of many dimensions (half a start) nor iterations are over; and
# transforms begin with many rows.
QUICKEST_START = 0.5 * _SECONDS["starts"]


class CannotSolve(ValueError):
    """A solver has begun and sees that it cannot end; another one may."""


class TooLarge(str):
    """A refusal because of memory."""

    @classmethod
    def beyond(cls, what: str, needed: float, limit: int) -> "TooLarge | None":
        """Why what is needed does not fit; None where it does."""
        if needed <= limit:
            return None
        return cls(f"{what} take {readable(needed)}; memory_limit allows {readable(limit)}")


@dataclass(frozen=True)
class Cost:
    """Predicted seconds of one core, and bytes beside the rows."""

    seconds: float
    bytes: int

    @classmethod
    def of(cls, needed: float, **counts: float) -> "Cost":
        """From bytes, and how often there is what _SECONDS has prices of."""
        return cls(sum(_SECONDS[what] * count for what, count in counts.items()), int(needed))


class Solver(ABC):
    """One way to solve a ridge problem."""

    name: str

    @abstractmethod
    def refusal(self, problem: RidgeProblem, asked: bool = True) -> str | None:
        """Why it cannot, in words; None where it can.

        asked : whether it was asked for by name, else why "auto" does not take it
        """

    @abstractmethod
    def cost(self, problem: RidgeProblem) -> Cost: ...

    @abstractmethod
    def solve(self, problem: RidgeProblem) -> "RidgeSolution": ...


# --- the solution ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step(TravelsAsNumPy):
    """Show how far the iterations were after some products with the kernel matrix.

    Attributes
    ----------
    products : int
        Products with K so far.
    bounds : tuple of float
        Bound of |f - f*| in the norm of the kernel's space, one per target.
    certified : bool
        From a residual computed in double precision; else an estimate of the recursion.
    seconds : float
        Since the iterations began.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge, Matern
    >>> x = np.linspace(0, 6, 50)[:, None]
    >>> model = KernelRidge(0.1, Matern(1.5), form="iterative").fit(x, np.sin(x[:, 0]))
    >>> last = model.history_[-1]
    >>> last.certified, last.products == model.n_iter_
    (True, True)
    """

    products: int
    bounds: tuple[float, ...]
    certified: bool
    seconds: float


@dataclass(frozen=True)
class Steps(TravelsAsNumPy):
    """How iterations went."""

    n_iter: int  # products with the kernel matrix
    converged: bool  # whether the tolerance was reached
    history: list[Step] = field(default_factory=list, repr=False)  # one Step per product
    rank: int | None = None  # of the preconditioner


@dataclass(frozen=True)
class LeftOut:
    """Some rows, each predicted without one observation of it."""

    residuals: np.ndarray  # t - f, one column per target
    left: np.ndarray  # 1 - leverage
    # of a new observation at each row, predicted without it, where they are known
    variances: np.ndarray | None = None

    @classmethod
    def of(cls, residuals: Any, left: Any, share: Any) -> "LeftOut":
        """From residuals t - f of the whole fit, and 1 - leverage of whole rows, one column each.

        share : the part of each row's weight that one observation has; None: all of it
        """
        left = as_numpy(left)
        if share is not None:
            left = 1 - as_numpy(share)[:, None] * (1 - left)
        return cls(as_numpy(residuals) / left, left[:, 0])


@dataclass(frozen=True, eq=False)
class RidgeSolution(Caching, TravelsAsNumPy, ABC):
    """z -> k(z, S) W + b, and what is known of it.

    Attributes
    ----------
    prediction : Expansion or LinearOnMap
        The function itself: call it with points.
    alphas : ndarray of shape (n_targets,)
        The penalty of each target.
    solver : str
        The name of the solver that found it.
    error_norms : array of shape (n_targets,) or None
        |f - f*| in the norm of the kernel's space, at most; f* is the exact solution.
    intercept_errors : array of shape (n_targets,) or None
        What is added to a bound at every point: |b - b*|, at most, where there is an intercept;
        the error of Fourier coordinates.
    steps : Steps or None, where iterations solved
        How the iterations went.
    choice : Choice or None, where the penalty was chosen
        The candidates with their leave-one-out errors.
    weights : array of shape (n_samples,) or None
        Of the rows that have one.
    dual : array of shape (n_samples, n_targets) or None
        One coefficient per row, zero for rows without a weight; None where rows were passed over.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, KernelRidge
    >>> x = np.linspace(0, 6, 50)[:, None]
    >>> solution = KernelRidge(0.1, RBF(1.0)).fit(x, np.sin(x)).solution_
    >>> solution.solver, solution.prediction(x).shape, bool(solution.error_bound(x).max() < 1e-6)
    ('direct', (50, 1), True)
    """

    prediction: Any
    alphas: np.ndarray
    solver: str
    error_norms: Any = None
    intercept_errors: Any = None
    steps: Any = None
    choice: Any = field(default=None, repr=False)
    weights: Any = None
    dual: Any = field(default=None, repr=False)

    @property
    def kernel(self) -> Any:
        return self.prediction.kernel

    @abstractmethod
    def left_out(self, rows: np.ndarray | None = None, share: Any = None) -> LeftOut:
        """Errors and leverages of some training rows (None: all), one row left out at a time.

        share : the part of each row's weight that one observation has; None: all of it
        """

    @abstractmethod
    def variance(self, points: Any, diag: Any = None) -> Any:
        """k(z, z) less what the rows explain of it, at `points`, one column per target.

        The posterior variance of a Gaussian process with noise alpha; with an intercept, that of
        one with an unknown mean. `diag` has the k(z, z) of a precomputed kernel.
        """

    def per_target(self, of_alpha: Callable[[float], Any]) -> Any:
        """of_alpha(alpha), evaluated once per alpha, as one column per target."""
        alphas = np.asarray(as_numpy(self.alphas), dtype=float)
        columns = {alpha: of_alpha(float(alpha)) for alpha in np.unique(alphas)}
        ordered = [columns[alpha] for alpha in alphas]
        return namespace(ordered[0]).stack(ordered, axis=1)

    @property
    def expansion(self) -> Expansion:
        """The prediction as a sum of kernels, also where it is one of a map's coordinates."""
        f = self.prediction
        return f if isinstance(f, Expansion) else f.expanded()

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in super().__getstate__().items() if k != "_cached"}

    def misses(self) -> Any:
        """t - f at the training rows that have a weight: alpha a / weight."""
        known = self.cached("misses")
        if known is not None:
            return known
        a = self.prediction.W * on_device_of(self.alphas, self.prediction.W)[None, :]
        return a if self.weights is None else a / self.weights[:, None]

    def with_variance(self, points: Any, diag: Any = None) -> tuple[Any, Any]:
        """(prediction, variance) at points; `diag` as for the variance."""
        return self.prediction(points), self.variance(points, diag)

    def error_bound(self, points: Any, diag: Any = None) -> Any:
        """|f(z) - f*(z)| at most, for the exact solution f*: one row for each of the `points`.

        `diag` has the k(z, z) of a precomputed kernel.
        """
        if self.error_norms is None or np.min(self.alphas) <= 0:
            raise ValueError(
                "no bound is known here: alpha is 0, terms of the kernel cancel on rows that were "
                "passed over and not held, the similarity is not a kernel, or the map is not that "
                "of the kernel (append_residual, a repaired similarity)."
            )
        xp = namespace(self.error_norms)
        own = self.kernel.layout.own_values(self.kernel, points, diag, self.error_norms)
        lengths = xp.sqrt(positive_part(on_device_of(own, self.error_norms)))
        bounds = lengths[:, None] * self.error_norms[None, :]
        if self.intercept_errors is not None:
            bounds = bounds + self.intercept_errors[None, :]
        return bounds
