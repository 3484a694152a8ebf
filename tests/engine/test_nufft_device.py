"""Transforms on a GPU: against plain products where there is a GPU, and everywhere with a stand-in
for cufinufft that computes on the host, so that what is sent there and comes back is tested too."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import RBF, KernelMap, KernelRidge, Matern, OnColumns, Periodic
from mercer.engine import arrays, nufft
from mercer.engine.arrays import as_numpy, is_cpu

KERNELS = [
    OnColumns(Matern(2.5, 1.0), [0]) + OnColumns(Periodic(1.0, 2.0), [0]),
    RBF(2.0),
    RBF(1.0),
]


class StandIn:
    """cufinufft.Plan, with its requirements, by plain products on the host."""

    def __init__(self, kind, shape, n_trans, eps, sign, dtype, *, gpu_device_id, gpu_stream, **_):
        assert (kind, sign) in ((1, -1), (2, 1))
        assert eps >= nufft.FINEST
        assert dtype == "complex128"
        assert (gpu_device_id, gpu_stream) == (0, 7)
        self.kind, self.shape, self.n_trans = kind, shape, n_trans

    def setpts(self, *columns):
        assert len(columns) == len(self.shape)
        assert all(x.ndim == 1 and str(x.dtype).endswith("float64") for x in columns)
        t = np.stack([as_numpy(x) for x in columns], axis=1)
        grid = np.meshgrid(*[np.arange(-(n // 2), n // 2 + 1) for n in self.shape], indexing="ij")
        self.phase = np.tensordot(t, np.stack(grid, -1), axes=([1], [-1]))

    def execute(self, data):
        assert not is_cpu(data)
        values = as_numpy(data)
        assert values.shape[0] == self.n_trans
        if self.kind == 1:
            found = np.tensordot(values, np.exp(-1j * self.phase), axes=1)
        else:
            d = len(self.shape)
            found = np.tensordot(values, np.moveaxis(np.exp(1j * self.phase), 0, -1), axes=d)
        return data.__array_namespace__().asarray(found, device=data.device)


@pytest.fixture(params=["stand-in", "cufinufft"])
def to_device(request, monkeypatch):
    if request.param == "stand-in":
        xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
        monkeypatch.setitem(sys.modules, "cufinufft", SimpleNamespace(Plan=StandIn))
        stream = lambda x: None if arrays.is_cpu(x) else (0, 7)  # noqa: E731
        monkeypatch.setattr("mercer.engine.nufft.cuda_stream", stream)
        return lambda X: xp.asarray(X, device=xp.Device("device1"))
    torch = pytest.importorskip("torch", reason="torch is not installed: make torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    pytest.importorskip("cufinufft", reason="pip install mercer[fourier-gpu]", exc_type=ImportError)
    return lambda X: torch.as_tensor(X, device="cuda")


@pytest.mark.parametrize("m", [(5,), (3, 4), (2, 3, 1)], ids=str)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_sums_and_values(m, count, to_device):
    rng = np.random.default_rng(0)
    t = rng.uniform(-0.5, 0.5, size=(30, len(m)))
    v = rng.normal(size=(count, 30))
    there = to_device(t)
    assert nufft.runs_on(there)
    assert not nufft.runs_on(t)
    C = nufft.sums(t, v, m, 1e-13)
    found = nufft.sums(there, v, m, 1e-13)
    assert isinstance(found, np.ndarray)
    assert_allclose(found, C, atol=1e-10)
    values = nufft.values(there, C, 1e-13)
    assert not is_cpu(values)
    assert_allclose(as_numpy(values), nufft.values(t, C, 1e-13), atol=1e-9)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_ridge_stays_on_the_device(d, to_device):
    rng = np.random.default_rng(d)
    X = rng.uniform(size=(400, d))
    y = np.sin(4 * X[:, 0]) + 0.1 * rng.normal(size=400)
    model = KernelRidge(0.1, KernelMap(KERNELS[d - 1], basis="fourier", tol=1e-5))
    expected = model.fit(X, y).predict(X)
    found = model.fit(to_device(X), y).predict(to_device(X))
    assert not is_cpu(found)
    assert_allclose(as_numpy(found), expected, atol=1e-8)
    with pytest.raises(ValueError, match=r"row 3 has 5 in column 0, outside of"):
        model.predict(to_device(np.where(np.arange(400)[:, None] == 3, 5.0, X)))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_native_code_sees_finite_numbers_only(bad, to_device):
    with pytest.raises(ValueError, match="must be finite"):
        nufft.sums(to_device(np.full((3, 1), bad)), np.ones((1, 3)), (2,), 1e-9)
    with pytest.raises(ValueError, match="must be finite"):
        nufft.sums(to_device(np.zeros((3, 1))), np.full((1, 3), bad), (2,), 1e-9)


def test_without_cufinufft_the_host_transforms(monkeypatch):
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    monkeypatch.setitem(sys.modules, "cufinufft", None)  # importing it fails
    monkeypatch.setattr("mercer.engine.nufft.cuda_stream", lambda x: (0, 7))
    X = np.random.default_rng(0).uniform(size=(200, 2))
    there = xp.asarray(X, device=xp.Device("device1"))
    assert not nufft.runs_on(there)
    model = KernelRidge(0.1, KernelMap(RBF(2.0), basis="fourier", tol=1e-5))
    found = model.fit(there, X[:, 0]).predict(there)
    assert not is_cpu(found)
    assert_allclose(as_numpy(found), model.fit(X, X[:, 0]).predict(X), atol=1e-9)
