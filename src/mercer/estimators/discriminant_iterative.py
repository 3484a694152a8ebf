"""Discriminants by the iterations of ridge: exact for all rows, without the kernel matrix.

With coordinates centred, S_T = S_W + M' D M: M the class means, D their sizes. Let U be the class
indicators divided by sqrt(size), A = J K J + s I, and V = A^-1 U. Then R = s U'V is the matrix
I - D^1/2 M (S_T + s I)^-1 M' D^1/2, and the formula of Woodbury gives, for every class mean m_c,

    (S_W + s I)^-1 M' = Phi' V R^-1 D^-1/2   and   M (S_W + s I)^-1 M' = D^-1/2 (R^-1 - I) D^-1/2.

So one solve with a right-hand side per class replaces the r x r factor of S_W + s I.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.arrays import as_numpy, evenly, namespace, on_device_of
from ..engine.products import exact_product
from ..kernels import points as pts
from ..solve.left_out_classes import LeftOut
from ..solve.preconditioner import centred
from ..solve.system import EPS, double_like, in_double
from ..space import factorize
from ..space.spectral import signs

# Rows that choose the shrinkage where it is not given.
ROWS_FOR_SHRINKAGE = 2000


@dataclass(frozen=True)
class ClassAxes:
    """Functions of the training rows, as coefficients of kernels: z -> sum_i w_i k(x_i, z) + b."""

    axes: Any
    axis_constants: Any
    decision: Any
    decision_constants: Any
    explained: np.ndarray
    solution: Any


def solve_classes(
    kernel, points, codes, priors, shrinkage, temperature, n_axes, options, workers=None
):
    """Fisher's axes and the decision functions, for a share `shrinkage` of the variance within."""
    X = in_double(kernel, points)
    like = double_like(X)
    xp, n = namespace(like), len(codes)
    counts = np.bincount(codes).astype(float)
    freedom, root = n - len(counts), np.sqrt(counts)
    U = on_device_of(np.eye(len(counts))[codes] / root, like)
    if workers is None:
        product = exact_product(kernel, X, n_jobs=options.n_jobs)
    else:
        workers.give(kernel, X)
        product = workers.exact_product()
    image = product(U)
    trace = float(xp.sum(kernel.diagonal(X)))
    within = trace - float(xp.sum(U * image))
    s = max(shrinkage * within / freedom, EPS * trace)
    solution = options.solve(
        kernel, points, U, np.full(len(counts), s), workers=workers, center=True
    )
    V = centred(solution.coef)
    residual = centred(U) - centred(product(V)) - s * V
    # U'A^-1 U from an approximate V: the residual makes the error of second order.
    share = np.outer(root, root) / n  # along the constant, which J takes off
    R = s * as_numpy(U.T @ V + V.T @ residual) + share
    R = (R + R.T) / 2
    inverse = np.linalg.inv(R)
    means = (inverse - np.eye(len(R))) / np.outer(root, root)  # M (S_W + s I)^-1 M'
    duals = on_device_of(inverse / root[None, :], V)  # V @ duals: (S_W + s I)^-1 M'
    centre = as_numpy(image @ on_device_of(root[:, None], image))[:, 0] / n  # K 1 / n
    apart = np.eye(len(R)) - priors[:, None]  # columns m_c - sum of priors * means

    between = apart.T @ means @ apart
    weights = np.sqrt(priors)
    values, vectors = np.linalg.eigh(between * np.outer(weights, weights))
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    length = np.sqrt(np.where(values > EPS * values.sum(), values, np.inf))[:n_axes]
    to_axes = apart @ (weights[:, None] * vectors[:, :n_axes] / length) * freedom**0.5
    to_axes = to_axes * signs(apart.T @ means @ to_axes)[None, :]

    to_decision = apart * (freedom * temperature)
    middle = 0.5 * (np.eye(len(R)) + priors[:, None])
    constants = np.log(priors) - np.einsum("ic,ij,jc->c", middle, means, to_decision)
    if len(R) == 2:
        to_decision = to_decision[:, 1:] - to_decision[:, :1]
        constants = constants[1:] - constants[:1]

    def functions(mixed, constant):
        W = V @ (duals @ on_device_of(mixed, V))
        return W, on_device_of(constant - centre @ as_numpy(W), V)

    axes = functions(to_axes, -(priors @ means @ to_axes))
    decision = functions(to_decision, constants)
    total = values.sum()
    explained = values[:n_axes] / (total if total > 0 else 1.0)
    return ClassAxes(axes[0], axes[1], decision[0], decision[1], explained, solution)


def regularisation_of_sample(kernel, points, codes, priors):
    """(shrinkage, temperature, rows): the most likely ones for left-out rows of a sample."""
    # Evenly among rows sorted by class: every class has its share.
    order = np.argsort(codes, kind="stable")
    some = np.sort(order[evenly(len(codes), ROWS_FOR_SHRINKAGE)])
    found, own = np.unique(codes[some], return_inverse=True)
    rows = pts.take(points, some)
    rows = rows[:, some] if kernel.kind == "gram" else rows
    Phi = as_numpy(factorize(kernel, rows).F).astype(np.float64)
    Phi = Phi - Phi.mean(axis=0)
    counts = np.bincount(own)
    means = np.stack([Phi[own == c].mean(axis=0) for c in range(len(found))])
    apart = Phi - means[own]
    given = priors if priors is not None and len(found) == len(priors) else None
    left_out = LeftOut.from_sums(apart.T @ apart, means, counts, None, given)
    return *left_out(Phi, own).best(), len(some)
