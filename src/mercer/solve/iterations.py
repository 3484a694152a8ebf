"""Exact ridge beyond memory: preconditioned conjugate gradients that know their own error.

Solves (K + alpha W^-1) a = t, W the sample weights, without storing K. In scaled unknowns
b = W^-1/2 a the matrix is A = W^1/2 K W^1/2 + alpha I. The preconditioner gives a bound of the
error of f = sum_i a_i k(x_i, .) in every step, and one with an exact residual certifies it:
|f(z) - f*(z)| <= sqrt(k(z, z)) * error_norm, for every z (MATH.md section 8).
"""

import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..engine import (
    Array,
    Domain,
    MatrixProduct,
    MemoryLimitError,
    Resources,
    as_host,
    as_numpy,
    coordinates_bytes,
    current,
    evenly,
    largest_power,
    namespace,
    on_device_of,
    readable,
    require,
    tiles,
    using,
)
from ..kernels import Kernel, NotPSDError, remembering
from ..rows import Workers
from ..space import Fit, check_symmetric
from .problem import Preconditioning
from .solver import Step
from .system import VECTORS, System, function_norms, scattered, vectors_of

# Points on which a user's function is tested for symmetry.
_SAMPLE = 64
_TINY = float(np.finfo(np.float64).tiny)
# How far, and how long, quick products are trusted before the next exact residual.
_QUICK_REDUCTION = 1e-4
_QUICK_PRODUCTS = 100
_EXACT_REDUCTION = 1e-10
# The estimate, from recursive residuals, must be this much below what is asked for.
_MARGIN = 0.7
# A refinement that leaves more of the bound than this has reached the precision.
_STALLED = 0.5
# Products without progress after which the recursion has reached the precision.
_PATIENCE = 50


@dataclass
class Certified:
    """Coefficients with a certified bound of their error.

    Attributes
    ----------
    coef : array of shape (n_samples, n_targets)
        a, in double precision: f(z) = sum_i a_i k(x_i, z).
    error_norms : ndarray of shape (n_targets,)
        |f(z) - f*(z)| <= sqrt(k(z, z)) error_norm for every z, f* being the exact solution.
    norms : ndarray of shape (n_targets,)
        |f| in the same norm; `tol` is relative to it.
    n_iter : int
        Products with the kernel matrix.
    converged : bool
        Whether every error_norm is at most tol times its norm.
    history : list of Step
        The bounds on the way.
    rank : int
        Landmarks of the preconditioner.
    way : {"stored", "tiles", "fused", "workers"}
        How exact products were computed.
    reason, helps : str
        Why they ended before they had converged, and what helps.

    Examples
    --------
    See :func:`solve_iteratively`.
    """

    coef: Any
    error_norms: np.ndarray
    norms: np.ndarray
    n_iter: int
    converged: bool
    history: list[Step] = field(repr=False)
    rank: int
    way: str
    reason: str = ""
    helps: str = ""


def solve_iteratively(
    kernel: Kernel,
    points: Any,
    T: Any,
    alphas: np.ndarray,
    weights: Any = None,
    *,
    tol: float = 1e-4,
    rank: int | None = None,
    landmark_tol: float | None = None,
    pivots: str = "random",
    max_iter: int = 500,
    resources: Resources | None = None,
    keep_partial: bool = False,
    callback: Callable[[Step], Any] | None = None,
    workers: Workers | None = None,
    landmarks: Fit | None = None,
    product: MatrixProduct | None = None,
) -> Certified:
    """Solve kernel ridge regression to a certified accuracy without storing the kernel matrix.

    Parameters
    ----------
    kernel : Kernel
        Bound to its data.
    points : array of shape (n, n_features)
        The rows; of kernels on objects, ``kernel.points(X)``.
    T : array of shape (n, n_targets)
        The targets, one column each.
    alphas : sequence of float
        Positive penalties, one per target.
    weights : array of shape (n,) or None
        Points of weight zero get coefficients of zero.
    tol : float, default=1e-4
        Stop when the certified error of every function is at most tol times its own norm.
    rank, landmark_tol, pivots : int or None, float or None, str
        Of the landmarks that precondition: how many at most (None: from the number of points and
        the memory); the share of every k(x, x) that they may leave (None: little beside alpha);
        how they are chosen.
    max_iter : int, default=500
        Largest number of products with the kernel matrix.
    resources : Resources or None
        Memory, threads, progress and random numbers.
    keep_partial : bool, default=False
        On KeyboardInterrupt return the solution so far, certified, instead of raising.
    callback : callable or None
        Called with every Step; a true result ends the iterations.
    workers : Workers or None
        Of a Dask cluster, to compute the products and hold the preconditioner.
    landmarks, product : optional
        Landmarks chosen before, and exact products, where the caller has them.

    Returns
    -------
    Certified
        Not converged: with a ConvergenceWarning that says how far it is, and what helps.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Matern
    >>> from mercer.solve import solve_iteratively
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> solution = solve_iteratively(Matern(1.5), X, np.sin(X[:, :1]), [0.1])
    >>> exact = np.linalg.solve(Matern(1.5)(X) + 0.1 * np.eye(500), np.sin(X[:, :1]))
    >>> Z = np.linspace(-3, 3, 20)[:, None] * [1.0, -1.0]
    >>> error = np.abs(Matern(1.5)(Z, X) @ (solution.coef - exact)).max()
    >>> bool(error <= solution.error_norms[0]), solution.converged
    (True, True)
    """
    alphas = np.broadcast_to(np.asarray(as_host(alphas), dtype=np.float64), (T.shape[1],))
    require(
        bool(np.all((alphas > 0) & (alphas < np.inf))),
        f"the iterative form needs alpha > 0, got {alphas.tolist()}: without a penalty neither the "
        "equations nor their certificate hold in floating point. Use form='dual'.",
    )
    Domain.SHARE("tol", tol)
    Domain.whole(2)("max_iter", max_iter)
    if rank is not None:
        Domain.whole(1)("rank", rank)
    n, rows = points.shape[0], np.arange(points.shape[0])
    if weights is not None:
        weights = np.asarray(as_host(weights), dtype=np.float64)
        rows = np.flatnonzero(weights > 0)
    if len(rows) < n:
        points, T, weights = kernel.layout.subset(points, rows), T[rows, :], weights[rows]
    if not kernel.symmetric:
        # A Gram matrix as a whole, a user's function on a sample: iterations would not notice.
        for K in kernel.layout.given_matrices(points):
            check_symmetric(kernel, K)
        some = evenly(points.shape[0], _SAMPLE)
        check_symmetric(kernel, kernel.layout.values(kernel, points, some))
    # The solution is linear in the targets, and their squares must neither vanish nor overflow.
    T = namespace(T).astype(T, namespace(T).float64, copy=False)
    sizes = largest_power(T, axis=0)
    T = T / on_device_of(sizes, T)[None, :]
    X = kernel.layout.in_double(points)
    resources = current() if resources is None else resources
    (n_rows, m), limit = T.shape, resources.limit(X)
    needed = vectors_of(kernel, X, m) + coordinates_bytes(n_rows, 2)
    if needed > limit:
        raise MemoryLimitError(
            f"the iterations hold {VECTORS} vectors for each of {m} target(s), and copies of the "
            f"rows: {readable(needed)} for {n_rows} points; memory_limit allows {readable(limit)}. "
            "Fit fewer targets at a time, or raise memory_limit."
        )
    choice = Preconditioning(rank, landmark_tol, pivots, landmarks, product)
    # Products need the pairs that landmarks were chosen from. A memory does not travel to workers.
    with using(resources), remembering(kernel) if workers is None else nullcontext():
        system = System(kernel, X, points, T, alphas, weights, choice, workers)
        run = _Refinement(system, tol, max_iter, keep_partial, callback, sizes)
        b = run.solve()
    coef = b if system.roots is None else b * system.roots[:, None]
    solution = Certified(
        coef=scattered(coef * on_device_of(sizes, coef)[None, :], rows, n),
        # Coefficients below the range of numbers are rounded to multiples of its smallest.
        error_norms=np.where(run.bounds > 0, np.maximum(run.bounds * sizes, _TINY), 0.0),
        norms=run.norms * sizes,
        n_iter=run.products,
        converged=run.reason is None,
        history=run.history,
        rank=system.rank,
        way=system.exact.way,
    )
    if run.reason is not None:
        solution.reason, solution.helps = _reasons(solution, run)[run.reason]
        warnings.warn(_not_converged(solution, tol), ConvergenceWarning, stacklevel=2)
    return solution


def _not_converged(solution: Certified, tol: float) -> str:
    wanted = tol * solution.norms
    ratio = np.full(len(wanted), np.inf)  # of a function that is still zero
    with np.errstate(over="ignore"):  # of one that is nearly zero
        np.divide(solution.error_norms, wanted, out=ratio, where=wanted > 0)
    j = int(np.argmax(ratio))
    return (
        f"{solution.reason}: the certified error of target {j} is {solution.error_norms[j]:.3g}, "
        f"{ratio[j]:.3g} times what tol={tol:g} asks for (|f| = {solution.norms[j]:.3g}). The "
        f"bound |f(z) - f*(z)| <= {solution.error_norms[j]:.3g} sqrt(k(z, z)) holds all the same. "
        f"What helps: {solution.helps}."
    )


def _reasons(solution: Certified, run: "_Refinement") -> dict[str, tuple[str, str]]:
    """Why iterations end before they have converged, and what helps."""
    rank, n = solution.rank, solution.coef.shape[0]
    return {
        "max_iter": (
            f"max_iter={run.max_iter} products with the kernel matrix were not enough",
            f"a larger rank of the preconditioner (now {rank} of {n} points; kernel=KernelMap("
            "kernel, max_rank=...)), a larger alpha, max_iter, tol or memory_limit",
        ),
        "precision": (
            f"rounding ended the progress after {solution.n_iter} products",
            "a larger alpha or tol" + (", or float64 data" if run.system.single else ""),
        ),
        "interrupted": ("the iterations were interrupted", "letting them end"),
        "callback": ("the callback ended the iterations", "letting them end"),
    }


# --- refinement -----------------------------------------------------------------------------------


class _Refinement:
    """Refinement around conjugate gradients: the state that an interruption leaves behind."""

    def __init__(
        self,
        system: System,
        tol: float,
        max_iter: int,
        keep_partial: bool,
        callback: Callable[[Step], Any] | None,
        sizes: Any = 1.0,
    ) -> None:
        self.system, self.tol, self.max_iter = system, tol, max_iter
        self.sizes = sizes  # what the targets were divided by
        self.keep_partial, self.callback = keep_partial, callback
        self.products = 0
        self.history: list[Step] = []
        self.reason: str | None = None
        self.begun = time.perf_counter()

    def solve(self) -> Any:
        """The best b; `bounds`, `norms` and `reason` say how good it is."""
        system, xp = self.system, namespace(self.system.T)
        self.b, self.bounds = xp.zeros_like(system.T), np.full(system.T.shape[1], np.inf)
        self.direction = None  # what the inner iterations have added to b, not yet certified
        self.residual = system.T
        with tiles.progress_bar("products") as self.progress:
            self._accept(self.b, self.residual)
            try:
                self._refine()
            except KeyboardInterrupt:
                if not self.keep_partial:
                    raise
                self.reason = "interrupted"
                with suppress(KeyboardInterrupt):  # a second interruption does without
                    self._certify_direction()
        return self.b

    def _refine(self) -> None:
        product = self.system.quick or self.system.exact
        while not np.all(self._reached(self.bounds)):
            stopped = self._iterate(product)
            before = self.bounds
            self._certify_direction()
            # A target that is done may stay as it is; the others must improve.
            open_targets = ~self._reached(self.bounds)
            if not np.any(open_targets):
                return
            if stopped is None and np.all((self.bounds > _STALLED * before)[open_targets]):
                stopped = "precision" if product is self.system.exact else None
                product = self.system.exact
            if stopped is not None:
                self.reason = stopped
                return

    def _iterate(self, product: MatrixProduct) -> str | None:
        """Conjugate gradients on A d = residual. None, or why it must be the last time."""
        system = self.system
        reduction, most = _EXACT_REDUCTION, self.max_iter
        if not product.exact:
            reduction, most = max(_QUICK_REDUCTION, 0.1 * system.disturbance), _QUICK_PRODUCTS

        def precondition(r: Any) -> Any:
            z, self.estimate = system.precondition(r)
            return z

        cg = ConjugateGradients(lambda p: system.times(product, p), precondition, self.residual)
        start = best = self.estimate
        cg.frozen, since, first = start == 0, 0, self.products
        while not np.all(cg.frozen):
            # One product is kept for the certificate.
            if self.products + 1 >= self.max_iter:
                return "max_iter"
            image, curvature = cg.product()
            self.products += 1
            if product.exact:
                self._check_positive(np.where(cg.frozen, 0.0, curvature), cg.p)
            cg.advance(image, curvature)
            if not np.any(cg.live):
                return None
            cg.turn()
            self.direction = cg.x
            estimate = self.estimate
            step = self._record(estimate, certified=False)
            stopped = self.callback is not None and bool(self.callback(step))
            norms = function_norms(self.b + cg.x, system.T, cg.r, system.alphas)
            cg.frozen |= (estimate <= reduction * start) | self._reached(estimate / _MARGIN, norms)
            if stopped:
                return "callback"
            # Rounding ends progress long before the recursion says so.
            since = 0 if np.any(estimate < 0.99 * best) else since + 1
            best = np.minimum(best, estimate)
            if since >= _PATIENCE or self.products - first >= most:
                return None
        return None

    def _certify_direction(self) -> None:
        """Take the step, with an exact residual."""
        if self.direction is not None:
            b, self.direction = self.b + self.direction, None
            residual = self.system.T - self.system.times(self.system.exact, b)
            self.products += 1
            self._accept(b, residual)

    def _accept(self, b: Array, residual: Array) -> None:
        """Keep what is an improvement."""
        system, xp = self.system, namespace(b)
        bounds = system.certify(residual, b)
        better = bounds < self.bounds
        if not np.all(better):
            chosen = on_device_of(better, b, dtype=xp.bool)[None, :]
            b = xp.where(chosen, b, self.b)
            residual = xp.where(chosen, residual, self.residual)
        self.b, self.residual = b, residual
        self.bounds = np.where(better, bounds, self.bounds)
        self.norms = function_norms(b, system.T, residual, system.alphas)
        self._record(self.bounds, certified=True)

    def _reached(self, bounds: np.ndarray, norms: np.ndarray | None = None) -> np.ndarray:
        return bounds <= self.tol * (self.norms if norms is None else norms)

    def _record(self, bounds: np.ndarray, certified: bool) -> Step:
        seconds = time.perf_counter() - self.begun
        known = tuple(float(v) for v in bounds * self.sizes)
        step = Step(self.products, known, certified, seconds)
        self.history.append(step)
        self.progress.set_postfix(bound=f"{max(step.bounds):.2g}")
        self.progress.update(self.products - self.progress.n)
        return step

    def _check_positive(self, pAp: np.ndarray, p: Array) -> None:
        """Refuse what is not a kernel (in a quick product it may be rounding)."""
        if not np.all(np.isfinite(pAp)):
            raise ValueError("the kernel matrix contains NaN or infinity on this data.")
        # A valid kernel gets below zero by rounding alone, if alpha is smaller than rounding.
        if not self.system.is_proven and np.any(pAp < -self.system.rounding_of_form(p)):
            raise NotPSDError(
                "conjugate gradients found a direction p with p'(K + alpha I)p < 0: this "
                "similarity is not a kernel on this data. check_mercer(kernel, X) shows a witness; "
                "KernelMap(kernel, indefinite='clip') repairs it.",
                witness=as_numpy(p)[:, int(np.argmin(pAp))],
            )


class ConjugateGradients:
    """A x = b from products with A and with an approximate inverse; `step` makes one product.

    x : the solution so far
    r : b - A x, by recursion; whoever computes it again may put it here
    z : the approximate inverse of A times r, from `precondition`
    p : the direction of the last step
    frozen : columns that stay as they are
    live : columns that the last step has moved
    """

    def __init__(self, times: Callable[[Any], Any], precondition: Callable[[Any], Any], B: Any):
        self.times, self.precondition = times, precondition
        self.x, self.r = namespace(B).zeros_like(B), B + 0.0
        self.z = precondition(self.r)
        self.p, self.rz = self.z + 0.0, _dots(self.r, self.z)
        self.frozen = np.zeros(B.shape[1], dtype=bool)

    def product(self) -> tuple[Any, np.ndarray]:
        """(A p, p'A p)."""
        image = self.times(self.p)
        return image, _dots(self.p, image)

    def advance(self, image: Any, curvature: np.ndarray) -> None:
        """Along p as far as its columns go."""
        live = ~self.frozen & (curvature > 0)
        self.frozen = self.frozen | ~live
        step = on_device_of(_quotient(self.rz, curvature, live), self.p)[None, :]
        self.x = self.x + self.p * step
        self.r = self.r - image * step
        self.live = live

    def turn(self) -> None:
        """To the next direction."""
        self.z = self.precondition(self.r)
        old, self.rz = self.rz, _dots(self.r, self.z)
        beta = on_device_of(_quotient(self.rz, old, self.live & (old > 0)), self.p)[None, :]
        self.p = self.z + self.p * beta


def _quotient(a: np.ndarray, b: np.ndarray, where: np.ndarray) -> np.ndarray:
    return np.where(where, a / np.where(where, b, 1.0), 0.0)


def _dots(U: Any, V: Any) -> np.ndarray:
    """Inner products of the columns, on the host."""
    return as_numpy(namespace(U).sum(U * V, axis=0)).astype(np.float64)
