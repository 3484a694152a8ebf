"""The base of KernelRegressor and KernelClassifier: a table in, a learned kernel, one exact fit."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupKFold
from sklearn.utils.validation import check_is_fitted

from ..engine import (
    Resources,
    as_host,
    as_numpy,
    current,
    is_cpu,
    is_numpy,
    namespace,
    on_device_of,
    tiles,
    using,
)
from ..kernels import Kernel, Matern, RandomState
from ..learn import (
    SEARCH,
    CrossFit,
    Observations,
    Targets,
    as_generator,
    beside_table,
    learn_from,
)
from ..rows import rows_at
from ..solve import LandmarkSolver, Plan, RidgeSolution, solve_ridge
from ..tables import TableEncoder, encoder_tools
from .encoded_table import EncodedTable, inconsistent, of_columns
from .left_out import FOLDS, beyond_chance, weighted_quantile
from .stack import linear_part, logistic_part, out_of_fold, weighed, with_importances
from .trees import MOST_BOOSTED, grow_trees, trees_bytes

# Parts of the stack. Trees are boosted for numbers and a forest for classes; where classes are few
# and rows are many, boosted trees join as well.
KERNEL, LINEAR, TREES, BOOSTED = "learned kernel", "linear", "trees", "boosted trees"
FEW_CLASSES, MANY_ROWS = 5, 500
# Rows from which on a linear model is tried, and trees.
FEW_ROWS, LEAST_ROWS = 20, 50
# A kernel whose large errors, left out, are so many times those of the folds judges itself.
_CLEARLY_WORSE = 1.1
# Fewer rows are left out where each error needs its neighbours.
_JUDGED_BY_NEIGHBOURS = 500
# Rows left out are predicted better than by the mean from so many standard errors on; how the
# warning begins where they are not.
STANDARD_ERRORS, UNINFORMATIVE = 2.0, "rows left out are predicted no better than by "
# A stack with more wrong classes than the kernel alone, by so many standard errors, is not taken.
_CLEARLY_MORE_WRONG = 1.0
# Certified error of the function, relative to the function: certificates are bounds in the norm of
# the kernel's space, and errors of predictions are 100 to 1000 times smaller, as a rule. Then the
# same where iterations replace a factorisation; and products, and seconds of one core, at most.
TOL, DIGITS, MAX_ITER, PATIENCE = 1e-3, 1e-5, 300, {"cpu": 2e3, "device": 1e6}
# Columns of the rows, and the penalty, by which a fit is planned before its kernel is known.
PLANNED_COLUMNS, PLANNED_ALPHA = 8, 0.1
# With more columns than this a full metric becomes a diagonal one: it has the square of the number.
_MOST_FULL = 500
# Parameters that do not change what is searched for.
_BESIDE = ("verbose", "memory_limit", "solver")

# From rows to a part of the stack and the shares of the columns in it, not scaled.
_Learner = Callable[[Observations], tuple[Any, np.ndarray]]


@dataclass(frozen=True)
class _JudgedRows:
    """Some training rows, each predicted without itself.

    T : their targets, as columns of numbers
    residuals : T - prediction
    variances : of the predictions, not calibrated
    weights : how much each row counts
    n : how many observations they are
    learners : how the parts beside the kernel are learned from other rows
    signal : variance of each target's function, in units of k(x, x); None through landmarks
    """

    T: np.ndarray
    residuals: np.ndarray
    variances: np.ndarray
    weights: np.ndarray
    n: float
    learners: dict[str, _Learner]
    signal: np.ndarray | None


class LearnedModel(EncodedTable):
    """A table encoder, a learned kernel, and ridge with an intercept on all rows."""

    domains = EncodedTable.domains | SEARCH
    _task = "regression"
    _log_loss: Any  # of scores, where there are classes
    intercept_: Any
    dual_coef_: Any
    error_norms_: Any
    learn_report_: Any  # a LearnedKernel
    others_: list[Any]  # expansions and trees beside the kernel
    stack_: dict[str, float]

    def __init__(
        self,
        kernel: Kernel | str | None = None,
        *,
        metric: str | None = "full",
        max_landmarks: int = 1500,
        n_rounds: int = 10,
        stack: bool = True,
        solver: str = "auto",
        memory_limit: int | str | None = None,
        random_state: RandomState = 0,
        verbose: bool = False,
        encoder: TableEncoder | None = None,
    ) -> None:
        self.kernel = kernel
        self.metric = metric
        self.max_landmarks = max_landmarks
        self.n_rounds = n_rounds
        self.stack = stack
        self.solver = solver
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.verbose = verbose
        self.encoder = encoder

    def _fit_used(self, X, y, sample_weight, groups, checkpoint, written=None):
        """(targets, rows judged, rows used, their y, refits without groups or None): all but y.

        written : texts that y was read from
        """
        if checkpoint is not None and not isinstance(checkpoint, MutableMapping):
            raise TypeError(
                "checkpoint must be a dict, mercer.export.checkpoint.Checkpoint(folder) or None, "
                f"got {checkpoint!r}."
            )
        groups = None if groups is None else _codes(groups, len(y))
        X, y, weights, used = self._used(X, y, sample_weight)
        targets = replace(Targets.of(y, self._task, weights), written=written)
        fit = partial(self._fit_rows, used=used, checkpoint=checkpoint)
        judged, refits = self._on_rows(X, targets, fit), None
        if groups is not None:
            refits = partial(self._refits, X, y, weights, groups[used], judged, checkpoint)
        return targets, judged, used, y, refits

    def _on_rows(self, X, targets, fit):
        """Apply `fit` to the encoded rows and targets, within the memory that the rows leave."""
        with using(Resources.of(self)):
            Z = self._encoded(X, targets)
            (n, d), (given_n, t) = Z.shape, targets.columns.shape
            if n != given_n:
                raise ValueError(inconsistent(n, given_n))
            with using(beside_table(n, d + t)):
                return fit(Z, targets)

    def _fit_rows(self, Z, targets, used, checkpoint) -> _JudgedRows:
        rng = as_generator(self.random_state)
        self.copied_rows_ = 0
        if targets.classes is None:
            self.copied_rows_ = Observations.copies(Z, targets.columns, targets.weights)
        together = self.copied_rows_ > 0
        rows = Observations.of(Z, targets.columns, targets.weights, together=together)
        unseen_Z = self._without_own_targets(Z)
        choosing, learning = rng.spawn(1)[0], np.random.default_rng(int(rng.integers(2**31)))
        search = partial(self._searched, rows, targets, choosing, learning)
        found = _resumed(checkpoint, self, (Z, targets.columns, targets.weights), search)
        self.metric_, self.learn_report_ = found.metric_, found.learn_report_
        chosen, unseen, kept = found.chosen_, found.unseen_, found.kept_
        rows = self._keeping(rows, chosen)
        folds = CrossFit(rows, targets, self.kernel, self.n_rounds, 0)
        solution = self._solved(rows, targets, rng)
        chosen_rows = kept if len(kept) else folds.judged(rng)
        if solution.solver == "iterative":
            chosen_rows = chosen_rows[:: max(1, len(chosen_rows) // _JUDGED_BY_NEIGHBOURS)]
        judged = rows.some(chosen_rows)
        self._keep_uncertainty(rows, solution, rng)
        variances = self._uncertainty.judged(
            judged.X, judged.T, chosen_rows, judged.weights, judged.share
        ).variances
        which, place, weights = rows.given_rows(chosen_rows)
        T = targets.columns[which]
        self.left_out_ = used[which]

        def left_out(residuals, left, function):
            """Errors of given rows, each left out; effects of categories do not know them."""
            # Copies of a row share its leverage, and have targets of their own.
            own = (T - as_numpy(judged.T)[place]) / left[place, None]
            return residuals[place] + own - change(function)

        def rounding():
            """The error of computed predictions: without noise, coefficients are large."""
            if solution.dual is None:
                return 0.0
            noise = 1.0 if judged.weights is None else 1 / as_numpy(judged.weights)[:, None]
            expected = solution.alphas * noise * as_numpy(solution.dual)[chosen_rows]
            return as_numpy(judged.T - self._function(judged.X)) - expected

        def change(function):
            if unseen_Z is None:
                return 0.0
            before, after = (function(part[which][:, chosen]) for part in (Z, unseen_Z))
            return as_numpy(after - before)

        def large(errors):
            """The error that one row in ten is beyond."""
            return weighted_quantile((errors**2).sum(axis=1)[:, None], 0.9, weights)[0] ** 0.5

        if unseen is not None:
            self.validation_ = f"{folds.n_folds} folds"
            errors = T - unseen[which] - change(self._function)
        if unseen is None or solution.dual is not None:
            left = solution.left_out(chosen_rows, judged.share)
            own = left_out(left.residuals + rounding(), left.left, self._function)
            # Kernels of the folds judge that of all rows, unless it is clearly worse: without
            # noise, errors differ by orders of magnitude between kernels that are much alike.
            if unseen is None or large(own) > _CLEARLY_WORSE * large(errors):
                self.validation_, errors = "leave-one-out", own
        if together:
            self.validation_ += ", copies of a row together"
        learners: dict[str, _Learner] = {}
        joins = self.stack and self.kernel is None and not targets.constant
        if joins and rows.n >= FEW_ROWS:
            unseen_X = rows.X
            if unseen_Z is not None:
                unseen_X = np.empty(rows.X.shape)
                unseen_X[rows.group] = unseen_Z[:, chosen]
            errors, learners = self._stacked(
                rows,
                targets,
                unseen_X,
                chosen_rows,
                left_out,
                (T, errors, place, weights, judged.size),
            )
        signal = _signal(rows, solution)
        variances = as_numpy(variances)[place]
        return _JudgedRows(T, errors, variances, weights, judged.size, learners, signal)

    def _stacked(self, rows, targets, unseen_X, chosen, left_out, main):
        """Errors of the stack, with the weights of other rows, and how its parts are learned.

        unseen_X : the rows with effects of categories that do not know their own targets
        """
        T, errors, place, weights, n = main
        X, classes = rows.X, targets.classes is not None
        # Copies of a row count as one row of their weight, however they are written.
        total = np.bincount(place, weights)
        known = np.bincount(place, weights * (errors**2).sum(axis=1)) / total
        asked = (rows, unseen_X, chosen, known)
        on_host = is_numpy(X) and X.shape[1] <= _MOST_FULL
        residuals, left, linear, shares = linear_part(rows)
        own = left_out(residuals[chosen], left[chosen], linear)
        models = {KERNEL: T - errors, LINEAR: T - own}
        learners: dict[str, _Learner] = {
            LINEAR: lambda given: (linear, shares) if given is rows else linear_part(given)[2:]
        }
        kinds = {TREES: classes or T.shape[1] > MOST_BOOSTED}
        if classes and T.shape[1] <= FEW_CLASSES and rows.n >= MANY_ROWS:
            kinds[BOOSTED] = False
        for name, forest in kinds.items():
            needed = trees_bytes(rows.n, X.shape[1], T.shape[1], forest=forest)
            if on_host and rows.n >= LEAST_ROWS and needed <= current().limit(X):
                grow = partial(grow_trees, forest=forest)
                if (found := out_of_fold(*asked, grow)) is not None:
                    models[name], learners[name] = found[place], with_importances(grow)
        if not all(np.isfinite(values).all() for values in models.values()):
            return errors, {}
        centre = np.average(T, axis=0, weights=weights)

        def merged(values):
            sums = [np.bincount(place, weights * column) / total for column in values.T]
            return np.stack(sums, axis=1)

        def combined(models):
            w, own = weighed(merged(T), [merged(values) for values in models.values()], total)
            return w, centre + sum(
                own[place, c, None] * (values - centre) for c, values in enumerate(models.values())
            )

        w, predicted = combined(models)
        if classes and on_host and (logistic := logistic_part(*asked)) is not None:
            # Squares prefer probabilities to scores; the likelihood, after calibration, does not.
            other = combined(models | {LINEAR: logistic[1][place]})
            if self._log_loss(other[1], T, weights) < self._log_loss(predicted, T, weights):
                (w, predicted), learners[LINEAR] = other, with_importances(logistic[0])
        if not w.any():  # nothing is known of these rows, and `fit` says so
            return errors, {}
        if classes:  # squares choose the weights, wrong classes may veto them
            of_stack, of_kernel = (
                (values.argmax(axis=1) != T.argmax(axis=1)).astype(float)
                for values in (predicted, models[KERNEL])
            )
            if beyond_chance(of_stack - of_kernel, weights, n, _CLEARLY_MORE_WRONG):
                return errors, {}
        of_parts = {name: float(c) for name, c in zip(models, w) if c > 0}
        self._join(rows, targets, of_parts, learners)
        return T - predicted, learners

    def _join(self, rows, targets, weights, learners):
        """The stack with these weights of its parts."""
        own, total = weights.get(KERNEL, 0.0), sum(weights.values())
        mean = np.average(targets.columns, axis=0, weights=targets.weights)
        self.intercept_ = self.intercept_ * own + on_device_of((1 - total) * mean, rows.X)
        self.dual_coef_ = self.dual_coef_ * own
        if self.error_norms_ is not None:
            # A bound may be infinite, and times zero it would be NaN.
            self.error_norms_ = self.error_norms_ * own if own else 0.0 * mean
        self.stack_, self.others_, shares = weights, [], own * self._shares
        for name, learn in learners.items():
            if weight := weights.get(name):
                part, of_columns = learn(rows)
                shares = shares + weight * of_columns / (of_columns.sum() or 1.0)
                self.others_.append(part * weight)
        self._shares = shares / total

    def _function(self, Z):
        """f, on the scale of the columns that were fitted."""
        f = self.intercept_
        if KERNEL in self.stack_:
            f = tiles.multiply(self.kernel_, Z, self.points_, self.dual_coef_) + f
        return sum((part(Z) for part in self.others_), f)

    def _solved(self, rows, targets, rng) -> RidgeSolution:
        """Ridge with an intercept on all rows, exactly wherever that is possible."""
        self.kernel_ = self.learn_report_.kernel.bind(rows.X)
        with using(seed=int(rng.integers(2**31))):
            alpha, choose = self.learn_report_.alpha, not targets.constant
            solution = solve_ridge(_last_problem(rows, self.kernel_, alpha, choose), self.solver)
        function = solution.expansion
        self.points_, self.dual_coef_, self.intercept_ = function.S, function.W, function.b
        self.alpha_ = float(solution.alphas[0])
        self.solver_, self.exact_ = solution.solver, solution.solver != "landmarks"
        norms = solution.error_norms
        self.error_norms_ = None if norms is None else as_numpy(norms) * targets.scale
        self._offset, self._scale = targets.offset, targets.scale
        self.stack_, self.others_, self._shares = {KERNEL: 1.0}, [], self.learn_report_.importances
        return solution

    def _intervals_like(self, model, y, judged, signal) -> None:
        """Take over how wide another model's intervals are, where there are any."""

    def _refits(self, X, y, weights, groups, judged, checkpoint, ask):
        """(numbers of rows, what `ask` says of a model without their groups) for each fold."""
        self._forget_uncertainty()
        count = len(np.unique(groups))
        n_folds = min(FOLDS, count)
        self.validation_ = f"{n_folds} folds of {count} groups"
        for known, new in GroupKFold(n_folds).split(y, groups=groups):
            own = None if weights is None else weights[known]
            again = self._fitted_like(self, judged, checkpoint, rows_at(X, known), y[known], own)
            found = ask(again, rows_at(X, new))
            del again  # the next fit needs its memory
            yield new, found

    @classmethod
    def _fitted_like(cls, model, judged, checkpoint, X, y, weights) -> Any:
        """A model of other rows with what another one chose: columns, metric, family, stack.

        The rest, the kernel above all, is learned from these rows; errors are for others to judge.
        `judged` is what the fit of that model returned.
        """
        self = clone(model).set_params(verbose=False)
        if "class_weight" in self.get_params(deep=False):
            self.set_params(class_weight=None)  # the weights of rows hold them already

        def fit(Z, targets):
            self.__dict__.pop("_means_without_", None)
            T, together = targets.columns, model.copied_rows_ > 0
            rng = as_generator(self.random_state)
            learning = rng.spawn(1)[0]
            rows = Observations.of(Z, T, targets.weights, together=together)
            rows = self._keeping(rows, self._columns_like(model, Z.shape[1]))
            family = None if self.kernel is not None else model.learn_report_.family

            def search():
                metric, options = model.metric_, {"effort": "quick", "family": family}
                return {"learn_report_": self._learned(rows, targets, metric, learning, **options)}

            known = _resumed(checkpoint, self, (Z, T, weights, None), search)
            self.learn_report_ = known.learn_report_
            solution = self._solved(rows, targets, rng)
            self._keep_uncertainty(rows, solution, rng)
            self._join(rows, targets, model.stack_, judged.learners)
            self._intervals_like(model, y, judged, _signal(rows, solution))
            return self

        targets = Targets.of(y, self._task, weights)
        if targets.classes is not None:
            self.classes_ = targets.classes
        return self._on_rows(X, targets, fit)

    def __plan__(self, n: int) -> Plan:
        """The ways of the last fit of n rows, with a usual kernel in place of the learned one."""
        X = np.random.default_rng(0).uniform(size=(n, PLANNED_COLUMNS))
        with using(Resources.of(self)):
            rows = Observations(X, np.zeros((n, 1)))
            problem = _last_problem(rows, Matern(1.5), PLANNED_ALPHA, True)
            return Plan.of_solvers(problem, self.solver)

    def _keep_uncertainty(self, rows, solution, rng):
        """Ridge on landmarks: those of the fit; or the rows from which it is made again."""
        most = rows.landmarks_within(self.max_landmarks)
        self._landmark_ridge_ = self._landmark_rows_ = None
        if not self.exact_:
            self._landmark_ridge_ = solution.first(most)
            self._landmark_ridge_.forget()
        elif (known := solution.cached("explained")) is not None:
            # Landmarks that miss little.
            self._landmark_rows_ = np.asarray(known.landmarks.factor.indices)[:most]
        else:
            self._landmark_rows_ = np.sort(rng.permutation(rows.n)[:most])
        if self.points_.shape[0] != rows.n and self._landmark_ridge_ is None:
            # A function of fewer points than rows: what is made of all rows is kept.
            problem = rows.problem(self.kernel_, self.alpha_, choose=False)
            self._landmark_ridge_ = LandmarkSolver(self._landmark_rows_).solve(problem)
            self._landmark_ridge_.forget()
        self._weights_ = rows.weights

    @property
    def _uncertainty(self) -> Any:
        """Ridge on landmarks, which knows the variance of predictions."""
        check_is_fitted(self)
        if self._landmark_ridge_ is not None:
            return self._landmark_ridge_
        if "_cached_uncertainty" not in vars(self):  # r x r numbers, too large to be saved
            zeros = namespace(self.points_).zeros_like(self.points_[:, :1])
            rows = Observations(self.points_, zeros, self._weights_)
            problem = rows.problem(self.kernel_, self.alpha_, choose=False)
            self._cached_uncertainty = LandmarkSolver(self._landmark_rows_).solve(problem)
        return self._cached_uncertainty

    def _forget_uncertainty(self):
        """Drop what variances need: it is made again when they are asked for."""
        self.__dict__.pop("_cached_uncertainty", None)

    def __getstate__(self):
        state = dict(super().__getstate__())
        state.pop("_cached_uncertainty", None)
        return state

    def _searched(self, rows, targets, choosing, learning):
        """Columns, metric and kernel, with the predictions of folds, or with rows that it left.

        On small tables kernels that have not seen a row choose what is learned. Where there are
        more rows, such kernels judge what was learned, or some rows are kept from the search.
        """
        sets = self._setsof_columns(np.arange(rows.X.shape[1]))
        metric = "diagonal" if self.metric == "full" and len(sets[0]) > _MOST_FULL else self.metric
        chosen, unseen, kept = sets[0], None, np.empty(0, dtype=int)
        seed = int(choosing.integers(2**31))
        folds = CrossFit(rows, targets, self.kernel, self.n_rounds, seed)
        learns = not targets.constant and rows.n > 1
        if learns and metric is not None and folds.is_small(len(chosen)):
            best = folds.best(metric, sets)
            chosen, metric, unseen = best.columns, best.metric, best.predicted
        elif not targets.constant and len(sets) > 1:
            chosen = folds.columns(metric, sets, choosing)
        rows = of_columns(rows, chosen)
        folds = replace(folds, rows=rows, seed=0)
        if unseen is None and metric is not None:
            # A few lengths adapt to no row: without a metric, leave-one-out judges all rows.
            kept = folds.kept(choosing)
        seen = rows if not len(kept) else rows.some(np.setdiff1d(np.arange(rows.n), kept))
        report = self._learned(seen, targets, metric, learning, verbose=self.verbose)
        if learns and metric is not None and not len(kept):
            family = folds.family if self.kernel is not None else report.family
            if unseen is None or family is not folds.family:
                folds = replace(folds, family=family)
                unseen = folds.candidates([metric], np.arange(len(chosen)))[0].predicted
        found = {"learn_report_": report, "metric_": metric, "kept_": kept}
        return found | {"chosen_": chosen, "unseen_": unseen}

    def _learned(self, rows, targets, metric, rng, **options):
        found = learn_from(
            rows,
            targets,
            self.kernel,
            metric=metric,
            max_landmarks=self.max_landmarks,
            n_rounds=self.n_rounds,
            rng=rng,
            **options,
        )
        return found[-1]

    def _compare(self, gains, weights, n, constant):
        """Notice, and warn, where rows left out are predicted no better than by the mean.

        gains : for each loss that is looked at, that of the best constant less the model's own
        """
        gained = any(beyond_chance(gain, weights, n, STANDARD_ERRORS) for gain in gains)
        self.informative_ = gained and not constant
        if not (self.informative_ or constant):
            warnings.warn(
                UNINFORMATIVE
                + ("the shares of the classes" if self._task == "classification" else "the mean")
                + ", "
                "beyond chance: the model knows nothing of new rows. More rows, or other columns, "
                "may tell more.",
                stacklevel=4,
            )

    def _values(self, X) -> tuple[Any, Any]:
        """(f, encoded rows)."""
        check_is_fitted(self)
        Z = self._encoded(X)
        return self._function(Z), Z

    def _with_unseen(self, X, Z) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(rows, f) for each column with unseen categories: f for each known one in their place.

        f has one row per known category and row: shape (categories, rows, targets).
        """
        if self.encoder_ is None:
            return
        for rows, places, known in encoder_tools.unseen_values(self.encoder_, X):
            others = np.repeat(Z[rows][None], len(known), axis=0)
            others[:, :, places] = known[:, None, :]
            f = self._function(others.reshape(-1, Z.shape[1]))
            yield rows, as_numpy(f).reshape(len(known), len(rows), -1)


def _last_problem(rows, kernel, alpha, choose):
    """Ridge with an intercept; the penalty is searched for from alpha on, or given."""
    patience = PATIENCE["cpu" if is_cpu(rows.X) else "device"]
    accuracy = {"tol": TOL, "digits": DIGITS, "max_iter": MAX_ITER, "exact": False}
    return rows.problem(kernel, alpha, choose=choose, patience=patience, **accuracy)


def _signal(rows, solution):
    """t'(K + alpha I)^-1 t / n, the most likely scale of the kernel."""
    if solution.dual is None:
        return None
    return np.mean(as_numpy(rows.T) * as_numpy(solution.dual), axis=0)


def _codes(groups, n):
    """The group of each row as a number, at least two of them; a gap is a group of its own."""
    groups = np.asarray(as_host(groups))
    if groups.shape != (n,):
        raise ValueError(
            f"groups must have one value for each of the {n} rows, got shape {groups.shape}."
        )
    codes = np.unique(groups.astype(str), return_inverse=True)[1]
    if codes.max(initial=0) == 0:
        raise ValueError("groups must have at least two different values: all rows have the same.")
    return codes


def _key_of(model, *arrays):
    """A name made from the rows, the targets, the weights and the parameters."""
    digest = hashlib.sha256(type(model).__name__.encode())
    for name, value in sorted(model.get_params(deep=False).items()):
        if name not in _BESIDE:
            digest.update(f"{name}={value!r};".encode())
    for array in arrays:
        values = np.ascontiguousarray(as_numpy(array)) if array is not None else np.empty(0)
        digest.update(str((values.dtype, values.shape)).encode())
        digest.update(values.tobytes())
    return digest.hexdigest()[:32]


def _resumed(checkpoint, model, arrays, search):
    """Attributes that a search finds, or has found, where a fit of the same rows was killed.

    A checkpoint keeps it in an unfitted copy of the model.
    """
    if checkpoint is None:
        return SimpleNamespace(**search())
    key = _key_of(model, *arrays)
    if (part := checkpoint.get(key)) is None:
        found = search()
        part = clone(model)
        vars(part).update(found)
        checkpoint[key] = part
    return part
