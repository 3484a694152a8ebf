"""independence_test: does Y depend on X? HSIC with permutations."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import Kernel, KernelMap, RKHSFunction
from ..engine import as_numpy, check_at_least, tiles, using
from ..estimators import kernel_of
from ..kernels import Input
from .permutations import beyond_rounding, check_permutations
from .result import SHOWN_ROWS, TestResult, column_shares, require_columns
from .samples import Samples
from .spaces import USUAL, Spaces, generator, pool_size, usual_map
from .two_sample import check_spread

# Multiplications that all permutations at all scales may take.
_WORK = 2e11
LEAST_RANK, MOST_RANK = 20, 200


def independence_test(
    X: Input,
    Y: Input,
    kernel: Kernel | KernelMap | str = "rbf",
    kernel_y: Kernel | KernelMap | str | None = None,
    *,
    n_permutations: int = 1000,
    scales: ArrayLike | None = None,
    level: float = 0.05,
    random_state: int | np.random.Generator | None = None,
    verbose: bool = False,
) -> TestResult:
    """Test whether two sets of columns, measured on the same rows, depend on each other.

    The statistic is the Hilbert-Schmidt independence criterion (HSIC), the squared norm of the
    covariance between the coordinates of X and those of Y. It sees any kind of dependence, not only
    linear. It is taken at several length scales with the same permutations of the rows of Y, so the
    level is that of one test. Rows must be independent of each other.

    Parameters
    ----------
    X, Y : array, data frame, sparse matrix or list of objects, with as many rows each
        Row i of X belongs to row i of Y. Data frames are encoded as in two_sample_test.
    kernel : Kernel, str or KernelMap, default="rbf"
        The kernel on X. A KernelMap gives control over rank and tolerance. Length scales that are
        left to the data are those of two_sample_test.
    kernel_y : Kernel, str, KernelMap or None, default=None
        The kernel on Y. None: the same as on X.
    n_permutations : int, default=1000
        Random pairings of the rows: the smallest p-value is 1 / (n_permutations + 1).
    scales : list of float or None, default=None
        Multiples of the length scales of both kernels. None: 1/4, 1/2, 1, 2, 4 and 8 for
        kernels that have one.
    level : float, default=0.05
        Probability of a false alarm; it decides `threshold` and `differs`.
    random_state : int, RandomState, Generator or None, default=None
        An integer gives the same answer every time; None draws anew.
    verbose : bool, default=False
        Show progress.

    Returns
    -------
    TestResult
        `witness` is the pair of functions f, g whose values f(x), g(y) have the largest
        covariance; `rows(k)` are the pairs where that is strongest.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import independence_test
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 1))
    >>> y = np.cos(2 * x) + 0.3 * rng.normal(size=(200, 1))  # no correlation, but dependence
    >>> independence_test(x, y, random_state=0).differs
    True
    """
    n_permutations, level = check_permutations(n_permutations, level)
    rng = generator(random_state)
    kernel_y = kernel if kernel_y is None else kernel_y
    x, y = Samples.read(kernel_of(kernel), X=X), Samples.read(kernel_of(kernel_y), Y=Y)
    if not (x.all[0].is_held and y.all[0].is_held):
        raise TypeError(
            "independence_test exchanges the rows of Y, so X and Y must be held in memory: take a "
            "sample of the stream or collection (X.compute(), or the first chunks)."
        )
    if x.n != y.n:
        raise ValueError(f"X has {x.n} rows and Y has {y.n}: row i of X must belong to row i of Y.")
    if x.n < 6:
        raise ValueError(
            f"X and Y have {x.n} rows: at least 6 are needed to tell dependence from chance."
        )
    rank = (_WORK / (2 * x.n * n_permutations * len(USUAL))) ** 0.5
    rank = int(np.clip(rank, LEAST_RANK, MOST_RANK))
    (of_x, Phi), (of_y, Psi) = (
        _coordinates(samples, given, scales, rank, rng)
        for samples, given in ((x, kernel), (y, kernel_y))
    )
    n_scales = max(len(Phi), len(Psi))
    # A kernel without a length scale goes with every scale of the other.
    Phi, Psi, maps_x, maps_y = (
        values * n_scales if len(values) == 1 else values
        for values in (Phi, Psi, of_x.maps, of_y.maps)
    )
    used = max(of_x.scales, of_y.scales, key=len)
    with using(verbose=verbose):
        squared = _permuted(Phi, Psi, n_permutations, rng)
    return IndependenceResult(squared, level, used, x, y, (maps_x, maps_y), (Phi, Psi))


def _coordinates(samples, given, scales, rank, rng):
    """The maps of one side, and the coordinates of all rows at every scale."""
    pool, positions = samples.pooled(pool_size(given), rng)
    check_spread(pool, samples.all[0].name, "that anything could depend on")
    if not isinstance(given, KernelMap):
        given = usual_map(rank, samples.n).set_params(kernel=given)
    spaces, Phi = Spaces.fit(pool, samples.n, given, scales, rng)
    if len(positions) == samples.n:
        Phi = Phi[np.argsort(positions)]
    else:
        Phi = np.vstack(list(spaces.of_sample(samples.all[0], samples)))
    return spaces, [Phi[:, part] for part in spaces.parts]


def _permuted(Phi, Psi, n_permutations, rng):
    """|cov(phi(x), psi(y))|^2 for every permutation of the y (rows, the given order first) and
    every scale."""
    n = len(Phi[0])
    Phi = [beyond_rounding(A - A.mean(axis=0), A) for A in Phi]
    squared = np.empty((n_permutations + 1, len(Phi)))
    with tiles.progress_bar("permutations", n_permutations + 1) as bar:
        for b in range(n_permutations + 1):
            order = rng.permutation(n) if b else slice(None)
            for l, (A, B) in enumerate(zip(Phi, Psi)):
                squared[b, l] = np.sum((A.T @ B[order]) ** 2) / n**2
            bar.update()
    return squared


class IndependenceResult(TestResult):
    """The result of an independence test; people read its name where it is shown."""

    def __init__(self, squared, level, scales, x, y, maps, coordinates):
        super().__init__(squared, level, scales, [m.kernel_ for m in maps[0]])
        self.x, self.y, self.n = x, y, x.n
        self.kernel_map_x, self.kernel_map_y = (of[self.chosen] for of in maps)
        self.kernel_y = self.kernel_map_y.kernel_
        self._Phi, self._Psi = (of[self.chosen] for of in coordinates)

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        if self.differs:
            return f"X and Y depend on each other (p = {self.p_value:.2g}; {self.n} rows)."
        return f"No dependence found between X and Y (p = {self.p_value:.2g}; {self.n} rows)."

    @cached_property
    def witness(self) -> tuple[RKHSFunction, RKHSFunction]:
        """Functions f of x and g of y, of norm 1 and mean 0, whose values have the largest
        covariance."""
        return self._functions(np.arange(self.n))

    def _functions(self, rows):
        """Leading singular vectors of the covariance over some rows, as functions."""
        Phi, Psi = self._Phi[rows], self._Psi[rows]
        mean_x, mean_y = Phi.mean(axis=0), Psi.mean(axis=0)
        U, _, Vt = np.linalg.svd((Phi - mean_x).T @ (Psi - mean_y), full_matrices=False)
        u, v = U[:, 0], Vt[0]
        # The sign is free: the largest entry is positive.
        sign = 1.0 if u[np.abs(u).argmax()] > 0 else -1.0
        u, v = sign * u, sign * v
        return (
            self.kernel_map_x.function(u, -float(mean_x @ u)),
            self.kernel_map_y.function(v, -float(mean_y @ v)),
        )

    @cached_property
    def columns(self) -> dict[str, float]:
        """Share of each column in the dependence: those of X sum to 1, and those of Y.

        How much of the covariance of f(x) and g(y) is lost when the column is shuffled, for
        functions f and g found on other rows.
        """
        rng = np.random.default_rng(0)
        rows = rng.permutation(self.n)[:SHOWN_ROWS]
        train, held_out = rows[::2], np.sort(rows[1::2])
        f, g = self._functions(train)
        sides = []
        for samples, function in ((self.x, f), (self.y, g)):
            (sample,) = samples.all
            points = samples.written_out(sample.rows.take(held_out))
            require_columns(points)
            sides.append((samples, function, points))
        values = [samples.at(function, points) for samples, function, points in sides]
        shares: dict[str, float] = {}
        for (samples, function, points), other in zip(sides, values[::-1]):

            def covariance(
                rows: np.ndarray, at: Any = samples.at, f: Any = function, g: np.ndarray = other
            ) -> float:
                return float(np.mean(at(f, rows) * g))

            groups = samples.column_groups(points.shape[1])
            named = column_shares([(points, covariance)], groups, rng)
            letter = samples.all[0].name
            shares |= {(f"{letter}: {k}" if k in shares else k): v for k, v in named.items()}
        return shares

    def rows(self, k: int = 5) -> tuple[Any, Any]:
        """The k pairs of rows that show the dependence most: of X, and of Y in the same order."""
        check_at_least("k", k, 1)
        f, g = self.witness
        (x,), (y,) = self.x.all, self.y.all
        strength = np.concatenate(
            [as_numpy(f(a)) * as_numpy(g(b)) for a, b in zip(self.x.blocks(x), self.y.blocks(y))]
        )
        most = np.argsort(-strength, kind="stable")[:k]
        return x.rows.take(most), y.rows.take(most)
