"""Models without a kernel, on the same folds: what a kernel has to beat."""

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from ...kernels.points import is_frame
from .sampling import CLASSES, select
from .scores import Judge, Scored

CONSTANT_CLASS, CONSTANT_NUMBER = "most frequent class", "mean"
LOGISTIC, LINEAR, BOOSTING = "logistic regression", "linear regression", "gradient boosting"
# Trees of all classes together; more classes get fewer rounds.
MOST_TREES = 1000
# Entries that a sparse matrix may have when written out for the trees.
MOST_ENTRIES = 2e7
# Up to this many, trees grow faster with one thread: several would wait for each other.
ENTRIES_FOR_ONE_THREAD = 200_000


@dataclass
class Baseline(Scored):
    """One ordinary model and its scores."""

    name: str = ""


def ordinary_models(sample, advance=lambda: None) -> list[Baseline]:
    """Scores of a constant, a linear model and boosted trees; a constant alone for objects."""
    classes = sample.task == CLASSES
    models: dict = {CONSTANT_CLASS if classes else CONSTANT_NUMBER: None}
    X = numbers(sample)
    if X is not None:
        models |= _ordinary(sample, X)
    return [_scored(name, model, sample, X, advance) for name, model in models.items()]


def numbers(sample):
    """The sample as a matrix for ordinary models; None for objects, Gram matrices and the like."""
    X = sample.X
    if sample.gram or not (is_frame(X) or scipy.sparse.issparse(X) or isinstance(X, np.ndarray)):
        return None
    if scipy.sparse.issparse(X):
        if X.shape[0] * X.shape[1] > MOST_ENTRIES:
            return None
        X = X.toarray()
    X = X.to_numpy() if is_frame(X) else X
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        return None
    X = X.astype(float)
    return X if np.isfinite(X).all() else None


def _ordinary(sample, X):
    if sample.task == CLASSES:
        rounds = int(np.clip(MOST_TREES // sample.n_classes, 10, 100))
        return {
            LOGISTIC: make_pipeline(
                StandardScaler(), LogisticRegression(class_weight="balanced", max_iter=300)
            ),
            BOOSTING: HistGradientBoostingClassifier(
                max_iter=rounds, class_weight="balanced", early_stopping=False, random_state=0
            ),
        }
    return {
        LINEAR: make_pipeline(StandardScaler(), RidgeCV(np.logspace(-4, 5, 19))),
        BOOSTING: HistGradientBoostingRegressor(early_stopping=False, random_state=0),
    }


def _scored(name, model, sample, X, advance):
    judge = Judge(sample)
    y = sample.codes if sample.task == CLASSES else sample.y
    threads = 1 if X is not None and X.size <= ENTRIES_FOR_ONE_THREAD else None
    for training, new in sample.folds:
        t = y[training]
        if model is None:
            constant = np.bincount(t).argmax() if sample.task == CLASSES else t.mean()
            predicted = np.full(len(new), constant)
        elif len(np.unique(t)) == 1:
            predicted = np.full(len(new), t[0])
        else:
            with warnings.catch_warnings(), threadpool_limits(threads, user_api="openmp"):
                # A baseline that has not quite converged is still a baseline.
                warnings.simplefilter("ignore", ConvergenceWarning)
                predicted = model.fit(select(X, training), t).predict(select(X, new))
        judge.add(new, predicted)
        advance()
    found = judge.result()
    return Baseline(found.scores, found.predicted, name)
