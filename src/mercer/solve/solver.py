"""Solver: what every way to solve a ridge problem can do; solve_ridge takes the cheapest."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from ..engine import readable
from .problem import RidgeProblem
from .solution import RidgeSolution

# Seconds of one core of a common machine: for one value of a kernel, for one operation of linear
# algebra (half a million of them in a product of 100 x 50 x 100), and for each of the n^3 of an
# eigendecomposition. Only their ratios matter: the order of the solvers follows from them.
VALUE, OPERATION, EIGEN = 5e-9, 5e-11, 2.5e-10
# For passes over one number of a stored matrix, and to choose landmarks and start products at all.
PASS, START = 1e-9, 0.03


class CannotSolve(ValueError):
    """A solver has begun and sees that it cannot end; another one may."""


class TooLarge(str):
    """A refusal because of memory."""

    @classmethod
    def beyond(cls, what: str, needed: int, limit: int) -> "TooLarge | None":
        """Why what is needed does not fit; None where it does."""
        if needed <= limit:
            return None
        return cls(f"{what} take {readable(needed)}; memory_limit allows {readable(limit)}")


@dataclass(frozen=True)
class Cost:
    """Predicted seconds of one core, and bytes beside the rows."""

    seconds: float
    bytes: int


class Solver(ABC):
    """One way to solve a ridge problem."""

    name: str

    @abstractmethod
    def refusal(self, problem: RidgeProblem, asked: bool = True) -> str | None:
        """Why it cannot, in words; None where it can.

        asked : whether it was asked for by name, else why "auto" does not take it
        """

    @abstractmethod
    def cost(self, problem: RidgeProblem) -> Cost: ...

    @abstractmethod
    def solve(self, problem: RidgeProblem) -> RidgeSolution: ...
