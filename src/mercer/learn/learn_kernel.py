"""learn_kernel: metric, lengths and penalty of a kernel from data (MATH.md section 9)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..engine import (
    Domain,
    as_numpy,
    is_array,
    line_search,
    namespace,
    on_device_of,
    one_blas_thread,
    row_norms,
    tiles,
    using,
)
from ..kernels import Kernel, Linear, Precomputed, Projected, RandomState
from ..kernels import points as pts
from ..solve import CoordinateRidge, LeaveOneOut, choose_on_rows
from .evidence import MANY, by_evidence
from .families import FAMILIES, first_kernel, length_of, of_length, same_family, scaled, tunable
from .learned import LearnedKernel, Round
from .metric import (
    applied,
    average_outer_product,
    column_scales,
    congruent,
    damped,
    gradients_at,
    most_correlated,
    with_unit_median,
)
from .observations import Observations
from .room import EVIDENCE, EXACT, rows_within, stage_landmarks
from .targets import Targets, as_generator, host, in_few_columns

# Rows and landmarks of each stage of the search. The next stage is entered while it gains; it has
# more landmarks only where those of the last one missed too much, and after the second only with
# more rows: on the same rows they take a fifth of the time and change errors by one percent.
_STAGES = ((2000, 250), (2000, 500), (5000, 1000), (12000, 1500))
# Rows and landmarks with which the lengths of the plain kernel are tuned.
_FIRST_STAGE = (1000, 125)
# Steps of the logarithms of lengths, where they are near those that are sought.
_NEAR = math.log(1.5)
# Up to so many rows of a matrix a second BLAS thread waits more than it works: with two, 600 rows
# took twice as long.
_FEW_LANDMARKS = 1000
# A table with at most so many rows has one stage, with all rows as landmarks.
_ONE_STAGE = 1000
# A round or a family counts as better from this relative fall of the squared error on.
_GAIN = 0.02
# A stage with more rows and landmarks counts as better from this fall on.
_STAGE_GAIN = 0.05
# A family that loses by so many standard errors of the differences, row by row, on the first rows
# is not tried on more of them.
FIRST_ROWS, CLEARLY = 700, 3.0
# Landmarks are as good as all rows where what they miss, trace(K - F F') / (n alpha), is at most
# this: the mean leverage of a row in exact ridge is then larger by no more.
_MISSED = 0.3
# Rows whose exact errors decide between families. On `pol`, 2000 rows or landmarks alone choose one
# with an error of 0.068 or 0.065 instead of 0.055.
_CHOICE_ROWS = 4000
# Rows whose gradients are averaged.
_GRADIENT_ROWS = 4000
# The first lengths of evidence are sqrt(d) for scaled columns: the median distance over this.
_PLAIN = 2**0.5
_ROWS_PER_NUMBER = 10
# With more columns than rows, evidence weighs so many of them: those that, or whose squares,
# correlate most with the targets. The plain kernel and linear models know all columns.
_MOST_EVIDENT = 1000
# Columns up to which a diagonal metric is written as a matrix.
_MOST_SQUARE = 100
# Parameters of a search, which estimators that search have too.
SEARCH = {
    "metric": Domain.one_of("full", "diagonal", None),
    "n_rounds": Domain.count(0),
    "max_landmarks": Domain.count(1),
}


def learn_kernel(
    X: ArrayLike,
    y: ArrayLike,
    kernel: Kernel | str | None = None,
    *,
    metric: str | None = "full",
    task: str = "auto",
    alphas: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    max_landmarks: int = 1500,
    n_rounds: int = 10,
    random_state: RandomState = None,
    verbose: bool = False,
) -> LearnedKernel:
    """Find the kernel that predicts y best, without a validation set.

    First the marginal likelihood (evidence) of up to 1200 rows finds one weight per column, from
    several starts, and a full metric from there (MATH.md section 13); where there are more columns
    than rows, for the 1000 columns that correlate most with y, by value or by square. Then ridge
    regression is fitted with the best kernel so far, the average outer product of its gradients
    becomes the next metric, and so on while the leave-one-out error falls. Lengths, weights of
    summands and the penalty are chosen by the same error in every round (MATH.md section 9). The
    first round is the plain kernel, so that learning never makes the error larger.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Columns of any scale. An array of torch or another library stays on its device.
    y : array of shape (n_samples,) or (n_samples, n_targets)
        Numbers, or classes; see `task`.
    kernel : Kernel, str or None, default=None
        None tries Matern kernels of three degrees of smoothness, RBF, and a linear part. A kernel
        or an expression keeps its form; its length scales and the weights of its summands are
        tuned.
    metric : {"full", "diagonal", None}, default="full"
        "full" finds directions, "diagonal" one weight per column, None leaves columns as they are.
    task : {"auto", "regression", "classification"}, default="auto"
        "auto" takes texts, booleans and integers with at most 10 values for classes.
    alphas : array of positive numbers or None, default=None
        Penalties to choose from. None: all above rounding.
    sample_weight : array of shape (n_samples,) or None, default=None
        Whole numbers count repeated observations, of which one is left out at a time; other weights
        say how much a row counts. Rows of weight zero are not used.
    max_landmarks : int, default=1500
        Most landmarks of the ridge regressions of the search.
    n_rounds : int, default=10
        Most rounds of each stage of the search; it ends earlier when the error stops falling.
    random_state : int, RandomState or None, default=None
        Which rows and landmarks are drawn where there are many.
    verbose : bool, default=False
        Show progress, with the present leave-one-out error.

    Returns
    -------
    LearnedKernel
        `.kernel`, `.alpha`, `.error`, `.history`, `.importances`, `.directions`, `.plot()`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import learn_kernel
    >>> X = np.random.default_rng(0).normal(size=(200, 6))
    >>> learned = learn_kernel(X, np.sin(2 * X[:, 1]), random_state=0)
    >>> int(learned.importances.argmax())
    1
    """
    for name, value in zip(SEARCH, (metric, n_rounds, max_landmarks)):
        SEARCH[name](name, value)
    names = pts.column_names(X)
    points = pts.as_vectors(X)
    if not is_array(points):
        points = points.toarray()  # sparse rows: the metric is dense anyway
    weights = pts.row_weights(sample_weight, points.shape[0])
    targets = Targets.of(y, task, weights)
    if targets.columns.shape[0] != points.shape[0]:
        raise ValueError(
            f"X has {points.shape[0]} rows and y has {targets.columns.shape[0]}: Found input "
            "variables with inconsistent numbers of samples."
        )
    points = namespace(points).astype(points, namespace(points).float64)
    if weights is not None:
        used = np.flatnonzero(weights > 0)
        points, weights = pts.take(points, used), weights[used]
        targets = Targets.of(host(y)[used], task, weights)
    return learn_from(
        Observations.of(points, targets.columns, weights),
        targets,
        kernel,
        metric=metric,
        alphas=None if alphas is None else _penalties(alphas),
        max_landmarks=max_landmarks,
        n_rounds=n_rounds,
        rng=as_generator(random_state),
        verbose=verbose,
        names=names,
    )[-1]


def _penalties(alphas: ArrayLike) -> np.ndarray:
    """Those to choose from, as positive numbers."""
    try:
        if np.iscomplexobj(alphas):
            raise TypeError
        given = np.asarray(alphas, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"alphas must hold numbers, got {alphas!r}.") from None
    if given.ndim != 1 or not len(given) or not np.all((given > 0) & (given < np.inf)):
        raise ValueError(f"alphas must be a list of positive numbers, got {alphas!r}.")
    return given


def learn_from(
    observations: Observations,
    targets: Targets,
    kernel: Kernel | str | None,
    *,
    metric: str | None,
    alphas: np.ndarray | None = None,
    max_landmarks: int,
    n_rounds: int,
    rng: np.random.Generator,
    verbose: bool = False,
    names: list[str] | None = None,
    effort: str = "whole",
    family: Kernel | None = None,
) -> list[LearnedKernel]:
    """`learn_kernel` on rows that have been read; the kernel that was found is the last one.

    effort : "whole"; a "quick" search and a "short" one follow one start of evidence, and return
        two simpler kernels first: plain, and by column
    family : where no kernel is given, the only one to try
    """
    start = first_kernel(kernel) if family is None else family
    observations, targets = in_few_columns(observations, targets, rng)
    free = kernel is None
    given = (observations, targets, metric, alphas, n_rounds, rng, effort)
    with using(verbose=verbose), tiles.progress_bar("learning the kernel") as bar:
        search = _Search(*given, bar, free, free and family is None, names)
        return search.run(start, max_landmarks)


@dataclass(frozen=True, eq=False)
class _Trial:
    """A kernel on z = x B, the weight of a linear part on scaled columns, and what they gave.

    error : infinite for a trial that no stage has judged
    missed : trace(K - F F') / (n alpha), what the landmarks left of the kernel
    """

    kernel: Kernel
    B: Any
    linear: float = 0.0
    alpha: float = math.nan
    error: float = math.inf
    missed: float = math.inf

    @property
    def close(self) -> bool:
        """Whether landmarks were as good as all rows."""
        return self.missed <= _MISSED


def _best(*trials: _Trial) -> _Trial:
    return min(trials, key=lambda trial: trial.error)


@dataclass(eq=False)
class _Stage:
    """Some rows, the first of which are landmarks, and ridge regressions on them."""

    rows: Observations
    n_landmarks: int
    alphas: np.ndarray | None
    isotropic: bool = False
    # The present metric B, z = x B, and its best trial with the ridge regression
    B: Any = None
    Z: Any = None
    rotated_Z: Any = None
    best: tuple[_Trial, tuple[CoordinateRidge, Any, float]] | None = None
    known: dict[tuple[_Trial, int], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.X = self.rows.X
        self.rotated_X = self._rotated(self.X)

    @property
    def size(self) -> tuple[int, int]:
        return self.rows.n, self.n_landmarks

    def projected(self, B: Any) -> Any:
        if self.B is not B:
            self.B, self.Z, self.best = B, applied(self.X, B), None
            self.rotated_Z = self._rotated(self.Z)
        return self.Z

    def _rotated(self, Z: Any) -> Any:
        """Z in as many coordinates as it has rows, where there are more columns than rows.

        Distances and inner products, all that an isotropic kernel asks for, stay the same.
        """
        if not self.isotropic or Z.shape[1] <= Z.shape[0]:
            return Z
        return namespace(Z).linalg.qr(Z.T).R.T

    def ridge(self, trial: _Trial) -> tuple[CoordinateRidge, Any, float]:
        """(ridge on coordinates, a, missed): f = k(z, S) a with the kernel, S the landmarks."""
        if self.best is not None and self.best[0] is trial:
            return self.best[1]
        self.projected(trial.B)
        Z, X, m, rows = self.rotated_Z, self.rotated_X, self.n_landmarks, self.rows
        xp, rule = namespace(Z), LeaveOneOut(self.alphas, share=rows.share, spread=rows.spread)
        with one_blas_thread(if_small=m, small=_FEW_LANDMARKS):
            K = tiles.evaluate(trial.kernel, Z, Z[:m, :])
            if trial.linear:
                K = K + trial.linear * (X @ X[:m, :].T)
            given = (K, K[:m, :], rows.T, rule, rows.weights)
            found, a, explained = CoordinateRidge.on_landmarks(*given)
            left = trial.kernel.diagonal(Z) - explained
            if trial.linear:
                left = left + trial.linear * row_norms(X, xp)
        missed = float(xp.mean(left if rows.weights is None else left * rows.weights))
        return found, a, max(missed, 0.0)

    def judged(self, trial: _Trial) -> _Trial:
        ridge = self.ridge(trial)
        alpha, error = ridge[0].choice.alpha, ridge[0].choice.error
        trial = replace(trial, alpha=alpha, error=error, missed=ridge[-1] / alpha)
        if self.best is None or error < self.best[0].error:
            self.best = trial, ridge
        return trial

    def smaller(self) -> _Stage:
        """The first of the rows and landmarks, where there are many more than lengths need."""
        few = self.n_landmarks <= _STAGES[0][1]  # then a further stage may have more landmarks
        rows, landmarks = _FIRST_STAGE if few else _STAGES[1]
        enough = self.rows.n >= 2 * rows if few else self.rows.n > rows
        enough = enough and self.n_landmarks >= 2 * landmarks
        return self.first(rows, landmarks) if enough else self

    def first(self, rows: int, landmarks: int) -> _Stage:
        some = self.rows.some(np.arange(rows))
        return _Stage(some, min(landmarks, self.n_landmarks), self.alphas, self.isotropic)

    def beats(self, new: _Trial, old: _Trial) -> bool:
        """Whether a trial is better by exact errors where landmarks are few, on more and more rows.

        Both have the same metric. Landmarks tune lengths well, and favour smooth families: a family
        that gains with them by what few functions can do loses with all rows.
        """
        if (new.close and old.close) or self.n_landmarks == self.rows.n:
            return new.error < (1 - _GAIN) * old.error
        for n in sorted({min(n, self.rows.n) for n in (FIRST_ROWS, _CHOICE_ROWS)}):
            losses, others = self.exact_losses(new, n), self.exact_losses(old, n)
            lost = losses - others
            if np.mean(lost) > CLEARLY * np.std(lost) / len(lost) ** 0.5:
                return False
        return float(losses.mean()) < (1 - _GAIN) * float(others.mean())

    def exact_losses(self, trial: _Trial, n: int) -> Any:
        """Squared leave-one-out errors of some of the first n rows, without landmarks."""
        if (trial, n) not in self.known:
            some = np.arange(rows_within(n, EXACT))
            K = tiles.evaluate(trial.kernel, pts.take(self.projected(trial.B), some))
            if trial.linear:
                X = pts.take(self.X, some)
                K = K + trial.linear * (X @ X.T)
            # To the landmarks, the part that they miss is noise.
            near = trial.alpha / (1 + trial.missed) ** 3
            problem = self.rows.some(some).problem(Precomputed(), near, points=K)
            with one_blas_thread(if_small=len(some), small=_FEW_LANDMARKS):
                self.known[trial, n] = choose_on_rows(problem).losses
        return self.known[trial, n]

    def gains(self, trial: _Trial, before: _Trial, size: tuple[int, int]) -> bool:
        """Whether a trial has a smaller error here than with fewer rows and landmarks.

        Errors of other rows differ by chance: where they are smaller, the rows that a stage of that
        size would have here decide.
        """
        if trial.error > (1 - _STAGE_GAIN) * before.error:
            return False
        small = self.first(*size)
        old, new = small.losses(small.judged(before)), self.losses(trial)[: size[0]]
        return float(new.mean()) <= (1 - _STAGE_GAIN) * float(old.mean())

    def losses(self, trial: _Trial) -> Any:
        """Squared leave-one-out errors of the rows, with few landmarks."""
        rows = self.rows
        found = self.ridge(trial)[0].left_out(share=rows.share)
        weights = 1.0 if rows.weights is None else as_numpy(rows.weights)
        losses = weights * (found.residuals**2).sum(axis=1)
        return losses if rows.spread is None else losses + as_numpy(rows.spread) / found.left**2

    def gradients(self, trial: _Trial, diagonal: bool = False) -> Any:
        """G in the coordinates of X: of the part of the function that depends on z = x B.

        With `diagonal`, for a diagonal B, its diagonal.
        """
        a, Z, S = self._function(trial)
        weights = None if self.rows.weights is None else self.rows.weights[: Z.shape[0]]
        G = average_outer_product(trial.kernel, Z, S, a, weights, diagonal=diagonal)
        return congruent(trial.B, G)

    def slopes(self, trial: _Trial) -> Any:
        """Mean squared slope of the function along each column of X, its linear part included."""
        a, Z, S = self._function(trial)
        xp = namespace(Z)
        straight = trial.linear * (a.T @ self.X[: self.n_landmarks, :])
        total = 0.0
        for _, g in gradients_at(trial.kernel, Z, S, a):
            g = (g @ trial.B.T if trial.B.ndim == 2 else g * trial.B) + straight[None, :, :]
            total = total + xp.sum(xp.reshape(g * g, (-1, g.shape[2])), axis=0)
        return total / Z.shape[0]

    def _function(self, trial: _Trial) -> tuple[Any, Any, Any]:
        """(a, Z, S): f = k(z, S) a, and some rows."""
        a, Z = self.ridge(trial)[1], self.projected(trial.B)
        return a, Z[: min(_GRADIENT_ROWS, Z.shape[0]), :], Z[: self.n_landmarks, :]


@dataclass(eq=False)
class _Search:
    """The rounds, stage by stage.

    free : whether no kernel was given: lengths are in units of the median distance
    choose_family : whether other families are tried, too
    """

    rows: Observations  # scaled below
    targets: Targets
    metric: str | None
    alphas: np.ndarray | None
    n_rounds: int
    rng: np.random.Generator
    effort: str
    bar: Any
    free: bool
    choose_family: bool
    names: list[str] | None
    history: list[Round] = field(default_factory=list)

    def __post_init__(self) -> None:
        X = self.rows.X
        self.scales = column_scales(as_numpy(X))
        self.X = X * on_device_of(self.scales, X)
        self.rows = replace(self.rows, X=self.X)
        ones = on_device_of(np.ones(X.shape[1]), self.X)
        self.plain = with_unit_median(ones, self.X, self.rng)

    def run(self, kernel: Kernel, max_landmarks: int) -> list[LearnedKernel]:
        # Rules such as gamma="scale" become numbers once; lengths are tuned from there.
        kernel = kernel.bind_points(applied(self.X, self.plain), None)
        if self.targets.constant:
            mean = _Trial(kernel, self.plain, alpha=1.0, error=0.0)
            self._record(mean, (0, 0))
            return [self._learned(mean)]
        best: Any = None
        evident: Any = None
        simpler: list[_Trial] = []
        last = (0, 0)
        for rows, landmarks in self._stages(max_landmarks):
            if best is not None and best.close:
                landmarks = last[1]  # more would not change anything
                if rows == last[0]:
                    continue
            chosen = self.rng.permutation(self.rows.n)[:rows]
            stage = _Stage(self.rows.some(chosen), landmarks, self.alphas, self.free)
            before = best
            if before is None:
                best, simpler, evident = self._first(stage, _Trial(kernel, self.plain), chosen)
            else:
                best = stage.judged(before)
                self._record(best, stage.size)
                if rows > last[0] and not stage.gains(best, before, last):
                    break  # more rows and landmarks do not help: what is left is noise
                best = self._tuned(stage, best, small=stage.smaller())
                self._record(best, stage.size)
                best = self._rounds(stage, best)
            last = stage.size
        best = self._of_best_family(stage, best)
        if evident is not None and evident.B is not best.B:
            # Rounds went on from there, and landmarks judged them.
            own = evident.kernel
            if self.free:
                own = of_length(best.kernel, length_of(own))
            trial = replace(evident, kernel=own, error=math.inf)
            trial = self._tuned(stage, trial, small=stage.smaller())
            best = trial if stage.beats(trial, best) else best
        best = self._with_linear(stage, best) if self.free else best
        self._record(best, stage.size)
        return [*map(self._learned, simpler), self._learned(best, stage)]

    def _first(
        self, stage: _Stage, trial: _Trial, chosen: np.ndarray
    ) -> tuple[_Trial, list[_Trial], _Trial | None]:
        """(the best metric, simpler kernels of a quick search, where evidence began the best)."""
        learns, evident = self._learns(trial.kernel), None
        # If rounds follow that tune the lengths of the plain kernel again, few rows will do.
        best = self._tuned(stage, trial, math.log(2), stage.smaller() if learns else stage)
        self._record(best, stage.size)
        starts = self._evident(stage, trial.kernel, chosen) if learns else []
        simpler = []
        if self.effort != "whole":
            simpler = [self._with_linear(stage, best) if self.free else best, *starts[:1]]
        if self.effort == "whole" or not starts:
            best = self._rounds(stage, best)
        for start in starts:
            trial = self._rounds(stage, start)
            if stage.beats(trial, best):
                best, evident = trial, start
        self._record(best, stage.size)
        return best, simpler, evident

    def _evident(self, stage: _Stage, kernel: Kernel, chosen: np.ndarray) -> list[_Trial]:
        """Metrics with the most evidence, by rows that the stage does not have where there are."""
        others = np.setdiff1d(np.arange(self.rows.n), chosen)
        order = np.r_[self.rng.permutation(others), self.rng.permutation(chosen)]
        some, d = self.rows.some(order[: rows_within(MANY, EVIDENCE)]), len(self.scales)
        columns = np.arange(d)
        if d > max(some.n, _MOST_EVIDENT) and self.free:
            columns = most_correlated(some, _MOST_EVIDENT)
            some = replace(some, X=pts.take(some.X.T, columns).T)
        # Judged by the rows that it was learned from, a matrix needs many for each of its numbers.
        full = len(others) >= MANY or some.n >= _ROWS_PER_NUMBER * d * (d + 1) / 2
        with one_blas_thread():
            found = by_evidence(
                kernel,
                some,
                _PLAIN * float(self.plain[0]) * (d / len(columns)) ** 0.5,
                self.rng,
                full=full and self.metric == "full" and d <= _MOST_SQUARE,
                linear=self.free,
                effort=self.effort,
            )
        starts = []
        for covariance in found:
            weights, linear = covariance.B, covariance.linear * len(columns) / d
            if len(columns) < d:
                weights = np.zeros(d)
                weights[columns] = covariance.B
            B, own = on_device_of(weights, self.X), kernel
            if self.free:  # a family: lengths are in units of the median distance
                B = with_unit_median(B, self.X, self.rng)
                ratio = float(np.linalg.norm(as_numpy(B)) / np.linalg.norm(covariance.B))
                own = of_length(kernel, ratio * length_of(kernel))
            starts.append(stage.judged(_Trial(own, B, linear)))
        return starts

    def _stages(self, max_landmarks: int) -> list[tuple[int, int]]:
        n = self.rows.n
        found = [(0, 0)]
        for rows, landmarks in ((n, n),) if n <= _ONE_STAGE else _STAGES:
            rows = min(rows, n)
            landmarks = stage_landmarks(rows, min(landmarks, max_landmarks, n))
            last, few = found[-1], landmarks <= _STAGES[1][1]
            more = rows > last[0] or (few and landmarks > last[1])
            if more and landmarks >= last[1]:
                found.append((rows, landmarks))
        return found[1:]

    def _learns(self, kernel: Kernel) -> bool:
        return self.metric is not None and kernel.has_slope

    def _tuned(
        self, stage: _Stage, trial: _Trial, step: float = _NEAR, small: _Stage | None = None
    ) -> _Trial:
        """Every length, and every weight of a summand, by a bracketed search.

        Fewer rows than those of the stage may tune: the stage then judges what they find.
        """
        small = stage if small is None else small
        found = trial if small is stage and trial.error < math.inf else small.judged(trial)

        def along(found: _Trial, step: float, change: Callable[..., _Trial]) -> _Trial:
            seen = {0.0: found}

            def error(x: float) -> float:
                if x not in seen:
                    seen[x] = small.judged(change(math.exp(x)))
                return seen[x].error

            line_search(error, step)
            return _best(*seen.values())

        for name in tunable(found.kernel):
            now = found
            found = along(
                now,
                step,
                lambda c, now=now, name=name: replace(now, kernel=scaled(now.kernel, name, c)),
            )
        if found.linear:
            now = found
            found = along(now, 2 * step, lambda c: replace(now, linear=c * now.linear))
        return found if small is stage else _best(trial, stage.judged(found))

    def _rounds(self, stage: _Stage, best: _Trial) -> _Trial:
        """The metric from gradients, again and again, while that gains; the best round is kept.

        Lengths are tuned again where the metric alone does not gain.
        """
        trial = best
        small = stage.smaller()
        for _ in range(self.n_rounds if self._learns(best.kernel) else 0):
            B = damped(stage.gradients(trial, diagonal=self.metric == "diagonal"))
            B = with_unit_median(B, stage.X, self.rng)
            trial = stage.judged(replace(trial, B=B))
            if trial.error >= (1 - _GAIN) * best.error:
                trial = self._tuned(stage, trial, small=small)
            self._record(trial, stage.size)
            gained = trial.error < (1 - _GAIN) * best.error
            best = _best(best, trial)
            if not gained:
                break
        return best

    def _of_best_family(self, stage: _Stage, best: _Trial) -> _Trial:
        """The best family, each with lengths of its own: smoother ones, then rougher ones.

        A further step is taken while the last one gained. Few rows and landmarks tune the lengths.
        """
        if not self.choose_family:
            return best
        at = next(i for i, family in enumerate(FAMILIES) if same_family(family, best.kernel))
        small = stage.smaller()
        for more in (FAMILIES[at + 1 :], FAMILIES[:at][::-1]):
            found = best
            for family in more:
                family = of_length(family, length_of(found.kernel))
                trial = replace(found, kernel=family, error=math.inf)
                trial = self._tuned(stage, trial, small=small)
                if not stage.beats(trial, found):
                    break
                found = trial
            if found is not best:
                return found
        return best

    def _with_linear(self, stage: _Stage, best: _Trial) -> _Trial:
        if best.linear:
            return best
        d = max(1, stage.X.shape[1])
        first = stage.judged(replace(best, linear=1.0 / d))
        if first.error > (1 - _GAIN) * best.error:
            return best
        return self._tuned(stage, first, math.log(2), stage.smaller())

    def _record(self, trial: _Trial, size: tuple[int, int]) -> None:
        error = math.sqrt(trial.error / self.targets.variance)
        self.history.append(Round(error, trial.alpha, repr(trial.kernel), trial.linear, *size))
        self.bar.set_postfix(leave_one_out=f"{error:.4g}")
        self.bar.update()

    def _learned(self, best: _Trial, stage: _Stage | None = None) -> LearnedKernel:
        B, square = as_numpy(best.B), len(self.scales) <= _MOST_SQUARE

        def projection(A: np.ndarray) -> np.ndarray:
            return np.diag(A) if A.ndim == 1 and square else A

        kernel: Kernel = Projected(best.kernel, projection((self.scales * B.T).T))
        if best.linear:
            kernel = kernel + best.linear * Projected(Linear(), projection(self.scales))
        error = math.sqrt(best.error / self.targets.variance)
        shares = None
        if stage is not None and (best.B is self.plain or best.linear) and best.kernel.has_slope:
            # All columns weigh the same in this metric, or some only in the linear part.
            shares = as_numpy(stage.slopes(best))
        return LearnedKernel.of_metric(
            kernel, best.alpha, error, self.history, B, self.names, shares
        )
