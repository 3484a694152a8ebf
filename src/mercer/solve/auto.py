"""solve_ridge: the solver that is asked for, or the cheapest that does not refuse; and its Plan."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ..engine import MapBytes, MemoryLimitError, readable, using
from ..rows import gather
from .dual import Direct
from .fourier_solver import FourierSolver
from .iterative import Iterative
from .mixed import Mixed
from .primal import LandmarkSolver, Primal
from .problem import RidgeProblem
from .solver import QUICKEST_START, CannotSolve, Cost, RidgeSolution, Solver, TooLarge

# By name, and those among which "auto" chooses.
SOLVERS: dict[str, Solver] = {
    solver.name: solver
    for solver in (Direct(), Mixed(), Primal(), Iterative(), FourierSolver(), LandmarkSolver())
}
_COMPETING = (
    Direct(),
    Mixed(quick=True),
    Primal(),
    Iterative(quick=True),
    FourierSolver(quick=True),
    LandmarkSolver(),
)


@dataclass(frozen=True)
class Way:
    """One way to fit: its predicted cost, or why it refuses."""

    name: str  # as `form` of KernelRidge names it, or a route of KernelMap
    seconds: float | None  # of one core of a common machine, for the whole fit
    bytes: int | None  # beside the rows
    refusal: str | None = None

    @classmethod
    def of(cls, solver: Solver, problem: RidgeProblem, asked: bool) -> "Way":
        name = {"direct": "dual"}.get(solver.name, solver.name)
        refusal = solver.refusal(problem, asked=asked)
        return cls.with_cost(name, None if refusal else solver.cost(problem), refusal)

    @classmethod
    def with_cost(cls, name: str, cost: Cost | None, refusal: str | None = None) -> "Way":
        if cost is None or refusal is not None:
            return cls(name, None, None, refusal)
        return cls(name, cost.seconds, cost.bytes)

    @property
    def place(self) -> tuple[bool, bool, float]:
        """The cheapest come first, exact ones before those that are not; refusals are last."""
        return self.refusal is not None, self.name == "landmarks", self.seconds or 0.0

    def times(self, count: int) -> "Way":
        """For so many problems of this size, one after another."""
        return self if self.seconds is None else replace(self, seconds=count * self.seconds)

    def __str__(self) -> str:
        if self.seconds is None or self.bytes is None:
            return f"{self.name:10} {self.refusal}"
        if not self.seconds:
            return f"{self.name:10} the only one that passes over rows; the rank decides its cost"
        time = time_in_words(self.seconds)
        return f"{self.name:10} {time:>8} of one core, {readable(self.bytes)}"


def offered(
    problem: RidgeProblem, solvers: Iterable[Solver] = _COMPETING
) -> list[tuple[Solver, Way]]:
    """Every solver's offer for the problem, the one that "auto" takes first."""
    found = [(solver, Way.of(solver, problem, asked=False)) for solver in solvers]
    return sorted(found, key=lambda offer: offer[1].place)


def _in_turn(problem: RidgeProblem) -> Iterator[Solver]:
    """Those that do not refuse, the cheapest first.

    Where a factorisation is over before any other solver has begun, the others are asked only if it
    fails.
    """
    direct = _COMPETING[0]
    fits = direct.refusal(problem, asked=False) is None and problem.dimension == problem.n
    tried = fits and direct.cost(problem).seconds < QUICKEST_START
    if tried:
        yield direct
    for solver, way in offered(problem):
        if way.refusal is None and not (tried and solver is direct):
            yield solver


def solve_ridge(
    problem: RidgeProblem, solver: str | Solver = "auto", *, name: str | None = None
) -> RidgeSolution:
    """Solve a ridge problem.

    Parameters
    ----------
    problem : RidgeProblem
        Rows, targets, penalty and what is asked of the solution.
    solver : "auto", a name in SOLVERS, or a Solver
        "auto": the cheapest that does not refuse, by its own cost. One that begins and sees that
        it cannot end (`CannotSolve`) makes room for the next.
    name : str or None
        What the user calls the solver, for messages.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF
    >>> from mercer.engine import current
    >>> from mercer.rows import HeldRows, Training
    >>> from mercer.solve import Given, RidgeProblem, solve_ridge
    >>> x = np.linspace(0, 6, 50)[:, None]
    >>> training = Training(RBF(1.0), HeldRows(x), current())
    >>> problem = RidgeProblem(training, np.sin(x), Given(np.array([0.1])))
    >>> solve_ridge(problem).prediction(x).shape
    (50, 1)
    """
    with using(problem.training.resources):
        if solver == "auto":
            failures = []
            for taken in _in_turn(problem):
                try:
                    return taken.solve(problem)
                except CannotSolve as failure:
                    # Without the frames that it came through, which hold the arrays of this try.
                    failure.__context__ = None
                    failures.append(failure.with_traceback(None))
            if failures:
                raise failures[0]
            return first_of(offered(problem)).solve(problem)  # which says why all refuse
        chosen = SOLVERS[solver] if isinstance(solver, str) else solver
        reason = chosen.refusal(problem)
        if reason is not None:
            kind = MemoryLimitError if isinstance(reason, TooLarge) else ValueError
            raise kind(f"{name or f'solver={chosen.name!r}'}: {reason}.")
        return chosen.solve(problem)


def first_of(offers: list[tuple[Solver, Way]]) -> Solver:
    """The solver of the first offer; refused where all refuse."""
    if offers[0][1].refusal is None:
        return offers[0][0]
    reasons = "; ".join(f"{solver.name}: {way.refusal}" for solver, way in offers)
    small = any(isinstance(way.refusal, TooLarge) for _, way in offers)
    helps = " Allow more memory, or pass kernel=KernelMap(kernel, max_rank=...)." if small else ""
    kind = MemoryLimitError if small else ValueError
    raise kind(f"no solver takes this problem. {reasons}.{helps}")


# --- plans ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """Show what each way to fit would cost, the one that is taken first; made by mercer.plan.

    Attributes
    ----------
    rows : int
        Of the data.
    rank : int
        Of the kernel matrix, predicted from 400 rows.
    limit : int
        Bytes that the fit may take.
    ways : list of Way
        The cheapest first; those that refuse last.
    choice : str
        The name of the first.
    """

    rows: int
    rank: int
    limit: int
    ways: list[Way]

    @classmethod
    def of(cls, problem: RidgeProblem, ways: list[Way]) -> "Plan":
        n, training = problem.n, problem.training
        limit = training.resources.limit(training.points if n else None)
        return cls(n, problem.rank if n and problem.kernel.is_proven else n, limit, ways)

    @classmethod
    def of_solvers(cls, problem: RidgeProblem, solver: str = "auto") -> "Plan":
        """The table by which solve_ridge decides."""
        if solver != "auto":
            return cls.of(problem, [Way.of(SOLVERS[solver], problem, asked=True)])
        return cls.of(problem, [way for _, way in offered(problem)])

    @classmethod
    def of_map(cls, problem: RidgeProblem, passed: int = 0) -> "Plan":
        """Ways in which KernelMap may fit: K stored, its columns at landmarks, or in passes.

        passed : rows of a stream or a Dask collection, of which the problem has a sample
        """
        n, options = passed or problem.n, problem.map
        most = n if options is None or options.max_rank is None else options.max_rank
        r = min(problem.rank, most)
        passes = MapBytes.streamed(r, gather.SAMPLE)
        costs = {
            "stored": Cost.of(MapBytes.stored(n), values=n**2 / 2, operations=n**3 / 3),
            "partial": Cost.of(MapBytes.partial(n, r), values=n * r, operations=2 * n * r**2),
            "streamed": Cost.of(passes, values=1.2 * n * r, operations=(n + 40_000) * r**2),
        }
        ways = []
        for name, cost in costs.items():
            refusal: str | None = TooLarge.beyond("its arrays", cost.bytes, problem.limit)
            if passed and name != "streamed":
                refusal = f"more than {gather.SAMPLE:,} chunked rows are passed over"
            ways.append(Way.with_cost(name, cost, refusal))
        # As factorize does: the whole matrix where it fits, then columns, then passes.
        columns = r < n and r == most
        ways.sort(key=lambda way: (way.refusal is not None, columns and way.name != "partial"))
        return replace(cls.of(problem, ways), rows=n)

    @property
    def choice(self) -> str:
        if self.ways[0].refusal is not None:
            raise ValueError(f"every way to fit refuses.\n{self}")
        return self.ways[0].name

    def __str__(self) -> str:
        memory = f"{readable(self.limit)} of memory:"
        lines = [f"{self.rows:,} rows, a kernel matrix of rank {self.rank:,} or so, {memory}"]
        if not self.rows:
            lines = [f"chunked rows, which a fit counts as it passes over them, {memory}"]
        taken = self.ways[0] if self.ways[0].refusal is None else None
        lines += [f" {'->' if way is taken else '  '} {way}" for way in self.ways]
        return "\n".join(lines)

    __repr__ = __str__


def time_in_words(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
