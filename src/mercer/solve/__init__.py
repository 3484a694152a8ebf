"""Ridge regression: one problem, one solution, and solvers behind one small interface."""

from ..rows.workers import Workers
from .auto import SOLVERS, ridge_on_coordinates, solve_ridge
from .discriminant import Fisher
from .iterations import Certified, solve_iteratively
from .landmarks import Landmarks, LandmarkSolution, jittered_factor
from .penalty import choose_on_rows
from .problem import Choice, Given, LeaveOneOut, Preconditioning, RidgeProblem
from .refinement import Step
from .regularized import solve_regularized
from .ridge_path import RidgePath
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
    "RidgePath",
    "RidgeProblem",
    "RidgeSolution",
    "Step",
    "Steps",
    "Workers",
    "choose_on_rows",
    "expansion_of",
    "jittered_factor",
    "ridge_on_coordinates",
    "solve_iteratively",
    "solve_regularized",
    "solve_ridge",
]
