"""Methods on Fourier coordinates, against the same methods with the kernel matrix."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from mercer import (
    RBF,
    Chunks,
    KernelDiscriminant,
    Kernelized,
    KernelMap,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    Matern,
    Periodic,
    load,
    save,
    to_onnx,
)

KERNEL = RBF(3.0)
FOURIER = KernelMap(KERNEL, basis="fourier", tol=1e-8)
N = 200


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).uniform(size=(N, 2))


@pytest.fixture(scope="module")
def y(X):
    rng = np.random.default_rng(1)
    return np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=N)


@pytest.fixture(scope="module")
def Z():
    return np.random.default_rng(2).uniform(0.05, 0.95, size=(12, 2))


@pytest.fixture(params=["direct", "iterated"])
def way(request, monkeypatch):
    if request.param == "iterated":
        monkeypatch.setattr("mercer.solve.fourier_map.DIRECT", 10)
        monkeypatch.setattr("mercer.solve.fourier_map.WRITTEN_OUT", 11)
    return request.param


def ridge(alpha=0.1, kernel=FOURIER):
    return KernelRidge(alpha, kernel, tol=1e-6, max_iter=3000)


@pytest.mark.parametrize("several", [False, True], ids=["one target", "two targets"])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_ridge_is_that_of_the_kernel(way, several, weighted, X, y, Z):
    T = np.column_stack([y, y**2]) if several else y
    alpha = [0.1, 1.0] if several else 0.1
    weights = np.random.default_rng(3).uniform(size=N) if weighted else None
    if weighted:
        weights[:9] = 0.0
    ours = ridge(alpha).fit(X, T, weights)
    exact = KernelRidge(alpha, KERNEL, form="dual").fit(X, T, weights)
    got, expected = ours.predict(Z, return_std=True), exact.predict(Z, return_std=True)
    assert_allclose(got[0], expected[0], atol=1e-6)
    assert_allclose(got[1], expected[1], atol=1e-6)
    assert ours.form_ == "primal"
    assert ours.converged_
    assert (ours.n_iter_ > 1) == (way == "iterated")
    assert np.all(np.abs(got[0] - expected[0]) <= ours.error_bound(Z))


@pytest.mark.parametrize("source", ["stream", "dask"])
def test_sums_over_pieces_are_those_of_the_whole(way, source, X, y, Z, monkeypatch):
    monkeypatch.setattr("mercer.rows.gather.SAMPLE", 50)
    rows = Chunks(lambda: (X[a : a + 70] for a in range(0, N, 70)))
    if source == "dask":
        da = pytest.importorskip("dask.array", reason="pip install mercer[dask]")
        rows = da.from_array(X, chunks=(120, -1))
    for kernel in (KERNEL, RBF("scale") + 0.5 * Matern(3.5, 0.7)):
        chosen = KernelMap(kernel, basis="fourier", tol=1e-5)
        if kernel is not KERNEL:  # "scale" is that of the sample, which is 50 rows
            chosen = chosen.set_params(kernel=kernel.bind(X))
        here, there = (ridge(0.1, chosen).fit(rows_, y) for rows_ in (X, rows))
        assert_allclose(here.predict(Z), there.predict(Z), atol=1e-7)
        assert there.kernel_map_.n_samples_seen_ == N
    cv = [KernelRidgeCV([0.1, 1.0], FOURIER).fit(rows_, y) for rows_ in (X, rows)]
    assert_allclose(cv[0].cv_errors_, cv[1].cv_errors_, rtol=1e-3)
    maps = [clone(FOURIER).fit(rows_) for rows_ in (X, rows)]
    assert_allclose(maps[0].transform(Z), maps[1].transform(Z))


def test_the_penalty_by_generalised_cross_validation(way, X, y, monkeypatch):
    """Against its definition: mean squared residual / (1 - mean leverage)^2."""
    alphas = np.array([1e-2, 1e-1, 1.0, 10.0])
    model = KernelRidgeCV(alphas, FOURIER, tol=1e-6, max_iter=3000).fit(X, y)
    K = KERNEL(X)
    for alpha, got in zip(alphas, model.cv_errors_):
        hat = K @ np.linalg.inv(K + alpha * np.eye(N))
        exact = np.mean((y - hat @ y) ** 2) / (1 - np.trace(hat) / N) ** 2
        assert_allclose(got, exact, rtol=1e-5 if way == "direct" else 0.05)
    assert model.alpha_ == alphas[np.argmin(model.cv_errors_)]
    assert model.n_rows_for_alpha_ == N
    again = ridge(model.alpha_).fit(X, y)
    assert_allclose(model.predict(X), again.predict(X), atol=1e-3)


def test_a_centred_map(X, y, Z):
    centred = clone(FOURIER).set_params(center=True)
    ours = KernelRidge(0.1, centred).fit(X, y)
    exact = KernelRidge(0.1, KernelMap(KERNEL, center=True)).fit(X, y)
    assert_allclose(ours.predict(Z), exact.predict(Z), atol=1e-6)
    K, mean = KERNEL(Z, X), KERNEL(X).mean(axis=0)
    centred.fit(X)
    expected = KERNEL(Z) - K.mean(axis=1)[:, None] - K.mean(axis=1)[None, :] + mean.mean()
    Phi = centred.transform(Z)
    assert np.all(np.abs(Phi @ Phi.T - expected) <= centred.error_bound(Z))


@pytest.mark.parametrize("few", [0, 1 << 24], ids=["sums", "coordinates"])
def test_pca(few, X, Z, monkeypatch):
    monkeypatch.setattr("mercer.fit._FEW_VALUES", few)
    ours, exact = KernelPCA(4, FOURIER).fit(X), KernelPCA(4, KERNEL).fit(X)
    assert_allclose(ours.eigenvalues_, exact.eigenvalues_, rtol=1e-6)
    assert_allclose(ours.explained_variance_ratio_, exact.explained_variance_ratio_, rtol=1e-6)
    assert_allclose(ours.transform(Z), exact.transform(Z), atol=1e-6)


def test_other_methods(X, y, Z):
    labels = (y > 0.5).astype(int)
    for make in (
        lambda kernel: Kernelized(LogisticRegression(), kernel),
        lambda kernel: KernelDiscriminant(kernel=kernel),
    ):
        ours, exact = make(FOURIER).fit(X, labels), make(KERNEL).fit(X, labels)
        assert_allclose(ours.predict_proba(Z), exact.predict_proba(Z), atol=1e-4)
    eigen = clone(FOURIER).set_params(basis="fourier", append_residual=True).fit(X)
    assert_allclose((eigen.transform(Z) ** 2).sum(axis=1), 1.0, atol=1e-8)


def test_time_series_and_the_future():
    """A trend and a season; the box reaches beyond the rows."""
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0, 10, 200))[:, None]
    y = 0.1 * t[:, 0] + np.sin(2 * np.pi * t[:, 0]) + 0.1 * rng.normal(size=200)
    kernel = 4.0 * RBF(0.05) + Periodic(1.0, 1.0) * RBF(0.02)
    model = KernelRidge(0.01, KernelMap(kernel, basis="fourier", box=[(0, 13)])).fit(t, y)
    later = np.linspace(10, 13, 30)[:, None]
    exact = KernelRidge(0.01, kernel).fit(t, y)
    got, expected = model.predict(later, return_std=True), exact.predict(later, return_std=True)
    assert_allclose(got[0], expected[0], atol=1e-4)
    assert_allclose(got[1], expected[1], atol=1e-4)


def test_saving(way, X, y, Z, tmp_path):
    model = ridge().fit(X, y)
    save(model, tmp_path / "model.mercer")
    again = load(tmp_path / "model.mercer")
    for a, b in zip(model.predict(Z, return_std=True), again.predict(Z, return_std=True)):
        assert_allclose(a, b, rtol=1e-12)
    save(FOURIER.fit(X), tmp_path / "map.mercer")
    assert_allclose(load(tmp_path / "map.mercer").transform(Z), FOURIER.transform(Z))


def test_onnx_is_refused(X, y):
    pytest.importorskip("onnx", reason="pip install mercer[onnx]")
    for model in (clone(FOURIER).fit(X), ridge().fit(X, y)):
        with pytest.raises(TypeError, match="hold in a box"):
            to_onnx(model)


def test_refusals(X, y, Z, monkeypatch):
    monkeypatch.setattr("mercer.solve.fourier_map.DIRECT", 10)
    monkeypatch.setattr("mercer.solve.fourier_map.WRITTEN_OUT", 1)
    with pytest.warns(ConvergenceWarning, match="raise max_iter or alpha"):
        KernelRidge(1e-3, FOURIER, max_iter=3).fit(X, y)
    with pytest.raises(ValueError, match="need alpha > 0"):
        KernelRidge(0.0, FOURIER).fit(X, y)
    with pytest.raises(ValueError, match="all zero"):
        KernelRidge(0.1, FOURIER).fit(X, y, np.zeros(N))
    model = ridge().fit(X, y)
    monkeypatch.setattr("mercer.solve.fourier_map.MOST_SOLVES", 5)
    with pytest.raises(ValueError, match="at most 5 points at a time, got 12"):
        model.predict(Z, return_std=True)
    with pytest.raises(AttributeError, match="no landmarks"):
        _ = model.function_
    with pytest.raises(ValueError, match="outside of"):
        model.predict(Z + 1)
    monkeypatch.setattr("mercer.fit._FEW_VALUES", 0)
    tight = clone(FOURIER).set_params(tol=1e-3, memory_limit=300_000)
    with pytest.raises(MemoryError, match="all pairs"):
        KernelPCA(2, tight.set_params(kernel=RBF(60.0))).fit(X)
