"""The plane that is looked at: kernel PCA, discriminant axes or t-SNE, steady between frames."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.neighbors import NearestNeighbors

from ...solve import Fisher
from ..embeddings import DISCRIMINANT, PERPLEXITY, TSNE
from .space import LiveSpace

# Share of the total variance that is added within classes, so that the axes do not chase noise.
_SHRINKAGE = 1e-3
# Directions among which two may change places.
_FOLLOWED = 8
# The most that a plane turns between two pictures, and the cosine between the last picture and the
# most similar one from which on the plane is turned rather than exchanged.
STEP, ALIKE = np.deg2rad(10.0), 0.8
_RIDGE = 0.05
# Pictures until a plane has arrived, at most.
MOST_TURNS = 14
# t-SNE moves so many rows; others follow their nearest neighbours among them.
MOVED, NEIGHBOURS = 1000, 5
# Its affinities are those of the leading components.
_COMPONENTS = 50
# Iterations: the first ones with exaggeration, then those after each change, in small steps.
FIRST, SETTLING, ITERATIONS = 100, 150, 10


@dataclass(frozen=True)
class Plane:
    """Points of a picture: (scores @ turn) / size."""

    name: str
    points: np.ndarray
    # One row per direction of the scores and two orthonormal columns: the plane that is seen, and
    # how it lies on the screen.
    turn: np.ndarray
    size: float
    rows: np.ndarray | None = None  # which rows the points are, sorted; None for all rows
    arrived: bool = True  # whether it is the plane of the leading directions, or on the way to it

    def scores_at(self, x: float, y: float) -> np.ndarray:
        """The scores of a place in the picture."""
        return (np.array([x, y]) * self.size) @ self.turn.T

    def point(self, row: int) -> tuple[float, float] | None:
        """Position of a row; None where it is not drawn."""
        i = row
        if self.rows is not None:
            i = min(int(np.searchsorted(self.rows, row)), len(self.rows) - 1)
            if self.rows[i] != row:
                return None
        return float(self.points[i, 0]), float(self.points[i, 1])

    def at(self, rows: np.ndarray | None) -> np.ndarray:
        """Points of these rows; None stands for all."""
        if rows is None or self.rows is not None:
            return self.points
        return self.points[rows]


def projected(
    name: str, space: LiveSpace, last: Plane | None = None, rows: np.ndarray | None = None
) -> Plane:
    """The two leading components, or discriminant axes, turned to match the last picture. `space`
    is that of `rows`, where these are given."""
    scores = space.components[:, :_FOLLOWED]
    if name == DISCRIMINANT:
        scores = _discriminant_scores(space)
    return _steady(name, scores, last, rows)


def _discriminant_scores(space: LiveSpace) -> np.ndarray:
    """Fisher's axes, from ridge on class indicators: components have a diagonal scatter."""
    Q, T, data = space.components, space.values, space.data
    assert data.targets is not None
    Y = data.targets[:, data.targets.any(axis=0)]
    counts = Y.sum(axis=0)
    # Rank-deficient directions would be divided by next to nothing.
    penalty = _SHRINKAGE * T.sum() / max(1, len(data)) + np.finfo(float).tiny
    sums = Q.T @ Y
    W = sums / (T + penalty)[:, None]
    left = np.diag(counts) - np.outer(counts, counts) / counts.sum() - sums.T @ W
    size = min(_FOLLOWED, len(data.classes) - 1)
    axes, _ = Fisher.of((left + left.T) / 2, counts).axes(counts / counts.sum(), size)
    scores = Q @ (W @ axes.mix)
    if size == 1:  # of two classes there is one axis; kernel PCA gives the other
        scores = np.column_stack([scores, Q[:, :1]])
        scores = scores / np.maximum(scores.std(axis=0), np.finfo(float).tiny)
    return scores


def _steady(
    name: str, scores: np.ndarray, last: Plane | None, rows: np.ndarray | None = None
) -> Plane:
    """A picture of the first two columns that begins where the last picture ended.

    Within a plane the orthogonal matrix nearest to scores' last (Procrustes) turns or mirrors the
    picture so that points stay near their last places; distances are the same. Where two directions
    have changed places the plane itself is another one: it is approached in small turns, each an
    orthogonal projection too, until it has arrived.
    """
    scores = _at_least_two(scores)
    turn, arrived, reach = np.eye(scores.shape[1], 2), True, 1.0
    if last is not None and last.name == name:
        before = last.at(rows)
        common = scores if last.rows is None or rows is not None else scores[last.rows]
        if len(before) == len(common):
            basis, arrived = _next_plane(common, before)
            U, _, V = np.linalg.svd((common @ basis).T @ before)
            turn = basis @ (U @ V)
            if rows is not None:  # some rows reach as far as they did, not to the picture's edge
                reach = float(np.abs(before).max(initial=0.0)) or 1.0
    points = scores @ turn
    size = (float(np.abs(points).max(initial=0.0)) or 1.0) / reach
    return Plane(name, points / size, turn, size, rows, arrived)


def _next_plane(scores, before):
    """(orthonormal basis of the plane to show next, whether it is that of the first two columns).
    The plane in which the rows look most like the last picture is turned towards that of the first
    two columns, along the principal angles between the two, by at most STEP."""
    goal = np.eye(scores.shape[1], 2)
    scores = scores / (np.abs(scores).max(initial=0.0) or 1.0)  # squares must not overflow
    # Ridge regression of the last picture on the scores; directions of little variance may not
    # explain it by large factors.
    products = scores.T @ scores
    products += _RIDGE * np.sort(np.diagonal(products))[-2] * np.eye(len(products))
    found, *_ = np.linalg.lstsq(products, scores.T @ before, rcond=None)
    U, _, V = np.linalg.svd(found, full_matrices=False)
    start = U @ V
    similar = scores @ start
    if (similar * before).sum() <= ALIKE * np.linalg.norm(similar) * np.linalg.norm(before):
        return goal, True  # the rows have moved themselves: there is no plane to come from
    A, cosines, B = np.linalg.svd(goal.T @ start)
    angles = np.arccos(np.clip(cosines, -1.0, 1.0))
    if angles.max() <= STEP:
        return goal, True
    share = STEP / angles.max()
    sines = np.sin(angles)
    parts = np.where(
        sines > 1e-8,
        [np.sin((1 - share) * angles), np.sin(share * angles)] / np.maximum(sines, 1e-8),
        [[1 - share], [share]],
    )
    basis, _ = np.linalg.qr(start @ B.T * parts[0] + goal @ A * parts[1])
    return basis, False


def _at_least_two(scores):
    """A space of one dimension gets a column of zeros."""
    return scores if scores.shape[1] > 1 else np.pad(scores, [(0, 0), (0, 1)])


class MovingTSNE:
    """t-SNE that goes on from its last state when the space changes.

    It moves the first MOVED rows of `order`.
    """

    def __init__(self, order: np.ndarray):
        self.rows = np.sort(order[:MOVED])
        self.state: np.ndarray | None = None
        self.iterations = 0

    def frames(
        self, space: LiveSpace, last: Plane | None = None, rows: np.ndarray | None = None
    ) -> Iterator[Plane]:
        """Pictures while it settles; stop whenever a newer space is wanted. `space` is that of
        `rows`, sorted, which include all that move; None: of all rows."""
        from openTSNE import TSNEEmbedding, affinity

        everyone = space.components[:, :_COMPONENTS]
        moved = self.rows if rows is None else np.searchsorted(rows, self.rows)
        Phi = everyone[moved]
        n = len(Phi)
        if n < 8 or not Phi.std() > 0:
            yield _steady(TSNE, np.zeros((len(everyone), 2)), last, rows)
            return
        near = affinity.PerplexityBasedNN(
            Phi, perplexity=min(PERPLEXITY, (n - 1) / 3), method="exact", n_jobs=1, random_state=0
        )
        state = self.state
        if state is None:
            state = _at_least_two(Phi)[:, :2]
            state = 1e-2 * state / (state[:, 0].std() or 1.0)
        moving = TSNEEmbedding(state, near, negative_gradient_method="bh", n_jobs=1, random_state=0)
        follow = _followers(everyone, moved)
        end = max(self.iterations, FIRST) + SETTLING
        while self.iterations < end:
            early = self.iterations < FIRST
            moving = moving.optimize(
                ITERATIONS, exaggeration=12 if early else None, momentum=0.5 if early else 0.8
            )
            self.state = np.array(moving)
            self.iterations += ITERATIONS
            last = _steady(TSNE, follow(self.state), last, rows)
            yield last


def _followers(scores, rows):
    """A function that places all rows, those that t-SNE does not move beside their neighbours."""
    if len(rows) == len(scores):
        return lambda moved: moved - moved.mean(axis=0)
    near = NearestNeighbors(n_neighbors=NEIGHBOURS, algorithm="brute").fit(scores[rows])
    nearest = near.kneighbors(scores, return_distance=False)

    def placed(moved: np.ndarray):
        everyone = moved[nearest].mean(axis=1)
        everyone[rows] = moved
        return everyone - everyone.mean(axis=0)

    return placed
