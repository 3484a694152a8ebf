"""How likely a discriminant finds the class of each row when it has not seen that row.

Leaving row i of class c out changes the class mean and takes f d d' off the scatter within classes,
with d = y_i - m_c and f = n_c / (n_c - 1). By the formula of Sherman and Morrison the distances to
all class means follow from those of the whole fit: nothing is fitted again. In the eigenbasis of
the scatter every shrinkage costs one product.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.arrays import as_numpy, eigh, eps_of, namespace, on_device_of, positive_part

# Candidates: shrinkage as a share of the variance within classes, and the factor on distances that
# calibrates probabilities (below one where the Gaussian model is too sure of itself).
SHRINKAGES = np.logspace(-6, 2, 17)
TEMPERATURES = np.logspace(-3, 0.5, 15)


@dataclass
class Likelihoods:
    """Sums of log-likelihoods of left-out rows, one per shrinkage and temperature."""

    sums: np.ndarray

    def __add__(self, other: "Likelihoods") -> "Likelihoods":
        return Likelihoods(self.sums + other.sums)

    def best(self) -> tuple[float, float]:
        """(shrinkage, temperature); of equally good ones the largest shrinkage."""
        best = self.sums.max()
        close = self.sums >= best - 1e-9 * max(1.0, abs(best))
        i, j = max(zip(*np.nonzero(close)), key=lambda pair: pair[0])
        return float(SHRINKAGES[i]), float(TEMPERATURES[j])


@dataclass(frozen=True)
class LeftOut:
    """The statistic of a fold: log-likelihoods of left-out rows, from sums over all rows.

    Attributes
    ----------
    within : scatter within classes, of coordinates whose mean is `means`, per class
    counts : rows of each class
    labels : of the classes, sorted; None where rows come with class numbers
    priors : given probabilities of the classes, or None for their shares
    unit : the variance that a shrinkage is a share of
    """

    values: Any
    vectors: Any
    means: Any
    counts: np.ndarray
    labels: np.ndarray | None
    priors: Sequence[float] | None
    unit: float

    @classmethod
    def from_sums(cls, within, means, counts, labels=None, priors=None) -> "LeftOut":
        xp = namespace(within)
        values, vectors = eigh(within)
        values = positive_part(values)
        unit = float(xp.sum(values)) / (counts.sum() - len(counts))
        return cls(values, vectors, means @ vectors, counts, labels, priors, unit)

    def __call__(self, Phi, labels, rho2=None) -> Likelihoods:
        codes = labels if self.labels is None else np.searchsorted(self.labels, labels)
        codes = np.asarray(as_numpy(codes)).astype(int).ravel()
        Y = Phi @ on_device_of(self.vectors, Phi)
        seen = np.flatnonzero(self.counts[codes] > 1)  # alone in its class: nothing is left of it
        sums = np.zeros((len(SHRINKAGES), len(TEMPERATURES)))
        if not len(seen):
            return Likelihoods(sums)
        priors = self._priors(codes[seen])
        for i, share in enumerate(SHRINKAGES):
            distances = self._distances(Y, codes, share)[seen]
            nearest = distances - distances.min(axis=1, keepdims=True)
            for j, temperature in enumerate(TEMPERATURES):
                scores = priors - 0.5 * temperature * nearest
                top = scores.max(axis=1, keepdims=True)
                total = np.log(np.exp(scores - top).sum(axis=1)) + top[:, 0]
                own = scores[np.arange(len(seen)), codes[seen]]
                sums[i, j] = float((own - total).sum())
        return Likelihoods(sums)

    def _priors(self, codes):
        """Logarithms, one row per left-out row."""
        if self.priors is not None:
            return np.log(np.asarray(self.priors, dtype=float))[None, :]
        left = self.counts[None, :] - np.eye(len(self.counts))[codes]
        return np.log(np.maximum(left, 1e-300) / (self.counts.sum() - 1))

    def _distances(self, Y, codes, share):
        """Squared Mahalanobis distances of left-out rows to the class means without them."""
        xp, ridge = namespace(Y), share * self.unit
        least = eps_of(Y) * float(xp.max(self.values)) * self.values.shape[0]
        ridge = float(max(ridge, least, xp.finfo(Y.dtype).smallest_normal))
        gain = on_device_of(1 / (self.values + ridge), Y)
        means = on_device_of(self.means, Y)
        own = as_numpy((Y * Y) @ gain).astype(np.float64)
        to_means = as_numpy((Y * gain[None, :]) @ means.T).astype(np.float64)
        between = as_numpy((means * gain[None, :]) @ means.T).astype(np.float64)
        rows, classes = np.arange(len(codes)), np.diagonal(between)
        plain = own[:, None] - 2 * to_means + classes[None, :]
        mine = to_means[rows, codes]
        cross = own[:, None] - to_means - mine[:, None] + between[codes]
        q = np.maximum(plain[rows, codes], 0.0)
        n = self.counts[codes].astype(float)
        f = n / np.maximum(n - 1, 1)
        # 1 - f q >= ridge / (f |d|^2 + ridge): a bound where the difference is all rounding.
        d = Y - xp.take(means, on_device_of(codes, Y, dtype=xp.int64), axis=0)
        length = as_numpy(xp.sum(d * d, axis=1)).astype(np.float64)
        rest = np.maximum(1 - f * q, ridge / (f * length + ridge))
        distances = plain + (f / rest)[:, None] * cross**2
        distances[rows, codes] = f**2 * q / rest
        return (self.counts.sum() - 1 - len(self.counts)) * np.maximum(distances, 0.0)
