"""The lines that docs/how-to/kernlab.md offers to people from R give kernlab's own numbers.

tests/kernlab/make_numbers.R made the numbers; R is not needed to run these tests.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mercer import (
    RBF,
    Kernelized,
    KernelMap,
    KernelPCA,
    KernelRidge,
    KernelSVC,
    Linear,
    Matern,
    OnColumns,
    Polynomial,
    Sigmoid,
    Spectrum,
)

NUMBERS = {
    name: np.array(values)
    for name, values in json.loads(
        (Path(__file__).parent / "kernlab/numbers.json").read_text()
    ).items()
}
X = load_iris().data
ROWS = [0, 50, 100, 149]
WORDS = [word + "\n" for word in ("banana", "bandana", "cabana")]  # kernlab counts an end mark

KERNELS = {
    "rbfdot": RBF(0.2),
    "laplacedot": Matern(0.5, length_scale=1 / 0.2),
    "polydot": Polynomial(3, gamma=0.5, coef0=2.0),
    "tanhdot": Sigmoid(gamma=0.01, coef0=0.1),
    "vanilladot": Linear(),
    "anovadot": sum((OnColumns(RBF(0.2), c) for c in range(1, 4)), OnColumns(RBF(0.2), 0)) ** 2,
}
STRINGS = {
    "stringdot_spectrum": Spectrum(3),
    "stringdot_boundrange": Spectrum(range(1, 4)),
    "stringdot_constant": Spectrum(range(1, 9)),
    "stringdot_exponential": sum(
        (1.5**-n * Spectrum(n) for n in range(2, 9)), 1.5**-1 * Spectrum(1)
    ),
    "stringdot_normalized": Spectrum(3, normalize=True),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name):
    assert_allclose(KERNELS[name](X[ROWS]).ravel(), NUMBERS[name], rtol=1e-11)


@pytest.mark.parametrize("name", STRINGS)
def test_string_kernels(name):
    assert_allclose(STRINGS[name](WORDS).ravel(), NUMBERS[name], rtol=1e-11)


def test_kpca_has_scores_longer_by_the_root_of_n():
    pca = KernelPCA(3, RBF(0.2)).fit(X)
    assert_allclose(pca.eigenvalues_ / len(X), NUMBERS["kpca_eig"], rtol=1e-9)
    scores = pca.transform(X[ROWS]) * np.sqrt(len(X))
    theirs = NUMBERS["kpca_rotated"].reshape(4, 3)
    assert_allclose(np.abs(scores), np.abs(theirs), rtol=1e-7)


def test_ksvm():
    species = np.repeat([-1, 1], 50)
    for machine in (
        Kernelized(SVC(kernel="linear", C=2.0, tol=1e-6), RBF(0.2)),
        KernelSVC(2.0, RBF(0.2)),
    ):
        values = machine.fit(X[50:], species).decision_function(X[50::10])
        assert_allclose(values, NUMBERS["ksvm_decision"], atol=1e-4)


def test_ksvm_standardises_columns_by_n_minus_1():
    species = np.repeat([-1, 1], 50)
    n = len(species)
    # scale() of R divides by n - 1, StandardScaler by n: the same kernel has another gamma.
    svm = Kernelized(SVC(kernel="linear", C=2.0, tol=1e-6), RBF(0.2 * (n - 1) / n))
    model = make_pipeline(StandardScaler(), svm).fit(X[50:], species)
    values = model.decision_function(X[50::10])
    assert_allclose(values, NUMBERS["ksvm_scaled_decision"], atol=1e-4)


def test_gausspr():
    model = KernelRidge(0.1, RBF(0.2)).fit(X[:, :3], X[:, 3])
    value, std = model.predict(X[ROWS, :3] + 0.25, return_std=True)
    assert_allclose(value, NUMBERS["gausspr_predict"], rtol=1e-9)
    assert_allclose(std, NUMBERS["gausspr_sdeviation"], rtol=1e-6)


def test_kcca():
    F, G = (KernelMap(RBF(0.2)).fit_transform(Z) for Z in (X[:, :2], X[:, 2:]))
    A, B = (np.linalg.cholesky(M.T @ M + 0.1 * np.eye(M.shape[1])) for M in (F, G))
    inner = np.linalg.solve(A, F.T @ G)
    correlations = np.linalg.svd(np.linalg.solve(B, inner.T), compute_uv=False)
    # kernlab adds 1e-6 to the diagonal and lists every correlation twice, with both signs.
    theirs = np.sort(np.abs(NUMBERS["kcca_kcor"]))[::-2]
    assert_allclose(correlations[:2], theirs, rtol=1e-4)


def test_specc():
    angle = 2 * np.pi * np.arange(60) / 60
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    K = RBF(2.0)(np.vstack([ring, 3 * ring]))
    labels = SpectralClustering(2, affinity="precomputed", random_state=0).fit_predict(K)
    assert len(set(zip(labels, NUMBERS["specc"], strict=True))) == 2
