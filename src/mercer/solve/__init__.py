"""(K + alpha I) a = t beyond memory: iterations with a certificate."""

from .iterative import IterativeSolution, solve_iteratively
from .refinement import Step

__all__ = ["IterativeSolution", "Step", "solve_iteratively"]
