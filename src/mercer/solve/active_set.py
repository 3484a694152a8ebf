"""The dual of a support vector machine, solved exactly from a good start.

In signed coefficients c_i = y_i a_i the dual is: maximise y'c - c'Kc / 2 subject to sum(c) = 0 and
c_i between 0 and y_i C_i. On the set F of free coefficients the maximum is the linear system
K_FF c_F + b = y_F - (the rest): Newton's step reaches it, unless a coefficient meets its bound on
the way and leaves F. The inverse of K_FF is kept, and changed where F changes, so that a step
costs no factorisation. Every step ascends; the set that libsvm leaves needs few of them. Kernel
values are evaluated as they are needed: of F, and of what a step changed.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from ..engine import cholesky

# Added to K_FF, relative to its diagonal: identical rows make it singular.
JITTER = 1e-12
# Changes of F in one round, relative to its size; beyond them, and where F is small,
# a new factorisation is cheaper.
MOST_CHANGES = 0.4
FEW = 500
MOST_ROUNDS = 150
# The objective rises by more than this share of it, or has not risen; so often in turn is the end.
STALLED = 1e-15
MOST_STILL = 4


@dataclass
class Free:
    """The free coefficients: their positions, and the inverse of their kernel matrix."""

    rows: np.ndarray
    inverse: np.ndarray

    @classmethod
    def of(cls, problem, rows):
        """None where the matrix is singular beyond repair."""
        if not len(rows):  # LAPACK complains of nothing
            return cls(rows, np.zeros((0, 0)))
        A = problem.matrix(rows)
        A.flat[:: len(rows) + 1] *= 1 + JITTER * max(len(rows), 1)
        C = cholesky(A)
        if C is None:
            A.flat[:: len(rows) + 1] *= 1 + 1e-8
            C = cholesky(A)
        if C is None:
            return None
        inverse, _ = scipy.linalg.lapack.dpotri(C, lower=1)
        return cls(rows, np.where(np.tri(len(rows), dtype=bool), inverse, inverse.T))

    def with_more(self, problem, more):
        """One block of bordering; None where the matrix becomes singular."""
        if not len(more):
            return self
        if len(more) > MOST_CHANGES * len(self.rows) or len(self.rows) < FEW:
            return Free.of(problem, np.concatenate([self.rows, more]))
        B, S = problem.matrix(self.rows, more), problem.matrix(more)
        HB = self.inverse @ B
        jitter = JITTER * len(self.rows) * S.diagonal()
        S -= B.T @ HB
        S.flat[:: len(more) + 1] += jitter
        try:
            inner = np.linalg.inv((S + S.T) / 2)
        except np.linalg.LinAlgError:
            return None
        right = HB @ inner
        grown = np.block([[self.inverse + right @ HB.T, -right], [-right.T, inner]])
        return Free(np.concatenate([self.rows, more]), grown)

    def without(self, stopped, V):
        """The inverse of a submatrix, from Schur complements (see `_to_the_bounds`)."""
        kept = np.flatnonzero(~stopped)
        if len(kept) == len(self.rows):
            return self
        left = self.inverse[np.ix_(kept, kept)] - V[kept] @ V[kept].T
        return Free(self.rows[kept], left)


@dataclass
class BoxDual:
    """maximise y'c - c'Kc / 2, sum(c) = 0, c between 0 and y C: what ascends from c and b.

    problem : MarginProblem
    c : one coefficient per row
    b : float
    values : K c
    """

    problem: Any
    c: np.ndarray
    b: float
    values: np.ndarray
    free: Any = None

    def __post_init__(self):
        self.y, self.C = self.problem.y, self.problem.C
        self.low, self.high = np.minimum(0.0, self.y * self.C), np.maximum(0.0, self.y * self.C)
        c = balanced(np.clip(self.c, self.low, self.high), self.low, self.high)
        self.values = self.values + self.problem.values(c - self.c)
        self.c = c

    def solve(self, aim: float) -> None:
        """Ascend until the duality gap is at most `aim`, or nothing changes any more."""
        lowest, highest, share, still = np.inf, -np.inf, 1.0, 0
        inside = np.flatnonzero((self.c > self.low) & (self.c < self.high))
        self.free = Free.of(self.problem, inside)
        for _ in range(MOST_ROUNDS):
            left = self.y - self.values - self.b
            gap = float(np.sum(self.C * np.maximum(self.y * left, 0.0) - self.c * left))
            value = float(self.c @ (self.y - self.values / 2))
            if gap <= aim or self.free is None:
                return
            still = 0 if value > highest + STALLED * abs(highest) else still + 1
            if still >= MOST_STILL:
                return
            if gap >= lowest:  # fewer at a time: many that enter together block each other
                share = max(share / 2, 1e-3)
            lowest, highest = min(lowest, gap), max(highest, value)
            wrong = self._wrong(left, share)
            if not len(wrong) and float(np.max(np.abs(left[self.free.rows]), initial=0.0)) < 1e-13:
                return
            grown = self.free.with_more(self.problem, wrong)
            if grown is None:
                return
            self._step(grown, left[grown.rows])

    def _wrong(self, left, share):
        """Coefficients at a bound that would rather leave it: the worst of them."""
        rises = (self.c <= self.low) & (left > 1e-14)
        falls = (self.c >= self.high) & (left < -1e-14)
        is_wrong = rises | falls
        is_wrong[self.free.rows] = False
        wrong = np.flatnonzero(is_wrong)
        most = max(1, int(share * (50 + len(self.free.rows) // 2)))
        if len(wrong) > most:
            wrong = wrong[np.argsort(-np.abs(left[wrong]), kind="stable")[:most]]
        return wrong

    def _step(self, free, left):
        """Newton's step on the free coefficients; those that meet a bound stay there."""
        before, low, high = (x[free.rows] for x in (self.c, self.low, self.high))
        others = float(self.c.sum()) - float(before.sum())
        c, shift, *stops = _to_the_bounds(left, free.inverse, before, low, high, others)
        change = np.zeros_like(self.c)
        change[free.rows] = c - before
        self.c, self.b = self.c + change, self.b + shift
        self.c[free.rows] = c
        self.values = self.values + self.problem.values(change)
        self.free = free.without(*stops)


def _to_the_bounds(left, H, c, low, high, others):
    """Along Newton's direction to the first bound, along the direction of those left, and so on.

    Returns c, the change of b, which coefficients stopped at a bound, and V with one column for
    each of them: the inverse for all others is H - V V', by Schur complements one at a time.
    """
    n, k, b, t = len(c), 0, 0.0, 0.0
    V, stopped = np.empty((n, 0)), np.zeros(n, dtype=bool)
    v, u = H @ left, H.sum(axis=1)  # of H - V V' from here on
    while t < 1.0 and not stopped.all():
        total = float(u[~stopped].sum())
        shift = (float(v[~stopped].sum()) + others + float(c.sum())) / total if total > 0 else 0.0
        step = np.where(stopped, 0.0, v - shift * u)
        meets = ((c <= low) & (step < 0)) | ((c >= high) & (step > 0))
        if not meets.any():
            room = np.full(n, np.inf)
            np.divide(high - c, step, out=room, where=step > 0)
            np.divide(low - c, step, out=room, where=step < 0)
            t = min(1.0, float(room.min(initial=np.inf)))
            meets = room <= t
            c = np.clip(c + t * step, low, high)
            c[meets] = np.where(step[meets] > 0, high[meets], low[meets])
            b, v = b + t * shift, (1 - t) * v
        for s in np.flatnonzero(meets):
            if k == V.shape[1]:
                V = np.concatenate([V, np.empty((n, max(16, k)))], axis=1)
            column = H[:, s] - V[:, :k] @ V[s, :k]
            stopped[s] = True
            if column[s] > 1e-14 * H[s, s]:  # else it follows from those that stopped before
                V[:, k] = column / column[s] ** 0.5
                v -= V[:, k] * (v[s] / column[s] ** 0.5)
                u -= V[:, k] * (u[s] / column[s] ** 0.5)
                k += 1
    return c, b, stopped, V[:, :k]


def balanced(c, low, high):
    """c with sum(c) = 0 up to rounding, within its bounds: those that are free move first."""
    for free in ((c > low) & (c < high), np.ones(len(c), dtype=bool)):
        total = float(c.sum())
        room = np.where(free, c - low if total > 0 else high - c, 0.0)
        available = float(room.sum())
        if total == 0.0 or available == 0.0:
            continue
        share = min(1.0, abs(total) / available)
        c = np.clip(c - np.sign(total) * share * room, low, high)
        if abs(float(c.sum())) <= 1e-12 * float(np.abs(c).sum()):
            break
    return c
