"""Random eigenproblems with repeated eigenvalues: does the Krylov solver lose any in silence?

    python -m fuzz.eigenproblems [--cases N] [--seconds T] [--seed S] [--jobs J]

A matrix has a random spectrum with multiplicities of up to 80, in a random basis or as the kernel
matrix of data with symmetries. A case is lost where an eigenvalue is wrong and the residuals, by
which KernelPCA warns, do not say so.
"""

import itertools
import sys
from dataclasses import dataclass

import numpy as np

from fuzz import search
from mercer import RBF, Linear, Polynomial
from mercer.space.spectra import _krylov


@dataclass
class Found(search.Found):
    repeated: int = 0
    said: int = 0  # wrong or unfinished, with residuals that say so

    def __str__(self):
        return (
            f"eigenproblems: {self.cases} cases, {self.repeated} with repeated eigenvalues, "
            f"{self.said} not converged and said so, {len(self.findings)} silent losses"
        )


def spectrum_with_copies(rng, n):
    """A decaying spectrum, each value a random number of times."""
    values, value = [], 1.0
    while len(values) < n:
        copies = int(rng.choice([1, 1, 1, 2, 5, 15, 16, 17, 30, 50, 80]))
        values.extend([value] * copies)
        value *= rng.choice([0.999, 0.99, 0.9, 0.5, 0.1, 1e-3])
        if value < 1e-12 or rng.random() < 0.02:
            break
    return np.array((values + [0.0] * n)[:n])


def matrix(rng):
    kind = rng.integers(5)
    if kind <= 2:
        n = int(rng.integers(20, 260))
        Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
        A = (Q * spectrum_with_copies(rng, n)) @ Q.T
        return (A + A.T) / 2
    kernel = [RBF(0.3), RBF(0.03), Polynomial(2), Polynomial(3), Linear()][rng.integers(5)]
    if kind == 3:
        levels, columns = [(2, 7), (3, 5), (6, 3), (14, 2), (15, 2)][rng.integers(5)]
        rows = itertools.product(range(levels), repeat=columns)
        X = np.array([np.concatenate([np.eye(levels)[i] for i in row]) for row in rows])
    else:
        X = rng.normal(size=(int(rng.integers(5, 60)), int(rng.integers(1, 12))))
        X = np.repeat(X, int(rng.integers(2, 6)), axis=0)
    return kernel(X)


def one(rng, found):
    A = matrix(rng)
    n = len(A)
    H = np.eye(n) - 1 / n
    k = int(rng.integers(1, max(2, min(n, 100))))
    exact = np.linalg.eigvalsh(H @ A @ H)[::-1][:k]
    pairs = _krylov(lambda V: V @ A, n, k, np.empty((1, 1)))
    size = max(abs(exact[0]), np.finfo(float).tiny)
    found.repeated += bool(np.any(np.diff(exact) > -1e-9 * size)) if k > 1 else 0
    values = np.concatenate([pairs.values, np.zeros(k - len(pairs.values))])  # centred: n - 1
    wrong = np.abs(values - exact).max() > 1e-6 * size
    promised = pairs.residuals.max(initial=0.0) <= 1e-7 * size
    found.said += not promised
    return f"lost: {np.abs(values - exact).max():.3g}" if wrong and promised else ""


if __name__ == "__main__":
    sys.exit(search.command(one, Found, 10_000, __doc__))
