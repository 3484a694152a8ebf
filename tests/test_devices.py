"""The same code where the arrays live: torch on the CPU, torch and CuPy on a GPU where one is,
and the second device of array-api-strict, which is one in name only and so takes a device's code
on any machine.

Every result is compared with NumPy's, and stays on the kind and device of the input.
"""

import os
import pickle
import re
import subprocess
import sys

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
    save,
)
from mercer.engine import memory, using
from mercer.engine.arrays import as_numpy, is_cpu
from mercer.engine.memory import MemoryLimitError
from mercer.estimators.kernel_map import fit_rows, read_rows
from mercer.space.spectra import Eigenpairs


def _torch(where):
    torch = pytest.importorskip("torch", reason="torch is not installed: make torch")
    if where == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    return lambda X: torch.as_tensor(X, device=where)


def _cupy():
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    return cupy.asarray


def _in_name_only():
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    return lambda X: xp.asarray(X, device=xp.Device("device1"))


MAKERS = {
    "strict-device": _in_name_only,
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


# --- more than the device holds -----------------------------------------------------------------


@pytest.fixture
def little_memory(monkeypatch):
    """Free memory, as if a device had that many bytes."""

    def leave(n_bytes):
        monkeypatch.setattr(memory, "free_memory", lambda x=None: n_bytes)

    return leave


def test_a_matrix_larger_than_the_memory_is_not_stored(make, rng, little_memory):
    X, Z = rng.normal(size=(600, 2)), rng.normal(size=(50, 2))
    whole = KernelMap(RBF(0.2)).fit(make(X))
    little_memory(2 * 8 * 600**2)
    part = KernelMap(RBF(0.2)).fit(make(X))
    assert part.rank_ == pytest.approx(whole.rank_, rel=0.1)
    inner = on_same_device(part.transform(make(X)) @ part.transform(make(Z)).T, make(X))
    bound = as_numpy(part.error_bound(make(X), make(Z)))
    assert np.all(np.abs(inner - RBF(0.2)(X, Z)) <= bound)


def test_a_rank_larger_than_the_memory_says_how_much(make, rng, little_memory):
    X = rng.normal(size=(600, 5))
    little_memory(1_000_000)
    with pytest.raises(MemoryLimitError, match=r"rank \d+ reached .* kB") as caught:
        KernelMap(RBF(2.0)).fit(make(X))
    # What it says would fit does.
    rank = int(re.search(r"max_rank=(\d+)", str(caught.value))[1])
    assert KernelMap(RBF(2.0), max_rank=rank).fit(make(X)).rank_ == rank
    with pytest.raises(MemoryLimitError, match=r"252 dimensions: 600 points need 2\.42 MB"):
        KernelMap(Polynomial(5), basis="closed").fit(make(X))
    with pytest.raises(
        MemoryLimitError, match=r"all eigenvalues of the 600 x 600 matrix, 17\.3 MB"
    ):
        KernelMap("sigmoid", indefinite="clip").fit(make(X))
    with pytest.raises(MemoryLimitError, match=r"vectors for 600 points takes 3\.07 MB"):
        KernelPCA(2, RBF(2.0), solver="krylov").fit(make(X))


def test_methods_stream_what_does_not_fit(make, rng, little_memory):
    """More rows than coordinates have room for: sums over passes, the same answer."""
    X = rng.normal(size=(45_000, 2))
    y = np.sin(X[:, 0]) * X[:, 1]
    kernel_map = KernelMap(RBF(0.1), tol=1e-8)
    expected = KernelRidge(0.1, KernelMap(RBF(0.1), tol=1e-8, memory_limit="200MB")).fit(X, y)
    expected = expected.predict(X[:30])
    little_memory(20_000_000)
    model = KernelRidge(0.1, kernel_map).fit(make(X), make(y))
    fitted = model.kernel_map_
    assert (
        fit_rows(fitted, read_rows(fitted, make(X))).coordinates() is None
    )  # they were never held
    assert_allclose(on_same_device(model.predict(make(X[:30])), make(X)), expected, atol=1e-5)


def cuda():
    torch = pytest.importorskip("torch", reason="torch is not installed: make torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    return torch


def test_a_matrix_larger_than_a_gpu(rng):
    torch = cuda()
    n = int((1.1 * torch.cuda.get_device_properties(0).total_memory / 16) ** 0.5)
    X = torch.as_tensor(rng.normal(size=(n, 2)), device="cuda")
    kernel_map = KernelMap(RBF(0.3), tol=1e-8).fit(X)
    assert kernel_map.rank_ < 1000
    assert float(kernel_map.residual(X).max()) <= 1.01e-8


def test_host_rows_visit_a_gpu_in_chunks(rng):
    """What is on the device at once is a fraction of the rows."""
    torch = cuda()
    some = rng.normal(size=(50_000, 64))
    X = np.tile(some, (160, 1))  # 4 GB
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    stream = Chunks.on_device(X, "cuda", rows=20_000)
    model = KernelPCA(3, KernelMap(RBF(0.01), max_rank=50)).fit(stream)
    assert torch.cuda.max_memory_allocated() - before < 0.8 * X.nbytes
    expected = KernelPCA(3, KernelMap(RBF(0.01), max_rank=50)).fit(some)
    ratio = as_numpy(model.explained_variance_ratio_)
    assert_allclose(ratio, expected.explained_variance_ratio_, rtol=0.1)


# --- files from a device --------------------------------------------------------------------------

# No torch, no CuPy, no GPU.
BARE = """
import sys
class Nothing:
    def find_spec(self, name, *_):
        if name.split('.')[0] in ('torch', 'cupy', 'array_api_strict'):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Nothing())
import pickle, mercer, numpy as np
for folder in sys.argv[1:]:
    Z, expected = np.load(folder + "/rows.npz").values()
    with open(folder + "/model.pickle", "rb") as file:
        models = [pickle.load(file), mercer.load(folder + "/model.mercer")]
    for model in models:
        got = model.predict(Z) if hasattr(model, "predict") else model.transform(Z)
        error = np.abs(got - expected).max()
        assert type(got) is np.ndarray and error <= 1e-9, (model, error)
"""


def test_files_load_where_there_is_no_device(make, X, Z, tmp_path):
    if is_cpu(make(X)):
        pytest.skip("torch on the CPU is pickled as it is; saved models: test_persistence.py")
    models = [
        KernelMap(RBF(0.3), basis="eigen", center=True),
        KernelPCA(3, RBF(0.3)),
        KernelRidge(),
    ]
    for i, model in enumerate(models):
        folder = tmp_path / str(i)
        folder.mkdir()
        model.fit(make(X), make(X[:, 0]))
        answer = model.predict if hasattr(model, "predict") else model.transform
        np.savez(folder / "rows.npz", Z, as_numpy(answer(make(Z))))
        (folder / "model.pickle").write_bytes(pickle.dumps(model))
        save(model, folder / "model.mercer")
    folders = [str(tmp_path / str(i)) for i in range(len(models))]
    hidden = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    subprocess.run([sys.executable, "-c", BARE, *folders], env=hidden, check=True)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_fused_products_on_a_gpu(dtype, rng):
    """Eigenpairs and ridge where the kernel matrix would not fit; tiles where there is no form."""
    torch = cuda()
    n = 1500
    X = rng.normal(size=(n, 5)).astype(dtype)
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)
    there, targets = torch.as_tensor(X, device="cuda"), torch.as_tensor(y, device="cuda")
    limit = X.itemsize * n * n - 1
    bound = 1e-9 if dtype == "float64" else 1e-5
    for kernel in (RBF(0.2), 0.5 * Matern(2.5) * RBF(0.1) + Polynomial(2), Laplacian(0.2)):
        exact = KernelPCA(4, kernel, solver="krylov").fit(X.astype(np.float64)).eigenvalues_
        with using(memory_limit=limit):
            found = Eigenpairs.leading(kernel, there, 4).values
        assert np.abs(as_numpy(found) - exact).max() <= bound * exact[0], kernel
        options = KernelMap(kernel, max_rank=200, random_state=0)
        model = KernelRidge(0.1, options, form="iterative", tol=1e-4).fit(there, targets)
        dual = KernelRidge(0.1, kernel, form="dual").fit(X.astype(np.float64), y)
        error = np.abs(as_numpy(model.predict(there)) - dual.predict(X.astype(np.float64)))
        assert np.all(error <= as_numpy(model.error_bound(there))), kernel
