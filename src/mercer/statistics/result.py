"""TestResult: what a test found, as numbers, text, rows, columns and a picture."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from .. import Kernel, RKHSFunction
from ..engine import as_numpy, check_at_least, is_matrix, short
from ..kernels import html_rows, listed
from ..rows import rows_at, stacked
from .permutations import NO_ROWS, UnitSums, judge
from .samples import Samples
from .spaces import Spaces

# Columns named in the text form.
_NAMED = 5
# Rows of each sample that columns and pictures are made from.
SHOWN_ROWS = 2000
# Rows at which a witness is evaluated to find the columns, in all.
_MOST_EVALUATIONS = 100_000
_FOLDS = 2
_SHUFFLES = 2


class TestResult(ABC):
    """Show what a test found: a p-value, and where the difference or the dependence lies.

    Made by :func:`two_sample_test`, :func:`independence_test` and :meth:`DriftDetector.test`.

    Attributes
    ----------
    statistic : float
        A soft maximum over the length scales, in standard deviations of the permutations.
    p_value : float
        Share of the permutations, the given labels included, with at least this statistic.
    threshold : float
        The statistic has to exceed this to be significant at the level.
    level : float
        Probability of a false alarm that is accepted.
    differs : bool
        Whether p_value is at most the level.
    scale : float
        The length scale, as a multiple of the kernel's own, that shows the difference best.
    kernel : Kernel
        The kernel at that scale.
    distance : float
        The MMD (or, for independence, the square root of HSIC) at that scale.
    n_permutations : int
        How many permutations were drawn.
    by_scale : list of dict
        "scale", "distance" and the unadjusted "p_value" at each length scale.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import two_sample_test
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> result = two_sample_test(X[:50], X[50:] + [0.0, 1.0, 0.0], random_state=0)
    >>> result.differs, next(iter(result.columns)), len(result.by_scale)
    (True, 'x1', 6)
    """

    __test__ = False  # not a test case of pytest

    def __init__(
        self, squared: np.ndarray, level: float, scales: tuple[float, ...], kernels: list[Kernel]
    ) -> None:
        verdict = judge(squared, level, scales)
        self.statistic, self.p_value, self.threshold, self.chosen, self.permuted = verdict
        self.level, self.n_permutations = level, len(self.permuted)
        self.scale, self.kernel = scales[self.chosen], kernels[self.chosen]
        self.distance = float(np.sqrt(squared[0, self.chosen]))
        at_least = (squared >= squared[0] * (1 - 1e-9)).mean(axis=0)
        self.by_scale = [
            {"scale": s, "distance": float(np.sqrt(value)), "p_value": float(p)}
            for s, value, p in zip(scales, squared[0], at_least)
        ]

    @property
    def differs(self) -> bool:
        """Whether the p-value is at most the level."""
        return self.p_value <= self.level

    @property
    @abstractmethod
    def headline(self) -> str:
        """The answer in one sentence."""

    @property
    @abstractmethod
    def witness(self) -> RKHSFunction | tuple[RKHSFunction, RKHSFunction]:
        """The function that shows the difference."""

    @property
    @abstractmethod
    def columns(self) -> dict[str, float]:
        """Share of each column, largest first."""

    @abstractmethod
    def rows(self, k: int = 5) -> tuple[Any, Any]:
        """The k most telling rows of each sample."""

    def plot(self, axes: Sequence[Any] | np.ndarray | None = None) -> Sequence[Any] | np.ndarray:
        """Draw the permutations, the columns, and where the difference or the dependence lies.

        Two samples are shown along the leading column with the witness; for independence, g(y)
        against f(x).

        Parameters
        ----------
        axes : three matplotlib axes or None
            None: a new figure.

        Returns
        -------
        array of axes
        """
        from .picture import draw_result

        return draw_result(self, axes)

    def facts(self) -> dict[str, str]:
        """Facts that the text and HTML forms list, name by name."""
        try:
            columns = self.columns if self.differs else {}
        except ValueError:  # objects have no columns
            columns = {}
        named = listed([f"{name} {share:.0%}" for name, share in columns.items()], _NAMED)
        return {
            "p-value": f"{self.p_value:.3g} ({self.n_permutations} permutations)",
            "statistic": f"{self.statistic:.3g} (threshold {self.threshold:.3g} at level "
            f"{self.level:g})",
            "distance": f"{self.distance:.3g} with {short(self.kernel)}",
        } | ({"columns": named} if named else {})

    def __str__(self) -> str:
        lines = [f"  {name:<10} {value}" for name, value in self.facts().items()]
        return "\n".join([self.headline, *lines])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: p = {self.p_value:.3g}, statistic {self.statistic:.3g}>"

    def _repr_html_(self) -> str:
        table = html_rows(self.facts().items())
        return f"<p><b>{escape(self.headline)}</b></p><table>{table}</table>"


def require_columns(points: Any) -> None:
    """Objects have no columns to speak of."""
    if not is_matrix(points):
        raise ValueError("columns are known for rows of numbers and for data frames only.")


def column_shares(
    parts: Iterable[tuple[np.ndarray, Callable[[np.ndarray], float]]],
    groups: dict[str, list[int]],
    rng: np.random.Generator,
    shuffles: int = 1,
) -> dict[str, float]:
    """How much of a measure is lost when a column is shuffled, as shares, largest first.

    `parts` are rows, each with the measure of such rows. (Gradients of a witness would count
    columns that do not matter: it also fades along columns that are alike in both samples.)
    """
    lost = dict.fromkeys(groups, 0.0)
    for rows, measure in parts:
        whole = measure(rows)
        for name, js in groups.items():
            for _ in range(shuffles):
                changed = rows.copy()
                changed[:, js] = rows[rng.permutation(len(rows))][:, js]
                lost[name] += whole - measure(changed)
    positive = {name: max(0.0, value) for name, value in lost.items()}
    total = sum(positive.values()) or 1.0
    shares = {name: value / total for name, value in positive.items()}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


class TwoSampleResult(TestResult):
    """The result of a two-sample test, from sums over the rows of both samples.

    With `x_apart`, the first of the samples holds other rows of X than those in the sums.
    """

    def __init__(
        self,
        sums: UnitSums,
        spaces: Spaces,
        samples: Samples,
        n_permutations: int,
        level: float,
        rng: np.random.Generator,
        x_apart: bool = False,
    ):
        squared = sums.permuted(spaces.parts, n_permutations, rng)
        super().__init__(squared, level, spaces.scales, [of.kernel_ for of in spaces.maps])
        self.n_x, self.n_y = sums.n_x, sums.n_y
        self.kernel_map = spaces.maps[self.chosen]
        self.samples = samples
        self._x_apart = x_apart
        part = spaces.parts[self.chosen]
        self._sums = UnitSums(sums.x[:, part], sums.y[:, part], sums.n_x, sums.n_y)

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        if self.differs:
            return f"The samples differ (p = {self.p_value:.2g}; {self.n_x} and {self.n_y} rows)."
        return (
            f"No difference found between the samples (p = {self.p_value:.2g}; {self.n_x} and "
            f"{self.n_y} rows)."
        )

    @property
    def changed(self) -> dict[str, tuple[str, str]]:
        """Columns of a frame that are one kind of thing in X and another in Y, such as numbers and
        words, or categories and identifiers: with both kinds."""
        return self.samples.changed

    def facts(self) -> dict[str, str]:
        """Facts that the text and HTML forms list, name by name."""
        changed = [f"{name} (X: {x}, Y: {y})" for name, (x, y) in self.changed.items()]
        return super().facts() | ({"changed": listed(changed, _NAMED)} if changed else {})

    @cached_property
    def witness(self) -> RKHSFunction:
        """mean_i k(x_i, .) - mean_j k(y_j, .): positive where X has more, negative where Y has.

        A function of points of the kernel. Data frames become points by `encode(frame)`.
        """
        return self.kernel_map.function(self._sums.difference())

    def encode(self, rows: Any) -> Any:
        """Rows, as they were given to the test, as points that the witness takes."""
        samples = self.samples
        return samples.points(samples.kernel.points(rows) if samples.columns is None else rows)

    @cached_property
    def columns(self) -> dict[str, float]:
        """Share of each column in the difference, largest first: how much of the gap between the
        samples, as the witness sees it, is lost when the column is exchanged between them.

        Shares say which columns carry the difference, not whether it is significant. The witness
        is made from other rows than those that show the gap.
        """
        rng = np.random.default_rng(0)
        x, y = (self.samples.some_points(which, SHOWN_ROWS) for which in (0, 1))
        require_columns(x)
        groups = self.samples.column_groups(x.shape[1])
        most = max(40, _MOST_EVALUATIONS // (2 * _FOLDS * len(groups)))
        x, y = (rows[rng.permutation(len(rows))[:most]] for rows in (x, y))
        folds = ((x[i::_FOLDS], y[i::_FOLDS]) for i in range(_FOLDS))
        parts = ((np.concatenate(fold), self._gap_without(*fold)) for fold in folds)
        return column_shares(parts, groups, rng, _SHUFFLES)

    def _gap_without(self, x, y):
        """mean f(x) - mean f(y) of changed rows x and y, for the witness f of all other rows."""
        at, coordinates = self.samples.at, self.kernel_map.transform
        of_x = NO_ROWS if self._x_apart else at(coordinates, x)
        of_y = at(coordinates, y)
        f = self.kernel_map.function(self._sums.difference(of_x, of_y))

        def gap(rows: np.ndarray) -> float:
            values = at(f, rows)
            return float(values[: len(x)].mean() - values[len(x) :].mean())

        return gap

    def rows(self, k: int = 5) -> tuple[Any, Any]:
        """The k rows of X that are most unlike Y, and the k rows of Y most unlike X.

        Rows come as they were given (frames as frames), the most telling first: those where the
        witness is largest in X, and smallest in Y.
        """
        check_at_least("k", k, 1)
        found = []
        for sample, sign in zip(self.samples.all, (-1, 1)):
            kept, values = None, np.empty(0)
            for chunk in sample.rows.blocks(8192):
                new = sign * as_numpy(self.witness(self.samples.points(chunk))).astype(float)
                best = np.argsort(new, kind="stable")[:k]
                rows = rows_at(chunk, best)
                kept = rows if kept is None else stacked(kept, rows)
                values = np.concatenate([values, new[best]])
                order = np.argsort(values, kind="stable")[:k]
                kept, values = rows_at(kept, order), values[order]
            found.append(kept)
        return found[0], found[1]
