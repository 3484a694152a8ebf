"""(K + alpha I) a = t: directly, and beyond memory by iterations with a certificate."""

from .iterative import IterativeSolution, solve_iteratively
from .refinement import Step
from .workers import Workers

__all__ = ["IterativeSolution", "Step", "Workers", "solve_iteratively"]
