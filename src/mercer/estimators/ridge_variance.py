"""Values of a ridge regression at new points with their variances, one function per form.

The variance is the posterior one of a Gaussian process with noise alpha, one column per target.
"""

import warnings
from typing import Any

import numpy as np

from ..engine.arrays import as_numpy, namespace, on_device_of, row_norms, solve_triangular
from ..kernels import points as pts
from .ridge_by_fourier import variances_by_fourier
from .ridge_iterative import FEW, SolverOptions, exact_variance, upper_variance


def own_similarities(kernel, points, diag, reference):
    """k(z, z) of each point, given as `diag` where the kernel does not know them."""
    if diag is None and kernel.kind == "gram":
        raise ValueError("a precomputed kernel does not know k(z, z): pass it as diag=.")
    return kernel.diagonal(points) if diag is None else on_device_of(diag, reference)


def primal_variance(model, factors, points, diag):
    """One evaluation of the kernel against the landmarks serves both."""
    feature_map = model.prediction_.map
    rows = feature_map.fitted(points)
    Phi = feature_map.space.coordinates(rows)
    xp = namespace(Phi)
    rho2 = feature_map.diagonal(rows, diag) - row_norms(Phi, xp)
    rho2 = xp.where(rho2 > 0, rho2, xp.zeros_like(rho2))
    Phi = feature_map.finished(Phi, rho2, rows)
    seen = _per_target(factors, lambda f: f.alpha * row_norms(solve_triangular(f.C, Phi.T).T, xp))
    # The residual may be a coordinate already.
    unseen = 0.0 if feature_map.append_residual else rho2[:, None]
    return Phi @ model.coef_, seen + unseen


def dual_variance(model, factors, points, diag):
    """|C^-1 k_z|^2 is what the samples explain of k(z, z); `factors` makes the C of samples."""
    kernel, W = model.kernel_, model.prediction_.W
    points = pts.as_fitted(points, model.prediction_.S, W.dtype)
    own = own_similarities(kernel, points, diag, W)
    explained = _per_target(factors(), lambda f: f.C.squared_norms(points))
    return model.prediction_(points), own[:, None] - explained


def iterative_variance(model, points, diag):
    """Further solves for few points, an upper value for many."""
    kernel, S = model.kernel_, model.prediction_.S
    if kernel.kind == "gram":
        raise ValueError(
            "form='iterative' has no standard deviations for a precomputed kernel: use 'dual'."
        )
    Z = pts.as_fitted(points, S, model.prediction_.W.dtype)
    own = kernel.diagonal(Z)
    weights = None if model.noise_ is None else 1 / model.noise_
    few = Z.shape[0] <= FEW
    if not few:
        _warn_of_upper_values(Z.shape[0])
    columns, alphas = {}, as_numpy(model.alphas_)
    for alpha in np.unique(alphas):
        if few:
            options = SolverOptions.of(model)
            columns[alpha] = exact_variance(options, kernel, S, Z, own, alpha, weights)
        else:
            columns[alpha] = upper_variance(kernel, S, Z, own, alpha, weights)
    variance = namespace(own).stack([columns[alpha] for alpha in alphas], axis=1)
    return model.prediction_(points), variance


def fourier_form_variance(model, points, diag):
    """In Fourier coordinates; outside of their box by further solves."""
    prediction = model.prediction_
    Z = pts.as_fitted(points, prediction.S, prediction.W.dtype)
    variance, upper = variances_by_fourier(model, Z)
    if upper:
        _warn_of_upper_values(upper)
    return prediction(Z), on_device_of(variance, prediction.W)


def _warn_of_upper_values(n):
    warnings.warn(
        f"the standard deviations of {n} points are certified upper values, from some of the "
        f"training rows; for exact ones pass at most {FEW} points at a time.",
        UserWarning,
        stacklevel=5,
    )


def _per_target(factors, variance):
    """variance(factor), evaluated once per alpha, as one column per target."""
    columns: dict[int, Any] = {}
    for factor in factors:
        columns |= dict.fromkeys(factor.targets.tolist(), variance(factor))
    ordered = [columns[j] for j in sorted(columns)]
    return namespace(ordered[0]).stack(ordered, axis=1)
