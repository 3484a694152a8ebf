"""Which points become landmarks: the small decisions inside one block of pivots.

A block is proposed from the residuals d of all points, and pivoted Cholesky on the block's own
residual matrix G decides which proposals are accepted. All rules work on plain NumPy arrays: a
block is small, wherever the data live.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from ..engine import Array, evenly

# Greedy blocks: this many proposals, accepted while within this share of the largest residual.
# Larger blocks save passes, a smaller share costs rank.
BLOCK = 64
SHARE = 0.3
# Random proposals come in batches of this share of the wanted rank.
RANDOM_SHARE = 0.2
MOST_RANDOM = 512
# Rules that do not take the largest residuals first refuse pivots below this share of the largest:
# a tiny pivot before a large one amplifies rounding in all that follow.
LEAST_SHARE = 1e-4


class Greedy:
    """The largest residuals first: the smallest worst residual."""

    ordered = True
    least_share = 0.0

    def __init__(self, rng):
        self.rng = rng

    def propose(self, d: Any, weights: Any, rank: Any, wanted: Any):
        largest = int(d.argmax())
        eligible = np.flatnonzero(d >= SHARE * d[largest])
        # Spread over all eligible points: the very largest are neighbours of each other, and one
        # of them settles the rest.
        spread = eligible[evenly(len(eligible), BLOCK)]
        return np.unique(np.append(spread, largest))

    def accept(self, G: Any, floor: Any, most: Any):
        threshold = max(SHARE * float(G.diagonal().max()), floor)
        return largest_first(G, threshold, most)


class Random(Greedy):
    """Probability proportional to the residual, by rejection (accelerated RPCholesky)."""

    ordered = False
    least_share = LEAST_SHARE

    def propose(self, d: Any, weights: Any, rank: Any, wanted: Any):
        p = np.maximum(d * weights, 0)
        # Without a wanted rank, as if twice the present one were wanted.
        count = int(RANDOM_SHARE * (wanted if wanted < len(d) else 2 * rank + 100))
        count = min(max(count, 8), MOST_RANDOM)
        chosen = self.rng.choice(len(d), size=count, p=p / p.sum())
        _, first = np.unique(chosen, return_index=True)
        return chosen[np.sort(first)]

    def accept(self, G: Any, floor: Any, most: Any):
        before = G.diagonal().copy()
        draws = self.rng.random(len(G))
        # A proposal was drawn by its residual before the block; it stays with the share that is
        # left after the accepted ones.
        drawn = in_order(G, lambda g, i: draws[i] * before[i] < g[i] and g[i] > floor, most)
        # The order within a block is free, and this one is stable.
        order, L = largest_first(G[np.ix_(drawn, drawn)], floor, most)
        return drawn[order], L


class Uniform:
    """Every point alike: what most libraries do, kept for comparison.

    Points are visited in a random order. Those that were refused, being nearly explained while
    others were not at all, are visited again once all others have been.
    """

    ordered = False
    least_share = LEAST_SHARE

    def __init__(self, rng):
        self.rng = rng
        self.order = np.empty(0, dtype=int)

    def propose(self, d: Any, weights: Any, rank: Any, wanted: Any):
        self.order = self.order[d[self.order] > 0]
        if len(self.order) == 0:
            self.order = self.rng.permutation(np.flatnonzero(d > 0))
        count = max(1, min(4 * BLOCK, wanted - rank))
        chosen, self.order = self.order[:count], self.order[count:]
        return chosen

    def accept(self, G: Array, floor: float, most: int):
        return largest_first(G, floor, most)


def rule(name: str, rng: Any):
    return {"greedy": Greedy, "random": Random, "uniform": Uniform}[name](rng)


def largest_first(G: Any, threshold: float, most: Any):
    """Cholesky on G, the largest residual first while it is above the threshold.

    Returns (order, L) with L lower triangular, L L' = G[order, order].
    """
    if G.diagonal().max(initial=0) <= threshold:  # LAPACK takes the first pivot without a look
        return np.empty(0, dtype=int), np.empty((0, 0))
    A, order, rank, _ = scipy.linalg.lapack.dpstrf(G, tol=threshold, lower=1)
    rank = min(rank, most)
    return order[:rank] - 1, np.tril(A[:rank, :rank])


def in_order(G: Any, keeps: Callable[[np.ndarray, int], bool], most: Any):
    """The pivots that `keeps(residuals, i)` accepts when they are asked one after the other."""
    residual = G.diagonal().copy()
    L = np.zeros_like(G)
    accepted: list[int] = []
    for i in range(len(G)):
        if len(accepted) == most:
            break
        if keeps(residual, i):
            q = len(accepted)
            L[:, q] = (G[:, i] - L[:, :q] @ L[i, :q]) / np.sqrt(residual[i])
            residual -= L[:, q] ** 2
            accepted.append(i)
    return np.array(accepted, dtype=int)
