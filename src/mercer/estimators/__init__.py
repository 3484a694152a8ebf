"""The kernel methods of the documents: each a map and a linear method."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..doors import door as _door

if _TYPE_CHECKING:
    from .base import KernelEstimator, all_or_nothing, kernel_of
    from .kernel_map import KernelMap
    from .kernelized import linear_coef
    from .learned_model import UNINFORMATIVE
    from .left_out import FOLDS
    from .preimages import preimage
    from .ridge import RidgeEstimator
    from .stack import ClassShares
    from .trees import Trees, leaf_size

__getattr__ = _door(
    __name__,
    {
        "base": "KernelEstimator all_or_nothing kernel_of",
        "kernel_map": "KernelMap",
        "kernelized": "linear_coef",
        "learned_model": "UNINFORMATIVE",
        "left_out": "FOLDS",
        "preimages": "preimage",
        "ridge": "RidgeEstimator",
        "stack": "ClassShares",
        "trees": "Trees leaf_size",
    },
)
