"""The kernel methods of the documents: each a map and a linear method."""

# --- the door: written by tools/doors.py
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..engine import door as _door

if _TYPE_CHECKING:
    from .base import KernelEstimator, all_or_nothing, kernel_of
    from .classifier import KernelClassifier
    from .discriminant import KernelDiscriminant
    from .kernel_map import KernelMap
    from .kernelized import Kernelized, linear_coef
    from .learned_model import UNINFORMATIVE
    from .logistic import KernelLogistic
    from .pca import KernelPCA
    from .pca_l1 import KernelPCAL1
    from .preimages import preimage
    from .refits import FOLDS
    from .regressor import KernelRegressor
    from .ridge import RidgeEstimator
    from .svc import KernelSVC
    from .trees import Trees, leaf_size

__getattr__ = _door(
    __name__,
    {
        "base": "KernelEstimator all_or_nothing kernel_of",
        "classifier": "KernelClassifier",
        "discriminant": "KernelDiscriminant",
        "kernel_map": "KernelMap",
        "kernelized": "Kernelized linear_coef",
        "learned_model": "UNINFORMATIVE",
        "logistic": "KernelLogistic",
        "pca": "KernelPCA",
        "pca_l1": "KernelPCAL1",
        "preimages": "preimage",
        "refits": "FOLDS",
        "regressor": "KernelRegressor",
        "ridge": "RidgeEstimator",
        "svc": "KernelSVC",
        "trees": "Trees leaf_size",
    },
)
# --- end of the door
