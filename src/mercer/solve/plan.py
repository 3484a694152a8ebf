"""Plan: what every way to fit would cost, or why it refuses; "auto" takes the first."""

from dataclasses import dataclass

from ..engine.memory import partial_fit, readable, stored_fit, streamed_fit
from ..engine.tiles import PANEL_VALUES
from ..rows.gather import SAMPLE
from .auto import SOLVERS, offered
from .problem import RidgeProblem
from .rates import time_in_words
from .solver import OPERATION, VALUE, Cost, Offer, TooLarge

# What forms of KernelRidge are called here, where that is not the name of the solver.
FORM = {"direct": "dual"}


@dataclass(frozen=True)
class Way:
    """One way to fit: its predicted cost, or why it refuses.

    name : str
        As `form` of KernelRidge names it, or a route of KernelMap.
    seconds : float or None
        Of one core of a common machine, for the whole fit.
    bytes : int or None
        Beside the rows.
    refusal : str or None
    """

    name: str
    seconds: float | None
    bytes: int | None
    refusal: str | None = None


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

    @property
    def choice(self) -> str:
        if self.ways[0].refusal is not None:
            raise ValueError(f"every way to fit refuses.\n{self}")
        return self.ways[0].name

    def __str__(self) -> str:
        lines = [
            f"{self.rows:,} rows, a kernel matrix of rank {self.rank:,} or so, "
            f"{readable(self.limit)} of memory:"
        ]
        for i, way in enumerate(self.ways):
            mark = "->" if i == 0 and way.refusal is None else "  "
            if way.seconds is None or way.bytes is None:
                lines.append(f" {mark} {way.name:10} {way.refusal}")
            else:
                cost = f"{time_in_words(way.seconds):>8} of one core, {readable(way.bytes)}"
                lines.append(f" {mark} {way.name:10} {cost}")
        return "\n".join(lines)

    __repr__ = __str__


def plan_ridge(
    problem: RidgeProblem, solver: str = "auto", made: list[Offer] | None = None
) -> Plan:
    """The table by which solve_ridge decides; or that of offers which are made for its rows."""
    if made is None and solver == "auto":
        made = offered(problem)
    elif made is None:
        asked = SOLVERS[solver]
        reason = asked.refusal(problem)
        made = [Offer(asked, None if reason else asked.cost(problem), reason)]
    names = [FORM.get(offer.solver.name, offer.solver.name) for offer in made]
    return _plan(problem, [_way(n, o.cost, o.refusal) for n, o in zip(names, made, strict=True)])


def plan_map(problem: RidgeProblem) -> Plan:
    """The ways in which KernelMap may fit: K stored, its columns at the landmarks, or in passes."""
    n, options = problem.training.n or 0, problem.map
    most = n if options is None or options.max_rank is None else options.max_rank
    r = min(problem.rank, most)
    column = n * VALUE
    ways = {
        "stored": Cost(n / 2 * column + n**3 / 3 * OPERATION, int(stored_fit(n))),
        "partial": Cost(r * column + 2 * n * r**2 * OPERATION, int(partial_fit(n, r))),
        "streamed": Cost(
            1.2 * r * column + (n + 40_000) * r**2 * OPERATION,
            int(streamed_fit(r, SAMPLE, PANEL_VALUES)),
        ),
    }
    limit = problem.training.resources.limit(problem.training.points)
    fits = [name for name, cost in ways.items() if cost.bytes <= limit]
    # As factorize does: the whole matrix where it fits, then columns, then passes.
    order = [*fits, *(name for name in ways if name not in fits)]
    if r < n and r == most and "partial" in fits:
        order.sort(key=lambda name: name != "partial")
    listed = []
    for name in order:
        large = None if name in fits else TooLarge.of("its arrays", ways[name].bytes, limit)
        listed.append(_way(name, None if large else ways[name], large))
    return _plan(problem, listed)


def _way(name, cost, refusal):
    if cost is None:
        return Way(name, None, None, str(refusal))
    return Way(name, cost.seconds, cost.bytes)


def _plan(problem, ways):
    training = problem.training
    n = training.n or 0
    rank = problem.rank if n and problem.kernel.is_proven else n
    limit = training.resources.limit(training.points if n else None)
    return Plan(n, rank, limit, ways)
