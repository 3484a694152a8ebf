"""SVMs on kernel values instead of coordinates: the same dual problem, [NPT] (17)-(20), for less.

scikit-learn's machine of the kernel is fitted; it becomes that of coordinates when asked.
"""

from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from ..engine import Resources, is_numpy, matrix_bytes, tiles
from ..expansion import Expansion
from ..kernels import Precomputed
from ..rows import Training
from ..space import refute_by_sample
from .kernel_map import KernelMap

MACHINES = (SVC, NuSVC, SVR, NuSVR, OneClassSVM)
# Formulas that libsvm evaluates itself, with the same parameters, and values that are given.
LIBSVM = ("linear", "rbf", "poly", "precomputed")
# Coordinates up to here cost libsvm less than values of the kernel.
FEW_COORDINATES = 50
# Copies of the kernel matrix: K, and what libsvm keeps of it in single precision.
COPIES = 1.5


def takes_kernel_values(model: Any, training: Training) -> bool:
    """Whether the estimator inside is a linear SVM that may have the kernel itself."""
    inner = model.estimator
    if type(inner) not in MACHINES or inner.kernel != "linear":
        return False
    kernel, points = training.kernel, training.points
    if isinstance(model.kernel, KernelMap):
        return False
    if type(kernel) is Precomputed and is_numpy(points):
        refute_by_sample(kernel, points)
        return True
    known = kernel.kind == "vectors" and kernel.is_psd is True and not kernel.runs_user_code
    if known and scipy.sparse.issparse(points):
        return _named(kernel) is not None and points.nnz < 2**31
    return known and is_numpy(points)


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


def inputs(kernel: Any, points: Any, training: Any = None) -> Any:
    """The input of the machine: points, or their kernel values."""
    if _named(kernel) is not None:
        return _for_libsvm(points, training)
    other = None if training is None else kernel.layout.in_double(training)
    return tiles.evaluate(kernel, kernel.layout.in_double(points), other)


def _for_libsvm(points, training):
    """Dense where the training points are; indices of 32 bits."""
    if not scipy.sparse.issparse(points):
        return points
    if training is not None and not scipy.sparse.issparse(training):
        return points.toarray()
    places = (part.astype(np.int32, copy=False) for part in (points.indices, points.indptr))
    return scipy.sparse.csr_matrix((points.data, *places), shape=points.shape)


def on_coordinates(machine: Any, Phi: Any) -> Any:
    """The same machine as one of coordinates: its support vectors are those of the map."""
    linear = clone(machine)
    vars(linear).update(vars(machine))
    linear.kernel, linear.n_features_in_, linear.shape_fit_ = "linear", Phi.shape[1], Phi.shape
    if scipy.sparse.issparse(machine.dual_coef_):
        names = ("dual_coef_", "_dual_coef_")
        vars(linear).update({name: vars(machine)[name].toarray() for name in names}, _sparse=False)
    vars(linear).pop("feature_names_in_", None)
    linear.support_vectors_ = np.ascontiguousarray(Phi[machine.support_])
    return linear


def expansion_of_machine(machine: Any, kernel: Any, points: Any) -> Expansion:
    """Its functions as sums of kernels at the support vectors: one, or one for each pair."""
    dual, b = machine.dual_coef_, np.ravel(machine.intercept_)
    dual = dual.toarray() if scipy.sparse.issparse(dual) else dual
    W = dual.T
    if len(b) > 1:
        W = pair_columns(dual, np.repeat(np.arange(len(machine.n_support_)), machine.n_support_))
    n = points.shape[0]
    S = kernel.layout.support(kernel, points, machine.support_, np.arange(n), n)
    return Expansion(kernel, S, np.ascontiguousarray(W), b)


def pair_columns(dual: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Coefficients that libsvm lays out by class, as one column for each pair of classes."""
    pairs = combinations(range(len(dual) + 1), 2)
    columns = [
        np.where(codes == i, dual[j - 1], np.where(codes == j, dual[i], 0)) for i, j in pairs
    ]
    return np.stack(columns, axis=1)
