"""Ridge regression: one problem, one solution, and solvers behind one small interface."""

from .auto import SOLVERS, Plan, solve_ridge, time_in_words
from .duality import Rounding
from .iterations import Certified, solve_iteratively
from .newton import LogisticProblem
from .optimal_scoring import Fisher, Shrinkage
from .primal import LandmarkSolver
from .problem import Choice, Given, LeaveOneOut, Preconditioning, RidgeProblem
from .ridge_path import CoordinateRidge, choose_on_rows
from .solver import CannotSolve, LeftOut, RidgeSolution, Step, Steps
from .svm import MarginProblem

__all__ = [
    "SOLVERS",
    "Certified",
    "Choice",
    "CoordinateRidge",
    "Fisher",
    "Given",
    "LandmarkSolver",
    "LeaveOneOut",
    "LeftOut",
    "Preconditioning",
    "RidgeProblem",
    "RidgeSolution",
    "Step",
    "Steps",
    "choose_on_rows",
    "solve_iteratively",
    "solve_ridge",
]
