"""Arguments of learn_kernel, refused early where they make no sense."""

from typing import Any

import numpy as np

from ..engine import check_at_least
from ..kernels import Kernel, as_kernel
from .families import FIRST_FAMILY, with_weights
from .targets import Targets, checked_numbers

METRICS = ("full", "diagonal", None)
# Kernels in an expression whose length scales and weights are tuned: each takes many fits.
MOST_PARTS = 200


def first_kernel(kernel: Kernel | str | None) -> Kernel:
    """The first kernel of the search: a family, or the given expression with weighted summands."""
    if kernel is None:
        return FIRST_FAMILY
    kernel = as_kernel(kernel)
    size = sum(1 for _ in kernel.parts())
    if size > MOST_PARTS:
        raise ValueError(
            f"the kernel is an expression of {size} kernels, and learning tunes at most "
            f"{MOST_PARTS}, since every length scale and weight is searched for. Give a shorter "
            "expression, or use this one as it is in KernelRidge or KernelMap."
        )
    kernel = with_weights(kernel)
    kernel.check_parameters()
    return kernel


def check_lengths(X: Any, targets: Targets) -> None:
    if targets.columns.shape[0] != X.shape[0]:
        raise ValueError(
            f"X has {X.shape[0]} rows and y has {targets.columns.shape[0]}: Found input variables "
            "with inconsistent numbers of samples."
        )


def check_options(metric: Any, n_rounds: Any, max_landmarks: Any, alphas: Any) -> None:
    if not isinstance(metric, str | None) or metric not in METRICS:
        raise ValueError(f"metric must be 'full', 'diagonal' or None, got {metric!r}.")
    check_at_least("n_rounds", n_rounds, 0)
    check_at_least("max_landmarks", max_landmarks, 1)
    if alphas is not None:
        given = checked_numbers("alphas", alphas)
        if given.ndim != 1 or not len(given) or not np.all((given > 0) & (given < np.inf)):
            raise ValueError(f"alphas must be a list of positive numbers, got {alphas!r}.")
