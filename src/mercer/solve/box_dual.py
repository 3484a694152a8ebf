"""The dual of a support vector machine, solved exactly from a good start, or on coordinates.

In signed coefficients c_i = y_i a_i the dual is: maximise y'c - c'Kc / 2 subject to sum(c) = 0 and
c_i between 0 and y_i C_i. On the set F of free coefficients the maximum is the linear system
K_FF c_F + b = y_F - (the rest): Newton's step reaches it, unless a coefficient meets its bound on
the way and leaves F. The inverse of K_FF is kept, and changed where F changes, so that a step
costs no factorisation. Every step ascends; the set that libsvm leaves needs few of them. Kernel
values are evaluated as they are needed: of F, and of what a step changed.

`interior_point` solves it for K = Phi Phi' with r columns far below the number of rows that may be
support vectors: no matrix of rows by rows is needed, noise does not slow it down, and a step costs
n r^2. Mehrotra's predictor and corrector; K + diagonal is inverted through r x r matrices.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import scipy.linalg

from ..engine import Array, as_numpy, cholesky, device, gram, namespace, on_device_of, tiles
from .regularized import solve_factored

# Added to K_FF, relative to its diagonal: identical rows make it singular.
_JITTER = 1e-12
# Changes of F in one round, relative to its size; beyond them, and where F is small,
# a new factorisation is cheaper.
_MOST_CHANGES = 0.4
_FEW = 500
# Coefficients that have stopped at a bound in one step, before the inverse is that of the others.
_MOST_STOPPED = 100
_MOST_ROUNDS = 150
# The objective rises by more than this share of it, or has not risen; so often in turn is the end.
_STALLED = 1e-15
_MOST_STILL = 4
# Steps of the interior-point method.
_MOST_STEPS = 80
# How far a step goes towards the boundary.
_SHARE = 0.995
# Times the best state so far: steps have stopped to help.
_WORSE = 1e3
# A coefficient nearer to its bound than this share of C, pressed against it, is at the bound.
_AT_BOUND = 1e-5


@dataclass
class _Free:
    """The free coefficients: their positions, and the inverse of their kernel matrix, if known."""

    rows: np.ndarray
    inverse: Any = None

    @classmethod
    def of(cls, problem: Any, rows: np.ndarray) -> "_Free | None":
        """None where the matrix is singular beyond repair."""
        if not len(rows):  # LAPACK complains of nothing
            return cls(rows, np.zeros((0, 0)))
        A = problem.matrix(rows)
        A.flat[:: len(rows) + 1] *= 1 + _JITTER * len(rows)
        if (C := cholesky(A)) is None:
            A.flat[:: len(rows) + 1] *= 1 + 1e-8
            if (C := cholesky(A)) is None:
                return None
        half, _ = scipy.linalg.lapack.dpotri(C, lower=1)  # zeros above the diagonal
        half.flat[:: len(rows) + 1] /= 2
        return cls(rows, half + half.T)

    def with_more(self, problem: Any, more: np.ndarray) -> "_Free | None":
        """One block of bordering; None where the matrix becomes singular."""
        if self.inverse is None or len(more) > _MOST_CHANGES * len(self.rows):
            return _Free.of(problem, np.concatenate([self.rows, more]))
        if not len(more):
            return self
        B, S = problem.matrix(self.rows, more), problem.matrix(more)
        HB = self.inverse @ B
        jitter = _JITTER * len(self.rows) * S.diagonal()
        S -= B.T @ HB
        S.flat[:: len(more) + 1] += jitter
        try:
            inner = np.linalg.inv((S + S.T) / 2)
        except np.linalg.LinAlgError:
            return None
        right = HB @ inner
        grown = np.block([[self.inverse + right @ HB.T, -right], [-right.T, inner]])
        return _Free(np.concatenate([self.rows, more]), grown)

    def without(self, gone: np.ndarray) -> "_Free":
        """The inverse of a submatrix, from the Schur complement; `gone` are positions in rows."""
        if not len(gone):
            return self
        kept = np.delete(np.arange(len(self.rows)), gone)
        if len(self.rows) < _FEW:
            return _Free(self.rows[kept])
        return _Free(self.rows[kept], _inverse_of_part(self.inverse, kept, gone))


@dataclass
class BoxDual:
    """maximise y'c - c'Kc / 2, sum(c) = 0, c between 0 and y C: what ascends from c and b."""

    problem: Any  # a MarginProblem
    c: np.ndarray  # one coefficient per row
    b: float
    values: np.ndarray  # K c
    free: Any = None
    gap: float = np.inf

    def __post_init__(self) -> None:
        self.y, self.C = self.problem.y, self.problem.C
        self.low, self.high = np.minimum(0.0, self.y * self.C), np.maximum(0.0, self.y * self.C)
        c = _balanced(np.clip(self.c, self.low, self.high), self.low, self.high)
        self.values = self.values + self.problem.values(c - self.c)
        self.c = c

    def solve(self, aim: float, patience: int = _MOST_ROUNDS) -> None:
        """Ascend until the duality gap is at most `aim`, or nothing changes any more; or until it
        has not fallen a hundredfold in so many rounds."""
        lowest, highest, share, still, first = np.inf, -np.inf, 1.0, 0, 0.0
        inside = np.flatnonzero((self.c > self.low) & (self.c < self.high))
        self.free = _Free(inside)
        for count in range(_MOST_ROUNDS):
            left = self.y - self.values - self.b
            gap = self.gap = float(np.sum(self.C * np.maximum(self.y * left, 0.0) - self.c * left))
            value = float(self.c @ (self.y - self.values / 2))
            first = gap if count == 0 else first
            if gap <= aim or (count == patience and gap > 0.01 * first):
                return
            still = 0 if value > highest + _STALLED * abs(highest) else still + 1
            if still >= _MOST_STILL:
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

    def _wrong(self, left: np.ndarray, share: float) -> np.ndarray:
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

    def _step(self, free: _Free, left: np.ndarray) -> None:
        """Newton's step on the free coefficients; those that meet a bound stay there."""
        before, low, high = (x[free.rows] for x in (self.c, self.low, self.high))
        others = float(self.c.sum()) - float(before.sum())
        c, shift = _to_the_bounds(left, free.inverse, before, low, high, others)
        change = np.zeros_like(self.c)
        change[free.rows] = c - before
        self.c, self.b = self.c + change, self.b + shift
        self.c[free.rows] = c
        self.values = self.values + self.problem.values(change)
        self.free = free.without(np.flatnonzero((c <= low) | (c >= high)))


def _to_the_bounds(
    left: np.ndarray, H: np.ndarray, c: np.ndarray, low: np.ndarray, high: np.ndarray, others: float
) -> tuple[np.ndarray, float]:
    """Along Newton's direction to the first bound, along the direction of those left, and so on."""
    v, u = H @ left, H.sum(axis=1)
    stopped, b, whole = np.empty(0, dtype=np.intp), 0.0, 1.0
    for _ in range(2 * len(c) + 1):
        if len(stopped) > _MOST_STOPPED:  # the rest is a smaller problem
            kept, c = np.delete(np.arange(len(c)), stopped), c.copy()
            H, others = _inverse_of_part(H, kept, stopped), others + float(c[stopped].sum())
            left = whole * left[kept]
            c[kept], shift = _to_the_bounds(left, H, c[kept], low[kept], high[kept], others)
            return c, b + shift
        step, shift = _to_bound(H, v, u, stopped, others + float(c.sum()))
        blocked = ((c <= low) & (step < 0)) | ((c >= high) & (step > 0))
        blocked[stopped] = False
        if blocked.any():
            stopped = np.concatenate([stopped, np.flatnonzero(blocked)])
            continue
        room = np.full(len(c), np.inf)
        np.divide(high - c, step, out=room, where=step > 0)
        np.divide(low - c, step, out=room, where=step < 0)
        room[stopped] = np.inf
        t = min(1.0, float(room.min(initial=np.inf)))
        c = np.clip(c + t * step, low, high)
        b += t * shift
        v, whole = (1 - t) * v, (1 - t) * whole
        if t >= 1.0:
            break
        met = np.flatnonzero(room <= t)
        c[met] = np.where(step[met] > 0, high[met], low[met])
        stopped = np.concatenate([stopped, met])
        if len(stopped) == len(c):
            break
    return c, b


def _to_bound(
    H: np.ndarray, v: np.ndarray, u: np.ndarray, stopped: np.ndarray, total: float
) -> tuple[np.ndarray, float]:
    """(dc, db): K_FF dc + db = residual on all that are not stopped, sum(dc) = -total."""
    k = len(stopped)
    A = np.empty((k + 1, k + 1))
    A[:k, :k], A[:k, k], A[k, :k] = H[np.ix_(stopped, stopped)], u[stopped], u[stopped]
    A[k, k] = u.sum()
    right = np.append(v[stopped], v.sum() + total)
    found = _solved(A, right)
    step = v - found[k] * u - H[:, stopped] @ found[:k]
    step[stopped] = 0.0
    return step, float(found[k])


def _inverse_of_part(H: np.ndarray, kept: np.ndarray, gone: np.ndarray) -> np.ndarray:
    """The inverse of a submatrix, from that of the matrix: a Schur complement."""
    cross = H[np.ix_(kept, gone)]
    part: np.ndarray = H[np.ix_(kept, kept)] - cross @ _solved(H[np.ix_(gone, gone)], cross.T)
    return part


def _solved(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A^-1 B; by least squares where A is singular (all coefficients stopped, identical rows)."""
    try:
        return np.linalg.solve(A, B)
    except np.linalg.LinAlgError:
        nearest: np.ndarray = np.linalg.lstsq(A, B, rcond=None)[0]
        return nearest


def _balanced(c: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
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


# --- on coordinates -------------------------------------------------------------------------------


def interior_point(Phi: Any, y: np.ndarray, C: np.ndarray, aim: float) -> tuple[np.ndarray, int]:
    """(signed coefficients, steps): a feasible dual point with a gap of about `aim` or less."""
    xp = namespace(Phi)
    y, C = on_device_of(y, Phi), on_device_of(C, Phi)
    zero = xp.zeros_like(y)
    low, high = xp.where(y > 0, zero, -C), xp.where(y > 0, C, zero)
    c, b = (low + high) / 2, 0.0
    # Distances to both bounds, kept apart from c: near a bound a difference would be all rounding.
    u, v = C / 2, C / 2
    slope = Phi @ (Phi.T @ c) - y
    z = xp.where(slope > 0, slope, zero)  # z - s = slope, both well away from zero
    floor = 1.0 + float(xp.mean(xp.abs(slope)))
    z, s = z + floor, z - slope + floor
    best: Any = None
    for steps in range(1, _MOST_STEPS + 1):  # noqa: B007  returned
        f = Phi @ (Phi.T @ c)
        dual, total = f - y + b - z + s, float(xp.sum(c))
        mean = float(xp.sum(u * z) + xp.sum(v * s)) / (2 * y.shape[0])
        residual = float(xp.sum(C * xp.abs(dual)))
        left = 2 * y.shape[0] * mean + residual + abs(total)
        if best is None or left < best[0]:
            best = (left, c, u, v, z, s)
        # Near the end rounding undoes what steps gain.
        if left <= 0.1 * aim or not left < _WORSE * best[0]:
            break
        inverse = _inverse(Phi, 1 / (z / u + s / v))
        ones = inverse(xp.ones_like(y))
        if not float(xp.sum(ones)) > 0:  # to rounding, a constant is in the space: b is anything
            break
        now = (u, v, z, s, dual, total)
        dc, db, dz, ds = _direction(inverse, ones, now, 0.0, 0.0, 0.0)
        t = _room(xp, (u, dc), (v, -dc), (z, dz), (s, ds))
        after = float(xp.sum((u + t * dc) * (z + t * dz)) + xp.sum((v - t * dc) * (s + t * ds)))
        toward = mean * min(1.0, after / (2 * y.shape[0]) / mean) ** 3
        dc, db, dz, ds = _direction(inverse, ones, now, toward, dc * dz, -dc * ds)
        # One for all: c is in `dual` too.
        t = _SHARE * _room(xp, (u, dc), (v, -dc), (z, dz), (s, ds))
        if not t > 1e-10:
            break
        c, b, z, s = c + t * dc, b + t * db, z + t * dz, s + t * ds
        u, v = u + t * dc, v - t * dc
    _, c, u, v, z, s = best
    at_low, at_high = (z > s) & (u < _AT_BOUND * C), (s > z) & (v < _AT_BOUND * C)
    c = xp.where(at_low, low, xp.where(at_high, high, c))
    host = [as_numpy(x) for x in (c, low, high)]
    return _balanced(*host), steps


def _direction(
    inverse: Callable[[Any], Any],
    ones: Array,
    now: tuple[Any, ...],
    toward: float,
    second_u: Any,
    second_v: Any,
) -> tuple[Any, float, Any, Any]:
    """Newton's step to u z = v s = toward; with the second-order terms of a step before."""
    u, v, z, s, dual, total = now
    xp = namespace(u)
    right_u, right_v = toward - u * z - second_u, toward - v * s - second_v
    first = inverse(right_u / u - right_v / v - dual)
    db = (float(xp.sum(first)) + total) / float(xp.sum(ones))
    dc = first - db * ones
    return dc, db, (right_u - z * dc) / u, (right_v + s * dc) / v


def _inverse(Phi: Array, T: Array) -> Callable[[Any], Any]:
    """v -> (Phi Phi' + diag(1 / T))^-1 v."""
    C = low_rank_factor(Phi, T)
    return lambda v: T * (v - Phi @ solve_factored(C, Phi.T @ (T * v)))


def low_rank_factor(Phi: Array, T: Array) -> Any:
    """The Cholesky factor of I + Phi' diag(T) Phi, by which diag(1 / T) + Phi Phi' is inverted."""
    xp, root = namespace(Phi), namespace(Phi).sqrt(T)[:, None]
    # A panel at a time: Phi may be half of the memory that is allowed.
    A = sum(gram(Phi[part, :] * root[part, :]) for part in tiles.panel_slices(Phi, Phi.shape[1]))
    eye = xp.eye(A.shape[0], dtype=A.dtype, device=device(A))
    C = cholesky(A + eye)
    if C is None:  # rounding, with weights of many magnitudes
        C = cholesky(A + (1 + 1e-12 * float(xp.linalg.trace(A))) * eye)
    return C


def _room(xp: ModuleType, *pairs: tuple[Any, Any]) -> float:
    """The longest step, 1 / _SHARE at most, that keeps every value positive."""
    longest = 1.0 / _SHARE
    for value, change in pairs:
        shrinks = change < 0
        ratio = xp.where(shrinks, -value / xp.where(shrinks, change, -xp.ones_like(change)), value)
        ratio = xp.where(shrinks, ratio, longest * xp.ones_like(ratio))
        longest = min(longest, float(xp.min(ratio)))
    return longest
