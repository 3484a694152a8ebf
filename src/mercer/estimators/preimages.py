"""Pre-images: from coordinates in feature space back to points.

A point of feature space has an exact pre-image only by luck. Three answers: for a linear kernel
the sum that it is; a ridge regression from coordinates to points, learned once (Bakir, Weston and
Schoelkopf 2004); or, for kernels of the distance, the point whose image is nearest, by the fixed
point iteration of Mika et al. 1999.

A class takes part by registering with ``preimage_data``: points with their coordinates, and how a
point of feature space is a sum over landmarks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..engine import (
    Domain,
    current,
    is_array,
    is_numpy,
    namespace,
    on_device_of,
    row_norms,
)
from ..feature_map import FeatureMap
from ..kernels import RBF, Kernel, Linear, Scaled
from ..rows import HeldRows, Training
from ..solve import Given, RidgeProblem, solve_ridge
from ..space import Corrected, MapOptions
from .base import kernel_of

_TINY = 1e-30


@dataclass(frozen=True)
class PreimageData:
    """Data of a fitted model for pre-images.

    Attributes
    ----------
    kernel : Kernel
    points, coordinates : examples, to learn a regression from
    landmarks : points that sums are taken over
    weights : function from rows of coordinates to rows of weights over the landmarks
    ridge_kernel : kernel of the regression; None for a linear one
    ridge_alpha : its penalty, unless the caller gives one
    """

    kernel: Kernel
    points: Any
    coordinates: Any
    landmarks: Any
    weights: Callable[[Any], Any]
    ridge_kernel: Kernel | None
    ridge_alpha: float


@singledispatch
def preimage_data(model: Any) -> PreimageData:
    """Points, their coordinates and sums over landmarks of a fitted model."""
    raise TypeError(
        f"model must be a fitted KernelMap, KernelPCA or KernelPCAL1, got {type(model).__name__}."
    )


def preimage_data_of_map(feature_map: FeatureMap, n_features: Any) -> PreimageData:
    """From the coordinates of a map, whose landmarks it keeps anyway.

    Exact coordinates are linear features: the regression has no kernel and hardly any penalty.
    """
    space, kernel = feature_map.space, feature_map.kernel
    if space.S is None:
        if not kernel.is_linear:
            raise ValueError(
                "basis='closed' and basis='fourier' keep no training points to find a way back "
                "with: use basis='cholesky'."
            )
        points = on_device_of(np.eye(n_features), space.example)
        known = kernel.features(points)
        inverse = namespace(known).linalg.pinv(known)
        plain = FeatureMap(space, feature_map.rotation, feature_map.mean)

        def weights(Z):
            raw = Z if plain.mean is None else Z + plain.mean[None, :]
            raw = raw if plain.rotation is None else raw @ plain.rotation.T
            return raw @ inverse

        return PreimageData(kernel, points, plain(points), points, weights, None, 1e-6)
    weights = _no_sums if isinstance(space, Corrected) else feature_map.combination
    known = feature_map.landmark_coordinates()
    return PreimageData(kernel, space.S, known, space.S, weights, None, 1e-6)


def preimage_data_of_scores(back: PreimageData, linear: Any, mean: np.ndarray) -> PreimageData:
    """From scores (coordinates - mean) @ axes on the coordinates of another way back."""
    axes = linear.coef

    def weights(Z):
        return back.weights(Z @ axes.T + mean[None, :])

    scores = (back.coordinates - mean[None, :]) @ axes
    kernel, S = on_scores(back.kernel), back.landmarks
    return PreimageData(back.kernel, back.points, scores, S, weights, kernel, 1.0)


def _no_sums(Z):
    raise ValueError(
        "the similarity was corrected (see correction_), so its points are not sums over "
        "landmarks; use method='ridge'."
    )


def preimage(
    model: BaseEstimator,
    Z: ArrayLike,
    method: Literal["ridge", "fixed-point"] = "ridge",
    *,
    alpha: float | None = None,
    max_iter: int = 200,
    tol: float = 1e-7,
) -> np.ndarray:
    """Find input points for given coordinates (or scores).

    Parameters
    ----------
    model : fitted KernelMap, KernelPCA or KernelPCAL1
        Its points must be vectors of numbers.
    Z : array of shape (n, n_coordinates)
        As `transform` returns them.
    method : {"ridge", "fixed-point"}, default="ridge"
        "ridge" learns a regression from coordinates to the training points (a KernelMap: to its
        landmarks) at its first use. "fixed-point" seeks the point whose image is nearest, starting
        from the nearest landmark; it needs RBF, RationalQuadratic or Matern with nu > 1. Where the
        kernel is linear both are the exact inverse.
    alpha : float or None, default=None
        Ridge penalty. None: for KernelPCA 1.0 with the model's own kernel on scores, as in
        scikit-learn (kernels that cannot compare scores give way to RBF); for a KernelMap, whose
        exact coordinates are linear features already, 1e-6 of the mean k(s, s).
    max_iter : int, default=200
        Steps of the fixed point iteration.
    tol : float, default=1e-7
        It stops when no coordinate moves by more than this share of the landmarks' spread.

    Returns
    -------
    X : array of shape (n, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, KernelMap, preimage
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> kernel_map = KernelMap(RBF(0.5)).fit(X)
    >>> Z = kernel_map.transform([[0.3, -0.4]])
    >>> kernel_map.inverse_transform(Z).round(2)
    array([[ 0.3, -0.4]])
    >>> preimage(kernel_map, Z, "fixed-point").round(2)
    array([[ 0.3, -0.4]])
    """
    if preimage_data.dispatch(type(model)) is preimage_data.dispatch(object):
        preimage_data(model)  # refuses
    check_is_fitted(model)
    Domain.one_of("ridge", "fixed-point")("method", method)
    if alpha is not None:
        Domain.POSITIVE("alpha", alpha)
    try:
        has_points(model)
    except AttributeError as reason:
        raise ValueError(reason) from None
    back = preimage_data(model)
    points = back.points
    if not (is_array(points) or scipy.sparse.issparse(points)) or points.dtype == object:
        raise ValueError(
            f"{type(model).__name__} was fitted on objects that are not vectors of numbers: "
            "pre-images are sums of training points, which objects do not have."
        )
    Z = _coordinates(model, back, Z)
    if back.kernel.is_linear:
        return back.weights(Z) @ back.landmarks  # exact, up to what the kernel does not see
    if method == "fixed-point":
        return _fixed_point(back.kernel, back.landmarks, back.weights(Z), max_iter, tol)
    alpha = back.ridge_alpha if alpha is None else float(alpha)
    known: Any = vars(model)
    if "preimage_ridge_" not in known or known["preimage_alpha_"] != alpha:
        # Kept until the model is fitted again, or another alpha is asked for.
        known.update(preimage_ridge_=_learned(back, alpha), preimage_alpha_=alpha)
    return known["preimage_ridge_"](Z)


def has_points(model: Any):
    """Whether there is a way back at all; for available_if, which shows the reason as a cause."""
    kernel_of(model.kernel).layout.require_data(
        f"{type(model).__name__} takes a precomputed kernel: the points behind it are unknown, so "
        "there is no way back to them. Fit with the kernel itself.",
        AttributeError,
    )
    return True


def _learned(back, alpha):
    """Kernel ridge from coordinates to points; linear, with an intercept, without a kernel."""
    Z, X = back.coordinates, back.points
    # The coefficients have as many columns, and are dense anyway.
    T = on_device_of(X.toarray() if scipy.sparse.issparse(X) else X, Z)
    options: dict[str, Any] = {}
    kernel, resources = back.ridge_kernel, current()
    if kernel is None:  # the caller has found room for the coordinates
        kernel, resources = Linear(), replace(resources, memory_limit=None)
        alpha *= float(namespace(Z).mean(row_norms(Z, namespace(Z))))
        options = {"intercept": True, "map": MapOptions(basis="closed")}
    training = Training(kernel.bind_points(Z, None), HeldRows(Z), resources)
    problem = RidgeProblem(training, T, Given(np.full(T.shape[1], alpha)), **options)
    solution = solve_ridge(problem, "primal")
    return solution.prediction if options else solution.expansion


def on_scores(kernel: Kernel):
    """The model's own kernel where it compares any vectors; else RBF with gamma by the scores."""
    inner = kernel.kernel if isinstance(kernel, Scaled) else kernel
    plain = not (inner.runs_user_code or inner.non_negative_only) and len([*inner.parts()]) == 1
    general = plain and inner.kind == "vectors" and inner.is_psd is True
    weights_per_column = any(np.ndim(value) for value in inner.get_params(deep=False).values())
    return kernel if general and not weights_per_column else RBF("scale")


def _steepness(kernel: Kernel, S: np.ndarray):
    """-dk/d(d^2), up to a factor, of any rows against S; refused where a kernel has none."""
    found = kernel.slope_against(S)
    if found is not None:
        return found
    raise ValueError(
        f"the fixed point iteration needs a smooth kernel of the Euclidean distance (RBF, "
        f"RationalQuadratic, Matern with nu > 1), got {kernel!r}; use method='ridge'."
    )


def _fixed_point(kernel, S, weights, max_iter, tol):
    """argmin_x |image(x) - p|^2 for p = sum_j w_j image(s_j), k(x, x) constant.

    The gradient of sum_j w_j k(x, s_j) is along sum_j c_j (s_j - x) with c_j = w_j (-dk/dd^2)(x,
    s_j), and vanishes where x = sum_j c_j s_j / sum_j c_j: iterate, from the landmark whose image
    is nearest. Where sum_j c_j < 0 (weights have both signs) the gradient points the other way; a
    step that brings x no nearer is halved, so that the distance never grows.
    """
    if scipy.sparse.issparse(S):
        S = S.toarray()
    xp, steepest = namespace(weights), _steepness(kernel, S)
    near = kernel.against(S)
    S = on_device_of(S, weights)
    start = xp.argmax(weights @ near(S).T, axis=1)
    X = xp.take(S, start, axis=0)
    value = xp.sum(weights * near(X), axis=1)
    spread = float(xp.max(xp.std(S, axis=0)))
    length = xp.ones_like(value)
    for _ in range(max_iter):
        c = weights * steepest(X)
        total, size = xp.sum(c, axis=1), xp.sum(xp.abs(c), axis=1)
        # The step stays finite even if the sum cancels to nothing.
        divisor = xp.maximum(xp.abs(total), 1e-8 * size + _TINY)
        step = (c @ S - total[:, None] * X) / divisor[:, None]
        new = X + length[:, None] * step
        new_value = xp.sum(weights * near(new), axis=1)
        nearer = new_value > value
        X, value = xp.where(nearer[:, None], new, X), xp.where(nearer, new_value, value)
        if float(xp.max(length[:, None] * xp.abs(step))) <= tol * spread:
            break
        length = xp.where(nearer, xp.minimum(2 * length, xp.ones_like(length)), 0.5 * length)
    return X


def _coordinates(model, back, Z):
    """Z as an array like the model's own, with its number of columns."""
    like, width = back.coordinates, len(model.get_feature_names_out())
    if not is_array(Z):
        Z = np.asarray(Z)
    if is_numpy(Z) != is_numpy(like):
        raise TypeError(
            f"{type(model).__name__} was fitted on arrays of another kind than "
            f"{type(Z).__module__}.{type(Z).__name__}: pass coordinates that it returned."
        )
    if Z.ndim != 2 or Z.shape[1] != width:
        raise ValueError(
            f"{type(model).__name__} has {width} coordinates: Z must have shape (n, {width}), got "
            f"{tuple(Z.shape)}."
        )
    Z = on_device_of(Z, like)
    xp = namespace(Z)
    if not bool(xp.all(xp.isfinite(Z))):
        raise ValueError("Z contains NaN or infinity.")
    return Z[:, : like.shape[1]]
