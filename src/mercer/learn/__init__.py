"""Kernels learned from data: metric, lengths and penalty, judged by leave-one-out."""

from .cross_fit import CrossFit
from .learn_kernel import SEARCH, learn_from, learn_kernel
from .learned import LearnedKernel
from .metric import column_scales
from .observations import Observations
from .room import beside_table
from .targets import Targets, as_generator
from .within_groups import unexplained_within

__all__ = ["LearnedKernel", "learn_kernel"]
