"""DriftDetector: a reference that batches of new rows are compared with."""

from __future__ import annotations

import warnings
from math import ceil
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .. import Kernel, KernelMap, TableEncoder
from ..engine import as_numpy
from ..estimators import KernelEstimator, all_or_nothing, kernel_of
from ..kernels import Input
from ..kernels import points as pts
from ..rows import lazily, read_sample, rows_at, validated_points
from ..tables import given
from .bulk import column_units
from .permutations import RandomUnits, UnitSums, add_rows, check_permutations, unit_size
from .result import TestResult, TwoSampleResult
from .samples import CHUNK_VALUES, Samples
from .spaces import POOL, Spaces, generator
from .two_sample import check_enough, check_spread


class DriftDetector(KernelEstimator):
    """Watch for drift: keep a summary of reference rows and test batches of new rows against it.

    `fit` sets aside part of the reference (at most half, at most 4096 rows), chooses the feature
    space on it, and adds up the coordinates of all other rows. So a batch is compared with rows
    that had no part in choosing the space, and the rate of false alarms is the level, if rows are
    independent of each other. What is stored does not grow with the reference.

    Two questions are answered. Has the batch as a whole drifted? `test(batch)` returns a
    :class:`TestResult` with the columns and rows that differ, `p_value(batch)` its p-value alone.
    Which rows are unlike the reference? `predict(batch)` says so row by row, as scikit-learn's
    outlier detectors do.

    Parameters
    ----------
    kernel : Kernel, str or KernelMap, default="rbf"
        Length scales that are left to the data are those of :func:`two_sample_test`.
    level : float, default=0.05
        Rate of false alarms: of batches for `test`, of rows for `predict`.
    n_permutations : int, default=1000
        Random splits of the rows that a batch is compared with: the smallest p-value is 1 /
        (n_permutations + 1).
    scales : list of float or None, default=None
        As in :func:`two_sample_test`.
    random_state : int, RandomState, Generator or None, default=None
        An integer gives the same answer every time; None draws anew.

    Attributes
    ----------
    maps_ : list of KernelMap
        The feature space at each length scale.
    row_map_ : KernelMap
        The one at the kernel's own scale, in which `predict` judges single rows.
    center_ : array of shape (rank,)
        The mean of the reference in it.
    scales_ : tuple of float
        Length scales of the maps, as multiples of the kernel's own.
    encoder_ : TableEncoder or None
        How data frames become numbers; None for other rows.
    units_ : array or float
        What the columns that it makes are divided by: less than 1 where a few extreme values have
        widened a column.
    reference_, columns_ : arrays
        The rows that were set aside, and the names of their columns; None where they have none.
    sums_ : list of arrays of shape (n_units, width)
        Coordinates of the other rows, summed over units of 1, 2, 4, ... rows.
    n_reference_ : int
        Rows that batches are compared with.
    offset_ : float
        `predict` marks rows whose `score_samples` is below this; -inf where the reference rows are
        too few to mark any.
    n_features_in_ : int
        Columns of the reference.
    feature_names_in_ : ndarray of str
        Only for frames.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import DriftDetector
    >>> rng = np.random.default_rng(0)
    >>> detector = DriftDetector(random_state=0).fit(rng.normal(size=(1000, 3)))
    >>> detector.p_value(rng.normal(size=(200, 3))) > 0.05
    True
    >>> batch = rng.normal(size=(200, 3)) + [0, 0, 0.5]
    >>> result = detector.test(batch)
    >>> result.differs, max(result.columns, key=result.columns.get)
    (True, 'x2')
    >>> far = np.array([[0.0, 0.0, 0.0], [9.0, 9.0, 9.0]])
    >>> detector.predict(far), detector.score_samples(far).argmin()  # -1: unlike the reference
    (array([ 1, -1]), np.int64(1))
    >>> bool((np.sign(detector.decision_function(far)) == detector.predict(far)).all())
    True
    """

    def __init__(
        self,
        kernel: Kernel | KernelMap | str = "rbf",
        *,
        level: float = 0.05,
        n_permutations: int = 1000,
        scales: ArrayLike | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.kernel = kernel
        self.level = level
        self.n_permutations = n_permutations
        self.scales = scales
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Input, y: object = None) -> Self:
        """Choose the space and add up the reference rows; `y` is not used."""
        check_permutations(self.n_permutations, self.level)
        kernel, rng = kernel_of(self.kernel), generator(self.random_state)
        reference = read_sample(X, kernel, "X", self)
        samples, n = Samples(kernel, reference, encode=False), reference.rows.n
        reference.keep_names(self)
        if n < 4:
            raise ValueError(
                f"a reference needs at least 4 rows, got n_samples={n}: half of them choose the "
                "feature space, and the others are compared with batches."
            )
        aside = np.sort(rng.choice(n, min(n // 2, POOL), replace=False))
        chosen = rows_at(reference.rows.take(aside), rng.permutation(len(aside)))
        encoded = samples.columns is not None and kernel.kind == "vectors"
        self.encoder_ = TableEncoder().fit(chosen) if encoded else None
        samples.encoder = self.encoder_
        if self.encoder_ is not None:
            samples.units = column_units(samples.points(chosen), self.encoder_)
        self.units_ = samples.units
        points = samples.points(chosen)
        check_spread(points)
        spaces, Phi = Spaces.fit(points, n, self.kernel, self.scales, rng)
        self.maps_, self.scales_ = spaces.maps, spaces.scales
        self.center_ = Phi[:, spaces.parts[spaces.own]].mean(axis=0)
        self.reference_ = points
        if pts.is_frame(chosen):  # of any library
            values = [chosen[name].to_list() for name in chosen.columns]
            self.reference_ = np.array(values, dtype=object).T
        self.columns_ = samples.columns
        self.n_reference_ = n - len(aside)
        self._add_up(reference, samples, spaces, aside, rng)
        return self

    def _add_up(self, reference, samples, spaces, aside, rng):
        """Sums over units of 1, 2, 4, ... rows, so that there are units for batches of any size."""
        n = self.n_reference_
        largest = unit_size(n)
        divisions = [RandomUnits(n, 1 << i, rng) for i in range(largest.bit_length())]
        width = spaces.width
        self.sums_ = [np.zeros((division.count + 1, width)) for division in divisions]
        typical, start = [], 0
        for chunk in reference.rows.blocks(max(64, CHUNK_VALUES // width)):
            stop = start + pts.n_points(chunk)
            there = aside[(aside >= start) & (aside < stop)] - start
            kept = np.setdiff1d(np.arange(stop - start), there)
            start = stop
            if not len(kept):
                continue
            points = samples.points(rows_at(chunk, kept))
            Phi = spaces.coordinates(points)
            units = [division.units(len(Phi)) for division in divisions]
            for sums, unit in zip(self.sums_, units):
                add_rows(sums, unit, Phi)
            drawn = np.flatnonzero(units[0] < divisions[0].count)
            typical.append(self._typicality(points, Phi[:, spaces.parts[spaces.own]])[drawn])
        scores = np.sort(np.concatenate(typical))
        # A new row is below the j-th smallest of n with probability j / (n + 1): at most `level`.
        j = int(self.level * (len(scores) + 1) * (1 + 1e-12))
        self.offset_ = float(scores[j - 1]) if j else -np.inf

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.array_api_support = False  # answers are NumPy arrays
        return tags

    # --- batches --------------------------------------------------------------------------------

    def test(self, X: Input) -> TestResult:
        """Test a batch of rows against the reference."""
        check_is_fitted(self)
        rng = generator(self.random_state)
        kernel, aside = self.maps_[0].kernel_, self.reference_
        if self.columns_ is not None:
            import pandas as pd

            aside = pd.DataFrame(aside, columns=self.columns_).infer_objects()
        reference = read_sample(aside, kernel, "X")
        batch = read_sample(X, kernel, "Y", self, new=False)
        samples, n = Samples(kernel, reference, batch, encode=False), batch.rows.n
        samples.encoder, samples.units = self.encoder_, self.units_
        check_enough(self.n_reference_, n, self.level)
        spaces = Spaces(self.maps_, self.scales_)
        size = min(unit_size(min(self.n_reference_, n)), 1 << (len(self.sums_) - 1))
        blocks = spaces.of_sample(batch, samples)
        y = RandomUnits(n, size, rng).sums(blocks, spaces.width)
        sums = UnitSums(self.sums_[size.bit_length() - 1], y, self.n_reference_, n)
        options = self.n_permutations, self.level, rng
        return TwoSampleResult(sums, spaces, samples, *options, x_apart=True)

    def p_value(self, X: Input) -> float:
        """The p-value of a batch: small where it has drifted."""
        return self.test(X).p_value

    # --- rows -----------------------------------------------------------------------------------

    @lazily
    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """How typical each row is of the reference: minus its squared distance in feature space
        from the mean of the reference."""
        check_is_fitted(self)
        if self.encoder_ is not None:
            points = self.encoder_.transform(given.read_columns(self, X)) / self.units_
        else:
            points = validated_points(self, X, self.maps_[0].kernel_, reset=False)
        return self._typicality(points, as_numpy(self.row_map_.transform(points)))

    @property
    def row_map_(self) -> KernelMap:
        """The map at the kernel's own scale, in which single rows are judged."""
        return self.maps_[Spaces(self.maps_, self.scales_).own]

    @lazily
    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """score_samples(X) - offset_: negative for rows unlike the reference."""
        # Far above zero, and finite, if no row can be marked.
        return self.score_samples(X) - max(self.offset_, -np.finfo(float).max)

    @lazily
    def predict(self, X: ArrayLike) -> np.ndarray:
        """-1 for rows unlike the reference, 1 for all others.

        Of rows that are like the reference, at most the share `level` is marked. With fewer than
        1 / level - 1 reference rows to compare with, none can be, and a warning says so.
        """
        values = self.decision_function(X)
        if self.offset_ == -np.inf:
            warnings.warn(
                f"no row is marked: a share of {self.level} cannot be told from "
                f"{self.n_reference_} reference rows. Fit on at least "
                f"{2 * (ceil(1 / self.level) - 1)} rows, or raise level.",
                UserWarning,
                stacklevel=3,
            )
        return np.where(values < 0, -1, 1)

    def _typicality(self, points, Phi):
        length = as_numpy(self.row_map_.kernel_.diag(points))
        return 2 * Phi @ self.center_ - length - self.center_ @ self.center_
