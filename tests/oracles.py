"""Every formula once more, for one pair of points, in plain Python: slow and obvious.

``matrix(kernel, X, Z)`` is what ``kernel(X, Z)`` must give. Kernels are bound: their parameters are
numbers.
"""

import math

import numpy as np
from scipy.special import gamma, kv

from mercer import kernels


def matrix(kernel, X, Z):
    return np.array([[value(kernel, x, z) for z in Z] for x in X])


def value(kernel, x, z):
    return FORMULAS[type(kernel)](kernel, x, z)


def dot(x, z, weights=1.0):
    w = np.broadcast_to(weights, len(x))
    return math.fsum(float(w[c]) * float(x[c]) * float(z[c]) for c in range(len(x)))


def distance(x, z, scale=1.0):
    l = np.broadcast_to(scale, len(x))
    return math.sqrt(
        math.fsum(((float(x[c]) - float(z[c])) / float(l[c])) ** 2 for c in range(len(x)))
    )


def cosine(k, x, z):
    lengths = math.sqrt(dot(x, x) * dot(z, z))
    return dot(x, z) / lengths if lengths else 0.0


def quadratic_form(k, x, z):
    A = np.asarray(k.A)
    return math.fsum(
        float(x[i]) * float(A[i, j]) * float(z[j]) for i in range(len(x)) for j in range(len(z))
    )


def rbf(k, x, z):
    g = np.broadcast_to(k.gamma, len(x))
    return math.exp(
        -math.fsum(float(g[c]) * (float(x[c]) - float(z[c])) ** 2 for c in range(len(x)))
    )


def laplacian(k, x, z):
    g = np.broadcast_to(k.gamma, len(x))
    return math.exp(-math.fsum(float(g[c]) * abs(float(x[c]) - float(z[c])) for c in range(len(x))))


def matern(k, x, z):
    d = distance(x, z, k.length_scale)
    if d == 0:
        return 1.0
    t = math.sqrt(2 * k.nu) * d
    return 2 ** (1 - k.nu) / gamma(k.nu) * t**k.nu * kv(k.nu, t)


def rational_quadratic(k, x, z):
    return (1 + distance(x, z, k.length_scale) ** 2 / (2 * k.alpha)) ** -k.alpha


def periodic(k, x, z):
    l, p = np.broadcast_to(k.length_scale, len(x)), np.broadcast_to(k.period, len(x))
    return math.exp(
        -2
        * math.fsum(
            (math.sin(math.pi * (float(x[c]) - float(z[c])) / p[c]) / l[c]) ** 2
            for c in range(len(x))
        )
    )


def chi2(k, x, z):
    g = np.broadcast_to(k.gamma, len(x))
    return math.exp(
        -math.fsum(
            float(g[c]) * (float(x[c]) - float(z[c])) ** 2 / (float(x[c]) + float(z[c]))
            for c in range(len(x))
            if x[c] + z[c] > 0
        )
    )


def normalized(k, x, z):
    lengths = math.sqrt(value(k.kernel, x, x) * value(k.kernel, z, z))
    return value(k.kernel, x, z) / lengths if lengths else 0.0


def on_columns(k, x, z):
    columns = k.positions(len(x))
    return value(k.kernel, x[columns], z[columns])


def projected(k, x, z):
    A = np.asarray(k.A)
    x, z = (
        [math.fsum(float(v[c]) * float(A[c, j]) for c in range(len(v))) for j in range(A.shape[1])]
        for v in (x, z)
    )
    return value(k.kernel, x, z)


def one(function, x):
    """A function of batches, at one point."""
    batch = [x] if isinstance(x, str) else np.asarray(x)[None, :]
    return function(batch)[0]


def from_function(k, x, z):
    return k.f(x[None, :], z[None, :])[0, 0] if k.vectorized else k.f(x, z)


FORMULAS = {
    kernels.Linear: lambda k, x, z: dot(x, z),
    kernels.Polynomial: lambda k, x, z: (dot(x, z, k.gamma) + k.coef0) ** k.degree,
    kernels.Cosine: cosine,
    kernels.QuadraticForm: quadratic_form,
    kernels.Sigmoid: lambda k, x, z: math.tanh(dot(x, z, k.gamma) + k.coef0),
    kernels.RBF: rbf,
    kernels.Laplacian: laplacian,
    kernels.Matern: matern,
    kernels.RationalQuadratic: rational_quadratic,
    kernels.Periodic: periodic,
    kernels.Chi2: chi2,
    kernels.Intersection: lambda k, x, z: math.fsum(min(a, b) for a, b in zip(x, z)),
    kernels.Constant: lambda k, x, z: k.c,
    kernels.Sum: lambda k, x, z: value(k.left, x, z) + value(k.right, x, z),
    kernels.Product: lambda k, x, z: value(k.left, x, z) * value(k.right, x, z),
    kernels.Scaled: lambda k, x, z: k.scale * value(k.kernel, x, z),
    kernels.Power: lambda k, x, z: value(k.kernel, x, z) ** k.exponent,
    kernels.Exp: lambda k, x, z: math.exp(value(k.kernel, x, z)),
    kernels.PolynomialOf: lambda k, x, z: math.fsum(
        c * value(k.kernel, x, z) ** p for p, c in enumerate(k.coefficients)
    ),
    kernels.Normalized: normalized,
    kernels.Rescaled: lambda k, x, z: one(k.f, x) * value(k.kernel, x, z) * one(k.f, z),
    kernels.OnFeatures: lambda k, x, z: value(k.kernel, one(k.g, x), one(k.g, z)),
    kernels.OnColumns: on_columns,
    kernels.Projected: projected,
    kernels.FromFunction: from_function,
    kernels.FromFeatures: lambda k, x, z: dot(one(k.g, x), one(k.g, z)),
}
