"""Models on tables: learned kernels against boosting, support vectors and xRFM, defaults and tuned.

Friedman 1 is generated. The UCI sets and Letter are read from the folder MERCER_BENCH_DATA (files
uci/NAME.csv.gz with the target last, uci/NAME_test_mask.csv.gz with one column per split) and are
left out without it. Errors are on standardised targets, first split. The small tables over ten
splits are in benchmarks/table_splits.py.
"""

import csv
import gzip
import os
import time
from functools import partial
from pathlib import Path

import numpy as np

from .harness import row

REGRESSION = ("kin40k", "pol", "elevators", "bike", "concrete", "airfoil", "energy")
# Rows of --quick runs, and rows that grid searches of support vector machines see.
QUICK_ROWS, SEARCHED_ROWS = 2000, 3000


def folder():
    return Path(os.environ.get("MERCER_BENCH_DATA", "no-such-folder"))


def friedman1():
    from sklearn.datasets import make_friedman1

    X, y = make_friedman1(12_000, 20, noise=1.0, random_state=0)
    return standardised(X[:10_000], y[:10_000], X[10_000:], y[10_000:])


def uci(name, split=0):
    table = np.loadtxt(folder() / f"uci/{name}.csv.gz", delimiter=",")
    mask = np.loadtxt(folder() / f"uci/{name}_test_mask.csv.gz", delimiter=",")[:, split] == 1
    train, test = table[~mask], table[mask]
    return standardised(train[:, :-1], train[:, -1], test[:, :-1], test[:, -1])


def letter():
    path = next(folder().glob("*Letter*.csv.gz"))
    with gzip.open(path, "rt") as lines:
        cells = [line[-17:] for line in csv.reader(lines)][1:]
    y = np.array([line[0] for line in cells])
    X = np.array([[float(value) for value in line[1:]] for line in cells])
    return X[:16_000], y[:16_000], X[16_000:], y[16_000:]


def standardised(X, y, X_test, y_test):
    """Both parts by the means and deviations of the training rows."""
    centre, spread = X.mean(axis=0), X.std(axis=0)
    spread[spread == 0] = 1
    mean, deviation = y.mean(), y.std() or 1.0
    return (
        (X - centre) / spread,
        (y - mean) / deviation,
        (X_test - centre) / spread,
        (y_test - mean) / deviation,
    )


# --- contenders: data -> the timed call, which returns (predictions, CPU seconds) ----------------


def call(make, data):
    X, y, X_test, _ = data

    def timed():
        start = time.process_time()
        predicted = make().fit(X, y).predict(X_test)
        return np.asarray(predicted).ravel(), time.process_time() - start

    return timed


def _mercer(data):
    from mercer import KernelClassifier, KernelRegressor

    return call(KernelRegressor if _is_number(data[1]) else KernelClassifier, data)


def _linear(data):
    from sklearn.linear_model import LogisticRegressionCV, RidgeCV

    alphas = np.logspace(-3, 5, 17)
    return call(partial(RidgeCV, alphas) if _is_number(data[1]) else LogisticRegressionCV, data)


def _boosting(data, **options):
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor if _is_number(data[1]) else HistGradientBoostingClassifier
    return call(partial(model, random_state=0, **options), data)


def _many_trees(data):
    if not _is_number(data[1]):
        raise ModuleNotFoundError("2000 trees per class are left out")
    return _boosting(data, max_iter=2000, early_stopping=False)


def _tuned_boosting(data):
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.model_selection import RandomizedSearchCV

    grid = {
        "learning_rate": [0.03, 0.1, 0.3],
        "max_leaf_nodes": [15, 31, 63, 127],
        "min_samples_leaf": [5, 20, 50],
        "l2_regularization": [0.0, 1.0, 10.0],
    }
    model = HistGradientBoostingRegressor if _is_number(data[1]) else HistGradientBoostingClassifier
    made = model(max_iter=1000, early_stopping=True, random_state=0)
    return call(lambda: RandomizedSearchCV(made, grid, n_iter=12, cv=3, random_state=0), data)


def _lightgbm(data):
    from lightgbm import LGBMClassifier, LGBMRegressor

    model = LGBMRegressor if _is_number(data[1]) else LGBMClassifier
    # Its own count of cores does not see that a process was given fewer.
    threads = int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
    return call(partial(model, random_state=0, verbose=-1, n_jobs=threads), data)


def _support_vectors(data):
    """A grid of C and gamma on some rows, then one fit on all."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC, SVR

    X, y, X_test, _ = data
    model = SVR(epsilon=0.05) if _is_number(y) else SVC()
    grid = {"C": [1, 10, 100, 1000], "gamma": np.array([0.1, 0.3, 1.0, 3.0]) / X.shape[1]}

    def timed():
        start = time.process_time()
        some = np.random.default_rng(0).permutation(len(X))[:SEARCHED_ROWS]
        best = GridSearchCV(model, grid, cv=3).fit(X[some], y[some]).best_estimator_
        predicted = best.fit(X, y).predict(X_test)
        return predicted, time.process_time() - start

    return timed


def _xrfm(data):
    """xRFM asks for validation rows: a fifth of the training rows."""
    from xrfm import xRFM

    X, y, X_test, _ = data
    if not _is_number(y):
        raise ModuleNotFoundError("xRFM is compared on regression only")
    cut = int(0.8 * len(X))

    def timed():
        import torch

        start = time.process_time()
        A, b, C = (torch.as_tensor(a, dtype=torch.float32) for a in (X, y[:, None], X_test))
        model = xRFM(device=torch.device("cpu"), tuning_metric="mse")
        model.fit(A[:cut], b[:cut], A[cut:], b[cut:])
        return np.asarray(model.predict(C)).ravel(), time.process_time() - start

    return timed


def _is_number(y):
    return np.asarray(y).dtype.kind == "f"


def accuracy_of(data, result):
    predicted, cpu = result
    truth = data[3]
    if not _is_number(truth):
        return {"accuracy": float(np.mean(predicted == truth)), "cpu_s": cpu}
    error = float(np.sqrt(np.mean((predicted - truth) ** 2)))
    return {"rmse": error, "r2": 1 - error**2 / float(np.var(truth)), "cpu_s": cpu}


CONTENDERS = {
    "mercer": _mercer,
    "linear, tuned": _linear,
    "HistGradientBoosting": _boosting,
    "HistGradientBoosting, 2000 trees": _many_trees,
    "HistGradientBoosting tuned": _tuned_boosting,
    "LightGBM": _lightgbm,
    "SVM tuned": _support_vectors,
    "xRFM": _xrfm,
}


def _register(name, title, load, quick):
    def data(quick):
        X, y, X_test, y_test = load()
        some = np.random.default_rng(0).permutation(len(X))[: QUICK_ROWS if quick else None]
        return X[some], y[some], X_test, y_test

    data.__name__ = name
    row(
        title=title,
        contenders=CONTENDERS,
        accuracy=accuracy_of,
        repeats=1,
        rounds=1,
        quick=quick,
        note="first split; errors on standardised targets",
    )(data)


_register("tables", "Friedman 1, 10000 x 20, from training rows to predictions", friedman1, False)
for _name in REGRESSION:
    if (folder() / f"uci/{_name}.csv.gz").exists():
        _register(f"tables_{_name}", f"{_name}, first split", partial(uci, _name), False)
if any(folder().glob("*Letter*.csv.gz")):
    _register("tables_letter", "Letter, 16000 rows to learn and 4000 to test", letter, False)
