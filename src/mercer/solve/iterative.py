"""Exact ridge beyond memory: preconditioned conjugate gradients that know their own error.

Solves (K + alpha W^-1) a = t, W the sample weights, without storing K. In scaled unknowns
b = W^-1/2 a the matrix is A = W^1/2 K W^1/2 + alpha I. The preconditioner gives a bound of the
error of f = sum_i a_i k(x_i, .) in every step, and one with an exact residual certifies it:
|f(z) - f*(z)| <= sqrt(k(z, z)) * error_norm, for every z (MATH.md section 8).
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..engine import tiles
from ..engine.arrays import as_numpy, is_array, namespace, on_device_of
from ..engine.memory import MemoryLimitError, budget, readable
from ..engine.products import exact_product, quick_product
from ..kernels.points import take
from ..kernels.validity import NotPSDError
from ..space.indefinite import check_symmetric, value_eps
from .preconditioner import Preconditioner, default_rank

# How far a quick product is trusted before the next exact residual.
QUICK_REDUCTION = 1e-4
EXACT_REDUCTION = 1e-10
# The estimate, from recursive residuals, must be this much below what is asked for.
MARGIN = 0.7
# A refinement that leaves more of the bound than this has reached the precision.
STALLED = 0.5
# Points on which a user's function is tested for symmetry.
SAMPLE = 64
# Vectors of length n that the iterations hold, for every target.
VECTORS = 12


@dataclass(frozen=True)
class Step:
    """One point of the history.

    products : int
        Products with K so far.
    bounds : tuple of float
        Bound of |f - f*| in the norm of the kernel's space, one per target.
    certified : bool
        From a residual computed in double precision; else an estimate of the recursion.
    seconds : float
        Since the iterations began.
    """

    products: int
    bounds: tuple[float, ...]
    certified: bool
    seconds: float


@dataclass
class IterativeSolution:
    """Coefficients with a certified bound of their error.

    Attributes
    ----------
    coef : array of shape (n_samples, n_targets)
        a, in double precision: f(z) = sum_i a_i k(x_i, z).
    error_norms : ndarray of shape (n_targets,)
        |f(z) - f*(z)| <= sqrt(k(z, z)) * error_norm for every z, where f* is the exact solution.
    norms : ndarray of shape (n_targets,)
        |f| in the same norm; ``tol`` is relative to it.
    n_iter : int
        Products with the kernel matrix.
    converged : bool
        Whether every error_norm is at most tol times its norm.
    history : list of Step
    rank : int
        Of the preconditioner.
    way : str
        How exact products were computed: "stored", "tiles" or "fused".
    """

    coef: Any
    error_norms: np.ndarray
    norms: np.ndarray
    n_iter: int
    converged: bool
    history: list[Step] = field(repr=False)
    rank: int
    way: str


def solve_iteratively(
    kernel,
    points,
    T,
    alphas,
    weights=None,
    *,
    tol: float = 1e-4,
    rank: int | None = None,
    pivots: str = "random",
    max_iter: int = 500,
    memory_limit=None,
    n_jobs: int | None = None,
    random_state=None,
    verbose: bool = False,
    keep_partial: bool = False,
    callback: Callable[[Step], Any] | None = None,
) -> IterativeSolution:
    """Solve kernel ridge regression to a certified accuracy without storing the kernel matrix.

    Parameters
    ----------
    kernel : Kernel
        Bound to its data.
    points : the kernel's points (kernel.points(X)), n of them
    T : array of shape (n, n_targets)
    alphas : array of shape (n_targets,)
        Positive penalties, one per target.
    weights : array of shape (n,) or None
        Sample weights; rows of weight zero get coefficients of zero.
    tol : float, default=1e-4
        Stop when the certified error of every function is at most tol times its own norm.
    rank : int or None
        Landmarks of the preconditioner; None: from the number of points and the memory.
    pivots : "random", "greedy" or "uniform"
        How they are chosen.
    max_iter : int, default=500
        Most products with the kernel matrix.
    memory_limit, n_jobs, random_state, verbose : as in KernelMap
    keep_partial : bool, default=False
        On KeyboardInterrupt return the solution so far, certified, instead of raising.
    callback : callable or None
        Called with every Step; a true result ends the iterations.

    Returns
    -------
    IterativeSolution
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
    alphas = _checked_alphas(alphas, T.shape[1])
    _check_numbers(tol, max_iter, rank)
    n, rows = points.shape[0], None
    if weights is not None:
        weights = np.asarray(as_numpy(weights) if is_array(weights) else weights, dtype=np.float64)
        if not np.all(weights > 0):
            rows = np.flatnonzero(weights > 0)
            points, T, weights = _subset(kernel, points, rows), T[rows, :], weights[rows]
    _check_symmetry(kernel, points)
    X = _in_double(kernel, points)
    limit = budget(memory_limit, X)
    _check_memory(X.shape[0], T.shape[1], limit)
    system = _System(
        kernel, X, points, T, alphas, weights, rank, pivots, limit, n_jobs, random_state, verbose
    )
    run = _Run(system, tol, max_iter, verbose, keep_partial, callback)
    b = run.solve()
    solution = IterativeSolution(
        coef=system.coefficients(b, n, rows),
        error_norms=run.bounds,
        norms=run.norms,
        n_iter=run.products,
        converged=run.reason is None,
        history=run.history,
        rank=system.preconditioner.rank,
        way=system.exact.way,
    )
    if run.reason is not None:
        warnings.warn(_not_converged(solution, run, tol), ConvergenceWarning, stacklevel=2)
    return solution


class _System:
    """A = D K D + alpha I with its products, its preconditioner, and what rounding does to it."""

    def __init__(
        self, kernel, X, points, T, alphas, weights, rank, pivots, limit, n_jobs, seed, verbose
    ):
        n = X.shape[0]
        like = tiles.allocate(X, (1, 1))
        diagonal = kernel.diagonal(X)
        self.alphas = alphas
        self.single = "32" in str(getattr(points, "dtype", ""))
        like = (
            like
            if "64" in str(like.dtype)
            else namespace(like).astype(like, namespace(like).float64)
        )
        self.T = on_device_of(T, like) + 0.0
        self.roots = None if weights is None else on_device_of(np.sqrt(weights), like)
        if self.roots is not None:
            self.T = self.T * self.roots[:, None]
        self.preconditioner = Preconditioner(
            kernel,
            X,
            alphas,
            self.roots,
            rank=default_rank(n, limit // 2, X) if rank is None else min(int(rank), n),
            pivots=pivots,
            rng=np.random.default_rng(0 if seed is None else seed),
            limit=limit,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        room = limit - 2 * self.preconditioner.bytes - 8 * VECTORS * n * T.shape[1]
        self.exact = exact_product(kernel, X, room, n_jobs=n_jobs)
        # Stored in double precision, K gives exact products at the price of quick ones.
        stored = self.exact.way == "stored"
        self.quick = None if stored else quick_product(kernel, points, room, n_jobs=n_jobs)
        xp = namespace(diagonal)
        lengths = xp.sqrt(xp.where(diagonal > 0, diagonal, xp.zeros_like(diagonal)))
        self.lengths = lengths if self.roots is None else lengths * self.roots
        eps = float(np.finfo(np.float64).eps)
        self.eta = eps * (float(kernel.rounding(kernel.landmarks(X))) + np.log2(n + 1))

    def times(self, product, V):
        """A V."""
        D = None if self.roots is None else self.roots[:, None]
        image = product(V) if D is None else product(V * D) * D
        return image + V * on_device_of(self.alphas, V)[None, :]

    def certify(self, residual, b):
        """Bounds of |f - f*| for an exact residual, rounding included.

        The residual carries errors of eta l(x_i) |l b| in every entry (as a rule: rounding errors of
        different kernel values are independent), and (K + alpha I)^-1 makes at most 1/alpha of
        their squares. The last term is the rounding of a prediction.
        """
        _, squares = self.preconditioner(residual)
        size = _norms(b * self.lengths[:, None])
        alphas = np.sqrt(self.alphas)
        error = self.eta * float(_norms(self.lengths[:, None])[0]) * size
        error += 2.0**-52 * (_norms(self.T) + self.alphas * _norms(b))
        return self.preconditioner.kappa * np.sqrt(squares) + error / alphas + self.eta * size

    def function_norms(self, b, residual):
        """|f| = sqrt(b' D K D b), where D K D b = t - alpha b - s."""
        xp = namespace(b)
        image = self.T - b * on_device_of(self.alphas, b)[None, :] - residual
        return np.sqrt(np.maximum(as_numpy(xp.sum(b * image, axis=0)), 0.0))

    def coefficients(self, b, n, rows):
        a = b if self.roots is None else b * self.roots[:, None]
        if rows is None:
            return a
        full = np.zeros((n, a.shape[1]))
        full[rows] = as_numpy(a)
        return on_device_of(full, a)


class _Run:
    """Refinement around conjugate gradients: the state that an interruption leaves behind."""

    def __init__(self, system, tol, max_iter, verbose, keep_partial, callback):
        self.system, self.tol, self.max_iter = system, tol, max_iter
        self.verbose, self.keep_partial, self.callback = verbose, keep_partial, callback
        self.products = 0
        self.history: list[Step] = []
        self.reason: str | None = None
        self.begun = time.perf_counter()

    def solve(self):
        """The best b; `bounds`, `norms` and `reason` say how good it is."""
        system, xp = self.system, namespace(self.system.T)
        self.b = xp.zeros_like(system.T)
        self.direction = None  # what the inner iterations have added to b, not yet certified
        self.residual = system.T
        with tiles.progress_bar(self.verbose, "products") as self.progress:
            self._accept(self.b, self.residual)
            try:
                self._refine()
            except KeyboardInterrupt:
                if not self.keep_partial:
                    raise
                self.reason = "interrupted"
                self._keep_what_there_is()
        return self.b

    def _refine(self):
        product = self.system.quick or self.system.exact
        while not np.all(self._reached(self.bounds)):
            stopped = self._iterate(product)
            before = self.bounds
            self._certify_direction()
            if np.all(self._reached(self.bounds)):
                return
            if stopped is not None:
                self.reason = stopped
                return
            # A target that is done may stay as it is; the others must improve.
            open_targets = ~self._reached(self.bounds)
            if np.all((self.bounds > STALLED * before)[open_targets]):
                if product is self.system.exact:
                    self.reason = "precision"
                    return
                product = self.system.exact

    def _iterate(self, product):
        """Conjugate gradients on A d = residual. None, or why it must be the last time."""
        system = self.system
        xp = namespace(self.b)
        reduction = EXACT_REDUCTION if product.exact else QUICK_REDUCTION
        x, r = xp.zeros_like(self.b), self.residual + 0.0
        z, squares = system.preconditioner(r)
        start, p = np.sqrt(squares), z + 0.0
        rz = _dots(r, z)
        done = squares == 0
        best = start
        since = 0
        while not np.all(done):
            # One product is kept for the certificate.
            if self.products + 1 >= self.max_iter:
                return "max_iter"
            Ap = system.times(product, p)
            self.products += 1
            pAp = _dots(p, Ap)
            live = ~done & (pAp > 0)
            if np.any(~done & ~(pAp > 0)):
                self._refuse_indefinite(product)
            if not np.any(live):
                return None
            step = np.where(live, rz / np.where(live, pAp, 1.0), 0.0)
            x = x + p * on_device_of(step, p)[None, :]
            r = r - Ap * on_device_of(step, p)[None, :]
            z, squares = system.preconditioner(r)
            self.direction = x
            estimate = np.sqrt(squares)
            stopped = self._report(x, r, estimate)
            done = done | ~live | (estimate <= reduction * start)
            done = done | self._reached(estimate / MARGIN, self._norms_with(x, r))
            if stopped:
                return "callback"
            # Rounding ends progress long before the recursion says so.
            since = 0 if np.any(estimate < 0.99 * best) else since + 1
            best = np.minimum(best, estimate)
            if since >= 50:
                return None
            old, rz = rz, _dots(r, z)
            beta = np.where(live & (old > 0), rz / np.where(old > 0, old, 1.0), 0.0)
            p = z + p * on_device_of(beta, p)[None, :]
        return None

    def _certify_direction(self):
        """Take the step, with an exact residual; keep it only where it is an improvement."""
        if self.direction is None:
            return
        system, xp = self.system, namespace(self.b)
        b = self.b + self.direction
        residual = system.T - system.times(system.exact, b)
        self.products += 1
        self.direction = None
        bounds = system.certify(residual, b)
        better = bounds < self.bounds
        if not np.all(better):
            chosen = on_device_of(better, b, dtype=xp.bool)[None, :]
            b = xp.where(chosen, b, self.b)
            residual = xp.where(chosen, residual, self.residual)
        self._accept(b, residual)

    def _accept(self, b, residual):
        self.b, self.residual = b, residual
        self.bounds = self.system.certify(residual, b)
        self.norms = self.system.function_norms(b, residual)
        self._record(self.bounds, certified=True)

    def _keep_what_there_is(self):
        """After an interruption: one more exact product; a second interruption does without."""
        try:
            self._certify_direction()
        except KeyboardInterrupt:
            self.direction = None

    def _norms_with(self, x, r):
        return self.system.function_norms(self.b + x, r)

    def _reached(self, bounds, norms=None):
        return bounds <= self.tol * (self.norms if norms is None else norms)

    def _report(self, x, r, estimate):
        step = self._record(estimate, certified=False)
        return self.callback is not None and bool(self.callback(step))

    def _record(self, bounds, certified):
        seconds = time.perf_counter() - self.begun
        step = Step(self.products, tuple(float(v) for v in bounds), certified, seconds)
        self.history.append(step)
        self.progress.set_postfix(bound=f"{max(step.bounds):.2g}", refresh=False)
        self.progress.update(self.products - self.progress.n)
        return step

    def _refuse_indefinite(self, product):
        """p'(K + alpha I)p <= 0: rounding of a quick product, or not a kernel."""
        if product.exact:
            raise NotPSDError(
                "conjugate gradients found a direction p with p'(K + alpha I)p <= 0: this similarity "
                "is not a kernel on this data. check_mercer(kernel, X) shows a witness; "
                "KernelMap(kernel, indefinite='clip') repairs it."
            )


def _not_converged(solution, run, tol):
    ratio = solution.error_norms / np.maximum(tol * solution.norms, np.finfo(float).tiny)
    j = int(np.argmax(ratio))
    rank, n = solution.rank, solution.coef.shape[0]
    why, what = {
        "max_iter": (
            f"max_iter={run.max_iter} products with the kernel matrix were not enough",
            f"a larger rank of the preconditioner (now {rank} of {n} points; "
            "kernel=KernelMap(kernel, max_rank=...)), a larger alpha, max_iter or tol",
        ),
        "precision": (
            f"rounding ended the progress after {solution.n_iter} products",
            "a larger alpha or tol" + (", or float64 data" if run.system.single else ""),
        ),
        "interrupted": ("the iterations were interrupted", "letting them end"),
        "callback": ("the callback ended the iterations", "letting them end"),
    }[run.reason]
    return (
        f"{why}: the certified error of target {j} is {solution.error_norms[j]:.3g}, "
        f"{ratio[j]:.3g} times what tol={tol:g} asks for (|f| = {solution.norms[j]:.3g}). The bound "
        f"|f(z) - f*(z)| <= {solution.error_norms[j]:.3g} sqrt(k(z, z)) holds all the same. What "
        f"helps: {what}."
    )


def _norms(V):
    """Euclidean norms of the columns, on the host."""
    return as_numpy(namespace(V).sum(V * V, axis=0)).astype(np.float64) ** 0.5


def _dots(U, V):
    return as_numpy(namespace(U).sum(U * V, axis=0)).astype(np.float64)


def _check_symmetry(kernel, points):
    """A Gram matrix as a whole, a user's function on a sample: iterations would not notice."""
    if kernel.symmetric:
        return
    K = points
    if kernel.kind != "gram":
        some = np.linspace(0, points.shape[0] - 1, min(SAMPLE, points.shape[0])).astype(int)
        some = take(points, np.unique(some))
        K = kernel.against(kernel.landmarks(some))(some)
    check_symmetric(kernel, K, value_eps(K, float(np.finfo(np.float64).eps)))


def _in_double(kernel, points):
    """Points whose kernel values come in double precision. A Gram matrix, perhaps too large to be
    copied, stays as it is: products convert a block of rows at a time."""
    if kernel.kind == "gram":
        return points
    if not is_array(points):
        return points if points.dtype == np.float64 else points.astype(np.float64)
    if getattr(points.dtype, "kind", "f") == "O":
        return points
    xp = namespace(points)
    return xp.astype(points, xp.float64, copy=False)


def _subset(kernel, points, rows):
    if kernel.kind == "gram":
        return take(points, rows)[:, rows]
    return take(points, rows)


def _checked_alphas(alphas, n_targets):
    alphas = np.broadcast_to(np.asarray(alphas, dtype=np.float64), (n_targets,))
    if not np.all((alphas > 0) & (alphas < np.inf)):
        raise ValueError(
            f"the iterative form needs alpha > 0, got {alphas.tolist()}: without a penalty neither "
            "the equations nor their certificate hold in floating point. Use form='dual'."
        )
    return alphas


def _check_numbers(tol, max_iter, rank):
    if not isinstance(tol, (int, float)) or not 0 < tol < 1:
        raise ValueError(f"tol must be a number between 0 and 1, got {tol!r}.")
    if isinstance(max_iter, bool) or max_iter != int(max_iter) or max_iter < 2:
        raise ValueError(f"max_iter must be an integer of at least 2, got {max_iter!r}.")
    if rank is not None and (isinstance(rank, bool) or rank != int(rank) or rank < 1):
        raise ValueError(f"rank must be a positive integer or None, got {rank!r}.")


def _check_memory(n, m, limit):
    needed = 8 * n * (VECTORS * m + 2)
    if needed > limit:
        raise MemoryLimitError(
            f"the iterations hold {VECTORS} vectors for each of {m} target(s), {readable(needed)} "
            f"for {n} points; memory_limit allows {readable(limit)}. Fit fewer targets at a time, "
            "or raise memory_limit."
        )
