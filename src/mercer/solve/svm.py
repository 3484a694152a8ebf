"""Support vector machines of two classes on kernel values: exact, certified, a few rows at a time.

Rows that are well inside their class have coefficient zero, and need no place in the kernel matrix.
So a sample is solved first; its function says which rows of a larger sample may be support vectors,
and so on until all rows are there (nested samples, four times as many each time). libsvm solves
the small problems roughly, `active_set` the last one exactly. Rows outside that violate
their margin join in, until the duality gap over ALL rows is small enough.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
from sklearn.svm import SVC

from ..engine import tiles
from ..engine.arrays import as_numpy, on_device_of
from ..engine.memory import MemoryLimitError, budget, matrix_bytes, readable
from ..kernels import points as pts
from .active_set import BoxDual
from .duality import Certificate, Rounding, best_hinge_intercept, hinge_certificate
from .interior_point import interior_point
from .system import double_like, in_double

# Rows of the first sample, and how much larger each next one is.
FIRST, STEP = 1000, 4
# Rows of a next sample join in where their margin is below this, ...
NEAR = 1.15
# ... at most so many times as there are support vectors now, relative to the sizes of the samples.
MOST_NEAR = 2.5
# How far libsvm solves before the next sample, and before the last, exact part.
ROUGH, FINE = 5e-2, 3e-2
# New rows beyond this share of the support vectors change too much for an active set: libsvm again.
MANY_NEW = 0.08
MOST_ROUNDS = 30
# Copies of the matrix of a working set: K, libsvm's own in single precision, parts of it.
COPIES = 2.5


@dataclass(frozen=True)
class MarginProblem:
    """min |f|^2 / 2 + sum_i C_i max(0, 1 - y_i (f(x_i) + b)), b free.

    kernel : Kernel, bound to its data
    points : the kernel's points
    y : ndarray of +1.0 and -1.0
    C : ndarray of positive numbers, one per row
    rounding : Rounding of the rows
    rows : their positions among the rows of a problem that this is part of
    """

    kernel: Any
    points: Any
    y: np.ndarray
    C: np.ndarray
    rounding: Rounding
    memory_limit: Any = None
    n_jobs: int | None = None
    rows: np.ndarray | None = None

    def matrix(self, rows):
        """Kernel values of some rows among each other, as NumPy's doubles."""
        own = pts.take(self.points, rows)
        if self.kernel.kind == "gram":
            K = self.kernel.against(self.kernel.landmarks(self.points, rows))(own)
            return np.ascontiguousarray(as_numpy(K), dtype=np.float64)
        K = tiles.evaluate(self.kernel, in_double(self.kernel, own))
        return np.ascontiguousarray(as_numpy(K), dtype=np.float64)

    def values(self, c, rows=None):
        """sum_j c_j k(x_j, x_i) for these rows i (None: all)."""
        used = np.flatnonzero(c)
        X = in_double(self.kernel, self.points if rows is None else pts.take(self.points, rows))
        if not len(used):
            return np.zeros(X.shape[0])
        if self.kernel.kind == "gram":
            S = self.kernel.landmarks(self.points, used)
        else:
            S = self.kernel.landmarks(in_double(self.kernel, pts.take(self.points, used)))
        W = on_device_of(c[used][:, None], double_like(self.points))
        return as_numpy(tiles.multiply(self.kernel, X, S, W))[:, 0]


@dataclass(frozen=True)
class MarginSolution:
    """c : one signed coefficient y_i a_i per row; b : the intercept; values : f(x_i) without b."""

    c: np.ndarray
    b: float
    values: np.ndarray
    certificate: Certificate
    n_iter: int
    solver: str


def solve_margin(
    problem: MarginProblem, tol: float = 1e-3, start: np.ndarray | None = None
) -> MarginSolution:
    """Solve until the certified error of the function is at most tol times its norm.

    `start`: rows that were support vectors of a problem nearby (another C), to begin with.
    """
    return _WorkingSet(problem, tol).solve(start)


def solve_on_coordinates(problem: MarginProblem, tol: float = 1e-3) -> MarginSolution:
    """The same where the points are coordinates and the kernel is their inner product: by an
    interior-point method, without a matrix of rows by rows."""
    p, aim = problem, problem.rounding.aim(tol, 0.0)
    found: Any = None
    for _ in range(3):
        c, steps = interior_point(p.points, p.y, p.C, aim)
        values = p.values(c)
        b = best_hinge_intercept(p.y, p.C, values)
        size = float(np.linalg.norm(c * p.rounding.lengths))
        certificate = hinge_certificate(p.y, p.C, c, b, values, p.rounding, size)
        if found is None or certificate.gap < found.certificate.gap:
            found = MarginSolution(c, b, values, certificate, steps, "coordinates")
        if found.certificate.gap <= p.rounding.aim(tol, certificate.norm):
            break
        aim *= 0.01
    return found


class _WorkingSet:
    def __init__(self, problem, tol):
        self.problem, self.tol = problem, tol
        self.n = len(problem.y)
        self.rounding = problem.rounding
        self.limit = budget(problem.memory_limit)
        self.c, self.b, self.n_iter = np.zeros(self.n), 0.0, 0
        # Values at all rows of the coefficients `known`, and |l c| of what was added up for them.
        self.known, self.values, self.size = self.c, np.zeros(self.n), 0.0

    def solve(self, start):
        rows = self._first_rows(start)
        for size in self._sizes(len(rows)):
            self._roughly(rows, ROUGH)
            some = self.order[:size]
            rows = self._near(some, len(rows), size)
        self._roughly(rows, FINE)
        return self._exactly(rows)

    # --- nested samples ---------------------------------------------------------------------------

    def _first_rows(self, start):
        """A sample with both classes in it; rows that are known to matter come first."""
        y = self.problem.y
        self.order = np.random.default_rng(0).permutation(self.n)
        if start is not None and len(start):
            self.order = np.concatenate([start, np.setdiff1d(self.order, start)])
            first = max(FIRST, len(start))
        else:
            rank = np.empty(self.n)
            for sign in (-1, 1):  # the k-th row of each class comes at the k-th share of its class
                mine = self.order[y[self.order] == sign]
                rank[mine] = (np.arange(len(mine)) + 0.5) / len(mine)
            self.order = np.argsort(rank, kind="stable")
            first = FIRST
        if self.n <= 2 * first:
            return np.arange(self.n)
        return np.sort(self.order[:first])

    def _sizes(self, first):
        if first == self.n:
            return []
        sizes: list[int] = []
        while not sizes or sizes[-1] < self.n:
            sizes.append(min(self.n, STEP * (sizes[-1] if sizes else first)))
        return sizes

    def _near(self, some, before, size):
        """Support vectors, and rows of the next sample that may become some."""
        values = self.problem.values(self.c, some)
        margins = self.problem.y[some] * (values + self.b)
        support = np.flatnonzero(self.c)
        near = margins < NEAR
        most = max(FIRST, int(MOST_NEAR * len(support) * min(STEP, size / before)))
        near_rows = some[near]
        if len(near_rows) > most:
            near_rows = near_rows[np.argsort(margins[near], kind="stable")[:most]]
        if size == self.n:  # of all rows: from here on only changes are added
            self.values[some], self.known, self.size = values, self.c, self._size_of(self.c)
        return np.union1d(near_rows, support)

    def _roughly(self, rows, tol):
        """libsvm on the kernel matrix of some rows; all others get coefficient zero."""
        p = self.problem
        self._hold(rows)
        largest = float(p.C[rows].max())
        machine = SVC(
            C=largest, kernel="precomputed", tol=tol, cache_size=1 + 5e-6 * len(rows) ** 2
        )
        with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
            machine.fit(self.K, p.y[rows], sample_weight=p.C[rows] / largest)
        self.n_iter += int(np.sum(machine.n_iter_))
        c = np.zeros(self.n)
        c[rows[machine.support_]] = machine.dual_coef_[0]
        self.c, self.b = c, float(machine.intercept_[0])

    # --- the exact solution -----------------------------------------------------------------------

    def _exactly(self, rows):
        """Values at all rows after each change; rows that violate their margin join in."""
        best, p = None, self.problem
        for _ in range(MOST_ROUNDS):
            self._update()
            found = hinge_certificate(
                p.y, p.C, self.c, self.b, self.values, self.rounding, self.size
            )
            if best is None or found.gap < best.certificate.gap:
                best = MarginSolution(self.c, self.b, self.values, found, self.n_iter, "dual")
            if found.gap <= self.rounding.aim(self.tol, found.norm):
                break
            margins = p.y * (self.values + self.b)
            outside = np.ones(self.n, dtype=bool)
            outside[rows] = False
            wrong = np.flatnonzero(outside & (margins < 1))
            support = np.count_nonzero(self.c)
            if len(wrong):
                most = max(FIRST, 2 * support)
                wrong = wrong[np.argsort(margins[wrong], kind="stable")[:most]]
                if len(rows) > MOST_NEAR * support:  # not each time: what is dropped may come back
                    rows = rows[(self.c[rows] != 0) | (margins[rows] < NEAR)]
                rows = np.union1d(rows, wrong)
            if len(wrong) > MANY_NEW * support:
                self._roughly(rows, FINE)
                continue
            if len(wrong):
                self._hold(rows)
            before = found.gap
            self._ascend(rows)
            if not len(wrong) and best.certificate.gap <= before and self.stuck:
                break
        return best

    def _update(self):
        """The values of the present coefficients, from those that are known; the best intercept."""
        p = self.problem
        change = self.c - self.known
        self.values = self.values + p.values(change)
        self.size += self._size_of(change)
        self.known = self.c
        self.b = best_hinge_intercept(p.y, p.C, self.values)

    def _ascend(self, rows):
        """The exact solution of the working set, from the coefficients at hand."""
        p = self.problem
        dual = BoxDual(self.K, p.y[rows], p.C[rows], self.c[rows].copy(), self.b)
        norm = max(float(dual.c @ (self.K @ dual.c)), 0.0) ** 0.5
        dual.solve(0.05 * self.rounding.aim(self.tol, norm))
        c = np.zeros(self.n)
        c[rows] = dual.c
        self.stuck = bool(np.array_equal(c, self.c))
        self.c = c

    def _size_of(self, c):
        return float(np.linalg.norm(c * self.rounding.lengths))

    def _hold(self, rows):
        """The kernel matrix of a working set."""
        m, needed = len(rows), matrix_bytes(len(rows), COPIES)
        if needed > self.limit:
            raise MemoryLimitError(
                f"{m} rows may be support vectors; their kernel matrix needs {readable(needed)}, "
                f"memory_limit allows {readable(self.limit)}. Use solver='landmarks', a smaller "
                "C, or kernel=KernelMap(kernel, max_rank=...)."
            )
        self.K = self.problem.matrix(rows)
