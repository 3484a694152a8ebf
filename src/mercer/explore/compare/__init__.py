"""compare_kernels: what several kernels make of the same data, in numbers, words and pictures."""

from .comparing import compare_kernels
from .kernel_comparison import KernelComparison, KernelSpace

__all__ = ["KernelComparison", "KernelSpace", "compare_kernels"]
