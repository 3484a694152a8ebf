"""Gradients of f = sum_j a_j k(., s_j), as matrix products, and their average outer product.

For the kernels here grad_z k(z, s) = p z + e s with numbers p, e for each pair: a function of the
distance has e = -p, a function of the inner product has p = 0, and sums, products and powers keep
the shape. So the gradients of f at all rows are (P a) z + E (a S): products of matrices.
"""

import math
from collections.abc import Iterator
from functools import singledispatch
from typing import Any, NamedTuple

from ..engine.arrays import namespace
from ..kernels import Kernel
from ..kernels.algebra import Constant, Exp, PolynomialOf, Power, Product, Scaled, Sum
from ..kernels.base import ALL
from ..kernels.dot_product import Linear, Polynomial
from ..kernels.geometry import EuclideanFrame
from ..kernels.parameters import as_numbers
from ..kernels.stationary import RBF, Matern, RationalQuadratic, Stationary

# Numbers of the gradients of one block of rows.
BLOCK_VALUES = 1 << 22
KNOWN: tuple[type[Kernel], ...] = (
    Constant,
    Exp,
    Linear,
    Matern,
    Polynomial,
    PolynomialOf,
    Power,
    Product,
    RBF,
    RationalQuadratic,
    Scaled,
    Sum,
)


class Slopes(NamedTuple):
    """k(z, s), and p and e of grad_z k(z, s) = p z + e s; None for zeros."""

    value: Any
    p: Any
    e: Any


def has_gradient(kernel: Kernel) -> bool:
    """Whether `slopes` knows the kernel and all of its parts."""
    parts = list(kernel.parts())
    if not all(isinstance(part, KNOWN) for part in parts):
        return False
    if any(isinstance(part, Matern) and part.nu != 0.5 and part.nu < 1.5 for part in parts):
        return False
    sizes = [getattr(part, name, 1.0) for part in parts for name in ("gamma", "length_scale")]
    return all(isinstance(size, str) or as_numbers(size).ndim == 0 for size in sizes)


@singledispatch
def slopes(kernel, Z, S) -> Slopes:
    """k(Z, S) with its derivative. `kernel` is bound."""
    raise TypeError(f"the gradient of {kernel!r} is not known; pass metric=None.")


@slopes.register
def _(kernel: Stationary, Z, S):
    scale = float(kernel.scale())
    frame = EuclideanFrame(S, scale, 1e-12)
    d2 = -1.0 * frame.minus_squared_distances(Z, ALL)
    xp = namespace(d2)
    d2 = xp.where(d2 > 0, d2, xp.zeros_like(d2))
    value, slope = _of_distance(kernel, d2, xp)
    p = slope * (2 * scale**2)
    return Slopes(value, p, -p)


def _of_distance(kernel, d2, xp):
    """(h, h') of k = h(d^2)."""
    if isinstance(kernel, RBF):
        value = xp.exp(-d2)
        return value, -value
    if isinstance(kernel, RationalQuadratic):
        base = 1 + d2 / (2 * kernel.alpha)
        return base ** -float(kernel.alpha), -0.5 * base ** -(float(kernel.alpha) + 1)
    d = xp.sqrt(d2)
    if kernel.nu == 0.5:
        value = xp.exp(-d)
        # Not differentiable at d = 0: the average of all directions is zero.
        return value, xp.where(d > 0, -0.5 * value / xp.where(d > 0, d, 1 + d), 0 * d)
    if kernel.nu == 1.5:
        t = math.sqrt(3) * d
        decay = xp.exp(-t)
        return (1 + t) * decay, -1.5 * decay
    if kernel.nu == 2.5:
        t = math.sqrt(5) * d
        decay = xp.exp(-t)
        return (1 + t + t * t / 3) * decay, -(5 / 6) * (1 + t) * decay
    # Any other smooth kernel: its slope is a kernel of the distance, up to the factor at zero.
    slope = kernel.slope()
    ratio = (float(slope.scale()) / float(kernel.scale())) ** 2
    value = kernel.of_squared_distance(d2 + 0, xp)
    return value, -kernel.steepest(0.0) * slope.of_squared_distance(ratio * d2, xp)


@slopes.register
def _(kernel: Linear, Z, S):
    t = Z @ S.T
    return Slopes(t, None, 0 * t + 1)


@slopes.register
def _(kernel: Polynomial, Z, S):
    gamma, degree = float(as_numbers(kernel.gamma)), int(kernel.degree)
    t = gamma * (Z @ S.T) + float(kernel.coef0)
    return Slopes(t**degree, None, gamma * degree * t ** (degree - 1))


@slopes.register
def _(kernel: Constant, Z, S):
    return Slopes(0 * (Z @ S.T) + float(kernel.c), None, None)


@slopes.register
def _(kernel: Sum, Z, S):
    l, r = slopes(kernel.left, Z, S), slopes(kernel.right, Z, S)
    return Slopes(l.value + r.value, _sum(l.p, r.p), _sum(l.e, r.e))


@slopes.register
def _(kernel: Product, Z, S):
    l, r = slopes(kernel.left, Z, S), slopes(kernel.right, Z, S)
    p, e = (_sum(_times(r.value, a), _times(l.value, b)) for a, b in ((l.p, r.p), (l.e, r.e)))
    return Slopes(l.value * r.value, p, e)


@slopes.register
def _(kernel: Scaled, Z, S):
    inner, c = slopes(kernel.kernel, Z, S), float(kernel.scale)
    return Slopes(*(_times(c, part) for part in inner))


@slopes.register
def _(kernel: Power, Z, S):
    q = int(kernel.exponent)
    return _chain(slopes(kernel.kernel, Z, S), lambda t: t**q, lambda t: q * t ** max(q - 1, 0))


@slopes.register
def _(kernel: Exp, Z, S):
    inner = slopes(kernel.kernel, Z, S)
    xp = namespace(inner.value)
    return _chain(inner, xp.exp, xp.exp)


@slopes.register
def _(kernel: PolynomialOf, Z, S):
    c = [float(value) for value in kernel.coefficients]
    return _chain(
        slopes(kernel.kernel, Z, S),
        lambda t: sum(value * t**q for q, value in enumerate(c)),
        lambda t: sum((q * value * t ** (q - 1) for q, value in enumerate(c) if q), 0 * t),
    )


def _chain(inner, of, slope):
    outer = slope(inner.value)
    return Slopes(of(inner.value), _times(outer, inner.p), _times(outer, inner.e))


def _times(factor, part):
    return None if part is None else factor * part


def _sum(a, b):
    return b if a is None else a if b is None else a + b


def average_outer_product(
    kernel: Kernel, Z: Any, S: Any, a: Any, weights: Any = None, *, diagonal: bool = False
) -> Any:
    """G = mean_i sum_c grad f_c(z_i) grad f_c(z_i)', for f_c = sum_j a_jc k(., s_j).

    With `diagonal` its diagonal alone.
    """
    G, total = 0.0, 0.0
    for some, g in gradients_at(kernel, Z, S, a):
        xp = namespace(g)
        w = xp.ones_like(Z[some, 0]) if weights is None else weights[some]
        g = xp.reshape(g * xp.sqrt(w)[:, None, None], (-1, Z.shape[1]))
        G = G + (xp.sum(g * g, axis=0) if diagonal else g.T @ g)
        total += float(xp.sum(w))
    return G / total


def gradients_at(kernel: Kernel, Z: Any, S: Any, a: Any) -> Iterator[tuple[slice, Any]]:
    """(rows, gradients of all f_c there): blocks of rows, n x targets x columns."""
    xp, t, width = namespace(Z), a.shape[1], Z.shape[1]
    rows = max(16, BLOCK_VALUES // max(S.shape[0], t * width))
    weighted = xp.reshape(a[:, :, None] * S[:, None, :], (S.shape[0], t * width))
    for i in range(0, Z.shape[0], rows):
        some = slice(i, min(i + rows, Z.shape[0]))
        z = Z[some, :]
        _, p, e = slopes(kernel, z, S)
        g = xp.zeros((z.shape[0], t, width), dtype=Z.dtype, device=Z.device)
        if p is not None:
            g = g + (p @ a)[:, :, None] * z[:, None, :]
        if e is not None:
            g = g + xp.reshape(e @ weighted, (z.shape[0], t, width))
        yield some, g
