"""The base of KernelRegressor and KernelClassifier: a table in, a learned kernel, one exact fit."""

import warnings
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from ..engine import (
    Resources,
    as_numpy,
    coordinates_bytes,
    current,
    is_array,
    is_cpu,
    is_numpy,
    namespace,
    on_device_of,
    readable,
    same_kind,
    tiles,
    using,
)
from ..kernels import Kernel, Matern
from ..kernels import points as pts
from ..learn import (
    CrossFit,
    Observations,
    Targets,
    as_generator,
    beside_table,
    check_options,
    learn_from,
)
from ..rows import Training, check_n_columns, gather, in_pieces, read_whole, rows_at
from ..solve import (
    Given,
    LandmarkSolution,
    LandmarkSolver,
    Plan,
    RidgeProblem,
    RidgeSolution,
    solve_ridge,
)
from ..tables import (
    UNREAD,
    TableEncoder,
    encoder_tools,
    given,
)
from .searched import check_checkpoint, resumed
from .stack import linear_part, logistic_part, out_of_fold, weighed, with_importances
from .trees import MOST_BOOSTED, grow_trees, trees_bytes

# Parts of the stack. Trees are boosted for numbers and a forest for classes; where classes are few
# and rows are many, boosted trees join as well.
KERNEL, LINEAR, TREES, BOOSTED = "learned kernel", "linear", "trees", "boosted trees"
FEW_CLASSES, MANY_ROWS = 5, 500
# Rows from which on a linear model is tried, and trees.
FEW_ROWS, LEAST_ROWS = 20, 50
# A kernel whose large errors, left out, are so many times those of the folds judges itself.
CLEARLY_WORSE = 1.1
SOLVERS = ("auto", "direct", "iterative", "landmarks")
# Fewer rows are left out where each error needs its neighbours.
JUDGED_BY_NEIGHBOURS = 500
# Rows left out are predicted better than by the mean from so many standard errors on; how the
# warning begins where they are not.
STANDARD_ERRORS, UNINFORMATIVE = 2.0, "rows left out are predicted no better than by "
# A stack with more wrong classes than the kernel alone, by so many standard errors, is not taken.
CLEARLY_MORE_WRONG = 1.0
# Certified error of the function, relative to the function: certificates are bounds in the norm of
# the kernel's space, and errors of predictions are 100 to 1000 times smaller, as a rule. Then the
# same where iterations replace a factorisation; and products, and seconds of one core, at most.
TOL, DIGITS, MAX_ITER, PATIENCE = 1e-3, 1e-5, 300, {"cpu": 2e3, "device": 1e6}
# Columns of the rows, and the penalty, by which a fit is planned before its kernel is known.
PLANNED_COLUMNS, PLANNED_ALPHA = 8, 0.1
# Ranks are tried up to so many columns of values: the metric is a matrix with a row for each.
MOST_RANKED = 100
# Kinds of columns of an encoder that a fit may leave out.
KINDS = ("rank", "level", "text")
# Tables with more columns than this have more than MOST_RANKED columns of values, as a rule.
MANY_COLUMNS = 5 * MOST_RANKED
# Most columns for single values of numbers, for the same reason.
MOST_LEVELS = 64
# With more columns than this a full metric becomes a diagonal one: it has the square of the number.
MOST_FULL = 500


# From rows to a part of the stack and the shares of the columns in it, not scaled.
Learner = Callable[[Observations], tuple[Any, np.ndarray]]


@dataclass(frozen=True)
class JudgedRows:
    """Some training rows, each predicted without itself.

    T : their targets, as columns of numbers
    residuals : T - prediction
    variances : of the predictions, not calibrated
    weights : how much each row counts
    learners : how the parts beside the kernel are learned from other rows
    signal : variance of each target's function, in units of k(x, x); None through landmarks
    """

    T: np.ndarray
    residuals: np.ndarray
    variances: np.ndarray
    weights: np.ndarray
    learners: dict[str, Learner]
    signal: np.ndarray | None


class LearnedModel(BaseEstimator):
    """A table encoder, a learned kernel, and ridge with an intercept on all rows."""

    _task = "regression"
    encoder_: TableEncoder | None
    _log_loss: Any  # of scores, where there are classes
    intercept_: Any
    dual_coef_: Any
    error_norms_: Any
    others_: list[Any]  # expansions and trees beside the kernel
    stack_: dict[str, float]
    _shares: np.ndarray

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
        random_state: int | None = 0,
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

    def _gathered(self, X, y, sample_weight):
        """Rows, targets and weights of a stream or a Dask collection in memory: all are needed."""
        gathers, name = in_pieces(X), type(self).__name__
        X, y, sample_weight = read_whole(name, X, y, sample_weight)
        if gathers and X.shape[0] > gather.SAMPLE:
            size = readable(coordinates_bytes(X.shape[0], X.shape[1]))
            warnings.warn(
                f"{name} needs all rows at once: {X.shape[0]} rows, about {size} as numbers, were "
                "gathered into this process. Fit on a sample (Dask: X.sample(frac=...)), or use "
                "TableEncoder and KernelRidge, which pass over the rows where they are.",
                stacklevel=4,
            )
        return X, y, sample_weight

    def _used(self, X, y, sample_weight):
        """(X, y, weights, which rows) without the rows of weight zero."""
        if not isinstance(self.solver, str) or self.solver not in SOLVERS:
            raise ValueError(f"solver must be one of {', '.join(SOLVERS)}, got {self.solver!r}.")
        weights = pts.row_weights(sample_weight, len(y))
        if weights is None:
            return X, y, None, np.arange(len(y))
        used = np.flatnonzero(weights > 0)
        kept = None if np.all(weights[used] == 1) else weights[used]
        if len(used) == len(y):
            return X, y, kept, used
        X = X if hasattr(X, "shape") else given.array_of_lists(X)
        if X.shape[0] != len(y):
            raise ValueError(_inconsistent(X.shape[0], len(y)))
        return rows_at(X, used), y[used], kept, used

    def _fit_targets(
        self,
        X: Any,
        targets: Targets,
        used: np.ndarray,
        checkpoint: MutableMapping[str, Any] | None = None,
    ) -> JudgedRows:
        """Everything but the reading of y; `used` says which of the rows that were given X has."""
        check_checkpoint(checkpoint)
        check_options(self.metric, self.n_rounds, self.max_landmarks)
        return self._on_rows(X, targets, partial(self._fit_rows, used=used, checkpoint=checkpoint))

    def _on_rows(self, X, targets, fit):
        """Apply `fit` to the encoded rows and targets, within the memory that the rows leave."""
        with using(Resources.of(self)):
            Z = self._encoded(X, targets)
            (n, d), (given_n, t) = Z.shape, targets.columns.shape
            if n != given_n:
                raise ValueError(_inconsistent(n, given_n))
            with using(beside_table(n, d + t)):
                return fit(Z, targets)

    def _fit_rows(self, Z, targets, used, checkpoint) -> JudgedRows:
        rng = as_generator(self.random_state)
        self.copied_rows_ = 0
        if targets.classes is None:
            self.copied_rows_ = Observations.copies(Z, targets.columns, targets.weights)
        together = self.copied_rows_ > 0
        rows = Observations.of(Z, targets.columns, targets.weights, together=together)
        unseen_Z = self._without_own_targets(Z)
        choosing, learning = rng.spawn(1)[0], np.random.default_rng(int(rng.integers(2**31)))
        search = partial(self._searched, rows, targets, choosing, learning)
        found = resumed(checkpoint, self, (Z, targets.columns, targets.weights), search)
        self.metric_, self.learn_report_ = found.metric_, found.learn_report_
        chosen, unseen, kept = found.chosen_, found.unseen_, found.kept_
        rows = self._keeping(rows, chosen)
        folds = CrossFit(rows, targets, self.kernel, self.n_rounds, 0)
        solution = self._solved(rows, targets, rng)
        chosen_rows = kept if len(kept) else folds.judged(rng)
        if solution.solver == "iterative":
            chosen_rows = chosen_rows[:: max(1, len(chosen_rows) // JUDGED_BY_NEIGHBOURS)]
        judged = rows.some(chosen_rows)
        self._keep_uncertainty(rows, solution, rng)
        variances = self.uncertainty_.judged(
            judged.X, judged.T, chosen_rows, judged.weights, judged.share
        ).variances
        which, place, weights = rows.given_rows(chosen_rows)
        T = targets.columns[which]
        self.left_out_ = used[which]

        def left_out(solution, function):
            """Errors of given rows, each left out; effects of categories do not know them."""
            left = solution.left_out(chosen_rows, judged.share)
            # Copies of a row share its leverage, and have targets of their own.
            own = (T - as_numpy(judged.T)[place]) / left.left[place, None]
            return (left.residuals + rounding(solution, function))[place] + own - change(function)

        def rounding(solution, function):
            """The error of computed predictions: without noise, coefficients are large."""
            if solution.dual is None:
                return 0.0
            noise = 1.0 if judged.weights is None else 1 / as_numpy(judged.weights)[:, None]
            expected = solution.alphas * noise * as_numpy(solution.dual)[chosen_rows]
            return as_numpy(judged.T - function(judged.X)) - expected

        def change(function):
            if unseen_Z is None:
                return 0.0
            before, after = (function(part[which][:, chosen]) for part in (Z, unseen_Z))
            return as_numpy(after - before)

        if unseen is not None:
            self.validation_ = f"{folds.n_folds} folds"
            errors = T - unseen[which] - change(self._function)
        if unseen is None or solution.dual is not None:
            own = left_out(solution, self._function)
            # Kernels of the folds judge that of all rows, unless it is clearly worse: without
            # noise, errors differ by orders of magnitude between kernels that are much alike.
            if unseen is None or _large(own) > CLEARLY_WORSE * _large(errors):
                self.validation_, errors = "leave-one-out", own
        if together:
            self.validation_ += ", copies of a row together"
        learners: dict[str, Learner] = {}
        joins = self.stack and self.kernel is None and not targets.constant
        if joins and rows.n >= FEW_ROWS:
            unseen_X = rows.X
            if unseen_Z is not None:
                unseen_X = np.empty(rows.X.shape)
                unseen_X[rows.group] = unseen_Z[:, chosen]
            errors, learners = self._stacked(
                rows, targets, unseen_X, chosen_rows, left_out, (T, errors, place, weights)
            )
        signal = _signal(rows, solution)
        return JudgedRows(T, errors, as_numpy(variances)[place], weights, learners, signal)

    def _stacked(self, rows, targets, unseen_X, chosen, left_out, main):
        """Errors of the stack, with the weights of other rows, and how its parts are learned.

        unseen_X : the rows with effects of categories that do not know their own targets
        """
        T, errors, place, weights = main
        X, classes = rows.X, targets.classes is not None
        known = np.bincount(place, (errors**2).sum(axis=1)) / np.bincount(place)
        asked = (rows, unseen_X, chosen, known)
        on_host = is_numpy(X) and X.shape[1] <= MOST_FULL
        solution, linear, _ = linear_part(rows)
        models = {KERNEL: T - errors, LINEAR: T - left_out(solution, linear)}
        learners: dict[str, Learner] = {LINEAR: lambda rows: linear_part(rows)[1:]}
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
        # Copies of a row count as one row of their weight, however they are written.
        total = np.bincount(place, weights)
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
                weights * (values.argmax(axis=1) != T.argmax(axis=1))
                for values in (predicted, models[KERNEL])
            )
            if _beyond_chance(of_stack - of_kernel, CLEARLY_MORE_WRONG):
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
            self.error_norms_ = self.error_norms_ * own
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

    def _targets_like(self, model, y, weights) -> Targets:
        """The targets of a fit that takes over what another model chose."""
        raise NotImplementedError

    def _intervals_like(self, model, judged, signal) -> None:
        """Take over how wide another model's intervals are, where there are any."""

    @classmethod
    def _fitted_like(cls, model, judged, checkpoint, X, y, weights) -> Any:
        """A model with what another one chose: columns, metric, family, weights of the stack.

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
                options = {"effort": "quick", "family": family}
                return {
                    "learn_report_": self._learned(
                        rows, targets, model.metric_, learning, **options
                    )
                }

            known = resumed(checkpoint, self, (Z, T, weights, None), search)
            self.learn_report_ = known.learn_report_
            solution = self._solved(rows, targets, rng)
            self._keep_uncertainty(rows, solution, rng)
            self._join(rows, targets, model.stack_, judged.learners)
            self._intervals_like(model, judged, _signal(rows, solution))
            return self

        return self._on_rows(X, self._targets_like(model, y, weights), fit)

    def _columns_like(self, model, width):
        """The columns of the kinds that another model kept."""
        kept = np.arange(width)
        for kind in KINDS if self.encoder_ is not None else ():
            if not len(model._outputs(kind)):
                kept = np.setdiff1d(kept, self._outputs(kind))
        return kept

    def __plan__(self, n: int) -> Plan:
        """The ways of the last fit of n rows, with a usual kernel in place of the learned one."""
        X = np.random.default_rng(0).uniform(size=(n, PLANNED_COLUMNS))
        with using(Resources.of(self)):
            rows = Observations(X, np.zeros((n, 1)), None, None, None, np.arange(n), None)
            problem = _last_problem(rows, Matern(1.5), PLANNED_ALPHA, True)
            return Plan.of_solvers(problem, self.solver)

    def _keep_uncertainty(self, rows, solution, rng):
        """Ridge on landmarks: those of the fit; or the rows from which it is made again."""
        most = rows.landmarks_within(self.max_landmarks)
        self._landmark_ridge_ = self._landmark_rows_ = None
        if isinstance(solution, LandmarkSolution):
            self._landmark_ridge_ = solution.first(most)
            self._landmark_ridge_.forget()
        else:
            known = solution.cached("explained", lambda: None)  # landmarks that miss little
            self._landmark_rows_ = (
                np.sort(rng.permutation(rows.n)[:most])
                if known is None
                else np.asarray(known.landmarks.factor.indices)[:most]
            )
        if self.points_.shape[0] != rows.n and self._landmark_ridge_ is None:
            # A function of fewer points than rows: what is made of all rows is kept.
            problem = rows.problem(self.kernel_, self.alpha_, choose=False)
            self._landmark_ridge_ = LandmarkSolver(self._landmark_rows_).solve(problem)
            self._landmark_ridge_.forget()
        self._weights_ = rows.weights

    @property
    def uncertainty_(self) -> LandmarkSolution:
        """Ridge on landmarks, which knows the variance of predictions."""
        check_is_fitted(self)
        if self._landmark_ridge_ is not None:
            return self._landmark_ridge_
        if "_cached_uncertainty" not in vars(self):  # r x r numbers, too large to be saved
            zeros = namespace(self.points_).zeros_like(self.points_[:, :1])
            problem = RidgeProblem(
                Training.of(self.kernel_, self.points_),
                zeros,
                Given(np.array([self.alpha_])),
                self._weights_,
                intercept=True,
            )
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
        sets = self._sets_of_columns(np.arange(rows.X.shape[1]))
        metric = "diagonal" if self.metric == "full" and len(sets[0]) > MOST_FULL else self.metric
        chosen, unseen, kept = sets[0], None, np.empty(0, dtype=int)
        seed = int(choosing.integers(2**31))
        folds = CrossFit(rows, targets, self.kernel, self.n_rounds, seed)
        learns = not targets.constant and rows.n > 1
        if learns and metric is not None and folds.is_small(len(chosen)):
            best = folds.best(metric, sets)
            chosen, metric, unseen = best.columns, best.metric, best.predicted
        elif not targets.constant and len(sets) > 1:
            chosen = folds.columns(metric, sets, choosing)
        rows = _of_columns(rows, chosen)
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
        sizes = {"max_landmarks": self.max_landmarks, "n_rounds": self.n_rounds}
        return learn_from(rows, targets, self.kernel, metric=metric, rng=rng, **sizes, **options)[
            -1
        ]

    def _compare(self, gains, weights, constant):
        """Notice, and warn, where rows left out are predicted no better than by the mean.

        gains : for each loss that is looked at, that of the best constant less the model's own
        """
        gained = [_beyond_chance(weights * gain) for gain in gains]
        self.informative_ = any(gained) and not constant
        if not (self.informative_ or constant):
            warnings.warn(
                UNINFORMATIVE
                + ("the shares of the classes" if self._task == "classification" else "the mean")
                + ", "
                "beyond chance: the model knows nothing of new rows. More rows, or other columns, "
                "may tell more.",
                stacklevel=4,
            )

    def _without_own_targets(self, Z):
        """The rows as they would be if the effects of categories did not know their own targets.

        None where no column holds such effects.
        """
        without: dict[str, np.ndarray] = self.__dict__.pop("_means_without_", {})
        if not without:
            return None
        assert self.encoder_ is not None
        unseen, names = Z.copy(), list(self.encoder_.feature_names_out_)
        for name, effects in without.items():
            unseen[:, names.index(name)] = effects
        return unseen

    def _keeping(self, rows, chosen):
        """The rows with the chosen columns; the encoder follows where others are left out."""
        if len(chosen) < rows.X.shape[1]:
            kinds = {f"{kind}s": bool(np.isin(self._outputs(kind), chosen).any()) for kind in KINDS}
            self.encoder_ = encoder_tools.keep_outputs(self.encoder_, **kinds)
        return _of_columns(rows, chosen)

    def _outputs(self, kind):
        """Numbers of the encoder's columns of a kind."""
        return getattr(self.encoder_, f"{kind}_outputs_")

    def _sets_of_columns(self, columns):
        """The values alone; then with ranks, with columns for single values, and with both.

        Then without free text: where it says nothing, its many directions hide the other columns.
        """
        if self.encoder_ is None:
            return [columns]
        ranks, levels = self.encoder_.rank_outputs_, self.encoder_.level_outputs_
        values = np.setdiff1d(columns, np.union1d(ranks, levels))
        if not 0 < len(values) <= MOST_RANKED:
            return [values]
        levels = levels[: len(levels) if len(levels) <= MOST_LEVELS else 0]
        further = [a for a in (ranks, levels, np.union1d(ranks, levels)) if len(a)]
        further = further if len(ranks) and len(levels) else further[:1]
        bases = [values]
        without = np.setdiff1d(values, self.encoder_.text_outputs_)
        bases += [without] if 0 < len(without) < len(values) else []
        return [s for base in bases for s in (base, *(np.union1d(base, a) for a in further))]

    def _encoded(self, X, targets=None):
        """The rows as a matrix of floats: through the encoder, or as they are on a device.

        With targets the encoder is fitted.
        """
        reset = targets is not None
        if not hasattr(X, "shape"):
            X = given.array_of_lists(X)
        if not reset:
            self._check_same_kind(X)
        if is_array(X) and not is_numpy(X):
            X = pts.as_vectors(X)
            if reset:
                self.encoder_, self.n_features_in_ = None, X.shape[1]
            else:
                check_n_columns(self, X.shape[1])
            return namespace(X).astype(X, namespace(X).float64)
        if not reset and self.encoder_ is None:  # fitted on tensors, loaded from a file
            return pts.as_vectors(X).astype(np.float64)
        if is_array(X) and X.ndim != 2:
            X = pts.as_vectors(X)  # says how to reshape
        if pts.is_frame(X):
            given.check_names(X)
        validate_data(self, X, reset=reset, skip_check_array=True)
        if reset:
            encoder = self._new_encoder(X.shape[1])
            n, distinct = X.shape[0], Observations.distinct(X, targets.weights is not None)
            table = given.read_columns(
                encoder, X, reset=True
            )  # once: fit, effects and rows share it
            self.encoder_ = encoder.fit(table if distinct is X else distinct, targets.written)
            X = table
            if self.kernel is None and n == targets.columns.shape[0]:
                # The shares of all classes sum to one: the last says nothing new.
                T = targets.columns if targets.classes is None else targets.columns[:, :-1]
                self.encoder_, self._means_without_ = encoder_tools.add_target_encoding(
                    self.encoder_, X, T, targets.weights
                )
        assert self.encoder_ is not None
        with warnings.catch_warnings():
            if reset:  # its notes say which values of the training table were not read
                warnings.filterwarnings("ignore", UNREAD)
            return self.encoder_.transform(X)

    def _new_encoder(self, width: int = 0) -> TableEncoder:
        """The encoder that was given, unfitted, with ranks and columns for values to choose from.

        A kernel that was given may be made for the columns as they are; with very many columns
        there is nothing to choose.
        """
        further = self.kernel is None and width <= MANY_COLUMNS
        if self.encoder is None:
            return TableEncoder(ranks=further, levels=further)
        if not isinstance(self.encoder, TableEncoder) or self.encoder.keep is not None:
            raise ValueError(
                f"encoder must be a TableEncoder that makes numbers of all columns (keep=None), "
                f"or None; got {self.encoder!r}."
            )
        encoder = clone(self.encoder)
        return encoder.set_params(ranks=further, levels=further) if self.kernel is None else encoder

    def _check_same_kind(self, X):
        rows = X if is_array(X) else np.empty(0)
        if not same_kind(rows, self.points_):
            raise ValueError(
                f"Inputs passed to {type(self).__name__}.predict() must use the same namespace and "
                "the same device as those passed to fit(). Convert X, or fit again."
            )

    def _values(self, X) -> tuple[Any, Any]:
        """(f, encoded rows): f on the scale of the columns that were fitted."""
        check_is_fitted(self)
        Z = self._encoded(X)
        return self._function(Z), Z

    def _with_unseen(self, X, Z) -> list[tuple[np.ndarray, np.ndarray]]:
        """(rows, f) where a value of a category is unseen: f for each effect that it may have.

        f has one row per effect and row: shape (effects, rows, targets).
        """
        if self.encoder_ is None:
            return []
        found = []
        for rows, places, draws in encoder_tools.unseen_effects(self.encoder_, X):
            others = np.repeat(Z[rows][None], len(draws), axis=0)
            others[:, :, places] = draws[:, None, :]
            flat = others.reshape(-1, Z.shape[1])
            f = self._function(flat)
            found.append((rows, as_numpy(f).reshape(len(draws), len(rows), -1)))
        return found

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each column of the table, in every part of the stack by its weight."""
        check_is_fitted(self)
        shares = self._shares
        if self.encoder_ is None:
            return shares
        widths = [len(record["outputs"]) for record in self.encoder_.columns_]
        ends = np.cumsum(widths)
        return np.array([shares[b - w : b].sum() for b, w in zip(ends, widths)])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _of_columns(rows, chosen):
    return rows if len(chosen) == rows.X.shape[1] else replace(rows, X=rows.X[:, chosen])


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


def _large(errors):
    """The error that one row in ten is beyond."""
    return np.quantile(np.sqrt((errors**2).sum(axis=1)), 0.9)


def _beyond_chance(gains, standard_errors=STANDARD_ERRORS):
    """Tell whether the mean of some gains is above zero by more than its noise."""
    return bool(gains.mean() > standard_errors * gains.std() / max(len(gains), 1) ** 0.5)


def _inconsistent(n_X, n_y):
    return (
        f"Found input variables with inconsistent numbers of samples: X has {n_X} rows and y has "
        f"{n_y}."
    )
