"""Ridge regression: one problem, one solution, and solvers behind one small interface."""

from ..rows import Workers
from .auto import SOLVERS, ridge_on_coordinates, solve_ridge
from .discriminant import Fisher
from .iterations import Certified, solve_iteratively
from .landmarks import Landmarks, LandmarkSolution, jittered_factor
from .problem import Choice, Given, LeaveOneOut, Preconditioning, RidgeProblem
from .refinement import Step
from .regularized import solve_regularized
from .solution import LeftOut, RidgeSolution, Steps, expansion_of

__all__ = [
    "SOLVERS",
    "Certified",
    "Choice",
    "Fisher",
    "Given",
    "LandmarkSolution",
    "Landmarks",
    "LeaveOneOut",
    "LeftOut",
    "Preconditioning",
    "RidgeProblem",
    "RidgeSolution",
    "Step",
    "Steps",
    "Workers",
    "expansion_of",
    "jittered_factor",
    "ridge_on_coordinates",
    "solve_iteratively",
    "solve_regularized",
    "solve_ridge",
]

# --- the door: written by tools/doors.py
from .auto import Plan, plan_map, plan_ridge, time_in_words
from .discriminant import Shrinkage, residual_products
from .duality import Rounding
from .iterative import STORED
from .landmarks import MOST
from .logistic import LogisticProblem, Workspace, solve_logistic
from .primal import is_plain_fourier
from .solution import own_similarities
from .solver import CannotSolve
from .svm import MarginProblem, solve_margin
from .system import double_like, in_double
# --- end of the door
