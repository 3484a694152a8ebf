"""Is a learned metric better than none? Predictions of rows that the metric has not seen.

A metric has d (d + 1) / 2 numbers. On a small table it adapts to the very rows whose leave-one-out
errors judge it, and these errors come out too small. So there the kernel is learned again without
each of five folds, and the rows of the fold are predicted by exact leave-one-out with that kernel:
ridge knows all other rows, as the model will. These errors choose how much is learned, and say how
good the model is.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..engine import as_numpy
from ..kernels import Kernel
from ..kernels import points as pts
from ..solve import solve_ridge
from .families import FIRST_FAMILY
from .learn_kernel import learn_from
from .learned import LearnedKernel
from .observations import Observations, by_value
from .room import EXACT, rows_within
from .targets import Targets

FOLDS = 5
# Tables with at most so many rows, or rows per column, are small: folds choose what is learned.
# With more than MOST_ROWS the searches take too long.
SMALL_ROWS, SMALL_RATIO, MOST_ROWS = 100, 20, 3000
# Up to JUDGED_ROWS rows folds judge what was learned, and up to so many rows per column they choose
# it. With more rows, a part of them is kept from the search.
JUDGED_RATIO, JUDGED_ROWS = 50, 1000
# Rows that a search does not see, where folds do not judge it: a share, and at most so many.
KEPT_SHARE, MOST_KEPT = 0.2, 1000
# Rows from which on a metric is learned, and rows per column from which on more columns are tried.
LEAST_ROWS, LEAST_RATIO = 50, 10
# Landmarks of the searches without a part.
_LANDMARKS = 300
# A candidate that learns more must lower the mean loss by so many standard errors of the
# differences, row by row. The loss is the squared error; for classes, whether the row is wrong:
# squares would reward more confidence in the same classes.
_STANDARD_ERRORS = 1.0
# Fewer columns are taken unless their mean loss is larger by so many standard errors.
_CLEARLY_WORSE = 2.0
# A set of columns is given up after so many folds if their rows do not speak for it: most sets are
# not taken, and each fold is a search.
_FIRST_FOLDS = 2
# Rows and rounds of a short search among sets of columns, and its parts: each judges what the
# others found. More columns must also lower the mean loss by this share over the root of the rows.
SHORT_ROWS, SHORT_ROUNDS, SHORT_PARTS, GAIN = 1000, 3, 2, 2.0
# A metric, after the simpler ones that are tried first.
_METRICS: dict[str | None, list[str | None]] = {
    "full": [None, "diagonal", "full"],
    "diagonal": [None, "diagonal"],
    None: [None],
}


@dataclass(frozen=True)
class _Candidate:
    """A kernel learned on some columns, with its out-of-fold predictions.

    predicted : one per row that was given
    losses : one per distinct row, times its weight
    """

    metric: str | None
    columns: np.ndarray
    predicted: np.ndarray
    losses: np.ndarray

    @property
    def error(self) -> float:
        """The mean loss of a row."""
        return float(self.losses.mean())


@dataclass(frozen=True)
class CrossFit:
    """Learns without each of five folds, and predicts its rows.

    family : where no kernel is given, that of all folds: one choice for all rows flatters little
    parts : how many folds
    """

    rows: Observations
    targets: Targets
    kernel: Kernel | str | None
    n_rounds: int
    seed: int
    family: Kernel = FIRST_FAMILY
    parts: int = FOLDS

    def best(self, metric: str | None, column_sets: list[np.ndarray]) -> _Candidate:
        """The best of: no metric, a diagonal one, a full one; and then of the sets of columns."""
        enough = self.rows.n >= LEAST_RATIO * len(column_sets[0])
        allowed = _METRICS[metric if self.rows.n >= LEAST_ROWS else None]
        return self.best_of(allowed, column_sets if enough else column_sets[:1])

    def best_of(
        self, metrics: list[str | None], column_sets: list[np.ndarray], least_gain: float = 0.0
    ) -> _Candidate:
        """The best of metrics, then of sets; more columns must lower the mean loss by a share."""
        best, *others = self.candidates(metrics, column_sets[0])
        for more in others:
            best = _better(more, best)
        for columns in column_sets[1:]:
            for new in self.candidates([best.metric], columns, best):
                fewer = len(columns) < len(best.columns)
                if fewer or new.error < (1 - least_gain) * best.error:
                    best = _better(new, best)
        return best

    def is_small(self, n_columns: int) -> bool:
        """Whether leave-one-out errors of a metric on so many columns would choose badly."""
        few = min(SMALL_RATIO * n_columns, MOST_ROWS), min(JUDGED_RATIO * n_columns, JUDGED_ROWS)
        return self.rows.n <= max(SMALL_ROWS, *few)

    @property
    def n_folds(self) -> int:
        """Folds of the rows: not more than there are observations."""
        return _DuplicateGroups.of(self.rows, self.targets).n_folds(self.parts)

    def kept(self, rng: np.random.Generator) -> np.ndarray:
        """Rows that judge a kernel which has not seen them; few rows are judged by folds: none."""
        n = self.rows.n
        kept = min(int(KEPT_SHARE * n), MOST_KEPT) if n > JUDGED_ROWS else 0
        return np.sort(rng.permutation(n)[:kept])

    def judged(self, rng: np.random.Generator) -> np.ndarray:
        """Rows that leave-one-out errors judge a kernel by."""
        return np.sort(rng.permutation(self.rows.n)[:JUDGED_ROWS])

    def columns(
        self, metric: str | None, column_sets: list[np.ndarray], rng: np.random.Generator
    ) -> np.ndarray:
        """The set of columns that predicts some rows best which a short search has not seen.

        The first one is kept unless another is better by more than chance would have it.
        """
        some = self.rows.some(rng.permutation(self.rows.n)[:SHORT_ROWS])
        weights = None if some.weights is None else as_numpy(some.weights)
        some = replace(some, share=None, spread=None, group=np.arange(some.n), row_weights=weights)
        short = CrossFit(
            some,
            replace(self.targets, columns=as_numpy(some.T), weights=weights),
            None,
            min(self.n_rounds, SHORT_ROUNDS),
            int(rng.integers(2**31)),
            parts=SHORT_PARTS,
        )
        return short.best_of([metric], column_sets, GAIN / some.n**0.5).columns

    def candidates(
        self, metrics: list[str | None], columns: np.ndarray, rival: _Candidate | None = None
    ) -> list[_Candidate]:
        """Metrics on these columns, with their predictions: one search per fold finds them all.

        rival : with it the list is empty if the first folds do not speak for these columns
        """
        some = replace(self.rows, X=pts.take(self.rows.X.T, columns).T)
        cells = _DuplicateGroups.of(some, self.targets)
        predicted = np.zeros((len(metrics), *cells.T.shape))
        seen = np.zeros(len(cells.counts))
        for i, left in enumerate(cells.folds(np.random.default_rng(self.seed), self.parts)):
            if rival is not None and i == _FIRST_FOLDS:
                known = (seen >= cells.counts)[cells.of_given]
                gain = self._losses(rival.predicted) - self._losses(predicted[-1][cells.of_given])
                fewer = len(columns) < len(rival.columns)
                if known.any() and not _hopeful(gain[known], fewer=fewer):
                    return []
            seen += left
            asked = np.flatnonzero(left)
            known = cells.without(some, left)
            share = (left[asked] / cells.counts[asked])[:, None]
            *simpler, last = learn_from(
                known,
                self.targets,
                self.kernel,
                metric=metrics[-1],
                max_landmarks=_LANDMARKS,
                n_rounds=self.n_rounds,
                rng=np.random.default_rng(self.seed),
                effort="quick" if self.parts == FOLDS else "short",
                family=self.family if self.kernel is None else None,
            )
            # Without a simpler kernel, one serves all metrics.
            simpler = simpler[: len(metrics) - 1]
            for i, learned in enumerate([*simpler, *[last] * (len(metrics) - len(simpler))]):
                predicted[i, asked] += share * self._predicted(some, cells, asked, known, learned)
        found = []
        for metric, values in zip(metrics, predicted):
            values = self._limited(values[cells.of_given])
            losses = np.bincount(self.rows.group, self._losses(values))
            found.append(_Candidate(metric, columns, values, losses))
        return found

    def _limited(self, values: np.ndarray) -> np.ndarray:
        if self.targets.classes is not None or self.kernel is not None:
            return values
        limited: np.ndarray = np.clip(values, *Targets.limits(self.targets.columns))
        return limited

    def _losses(self, values: np.ndarray) -> np.ndarray:
        """The loss of each row that was given, times its weight."""
        T, weights = self.targets.columns, self.rows.row_weights
        if self.targets.classes is not None:
            losses: np.ndarray = (values.argmax(axis=1) != T.argmax(axis=1)).astype(float)
        else:
            losses = ((self._limited(values) - T) ** 2).sum(axis=1)
        return losses if weights is None else weights * losses

    def _predicted(
        self,
        rows: Observations,
        cells: "_DuplicateGroups",
        asked: np.ndarray,
        known: Observations,
        learned: LearnedKernel,
    ) -> np.ndarray:
        """Groups of a fold, each left out, with a kernel learned from the rows without the fold."""
        problem = rows.problem(learned.kernel.bind(known.X), learned.alpha)
        places, which = np.unique(cells.row[asked], return_inverse=True)
        share = None if rows.share is None else pts.take(rows.share, places)
        exact = rows_within(rows.n, EXACT) == rows.n
        left = solve_ridge(problem, "direct" if exact else "landmarks").left_out(places, share)
        T = cells.T[asked]
        # Copies of a row share its leverage, and have targets of their own.
        own = T - as_numpy(rows.T)[cells.row[asked]]
        predicted: np.ndarray = T - left.residuals[which] - own / left.left[which, None]
        return predicted


@dataclass(frozen=True)
class _DuplicateGroups:
    """Observations that nothing tells apart: copies of a row with the same target.

    A fold leaves out observations, not distinct rows: a new row may well be a copy of a known one,
    as in a table of a few categories.

    row : the distinct row of each group
    T : its target
    counts : how many observations it holds; ones where weights do not count observations
    of_given : the group of each row that was given
    """

    row: np.ndarray
    T: np.ndarray
    counts: np.ndarray
    of_given: np.ndarray

    @classmethod
    def of(cls, rows: Observations, targets: Targets) -> "_DuplicateGroups":
        n = rows.n
        if rows.share is None or rows.row_weights is None:
            return cls(np.arange(n), as_numpy(rows.T), np.ones(n), rows.group)
        order, new = by_value(np.column_stack([rows.group, targets.columns]))
        of_given = np.empty(len(order), dtype=int)
        of_given[order] = np.cumsum(new) - 1
        first = order[new]
        unit = 1 / (as_numpy(rows.share) * as_numpy(rows.weights))[0]
        counts = np.round(np.bincount(of_given, rows.row_weights * unit))
        return cls(rows.group[first], targets.columns[first], counts, of_given)

    def n_folds(self, parts: int = FOLDS) -> int:
        """Not more than there are observations."""
        return min(parts, int(self.counts.sum()))

    def folds(self, rng: np.random.Generator, parts: int = FOLDS) -> list[np.ndarray]:
        """How many observations of each cell every fold leaves out: dealt in turn, like cards."""
        order = rng.permutation(len(self.counts))
        dealt = self.counts[order]
        first = np.cumsum(dealt) - dealt
        out = []
        for i in range(self.n_folds(parts)):
            left = np.empty(len(order))
            left[order] = (dealt + parts - 1 - (i - first) % parts) // parts
            out.append(left)
        return out

    def without(self, rows: Observations, left: np.ndarray) -> Observations:
        """The rows that stay, where so many observations of each cell are left out."""
        kept = np.flatnonzero(self.counts > left)
        if rows.share is None:
            return rows.some(kept)
        stay = (self.counts - left)[kept]
        return Observations.of(pts.take(rows.X, self.row[kept]), self.T[kept], stay)


def _better(new: _Candidate, best: _Candidate) -> _Candidate:
    """The new one where its losses are smaller by more than chance would have it.

    With fewer columns it needs only not be clearly worse.
    """
    gain = best.losses - new.losses
    if len(new.columns) < len(best.columns):
        return new if _hopeful(gain, fewer=True) else best
    return new if gain.mean() > _STANDARD_ERRORS * gain.std() / len(gain) ** 0.5 else best


def _hopeful(gain: np.ndarray, *, fewer: bool) -> bool:
    """Tell whether gains speak for columns; fewer columns need only not lose clearly."""
    noise = gain.std() / len(gain) ** 0.5
    return bool(gain.mean() >= -_CLEARLY_WORSE * noise if fewer else gain.mean() > 0)
