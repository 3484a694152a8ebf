"""The plane that is looked at: kernel PCA, discriminant axes or t-SNE, steady between frames."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..embeddings import DISCRIMINANT, PCA, PERPLEXITY, TSNE
from .data import Explored
from .space import LiveSpace

# Share of the total variance that is added within classes, so that the axes do not chase noise.
SHRINKAGE = 1e-3
# t-SNE moves so many rows; others follow their nearest neighbours among them.
MOVED, NEIGHBOURS = 1000, 5
# Its affinities are those of the leading components.
COMPONENTS = 50
# Iterations: the first ones with exaggeration, then those after each change, in small steps.
FIRST, SETTLING, STEP = 100, 150, 10


@dataclass(frozen=True)
class Plane:
    """Points of a picture: (scores @ turn) / size.

    `scores` is None where the picture is not a projection (t-SNE).
    """

    name: str
    points: np.ndarray
    turn: np.ndarray
    size: float
    scores: np.ndarray | None = None

    def scores_at(self, x: float, y: float) -> np.ndarray:
        """The scores of a place in the picture."""
        return (np.array([x, y]) * self.size) @ self.turn.T


def projected(name: str, space: LiveSpace, data: Explored, last: Plane | None = None) -> Plane:
    """The two leading components, or discriminant axes, turned to match the last picture."""
    scores = discriminant_scores(space, data) if name == DISCRIMINANT else two(space.scores(2))
    return steady(name, scores, last, scores)


def discriminant_scores(space: LiveSpace, data: Explored) -> np.ndarray:
    """Fisher's axes from the components.

    In the components' basis the total scatter is diagonal, T. With R the class means weighted by
    the roots of the class sizes, the axes are (T + s I)^-1 R' u, for the leading eigenvectors u of
    R (T + s I)^-1 R': a matrix as large as the number of classes.
    """
    assert data.targets is not None
    Q, T = np.asarray(space.path.Q), np.asarray(space.path.values)
    sizes = np.maximum(data.targets.sum(axis=0), 1.0)
    R = (data.targets.T @ Q) / np.sqrt(sizes)[:, None]
    # Rank-deficient directions would be divided by next to nothing.
    inverse = 1.0 / (T + SHRINKAGE * T.sum() / max(1, len(data)) + np.finfo(float).tiny)
    _, U = np.linalg.eigh((R * inverse) @ R.T)
    size = min(2, len(data.classes) - 1)
    axes = inverse[:, None] * (R.T @ U[:, ::-1][:, :size])
    axes /= np.maximum(np.linalg.norm(axes, axis=0), np.finfo(float).tiny)
    scores = Q @ axes
    if size == 1:  # of two classes there is one axis; kernel PCA gives the other
        scores = np.column_stack([scores, space.scores(1)])
        spread = np.maximum(scores.std(axis=0), np.finfo(float).tiny)
        scores = scores / spread
    return two(scores)


def steady(
    name: str, raw: np.ndarray, last: Plane | None, scores: np.ndarray | None = None
) -> Plane:
    """A picture of raw coordinates, turned or mirrored so that points stay near their last places.

    The orthogonal matrix nearest to raw' last (Procrustes) loses nothing: distances are the same.
    """
    turn = np.eye(2)
    if last is not None and last.name == name and last.points.shape == raw.shape:
        U, _, V = np.linalg.svd(raw.T @ last.points)
        turn = U @ V
    size = float(np.abs(raw @ turn).max(initial=0.0)) or 1.0
    return Plane(name, (raw @ turn) / size, turn, size, scores)


def two(scores: np.ndarray) -> np.ndarray:
    """Two columns; a space of one dimension gets zeros."""
    if scores.shape[1] >= 2:
        return scores[:, :2]
    return np.column_stack([scores, np.zeros((len(scores), 2 - scores.shape[1]))])


class MovingTSNE:
    """t-SNE that goes on from its last state when the space changes."""

    def __init__(self, data: Explored, seed: int = 0):
        order = np.random.default_rng(seed).permutation(len(data))
        self.rows = np.sort(order[:MOVED])
        self.state: np.ndarray | None = None
        self.iterations = 0

    def frames(self, space: LiveSpace, last: Plane | None = None) -> Iterator[Plane]:
        """Pictures while it settles; stop whenever a newer space is wanted."""
        from openTSNE import TSNEEmbedding, affinity

        everyone = space.scores(COMPONENTS)
        Phi = everyone[self.rows]
        n = len(Phi)
        if n < 8 or not Phi.std() > 0:
            yield steady(TSNE, np.zeros((len(everyone), 2)), last)
            return
        near = affinity.PerplexityBasedNN(
            Phi, perplexity=min(PERPLEXITY, (n - 1) / 3), method="exact", n_jobs=1, random_state=0
        )
        state = self.state
        if state is None:
            state = two(Phi)
            state = 1e-2 * state / (state[:, 0].std() or 1.0)
        moving = TSNEEmbedding(state, near, negative_gradient_method="bh", n_jobs=1, random_state=0)
        follow = _followers(everyone, self.rows)
        end = max(self.iterations, FIRST) + SETTLING
        while self.iterations < end:
            early = self.iterations < FIRST
            moving = moving.optimize(
                STEP, exaggeration=12 if early else None, momentum=0.5 if early else 0.8
            )
            self.state = np.array(moving)
            self.iterations += STEP
            last = steady(TSNE, follow(self.state), last)
            yield last


def _followers(scores, rows):
    """A function that places all rows, those that t-SNE does not move beside their neighbours."""
    if len(rows) == len(scores):
        return lambda moved: moved - moved.mean(axis=0)
    known = scores[rows]
    lengths = (known**2).sum(axis=1)
    nearest = np.empty((len(scores), NEIGHBOURS), dtype=int)
    for start in range(0, len(scores), 2000):
        some = slice(start, start + 2000)
        distances = lengths - 2 * scores[some] @ known.T
        nearest[some] = np.argpartition(distances, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]

    def placed(moved):
        everyone = moved[nearest].mean(axis=1)
        everyone[rows] = moved
        return everyone - everyone.mean(axis=0)

    return placed


def views_for(data: Explored) -> list[str]:
    """The planes that can be looked at here."""
    import importlib.util

    views = [PCA]
    if data.codes is not None:
        views.append(DISCRIMINANT)
    if importlib.util.find_spec("openTSNE") is not None:
        views.append(TSNE)
    return views
