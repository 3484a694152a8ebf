"""Kernels as ONNX graphs: the formulas of mercer.kernels once more, in tensors.

``values(kernel, X, S)`` is k(X, S) for rows X of the graph and fixed points S; ``diagonal`` is
k(x, x) as a column; ``features`` the kernel's own finite map. What depends on S alone is computed
by the kernel itself, before the graph is made.
"""

import math
from functools import singledispatch

import numpy as np

from ...engine.arrays import as_numpy
from ...kernels import (
    RBF,
    Chi2,
    Constant,
    Cosine,
    Intersection,
    Laplacian,
    Linear,
    Matern,
    Normalized,
    OnColumns,
    Periodic,
    Polynomial,
    Precomputed,
    Projected,
    QuadraticForm,
    RationalQuadratic,
    Sigmoid,
    Tanimoto,
)
from ...kernels.algebra import Exp, PolynomialOf, Power, Product, Scaled, Sum
from ...kernels.monomials import monomial_table
from ...kernels.parameters import as_numbers
from ...kernels.stationary import Stationary


def refused(kernel, what="a graph"):
    return ValueError(
        f"{type(kernel).__name__} cannot be written as {what} of ONNX operators: {kernel!r}. "
        "Kernels that can: Linear, Polynomial, Cosine, QuadraticForm, Sigmoid, RBF, Laplacian, "
        "Matern (nu 0.5, 1.5, 2.5), RationalQuadratic, Periodic, Chi2, Intersection, Constant, "
        "Precomputed, and their sums, products, powers, scales, exp, polynomial, OnColumns, "
        "Projected and Normalized."
    )


# --- k(X, S) --------------------------------------------------------------------------------------


@singledispatch
def values(kernel, X, S):
    raise refused(kernel)


@values.register
def _(kernel: Linear, X, S):
    return X @ S.T


@values.register
def _(kernel: Polynomial, X, S):
    return (X @ kernel.right(S).T + float(kernel.coef0)) ** int(kernel.degree)


@values.register
def _(kernel: QuadraticForm, X, S):
    return features(kernel, X) @ kernel.right(S).T


@values.register
def _(kernel: Sigmoid, X, S):
    return X.graph.op("Tanh", X @ kernel.right(S).T + float(kernel.coef0))


@values.register
def _(kernel: Cosine, X, S):
    return unit(X) @ kernel.left(S).T


def unit(X):
    """Rows over their lengths, in two steps: squares of tiny and huge rows would be lost."""
    X = X / X.abs().max(1).where_zero(1.0)
    return X / (X * X).sum(1, keepdims=True).sqrt().where_zero(1.0)


@values.register
def _(kernel: Stationary, X, S):
    if not isinstance(kernel, tuple(OF_SQUARED_DISTANCE)):
        raise refused(kernel)
    X, S = embed(kernel, X), kernel.embed(S)
    centre, scale = S.mean(axis=0), np.broadcast_to(as_numbers(kernel.scale()), S.shape[1])
    X, S = (X - centre).scaled(scale), (S - centre) * scale
    if not isinstance(kernel, Matern):
        # Smooth in d^2: rounding of d^2 is no more than that of the kernel itself.
        norms = (X * X).sum(1, keepdims=True)
        d2 = ((X @ (-2.0 * S.T)) + norms + (S * S).sum(axis=1)).maximum(0.0)
    else:
        d2 = X.graph.rowwise(X, S, lambda x, s: (x - s) * (x - s))
    return OF_SQUARED_DISTANCE[type(kernel)](kernel, d2)


def embed(kernel, X):
    """Circles, one for each column, of a periodic kernel; else the points themselves."""
    if not isinstance(kernel, Periodic):
        return X
    period = np.broadcast_to(as_numbers(kernel.period), X.width)
    angle = X.graph.op("Mod", X, period, fmod=1) * (2 * math.pi / period)
    weight = 1 / as_numbers(kernel.length_scale) / math.sqrt(2)
    cos, sin = (X.graph.op(name, angle).scaled(weight) for name in ("Cos", "Sin"))
    return cos.concat(sin)


def _matern(kernel, d2):
    d = d2.sqrt().minimum(1e18)
    if kernel.nu == 0.5:
        return (-d).exp()
    if kernel.nu == 1.5:
        d = d * math.sqrt(3)
        return (d + 1.0) * (-d).exp()
    if kernel.nu == 2.5:
        d = d * math.sqrt(5)
        return (d + 1.0 + d * d / 3.0) * (-d).exp()
    raise refused(kernel)


OF_SQUARED_DISTANCE = {
    RBF: lambda kernel, d2: (-d2).exp(),
    Periodic: lambda kernel, d2: (-d2).exp(),
    RationalQuadratic: lambda kernel, d2: (
        (d2 / (2.0 * float(kernel.alpha)) + 1.0) ** -float(kernel.alpha)
    ),
    Matern: _matern,
}


@values.register
def _(kernel: Laplacian, X, S):
    gamma = as_numbers(kernel.gamma)
    return (-X.graph.rowwise(X, S, lambda x, s: (x - s).abs() * gamma)).exp()


@values.register
def _(kernel: Chi2, X, S):
    gamma = as_numbers(kernel.gamma)

    def term(x, s):
        difference = x - s
        return difference / (x + s).where_zero(1.0) * difference * gamma

    return (-X.graph.rowwise(X, S, term)).exp()


@values.register
def _(kernel: Intersection, X, S):
    return X.graph.rowwise(X, S, lambda x, s: x.minimum(s))


@values.register
def _(kernel: Tanimoto, X, S):
    common = X.graph.rowwise(X, S, lambda x, s: x.minimum(s))
    union = X.sum(1, keepdims=True) + S.sum(axis=1) - common
    share = common / union.where_zero(1.0)
    # Two rows of zeros are alike: 0 / 0 is 1 here.
    return X.graph.op("Where", X.graph.op("Equal", union, 0.0), 1.0, share)


@values.register
def _(kernel: Constant, X, S):
    return X.full(S.shape[0], kernel.c)


@values.register
def _(kernel: Precomputed, X, S):
    return X.columns(S.indices)


@values.register
def _(kernel: Sum, X, S):
    return values(kernel.left, X, S) + values(kernel.right, X, S)


@values.register
def _(kernel: Product, X, S):
    return values(kernel.left, X, S) * values(kernel.right, X, S)


@values.register(Scaled)
@values.register(Power)
@values.register(Exp)
@values.register(PolynomialOf)
def _(kernel, X, S):
    return OF_KERNEL[type(kernel)](kernel, values(kernel.kernel, X, S))


def _horner(kernel, t):
    *rest, leading = (float(c) for c in kernel.coefficients)
    total = t * 0.0 + leading
    for c in reversed(rest):
        total = total * t + c
    return total


OF_KERNEL = {
    Scaled: lambda kernel, t: t.scaled(kernel.scale),
    Power: lambda kernel, t: t ** int(kernel.exponent),
    Exp: lambda kernel, t: t.exp(),
    PolynomialOf: _horner,
}


@values.register
def _(kernel: OnColumns, X, S):
    return values(kernel.kernel, selected(kernel, X), kernel.select(S))


def selected(kernel, X):
    positions = kernel.positions(X.width)
    return X.columns(positions).of_width(len(positions))


@values.register
def _(kernel: Projected, X, S):
    return values(kernel.kernel, projected(kernel, X), kernel.project(S))


def projected(kernel, X):
    A = as_numbers(kernel.A)
    return (X @ A).of_width(A.shape[1])


@values.register
def _(kernel: Normalized, X, S):
    return values(kernel.kernel, X, S) / (lengths(kernel, X) * as_numpy(kernel.lengths(S)))


def lengths(kernel, X):
    """sqrt k(x, x), 1 for a point at the origin of feature space."""
    return diagonal(kernel.kernel, X).where_zero(1.0).sqrt()


# --- k(x, x), as a column -------------------------------------------------------------------------


@singledispatch
def diagonal(kernel, X):
    raise refused(kernel, "a graph with k(x, x)")


@diagonal.register(Linear)
@diagonal.register(Polynomial)
@diagonal.register(QuadraticForm)
@diagonal.register(Sigmoid)
def _(kernel, X):
    A = as_numpy(kernel.right(np.eye(X.width)))  # right is linear: x' A x
    t = ((X @ A) * X).sum(1, keepdims=True)
    if isinstance(kernel, Polynomial):
        return (t + float(kernel.coef0)) ** int(kernel.degree)
    return X.graph.op("Tanh", t + float(kernel.coef0)) if isinstance(kernel, Sigmoid) else t


@diagonal.register
def _(kernel: Cosine, X):
    return (unit(X) * unit(X)).sum(1, keepdims=True)


@diagonal.register(Stationary)
@diagonal.register(Laplacian)
@diagonal.register(Chi2)
def _(kernel, X):
    return X.full(1, 1.0)


@diagonal.register
def _(kernel: Intersection, X):
    return X.sum(1, keepdims=True)


@diagonal.register
def _(kernel: Tanimoto, X):
    return X.full(1, 1.0)


@diagonal.register
def _(kernel: Constant, X):
    return X.full(1, kernel.c)


@diagonal.register
def _(kernel: Sum, X):
    return diagonal(kernel.left, X) + diagonal(kernel.right, X)


@diagonal.register
def _(kernel: Product, X):
    return diagonal(kernel.left, X) * diagonal(kernel.right, X)


@diagonal.register(Scaled)
@diagonal.register(Power)
@diagonal.register(Exp)
@diagonal.register(PolynomialOf)
def _(kernel, X):
    return OF_KERNEL[type(kernel)](kernel, diagonal(kernel.kernel, X))


@diagonal.register
def _(kernel: OnColumns, X):
    return diagonal(kernel.kernel, selected(kernel, X))


@diagonal.register
def _(kernel: Projected, X):
    return diagonal(kernel.kernel, projected(kernel, X))


@diagonal.register
def _(kernel: Normalized, X):
    length = lengths(kernel, X)
    return diagonal(kernel.kernel, X) / (length * length)


# --- finite feature maps --------------------------------------------------------------------------


@singledispatch
def features(kernel, X):
    raise refused(kernel, "a finite feature map")


@features.register
def _(kernel: Linear, X):
    return X


@features.register
def _(kernel: Cosine, X):
    return unit(X).of_width(X.width)


@features.register
def _(kernel: QuadraticForm, X):
    A = as_numpy(kernel.features(np.eye(X.width)))  # linear in x
    return (X @ A).of_width(A.shape[1])


@features.register
def _(kernel: Polynomial, X):
    F = X.scaled(np.sqrt(as_numbers(kernel.gamma))).of_width(X.width)
    if kernel.coef0 > 0:
        F = F.concat(X.full(1, float(kernel.coef0) ** 0.5)).of_width(X.width + 1)
    return symmetric_power(F, int(kernel.degree))


def symmetric_power(F, p):
    """Each monomial of degree p once, by its multinomial weight."""
    if p == 0:
        return F.full(1, 1.0).of_width(1)
    monomials, weights = monomial_table(F.width, p)
    result = F.columns(monomials[:, 0]).scaled(weights)
    for q in range(1, p):
        result = result * F.columns(monomials[:, q])
    return result.of_width(len(weights))


@features.register
def _(kernel: Constant, X):
    return X.full(1, math.sqrt(kernel.c)).of_width(1)


@features.register
def _(kernel: Sum, X):
    F, G = features(kernel.left, X), features(kernel.right, X)
    return F.concat(G).of_width(F.width + G.width)


@features.register
def _(kernel: Product, X):
    F, G = features(kernel.left, X), features(kernel.right, X)
    i, j = (index.ravel() for index in np.indices((F.width, G.width)))
    return (F.columns(i) * G.columns(j)).of_width(len(i))


@features.register
def _(kernel: Scaled, X):
    F = features(kernel.kernel, X)
    return F.scaled(math.sqrt(kernel.scale)).of_width(F.width)


@features.register
def _(kernel: Power, X):
    return symmetric_power(features(kernel.kernel, X), int(kernel.exponent))


@features.register
def _(kernel: PolynomialOf, X):
    F = features(kernel.kernel, X)
    total = None
    for p, c in enumerate(kernel.coefficients):
        if c > 0:
            power = symmetric_power(F, p)
            power = power.scaled(math.sqrt(c)).of_width(power.width)
            total = (
                power if total is None else total.concat(power).of_width(total.width + power.width)
            )
    return F.full(1, 0.0).of_width(1) if total is None else total


@features.register
def _(kernel: OnColumns, X):
    return features(kernel.kernel, selected(kernel, X))


@features.register
def _(kernel: Projected, X):
    return features(kernel.kernel, projected(kernel, X))


@features.register
def _(kernel: Normalized, X):
    F = features(kernel.kernel, X)
    return (F / lengths(kernel, X)).of_width(F.width)
