"""CertifiedClassifier: rows, classes and weights read once, and bounds of the answers.

The certificate (solve/duality.py) bounds |f(z) - f*(z)| by sqrt(k(z, z)) times a number for every
z, f* being the exact solution on the same rows, and |b - b*| for every exact intercept.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import check_is_fitted

from ..engine import (
    Domain,
    MemoryLimitError,
    Resources,
    as_numpy,
    coordinates_bytes,
    is_array,
    is_number,
    is_numpy,
    matrix_bytes,
    namespace,
    on_device_of,
    positive_part,
    readable,
    row_norms,
    tiles,
)
from ..expansion import Expansion, RKHSFunction
from ..feature_map import FeatureMap
from ..kernels import Data, Input, Linear
from ..kernels import points as pts
from ..rows import Training
from ..solve import Given, MarginProblem, Plan, RidgeProblem, Rounding
from ..space import Corrected, Fourier, Landmarks, refute_by_sample
from .base import CLASS_WEIGHT, all_or_nothing, on_fitted, to_namespace_of
from .kernel_map import KernelMap
from .map_method import Labels, MapMethod, functions

# Candidates of C="auto", and the folds that choose.
CANDIDATES, _FOLDS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0), 5

# Rows that choose it, at least.
_FEWEST = 100

# Squares of larger ones leave the range of numbers.
_MOST_C = 1e100


@dataclass(frozen=True)
class WeightedRows:
    """The rows of positive weight: points of a kernel, class numbers, and what C is multiplied by.

    `kept` are their positions among all rows. Where a map was asked for, `points` are its
    coordinates, the kernel is their inner product, and `fit` says more. `workers` are those of the
    cluster that the rows came from.
    """

    kernel: Any
    points: Any
    codes: np.ndarray
    weights: np.ndarray
    kept: np.ndarray
    rounding: Rounding
    fit: Any = None
    workers: Any = None

    def part(self, kernel, points, some):
        """Some of the rows, as points of a kernel of their own."""
        codes, weights = self.codes[some], self.weights[some]
        return WeightedRows(
            kernel, points, codes, weights, self.kept[some], self.rounding.take(some)
        )


class CertifiedClassifier(Labels, MapMethod):
    """A classifier that knows how far it is from the exact solution of its own problem."""

    domains = {
        "C": Domain(
            lambda C: (isinstance(C, str) and C == "auto") or (is_number(C) and 0 < C <= _MOST_C),
            f"a positive number of at most {_MOST_C:g}, or 'auto'",
        ),
        "tol": Domain.SHARE,
        "class_weight": CLASS_WEIGHT,
    }
    C: Any
    class_weight: Any
    tol: float
    memory_limit: Any
    decision_: Any  # an Expansion, or a LinearOnMap
    gap_: Any
    error_norms_: np.ndarray
    intercept_errors_: np.ndarray
    classes_: Any
    C_: float
    _solve: Any  # from rows to decision_ and its certificate
    _chosen_C: Any  # from rows to C, where it is "auto"
    _ways: Any  # from rows to costs, of which the first is taken

    @all_or_nothing
    def fit(self, X: Input, y: Input | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Solve for all rows; `sample_weight` multiplies C, row by row."""
        rows = self._rows(X, y, sample_weight)
        self.C_ = float(self.C) if self.C != "auto" else self._chosen_C(rows)
        self._solve(rows)
        self._follow(rows.points)
        return self

    def _rows(self, X, y, sample_weight):
        training = self._read(
            X,
            y,
            sample_weight,
            targets="labels",
            why=type(self).__name__,
            resources=Resources.of(self, self.kernel),
            workers=True,
        )
        return replace(self._kept_rows(training), workers=training.workers)

    def __plan__(self, X: Any, y: Any, sample_weight: Any = None) -> Plan:
        """Costs of every way to solve for these rows; the first is taken."""
        return clone(self).__planned__(X, y, sample_weight)

    def __planned__(self, X: Any, y: Any, sample_weight: Any) -> Plan:
        rows = self._rows(X, y, sample_weight)
        self.C_ = 1.0 if self.C == "auto" else float(self.C)
        training = Training.of(rows.kernel, rows.points, memory_limit=self._room(rows))
        T = np.zeros((len(rows.codes), 1))
        return Plan.of(RidgeProblem(training, T, Given(np.ones(1))), self._ways(rows))

    def _follow(self, points):
        """Arrays of numbers among the attributes go where the rows are."""
        if not is_array(points) or is_numpy(points):
            return
        for name, value in list(vars(self).items()):
            if name.endswith("_") and is_numpy(value) and value.dtype.kind in "biuf":
                setattr(self, name, to_namespace_of(value, points))

    def _room(self, rows):
        """Bytes for solving: the limit of the estimator, else of its map, less the coordinates."""
        limit = Resources.of(self, self.kernel).limit(rows.points)
        return limit if rows.fit is None else max(1, limit - coordinates_bytes(*rows.points.shape))

    def _sample_for_C(self, rows, most):
        """(rows that choose C, their kernel matrix): it and its parts fit the memory."""
        room = self._room(rows)
        fit, few = int((room / matrix_bytes(1, copies=4)) ** 0.5), min(_FEWEST, len(rows.codes))
        if fit < few:
            raise MemoryLimitError(
                f"C='auto' solves for {few} rows at least, which takes "
                f"{readable(matrix_bytes(few, copies=4))}; memory_limit allows {readable(room)}. "
                "Raise it, or give C as a number."
            )
        drawn = np.random.default_rng(0).permutation(len(rows.codes))
        some = np.sort(drawn[: min(most, fit)])
        return some, gram_of(rows, some)

    def _folds_for_C(self, codes):
        """(rows that train, rows that test) of five folds, each with every class."""
        smallest = int(np.bincount(codes, minlength=len(self.classes_)).min())
        if smallest < 2:
            raise ValueError(
                f"C='auto' leaves out folds and needs two rows of each class, got {smallest} of "
                "one: give C as a number."
            )
        folds = StratifiedKFold(min(_FOLDS, smallest), shuffle=True, random_state=0)
        return folds.split(codes, codes)

    # --- reading ----------------------------------------------------------------------------------

    def _kept_rows(self, training):
        codes, self.classes_ = training.T, training.classes
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes, y has "
                f"{len(self.classes_)} class: {self.classes_.tolist()}."
            )
        self.n_rows_, weights = len(codes), np.ones(len(codes))
        weights = weights if training.weights is None else training.weights
        weights = weights * self._class_weights(codes, weights)[codes]
        kept = np.flatnonzero(weights > 0)
        left = np.unique(codes[kept])
        if len(left) < len(self.classes_):
            gone = np.setdiff1d(np.arange(len(self.classes_)), left)
            label = self.classes_.tolist()[gone[0]]
            raise ValueError(
                f"class {label!r} has no row of positive weight: leave its rows out, or give it a "
                "weight."
            )
        if isinstance(self.kernel, KernelMap):
            return self._on_map(training, weights, kept)
        kernel, points = training.kernel, training.points
        refute_by_sample(kernel, points)
        self.kernel_ = kernel
        if len(kept) < len(codes):
            points = kernel.layout.subset(points, kept)
        rounding = Rounding.of(kernel, kernel.layout.in_double(points))
        return WeightedRows(kernel, points, codes[kept], weights[kept], kept, rounding)

    def _on_map(self, training, weights, kept):
        """The same problem on the coordinates of a map: their inner product is the kernel."""
        fit, codes = self._fit_map(training), training.T
        Phi = fit.coordinates()
        if Phi is None:
            raise MemoryLimitError(
                f"{type(self).__name__} needs the coordinates of all {fit.n} rows at once: limit "
                "the rank with kernel=KernelMap(kernel, max_rank=...)."
            )
        Phi = Linear().layout.in_double(pts.some(Phi, kept))
        rounding = Rounding.of(Linear(), Phi)
        return WeightedRows(Linear(), Phi, codes[kept], weights[kept], kept, rounding, fit)

    def _class_weights(self, codes, weights):
        """One weight per class: from a dictionary (or 1), or such that all classes weigh alike."""
        if self.class_weight == "balanced":
            totals = np.bincount(codes, weights, minlength=len(self.classes_))
            return totals.sum() / (len(totals) * np.where(totals > 0, totals, 1.0))
        given = dict(self.class_weight or {})
        known = self.classes_.tolist()
        unknown = [c for c in given if c not in known]
        if unknown:
            raise ValueError(
                f"class_weight names {unknown[0]!r}, which is not a class of y: {known}."
            )
        if not all(is_number(w) and 0 <= w < np.inf for w in given.values()):
            raise ValueError(f"class_weight must hold non-negative numbers, got {given!r}.")
        return np.array([given.get(c, 1.0) for c in known], dtype=float)

    # --- the certificate of a map -----------------------------------------------------------------

    def _keep_certificates(self, rows, certificates, dual, C, factor=1.0):
        """gap_, error_norms_ and intercept_errors_, one per certificate; returns whether `tol` is
        reached. `dual` are the dual points, columns of `C` their largest coefficients.

        Functions of a map with few landmarks are functions of the kernel's own space: their P is
        exact, and their dual points cost one product with K. A map that centres, repairs or is the
        kernel's own is a kernel by itself.
        """
        gaps = np.array([c.gap for c in certificates])
        norms = np.array([c.error_norm for c in certificates])
        shifts = np.array([c.shift for c in certificates])
        fit, more = rows.fit, np.zeros(len(gaps))
        if fit is not None and _spans_kernel_space(fit.map):
            more, longest = _missed_by_map(rows, self.kernel_, dual, C)
            if len(gaps) < len(more):
                more = more.sum(keepdims=True)
            grown = np.sqrt(2 * np.maximum(gaps + more, 0.0)) - np.sqrt(2 * np.maximum(gaps, 0.0))
            norms, shifts = norms + grown, shifts + factor * longest * grown
        self.gap_, self.error_norms_, self.intercept_errors_ = gaps + more, norms, shifts
        aims = np.array([rows.rounding.aim(self.tol, c.norm) for c in certificates])
        self.converged_ = bool(np.all(self.gap_ <= aims))
        if not np.all(gaps <= aims):
            j = int(np.argmax(gaps / aims))
            warnings.warn(
                f"the certified error of the function is {norms[j]:.3g}, more than "
                f"tol={self.tol:g} times its norm {certificates[j].norm:.3g}. The bound holds all "
                "the same. What helps: a smaller C, standardised columns, or a larger tol.",
                ConvergenceWarning,
                stacklevel=6,
            )

    # --- prediction -------------------------------------------------------------------------------

    def _functions(self, X):
        """Values of every function of the model, with intercepts: one column per function."""
        return self.decision_(self._points(X))

    def _keep_functions(self, rows, dual, b, used):
        """decision_ from dual coefficients of all rows; `used` are those that an expansion has."""
        b = on_device_of(b, on_device_of(dual[:0], rows.points, dtype=float))
        if rows.fit is not None:
            w = rows.points.T @ on_device_of(dual, rows.points, dtype=float)
            self.coef_, self.decision_ = w.T, rows.fit.map.linear(w, b)
            return
        kernel, n = rows.kernel, self.n_rows_
        S = kernel.layout.support(kernel, rows.points, used, rows.kept, n)
        W = on_device_of(dual[used], rows.points, dtype=float)
        self.decision_ = Expansion(kernel, S, W, b)

    @on_fitted
    def error_bound(self, X: Data, *, diag: ArrayLike | None = None) -> np.ndarray:
        """How far the model's functions at the rows of X can be from the exact ones, certified.

        sqrt(k(z, z)) times `error_norms_`, plus `intercept_errors_`: rounding included, and for
        every exact intercept where there are several. One number per row, or one per row and
        function. A precomputed kernel needs `diag`, the k(z, z).
        """
        bounds = self._bounds(X, diag)
        return bounds[:, 0] if bounds.shape[1] == 1 else bounds

    def _bounds(self, X, diag):
        own = self._own_values(self._points(X), diag)
        xp = namespace(own)
        lengths = xp.sqrt(positive_part(xp.astype(own, xp.float64, copy=False)))
        norms = on_device_of(self.error_norms_, lengths)
        return lengths[:, None] * norms[None, :] + on_device_of(self.intercept_errors_, lengths)

    def _own_values(self, points, diag):
        """k(z, z) of the kernel that the bound is for."""
        layout, found = self.kernel_.layout, getattr(self.decision_, "map", None)
        if found is not None and _is_another_kernel(found):
            panels = found.panels(points)
            squares = [row_norms(Phi, namespace(Phi)) for Phi, _ in panels]
            return namespace(squares[0]).concat(squares)
        example = self.decision_.W if found is None else self.decision_.coef
        return layout.own_values(self.kernel_, points, diag, example)

    @property
    def function_(self) -> RKHSFunction | list[RKHSFunction]:
        """The decision functions as sums of kernels, intercepts included."""
        check_is_fitted(self)
        return functions(self.decision_)


def gram_of(rows: WeightedRows, some) -> np.ndarray:
    """The kernel matrix of some rows, as NumPy's."""
    problem = MarginProblem(rows.kernel, rows.points, np.empty(0), np.empty(0), rows.rounding)
    return problem.matrix(some)


def _spans_kernel_space(found: FeatureMap) -> bool:
    """Whether functions of a map's coordinates are functions of the kernel's own space."""
    plain = found.mean is None and not found.append_residual
    return plain and isinstance(found.space, Landmarks)


def _is_another_kernel(found: FeatureMap) -> bool:
    """Whether |phi(z)|^2 differs from k(z, z): centred, repaired, or a Fourier series."""
    return found.mean is not None or isinstance(found.space, (Corrected, Fourier))


def _missed_by_map(rows, kernel, dual, C):
    """(what joins the gap of each dual point when K takes the place of Phi Phi', the longest row).

    c'(K - Phi Phi')c / 2, and the rounding of values: they are those of sums over landmarks, off by
    eta tau(x) |w| (space/certificate.py), and a term of the gap changes by C_i times that at most.
    """
    points, space, layout = rows.fit.points, rows.fit.map.space, kernel.layout
    used = np.flatnonzero(np.any(dual != 0, axis=1))
    X = layout.in_double(pts.some(points, rows.kept[used]))
    c = on_device_of(dual[used], X, dtype=float)
    image = tiles.multiply(kernel, X, layout.landmarks(kernel, points, rows.kept[used]), c)
    whole = as_numpy(namespace(c).sum(c * image, axis=0))
    seen = as_numpy(rows.points.T @ on_device_of(dual, rows.points))
    squares = (seen**2).sum(axis=0)
    own = pts.some(kernel.diagonal(points), rows.kept)
    tau = as_numpy(space.radii(pts.some(points, rows.kept), own).tau).astype(np.float64)
    unit = space.roundoff() + rows.rounding.eta
    off = 4 * unit * (tau @ C)[:, None] if C.ndim > 1 else 4 * unit * (tau @ C)
    more = np.maximum(whole - squares, 0.0) / 2 + 2 * unit * (np.abs(whole) + squares)
    longest = float(np.sqrt(np.maximum(as_numpy(own), 0.0).max()))
    return more + np.ravel(off) * np.sqrt(squares), longest
