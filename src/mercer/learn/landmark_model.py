"""LandmarkModel: ridge on the coordinates of some landmarks, with its uncertainty."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..engine import tiles
from ..engine.arrays import (
    as_numpy,
    gram,
    namespace,
    put,
    put_rows,
    row_norms,
    solve_triangular,
    transposed_product,
)
from ..kernels import Kernel
from ..kernels.points import take
from ..solve.ridge_path import RidgePath
from .landmarks import factor
from .observations import Observations

# Values of coordinates computed at once.
PANEL_VALUES = 1 << 23


@dataclass
class LandmarkModel:
    """Ridge on coordinates phi(z) = C^-1 k(S, z), fitted in one pass over panels of rows.

    indices : which of the rows are the landmarks S
    """

    kernel: Kernel
    S: Any
    C: Any
    mean: Any
    offset: Any
    L: Any
    w: Any
    alpha: float
    n: int
    indices: np.ndarray | None = None

    @classmethod
    def fit(
        cls,
        kernel: Kernel,
        rows: Observations,
        alpha: float,
        rng: np.random.Generator,
        n_landmarks: int,
        *,
        verbose: bool = False,
    ) -> "LandmarkModel":
        """Some rows at random, in random order, are the landmarks; all rows are fitted."""
        X, T, weights = rows.X, rows.T, rows.weights
        xp, n = namespace(X), rows.n
        indices = rng.permutation(n)[:n_landmarks]
        S = take(X, indices)
        C = factor(tiles.evaluate(kernel, S))
        second: Any = 0.0
        cross: Any = 0.0
        mean: Any = 0.0
        offset: Any = 0.0
        panel = max(256, PANEL_VALUES // n_landmarks)
        with tiles.progress_bar(verbose, "fitting through landmarks", n) as bar:
            for a in range(0, n, panel):
                b = min(a + panel, n)
                x, t = X[a:b, :], T[a:b, :]
                F = solve_triangular(C, tiles.evaluate(kernel, x, S).T).T
                if weights is not None:
                    root = xp.sqrt(weights[a:b])[:, None]
                    F, t = F * root, t * root
                ones = xp.ones_like(t[:, :1]) if weights is None else root
                second, cross = second + gram(F), cross + transposed_product(F, t)
                mean = mean + transposed_product(F, ones)[:, 0]
                offset = offset + xp.sum(t * ones, axis=0)
                bar.update(b - a)
        mean, offset = mean / n, offset / n  # the weights sum to n
        second = second - n * mean[:, None] * mean[None, :]
        cross = cross - n * mean[:, None] * offset[None, :]
        index = np.arange(S.shape[0])
        L = factor(put(second, index, index, xp.linalg.diagonal(second) + alpha))
        w = solve_triangular(L, solve_triangular(L, cross), transpose=True)
        return cls(kernel, S, C, mean, offset, L, w, alpha, n, indices)

    @classmethod
    def of_path(
        cls, kernel: Kernel, X: Any, indices: np.ndarray, C: Any, path: RidgePath, alpha: float
    ) -> "LandmarkModel":
        """From ridge on the coordinates of all rows, which is known for every penalty."""
        second = path.V @ (path.values[:, None] * path.V.T)
        S, index = take(X, indices), np.arange(len(indices))
        own = namespace(second).linalg.diagonal(second)
        L = factor(put(second, index, index, own + alpha))
        w, _ = path.coefficients(alpha)
        return cls(kernel, S, C, path.mean, path.offset, L, w, alpha, path.n, indices)

    def first(self, n_landmarks: int) -> "LandmarkModel":
        """The same ridge on the first landmarks only: leading blocks of both factors."""
        m = n_landmarks
        if m >= self.S.shape[0]:
            return self
        C, L = self.C[:m, :m] + 0.0, self.L[:m, :m] + 0.0
        cross = (self.L @ (self.L.T @ self.w))[:m, :]
        w = solve_triangular(L, solve_triangular(L, cross), transpose=True)
        S, mean = self.S[:m, :] + 0.0, self.mean[:m] + 0.0
        indices = None if self.indices is None else self.indices[:m]
        return replace(self, S=S, C=C, mean=mean, L=L, w=w, indices=indices)

    def coordinates(self, Z):
        return solve_triangular(self.C, tiles.evaluate(self.kernel, Z, self.S).T).T

    def variance(self, Z):
        """Of a new observation: unseen part, what the noise leaves open, and the noise itself."""
        unseen, open_part, _ = self._parts(Z)
        return unseen + self.alpha * (1 + open_part + 1 / self.n)

    def left_out(self, rows: Observations, which: np.ndarray) -> tuple[Any, Any, Any]:
        """(errors, 1 - leverages, variances) of training rows, predicted without one observation.

        `which` are the numbers of these rows: where one is a landmark, it is left out as a landmark
        too. The variance is that of a new observation of weight one.
        """
        xp = namespace(rows.X)
        unseen, open_part, F = self._parts(rows.X)
        F = F - self.mean
        answers = xp.concat([unseen[:, None], open_part[:, None], F @ self.w + self.offset], axis=1)
        places, landmarks = self._landmarks_among(rows, which)
        if len(places):
            others = self._without(landmarks, take(answers, places), take(F, places))
            answers = put_rows(answers, places, others)
        unseen, open_part, fitted = answers[:, 0], answers[:, 1], answers[:, 2:]
        leverage = open_part + 1 / self.n
        left = 1 - left_weight(rows) * leverage
        left = xp.where(left > 1e-6, left, xp.full_like(left, 1e-6))
        return (rows.T - fitted) / left[:, None], left, unseen + self.alpha * (1 + leverage / left)

    def _landmarks_among(self, rows, which):
        """(places, landmarks): rows that are landmarks and have no copies, which would stay."""
        number = np.full(self.n, -1)
        if self.indices is not None:
            number[self.indices] = np.arange(len(self.indices))
        number = number[which]
        if rows.share is not None:
            number[as_numpy(rows.share) < 1] = -1
        places = np.flatnonzero(number >= 0)
        return places, number[places]

    def _without(self, landmarks, answers, F):
        """Unseen part, open part and fitted value of landmarks by all other landmarks.

        u = C^-1 e_j / |C^-1 e_j| is the direction that the others do not span: they miss
        1 / |C^-1 e_j|^2 of k(s_j, s_j), less what `factor` added to it to have a C at all. With
        M = L L', leaving the coordinate along u out takes (u' M^-1 f)^2 / u' M^-1 u from
        f' M^-1 f, and (u' M^-1 f) (u' w) / u' M^-1 u from f' w.
        """
        xp = namespace(F)
        q = len(landmarks)
        E = put(xp.zeros_like(F.T), landmarks, np.arange(q), xp.ones_like(F[:, 0]))
        U = solve_triangular(self.C, E)
        squares = row_norms(U.T, xp)
        U = U / xp.sqrt(squares)[None, :]
        A, B = solve_triangular(self.L, U), solve_triangular(self.L, F.T)
        across, along = xp.sum(A * B, axis=0), row_norms(A.T, xp)
        open_part = answers[:, 1] - across**2 / along
        open_part = xp.where(open_part > 0, open_part, xp.zeros_like(open_part))
        fitted = answers[:, 2:] - (across / along)[:, None] * (U.T @ self.w)
        added = row_norms(take(self.C, landmarks), xp)
        added = added - self.kernel.diagonal(take(self.S, landmarks))
        missed = 1 / squares - added
        missed = xp.where(missed > 0, missed, xp.zeros_like(missed))
        return xp.concat([missed[:, None], open_part[:, None], fitted], axis=1)

    def _parts(self, Z):
        xp = namespace(Z)
        F = self.coordinates(Z)
        unseen = self.kernel.diagonal(Z) - row_norms(F, xp)
        open_part = row_norms(solve_triangular(self.L, (F - self.mean).T).T, xp)
        return xp.where(unseen > 0, unseen, xp.zeros_like(unseen)), open_part, F


def left_weight(rows: Observations) -> Any:
    """The weight that leaving one observation out takes from each row."""
    if rows.weights is None:
        return namespace(rows.X).ones_like(rows.T[:, 0])
    return rows.weights if rows.share is None else rows.weights * rows.share
