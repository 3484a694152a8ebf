"""Ridge in Fourier coordinates: (Phi'Phi + alpha I) w = Phi't without Phi.

Phi'Phi is a convolution with the generator g (space/fourier.py) between two diagonal scalings,
so that a product costs two fast Fourier transforms of the size of g, however many rows there were.
The coordinates with the largest weights are written out and factored: what is left beside them is
small compared with alpha, so that a few dozen products are enough.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.fft

from ..engine import current
from ..space import Fourier
from .conjugate_gradients import ConjugateGradients
from .regularized import factor_shifted, solve_factored

# Right-hand sides that are solved together.
TOGETHER = 16
# Coordinates whose pairs are written out, for the preconditioner.
WRITTEN_OUT = 2000


class NormalEquations:
    """Products with Phi'Phi in the real coordinates of a Fourier space."""

    def __init__(self, space: Fourier, generator: np.ndarray):
        self.h, self.amplitudes = len(space.frequencies), space.amplitudes
        self.space, self.generator = space, generator
        self.shape = tuple(scipy.fft.next_fast_len(k, real=True) for k in generator.shape)
        self.workers = current().threads
        m = tuple(k // 2 for k in generator.shape)
        # The generator as a function on the grid: real, since g_-k is the conjugate of g_k.
        spectrum = np.zeros(self._half_shape, dtype=complex)
        wrapped = [np.arange(-k, k + 1) % n for k, n in zip(m[:-1], self.shape)]
        spectrum[np.ix_(*wrapped, np.arange(m[-1] + 1))] = generator[..., m[-1] :]
        self.density = scipy.fft.irfftn(spectrum, self.shape, workers=self.workers)
        self.density *= np.prod(self.shape)
        # Frequencies have a last entry >= 0; with 0 there, the opposite is in this half as well.
        j = space.frequencies
        flat = j[:, -1] == 0
        self.places, self.opposite, self.flat = self._at(j), self._at(-j[flat]), flat

    @property
    def _half_shape(self):
        return (*self.shape[:-1], self.shape[-1] // 2 + 1)

    def _at(self, frequencies):
        return tuple((frequencies % np.array(self.shape)).T)

    @property
    def diagonal(self) -> np.ndarray:
        """About the diagonal of Phi'Phi: n w_j."""
        count, w = float(np.mean(self.density)), self.amplitudes**2 / 2
        return count * np.concatenate([2 * w[:1], w[1:], w[1:]])

    @cached_property
    def heaviest(self) -> tuple[np.ndarray, np.ndarray]:
        """(positions, Phi'Phi among these) of the coordinates with the largest weights."""
        order = np.argsort(-self.amplitudes[1:], kind="stable")
        heaviest = order[: max(0, (WRITTEN_OUT - 1) // 2)]
        positions = np.concatenate([[0], 1 + heaviest, 1 + self.h + heaviest])
        return positions, self.space.pairs(self.generator, heaviest)

    def __matmul__(self, W: np.ndarray) -> np.ndarray:
        """Phi'Phi W for a matrix W."""
        h, a, q = self.h, self.amplitudes, W.shape[1]
        axes = tuple(range(1, 1 + len(self.shape)))
        every: tuple[Any, ...] = (slice(None),)
        zero: tuple[Any, ...] = (slice(None), *[0] * len(self.shape))
        C = np.zeros((q, *self._half_shape), dtype=complex)
        mine = (W[1 : 1 + h].T - 1j * W[1 + h :].T) * (a[1:] / 2)
        C[every + self.places] = mine
        C[every + self.opposite] = np.conj(mine[:, self.flat])
        C[zero] = W[0] * a[0]
        options: dict[str, Any] = {"axes": axes, "workers": self.workers, "overwrite_x": True}
        f = scipy.fft.irfftn(C, self.shape, **options)
        f *= self.density
        F = scipy.fft.rfftn(f, **options)
        found = F[every + self.places] * a[1:]
        return np.concatenate([F[zero].real[:, None] * a[0], found.real, -found.imag], axis=1).T


def _preconditioner(equations, alphas):
    """(Phi'Phi + alpha I)^-1, with Phi'Phi as it is among the heaviest coordinates, diagonal else.

    The eigenvalues of the rest are about n w_j: where that is below alpha, nothing is lost.
    """
    inverses, (positions, A) = 1 / (equations.diagonal[:, None] + alphas), equations.heaviest
    factors = {alpha: factor_shifted(A, alpha) for alpha in np.unique(alphas)}

    def inverse(R: np.ndarray):
        Z = inverses * R
        for alpha, C in factors.items():
            if C is not None:  # singular to rounding: the diagonal will do
                part = np.ix_(positions, np.flatnonzero(alphas == alpha))
                Z[part] = solve_factored(C, R[part])
        return Z

    return inverse


@dataclass(frozen=True)
class Solved:
    """Coefficients, a bound of their error |w - w*| per column, and how they were found."""

    coef: np.ndarray
    error_norms: np.ndarray
    n_iter: int = 1
    converged: bool = True


def solve_normal(
    equations: NormalEquations, B: np.ndarray, alphas: np.ndarray, *, tol: float, max_iter: int
) -> Solved:
    """(Phi'Phi + alpha I) w = b for each column b with its alpha, by conjugate gradients.

    All eigenvalues are at least alpha, so that |w - w*| <= |residual| / alpha: iterations end when
    this is at most tol times |w|.
    """
    parts = [
        _solved_together(equations, B[:, a : a + TOGETHER], alphas[a : a + TOGETHER], tol, max_iter)
        for a in range(0, B.shape[1], TOGETHER)
    ]
    return Solved(
        np.concatenate([p.coef for p in parts], axis=1),
        np.concatenate([p.error_norms for p in parts]),
        max(p.n_iter for p in parts),
        all(p.converged for p in parts),
    )


def _solved_together(equations, B, alphas, tol, max_iter):
    alphas = np.asarray(alphas, dtype=float)

    def times(V: Any):
        return (equations @ V) + alphas * V

    cg, steps = ConjugateGradients(times, _preconditioner(equations, alphas), B), 0
    while steps < max_iter and not _small(cg.r, cg.x, alphas, tol).all():
        cg.advance(*cg.product())
        steps += 1
        if steps % 50 == 0:  # the updated residual drifts away from the true one
            cg.r = B - times(cg.x)
        cg.turn()
    W, R = cg.x, B - times(cg.x)
    errors = np.linalg.norm(R, axis=0) / alphas
    return Solved(W, errors, steps, bool(_small(R, W, alphas, 1.1 * tol).all()))


def _small(R, W, alphas, tol):
    size = np.linalg.norm(W, axis=0)
    left = np.linalg.norm(R, axis=0)
    return (left <= tol * alphas * size) | (left == 0)
