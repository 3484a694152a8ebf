"""Fourier coordinates, their sums and their box, against coordinates written out."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

from mercer import RBF, Constant, KernelMap, Linear, Matern, OnColumns, Periodic, RationalQuadratic
from mercer.engine.memory import MemoryLimitError
from mercer.rows.moments import Spread
from mercer.space import fourier
from mercer.space.fourier_grid import Extent, fourier_space

CASES = [
    (RBF(20.0), 1),
    (RBF([20.0, 5.0]), 2),
    (RBF(3.0), 3),
    (Matern(1.5, 0.3), 1),
    (RBF(3.0) * Periodic(1.0, 0.2), 1),
    (OnColumns(Matern(2.5, 0.3), [1]) * OnColumns(RBF(3.0), [0]), 2),
    (OnColumns(RBF(3.0), [3]), 5),
    (Constant(2.0), 2),
]


def space_and_rows(kernel, d, tol=1e-4, n=60):
    X = np.random.default_rng(0).uniform(-3, -2, size=(n, d))
    return fourier_space(kernel.bind(X), Extent.of(X), tol=tol), X


@pytest.mark.parametrize(("kernel", "d"), CASES, ids=[f"{k!r}, {d}" for k, d in CASES])
def test_coordinates_functions_and_sums(kernel, d, monkeypatch):
    space, X = space_and_rows(kernel, d)
    Phi, K = space.coordinates(X), space.kernel(X)
    assert Phi.shape == (60, space.rank)
    assert np.abs(Phi @ Phi.T - K).max() <= space.error + 1e-13
    assert space.error <= 1e-4 * K[0, 0]
    assert_allclose(space.squared_norms(X), (Phi**2).sum(axis=1))
    rng = np.random.default_rng(1)
    coef = rng.normal(size=(space.rank, 3))
    assert_allclose(space.evaluate(X, coef), Phi @ coef, atol=1e-6)
    T, w = rng.normal(size=(60, 2)), rng.uniform(size=60)
    monkeypatch.setattr(fourier, "_ROWS", 25)
    got, expected = space.sums(X, T, w).spread(space), Spread.of(Phi, T, w)
    for name in ("n", "mean", "scatter", "cross", "target"):
        assert_allclose(getattr(got, name), getattr(expected, name), atol=1e-6, err_msg=name)
    got, expected = space.sums(X, T).spread(space), Spread.of(Phi, T)
    for name in ("n", "mean", "scatter", "largest", "cross", "target"):
        assert_allclose(getattr(got, name), getattr(expected, name), atol=1e-6, err_msg=name)


def test_fewer_frequencies_are_kept_than_a_grid_has():
    """Corners of the grid weigh little; what is dropped stays within the tolerance."""
    space, _ = space_and_rows(RBF(20.0), 2, tol=1e-8)
    m = space.reach
    assert space.rank < 0.85 * (2 * m[0] + 1) * (2 * m[1] + 1)
    assert 0.1e-8 < space.error <= 1e-8
    listed = {tuple(j) for j in space.frequencies}
    assert len(listed) == len(space.frequencies)
    assert not any(tuple(-np.array(j)) in listed for j in listed)


def test_rows_outside_of_the_box_are_refused():
    X = np.random.default_rng(0).uniform(size=(50, 2))
    kernel_map = KernelMap(RBF(5.0), basis="fourier").fit(X)
    inside = np.vstack([X.min(axis=0) - 0.04, X.max(axis=0) + 0.04])
    assert np.isfinite(kernel_map.transform(inside)).all()
    Z = np.vstack([X[:2], [[0.5, 1.5]]])
    for method in (kernel_map.transform, kernel_map.residual, kernel_map.error_bound):
        with pytest.raises(ValueError, match=r"row 2 has 1\.5 in column 1, outside of"):
            method(Z)
    wide = KernelMap(RBF(5.0), basis="fourier", box=[(0, 1), (0, 2)]).fit(X)
    assert wide.rank_ > kernel_map.rank_
    K = RBF(5.0)(Z)
    assert np.all(np.abs(wide.transform(Z) @ wide.transform(Z).T - K) <= wide.error_bound(Z))
    # A periodic kernel has no box.
    daily = KernelMap(Periodic(1.0, 0.5), basis="fourier").fit(X)
    far = X + 1e6
    assert_allclose(daily.transform(far), daily.transform(far - 3e6), atol=1e-8)


@pytest.mark.parametrize(
    ("kernel", "options", "error", "message"),
    [
        (Linear(), {}, ValueError, "has no Fourier series: .* are Constant, .*, RBF"),
        (RBF(1.0), {"tol": 1e-15}, ValueError, "certified to tol=1e-13 at best"),
        (RBF(1.0), {"box": [(0, 1)]}, ValueError, "box must hold"),
        (RBF(1.0), {"box": [(0, 1), (0, 0.5)]}, ValueError, "make the box larger"),
        (RBF(1e4), {"max_rank": 3000}, ValueError, "max_rank=3000. Here length scales 8 times"),
        (Matern(3.5, 0.2), {"max_rank": 9000}, ValueError, "Here tol=1e-05 would fit"),
        (RBF(1e4), {"memory_limit": "1MB"}, MemoryLimitError, "length scales .* as long would"),
        (Matern(1.5, 1e-3), {}, MemoryLimitError, "frequencies"),
        (RationalQuadratic(0.4), {}, ValueError, "decays so slowly"),
    ],
    ids=lambda v: None if isinstance(v, (type, str)) else repr(v),
)
def test_refusals(kernel, options, error, message):
    X = np.random.default_rng(0).uniform(size=(50, 2))
    with pytest.raises(error, match=message):
        KernelMap(kernel, basis="fourier", **options).fit(X)


def test_more_columns_and_other_bases():
    X = np.random.default_rng(0).uniform(size=(50, 4))
    with pytest.raises(ValueError, match="looks at 4"):
        KernelMap(RBF(1.0), basis="fourier").fit(X)
    with pytest.raises(ValueError, match="box belongs to basis='fourier'"):
        KernelMap(RBF(1.0), box=[(0, 1)] * 4).fit(X)
    plain = KernelMap(RBF(1.0), basis="fourier").fit(X[:, :1])
    with pytest.raises(ValueError, match="has no landmarks"):
        plain.function(np.ones(plain.rank_))


def test_kinds_of_rows():
    """Sparse rows, single precision, one row, and a column without spread."""
    X = np.random.default_rng(0).uniform(size=(50, 2))
    dense = KernelMap(RBF(5.0), basis="fourier").fit(X)
    sparse = KernelMap(RBF(5.0), basis="fourier").fit(scipy.sparse.csr_array(X))
    assert_allclose(sparse.transform(scipy.sparse.csr_array(X)), dense.transform(X))
    single = KernelMap(RBF(5.0), basis="fourier").fit(X.astype(np.float32))
    Phi = single.transform(X.astype(np.float32))
    assert Phi.dtype == np.float32
    x = X.astype(np.float32)
    assert np.all(
        np.abs(Phi.astype(float) @ Phi.T.astype(float) - RBF(5.0)(x.astype(float)))
        <= single.error_bound(x)
    )
    one = KernelMap(RBF(5.0), basis="fourier").fit(X[:1])
    assert_allclose(one.transform(X[:1]) @ one.transform(X[:1]).T, 1.0, atol=1e-7)
    flat = np.column_stack([X[:, 0], np.full(50, 7.0)])
    assert KernelMap(RBF(5.0), basis="fourier").fit(flat).max_residual_ <= 1e-8
