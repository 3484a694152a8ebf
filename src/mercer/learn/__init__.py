"""Kernels learned from data: metric, lengths and penalty, judged by leave-one-out."""

from .learn_kernel import learn_kernel
from .learned import LearnedKernel

__all__ = ["LearnedKernel", "learn_kernel"]
