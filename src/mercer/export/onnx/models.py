"""Models as ONNX graphs: phi(z) = k(z, S) W, and what is linear on top of it.

ONNX has no triangular solve. W = C^-T is therefore written out, followed by one step of refinement:
phi = k W, then phi + (k - phi C') W. On eight kernels and 300 points the step brings inner products
1.2 to 3 times nearer to the map's. That is little, and it matters: RationalQuadratic has 22382 of
160000 pairs outside its certificate without it, and none with it.
"""

from functools import singledispatch

import numpy as np
import scipy.sparse
from sklearn.svm import SVC, NuSVC

from ...engine.arrays import as_host, solve_triangular
from ...estimators.classifier import KernelClassifier
from ...estimators.discriminant import KernelDiscriminant
from ...estimators.kernel_map import KernelMap
from ...estimators.kernelized import Kernelized, linear_coef
from ...estimators.logistic import KernelLogistic
from ...estimators.pca import KernelPCA
from ...estimators.pca_l1 import KernelPCAL1
from ...estimators.regressor import KernelRegressor
from ...estimators.ridge import RidgeEstimator
from ...estimators.svc import KernelSVC
from ...estimators.trees import Trees
from ...expansion import RKHSFunction
from ...feature_map import LinearOnMap
from ...kernels.adapters import GramColumns
from ...space.corrected import Corrected
from ...space.fourier import Fourier
from ...space.landmarks import Landmarks
from ...space.own_features import OwnFeatures
from ...statistics.drift import DriftDetector
from .graph import FUNCTIONS
from .kernels import diagonal_tensor, feature_tensor, value_tensor
from .tables import encoded_tensor


@singledispatch
def outputs(model, X):
    """{name: tensor} of what the model makes of the rows X; the first is its main answer."""
    raise TypeError(
        f"to_onnx cannot write {type(model).__name__}: it takes a fitted KernelMap, KernelPCA, "
        "KernelPCAL1, KernelRidge, KernelRidgeCV, KernelRegressor, KernelClassifier, "
        "KernelDiscriminant, KernelSVC, KernelLogistic, DriftDetector, Kernelized with a linear "
        "estimator, or an RKHSFunction. Pipelines: skl2onnx.to_onnx, after mercer.onnx.register()."
    )


# --- maps -----------------------------------------------------------------------------------------


@outputs.register
def _(model: KernelMap, X):
    return {"coordinates": map_coordinates(model.map_, X)}


def map_coordinates(feature_map, X):
    """The tensor of a FeatureMap's coordinates."""
    Phi = raw = in_space(feature_map.space, X)
    if feature_map.rotation is not None:
        Phi = Phi @ as_double(feature_map.rotation)
    if feature_map.mean is not None:
        Phi = Phi - as_double(feature_map.mean)
    if feature_map.append_residual:
        rho2 = diagonal_tensor(feature_map.kernel, X) - FUNCTIONS.sum(
            raw * raw, axis=1, keepdims=True
        )
        Phi = Phi.concat(FUNCTIONS.sqrt(rho2.maximum(0.0)))
    return Phi


def in_space(space, X):
    """Coordinates before any rotation."""
    if isinstance(space, OwnFeatures):
        return feature_tensor(space.kernel, X)
    if isinstance(space, Fourier):
        raise TypeError(
            "to_onnx: Fourier coordinates hold in a box, and a graph cannot refuse rows outside of "
            "it. Save the model with mercer.save, or fit with basis='cholesky'."
        )
    if space.rank == 0:
        raise ValueError("to_onnx: the map has rank 0 (the kernel is zero on its data).")
    K = value_tensor(space.kernel, X, fixed(space.S))
    if isinstance(space, Corrected):
        return K @ as_double(space.W)
    if not isinstance(space, Landmarks):
        raise TypeError(f"to_onnx: a map on a {type(space).__name__} cannot be written.")
    C = as_double(space.C)
    W = solve_triangular(C, np.eye(len(C))).T
    Phi = K @ W
    return Phi + (K - Phi @ C.T) @ W


def expanded(expansion, X):
    """k(X, S) W + b, the shape of every other answer."""
    K = value_tensor(expansion.kernel, X, fixed(expansion.S))
    return K @ as_double(expansion.W) + as_double(expansion.b)


def function_of(answer, X):
    """An Expansion, or linear functions of a map's coordinates."""
    if isinstance(answer, LinearOnMap):
        if answer.expansion is None:
            return map_coordinates(answer.map, X) @ as_double(answer.coef) + as_double(answer.b)
        answer = answer.expansion
    return expanded(answer, X)


# --- methods --------------------------------------------------------------------------------------


@outputs.register(KernelPCA)
@outputs.register(KernelPCAL1)
def _(model, X):
    return {"scores": function_of(model.projection_, X)}


@outputs.register
def _(model: RidgeEstimator, X):
    prediction = function_of(model.prediction_, X)
    return {"prediction": prediction.flat() if model.single_target_ else prediction}


@outputs.register
def _(model: KernelRegressor, X):
    scale, offset = as_double(model.scale_), as_double(model.offset_)
    prediction = _learned(model, X) * scale[None, :] + offset[None, :]
    low, high = as_double(model.limits_)
    prediction = prediction.maximum(low[None, :]).minimum(high[None, :])
    return {"prediction": prediction.flat() if model.single_target_ else prediction}


@outputs.register
def _(model: KernelClassifier, X):
    decision = _learned(model, X) / model.temperature_ + as_double(model.bias_)[None, :]
    best = decision.graph.op("ArgMax", decision, axis=1, keepdims=0)
    return {
        "label": _picked(decision.graph, model.classes_, best),
        "probabilities": probabilities(decision, False),
    }


def _learned(model, X):
    """f of a learned kernel, on the scale of the columns that were fitted."""
    Z = X if model.encoder_ is None else encoded_tensor(model.encoder_, X)
    Z = Z.of_width(model.points_.shape[1])
    K = value_tensor(model.kernel_, Z, fixed(model.points_))
    f = K @ as_double(model.dual_coef_) + np.atleast_1d(as_double(model.intercept_))[None, :]
    for part in model.others_:
        f = f + (_sum_of_leaves(part, Z) if isinstance(part, Trees) else expanded(part, Z))
    return f


def _sum_of_leaves(trees, X):
    """Every row goes down all trees at once, one level per step."""
    graph = X.graph
    feature, threshold, left, right, values = (
        graph.constant(part)
        for part in (
            trees.feature,
            trees.threshold,
            trees.below,
            trees.above,
            as_double(trees.values),
        )
    )
    node = graph.op("Add", X.full((1,), 0.0).cast(np.int64), trees.roots[None, :])
    for _ in range(trees.depth):
        x = graph.op("GatherElements", X, graph.op("Gather", feature, node), axis=1)
        below = graph.op("LessOrEqual", x, graph.op("Gather", threshold, node))
        children = (graph.op("Gather", child, node) for child in (left, right))
        node = graph.op("Where", below, *children)
    found = graph.op(
        "ReduceSum", graph.op("Gather", values, node, axis=0), np.array([1]), keepdims=0
    )
    return found.of_width(trees.values.shape[1]) + trees.b[None, :]


@outputs.register
def _(model: RKHSFunction, X):
    return {"value": expanded(model.expansion, X).flat()}


@outputs.register
def _(model: KernelDiscriminant, X):
    decision = function_of(model.decision_, X)
    return {
        "label": labels(decision, model.classes_),
        "probabilities": probabilities(decision, len(model.classes_) == 2),
        "scores": function_of(model.projection_, X),
    }


@outputs.register
def _(model: KernelLogistic, X):
    decision = function_of(model.decision_, X)
    binary = len(as_double(model.classes_)) == 2
    return {
        "label": labels(decision, model.classes_),
        "probabilities": probabilities(decision, binary),
        "decision": decision.flat() if binary else decision,
    }


@outputs.register
def _(model: KernelSVC, X):
    if len(as_double(model.classes_)) > 2:
        raise TypeError(
            "to_onnx: KernelSVC compares more than two classes in pairs, which is not written; use "
            "KernelLogistic, or save the model with mercer.save."
        )
    decision = function_of(model.decision_, X)
    return {"label": labels(decision, model.classes_), "decision": decision.flat()}


@outputs.register
def _(model: DriftDetector, X):
    """decision_function: negative for rows unlike the reference."""
    if model.encoder_ is not None:
        raise ValueError(
            "to_onnx: the DriftDetector was fitted on a data frame; ONNX graphs take rows of "
            "numbers. Fit it on an array."
        )
    own, center = model.row_map_, as_double(model.center_)
    score = map_coordinates(own.map_, X) @ (2 * center[:, None]) - diagonal_tensor(own.kernel_, X)
    return {
        "decision": (
            score - (float(center @ center) + max(model.offset_, -np.finfo(float).max))
        ).flat()
    }


@outputs.register
def _(model: Kernelized, X):
    inner = model.estimator_
    try:
        coef, intercept = linear_coef(model)
    except AttributeError as error:
        raise TypeError(
            f"to_onnx writes Kernelized with linear estimators; {type(inner).__name__} is not one. "
            "skl2onnx may know it: fit make_pipeline(KernelMap(...), estimator) and convert that."
        ) from error
    known = as_double(model.kernel_map_.transform(_examples(model)))
    linear = known @ as_double(coef).T + as_double(intercept)
    values_ = function_of(model.kernel_map_.map_.linear(as_double(coef).T, as_double(intercept)), X)
    if hasattr(inner, "classes_"):
        return _classified(inner, known, linear, values_)
    if not hasattr(inner, "predict"):
        raise TypeError(f"to_onnx: {type(inner).__name__} makes no predictions.")
    expected = np.asarray(inner.predict(known))
    _require_linear(inner, "predict", expected, linear.reshape(expected.shape))
    return {"prediction": values_.flat() if expected.ndim == 1 else values_}


def _classified(inner, known, linear, decision):
    """Labels, decision values, and probabilities where they are a known function of these."""
    binary, n = len(inner.classes_) == 2, len(inner.classes_)
    # Three classes have three pairs.
    if isinstance(inner, SVC | NuSVC) and not binary and linear.shape[1] == n * (n - 1) // 2:
        return _by_pairs(inner, known, linear, decision)
    if linear.shape[1] != (1 if binary else n):
        raise TypeError(
            f"to_onnx: {type(inner).__name__} has {linear.shape[1]} functions for {n} classes, "
            "which is not written; use LogisticRegression, LinearSVC or RidgeClassifier."
        )
    best = (linear[:, 0] > 0).astype(int) if binary else linear.argmax(axis=1)
    expected = np.asarray(inner.predict(known))
    if not np.array_equal(inner.classes_[best], expected):
        raise _not_linear(inner, "predict")
    found = {"label": labels(decision, inner.classes_)}
    if hasattr(inner, "predict_proba"):
        _require_linear(inner, "predict_proba", inner.predict_proba(known), _proba(linear, binary))
        found["probabilities"] = probabilities(decision, binary)
    found["decision"] = decision.flat() if binary else decision
    return found


def _by_pairs(inner, known, linear, decision):
    """SVC compares classes in pairs: the class with the most votes, and of several the first."""
    first, second = np.triu_indices(len(inner.classes_), 1)
    one = np.eye(len(inner.classes_))
    votes = (linear > 0) @ one[first] + (linear <= 0) @ one[second]
    alike = np.array_equal(inner.classes_[votes.argmax(axis=1)], inner.predict(known))
    if inner.break_ties or not alike:
        raise _not_linear(inner, "predict")
    graph = decision.graph
    won = graph.op("Greater", decision, 0.0).cast(np.float64)
    votes = won @ (one[first] - one[second]) + one[second].sum(axis=0)[None, :]
    best = graph.op("ArgMax", votes, axis=1, keepdims=0)
    return {"label": _picked(graph, inner.classes_, best), "pairs": decision}


def _examples(model):
    """A few points of the training data, to try predictions on."""
    S = model.kernel_map_.map_.space.S
    if S is None or isinstance(S, GramColumns):
        return np.eye(model.n_features_in_)[:20]
    return S[:20]


def _require_linear(inner, method, expected, linear):
    if not np.allclose(expected, linear, rtol=1e-6, atol=1e-6 * (1e-300 + np.abs(expected).max())):
        raise _not_linear(inner, method)


def _not_linear(inner, method):
    return TypeError(
        f"to_onnx: {method} of {type(inner).__name__} is not that of a linear model with its coef_ "
        "and intercept_."
    )


def labels(decision, classes):
    """The class with the largest decision value; of two, the second where it is positive."""
    graph = decision.graph
    if len(classes) == 2:
        best = graph.op("Greater", decision, 0.0).cast(np.int64).flat()
    else:
        best = graph.op("ArgMax", decision, axis=1, keepdims=0)
    return _picked(graph, classes, best)


def _picked(graph, classes, best):
    classes = as_double(classes)
    classes = classes.astype(np.int64) if classes.dtype.kind == "b" else classes
    return graph.op("Gather", graph.constant(classes), best, axis=0).of_width(0)


def probabilities(decision, binary):
    if binary:
        decision = (decision * 0.0).concat(decision)
    return decision.graph.op("Softmax", decision, axis=1)


def _proba(linear, binary):
    if binary:
        linear = np.hstack([0 * linear, linear])
    e = np.exp(linear - linear.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


# --- arrays ---------------------------------------------------------------------------------------


def as_double(value):
    """An array of any backend as NumPy's, numbers in double precision."""
    array = np.asarray(as_host(value))
    return array.astype(np.float64) if array.dtype == np.float32 else array


def fixed(S):
    """Landmarks as a dense NumPy array (columns of a Gram matrix as they are)."""
    if isinstance(S, GramColumns):
        return S
    S = S.toarray() if scipy.sparse.issparse(S) else as_double(S)
    if S.dtype == object:
        raise ValueError(
            "to_onnx: the model was fitted on objects; ONNX graphs take rows of numbers."
        )
    return S
