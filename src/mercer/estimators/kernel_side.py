"""SVMs on kernel values instead of coordinates: the same dual problem, [NPT] (17)-(20), for less.

scikit-learn's machine of the kernel is fitted; it becomes that of coordinates when asked.
"""

from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from ..engine import Resources, is_numpy, matrix_bytes, tiles
from ..expansion import Expansion
from ..kernels import points as pts
from ..rows import Training
from .kernel_map import KernelMap

MACHINES = (SVC, NuSVC, SVR, NuSVR, OneClassSVM)
# Formulas that libsvm evaluates itself, with the same parameters.
LIBSVM = ("linear", "rbf", "poly")
# Coordinates up to here cost libsvm less than values of the kernel.
FEW_COORDINATES = 50
# Copies of the kernel matrix: K, and what libsvm keeps of it in single precision.
COPIES = 1.5


def takes_kernel_values(model: Any, training: Training) -> bool:
    """Whether the estimator inside is a linear SVM that may have the kernel itself."""
    inner = model.estimator
    if type(inner) not in MACHINES or inner.kernel != "linear":
        return False
    if isinstance(model.kernel, KernelMap) or not is_numpy(training.points):
        return False
    kernel = training.kernel
    return kernel.kind == "vectors" and kernel.is_psd is True and not kernel.runs_user_code


def machine_of(model: Any, training: Training) -> Any:
    """An unfitted machine; None where coordinates are cheaper."""
    kernel, points = training.kernel, training.points
    named = _named(kernel)
    if named is None:
        own = kernel.explicit_dim(points.shape[1])
        few = own is not None and own <= FEW_COORDINATES
        if few or matrix_bytes(len(points), COPIES) > Resources().limit():
            return None
    return clone(model.estimator).set_params(**named or {"kernel": "precomputed"})


def _named(kernel):
    """The parameters by which libsvm knows the kernel, or None."""
    given, names = kernel.get_params(), [name for name in kernel.sklearn_names if name in LIBSVM]
    if not names or any(np.ndim(value) for value in given.values()):
        return None
    return {"kernel": names[0]} | given


def inputs(machine: Any, kernel: Any, points: Any, training: Any = None) -> Any:
    """The input of the machine: points, or their kernel values."""
    if machine.kernel != "precomputed":
        return points
    other = None if training is None else kernel.layout.in_double(training)
    return tiles.evaluate(kernel, kernel.layout.in_double(points), other)


def on_coordinates(machine: Any, Phi: Any) -> Any:
    """The same machine as one of coordinates: its support vectors are those of the map."""
    linear = clone(machine)
    vars(linear).update(vars(machine))
    linear.kernel, linear.n_features_in_, linear.shape_fit_ = "linear", Phi.shape[1], Phi.shape
    vars(linear).pop("feature_names_in_", None)
    linear.support_vectors_ = np.ascontiguousarray(Phi[machine.support_])
    return linear


def expansion_of_machine(machine: Any, kernel: Any, points: Any) -> Expansion:
    """Its functions as sums of kernels at the support vectors: one, or one for each pair."""
    dual, b = np.asarray(machine.dual_coef_), np.ravel(machine.intercept_)
    W = dual.T
    if len(b) > 1:
        W = pair_columns(dual, np.repeat(np.arange(len(machine.n_support_)), machine.n_support_))
    S = kernel.landmarks(kernel.layout.in_double(pts.take(points, machine.support_)))
    return Expansion(kernel, S, np.ascontiguousarray(W), b)


def pair_columns(dual: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Coefficients that libsvm lays out by class, as one column for each pair of classes."""
    pairs = combinations(range(len(dual) + 1), 2)
    columns = [
        np.where(codes == i, dual[j - 1], np.where(codes == j, dual[i], 0)) for i, j in pairs
    ]
    return np.stack(columns, axis=1)
