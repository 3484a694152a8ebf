"""Models without a kernel, on the same folds: what a kernel has to beat."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from ...estimators import leaf_size
from ...kernels import points as pts
from ...rows import rows_at
from ..data import CLASSES
from .folds import ComparedRows
from .scores import Scored, scores_of

CONSTANTS = CONSTANT_CLASS, CONSTANT_NUMBER = "most frequent class", "mean"
LOGISTIC, LINEAR, BOOSTING = "logistic regression", "linear regression", "gradient boosting"
# The same linear models on texts, by counts of their short substrings, and on tables with objects.
NGRAMS, NUMBERS = "n-grams", "numbers"
# Trees of all classes together; more classes get fewer rounds.
_MOST_TREES = 1000
# Up to this many, trees grow faster with one thread: several would wait for each other.
_ENTRIES_FOR_ONE_THREAD = 200_000


@dataclass
class Baseline(Scored):
    """One ordinary model and its scores."""

    name: str
    model: Any
    tuned = ""  # nothing is chosen


def ordinary_models(data: ComparedRows) -> list[Baseline]:
    """Scores of a constant, a linear model and boosted trees. Texts get a linear model on their
    n-grams, and tables one on the n-grams and numbers in them. For other objects there is a
    constant alone, which a note says."""
    models: dict[str, Any] = {CONSTANT_NUMBER: DummyRegressor()}
    if data.task == CLASSES:
        models = {CONSTANT_CLASS: DummyClassifier()}
    X: Any = data.numbers()
    columns = _texts_and_numbers(data.X)
    # With these, ordinary models aim at the score by which they are judged.
    weight = "balanced" if data.balanced else None
    if X is not None:
        rounds = int(np.clip(_MOST_TREES // max(1, len(data.classes)), 10, 100))
        models |= models_of_numbers(data.task, len(data), rounds, weight)
    elif texts(data.X) is not None:
        X = texts(data.X)
        models |= _linear(data.task, weight, _counts(), NGRAMS)
    elif columns is not None:
        X = data.X
        words, values = columns
        steps: list[Any] = [(_counts().set_params(min_df=1), name) for name in words]
        steps += [(StandardScaler(), values)] if values else []
        made = [part for part, some in ((NGRAMS, words), (NUMBERS, values)) if some]
        models |= _linear(data.task, weight, make_column_transformer(*steps), " and ".join(made))
    elif not data.gram and not scipy.sparse.issparse(data.X):
        data.notes.append(
            "The points are neither numbers nor texts: the only model beside the kernels is a "
            "constant answer."
        )
    return [_scored(name, model, data, X) for name, model in models.items()]


def texts(X: Any) -> list[str] | None:
    """The sample as a list of texts; None where it is anything else."""
    if pts.is_frame(X) and X.shape[1] == 1:
        X = X.to_numpy()[:, 0]
    if pts.is_frame(X) or not isinstance(X, (list, np.ndarray)):
        return None
    return list(X) if all(isinstance(text, str) for text in X) else None


def _texts_and_numbers(X: Any) -> tuple[list[str], list[str]] | None:
    """Names of the columns of a frame with texts, and with numbers; None where there are none.
    Other columns, such as graphs, are left out."""
    if not pts.is_frame(X) or not all(isinstance(name, str) for name in X.columns):
        return None
    words, values = [], []
    for name in X.columns:
        column = X[name].to_numpy()
        if column.dtype.kind in "fiub":
            if np.isfinite(column.astype(float)).all():
                values.append(name)
        # A fold of a column that is mostly empty might hold no letter.
        elif all(isinstance(text, str) for text in column) and np.mean(column != "") > 0.5:
            words.append(name)
    return (words, values) if words or values else None


def _counts():
    return TfidfVectorizer(analyzer="char", ngram_range=(1, 3), sublinear_tf=True, min_df=2)


def _linear(task, weight, transformer, part):
    if task == CLASSES:
        model = LogisticRegression(C=10.0, class_weight=weight, max_iter=300)
        return {f"{LOGISTIC} on {part}": make_pipeline(transformer, model)}
    # The sparse solver has no leave-one-out: a penalty that suits rows of length one.
    return {f"{LINEAR} on {part}": make_pipeline(transformer, Ridge(alpha=1.0))}


def models_of_numbers(
    task: str | None, n: int, rounds: int = 100, class_weight: str | None = None
) -> dict[str, Any]:
    """A linear model on standardised columns and boosted trees, for n rows of numbers. Leaves are
    smaller where rows are few."""
    trees: Any = {"min_samples_leaf": leaf_size(n), "early_stopping": False, "random_state": 0}
    trees["max_iter"] = rounds
    if task == CLASSES:
        linear = LogisticRegression(class_weight=class_weight, max_iter=300)
        boosting: Any = HistGradientBoostingClassifier(class_weight=class_weight, **trees)
    else:
        linear, boosting = RidgeCV(np.logspace(-4, 5, 19)), HistGradientBoostingRegressor(**trees)
    name = LOGISTIC if task == CLASSES else LINEAR
    return {name: make_pipeline(StandardScaler(), linear), BOOSTING: boosting}


def _scored(name, model, data, X):
    y = data.target if data.codes is None else data.codes
    threads = 1 if X is not None and np.size(X) <= _ENTRIES_FOR_ONE_THREAD else None
    X = np.zeros((len(data), 1)) if X is None else X  # a constant does not look at it

    def predict(training: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, None]:
        t = y[training]
        if len(np.unique(t)) == 1:
            return np.full(len(new), t[0]), None
        return model.fit(rows_at(X, training), t).predict(rows_at(X, new)), None

    with warnings.catch_warnings(), threadpool_limits(threads, user_api="openmp"):
        # A baseline that has not quite converged is still a baseline.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return Baseline(name, model, **vars(scores_of(predict, data)))
