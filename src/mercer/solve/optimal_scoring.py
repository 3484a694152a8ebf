"""Fisher's discriminant from ridge on class indicators: optimal scoring.

With coordinates about their mean, S_T = S_W + M'N M: M the class means, N their sizes. Ridge with
an intercept and penalty s on the indicators Y has fitted values f with (f - N / n) N^-1 = Phi G M',
G = (S_T + s I)^-1, so that Q = M G M' and A = N^-1 - Q = N^-1 Y'(Y - f) N^-1 + 11'/n are known
from its residuals. Then, by the formula of Woodbury,

    (S_W + s I)^-1 M' = G M' A^-1 N^-1   and   B = M (S_W + s I)^-1 M' = N^-1 A^-1 N^-1 - N^-1:

axes and decision functions are combinations of the functions that ridge has found, whoever solved
for them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_softmax

from ..engine import (
    Array,
    MatrixProduct,
    as_numpy,
    eigh,
    eps_of,
    evenly,
    namespace,
    on_device_of,
    positive_part,
)
from ..fit import OnPanels, added_up
from ..rows import Column, Spread
from ..space import factorize, signs
from .problem import Choice, RidgeProblem

# Candidates: shrinkage as a share of the variance within classes, and the factor on distances that
# calibrates probabilities (below one where the Gaussian model is too sure of itself).
_SHRINKAGES = np.logspace(-6, 2, 17)
_TEMPERATURES = np.concatenate([[0.0], np.logspace(-3, 0.5, 15)])
# Numbers that the likelihood chooses: by chance alone, twice its gain is about as large. Shrinkages
# are so alike that theirs counts half.
_CHOSEN = 1.5
# Rows that choose the shrinkage where coordinates of all are not at hand.
_ROWS_FOR_SHRINKAGE = 2000
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class _Mixture:
    """z -> (f(z) - shares) mix + constants, for the functions f of ridge on class indicators."""

    mix: np.ndarray
    constants: np.ndarray
    shares: np.ndarray

    def __call__(self, f: np.ndarray) -> np.ndarray:
        values: np.ndarray = (f - self.shares) @ self.mix + self.constants
        return values

    def of(self, prediction: Any) -> Any:
        """The same functions as an Expansion, or on the coordinates of a map."""
        W, b = prediction.W if hasattr(prediction, "W") else prediction.coef, prediction.b
        mix = on_device_of(self.mix, W)
        constant = b @ mix + on_device_of(self.constants - self.shares @ self.mix, W)
        return prediction.with_coefficients(W @ mix, constant)


@dataclass(frozen=True)
class Fisher:
    """The discriminant with scatter S_W + s I."""

    counts: np.ndarray  # rows of each class
    between: np.ndarray  # B, the inner products of the class means
    turn: np.ndarray  # (f - shares) turn are the inner products with the class means

    @classmethod
    def of(cls, left: Any, counts: np.ndarray) -> "Fisher":
        """From Y'(Y - f), and the sizes of the classes, which are not empty."""
        counts = np.asarray(counts, dtype=float)
        root, n = np.sqrt(counts), counts.sum()
        # N^1/2 A N^1/2 is one along N^1/2 1, since residuals sum to zero over the classes; apart
        # from that direction its values may be tiny, where ridge explains the classes.
        q = root / n**0.5
        off = np.eye(len(counts)) - np.outer(q, q)
        R = off @ (as_numpy(left) / np.outer(root, root)) @ off
        values, V = np.linalg.eigh((R + R.T) / 2)
        other = np.argsort(np.abs(q @ V))[: len(counts) - 1]
        values = np.maximum(values[other], max(_EPS * float(values.max()), 1e-200))
        inverse = np.outer(q, q) + (V[:, other] / values) @ V[:, other].T
        between = (inverse - np.eye(len(counts))) / np.outer(root, root)
        return cls(counts, between, inverse / np.outer(root, root))

    @classmethod
    def of_solution(cls, solution: Any, problem: RidgeProblem, spread: Any = None) -> "Fisher":
        """From ridge on class indicators.

        From `spread`, the sums of a map that passed over rows; from the coefficients of one that
        held them, where Y'E = E'E + s w'w has no differences; or without a map, by a second
        evaluation that makes the error of approximate coefficients one of second order.
        """
        s = float(solution.alphas[0])
        a: Any = None if solution.dual is None else as_numpy(solution.dual).astype(np.float64)
        counts = as_numpy(problem.T.sum(axis=0) if spread is None else spread.target)
        counts = counts.astype(np.float64)
        if spread is None:
            Y, kernel = np.asarray(problem.T), problem.kernel
            points = kernel.layout.in_double(problem.training.points)
            left = (s * a).T @ (2 * Y - as_numpy(solution.prediction(points)) - s * a)
        elif a is None or s == 0:
            fitted = as_numpy(spread.cross).T.astype(np.float64) @ as_numpy(solution.coef)
            left = np.diag(counts) - np.outer(counts, counts) / counts.sum() - fitted
        else:
            # Two numbers of size one, whatever the scale of the kernel.
            a, w = s * a, s**0.5 * as_numpy(solution.coef).astype(np.float64)
            left = a.T @ a + w.T @ w
        return cls.of((left + left.T) / 2, counts)

    @property
    def shares(self) -> np.ndarray:
        shares: np.ndarray = self.counts / self.counts.sum()
        return shares

    @property
    def freedom(self) -> float:
        return max(float(self.counts.sum()) - len(self.counts), 1.0)

    def axes(self, priors: np.ndarray, size: int) -> tuple[_Mixture, np.ndarray]:
        """(axes that separate the class means best, their shares of the separation).

        Within classes, scores along them have variance one.
        """
        apart = np.eye(len(priors)) - priors[:, None]  # columns m_c - sum of priors * means
        weights = np.sqrt(priors)
        spread = (apart.T @ self.between @ apart) * np.outer(weights, weights)
        values, vectors = np.linalg.eigh(spread)
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        length = np.sqrt(np.where(values > _EPS * values.sum(), values, np.inf))[:size]
        mix = apart @ (weights[:, None] * vectors[:, :size] / length) * self.freedom**0.5
        mix = mix * signs(apart.T @ self.between @ mix)[None, :]
        total = values.sum()
        constants = -(priors @ self.between @ mix)
        explained = values[:size] / (total if total > 0 else 1.0)
        return _Mixture(self.turn @ mix, constants, self.shares), explained

    def decision(self, priors: np.ndarray, temperature: float = 1.0) -> _Mixture:
        """log p(c | z) = z'A^-1 m_c - m_c'A^-1 m_c / 2 + log prior, up to a common constant.

        With two classes, their difference.
        """
        C = len(priors)
        mix = (np.eye(C) - priors[:, None]) * (self.freedom * temperature)
        middle = 0.5 * (np.eye(C) + priors[:, None])
        constants = np.log(priors) - np.einsum("ic,ij,jc->c", middle, self.between, mix)
        if C == 2:
            mix, constants = mix[:, 1:] - mix[:, :1], constants[1:] - constants[:1]
        return _Mixture(self.turn @ mix, constants, self.shares)


# --- the shrinkage --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shrinkage:
    """The penalty of a discriminant, relative to the variance within classes."""

    share: float | None  # given, or None to choose it by the likelihood of rows left out
    # From labels and sizes of the classes to probabilities; None for their shares
    priors: Callable[[Any, np.ndarray], np.ndarray | None] = lambda labels, counts: None

    @property
    def smallest(self) -> float:
        return 1.0 if self.share is None else float(self.share > 0)

    def choice(self, problem: RidgeProblem, fit: Any, spread: Any, Phi: Any) -> Choice:
        """From the sums of a fitted map, and its coordinates Phi where they are held."""
        counts = np.rint(as_numpy(spread.target).astype(np.float64))
        share, temperature = self.share, 1.0
        if share is None:
            labels, T = fit.sums.labels if problem.labels else None, problem.T
            left_out = _LeftOutClasses.from_sums(spread, labels, self.priors(labels, counts))
            given = T.values if isinstance(T, Column) else as_numpy(T)
            codes = given if problem.labels else np.argmax(given, axis=1)
            if Phi is not None:
                likelihoods = added_up(left_out, Phi, [codes])
            else:
                rows = problem.training.rows_of(fit.map.kernel)
                column = T if problem.labels else Column(codes, "y")
                likelihoods = rows.fold(OnPanels(fit.map, left_out), [column])
            share, temperature = _most_likely(likelihoods)
        xp, scatter = namespace(spread.scatter), spread.scatter
        own = xp.linalg.diagonal(scatter)
        unit = _within_trace(own, spread.cross, counts) / (counts.sum() - len(counts))
        moved = own + spread.n * spread.mean**2
        least = eps_of(scatter) * scatter.shape[0] * float(as_numpy(moved).max(initial=0.0))
        alpha = max(share * unit, least) if share > 0 else 0.0
        return _chosen(alpha, int(spread.n), share, temperature)

    def choice_without_map(self, problem: RidgeProblem) -> Choice:
        """On a sample of the rows, and by one product with the kernel matrix."""
        Y = np.asarray(problem.T)
        counts, share, temperature, judged = Y.sum(axis=0), self.share, 1.0, 0
        if share is None:
            share, temperature, judged = self._on_sample(problem, np.argmax(Y, axis=1))
        # The traces of the scatter within classes and of K, by one product with it.
        training, kernel = problem.training, problem.kernel
        X = kernel.layout.in_double(training.points)
        U = on_device_of(Y / np.sqrt(counts), X, dtype=float)
        if training.workers is None:
            product = MatrixProduct.of(kernel, X)
        else:
            training.workers.give(kernel, X)
            product = training.workers.exact_product()
        xp = namespace(U)
        trace = float(xp.sum(kernel.diagonal(X)))
        within = trace - float(xp.sum(U * product(U)))
        alpha = max(share * within / (len(Y) - len(counts)), _EPS * trace)
        return _chosen(alpha, judged, share, temperature)

    def _on_sample(self, problem: RidgeProblem, codes: np.ndarray) -> tuple[float, float, int]:
        """(shrinkage, temperature, rows): the most likely ones for left-out rows of a sample."""
        # Evenly among rows sorted by class: every class has its share.
        order = np.argsort(codes, kind="stable")
        some = np.sort(order[evenly(len(codes), _ROWS_FOR_SHRINKAGE)])
        found, own = np.unique(codes[some], return_inverse=True)
        rows = problem.training.some(some)
        Phi = as_numpy(factorize(rows.kernel, rows.points).F).astype(np.float64)
        spread = Spread.of(Phi, np.eye(len(found))[own])
        counts = np.bincount(codes).astype(float)
        given = self.priors(None, counts) if len(found) == len(counts) else None
        likelihoods = _LeftOutClasses.from_sums(spread, None, given)(Phi, own)
        return *_most_likely(likelihoods), len(some)


def _chosen(alpha: float, rows: int, share: float, temperature: float) -> Choice:
    return Choice(alpha, np.array([alpha]), np.zeros(1), rows, None, share, temperature)


def _most_likely(sums: np.ndarray) -> tuple[float, float]:
    """(shrinkage, temperature) of the largest sum; of equally good ones the largest shrinkage.

    The best of many is better by chance, too. So the temperature is multiplied by the share of the
    gain that chance does not explain (van Houwelingen and le Cessie, 1990): on coin flips it is
    nearly zero, and probabilities are the shares of the classes.
    """
    best, shares_alone = sums.max(), sums[0, 0]
    earned = 1 - _CHOSEN / max(2 * (best - shares_alone), _CHOSEN)
    if earned <= 0:
        return float(_SHRINKAGES[-1]), float(_TEMPERATURES[1])
    close = sums >= best - 1e-9 * max(1.0, abs(best))
    i, j = max(zip(*np.nonzero(close)), key=lambda pair: pair[0])
    return float(_SHRINKAGES[i]), float(earned * _TEMPERATURES[j])


@dataclass(frozen=True)
class _LeftOutClasses:
    """The statistic of a fold: how likely rows are found in their class without having been seen.

    Leaving row i of class c out changes the class mean and takes f d d' off the scatter within
    classes, with d = y_i - m_c and f = n_c / (n_c - 1). By the formula of Sherman and Morrison the
    distances to all class means follow from those of the whole fit, and these from ridge's fitted
    values and leverages: one decomposition of S_T serves every shrinkage.
    """

    values: Any  # of S_T = V D V'
    vectors: Any
    mean: Any  # of the coordinates
    projected: Any  # V'Phi'Y
    counts: np.ndarray  # rows of each class
    labels: np.ndarray | None  # of the classes, sorted; None where rows come with class numbers
    priors: Sequence[float] | None

    @classmethod
    def from_sums(cls, spread: Any, labels: Any = None, priors: Any = None) -> "_LeftOutClasses":
        """From a Spread with class indicators as targets."""
        values, vectors = eigh(spread.scatter)
        counts = np.rint(as_numpy(spread.target).astype(np.float64))
        cross = vectors.T @ spread.cross
        return cls(positive_part(values), vectors, spread.mean, cross, counts, labels, priors)

    @property
    def unit(self) -> float:
        """The variance within classes, which a shrinkage is a share of."""
        return _within_trace(self.values, self.projected, self.counts) / self._freedom

    @property
    def _freedom(self) -> float:
        return float(self.counts.sum()) - len(self.counts)

    def __call__(self, Phi: Any, labels: Any, rho2: Any = None) -> np.ndarray:
        """Sums of log-likelihoods, one per shrinkage and temperature."""
        codes = labels if self.labels is None else np.searchsorted(self.labels, labels)
        codes = np.asarray(as_numpy(codes)).astype(int).ravel()
        seen = np.flatnonzero(self.counts[codes] > 1)  # alone in its class: nothing is left of it
        sums = np.zeros((len(_SHRINKAGES), len(_TEMPERATURES)))
        if not len(seen):
            return sums
        if self.priors is None:  # those of the other rows
            left = self.counts[None, :] - np.eye(len(self.counts))[codes[seen]]
            priors = np.log(np.maximum(left, 1e-300) / (self.counts.sum() - 1))
        else:
            priors = np.log(np.asarray(self.priors, dtype=float))[None, :]
        for i, distances in enumerate(self._distances(Phi, codes)):
            nearest = distances[seen] - distances[seen].min(axis=1, keepdims=True)
            for j, temperature in enumerate(_TEMPERATURES):
                likely = log_softmax(priors - 0.5 * temperature * nearest, axis=1)
                sums[i, j] = float(likely[np.arange(len(seen)), codes[seen]].sum())
        return sums

    def _distances(self, Phi: Array, codes: np.ndarray) -> Iterator[np.ndarray]:
        """Squared Mahalanobis distances of left-out rows to the class means without them."""
        xp, C = namespace(Phi), len(self.counts)
        Y = (Phi - on_device_of(self.mean, Phi)[None, :]) @ on_device_of(self.vectors, Phi)
        tiny = float(xp.finfo(Y.dtype).smallest_normal)
        largest = float(as_numpy(self.values).max(initial=0.0))
        least = max(eps_of(Y) * largest * self.values.shape[0], tiny)
        ridges = np.maximum(_SHRINKAGES * self.unit, least)
        gains = 1 / (as_numpy(self.values).astype(np.float64)[:, None] + ridges[None, :])
        projected = as_numpy(self.projected).astype(np.float64) / self.counts
        scaled = gains[:, :, None] * projected[:, None, :]
        flat = on_device_of(scaled.reshape(len(gains), len(ridges) * C), Y)
        own = as_numpy((Y * Y) @ on_device_of(gains, Y)).astype(np.float64)
        to_means = as_numpy(Y @ flat).astype(np.float64).reshape(len(codes), len(ridges), C)
        # |y - m_c|^2, for the bound below
        lengths = as_numpy(xp.sum(Y * Y, axis=1)).astype(np.float64)
        inner = as_numpy(Y @ on_device_of(projected, Y)).astype(np.float64)
        apart = lengths - 2 * inner[np.arange(len(codes)), codes]
        apart = np.maximum(apart + (projected**2).sum(axis=0)[codes], 0.0)
        for i, ridge in enumerate(ridges):
            Q = projected.T @ scaled[:, i, :]
            A = np.diag(1 / self.counts) - Q
            turn = np.linalg.pinv((A + A.T) / 2, hermitian=True) / self.counts[None, :]
            between = (Q @ turn + (Q @ turn).T) / 2
            P = to_means[:, i, :]
            own_w = own[:, i] + np.einsum("ic,ic->i", P @ (turn * self.counts[None, :]), P)
            yield self._without(own_w, P @ turn, between, codes, apart, ridge)

    def _without(
        self,
        own: np.ndarray,
        to_means: np.ndarray,
        between: np.ndarray,
        codes: np.ndarray,
        apart: np.ndarray,
        ridge: float,
    ) -> np.ndarray:
        rows, classes = np.arange(len(codes)), np.diagonal(between)
        plain = own[:, None] - 2 * to_means + classes[None, :]
        mine = to_means[rows, codes]
        cross = own[:, None] - to_means - mine[:, None] + between[codes]
        q = np.maximum(plain[rows, codes], 0.0)
        n = self.counts[codes].astype(float)
        f = n / np.maximum(n - 1, 1)
        # 1 - f q >= ridge / (f |d|^2 + ridge): a bound where the difference is all rounding.
        rest = np.maximum(1 - f * q, ridge / (f * apart + ridge))
        distances = plain + (f / rest)[:, None] * cross**2
        distances[rows, codes] = f**2 * q / rest
        scaled: np.ndarray = (self._freedom - 1) * np.maximum(distances, 0.0)
        return scaled


def _within_trace(values: Any, projected: Any, counts: np.ndarray) -> float:
    """trace(S_W) = trace(S_T) - sum_c n_c |m_c|^2, from V'Phi'Y in any basis V."""
    total = float(namespace(values).sum(values))
    squares = as_numpy(namespace(projected).sum(projected**2, axis=0)).astype(np.float64)
    return total - float((squares / counts).sum())
