"""Permutation tests on sums: rows are exchanged in units, and permutations are matrix products.

Every row of the first sample has the label X and every row of the second Y. Where both come from
one distribution, exchanging labels changes nothing. With n rows, B permutations of rows would cost
n B r. So rows are first added up: each sample is dealt at random into units of m rows, and whole
units change their labels. These exchanges form a group too, so the level of the test is exact for
any m. Its power is that of exchanging rows as long as there are hundreds of units: the spread of
the permuted statistic gains a share 1 / (number of units) of the true difference. Rows that are
left over keep their label.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.special import logsumexp

from ..engine import Domain

# Units of the smaller sample: enough that more would not change the power.
_UNITS = 1024
# The larger sample has at most this many times more; its other rows keep their label.
_MOST_TIMES = 4
# Permutations multiplied at once.
_BLOCK = 256
_MOST_PERMUTATIONS = 1_000_000
# Sharpness of the soft maximum over scales: from a mean (0) to a maximum (infinity).
_SHARPNESS = 3.0
# Sums over equal rows agree to this share of them.
_ROUNDING = 1e-14


class RandomUnits:
    """A random division of n rows into `count` units of `size` rows; the others stay.

    All divisions are equally likely, whatever the order of the rows. Rows come chunk by chunk, and
    no memory of the size of n is needed: a chunk's share of every unit is hypergeometric.
    """

    def __init__(self, n: int, size: int, rng: np.random.Generator):
        self.count = min(n // size, _MOST_TIMES * _UNITS)
        self.in_order = size == 1 and self.count == n
        self.rng, self.dealt = rng, 0
        self.left = np.full(self.count + 1, size, dtype=np.int64)
        self.left[-1] = n - size * self.count

    def units(self, length: int) -> np.ndarray:
        """The unit of each of the next rows; `count` for rows that stay."""
        if self.in_order:
            self.dealt += length
            return np.arange(self.dealt - length, self.dealt)
        taken = self.rng.multivariate_hypergeometric(self.left, length, method="marginals")
        self.left -= taken
        return self.rng.permutation(np.repeat(np.arange(self.count + 1), taken))

    def sums(self, blocks: Iterable[np.ndarray], width: int) -> np.ndarray:
        """Sums over the units of rows that come in blocks; those of rows that stay come last."""
        sums = np.zeros((self.count + 1, width))
        for Phi in blocks:
            add_rows(sums, self.units(len(Phi)), Phi)
        return sums


def unit_size(n: int) -> int:
    """Rows in a unit where the smaller sample has n: a power of two, 1 up to _UNITS rows."""
    return 1 << max(0, (-(-n // _UNITS) - 1).bit_length())


def add_rows(sums: np.ndarray, units: np.ndarray, Phi: np.ndarray) -> None:
    """sums[u] += the rows of Phi that belong to unit u."""
    rows = np.arange(len(units))
    member = scipy.sparse.csr_array(
        (np.ones(len(units)), (units, rows)), shape=(len(sums), len(units))
    )
    sums += member @ Phi


def beyond_rounding(differences: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Differences of such values, and 0 for what rounding has left of equal ones: standardised, it
    would look like a difference."""
    return np.where(np.abs(differences) > _ROUNDING * np.abs(values), differences, 0.0)


# Coordinates of no rows, of any width.
NO_ROWS = np.zeros((0, 1))


@dataclass(frozen=True)
class UnitSums:
    """Sums of coordinates over units of rows, and over the rows that stay, of two samples."""

    x: np.ndarray  # (units + 1, r): the last row belongs to the rows that stay
    y: np.ndarray
    n_x: int
    n_y: int

    def difference(self, x: np.ndarray = NO_ROWS, y: np.ndarray = NO_ROWS) -> np.ndarray:
        """mean phi(x) - mean phi(y), without some rows, given by their coordinates."""
        mean_x = (self.x.sum(axis=0) - x.sum(axis=0)) / (self.n_x - len(x))
        return mean_x - (self.y.sum(axis=0) - y.sum(axis=0)) / (self.n_y - len(y))

    def permuted(
        self, parts: list[slice], n_permutations: int, rng: np.random.Generator
    ) -> np.ndarray:
        """|mean phi(x) - mean phi(y)|^2 for every permutation (rows, the true labels first) and
        every part of the columns (one per length scale)."""
        units = np.concatenate([self.x[:-1], self.y[:-1]])
        total = self.x.sum(axis=0) + self.y.sum(axis=0)
        true = np.zeros((1, len(units)))  # one at each unit that has label Y
        true[0, len(self.x) - 1 :] = 1.0
        squared = []
        for start in range(-_BLOCK, n_permutations, _BLOCK):
            labels = np.tile(true, (min(_BLOCK, n_permutations - start), 1))
            labels = true if start < 0 else rng.permuted(labels, axis=1)
            mean_y = (labels @ units + self.y[-1]) / self.n_y
            # mean_x = (total - n_y mean_y) / n_x, so one product gives both means.
            delta = total / self.n_x - mean_y * (1 + self.n_y / self.n_x)
            delta = beyond_rounding(delta, total / self.n_x)
            squared.append(np.stack([(delta[:, p] ** 2).sum(axis=1) for p in parts], axis=1))
        return np.concatenate(squared)


class _Verdict(NamedTuple):
    """The result of permutations of a statistic taken at several scales."""

    statistic: float
    p_value: float
    threshold: float
    chosen: int  # the scale that weighs most
    permuted: np.ndarray  # the statistic of every permutation


def judge(squared: np.ndarray, level: float, scales: tuple[float, ...]) -> _Verdict:
    """Combine the scales and compare the true labels (row 0) with the permuted ones.

    Each scale is measured in standard deviations of its own permutations, after a cube root, which
    makes sums of squares nearly normal (Wilson and Hilferty): so no scale outweighs another by its
    units or its skewness. The statistic is a soft maximum over the scales. Broad scales count more
    (by the square root): they see shifts of the mean, the most common difference, and agree with
    each other, while a narrow one adds mostly noise unless the difference is local. All rows are
    treated alike, the true one included, so the rank of row 0 is uniform under the hypothesis.
    """
    z = _externally_standardised(np.cbrt(squared))
    weights = np.sqrt(scales) / np.sqrt(scales).sum()
    combined = logsumexp(_SHARPNESS * z, axis=1, b=weights) / _SHARPNESS
    statistic, permuted = float(combined[0]), combined[1:]
    # Labels that are exchanged within a sample give the same sums, in another order of adding.
    slack = 1e-7 * max(1.0, abs(statistic))
    count = 1 + int((permuted >= statistic - slack).sum())
    # Significant: larger than all but the share `level` of the values.
    allowed = int(level * len(z) * (1 + 1e-12))
    threshold = float(np.sort(combined)[::-1][min(allowed, len(z) - 1)])
    chosen = int((z[0] + np.log(weights) / _SHARPNESS).argmax())
    return _Verdict(statistic, count / len(z), threshold, chosen, permuted)


def _externally_standardised(v: np.ndarray) -> np.ndarray:
    """Every value in standard deviations of all others in its column, from their mean. A monotone
    function of the usual standardisation: no value is held back by having been part of the spread
    it is measured with."""
    m = len(v)
    deviation = beyond_rounding(v - v.mean(axis=0), v)
    total = (deviation**2).sum(axis=0)
    # Leaving out i: the mean moves by d_i / (m - 1), the sum of squares falls by d_i^2 m / (m - 1).
    # An outlier takes nearly all of the sum with it: what is left is at least its rounding.
    rest = np.maximum(total - deviation**2 * m / (m - 1), 1e-14 * total)
    spread = np.sqrt(rest / (m - 2))
    return np.divide(
        deviation * m / (m - 1), spread, out=np.zeros_like(deviation), where=spread > 0
    )


def check_permutations(n_permutations: Any, level: Any) -> tuple[int, float]:
    """Enough permutations for the level."""
    Domain.SHARE("level", level)
    least = int(np.ceil(1 / level)) - 1
    if not Domain.count(max(least, 2), _MOST_PERMUTATIONS).accepts(n_permutations):
        raise ValueError(
            f"n_permutations must be an integer, at least {max(least, 2)} for a level of {level} "
            f"and at most {_MOST_PERMUTATIONS}, got {n_permutations!r}."
        )
    return int(n_permutations), float(level)
