"""compare_kernels: what several kernels make of the same data, in numbers, words and pictures."""

from .comparison import KernelComparison, KernelSpace, compare_kernels

__all__ = ["KernelComparison", "KernelSpace", "compare_kernels"]
