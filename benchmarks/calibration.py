"""`python -m benchmarks.calibration`: do classes come as often as the probabilities say?

Five data sets that scikit-learn brings or makes. KernelDiscriminant with its defaults, beside it
scikit-learn's logistic regression and its discriminant with shrinkage, on the same ten-fold
held-out rows. Two numbers for each: the log loss (per row; guessing at random among c classes has
log c), and the calibration error, the mean difference between what was promised and what came true
over ten groups of equal size, by the probability of the most probable class.

And how sure they are of new rows where classes are coin flips, beside the least that any
calibration claims there: a line fitted to scores that say nothing.
"""

import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import RBF, KernelDiscriminant


def weak_signal():
    """300 rows of 20 columns, of which two say a little: any honest probability stays near 1/2."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 20))
    return X, (X[:, 0] + X[:, 1] + 3 * rng.normal(size=300) > 0).astype(int)


DATA = {
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits": lambda: load_digits(return_X_y=True),
    "weak signal": weak_signal,
}

MODELS = {
    "KernelDiscriminant": lambda: KernelDiscriminant(kernel=RBF("median")),
    "logistic regression": lambda: LogisticRegression(max_iter=5000),
    "discriminant, linear": lambda: LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
}


def calibration_error(P, y, groups=10):
    """Mean |promised - came true| over groups of rows of like confidence."""
    confidence, right = P.max(axis=1), P.argmax(axis=1) == y
    order = np.argsort(confidence, kind="stable")
    parts = [part for part in np.array_split(order, groups) if len(part)]
    gaps = [abs(confidence[part].mean() - right[part].mean()) for part in parts]
    return float(np.average(gaps, weights=[len(part) for part in parts]))


def measured(model, X, y):
    """(accuracy, log loss, calibration error) of probabilities for held-out rows."""
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    P = cross_val_predict(
        make_pipeline(StandardScaler(), model), X, y, cv=folds, method="predict_proba"
    )
    return float((P.argmax(axis=1) == y).mean()), float(log_loss(y, P)), calibration_error(P, y)


def sureness_on_coins(n, sets=500):
    """(mean, standard deviation) of how much surer than the share of the larger class a line is,
    fitted by maximum likelihood to n random scores."""
    rng, beyond = np.random.default_rng(0), []
    for _ in range(sets):
        y = rng.integers(2, size=n)
        line = LogisticRegression(C=1e10).fit(rng.normal(size=(n, 1)), y)
        sure = line.predict_proba(rng.normal(size=(500, 1))).max(axis=1).mean()
        beyond.append(sure - max(y.mean(), 1 - y.mean()))
    return np.mean(beyond), np.std(beyond)


COINS = ((60, 2), (60, 10), (60, 30), (150, 5), (150, 30), (400, 10), (400, 30))


def too_sure(n, d, sets=100):
    """How much surer of new rows than one half the share of the larger class is, and each model."""
    found = []
    for seed in range(sets):
        rng = np.random.default_rng([n, d, seed])
        X, y, new = rng.normal(size=(n, d)), rng.integers(2, size=n), rng.normal(size=(500, d))
        sure = [m().fit(X, y).predict_proba(new).max(axis=1).mean() for m in MODELS.values()]
        found.append([max(y.mean(), 1 - y.mean()), *sure])
    return np.mean(found, axis=0) - 0.5


def main():
    print(f"{'data':14s} {'model':22s} accuracy  log loss  calibration error")
    for name, load in DATA.items():
        X, y = load()
        for what, make in MODELS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                accuracy, loss, error = measured(make(), X, y)
            print(f"{name:14s} {what:22s} {accuracy:8.3f}  {loss:8.3f}  {error:8.3f}", flush=True)
    print("coin flips: points too sure of new rows, by the larger class and by the models above")
    for n, d in COINS:
        print(f"{n} x {d}", *(f"{100 * points:.1f}" for points in too_sure(n, d)), flush=True)
    for n in (50, 100):
        mean, spread = sureness_on_coins(n)
        print(f"a line on {n} coin flips: {mean:.3f} too sure, {spread:.3f} from set to set")


if __name__ == "__main__":
    main()
