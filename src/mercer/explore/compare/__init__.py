"""compare_kernels: what several kernels make of the same data, in numbers, words and pictures."""

from .comparison import compare_kernels
from .result import KernelComparison, KernelSpace

__all__ = ["KernelComparison", "KernelSpace", "compare_kernels"]
