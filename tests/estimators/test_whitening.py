"""Estimators that scale every direction to the same spread get a map that is safe for them."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.covariance import EllipticEnvelope
from sklearn.cross_decomposition import CCA, PLSSVD, PLSCanonical, PLSRegression
from sklearn.datasets import make_moons
from sklearn.decomposition import PCA, FastICA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mercer import RBF, Chunks, Kernelized, KernelMap
from mercer.estimators.kernelized import _safe_tol, _whitens

SAFE = np.sqrt(np.finfo(np.float64).eps)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(200, 2)), rng.normal(size=(100, 2))
    last_bits = 1 + 2e-16 * rng.integers(-1, 2, size=Z.shape)
    return X, Z, Z * last_bits


def change(model, Z, moved, answer):
    """Largest relative change of a row's answer when the last bits of its inputs change."""
    A, B = (answer(model, points) for points in (Z, moved))
    A, B = (v.reshape(len(Z), -1) for v in (A, B))
    return (np.linalg.norm(A - B, axis=1) / np.linalg.norm(A, axis=1)).max()


def scores(model, Z):
    return model.transform(Z)


def distances(model, Z):
    return model.estimator_.mahalanobis(model.kernel_map_.transform(Z))


# EllipticEnvelope calls a covariance singular below 1e-8, whatever the scale.
@pytest.mark.filterwarnings("ignore:The covariance matrix associated to your dataset")
@pytest.mark.filterwarnings("ignore:Determinant has increased")  # on the exact map
@pytest.mark.parametrize(
    ("estimator", "answer"),
    [
        (PCA(whiten=True), scores),
        (StandardScaler(), scores),
        (EllipticEnvelope(support_fraction=1.0, random_state=0), distances),
    ],
    ids=["PCA", "StandardScaler", "EllipticEnvelope"],
)
def test_last_bits_stay_last_bits(data, estimator, answer):
    X, Z, moved = data
    chosen = Kernelized(estimator, RBF(0.5)).fit(X)
    exact = Kernelized(clone(estimator), KernelMap(RBF(0.5))).fit(X)
    assert chosen.kernel_map_.tol == pytest.approx(SAFE)
    assert exact.kernel_map_.tol is None
    assert change(chosen, Z, moved, answer) < 1e-4
    # What it is saved from: rounding of 1e-16 becomes visible.
    assert change(exact, Z, moved, answer) > 20 * change(chosen, Z, moved, answer)


def test_whitened_scores_are_wrong_by_percents_without_it(data):
    X, Z, moved = data
    exact = Kernelized(PCA(whiten=True), KernelMap(RBF(0.5))).fit(X)
    assert change(exact, Z, moved, scores) > 0.01
    chosen = Kernelized(PCA(whiten=True), RBF(0.5)).fit(X)
    assert change(chosen, Z, moved, scores) < 1e-5


def test_scaled_rounding_costs_accuracy():
    """PLS scales columns: on the exact map its R^2 is below -100 here."""
    X, y = make_moons(400, noise=0.3, random_state=0)
    chosen, exact = (
        Kernelized(PLSRegression(3), kernel).fit(X[:300], y[:300]).score(X[300:], y[300:])
        for kernel in (RBF(0.3), KernelMap(RBF(0.3)))
    )
    assert chosen > 0 > exact


@pytest.mark.parametrize("shrinkage", [None, "auto"])
def test_discriminants_without_a_number_as_shrinkage(data, shrinkage):
    X, Z, moved = data
    y = np.hypot(*X.T) > 1.2
    estimator = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage)
    chosen, exact = (
        Kernelized(clone(estimator), kernel).fit(X, y) for kernel in (RBF(0.5), KernelMap(RBF(0.5)))
    )

    def scale_free(model, Z):
        values = model.decision_function(Z)
        return values + np.sign(values) * np.median(np.abs(values))  # away from zero

    assert change(chosen, Z, moved, scale_free) < 1e-4
    assert change(exact, Z, moved, scale_free) > 20 * change(chosen, Z, moved, scale_free)


def test_in_single_precision(data):
    X, _, _ = data
    model = Kernelized(PCA(whiten=True), RBF(0.5)).fit(X.astype(np.float32))
    assert model.kernel_map_.tol == pytest.approx(np.sqrt(np.finfo(np.float32).eps))
    assert _safe_tol(X.astype(np.float32)) > 1e-4 > _safe_tol(X)
    assert _safe_tol([[1.0, 2.0]]) == pytest.approx(SAFE)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("source", ["stream", "pandas", "polars", "dask array", "dask frame"])
def test_the_same_tolerance_wherever_the_rows_are(data, precision, source, monkeypatch):
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 50)
    X = data[0].astype(precision)
    expected = Kernelized(StandardScaler(), RBF(0.5)).fit(X).kernel_map_.tol
    if source == "stream":
        rows = Chunks(lambda: (X[a : a + 40] for a in range(0, 200, 40)))
    elif source == "dask array":
        rows = pytest.importorskip("dask.array").from_array(X, chunks=(40, 2))
    elif source == "dask frame":
        frame = pytest.importorskip("dask.dataframe").from_pandas
        rows = frame(pytest.importorskip("pandas").DataFrame(X, columns=["a", "b"]), npartitions=4)
    else:
        rows = pytest.importorskip(source).DataFrame({"a": X[:, 0], "b": X[:, 1]})
    assert Kernelized(StandardScaler(), RBF(0.5)).fit(rows).kernel_map_.tol == expected
    assert expected == pytest.approx(np.finfo(precision).eps ** 0.5)


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (StandardScaler(), True),
        (StandardScaler(with_std=False), False),
        (make_pipeline(StandardScaler(), SVC()), True),
        (make_pipeline(PCA(3, whiten=True), SVC()), False),
        (PCA(whiten=True), True),
        (PCA(), False),
        (FastICA(), True),
        (FastICA(2), False),
        (BaggingClassifier(make_pipeline(StandardScaler(), SVC())), True),
        (EllipticEnvelope(), True),
        (PLSRegression(), True),
        (PLSRegression(scale=False), False),
        (PLSCanonical(), True),
        (PLSSVD(), True),
        (CCA(), True),
        (LinearDiscriminantAnalysis(), True),
        (LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"), True),
        (LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0), True),
        (LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1), False),
        (Ridge(), False),
        (LogisticRegression(), False),
        (SVC(), False),
    ],
    ids=str,
)
def test_who_whitens(estimator, expected):
    assert _whitens(estimator) is expected


def test_others_keep_the_exact_map(data):
    X, _, _ = data
    assert Kernelized(Ridge(), RBF(0.5)).fit(X, X[:, 0]).kernel_map_.tol is None


def test_a_map_of_ones_own_is_left_alone(data):
    X, _, _ = data
    model = Kernelized(StandardScaler(), KernelMap(RBF(0.5), tol=1e-3)).fit(X)
    assert model.kernel_map_.tol == 1e-3
