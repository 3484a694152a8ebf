"""The same code where the arrays live: torch on the CPU here, torch and CuPy on a GPU where one is.

Every result is compared with NumPy's, and stays on the kind and device of the input.
"""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import (
    RBF,
    Chunks,
    KernelDiscriminant,
    KernelMap,
    KernelPCA,
    KernelRidge,
    Laplacian,
    Linear,
    Matern,
    OnColumns,
    Polynomial,
)
from mercer.engine.arrays import as_numpy, is_cpu


def _torch(where):
    torch = pytest.importorskip("torch", reason="torch is not installed: make torch")
    if where == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    return lambda X: torch.as_tensor(X, device=where)


def _cupy():
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    return cupy.asarray


MAKERS = {
    "torch-cpu": lambda: _torch("cpu"),
    "torch-cuda": lambda: _torch("cuda"),
    "cupy": _cupy,
}


@pytest.fixture(params=MAKERS)
def make(request):
    """NumPy array -> array of the backend, on its device."""
    return MAKERS[request.param]()


@pytest.fixture
def X(rng):
    return rng.normal(size=(120, 4))


@pytest.fixture
def Z(rng):
    return rng.normal(size=(30, 4)) * 1.5


def on_same_device(result, reference):
    assert type(result) is type(reference)
    assert is_cpu(result) == is_cpu(reference)
    return as_numpy(result)


@pytest.mark.parametrize("basis", ["cholesky", "eigen", "symmetric"])
@pytest.mark.parametrize("kernel", [RBF(0.3), Matern(0.5), Laplacian(0.2)], ids=repr)
def test_maps_reproduce_the_kernel_on_their_device(make, basis, kernel, X, Z):
    kernel_map = KernelMap(kernel, basis=basis)
    F, G = kernel_map.fit_transform(make(X)), kernel_map.transform(make(Z))
    inner = on_same_device(F @ G.T, make(X))
    error = np.abs(inner - kernel(X, Z))
    assert np.all(error <= as_numpy(kernel_map.error_bound(make(X), make(Z))))
    assert error.max() < 1e-7


def test_a_singular_matrix_takes_the_pivoted_algorithm_on_the_device(make, rng):
    X, Z = rng.normal(size=(400, 2)), rng.normal(size=(50, 2))
    kernel_map = KernelMap(RBF(1.0)).fit(make(X))
    assert kernel_map.rank_ < 300
    assert kernel_map.max_residual_ < 1e-13
    inner = as_numpy(kernel_map.transform(make(X)) @ kernel_map.transform(make(Z)).T)
    error = np.abs(inner - RBF(1.0)(X, Z))
    assert np.all(error <= as_numpy(kernel_map.error_bound(make(X), make(Z))))


def test_closed_maps(make, X, Z):
    kernel = Polynomial(2) + OnColumns(Linear(), [0, 1])
    kernel_map = KernelMap(kernel, basis="closed").fit(make(X))
    inner = on_same_device(kernel_map.transform(make(X)) @ kernel_map.transform(make(Z)).T, make(X))
    assert_allclose(inner, kernel(X, Z), rtol=1e-12, atol=1e-12)


def test_float32_stays_float32(make, X):
    kernel_map = KernelMap(RBF(0.3))
    F = kernel_map.fit_transform(make(X.astype(np.float32)))
    assert "float32" in str(F.dtype)
    assert_allclose(as_numpy(F @ F.T), RBF(0.3)(X), atol=2e-5)


def test_pca_ridge_and_discriminant_equal_numpy(make, X, Z):
    y = X[:, 0] * X[:, 1]
    labels = (y > 0).astype(np.int64)
    pca, mine = KernelPCA(5, RBF(0.3)).fit(X), KernelPCA(5, RBF(0.3)).fit(make(X))
    assert_allclose(on_same_device(mine.transform(make(Z)), make(Z)), pca.transform(Z), atol=1e-9)
    for form in ("primal", "dual"):
        ridge = KernelRidge(0.1, RBF(0.3), form=form)
        expected = ridge.fit(X, y).predict(Z)
        got = ridge.fit(make(X), make(y)).predict(make(Z))
        assert_allclose(on_same_device(got, make(Z)), expected, atol=1e-8)
    lda = KernelDiscriminant(kernel=RBF(0.3))
    expected = lda.fit(X, labels).predict(Z)
    assert np.array_equal(as_numpy(lda.fit(make(X), make(labels)).predict(make(Z))), expected)


def test_krylov_on_the_device(make, rng):
    X = rng.normal(size=(600, 30))
    mine = KernelPCA(6, RBF(0.01), solver="krylov").fit(make(X))
    dense = KernelPCA(6, RBF(0.01), solver="dense").fit(X)
    assert_allclose(as_numpy(mine.eigenvalues_), dense.eigenvalues_, rtol=1e-9)


def test_pickles_load_as_numpy_where_a_device_was(make, X, Z):
    kernel_map = KernelMap(RBF(0.3)).fit(make(X))
    loaded = pickle.loads(pickle.dumps(kernel_map))
    Z_there = make(Z) if is_cpu(make(Z)) else Z
    expected = as_numpy(kernel_map.transform(make(Z)))
    assert_allclose(as_numpy(loaded.transform(Z_there)), expected, atol=1e-9)


def test_rows_from_elsewhere_are_refused(make, X):
    kernel_map = KernelMap(RBF(0.3)).fit(make(X))
    with pytest.raises(ValueError, match="same namespace and the same device"):
        kernel_map.transform(X)
    with pytest.raises(ValueError, match="same namespace and the same device"):
        KernelMap(RBF(0.3)).fit(X).transform(make(X))


def test_integer_arrays_are_taken_as_numbers(make):
    X = np.arange(12).reshape(4, 3)
    F = KernelMap(RBF(0.1)).fit_transform(make(X))
    assert_allclose(as_numpy(F @ F.T), RBF(0.1)(X), atol=1e-12)


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_host_rows_stream_to_the_device(where, rng):
    make = _torch(where)
    X = rng.normal(size=(5000, 2))
    kernel_map = KernelMap(RBF(0.2), tol=1e-8).fit(Chunks.on_device(X, where, rows=700))
    assert kernel_map.max_residual_ <= 1e-8
    assert float(kernel_map.residual(make(X)).max()) <= 1.01e-8


def test_tensors_that_track_gradients_are_refused():
    torch = pytest.importorskip("torch", reason="torch is not installed: make torch")
    X = torch.zeros((4, 2), dtype=torch.float64, requires_grad=True)
    with pytest.raises(ValueError, match="detach"):
        KernelMap(RBF(1.0)).fit(X)
