"""solve_ridge: the solver that is asked for, or the cheapest that does not refuse."""

from typing import Any

from ..engine.memory import MemoryLimitError
from ..engine.resources import using
from .direct import Direct
from .fourier import Fourier
from .iterative import Iterative
from .landmarks import Landmarks
from .primal import Primal
from .problem import RidgeProblem
from .solution import RidgeSolution
from .solver import CannotSolve, Offer, Solver, TooLarge, offers, refuse

# By name, and those among which "auto" chooses.
SOLVERS: dict[str, Solver] = {
    "direct": Direct(),
    "primal": Primal(),
    "iterative": Iterative(),
    "fourier": Fourier(),
    "landmarks": Landmarks(),
}
COMPETING = (Direct(), Primal(), Iterative(quick=True), Fourier(quick=True), Landmarks())


def solve_ridge(
    problem: RidgeProblem, solver: str | Solver = "auto", *, name: str | None = None
) -> RidgeSolution:
    """Solve the problem.

    Parameters
    ----------
    problem : RidgeProblem
    solver : "auto", a name in SOLVERS, or a Solver
        "auto": the cheapest that does not refuse, by its own cost. One that begins and sees that
        it cannot end (`CannotSolve`) makes room for the next.
    name : str or None
        What the user calls the solver, for messages.
    """
    with using(problem.training.resources):
        return _solved(problem, solver, name)


def _solved(problem, solver, name):
    if solver != "auto":
        chosen: Any = SOLVERS[solver] if isinstance(solver, str) else solver
        reason = chosen.refusal(problem)
        if reason is not None:
            refuse(reason, name or f"solver={chosen.name!r}")
        return chosen.solve(problem)
    failures, made = [], offered(problem)
    first_of(made)
    for offer in made:
        if offer.cost is None:
            break
        try:
            return offer.solver.solve(problem)
        except CannotSolve as reason:
            failures.append(reason)
    raise failures[0]


def first_of(offers: list[Offer]) -> Solver:
    """The solver of the first offer, which is the cheapest; refused where all refuse."""
    if offers[0].cost is not None:
        return offers[0].solver
    reasons = "; ".join(f"{offer.solver.name}: {offer.refusal}" for offer in offers)
    small = any(isinstance(offer.refusal, TooLarge) for offer in offers)
    raise (MemoryLimitError if small else ValueError)(f"no solver takes this problem. {reasons}.")


def offered(problem: RidgeProblem) -> list[Offer]:
    """Every solver's offer for the problem, the one that "auto" takes first."""
    return offers(problem, COMPETING)
