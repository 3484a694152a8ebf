"""KernelSVC: the support vector machine of a kernel, with a certificate ([NPT] IV-B)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from itertools import combinations
from typing import Literal

import numpy as np

from ..engine import (
    Domain,
    MatrixProduct,
    MemoryLimitError,
    Resources,
    as_numpy,
    current,
    is_cpu,
    matrix_bytes,
    namespace,
    on_device_of,
    one_blas_thread,
    single_threaded,
)
from ..kernels import Data, KernelLike, Precomputed
from ..solve import MarginProblem
from .base import on_fitted
from .certified import CANDIDATES, CertifiedClassifier, WeightedRows, gram_of
from .kernel_map import KernelMap

# With more than two classes, rows whose kernel matrix is stored once for all pairs.
_STORED = 4000
# Rows that choose C="auto".
_ROWS_FOR_C = 3000


class KernelSVC(CertifiedClassifier):
    """Separate classes by the widest margin in the feature space of a kernel, and know how exactly.

    Minimises |f|^2 / 2 + sum_i C_i max(0, 1 - y_i (f(x_i) + b)), as scikit-learn's SVC does:
    the same decision values, dual variables and intercept. Of more than two classes every pair has
    its own function, and they vote. The duality gap of each function is computed for all rows,
    rounding included, so every decision value comes with a bound of its error (`error_bound`), and
    `certain` says for which rows the class is proven to be that of the exact machine.

    Parameters
    ----------
    C : float or "auto", default=1.0
        Weight of the errors against |f|^2. "auto" takes the best of 0.01, 0.1, ... 1000 in five
        folds of at most 3000 rows, each C starting from the support vectors of the one before.
    kernel : Kernel, str, callable or KernelMap, default="rbf"
        With a KernelMap the machine is solved on its coordinates; the certificate says how far
        that is from the machine of the kernel itself. A map that centres, repairs, appends the
        residual or is a Fourier series is a kernel by itself, and the certificate is for that one.
    class_weight : dict, "balanced" or None, default=None
        What C is multiplied by for each class.
    solver : {"auto", "dual", "landmarks"}, default="auto"
        "dual" is exact: kernel values of the rows near the margin. "landmarks" solves on the
        coordinates of 2000 landmarks, for noisy data beyond memory: certified, not exact. "auto"
        takes "dual", and "landmarks" where that does not fit the memory: :func:`mercer.plan` tells
        beforehand. Coordinates of a KernelMap are solved by the cheaper of two ways.
    tol : float, default=1e-3
        The certified error of each function, relative to its norm.
    memory_limit : int, str or None, default=None
        Bytes ("2GB"); None: 60 % of what is free.

    Attributes
    ----------
    classes_ : array of the labels
        Sorted.
    C_ : float
        The C that was used.
    solver_ : "dual", "landmarks" or "map"
        What solved the problem: see :func:`mercer.plan`.
    support_ : ndarray
        Rows with a coefficient, sorted by class.
    dual_coef_ : array of shape (n_classes - 1, n_support)
        Their signed coefficients, laid out as scikit-learn's SVC does.
    n_support_ : ndarray of shape (n_classes,)
        How many support vectors each class has.
    intercept_ : array of shape (n_pairs,)
        The constant of each function.
    gap_ : ndarray of shape (n_pairs,)
        P - D of every pair of classes, at most.
    error_norms_, intercept_errors_ : ndarray of shape (n_pairs,)
        |f(z) - f*(z)| <= sqrt(k(z, z)) error_norms_ for every z, and |b - b*| at most.
    converged_ : bool
        Whether every gap has reached `tol`.
    n_iter_ : int
        Steps of the solver: the most that any pair of classes needed.
    decision_ : Expansion, or LinearOnMap where a map is used
        The functions from points to decision values, one for each pair of classes.
    function_ : RKHSFunction, or a list of one for each pair of classes
        The same as sums of kernels, intercepts included.
    kernel_map_, coef_ : where a map is used
        The fitted map, and the weights on its coordinates.
    cv_scores_ : ndarray, for C="auto"
        Accuracy of each candidate.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from mercer import RBF, KernelSVC
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = KernelSVC(C=10.0, kernel=RBF(1.0)).fit(X[:100], y[:100])
    >>> round(model.score(X[100:], y[100:]), 2)
    0.95
    >>> float(model.error_bound(X).max()) < 1e-3
    True
    >>> bool(model.certain(X).all()), model.pair_values(X).shape
    (True, (200, 1))
    >>> bool(((model.decision_function(X) > 0) == (model.predict(X) == 1)).all())
    True
    """

    domains = CertifiedClassifier.domains | {"solver": Domain.one_of("auto", "dual", "landmarks")}

    def __init__(
        self,
        C: float | str = 1.0,
        kernel: KernelLike | KernelMap = "rbf",
        *,
        class_weight: dict | str | None = None,
        solver: Literal["auto", "dual", "landmarks"] = "auto",
        tol: float = 1e-3,
        memory_limit: int | str | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.memory_limit = memory_limit

    def _rows(self, X, y, sample_weight):
        if self.solver != "auto" and isinstance(self.kernel, KernelMap):
            raise ValueError(
                f"solver={self.solver!r} has no use for a KernelMap: pass its kernel, or "
                "solver='auto', which solves on the map's coordinates."
            )
        return super()._rows(X, y, sample_weight)

    def _kept_rows(self, training):
        if self.solver == "landmarks":
            return self._by_landmarks(training)
        self._given = training
        return super()._kept_rows(training)

    def _by_landmarks(self, training):
        limit = Resources.of(self).limit(training.points)
        room = max(1, limit - MatrixProduct.bytes_beside(training.kernel, training.points))
        given = self.kernel
        self.kernel = KernelMap(
            given,
            max_rank=MarginProblem.most_landmarks(training.n, room),
            pivots="random",
            random_state=0,
            memory_limit=self.memory_limit,
        )
        try:
            return super()._kept_rows(training)
        finally:
            self.kernel = given

    # --- solving ----------------------------------------------------------------------------------

    def _room(self, rows):
        """Beside copies of the rows, which products with K make."""
        given = (rows.kernel, rows.points) if rows.fit is None else (self.kernel_, rows.fit.points)
        return max(1, super()._room(rows) - MatrixProduct.bytes_beside(*given))

    def _solve(self, rows: WeightedRows) -> None:
        given = self.__dict__.pop("_given", None)
        optional = self.solver == "auto" and rows.fit is None and given.kernel.layout.on_data
        found = None
        with suppress(MemoryLimitError) if optional else nullcontext():  # predicted, or met
            found = self._solutions(rows, optional)
        if found is None:
            rows = self._by_landmarks(given)
            found = self._solutions(rows)
        self.solver_ = "dual" if rows.fit is None else "map"
        if self.solver_ == "map" and not isinstance(self.kernel, KernelMap):
            self.solver_ = "landmarks"
        self._keep(rows, *found)

    def _ways(self, rows):
        """Ways to solve for the largest pair of classes, times the number of pairs."""
        pairs = _Pairs(rows, self.C_, len(self.classes_), self._room(rows))
        largest = pairs[max(range(len(pairs)), key=lambda j: len(pairs.rows_of(j)))]
        made = largest.ways(self.solver, rows.fit is not None)
        return [way.times(len(pairs)) for way in made]

    def _solutions(self, rows, optional=False):
        """All pairs of classes solved, as many at a time as there are threads."""
        pairs = _Pairs(rows, self.C_, len(self.classes_), self._room(rows), stored=True)
        threads = 1 if rows.kernel.runs_user_code else min(current().threads, len(pairs))

        def solved(j):
            return pairs[j].solve(self.tol, on_map=rows.fit is not None, optional=optional)

        if threads == 1:
            return pairs, [solved(j) for j in range(len(pairs))]

        def alone(j):
            with single_threaded():
                return solved(j)

        pairs.limit //= threads
        with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
            return pairs, list(pool.map(alone, range(len(pairs))))

    def _keep(self, rows, pairs, solutions):
        """Attributes as SVC has them, and the certificates.

        In dual_coef_ the row of a class holds its coefficients against the others, in order.
        """
        full = np.zeros((len(rows.codes), len(pairs)))
        is_used = np.zeros(len(full), dtype=bool)
        for j, found in enumerate(solutions):
            mine, c = pairs.rows_of(j)[found.c != 0], found.c[found.c != 0]
            full[mine, j], is_used[mine] = c, True
        used = np.flatnonzero(is_used)
        used = used[np.argsort(rows.codes[used], kind="stable")]
        sign = -1.0 if len(pairs) > 1 else 1.0  # libsvm's first class is the positive one
        b = np.array([found.b for found in solutions])
        self.support_ = rows.kept[used]
        self.n_support_ = np.bincount(rows.codes[used], minlength=len(self.classes_))
        C = np.zeros(full.shape if rows.fit is not None else (0, 0))  # of maps alone
        for j in range(C.shape[1]):
            C[pairs.rows_of(j), j] = self.C_ * rows.weights[pairs.rows_of(j)]
        self._keep_certificates(rows, [found.certificate for found in solutions], full, C)
        codes, laid = rows.codes[used], np.zeros((len(self.classes_) - 1, len(used)))
        for j, (first, second) in enumerate(pairs.classes):
            laid[second - 1, codes == first] = sign * full[used[codes == first], j]
            laid[first, codes == second] = sign * full[used[codes == second], j]
        self._keep_functions(rows, full, b, used)
        self.dual_coef_, self.intercept_ = (
            on_device_of(part, self.decision_.b) for part in (laid, sign * b)
        )
        self.n_iter_ = max(found.n_iter for found in solutions)

    # --- C ----------------------------------------------------------------------------------------

    def _chosen_C(self, rows: WeightedRows) -> float:
        """The best accuracy of rows left out; the smallest such C where several are equal."""
        some, K = self._sample_for_C(rows, _ROWS_FOR_C)
        codes, weights = rows.codes[some], rows.weights[some]
        hits, room = np.zeros(len(CANDIDATES)), self._room(rows)
        for train, test in self._folds_for_C(codes):
            part = rows.part(Precomputed(), K[np.ix_(train, train)], some[train])
            start: dict[int, np.ndarray] = {}
            for i, C in enumerate(CANDIDATES):
                pairs = _Pairs(part, C, self._n_classes, room)
                values = np.zeros((len(test), len(pairs)))
                for j in range(len(pairs)):
                    found = pairs[j].solve(max(self.tol, 1e-2), start.get(j))
                    start[j] = np.flatnonzero(found.c)
                    mine = train[pairs.rows_of(j)]
                    values[:, j] = K[np.ix_(test, mine)] @ found.c + found.b
                best = _votes(values, self._n_classes).argmax(axis=1)
                hits[i] += weights[test] @ (best == codes[test])
        self.cv_scores_ = hits / weights.sum()
        return float(CANDIDATES[int(np.argmax(hits))])

    @property
    def _n_classes(self):
        return int(self.classes_.shape[0])

    # --- new points -------------------------------------------------------------------------------

    @on_fitted
    def decision_function(self, X: Data) -> np.ndarray:
        """Values of the function; of several classes, votes with the confidences between 0 and 1.

        As in SVC: one column per class, a vote for each pair that it wins plus a bounded sum of
        confidences. :meth:`pair_values` has the functions themselves.
        """
        values = self._functions(X)
        return values[:, 0] if values.shape[1] == 1 else _votes(values, self._n_classes)

    @on_fitted
    def pair_values(self, X: Data) -> np.ndarray:
        """Values of the function of every pair of classes: positive for its second class.

        Pairs are (0, 1), (0, 2), ..., (1, 2), ...: what `error_bound` bounds.
        """
        return self._functions(X)

    @on_fitted
    def predict(self, X: Data) -> np.ndarray:
        """The class of every row: of several, the one with most votes."""
        return self._best(self.decision_function(X))

    @on_fitted
    def certain(self, X: Data, *, diag: np.ndarray | None = None) -> np.ndarray:
        """Rows whose predicted class provably is that of the exact machine.

        Two classes: |decision value| exceeds its bound. Several: the class wins however the pairs
        vote whose sign is not certain. A precomputed kernel needs `diag`, the k(x, x).
        """
        values, bounds = self._functions(X), self._bounds(X, diag)
        sure = as_numpy(abs(values) > bounds)
        if values.shape[1] == 1:
            return on_device_of(sure[:, 0], values, dtype=namespace(values).bool)
        least, most = _vote_range(as_numpy(values) > 0, sure, self._n_classes)
        winner = as_numpy(_votes(values, self._n_classes)).argmax(axis=1)
        rows = np.arange(len(winner))
        won = least[rows, winner]
        most[rows, winner] = -1
        return on_device_of(won > most.max(axis=1), values, dtype=namespace(values).bool)


class _Pairs:
    """The problems of all pairs of classes, the second of which is positive."""

    def __init__(self, rows, C, n_classes, limit, stored=False):
        self.rows, self.C, self.limit = rows, C, limit
        self.classes = list(combinations(range(n_classes), 2))
        self._of_class = [np.flatnonzero(rows.codes == k) for k in range(n_classes)]
        n, host = len(rows.codes), is_cpu(rows.points)
        small = stored and host and n <= _STORED and matrix_bytes(n, 1.5) <= self.limit
        self.K = None
        if n_classes > 2 and small and rows.fit is None:
            # Sorted by class, what a pair needs is close together in memory.
            self.order = np.argsort(rows.codes, kind="stable")
            self._place = np.argsort(self.order)
            self.K = gram_of(rows, self.order)

    def __len__(self):
        return len(self.classes)

    def rows_of(self, j):
        first, second = self.classes[j]
        both = np.concatenate([self._of_class[first], self._of_class[second]])
        return np.sort(both, kind="stable")  # merges two sorted parts

    def __getitem__(self, j):
        rows, mine, limit = self.rows, self.rows_of(j), self.limit
        y, C = np.where(rows.codes == self.classes[j][1], 1.0, -1.0), self.C * rows.weights
        if self.K is None:
            whole = MarginProblem(rows.kernel, rows.points, y, C, rows.rounding, limit)
            return whole.part(mine)
        C, y, rounding = C[self.order], y[self.order], rows.rounding.take(self.order)
        return MarginProblem(Precomputed(), self.K, y, C, rounding, limit).part(self._place[mine])


def _votes(values, n_classes):
    """One column per class: pairs that it wins, plus its confidences squeezed into (-1/3, 1/3)."""
    xp = namespace(values)
    won: list = [0.0] * n_classes
    confidence: list = [0.0] * n_classes
    for j, (a, b) in enumerate(combinations(range(n_classes), 2)):
        column = values[:, j]
        second = xp.astype(column > 0, values.dtype)
        won[b], won[a] = won[b] + second, won[a] + (1 - second)
        confidence[b], confidence[a] = confidence[b] + column, confidence[a] - column
    total, sums = xp.stack(won, axis=1), xp.stack(confidence, axis=1)
    return total + sums / (3 * (xp.abs(sums) + 1))


def _vote_range(second, sure, n_classes):
    """(votes that every class has for certain, votes that it may have)."""
    least = np.zeros((len(second), n_classes), dtype=int)
    most = np.zeros_like(least)
    for j, (a, b) in enumerate(combinations(range(n_classes), 2)):
        for wins, k in ((second[:, j], b), (~second[:, j], a)):
            least[:, k] += wins & sure[:, j]
            most[:, k] += wins | ~sure[:, j]
    return least, most
