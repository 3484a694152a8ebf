"""RidgeSolution: a function, its error, its leave-one-out errors and its variance."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..engine import TravelsAsNumPy, as_numpy, namespace, on_device_of, positive_part
from ..expansion import Expansion
from .refinement import Step


@dataclass(frozen=True)
class Steps(TravelsAsNumPy):
    """How iterations went.

    n_iter : products with the kernel matrix
    converged : whether the tolerance was reached
    history : one Step per product
    rank : of the preconditioner
    """

    n_iter: int
    converged: bool
    history: list[Step] = field(default_factory=list, repr=False)
    rank: int | None = None


@dataclass(frozen=True)
class LeftOut:
    """Some rows, each predicted without one observation of it.

    residuals : t - f, one column per target
    left : 1 - leverage
    variances : of a new observation at each row, predicted without it, where they are known
    """

    residuals: np.ndarray
    left: np.ndarray
    variances: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class RidgeSolution(TravelsAsNumPy, ABC):
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

    @property
    def expansion(self) -> Expansion:
        """The prediction as a sum of kernels, also where it is one of a map's coordinates."""
        f = self.prediction
        return f if isinstance(f, Expansion) else f.map.expand(f.coef, f.b)

    def cached(self, name: Any, make: Any) -> Any:
        """make(), once: factors that leave-one-out errors and variances need, never saved."""
        kept = vars(self).setdefault("_cached", {})
        if name not in kept:
            kept[name] = make()
        return kept[name]

    def forget(self) -> None:
        """Drop what can be computed again."""
        vars(self).pop("_cached", None)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in super().__getstate__().items() if k != "_cached"}

    def misses(self) -> Any:
        """t - f at the training rows that have a weight: alpha a / weight."""
        a = self.cached("misses", lambda: None)
        if a is not None:
            return a
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
                "passed over and not held, or the map is not that of the kernel (append_residual, "
                "a repaired similarity)."
            )
        xp = namespace(self.error_norms)
        own = self.kernel.layout.own_values(self.kernel, points, diag, self.error_norms)
        lengths = xp.sqrt(positive_part(on_device_of(own, self.error_norms)))
        bounds = lengths[:, None] * self.error_norms[None, :]
        if self.intercept_errors is not None:
            bounds = bounds + self.intercept_errors[None, :]
        return bounds


def per_target(alphas: Any, of_alpha: Any) -> Any:
    """of_alpha(alpha), evaluated once per alpha, as one column per target."""
    alphas = np.asarray(as_numpy(alphas), dtype=float)
    columns = {alpha: of_alpha(float(alpha)) for alpha in np.unique(alphas)}
    ordered = [columns[alpha] for alpha in alphas]
    return namespace(ordered[0]).stack(ordered, axis=1)


def left_out_of(residuals: Any, left: Any, share: Any) -> LeftOut:
    """From residuals t - f of the whole fit, and 1 - leverage of whole rows, one column each."""
    left = as_numpy(left)
    if share is not None:
        left = 1 - as_numpy(share)[:, None] * (1 - left)
    return LeftOut(as_numpy(residuals) / left, left[:, 0])
