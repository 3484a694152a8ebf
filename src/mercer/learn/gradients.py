"""Gradients of f = sum_j a_j k(., s_j), as matrix products, and their average outer product.

A kernel with a slope has grad_z k(z, s) = p z + e s with numbers p, e for each pair. So the
gradients of f at all rows are (P a) z + E (a S): products of matrices.
"""

from typing import Any

from ..engine.arrays import namespace
from ..kernels import Kernel
from ..kernels.capabilities import Slopes

# Numbers of the gradients of one block of rows.
BLOCK_VALUES = 1 << 22


def has_gradient(kernel: Kernel) -> bool:
    """Whether `slopes` knows the kernel and all of its parts."""
    return kernel.has_slope


def slopes(kernel: Kernel, Z: Any, S: Any) -> Slopes:
    """k(Z, S) with its derivative. `kernel` is bound."""
    return kernel.slopes(Z, S)


def average_outer_product(kernel: Kernel, Z: Any, S: Any, a: Any, weights: Any = None) -> Any:
    """G = mean_i sum_c grad f_c(z_i) grad f_c(z_i)', for f_c = sum_j a_jc k(., s_j)."""
    xp, t, width = namespace(Z), a.shape[1], Z.shape[1]
    rows = max(16, BLOCK_VALUES // max(S.shape[0], t * width))
    weighted = xp.reshape(a[:, :, None] * S[:, None, :], (S.shape[0], t * width))
    G, total = xp.zeros_like(Z[:1, :].T @ Z[:1, :]), 0.0
    for i in range(0, Z.shape[0], rows):
        stop = min(i + rows, Z.shape[0])
        z = Z[i:stop, :]
        _, p, e = slopes(kernel, z, S)
        g = xp.zeros((z.shape[0], t, width), dtype=Z.dtype, device=Z.device)
        if p is not None:
            g = g + (p @ a)[:, :, None] * z[:, None, :]
        if e is not None:
            g = g + xp.reshape(e @ weighted, (z.shape[0], t, width))
        w = xp.ones_like(z[:, 0]) if weights is None else weights[i:stop]
        g = xp.reshape(g * xp.sqrt(w)[:, None, None], (-1, width))
        G, total = G + g.T @ g, total + float(xp.sum(w))
    return G / total
