"""Rows of support vector machines and logistic regression, against scikit-learn's in the same run.

Every row checks decision values: `difference` is the largest one between the two machines, on rows
that neither has seen. Letter and Shuttle need MERCER_BENCH_DATA.
"""

import numpy as np

from . import datasets
from .harness import row


def _machine(data):
    from mercer import RBF, KernelSVC

    X, y, Z, gamma, C = data[:5]
    model = KernelSVC(C, RBF(gamma))

    def call():
        return _decision(model.fit(X, y), Z), model

    return call


def _svc(data):
    from sklearn.svm import SVC

    X, y, Z, gamma, C = data[:5]
    shape = "ovo" if len(np.unique(y)) > 2 else "ovr"
    model = SVC(C=C, gamma=gamma, decision_function_shape=shape)

    def call():
        values = model.fit(X, y).decision_function(Z)
        return (-values if shape == "ovo" else values), None

    return call


def _decision(model, Z):
    return model.decision_function(Z) if len(model.classes_) == 2 else model.pair_values(Z)


def _accuracy(data, got):
    y, truth = data[1], data[5]
    values, model = got
    if values.ndim == 1:
        shown = {"accuracy": float(np.mean((values > 0) == (truth == np.unique(y)[1])))}
    else:
        shown = {}
    if model is not None:
        exact = _svc(data)()[0]
        shown |= {
            "difference": float(np.abs(values - exact).max()),
            "gap": float(np.max(model.gap_)),
            "certain": float(np.mean(model.certain(data[2]))),
        }
    return shown


def _letter_halves(n, quick):
    """A to M against N to Z; 2000 rows to predict."""
    X, letters = datasets.letter_with_classes()
    y = (letters > "M").astype(int)
    n = n // 4 if quick else n
    return X[:n], y[:n], X[-2000:], 0.1, 10.0, y[-2000:]


def _row(title, target, **options):
    return row(
        title=title,
        contenders={"mercer": _machine, "sklearn SVC": _svc},
        accuracy=_accuracy,
        target={"sklearn SVC": target},
        **{"repeats": 3, "rounds": 1} | options,
    )


@_row("SVM, Letter A-M against N-Z, 4000 rows, C = 10", 1.0, note=datasets.stand_in("*Letter*"))
def machine_letter_4000(quick):
    return _letter_halves(4000, quick)


@_row("SVM, Letter A-M against N-Z, 16 000 rows, C = 10", 1.0, note=datasets.stand_in("*Letter*"))
def machine_letter_16000(quick):
    return _letter_halves(16_000, quick)


@_row("SVM, 10 000 rows, 8 columns, C = 1", 3.0)
def machine_10000(quick):
    from .rows import _ridge_data

    X, t, Z, truth = _ridge_data(2000 if quick else 10_000)
    return X, (t > 0).astype(int), Z, 0.1, 1.0, (truth > 0).astype(int)


@_row("SVM, Shuttle, one class against the rest, C = 10", 5.0, note=datasets.stand_in("*Shuttle*"))
def machine_shuttle(quick):
    X, classes = datasets.shuttle_with_classes()
    y = (classes == "Rad.Flow").astype(int)
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[2000 : 6000 if quick else None], order[:2000]
    return X[train], y[train], X[test], 0.1, 10.0, y[test]


@_row("SVM, 100 000 rows, 10 columns, generated, C = 10", 5.0, repeats=1)
def machine_100000(quick):
    """Two classes that a smooth surface separates; 1 % of the labels are wrong."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=((10_000 if quick else 100_000) + 2000, 10))
    y = (np.sin(X[:, 0] + X[:, 1]) + X[:, 2] * X[:, 3] / 2 > 0).astype(int)
    noisy = np.where(rng.random(len(y)) < 0.01, 1 - y, y)
    return X[:-2000], noisy[:-2000], X[-2000:], 0.05, 10.0, y[-2000:]


@_row("SVM, 26 classes of Letter, C = 10", 1.0, note=datasets.stand_in("*Letter*"), quick=False)
def machine_26(quick):
    X, letters = datasets.letter_with_classes()
    n = 3000 if quick else 18_000
    return X[:n], letters[:n], X[-2000:], 0.1, 10.0, letters[-2000:]


def _logistic(data):
    from mercer import RBF, KernelLogistic

    X, y, Z, gamma, C = data[:5]
    return lambda: KernelLogistic(C, RBF(gamma)).fit(X, y).predict_proba(Z)[:, 1]


def _logistic_auto(data):
    return _logistic((*data[:4], "auto"))


def _ridge_cv(data):
    from mercer import RBF, KernelRidgeCV

    X, y, Z, gamma, _ = data[:5]
    model = KernelRidgeCV([0.01, 0.1, 1.0], RBF(gamma))
    return lambda: np.clip((model.fit(X, 2.0 * y - 1).predict(Z) + 1) / 2, 1e-6, 1 - 1e-6)


def _calibrated(data):
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import SVC

    X, y, Z, gamma, C = data[:5]
    model = CalibratedClassifierCV(SVC(C=C, gamma=gamma), ensemble=False)
    return lambda: model.fit(X, y).predict_proba(Z)[:, 1]


def _log_loss(data, p):
    from sklearn.metrics import log_loss

    return {"log loss": float(log_loss(data[-1], p))}


@row(
    title="logistic regression, Letter A-M against N-Z, 16 000 rows, C = 10",
    contenders={
        "mercer": _logistic,
        "mercer, C='auto'": _logistic_auto,
        "mercer KernelRidgeCV": _ridge_cv,
        "sklearn SVC, calibrated": _calibrated,
    },
    accuracy=_log_loss,
    target={"mercer KernelRidgeCV": 0.5},
    repeats=1,
    rounds=1,
    note=datasets.stand_in("*Letter*"),
)
def logistic_letter(quick):
    return _letter_halves(16_000, quick)
