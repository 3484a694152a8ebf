"""Kernels learned from data: metric, lengths and penalty, judged by leave-one-out."""

from .arguments import check_options
from .cross_fit import JUDGED_ROWS, CrossFit, DuplicateGroups, kept_from_search, limits_of
from .learn_kernel import learn_from, learn_kernel
from .learned import LearnedKernel
from .metric import column_scales
from .observations import Observations, copied_rows, distinct_rows
from .room import beside_table
from .targets import Targets, are_class_numbers, as_generator
from .within_groups import unexplained_within

__all__ = ["LearnedKernel", "learn_kernel"]
