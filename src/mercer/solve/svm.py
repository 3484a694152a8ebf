"""Support vector machines of two classes on kernel values: exact, certified, a few rows at a time.

Rows that are well inside their class have coefficient zero, and need no place in the kernel matrix.
So a sample is solved first; its function says which rows of a larger sample may be support vectors,
and so on until all rows are there (nested samples, each twice as large). libsvm solves
the small problems roughly, an active set the last one exactly. Rows outside that violate
their margin join in, until the duality gap over ALL rows is small enough.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ..engine import (
    MapBytes,
    MemoryLimitError,
    Resources,
    as_numpy,
    coordinates_bytes,
    is_matrix,
    is_numpy,
    matrix_bytes,
    on_device_of,
    one_blas_thread,
    readable,
    sklearn_compat,
    tiles,
)
from ..kernels import Precomputed
from ..kernels import points as pts
from .auto import Way
from .box_dual import BoxDual, interior_point
from .duality import Certificate, Rounding, best_hinge_intercept, hinge_certificate
from .solver import Cost, TooLarge

# Rows of the first sample at least, and how much larger each next one is.
FIRST, STEP = 250, 2
# Rows of a stored kernel matrix that are solved at once, and that are copied at once.
STORED, BLOCK = 1000, 1000
# Rows of a next sample join in where their margin is below this, ...
_NEAR = 1.1
# ... these many at least, and at most so many times as there are support vectors now, relative to
# the sizes of the samples.
LEAST_NEAR, MOST_NEAR = 1000, 2.5
_LEAST_SAMPLED = 400
# Kernel values whose sums are taken in single precision, where that is enough.
_MANY_VALUES = 1 << 20
# By so much beyond its margin, a row is taken to stay there when the intercept changes.
_SETTLED = 0.01
# How far libsvm solves before the next sample, and before the last, exact part.
ROUGH, FINE = 0.03, 0.01
# If so many rounds have not brought the exact part a hundred times nearer, libsvm solves to this
# tolerance.
PATIENCE, FINEST = 3, 3e-4
# Steps of libsvm at most, and so many more for each row: where C is large and the matrix nearly
# singular, it does not end by itself.
STEPS, STEPS_PER_ROW = 10_000, 300
# New rows beyond this share of the support vectors change too much for an active set: libsvm again.
_MANY_NEW = 0.08
# Rows next to the margin that are looked at again before all are, as many times as are near, where
# that is less than half of them.
_NEXT = 4
# Rows that the active set looks at, at least: they need no matrix.
_LEAST_INSIDE = 2000
# Rows near the margin whose kernel matrix is held for the active set.
_HELD = 2500
# Rows of a small problem, whose sample is a quarter of them. Rows with margins below these join in,
# at most so many times as there are support vectors, and libsvm solves it to these tolerances.
FEW, FEW_NEAR, FEW_MORE, FEW_TOL = 2000, (0.9, 1.0, 1.0), 4, (0.1, 1e-3)
_MOST_ROUNDS = 30
# Rows that predict how many support vectors there are, usual steps of the interior-point method,
# and landmarks of solver="landmarks".
JUDGED, USUAL_STEPS, LANDMARKS = 2000, 25, 2000
# Copies of the matrix of a working set: K, libsvm's own in single precision, and tiles; and rows of
# the last one for each support vector, as a rule.
COPIES, LAST_SET = 2, 1.5


@dataclass(frozen=True)
class MarginProblem:
    """min |f|^2 / 2 + sum_i C_i max(0, 1 - y_i (f(x_i) + b)), b free."""

    kernel: Any  # bound to its data
    points: Any
    y: np.ndarray  # +1.0 and -1.0
    C: np.ndarray  # positive numbers, one per row
    rounding: Rounding
    memory_limit: Any = None
    # positions of the rows among the points of a stored kernel matrix; None: all of them
    index: np.ndarray | None = None

    def part(self, rows: np.ndarray) -> "MarginProblem":
        """The same problem on some of the rows."""
        if len(rows) == len(self.y):
            return self
        if self.is_stored:  # never copied
            return self._with(rows, index=self._at(rows))
        return self._with(rows, points=self.kernel.layout.subset(self.points, rows))

    def _with(self, rows: np.ndarray, **known: Any) -> "MarginProblem":
        rounding = self.rounding.take(rows)
        return replace(self, y=self.y[rows], C=self.C[rows], rounding=rounding, **known)

    def held(self, rows: np.ndarray, K: np.ndarray) -> "MarginProblem":
        """The same problem on some of the rows, whose kernel matrix is K."""
        return self._with(rows, kernel=Precomputed(), points=K, index=None)

    @property
    def limit(self) -> int:
        """Bytes that kernel values may take."""
        return Resources(self.memory_limit).limit()

    @property
    def is_stored(self) -> bool:
        """Whether the points are kernel values as they are: no need to go through a kernel."""
        return type(self.kernel) is Precomputed and is_numpy(self.points)

    def _at(self, rows: np.ndarray) -> np.ndarray:
        return rows if self.index is None else self.index[rows]

    def matrix(self, rows: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
        """Kernel values of some rows, among each other or with others, as NumPy's doubles."""
        if self.is_stored:
            columns = self._at(rows if others is None else others)
            K: np.ndarray = self.points[np.ix_(self._at(rows), columns)]
            return K.astype(np.float64, copy=False)
        K = self.kernel.layout.values(self.kernel, self.points, rows, others)
        return np.ascontiguousarray(as_numpy(K), dtype=np.float64)

    def values(self, c: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """sum_j c_j k(x_j, x_i) for these rows i (None: all)."""
        used = np.flatnonzero(c)
        if self.is_stored:
            whole = rows is None and self.index is None
            total = np.zeros(len(c) if rows is None else len(rows))
            rows = np.arange(len(c)) if rows is None else rows
            for a in range(0, len(used), BLOCK):
                some = used[a : a + BLOCK]
                total += c[some] @ (self.points[some] if whole else self.matrix(some, rows))
            return total
        points = self.points if rows is None else pts.take(self.points, rows)
        X = self.kernel.layout.in_double(points)
        if not len(used):
            return np.zeros(X.shape[0])
        S = self.kernel.layout.landmarks(self.kernel, self.points, used)
        W = on_device_of(c[used][:, None], self.points, dtype=float)
        return as_numpy(tiles.multiply(self.kernel, X, S, W))[:, 0]

    def rough_values(
        self, c: np.ndarray, rows: np.ndarray, least: int = _MANY_VALUES
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """The same in single precision, and bounds of their errors; None where that is no gain."""
        used, layout = np.flatnonzero(c), self.kernel.layout
        few = len(used) * len(rows) < least
        if few or self.is_stored or not is_matrix(self.points):
            return None
        sums = self.kernel.single_sums(layout.landmarks(self.kernel, self.points, used))
        return None if sums is None else sums(self.points, c[used], rows)

    # --- ways to solve ----------------------------------------------------------------------------

    def ways(self, solver: str = "auto", on_map: bool = False) -> list[Way]:
        """All ways, the cheapest first: landmarks, which are not exact, come last.

        on_map : whether points are coordinates, and the kernel is their inner product
        """
        known = {"dual": self._by_dual, "coordinates": self._by_coordinates}
        known["landmarks"] = self._by_landmarks
        names = [solver] if solver in known else ["dual", "coordinates" if on_map else "landmarks"]
        return sorted((known[name]() for name in names), key=lambda way: way.place)

    def _by_dual(self) -> Way:
        """On kernel values of the rows near the margin."""
        n, support = len(self.y), _predicted_support(self)
        m = min(n, LAST_SET * support)
        # Kernel values, passes of libsvm over them, a factor of those that are free, all rows.
        counts = {"passes": 4 * m**2, "operations": (support / 2) ** 3}
        values, needed = m**2 / 2 + 3 * n * support, int(matrix_bytes(int(m), COPIES))
        refusal = None
        if matrix_bytes(n, COPIES) > self.limit:
            what = "kernel values of the rows near the margin"
            refusal = TooLarge.beyond(what, needed, self.limit)
        return Way.with_cost("dual", Cost.of(needed, starts=1, values=values, **counts), refusal)

    def _by_coordinates(self) -> Way:
        """By the interior-point method, where points are coordinates."""
        n, r = self.points.shape
        operations = USUAL_STEPS * (n * r**2 + r**3 / 3)
        cost = Cost.of(coordinates_bytes(n, r, 2), starts=1, operations=operations)
        return Way.with_cost("coordinates", cost)

    def _by_landmarks(self) -> Way:
        """On the coordinates of landmarks, which the estimator makes: certified, not exact."""
        n = len(self.y)
        r = self.most_landmarks(n, self.limit)
        operations = (USUAL_STEPS + 3) * n * r**2
        refusal = "the kernel matrix is there: all of it is used" if self.is_stored else None
        cost = Cost.of(coordinates_bytes(n, r, 4), starts=1, values=n * r, operations=operations)
        return Way.with_cost("landmarks", cost, refusal)

    def solve(
        self,
        tol: float = 1e-3,
        start: np.ndarray | None = None,
        *,
        on_map: bool = False,
        optional: bool = False,
    ) -> "_MarginSolution":
        """Solve until the certified error of the function is at most tol times its norm.

        start : rows that were support vectors of a problem nearby (another C), to begin with
        on_map : of coordinates, by the cheaper way, or the other where memory is short
        optional : whether to give up as soon as samples predict that memory will be short
        """
        if not on_map:
            with one_blas_thread():  # many small products; tiles have threads of their own
                return _WorkingSet(self, tol).solve(start, optional)
        known = {"dual": self.solve, "coordinates": self.solve_on_coordinates}
        first, second = (known[way.name] for way in self.ways(on_map=True))
        with suppress(MemoryLimitError):
            return first(tol)
        return second(tol)  # here, where nothing holds the arrays of the first

    def solve_on_coordinates(self, tol: float = 1e-3) -> "_MarginSolution":
        """The same where the points are coordinates and the kernel is their inner product: by an
        interior-point method, without a matrix of rows by rows."""
        y, C, aim = self.y, self.C, self.rounding.aim(tol, 0.0)
        found: Any = None
        for _ in range(3):
            c, steps = interior_point(self.points, y, C, aim)
            values = self.values(c)
            b, size = best_hinge_intercept(y, C, values), self.rounding.size_of(c)
            certificate = hinge_certificate(y, C, c, b, values, self.rounding, size)
            if found is None or certificate.gap < found.certificate.gap:
                found = _MarginSolution(c, b, values, certificate, steps)
            if found.certificate.gap <= self.rounding.aim(tol, certificate.norm):
                break
            aim *= 0.01
        best: _MarginSolution = found
        return best

    @staticmethod
    def most_landmarks(n: int, limit: int) -> int:
        """Landmarks of solver="landmarks", memory permitting."""
        return min(n, LANDMARKS, MapBytes.partial_rank(n, limit, copies=4))


@dataclass(frozen=True)
class _MarginSolution:
    """c : one signed coefficient y_i a_i per row; b : the intercept; values : f(x_i) without b."""

    c: np.ndarray
    b: float
    values: np.ndarray
    certificate: Certificate
    n_iter: int


def _predicted_support(problem: MarginProblem) -> float:
    """Support vectors of all rows, from those of small samples."""
    n = len(problem.y)
    judged = min(JUDGED, int((problem.limit / matrix_bytes(1, COPIES)) ** 0.5))
    if n <= judged or judged < FIRST:  # a quarter of fewer may be of one class
        return n / 2 if n <= judged else float(n)
    sample = _WorkingSet(problem, 1e-3)
    sample.sizes(None)
    sample.grown([judged // 4, judged])
    return sample.predicted_support()


class _KnownRows:
    """Kernel values of some rows with all rows, which are prepared once, as rows join in."""

    def __init__(self, problem: MarginProblem, rows: np.ndarray) -> None:
        kernel, every = problem.kernel, np.arange(len(problem.y))
        self.tile = kernel.against(kernel.layout.landmarks(kernel, problem.points, every))
        self.problem, self.rows = problem, rows
        self._blocks = [self._evaluate(rows)]

    def _evaluate(self, rows: np.ndarray) -> np.ndarray:
        K = self.tile(self.problem.kernel.layout.in_double(pts.take(self.problem.points, rows)))
        return np.ascontiguousarray(as_numpy(K), dtype=np.float64)

    def join(self, margins: np.ndarray, below: float, most: int) -> None:
        """Rows with margins below this that are not known yet, the worst of them."""
        margins[self.rows] = np.inf
        new = np.flatnonzero(margins < below)
        if len(new) > most:
            new = np.argpartition(margins, most)[:most]
        if len(new):
            self.rows = np.append(self.rows, new)
            self._blocks.append(self._evaluate(new))

    def matrix(self) -> np.ndarray:
        return np.concatenate([block.take(self.rows, axis=1) for block in self._blocks])

    def values(self, c: np.ndarray) -> np.ndarray:
        """sum_j c_j k(x_j, x_i) for all rows i."""
        total, end = np.zeros(len(c)), 0
        for block in self._blocks:
            start, end = end, end + len(block)
            total += c[self.rows[start:end]] @ block
        return total


class _WorkingSet:
    def __init__(self, problem: MarginProblem, tol: float) -> None:
        self.problem, self.tol, self.n = problem, tol, len(problem.y)
        self.rounding, self.limit = problem.rounding, problem.limit
        self.c, self.b, self.n_iter = np.zeros(self.n), 0.0, 0
        self.counts: list[tuple[int, int]] = []  # sizes of samples, and their support vectors
        self.stuck = False
        self.held: Any = None  # the problem of the rows that were solved last
        self.few: Any = None  # _KnownRows, of a small problem
        # Values at all rows of the coefficients `known`, |l c| of what was added up for them,
        # bounds of their errors, and which of them are in double precision.
        self.known, self.values, self.size = self.c, np.zeros(self.n), 0.0
        self.errors, self.exact = np.zeros(self.n), np.zeros(self.n, dtype=bool)

    def solve(self, start: np.ndarray | None, optional: bool = False) -> _MarginSolution:
        sizes, p = self.sizes(start), self.problem
        few = len(sizes) > 1 and self.n <= FEW and not (p.is_stored or p.kernel.runs_user_code)
        if few and matrix_bytes(self.n, COPIES) <= self.limit:
            rows = np.sort(self.order[: max(FIRST, self.n // 4)])
            self._libsvm(rows, p.matrix(rows, rows), FEW_TOL[0])
            if np.count_nonzero(self.c) < len(rows) / 3:  # else most rows will be support vectors
                return self._of_few()
        rows = self.grown(sizes, must_fit=optional and matrix_bytes(self.n, COPIES) > self.limit)
        if len(rows) == self.n:
            self.problem = self.held  # all kernel values are there
        elif 2 * _NEXT * len(rows) < self.n:
            rows = self._with_next(rows)
            self._ascend(rows)
        return self._exactly(rows)

    # --- nested samples ---------------------------------------------------------------------------

    def sizes(self, start: np.ndarray | None) -> list[int]:
        """Sizes of nested samples, which are beginnings of `order`: rows that are known to matter
        come first, and some of every class, however rare."""
        y, n, known = self.problem.y, self.n, STORED if self.problem.is_stored else FIRST
        order, later = np.random.default_rng(0).permutation(n), np.ones(n, dtype=bool)
        first = [order[y[order] == sign][: FIRST // 5] for sign in (-1, 1)]
        if start is not None and len(start):
            known = max(known, len(start))
            first.insert(0, start)
        early = np.concatenate(first)
        later[early] = False
        early = early[np.sort(np.unique(early, return_index=True)[1])]
        self.order = np.concatenate([early, order[later[order]]])
        sizes = [n]
        while sizes[0] >= STEP * known:
            sizes.insert(0, sizes[0] // STEP)
        return sizes

    def grown(self, sizes: list[int], must_fit: bool = False) -> np.ndarray:
        """Solves samples of these sizes roughly, one after the other; returns the rows of the last
        one that may be support vectors."""
        rows = np.sort(self.order[: sizes[0]])
        for before, size in pairwise([*sizes, 0]):
            whole = len(rows) == self.n
            self.roughly(rows, FINE if whole else ROUGH)
            self.counts.append((before, max(int(np.count_nonzero(self.c)), 1)))
            if must_fit and STEP * before >= JUDGED and size:
                must_fit = False
                self._check_room(LAST_SET * self.predicted_support())
            if not size:
                break
            # Rows of the next sample that may become support vectors.
            some, least = self.order[:size], _LEAST_SAMPLED
            if size < self.n:
                values = self._about(some)
            else:  # from here on only changes are added
                self._evaluate()
                values, self.last_b, least = self.values[some], self.b, LEAST_NEAR
            margins = self.problem.y[some] * (values + self.b)
            rows = self._near(some, margins, size / before, least)
        return rows

    def predicted_support(self) -> float:
        """Support vectors of all rows, from the last sample and one of a third of it or less."""
        size, count = self.counts[-1]
        smaller, fewer = next((x for x in self.counts[::-1] if 3 * x[0] <= size), (1, 1))
        growth = np.clip(np.log(count / fewer) / np.log(size / smaller), 0.3, 1.0)
        return float(min(self.n, count * (self.n / size) ** growth))

    def _with_next(self, rows: np.ndarray) -> np.ndarray:
        """These rows, and those of the next ones that violate their margin now: far less than a
        pass over all rows, which comes after the exact solution."""
        p, count = self.problem, _NEXT * len(rows)
        margins = p.y * (self.values + self.last_b)
        margins[rows] = np.inf
        some = np.sort(np.argpartition(margins, count)[:count])
        now = p.y[some] * (self._about(some) + self.b)
        return np.union1d(rows, some[now < _NEAR])

    def _near(
        self, some: np.ndarray, margins: np.ndarray, growth: float = 1.0, least: int = LEAST_NEAR
    ) -> np.ndarray:
        """The support vectors, and those of some rows that are near the margin or beyond it."""
        chosen = self.c != 0
        support = np.count_nonzero(chosen)
        least = min(least, max(FIRST, self.n // 8))
        most = max(least, int(MOST_NEAR * support * growth))
        count = min(max(int(np.count_nonzero(margins < _NEAR)), least), most)
        if count < len(some):
            some = some[np.argpartition(margins, count)[:count]]
        chosen[some] = True
        return np.flatnonzero(chosen)

    def roughly(self, rows: np.ndarray, tol: float) -> None:
        """libsvm on the kernel matrix of some rows; all others get coefficient zero."""
        self._check_room(len(rows))
        self.held = None  # makes room
        self._libsvm(rows, self.problem.matrix(rows), tol)

    def _check_room(self, m: float) -> None:
        needed = matrix_bytes(int(m), COPIES)
        if needed > self.limit:
            raise MemoryLimitError(
                f"{int(m)} rows may be support vectors; their kernel matrix needs "
                f"{readable(needed)}, memory_limit allows {readable(self.limit)}. Use "
                "solver='landmarks', a smaller C, or kernel=KernelMap(kernel, max_rank=...)."
            )

    def _libsvm(self, rows: np.ndarray, K: np.ndarray, tol: float) -> None:
        self.held, self.held_rows = self.problem.held(rows, K), rows
        self.c = np.zeros(self.n)
        self.c[rows], self.b = self._by_libsvm(self.held, tol)

    def _by_libsvm(self, part: MarginProblem, tol: float) -> tuple[np.ndarray, float]:
        """(coefficients, intercept) of a problem whose kernel matrix is there."""
        c = np.zeros(len(part.y))
        most = STEPS + STEPS_PER_ROW * len(c)
        given = (part.points, part.y, part.C, tol, most)
        support, coefficients, b, steps = sklearn_compat.libsvm(*given)
        c[support] = coefficients
        self.n_iter += steps
        return c, b

    def _of_few(self) -> _MarginSolution:
        """From a sample: rows within the margin join in, with their kernel values. libsvm is quick
        on so few, and the exact solution is mostly one step from where it ends."""
        p = self.problem
        few = self.few = _KnownRows(p, np.flatnonzero(self.c))
        for below, tol in zip(FEW_NEAR, (*FEW_TOL, None)):
            margins = p.y * (few.values(self.c) + self.b)
            few.join(margins, below, max(FIRST, FEW_MORE * int(np.count_nonzero(self.c))))
            if tol is not None:
                self._libsvm(few.rows, few.matrix(), tol)
        self._ascend(few.rows)
        return self._exactly(few.rows)

    # --- the exact solution -----------------------------------------------------------------------

    def _exactly(self, rows: np.ndarray) -> _MarginSolution:
        """Values at all rows after each change; rows that violate their margin join in."""
        best: Any = None
        p = self.problem
        for _ in range(_MOST_ROUNDS):
            margins = self.margins()
            given = (p.y, p.C, self.c, self.b, self.values, self.rounding, self.size)
            found = hinge_certificate(*given, error=self.errors)
            if best is None or found.gap < best.certificate.gap:
                best = _MarginSolution(self.c, self.b, self.values, found, self.n_iter)
            elif self.stuck:
                break
            if found.gap <= self.rounding.aim(self.tol, found.norm):
                break
            outside = margins < 1
            outside[rows] = False
            if self.few is not None:
                self.few.join(margins, 1.0, max(FIRST, FEW_MORE * int(np.count_nonzero(self.c))))
                rows = self.few.rows
                self._ascend(rows)
            elif np.count_nonzero(outside) > _MANY_NEW * np.count_nonzero(self.c):
                rows = self._near(np.arange(self.n), margins)
                self.roughly(rows, FINE)
            else:
                rows = self._near(np.arange(self.n), margins, least=_LEAST_INSIDE)
                self._ascend(rows)
        solution: _MarginSolution = best
        return solution

    def margins(self) -> np.ndarray:
        """Margins of all rows by the present coefficients, and the best intercept."""
        p, slack = self.problem, _SETTLED
        self._evaluate()
        while True:
            # A row beyond its margin needs no more than that; others are evaluated exactly.
            beyond = p.y * (self.values + self.b) > 1 + self.errors + slack
            rows = np.flatnonzero(~(self.exact | (beyond & (self.c == 0))))
            if len(rows):
                self._make_exact(rows)
            elif not slack:
                return p.y * (self.values + self.b)
            self.b, slack = best_hinge_intercept(p.y, p.C, self.values), 0.0

    def _evaluate(self) -> None:
        """Values of the present coefficients at all rows, from those that are known: exact where a
        kernel matrix is held, and in single precision elsewhere."""
        p, c, exact = self.problem, self.c - self.known, np.flatnonzero(self.exact)
        held = self.held_rows if self.held.is_stored else exact[:0]
        cost = np.count_nonzero(self.c) * (self.n - len(held))
        anew = bool(cost <= np.count_nonzero(c) * (self.n + len(exact)))
        if anew:
            c, exact, self.size = self.c, held, 0.0
            self.values, self.errors = np.zeros(self.n), np.zeros(self.n)
            self.exact = np.isin(np.arange(self.n), held)
        rest = np.flatnonzero(~self.exact)
        rough = p.rough_values(c, rest, 4 * _MANY_VALUES) if self.few is None else None
        self.values, self.known = self.values.copy(), self.c
        self.size += self.rounding.size_of(c)
        if rough is None:
            self.values += (self.few or p).values(c)
            self.exact |= anew
            self.errors += self.rounding.of_sums(self.rounding.size_of(c))
            return
        self.values[rest] += rough[0]
        self.errors[rest] += rough[1]
        at_hand = anew and len(held)
        self.values[exact] += self.held.values(c[exact]) if at_hand else p.values(c, exact)
        self.errors[exact] += self.rounding.take(exact).of_sums(self.rounding.size_of(c))

    def _make_exact(self, rows: np.ndarray) -> None:
        self.values[rows], self.exact[rows] = self.problem.values(self.c, rows), True
        self.errors[rows] = self.rounding.take(rows).of_sums(self.size)

    def _about(self, some: np.ndarray) -> np.ndarray:
        """Values at some rows, in single precision where that is quicker."""
        rough = self.problem.rough_values(self.c, some)
        return self.problem.values(self.c, some) if rough is None else rough[0]

    def _ascend(self, rows: np.ndarray) -> None:
        """The exact solution of the rows near the margin, from the coefficients at hand."""
        part, rows = self._part(rows)
        c = self.c[rows]
        if self.known is self.c:
            self._make_exact(rows[~self.exact[rows]])
            values = self.values[rows]
        else:
            values = part.values(c)
        dual = BoxDual(part, c, self.b, values)
        aim = 0.05 * self.rounding.aim(self.tol, max(float(c @ values), 0.0) ** 0.5)
        if part.is_stored and part.index is None and self.few is None:
            dual.solve(aim, PATIENCE)
            if dual.gap > aim:  # many bounds are in the way: libsvm meets them one by one
                c, self.b = self._by_libsvm(part, FINEST)
                dual = BoxDual(part, c, self.b, part.values(c))
        dual.solve(aim)
        c = np.zeros(self.n)
        c[rows] = dual.c
        self.stuck = bool(np.array_equal(c, self.c))
        self.c = c

    def _part(self, rows: np.ndarray) -> tuple[MarginProblem, np.ndarray]:
        """(the problem of some rows, these rows as it has them). Steps evaluate most kernel values
        of few rows: they are held, those that libsvm has seen among them."""
        before = self.held_rows
        new, p = np.setdiff1d(rows, before, assume_unique=True), self.problem
        if np.array_equal(rows, before):
            return self.held, rows
        if self.few is not None:
            self.held = p.held(rows, self.few.matrix())
        elif len(rows) > _HELD or p.is_stored:
            self.held = p.part(rows)
        elif len(new) + len(before) == len(rows):
            rows = np.append(before, new)
            K, m = np.empty((len(rows), len(rows))), len(before)
            K[:m, :m] = self.held.points
            K[m:] = p.matrix(new, rows)
            K[:m, m:] = K[m:, :m].T
            self.held = p.held(rows, K)
        else:
            self.held = p.held(rows, p.matrix(rows))
        self.held_rows = rows
        return self.held, rows
