"""Ridge regression: one problem, one solution, and solvers behind one small interface."""

from ..rows import Workers
from .auto import SOLVERS, ridge_on_coordinates, solve_ridge
from .iterations import Certified, solve_iteratively
from .landmark_solver import LandmarkSolution, LandmarkSolver, jittered_factor
from .optimal_scoring import Fisher
from .problem import Choice, Given, LeaveOneOut, Preconditioning, RidgeProblem
from .refinement import Step
from .solution import LeftOut, RidgeSolution, Steps

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
    "Workers",
    "jittered_factor",
    "ridge_on_coordinates",
    "solve_iteratively",
    "solve_ridge",
]

# --- the door: written by tools/doors.py
from .auto import Plan, time_in_words
from .duality import Rounding
from .iterative import STORED
from .landmark_solver import MOST
from .newton import LogisticProblem, Workspace, solve_logistic
from .optimal_scoring import Shrinkage, residual_products
from .primal import is_plain_fourier
from .solution import own_similarities
from .solver import CannotSolve
from .svm import MarginProblem, solve_margin
from .system import double_like
# --- end of the door
