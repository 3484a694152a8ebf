"""Sums over rows: the same however they are cut, and with all their digits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import RBF, KernelMap, Polynomial
from mercer.estimators.pca import _Extremes
from mercer.rows.moments import Spread
from mercer.space.spectra import signs


@pytest.fixture
def Phi(rng):
    return rng.normal(size=(900, 4))


@pytest.fixture
def T(rng):
    return rng.normal(size=(900, 2))


def in_parts(Phi, T, cuts=(1, 300, 310)):
    parts = map(Spread.of, np.split(Phi, cuts), np.split(T, cuts))
    return sum(parts, next(parts))


def test_sums_of_parts_are_those_of_all_rows(Phi, T):
    sums, mean = in_parts(Phi, T), Phi.mean(axis=0)
    assert sums.n == 900
    assert_allclose(sums.mean, mean, atol=1e-14)
    assert_allclose(sums.scatter, (Phi - mean).T @ (Phi - mean), atol=1e-11)
    assert_allclose(sums.cross, (Phi - mean).T @ T, atol=1e-11)
    assert_allclose(sums.target, T.sum(axis=0), atol=1e-11)
    assert sums.largest == pytest.approx((Phi**2).sum(axis=1).max(), rel=1e-14)


def test_a_mean_far_away_costs_no_digits(Phi, T):
    """Rows are rounded at 1e6 eps; sums of squares about zero would lose 1e12 eps."""
    far = in_parts(Phi + 1e6, T)
    exact = np.cov(Phi.T, bias=True) * 900
    assert_allclose(far.scatter, exact, rtol=0, atol=900 * 1e6 * np.finfo(float).eps * 8)
    plain, first = Spread.uncentred(Phi + 1e6).scatter, (Phi + 1e6).sum(axis=0)
    assert np.abs(plain - np.outer(first, first) / 900 - exact).max() > 1e-3


def test_sums_in_another_basis_and_about_another_point(Phi, T, rng):
    V, origin = np.linalg.qr(rng.normal(size=(4, 4)))[0], rng.normal(size=4)
    got = in_parts(Phi, T).rotated(V).moved(origin).about_zero()
    expected = Spread.uncentred(Phi @ V - origin, T)
    for name in ("n", "scatter", "cross", "target"):
        assert_allclose(getattr(got, name), getattr(expected, name), atol=1e-10)


@pytest.mark.parametrize("kernel", [RBF(0.3), Polynomial(2)], ids=repr)
@pytest.mark.parametrize(
    ("basis", "tol"), [("cholesky", 1e-6), ("cholesky", 0.1), ("closed", 1e-6)]
)
def test_radii_of_the_mean_from_sums_bound_those_of_the_rows(kernel, basis, tol, rng):
    if basis == "closed" and kernel.explicit_dim(2) is None:
        kernel = Polynomial(3)
    X = rng.normal(size=(400, 2))
    kernel_map = KernelMap(kernel, tol=tol, basis=basis).fit(X)
    space, Phi = kernel_map.map_.space, kernel_map.transform(X)
    rows = space.radii(X, kernel.diag(X))
    exact, rho2 = rows.mean(), float(np.mean(rows.rho2))
    got = space.radii_of_mean(Phi.T @ Phi / len(X), rho2)
    assert got.rho2 == pytest.approx(rho2)
    # Minkowski's inequality: never below, and at most sqrt(rank) above. (Where terms of a kernel
    # cancel, the landmarks stand in for the magnitudes of all rows.)
    assert got.length >= exact.length * (1 - 1e-9)
    assert got.tau >= exact.tau * (1 - 1e-9)
    if not kernel.has_magnitude:
        assert_allclose(got.length, exact.length, rtol=1e-9)
        assert got.tau <= exact.tau * space.rank**0.5
    assert not got.landmark.any()


def test_residuals_of_parts_are_added(Phi, rng):
    rho2 = rng.uniform(-0.1, 1.0, size=900)  # below zero is rounding, and counts as zero
    parts = [Spread.of(Phi[a:b], rho2=rho2[a:b]) for a, b in ((0, 300), (300, 310), (310, 900))]
    assert sum(parts[1:], parts[0]).rho2 == pytest.approx(np.maximum(rho2, 0).sum())


def test_weighted_sums(Phi, T, rng):
    w = rng.uniform(0.1, 2.0, size=900)
    sums = Spread.uncentred(Phi, T, w)
    assert sums.n == pytest.approx(w.sum())
    assert_allclose(Spread.of(Phi, T, w).mean, Phi.T @ w / w.sum(), atol=1e-12)
    assert_allclose(sums.scatter, Phi.T @ (w[:, None] * Phi), atol=1e-10)
    assert_allclose(sums.cross, Phi.T @ (w[:, None] * T), atol=1e-10)
    assert_allclose(sums.target, w @ T, atol=1e-10)


@pytest.mark.parametrize("cut", range(1, 8))
def test_signs_do_not_depend_on_the_cut(cut):
    """Ties, within 1e-6, go to the first row: between parts, and between the two signs."""
    values = np.array(
        [
            [0.1, 0.1, -1.0, 1.0],
            [-1.0, 1.0, 0.3, 0.2],
            [0.2, 0.3, 1.0 + 1e-9, -1.0 - 1e-9],
            [1.0 + 1e-9, -1.0 - 1e-9, 0.1, 0.0],
            [0.5, 0.2, 0.4, 0.1],
            [-1.0 - 1e-8, 1.0 + 1e-8, -0.2, 0.9],
            [0.0, 0.4, -1.0, 1.0 + 1e-8],
            [0.3, 0.0, 0.2, -0.5],
        ]
    )
    expected = signs(values)
    assert_allclose(expected, [-1, 1, -1, 1])
    both = _Extremes.of(values[:cut]) + _Extremes.of(values[cut:], start=cut)
    assert_allclose(both.signs(), expected)
    assert_allclose(
        (_Extremes.of(values[cut:], start=cut) + _Extremes.of(values[:cut])).signs(), expected
    )
    assert_allclose(both.at, _Extremes.of(values).at)
