"""Ridge regression: one problem, one solution, and solvers behind one small interface."""

from .auto import SOLVERS, Plan, solve_ridge, time_in_words
from .duality import Rounding
from .iterations import Certified, solve_iteratively
from .newton import LogisticProblem
from .optimal_scoring import Fisher, Shrinkage
from .primal import LandmarkSolution, LandmarkSolver, jittered_factor
from .problem import Choice, Given, LeaveOneOut, Preconditioning, RidgeProblem
from .solver import CannotSolve, LeftOut, RidgeSolution, Step, Steps
from .svm import MarginProblem

__all__ = [
    "SOLVERS",
    "Certified",
    "Choice",
    "Fisher",
    "Given",
    "LandmarkSolution",
    "LandmarkSolver",
    "LeaveOneOut",
    "LeftOut",
    "Preconditioning",
    "RidgeProblem",
    "RidgeSolution",
    "Step",
    "Steps",
    "jittered_factor",
    "solve_iteratively",
    "solve_ridge",
]
