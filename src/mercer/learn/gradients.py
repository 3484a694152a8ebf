"""Gradients of f = sum_j a_j k(., s_j), as matrix products, and their average outer product.

A kernel with a slope has grad_z k(z, s) = p z + e s with numbers p, e for each pair. So the
gradients of f at all rows are (P a) z + E (a S): products of matrices.
"""

from collections.abc import Iterator
from typing import Any

from ..engine import namespace
from ..kernels import Kernel
from .room import block_values

# Numbers of the gradients of one block of rows.
BLOCK_VALUES = 1 << 22


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
    rows = max(16, block_values(BLOCK_VALUES) // max(S.shape[0], t * width))
    weighted = xp.reshape(a[:, :, None] * S[:, None, :], (S.shape[0], t * width))
    for i in range(0, Z.shape[0], rows):
        some = slice(i, min(i + rows, Z.shape[0]))
        z = Z[some, :]
        _, p, e = kernel.slopes(z, S)
        g = xp.zeros((z.shape[0], t, width), dtype=Z.dtype, device=Z.device)
        if p is not None:
            g = g + (p @ a)[:, :, None] * z[:, None, :]
        if e is not None:
            g = g + xp.reshape(e @ weighted, (z.shape[0], t, width))
        yield some, g
