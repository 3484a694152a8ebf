"""plan: what a fit would cost, before it is paid for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..engine import Domain, is_integer
from ..kernels import Input
from ..rows import HeldRows, gather
from ..solve import Given, Plan, RidgeProblem
from .certified import CertifiedClassifier
from .kernel_map import KernelMap, map_options, read_rows
from .learned_model import LearnedModel
from .ridge import RidgeEstimator

# Numbers that are drawn where only the shape of the data is given.
_MOST_DRAWN = 10**8


def plan(
    model: Any, X: Input | tuple[int, int], y: Any = None, sample_weight: Input | None = None
) -> Plan:
    """Predict what each way to fit a model would cost, and say why others refuse.

    KernelRidge and KernelRidgeCV with form="auto", KernelSVC with solver="auto" and KernelLogistic
    take the first way of the table: there is no other rule. Of KernelRegressor and KernelClassifier
    it is the last fit, without the search before it, on so many rows and with a usual kernel: what
    is learned may change it.

    Parameters
    ----------
    model : estimator
        KernelRidge, KernelRidgeCV, KernelMap (with landmarks), KernelSVC, KernelLogistic,
        KernelRegressor or KernelClassifier, unfitted; its memory_limit counts.
    X : rows as `fit` accepts them, or their shape
        With a shape (n, d) the rows are drawn uniformly from the unit cube.
    y, sample_weight : as in fit; y may be left out, except for KernelSVC and KernelLogistic
        The answer of the others depends on the number of targets alone.

    Returns
    -------
    Plan
        Prints as a table; ``.choice`` is the way that is taken.

    Examples
    --------
    >>> from mercer import RBF, KernelRidge, plan
    >>> p = plan(KernelRidge(0.1, RBF(50.0), memory_limit="2GB"), (500, 3))
    >>> p.choice
    'dual'
    >>> [way.name for way in p.ways if way.refusal]
    ['mixed', 'fourier', 'landmarks']
    """
    if hasattr(model, "domains"):
        Domain.check(model)
    if isinstance(model, LearnedModel):
        return model.__plan__(X[0] if isinstance(X, tuple) else _n_rows(X))
    if isinstance(X, tuple):
        X = _drawn(X)
    if isinstance(model, CertifiedClassifier):
        if y is None:
            raise ValueError("y must be passed: support vectors depend on the classes.")
        return model.__plan__(X, y, sample_weight)
    if isinstance(model, KernelMap):
        return _plan_of_map(model, X)
    y = np.zeros(_n_rows(X)) if y is None else y  # their number counts, not their values
    if isinstance(model, RidgeEstimator):
        problem, solver, _ = model.__ridge_problem__(X, y, sample_weight)
        if problem.map is not None and problem.map.basis == "fourier":
            raise _without_landmarks("fourier")
        return Plan.of_solvers(problem, solver)
    known = "KernelRidge, KernelRidgeCV, KernelMap, KernelSVC, KernelLogistic"
    raise TypeError(f"plan takes {known}, KernelRegressor or KernelClassifier, got {model!r}.")


def _plan_of_map(model, X):
    own = KernelMap(model.kernel)  # learns the names of the columns in place of the model
    found, options, passed = read_rows(model, X, owner=own), map_options(model), 0
    if not found.is_held:  # planned by the sample with which a fit begins
        sample = found.rows.sample(gather.SAMPLE, found.resources.rng())
        kernel = found.kernel.bind_points(sample.points, found.rows.names)
        found, passed = replace(found, kernel=kernel, rows=HeldRows(sample.points)), sample.n
    basis = options.basis_for(found.kernel, found.points)
    if basis in ("closed", "fourier"):
        raise _without_landmarks(basis)
    T = np.zeros((found.points.shape[0], 1))
    return Plan.of_map(RidgeProblem(found, T, Given(np.ones(1)), map=options), passed)


def _without_landmarks(basis):
    return ValueError(
        f"plan says what landmarks cost, and a map with basis={basis!r} has none: a fit takes sums "
        "over the rows, and transform returns rows x rank_ numbers. A fit to few rows tells rank_."
    )


def _drawn(shape):
    if len(shape) != 2 or not all(is_integer(size) and size >= 1 for size in shape):
        raise ValueError(f"the shape of X must be (rows, columns), positive, got {shape!r}.")
    n, d = shape
    if n * d > _MOST_DRAWN:
        raise ValueError(
            f"{n} x {d} rows are too many to draw for a plan: pass X itself, or plan for a part "
            "of the rows; time grows with their square, or cube, as the table shows."
        )
    return np.random.default_rng(0).uniform(size=(n, d))


def _n_rows(X):
    n = X.shape[0] if hasattr(X, "shape") else len(X) if hasattr(X, "__len__") else None
    if n is None or n != n:
        raise ValueError("y must be passed where X is a stream or a Dask collection.")
    return int(n)
