"""(K + alpha I) a = t beyond memory: iterations with a certificate."""

from .iterative import IterativeSolution, Step, solve_iteratively

__all__ = ["IterativeSolution", "Step", "solve_iteratively"]
