"""How well the classes (or numbers) can be told in a kernel's space: cross-validated, paired.

Every kernel sees the same folds. In each the map is fitted on the training rows alone, and both
methods work on its coordinates.
"""

from dataclasses import dataclass

import numpy as np
import scipy.special
from sklearn.metrics import r2_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from ...engine.arrays import as_numpy
from ...estimators.ridge_cv import KernelRidgeCV
from ..embeddings import Coordinates, discriminant
from .measures import space_of
from .sampling import class_codes

NEIGHBOURS, DISCRIMINANT, RIDGE = "nearest neighbours", "discriminant", "ridge"
# Ridge penalties tried, relative to the mean squared length of the coordinates.
ALPHAS = np.logspace(-6, 1, 15)


@dataclass
class Fold(Coordinates):
    """Coordinates of one fold, and which rows these are."""

    training: np.ndarray
    new: np.ndarray


def fold_of(kernel, sample, training, new):
    kernel_map = space_of(kernel)
    Phi = as_numpy(kernel_map.fit_transform(sample.take(training))).astype(float)
    Phi_new = Phi[:0]
    if len(new):
        Phi_new = as_numpy(kernel_map.transform(sample.take(new, training))).astype(float)
    return Fold.scaled(Phi, Phi_new, training=training, new=new)


def scores(fold, sample, n_neighbors):
    """Score of each method on the new rows of one fold: accuracy, or R^2 for numbers."""
    y, t = sample.y[fold.training], sample.y[fold.new]
    n_neighbors = min(n_neighbors, len(y))
    if sample.task == "numbers":
        near = KNeighborsRegressor(n_neighbors, algorithm="brute").fit(fold.Phi, y)
        return {
            NEIGHBOURS: _r2(t, near.predict(fold.Phi_new)),
            RIDGE: _r2(t, ridge(fold.Phi, y, ALPHAS)(fold.Phi_new)),
        }
    codes = class_codes(sample.y)
    y, t = codes[fold.training], codes[fold.new]
    near = KNeighborsClassifier(n_neighbors, algorithm="brute").fit(fold.Phi, y)
    return {
        NEIGHBOURS: float(np.mean(near.predict(fold.Phi_new) == t)),
        DISCRIMINANT: float(np.mean(discriminant(fold.Phi, y).predict(fold.Phi_new) == t)),
    }


def ridge(Phi, y, alphas):
    """Predictions by ridge, its penalty chosen by leave-one-out; means are taken off first."""
    mean, centre = y.mean(), Phi.mean(axis=0)
    model = KernelRidgeCV(alphas, kernel="linear", form="primal").fit(Phi - centre, y - mean)
    return lambda Phi_new: model.predict(Phi_new - centre) + mean


def _r2(t, predicted):
    return float(r2_score(t, predicted)) if len(t) > 1 else float("nan")


def standard_error(values):
    """Of the mean over folds."""
    return float(np.std(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else float("nan")


@dataclass
class Difference:
    """Mean paired difference over folds, and the half-width of its 95 % interval."""

    mean: float
    margin: float

    @property
    def within_noise(self):
        return bool(abs(self.mean) <= self.margin)


def paired_difference(a, b, overlap):
    """Of two kernels on the same folds.

    Where training sets overlap, fold differences are not independent: then their variance is
    multiplied by 1/k + `overlap`, with overlap = n_test / n_train (Nadeau and Bengio, 2003).
    """
    d = np.asarray(a) - np.asarray(b)
    k = len(d)
    if k < 2:
        return Difference(float(d.mean()), float("inf"))
    error = np.std(d, ddof=1) * np.sqrt(1 / k + overlap)
    return Difference(float(d.mean()), float(scipy.special.stdtrit(k - 1, 0.975) * error))


def overlap_of(folds):
    """n_test / n_train, or 0 where the training sets are disjoint."""
    if len(folds) < 2 or not len(np.intersect1d(folds[0][0], folds[1][0])):
        return 0.0
    return len(folds[0][1]) / len(folds[0][0])
