"""Data for the rows: real sets where a folder with them is given, honest stand-ins elsewhere.

Set MERCER_BENCH_DATA to a folder with mnist.npz (x_train, y_train) and the CSV files of Shuttle and
Letter; without it the rows say that they ran on synthetic data of the same shape.
"""

import gzip
import os
from functools import cache
from pathlib import Path

import numpy as np


def _file(pattern):
    folder = os.environ.get("MERCER_BENCH_DATA")
    found = sorted(Path(folder).glob(pattern)) if folder else []
    return found[0] if found else None


@cache
def digits(n):
    """MNIST rows in [0, 1]; without them, smooth random images of the same size."""
    path = _file("mnist.npz")
    if path is not None:
        return np.load(path)["x_train"][:n].reshape(n, -1) / 255.0
    rng = np.random.default_rng(0)
    prototypes = rng.random((40, 784)) ** 3
    weights = rng.dirichlet(np.full(40, 0.15), size=n)
    return np.clip(weights @ prototypes + 0.05 * rng.normal(size=(n, 784)), 0, 1)


@cache
def shuttle():
    """Statlog Shuttle, standardised: strongly clustered; or a mixture of unequal clusters."""
    return _table("*Shuttle*.csv.gz", 58_000, 9, clusters=40)


@cache
def letter():
    """UCI Letter, standardised; or a mixture of even clusters."""
    return _table("*Letter*.csv.gz", 20_000, 16, clusters=26)


@cache
def kin40k():
    """Kin40k, standardised, and its target; or standard normal rows and a smooth function."""
    path = _file("**/kin40k.csv.gz")
    if path is not None:
        with gzip.open(path, "rt") as lines:
            rows = np.loadtxt(lines, delimiter=",")
    else:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(40_000, 8))
        f = np.sin(X[:, 0] + X[:, 1]) * np.cos(X[:, 2]) + np.sin(X[:, 3] * X[:, 4])
        rows = np.column_stack([X, f + 0.05 * rng.normal(size=len(X))])
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    return rows[:, :-1], rows[:, -1]


@cache
def letter_with_classes():
    """The rows of Letter and their letters; of the stand-in, clusters named by letters."""
    return letter(), _classes("*Letter*.csv.gz", letter(), [chr(65 + i) for i in range(26)])


@cache
def shuttle_with_classes():
    """The rows of Shuttle and their classes; of the stand-in, clusters."""
    names = ["Rad.Flow", "High", "Bypass", "Fpv.Open"]
    return shuttle(), _classes("*Shuttle*.csv.gz", shuttle(), names)


def _classes(pattern, X, names):
    """The one column that is not a number; else the nearest of some random centres."""
    path = _file(pattern)
    if path is not None:
        with gzip.open(path, "rt") as lines:
            cells = [line.rstrip().replace('"', "").split(",") for line in lines][1:]
        return np.array([next(c for c in row if c and not _is_number(c)) for row in cells])
    centres = X[np.random.default_rng(1).choice(len(X), len(names), replace=False)]
    nearest = ((X[:, None] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
    return np.array(names)[nearest]


def _table(pattern, n, d, clusters):
    path = _file(pattern)
    if path is not None:
        with gzip.open(path, "rt") as lines:
            cells = [line.rstrip().replace('"', "").split(",") for line in lines][1:]
        X = np.array([[float(c) for c in row if _is_number(c)][-d:] for row in cells])
    else:
        rng = np.random.default_rng(0)
        share = rng.dirichlet(np.full(clusters, 0.1))
        centres = rng.normal(size=(clusters, d)) * 3
        X = centres[rng.choice(clusters, n, p=share)] + 0.1 * rng.normal(size=(n, d))
    return (X - X.mean(axis=0)) / X.std(axis=0)


def _is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


def stand_in(pattern):
    return "" if _file(pattern) else "synthetic stand-in"
