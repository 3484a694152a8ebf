"""Models as ONNX graphs: phi(z) = k(z, S) W, and what is linear on top of it.

ONNX has no triangular solve. W = C^-T is therefore written out, followed by one step of refinement:
phi = k W, then phi + (k - phi C') W. On eight kernels and 300 points the step brings inner products
1.2 to 3 times nearer to the map's. That is little, and it matters: RationalQuadratic has 22382 of
160000 pairs outside its certificate without it, and none with it.
"""

from functools import singledispatch
from typing import Any

import numpy as np
import scipy.sparse
from scipy.special import softmax
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from ... import (
    DriftDetector,
    KernelClassifier,
    KernelDiscriminant,
    Kernelized,
    KernelLogistic,
    KernelMap,
    KernelPCA,
    KernelPCAL1,
    KernelRegressor,
    KernelSVC,
    RKHSFunction,
)
from ...engine import as_host, solve_triangular
from ...estimators import ClassShares, RidgeEstimator, Trees, linear_coef
from ...feature_map import LinearOnMap
from ...kernels import GramColumns
from ...space import Corrected, Fourier, Landmarks, OwnFeatures
from ...tables import Numbers
from .graph import ARRAY_FUNCTIONS, Tensor


@singledispatch
def outputs(model: Any, X: Tensor):
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
    return {"coordinates": _map_coordinates(model.map_, X)}


def _map_coordinates(feature_map, X):
    Phi = raw = _in_space(feature_map.space, X)
    if feature_map.rotation is not None:
        Phi = Phi @ _as_double(feature_map.rotation)
    if feature_map.mean is not None:
        Phi = Phi - _as_double(feature_map.mean)
    if feature_map.append_residual:
        seen = ARRAY_FUNCTIONS.sum(raw * raw, axis=1, keepdims=True)
        rho2 = _diagonal_tensor(feature_map.kernel, X) - seen
        Phi = Phi.concat(ARRAY_FUNCTIONS.sqrt(rho2.maximum(0.0)))
    return Phi


def _in_space(space, X):
    """Coordinates before any rotation."""
    if isinstance(space, OwnFeatures):
        return _written(space.kernel, "a finite feature map", lambda: space.kernel.features(X))
    if isinstance(space, Fourier):
        raise TypeError(
            "to_onnx: Fourier coordinates hold in a box, and a graph cannot refuse rows outside of "
            "it. Save the model with mercer.save, or fit with basis='cholesky'."
        )
    if space.rank == 0:
        raise ValueError("to_onnx: the map has rank 0 (the kernel is zero on its data).")
    K = _value_tensor(space.kernel, X, space.S)
    if isinstance(space, Corrected):
        return K @ _as_double(space.W)
    if not isinstance(space, Landmarks):
        raise TypeError(f"to_onnx: a map on a {type(space).__name__} cannot be written.")
    C = _as_double(space.C)
    W = solve_triangular(C, np.eye(len(C))).T
    Phi = K @ W
    return Phi + (K - Phi @ C.T) @ W


def _expanded(expansion, X):
    """k(X, S) W + b, the shape of every other answer."""
    K = _value_tensor(expansion.kernel, X, expansion.S)
    return K @ _as_double(expansion.W) + _as_double(expansion.b)


def _function_of(answer, X):
    """An Expansion, or linear functions of a map's coordinates."""
    if isinstance(answer, LinearOnMap):
        if answer.expansion is None:
            return _map_coordinates(answer.map, X) @ _as_double(answer.coef) + _as_double(answer.b)
        answer = answer.expansion
    return _expanded(answer, X)


# --- kernels --------------------------------------------------------------------------------------
# Their own code runs on tensors, which are written down as they go. What depends on fixed points S
# alone is computed before the graph is made.


def _value_tensor(kernel, X, S):
    S = _fixed(S)
    return _written(kernel, "a graph", lambda: kernel.against(S)(X))


def _diagonal_tensor(kernel, X):
    return _written(kernel, "a graph with k(x, x)", lambda: kernel.diagonal(X)[:, None])


def _written(kernel, what, form):
    by_user = [part for part in kernel.parts() if part.runs_user_code or part.kind == "objects"]
    cause = None
    if not by_user:
        try:
            return form()
        except (AttributeError, TypeError) as error:
            cause = error
    named = type(by_user[-1] if by_user else kernel).__name__
    raise ValueError(
        f"{named} cannot be written as {what} of ONNX operators. The kernel: {kernel!r}. Kernels "
        "that can: those on vectors whose formulas are arithmetic, roots and exponentials (of "
        "Matern: nu 0.5, 1.5, 2.5 and all from 20 on), and not functions of Python."
    ) from cause


# --- methods --------------------------------------------------------------------------------------


@outputs.register(KernelPCA)
@outputs.register(KernelPCAL1)
def _(model, X):
    return {"scores": _function_of(model.projection_, X)}


@outputs.register
def _(model: RidgeEstimator, X):
    prediction = _function_of(model.prediction_, X)
    return {"prediction": prediction.flat() if model.single_target_ else prediction}


@outputs.register
def _(model: KernelRegressor, X):
    scale, offset = _as_double(model.scale_), _as_double(model.offset_)
    prediction = _learned(model, X) * scale[None, :] + offset[None, :]
    low, high = _as_double(model.limits_)
    prediction = prediction.maximum(low[None, :]).minimum(high[None, :])
    return {"prediction": prediction.flat() if model.single_target_ else prediction}


@outputs.register
def _(model: KernelClassifier, X):
    decision = _learned(model, X) / model.temperature_ + _as_double(model.bias_)[None, :]
    return _class_answers(decision, model.classes_, binary=False)


def _learned(model, X):
    """f of a learned kernel, on the scale of the columns that were fitted."""
    Z = X if model.encoder_ is None else _encoded(model.encoder_, X)
    Z = Z.of_width(model.points_.shape[1])
    K = _value_tensor(model.kernel_, Z, model.points_)
    f = K @ _as_double(model.dual_coef_) + np.atleast_1d(_as_double(model.intercept_))[None, :]
    for part in model.others_:
        if isinstance(part, ClassShares):
            decision = Z @ _as_double(part.coef) + _as_double(part.b)[None, :]
            f = f + decision.graph.op("Softmax", decision, axis=1) * part.weight
        else:
            f = f + (_sum_of_leaves if isinstance(part, Trees) else _expanded)(part, Z)
    return f


def _sum_of_leaves(trees, X):
    """Every row goes down all trees at once, one level per step."""
    graph = X.graph
    parts = (trees.feature, trees.threshold, trees.below, trees.above, _as_double(trees.values))
    feature, threshold, left, right, values = map(graph.constant, parts)
    node = graph.op("Add", X.full((1,), 0.0).cast(np.int64), trees.roots[None, :])
    for _ in range(trees.depth):
        x = graph.op("GatherElements", X, graph.op("Gather", feature, node), axis=1)
        below = graph.op("LessOrEqual", x, graph.op("Gather", threshold, node))
        children = (graph.op("Gather", child, node) for child in (left, right))
        node = graph.op("Where", below, *children)
    leaves = graph.op("Gather", values, node, axis=0)
    found = ARRAY_FUNCTIONS.sum(leaves, axis=1).of_width(trees.values.shape[1])
    return found + trees.b[None, :]


@outputs.register
def _(model: RKHSFunction, X):
    return {"value": _expanded(model.expansion, X).flat()}


@outputs.register
def _(model: KernelDiscriminant, X):
    found = _class_answers(_function_of(model.decision_, X), model.classes_)
    return found | {"scores": _function_of(model.projection_, X)}


@outputs.register
def _(model: KernelLogistic, X):
    return _class_answers(_function_of(model.decision_, X), model.classes_, decides=True)


@outputs.register
def _(model: KernelSVC, X):
    if len(_as_double(model.classes_)) > 2:
        raise TypeError(
            "to_onnx: KernelSVC compares more than two classes in pairs, which is not written; use "
            "KernelLogistic, or save the model with mercer.save."
        )
    decision = _function_of(model.decision_, X)
    return _class_answers(decision, model.classes_, probable=False, decides=True)


@outputs.register
def _(model: DriftDetector, X):
    """decision_function: negative for rows unlike the reference."""
    if model.encoder_ is not None:
        raise ValueError(
            "to_onnx: the DriftDetector was fitted on a data frame; ONNX graphs take rows of "
            "numbers. Fit it on an array."
        )
    own, center = model.row_map_, _as_double(model.center_)
    score = _map_coordinates(own.map_, X) @ (2 * center[:, None]) - _diagonal_tensor(own.kernel_, X)
    least = float(center @ center) + max(model.offset_, -np.finfo(float).max)
    return {"decision": (score - least).flat()}


@outputs.register
def _(model: Kernelized, X):
    inner = model.estimator_
    try:
        coef, intercept = map(_as_double, linear_coef(model))
    except AttributeError as error:
        name = type(inner).__name__
        remedy = (
            f"{name} is not one. skl2onnx may know it: fit make_pipeline(KernelMap(...), "
            "estimator) and convert that"
        )
        if isinstance(inner, SVC | NuSVC | SVR | NuSVR | OneClassSVM) and inner.kernel != "linear":
            remedy = f"this {name} has a kernel of its own: use {name}(kernel='linear')"
        raise TypeError(f"to_onnx writes Kernelized with linear estimators; {remedy}.") from error
    # A few points of the training data, to try predictions on.
    S = model.kernel_map_.map_.space.S
    S = np.eye(model.n_features_in_) if S is None or isinstance(S, GramColumns) else S
    known = _as_double(model.kernel_map_.transform(S[:20]))
    linear = known @ coef.T + intercept
    values_ = _function_of(model.kernel_map_.map_.linear(coef.T, intercept), X)
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
    probable = hasattr(inner, "predict_proba")
    if probable:
        shares = softmax(np.hstack([0 * linear, linear]) if binary else linear, axis=1)
        _require_linear(inner, "predict_proba", inner.predict_proba(known), shares)
    return _class_answers(decision, inner.classes_, probable=probable, decides=True)


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


def _require_linear(inner, method, expected, linear):
    if not np.allclose(expected, linear, rtol=1e-6, atol=1e-6 * (1e-300 + np.abs(expected).max())):
        raise _not_linear(inner, method)


def _not_linear(inner, method):
    return TypeError(
        f"to_onnx: {method} of {type(inner).__name__} is not that of a linear model with its coef_ "
        "and intercept_."
    )


def _class_answers(decision, classes, *, binary=None, probable=True, decides=False):
    """The class with the largest decision value (of two, the second where it is positive), where
    asked for its probabilities and the values themselves. `binary`: two classes have one value."""
    graph, binary = decision.graph, len(classes) == 2 if binary is None else binary
    if binary:
        best = graph.op("Greater", decision, 0.0).cast(np.int64).flat()
    else:
        best = graph.op("ArgMax", decision, axis=1, keepdims=0)
    found = {"label": _picked(graph, classes, best)}
    if probable:
        both = (decision * 0.0).concat(decision) if binary else decision
        found["probabilities"] = graph.op("Softmax", both, axis=1)
    return found | ({"decision": decision.flat() if binary else decision} if decides else {})


def _picked(graph, classes, best):
    classes = _as_double(classes)
    classes = classes.astype(np.int64) if classes.dtype.kind == "b" else classes
    return graph.op("Gather", graph.constant(classes), best, axis=0).of_width(0)


# --- tables of numbers ----------------------------------------------------------------------------


def _encoded(encoder, X):
    """The encoder's outputs for rows of numbers; columns of words and dates are refused by name."""
    parts = []
    for j, (made, record) in enumerate(zip(encoder.encoders_, encoder.columns_)):
        if made is None:
            continue
        if not isinstance(made, Numbers):
            raise TypeError(
                f"to_onnx: the column {record['name']!r} is a {record['kind']}, and ONNX graphs "
                "take rows of numbers. Fit on columns of numbers, or save the model with "
                "mercer.save."
            )
        parts += _encoded_numbers(made, X.columns([j]))
    return parts[0] if len(parts) == 1 else parts[0].concat(*parts[1:])


def _encoded_numbers(made, x):
    """As Numbers.transform: scaled values, where they were missing, ranks, single values."""
    graph = x.graph
    missing = graph.op("IsNaN", x)
    x = graph.op("Where", missing, made.median_, x)
    parts = [(x - made.centre_) / made.spread_]
    parts += [missing.cast(np.float64)] if made.marks_missing_ else []
    parts += [_ranks(made.ranks_, x)] if made.ranks_ is not None else []
    if made.levels_ is not None:
        parts.append(graph.op("Equal", x, made.levels_[None, :]).cast(np.float64))
    return parts


def _ranks(ranks, x):
    """Linear between knots: what each step between two knots adds, up to x."""
    below, above = ranks.knots_[:-1], ranks.knots_[1:]
    slopes = np.diff(ranks.shares_) / (above - below)
    steps = x.maximum(below[None, :]).minimum(above[None, :]) - below[None, :]
    return ((steps @ slopes[:, None]) + (ranks.shares_[0] - ranks.centre_)) / ranks.spread_


def _as_double(value):
    """An array of any backend as NumPy's, numbers in double precision."""
    array = np.asarray(as_host(value))
    return array.astype(np.float64) if array.dtype == np.float32 else array


def _fixed(S):
    """Landmarks as a dense NumPy array (columns of a Gram matrix as they are)."""
    if isinstance(S, GramColumns):
        return S
    S = S.toarray() if scipy.sparse.issparse(S) else _as_double(S)
    if S.dtype == object:
        raise ValueError(
            "to_onnx: the model was fitted on objects; ONNX graphs take rows of numbers."
        )
    return S
