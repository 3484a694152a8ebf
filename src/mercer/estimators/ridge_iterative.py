"""The iterative form: what estimators ask of solve/iterative.py."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..engine import tiles
from ..engine.arrays import (
    as_numpy,
    cholesky,
    evenly,
    namespace,
    on_device_of,
    row_norms,
    solve_triangular,
)
from ..engine.memory import budget
from ..kernels import points as pts
from ..rows.gather import held_whole
from ..rows.source import in_pieces
from ..solve import solve_iteratively
from ..solve.system import double_like, in_double
from ..solve.workers import Workers
from .kernel_map import KernelMap, held_if_needed

# Points whose standard deviation is worth a solve of its own.
FEW = 64
# Training rows that certify an upper value for all others.
WITNESSES = 2000


@dataclass(frozen=True)
class SolverOptions:
    """How to solve: the estimator's own options, and those of a KernelMap given as its kernel."""

    tol: float
    max_iter: int
    keep_partial: bool
    rank: int | None = None
    landmark_tol: float | None = None
    pivots: str = "random"
    memory_limit: Any = None
    n_jobs: int | None = None
    verbose: bool = False
    random_state: Any = None

    @classmethod
    def of(cls, model):
        own = {"tol": model.tol, "max_iter": model.max_iter, "keep_partial": model.keep_partial}
        if not isinstance(model.kernel, KernelMap):
            return cls(**own)
        given = model.kernel
        given.check_parameters()
        _refuse_what_changes_the_map(given)
        return cls(
            **own,
            rank=given.max_rank,
            landmark_tol=given.tol,
            pivots=given.pivots,
            memory_limit=given.memory_limit,
            n_jobs=given.n_jobs,
            verbose=given.verbose,
            random_state=given.random_state,
        )

    def solve(self, kernel, points, T, alphas, weights=None, **changes):
        """The IterativeSolution."""
        options = vars(self) | changes
        if options["random_state"] is not None:
            seed = check_random_state(options["random_state"]).randint(np.iinfo(np.int32).max)
            options["random_state"] = int(seed)
        return solve_iteratively(kernel, points, T, alphas, weights, **options)


def _refuse_what_changes_the_map(given):
    """The iterations solve with the kernel itself: a KernelMap gives them landmarks alone."""
    # "auto" leaves the basis to mercer, and "cholesky" are the landmarks themselves.
    harmless = {
        "basis": ("cholesky", "auto"),
        "center": (False,),
        "append_residual": (False,),
        "indefinite": ("raise",),
    }
    values = given.get_params(deep=False)
    refused = [f"{k}={values[k]!r}" for k, fine in harmless.items() if values[k] not in fine]
    if refused:
        raise ValueError(
            f"form='iterative' solves with the kernel itself, and KernelMap({', '.join(refused)}) "
            "would have no effect. Use form='primal', or leave the option out: the iterations take "
            "max_rank, tol, pivots, memory_limit, n_jobs, random_state and verbose from a "
            "KernelMap, for the landmarks that precondition them."
        )


def gathered_rows(model, X):
    """(X, the workers of its cluster or None): some forms, and some maps, hold all rows here.

    Rows that come in pieces are gathered, n x d numbers. Those of a Dask collection are solved for
    by the workers of its cluster, in the iterative form.
    """
    if not in_pieces(X):
        return X, None
    if model.form not in ("iterative", "fourier"):
        # Before targets are read: those of rows that are held are arrays.
        given = model.kernel if isinstance(model.kernel, KernelMap) else KernelMap(model.kernel)
        return held_if_needed(X, given), None
    iterative = model.form == "iterative"
    limit = budget(SolverOptions.of(model).memory_limit if iterative else None)
    workers = Workers.of(X) if iterative else None
    return held_whole(X, limit, f"form='{model.form}'"), workers


def exact_variance(options, kernel, S, Z, diagonal, alpha, weights=None):
    """k(z, z) - k_z' (K + alpha N)^-1 k_z, by one more right-hand side per point."""
    K_Z = tiles.multiply(kernel, S, Z, on_device_of(np.eye(Z.shape[0]), double_like(S)))
    alphas = np.full(Z.shape[0], alpha)
    solution = options.solve(kernel, S, K_Z, alphas, weights, keep_partial=False)
    return diagonal - namespace(K_Z).sum(K_Z * solution.coef, axis=0)


def upper_variance(kernel, S, Z, diagonal, alpha, weights=None):
    """At least that: the variance given some of the rows, which know less than all of them."""
    some = evenly(S.shape[0], WITNESSES)
    witnesses = pts.take(S, some)
    K = tiles.evaluate(kernel, witnesses)
    noise = alpha * (np.ones(len(some)) if weights is None else 1 / as_numpy(weights)[some])
    C = cholesky(K + on_device_of(np.diag(noise), K))
    left = tiles.evaluate(kernel, Z, witnesses)
    return diagonal - row_norms(solve_triangular(C, left.T).T, namespace(left))


def points_in_double(kernel, points):
    """The points that predictions compare with: certified predictions need double precision."""
    return in_double(kernel, points)
