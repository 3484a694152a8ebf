"""Nonuniform transforms: plain products and finufft against the sums that they are."""

import builtins

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer.engine import nufft

GRIDS = [(5,), (0,), (3, 4), (2, 0), (2, 3, 1)]


def exponentials(t, m):
    k = np.stack(np.meshgrid(*[np.arange(-n, n + 1) for n in m], indexing="ij"), -1)
    return np.exp(2j * np.pi * np.tensordot(t, k, axes=([1], [-1])))


@pytest.fixture(params=["plain", "finufft"])
def way(request, monkeypatch):
    if request.param == "finufft":
        pytest.importorskip("finufft", reason="pip install mercer[fourier]")
        monkeypatch.setattr(nufft, "FEW_TERMS", 0)
    else:
        monkeypatch.setattr(nufft, "_BLOCK", 50)


@pytest.mark.parametrize("m", GRIDS, ids=str)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_sums_and_values(m, count, way):
    rng = np.random.default_rng(0)
    t = rng.uniform(-0.5, 0.5, size=(30, len(m)))
    v = rng.normal(size=(count, 30))
    E = exponentials(t, m)
    expected = np.tensordot(v, np.conj(E), axes=1)
    assert_allclose(nufft.sums(t, v, m, 1e-13), expected, atol=1e-10)
    # Coefficients of real functions: any sums have their symmetry.
    C = nufft.sums(t, v, m, 1e-13)
    expected = np.tensordot(C, np.moveaxis(E, 0, -1), axes=len(m)).real
    assert_allclose(nufft.values(t, C, 1e-13), expected, atol=1e-9)


def test_without_finufft_large_problems_name_the_extra(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "finufft":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr(nufft, "FEW_TERMS", 0)
    t, v = np.zeros((3, 1)), np.ones((1, 3))
    assert_allclose(nufft.sums(t, v, (2,), 1e-9), 3.0)
    monkeypatch.setattr(nufft, "MOST_TERMS", 1)
    with pytest.raises(ImportError, match=r"pip install mercer\[fourier\]"):
        nufft.sums(t, v, (2,), 1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_native_code_sees_finite_numbers_only(bad, monkeypatch):
    pytest.importorskip("finufft", reason="pip install mercer[fourier]")
    monkeypatch.setattr(nufft, "FEW_TERMS", 0)
    with pytest.raises(ValueError, match="must be finite"):
        nufft.sums(np.full((3, 1), bad), np.ones((1, 3)), (2,), 1e-9)
    with pytest.raises(ValueError, match="must be finite"):
        nufft.sums(np.zeros((3, 1)), np.full((1, 3), bad), (2,), 1e-9)


@pytest.mark.parametrize("kind", ["sums", "values"])
def test_a_small_array_is_as_exact_beside_a_large_one(kind, rng):
    t, small = rng.uniform(-0.5, 0.5, size=(50, 2)), rng.normal(size=50)
    if kind == "values":
        small = nufft.sums(t, small[None], (3, 4), 1e-14)[0]
    both = np.stack([1e12 * small, small])

    def transformed(A):
        return nufft.sums(t, A, (3, 4), 1e-14) if kind == "sums" else nufft.values(t, A, 1e-14)

    assert_allclose(transformed(both)[1], transformed(small[None])[0], rtol=0, atol=1e-10)
