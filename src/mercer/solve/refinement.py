"""Conjugate gradients with quick products, inside a refinement with exact residuals."""

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine import TravelsAsNumPy, as_numpy, namespace, on_device_of, tiles
from ..kernels import NotPSDError
from .conjugate_gradients import ConjugateGradients

# How far, and how long, quick products are trusted before the next exact residual.
QUICK_REDUCTION = 1e-4
QUICK_PRODUCTS = 100
EXACT_REDUCTION = 1e-10
# The estimate, from recursive residuals, must be this much below what is asked for.
MARGIN = 0.7
# A refinement that leaves more of the bound than this has reached the precision.
STALLED = 0.5
# Products without progress after which the recursion has reached the precision.
PATIENCE = 50


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


class Refinement:
    """Refinement around conjugate gradients: the state that an interruption leaves behind."""

    def __init__(self, system, tol, max_iter, keep_partial, callback, sizes=1.0):
        self.system, self.tol, self.max_iter = system, tol, max_iter
        self.sizes = sizes  # what the targets were divided by
        self.keep_partial, self.callback = keep_partial, callback
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

    def _refine(self):
        product = self.system.quick or self.system.exact
        while not np.all(self._reached(self.bounds)):
            stopped = self._iterate(product)
            before = self.bounds
            self._certify_direction()
            # A target that is done may stay as it is; the others must improve.
            open_targets = ~self._reached(self.bounds)
            if not np.any(open_targets):
                return
            if stopped is None and np.all((self.bounds > STALLED * before)[open_targets]):
                stopped = "precision" if product is self.system.exact else None
                product = self.system.exact
            if stopped is not None:
                self.reason = stopped
                return

    def _iterate(self, product):
        """Conjugate gradients on A d = residual. None, or why it must be the last time."""
        system = self.system
        reduction, most = EXACT_REDUCTION, self.max_iter
        if not product.exact:
            reduction, most = max(QUICK_REDUCTION, 0.1 * system.disturbance), QUICK_PRODUCTS

        def precondition(r: Any):
            z, self.squares = system.preconditioner(r)
            return z

        cg = ConjugateGradients(lambda p: system.times(product, p), precondition, self.residual)
        start = system.preconditioner.kappa * np.sqrt(self.squares)
        cg.frozen = self.squares == 0
        best, since, first = start, 0, self.products
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
            estimate = system.preconditioner.kappa * np.sqrt(self.squares)
            step = self._record(estimate, certified=False)
            stopped = self.callback is not None and bool(self.callback(step))
            norms = system.function_norms(self.b + cg.x, cg.r)
            cg.frozen |= (estimate <= reduction * start) | self._reached(estimate / MARGIN, norms)
            if stopped:
                return "callback"
            # Rounding ends progress long before the recursion says so.
            since = 0 if np.any(estimate < 0.99 * best) else since + 1
            best = np.minimum(best, estimate)
            if since >= PATIENCE or self.products - first >= most:
                return None
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

    def _reached(self, bounds, norms=None):
        return bounds <= self.tol * (self.norms if norms is None else norms)

    def _record(self, bounds, certified):
        seconds = time.perf_counter() - self.begun
        bounds = tuple(float(v) for v in bounds * self.sizes)
        step = Step(self.products, bounds, certified, seconds)
        self.history.append(step)
        self.progress.set_postfix(bound=f"{max(step.bounds):.2g}")
        self.progress.update(self.products - self.progress.n)
        return step

    def _check_positive(self, pAp, p):
        """Refuse what is not a kernel (in a quick product it may be rounding)."""
        if not np.all(np.isfinite(pAp)):
            raise ValueError("the kernel matrix contains NaN or infinity on this data.")
        # What is valid by construction is below zero by rounding alone, where alpha is beneath it.
        if not self.system.is_proven and np.any(pAp < -self.system.rounding_of_form(p)):
            raise NotPSDError(
                "conjugate gradients found a direction p with p'(K + alpha I)p < 0: this "
                "similarity is not a kernel on this data. check_mercer(kernel, X) shows a witness; "
                "KernelMap(kernel, indefinite='clip') repairs it.",
                witness=as_numpy(p)[:, int(np.argmin(pAp))],
            )
