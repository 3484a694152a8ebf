"""The one door: what users pass to a fit is validated, converted and bound once."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge
from sklearn.svm import SVC

from mercer import (
    RBF,
    Chunks,
    KernelDiscriminant,
    Kernelized,
    KernelLogistic,
    KernelMap,
    KernelPCA,
    KernelPCAL1,
    KernelRegressor,
    KernelRidge,
    KernelRidgeCV,
    KernelSVC,
    Precomputed,
)
from mercer.rows.read import read

METHODS = [
    KernelMap(RBF("scale")),
    KernelMap(RBF("scale"), basis="eigen", center=True),
    KernelPCA(5, RBF("scale")),
    KernelPCA(2, KernelMap(RBF("scale"), max_rank=20)),
    KernelPCAL1(1, RBF("scale"), n_init=1),
    KernelRidge(0.1, RBF("scale")),
    KernelRidge(0.1, RBF("scale"), form="iterative"),
    KernelRidge(0.1, KernelMap(RBF("scale"), max_rank=20)),
    KernelRidgeCV([0.1, 1.0], RBF("scale")),
    KernelDiscriminant(kernel=RBF("scale")),
    KernelSVC(kernel=RBF("scale")),
    KernelSVC(kernel=RBF("scale"), solver="landmarks"),
    KernelLogistic(kernel=RBF("scale")),
    Kernelized(Ridge(), RBF("scale")),
    Kernelized(SVC(kernel="linear"), RBF("scale")),
]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 30))
    return X, (X[:, 0] > 0).astype(float)


def stream(*columns, size=50):
    starts = range(0, len(columns[0]), size)
    pick = (lambda c: c[0]) if len(columns) == 1 else tuple
    return Chunks(lambda: (pick([c[a : a + size] for c in columns]) for a in starts))


@pytest.mark.parametrize("model", METHODS, ids=repr)
def test_rows_are_validated_and_bound_once(model, data, monkeypatch):
    validated, bound = [], []
    reading = sys.modules["mercer.rows.read"]  # the door offers its function by the same name
    check, bind = reading.validate_data, RBF.bind_points

    def counted(estimator, X, **options):
        validated.append(X)
        return check(estimator, X, **options)

    def counted_bind(self, X, names, weights=None):
        if isinstance(self.gamma, str):  # a bound kernel has a number, and gives itself
            bound.append(X)
        return bind(self, X, names, weights)

    monkeypatch.setattr(reading, "validate_data", counted)
    monkeypatch.setattr(RBF, "bind_points", counted_bind)
    model.fit(*data)
    assert (len(validated), len(bound)) == (1, 1)
    assert model.n_features_in_ == 30


def test_all_rows_or_passes(data, monkeypatch):
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 60)
    X, y = data
    passed = read(KernelRidge(), stream(X, y), RBF("scale"), targets="numbers")
    assert not passed.is_held
    assert passed.n is None
    held = read(KernelRidge(), stream(X, y, y + 1), RBF("scale"), targets="numbers", why="a test")
    assert held.n == 120
    assert_array_equal(held.T[:, 0], y)
    assert_array_equal(held.weights, y + 1)
    assert held.kernel == RBF("scale").bind(X, y + 1)
    labels = read(KernelRidge(), X, RBF(1.0), np.where(y > 0, "b", "a"), targets="labels")
    assert labels.classes.tolist() == ["a", "b"]
    assert_array_equal(labels.T, y)


def test_a_gram_matrix_is_cut_by_rows_and_columns(data):
    X, y = data
    kernel, rows = RBF(0.1), np.array([3, 50, 7])
    K = kernel(X)
    training = read(KernelRidge(), K, Precomputed(), y, targets="numbers")
    assert_allclose(training.some(rows).points, kernel(X[rows]))
    layout, precomputed = training.kernel.layout, training.kernel
    assert_allclose(layout.values(precomputed, K, rows, rows[:2]), kernel(X[rows], X[rows[:2]]))
    assert_allclose(kernel.layout.values(kernel, X, rows, rows[:2]), K[np.ix_(rows, rows[:2])])
    with pytest.raises(ValueError, match=r"k\(z, z\): pass it as diag="):
        layout.own_values(precomputed, K, None, K)
    with pytest.raises(ValueError, match="square Gram matrix at fit"):
        read(KernelRidge(), K[:, :9], Precomputed(), y, targets="numbers")


def test_learned_models_take_tuples_too(data):
    X, y = data
    model = KernelRegressor(n_rounds=1, metric=None)
    expected = model.fit(X[:, :3], y).predict(X[:5, :3])
    assert_allclose(model.fit(stream(X[:, :3], y), None).predict(X[:5, :3]), expected)
    with pytest.raises(ValueError, match="KernelRegressor requires y to be passed"):
        model.fit(X, None)
