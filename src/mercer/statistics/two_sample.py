"""two_sample_test: do two samples come from one distribution? MMD with permutations."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import Kernel, KernelMap
from ..engine import is_matrix, namespace, tiles, using
from ..estimators import kernel_of
from ..kernels import Input
from .permutations import RandomUnits, UnitSums, check_permutations, unit_size
from .result import TestResult, TwoSampleResult
from .samples import Samples
from .spaces import Spaces, generator, pool_size


def two_sample_test(
    X: Input,
    Y: Input,
    kernel: Kernel | KernelMap | str = "rbf",
    *,
    n_permutations: int = 1000,
    scales: ArrayLike | None = None,
    level: float = 0.05,
    random_state: int | np.random.Generator | None = None,
    verbose: bool = False,
) -> TestResult:
    """Test whether two samples come from the same distribution, and show where they differ.

    The statistic is the maximum mean discrepancy (MMD), the distance between the mean embeddings of
    both samples in the feature space of the kernel. It is taken at several length scales; the same
    permutations of the labels serve all of them, so the level is that of one test. Rows must be
    independent of each other: those of a time series are not. Means are means of coordinates, so
    the cost is linear in the number of rows.

    Parameters
    ----------
    X, Y : array, data frame, sparse matrix, list of objects, stream of chunks or Dask collection
        One row per observation. Arrays are compared as they are: scale columns of different units
        first. Data frames are encoded by a TableEncoder fitted on both: numbers standardised,
        categories as columns of 0 and 1, gaps marked. Their columns are matched by name. Columns
        that name the rows of both samples are left out; one that does so in one sample only, or
        holds numbers in one and words in the other, differs.
    kernel : Kernel, str or KernelMap, default="rbf"
        A KernelMap gives control over rank and tolerance. A length scale that is left to the data
        (gamma="scale" or "median") is taken from the bulk of each column, so that error codes such
        as -9999 and heavy tails do not widen it; so are the standard deviations of frames.
    n_permutations : int, default=1000
        Random splits of the rows: the smallest p-value is 1 / (n_permutations + 1).
    scales : list of float or None, default=None
        Multiples of the kernel's own length scale. None: 1/4, 1/2, 1, 2, 4 and 8 for kernels
        that have one.
    level : float, default=0.05
        Probability of a false alarm; it decides `threshold` and `differs`.
    random_state : int, RandomState, Generator or None, default=None
        An integer gives the same answer every time; None draws anew.
    verbose : bool, default=False
        Show progress.

    Returns
    -------
    TestResult
        `statistic`, `p_value`, `threshold`, `witness`, `rows(k)`, `columns`, `plot()`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import two_sample_test
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(200, 3)), rng.normal(size=(150, 3))
    >>> two_sample_test(X, Y, random_state=0).differs
    False
    >>> Y[:, 1] += 1.0
    >>> result = two_sample_test(X, Y, random_state=0)
    >>> result.differs, result.p_value < 0.01
    (True, True)
    >>> max(result.columns, key=result.columns.get)
    'x1'
    """
    n_permutations, level = check_permutations(n_permutations, level)
    rng = generator(random_state)
    samples = Samples.read(kernel_of(kernel), X=X, Y=Y)
    n_x, n_y = (sample.rows.n for sample in samples.all)
    check_enough(n_x, n_y, level)
    pool, positions = samples.pooled(pool_size(kernel), rng)
    check_spread(pool)
    spaces, Phi = Spaces.fit(pool, samples.n, kernel, scales, rng)
    size = unit_size(min(n_x, n_y))
    with using(verbose=verbose), tiles.progress_bar("rows", samples.n) as bar:
        if len(positions) == samples.n:  # all coordinates are at hand
            Phi = Phi[np.argsort(positions)]
            blocks: Any = ([Phi[:n_x]], [Phi[n_x:]])
        else:
            blocks = (spaces.of_sample(sample, samples, bar) for sample in samples.all)
        units = (RandomUnits(n, size, rng) for n in (n_x, n_y))
        x, y = (own.sums(rows, spaces.width) for own, rows in zip(units, blocks))
    sums = UnitSums(x, y, n_x, n_y)
    return TwoSampleResult(sums, spaces, samples, n_permutations, level, rng)


def check_enough(n_x: int, n_y: int, level: float) -> None:
    """Samples so small that no permutation could be significant are refused."""
    if min(n_x, n_y) < 2:
        raise ValueError(
            f"X has {n_x} row(s) and Y has {n_y}: each sample needs at least 2 rows to be compared."
        )
    ways = comb(n_x + n_y, n_x) if n_x + n_y < 100 else 10**9
    if ways * level < 1:
        raise ValueError(
            f"{n_x} and {n_y} rows can be labelled in {ways} ways only, so the p-value is never "
            f"below {1 / ways:.2g}, and the level {level} cannot be reached. Collect more rows, or "
            "raise level."
        )


def check_spread(pool: Any, whose: str = "both samples", nothing: str = "to compare") -> None:
    """Rows that are all the same have nothing to tell."""
    if is_matrix(pool) and bool(namespace(pool).all(pool == pool[:1, ...])):
        raise ValueError(
            f"all rows of {whose} are the same: every column is constant, so there is nothing "
            f"{nothing}."
        )
