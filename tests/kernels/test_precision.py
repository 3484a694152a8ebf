"""Kernel values against 40 digits: hard parameters, both precisions, far from the origin."""

import math

import mpmath
import numpy as np
import pytest
import scipy.sparse

from mercer import RBF, Matern, Periodic, RationalQuadratic
from mercer.engine.arrays import as_numpy

EPS = np.finfo(float).eps


def matern(nu, d):
    """2^(1-nu) / Gamma(nu) t^nu K_nu(t), t = sqrt(2 nu) d."""
    with mpmath.workdps(40):
        nu, d = mpmath.mpf(nu), mpmath.mpf(d)
        if d == 0:
            return 1.0
        t = mpmath.sqrt(2 * nu) * d
        return float(2 ** (1 - nu) / mpmath.gamma(nu) * t**nu * mpmath.besselk(nu, t))


DISTANCES = [0.0, 1e-9, 1e-4, 1e-2, 0.3, 1.0, 2.0, 5.0, 9.0]


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.5, 0.8, 1.0, 1.2, 1.5, 2.5, 3.3, 7.0, 12.5, 19.9])
def test_matern(nu):
    expected = [matern(nu, d) for d in DISTANCES]
    found = Matern(nu)([[0.0]], [[d] for d in DISTANCES])[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=40 * EPS)


@pytest.mark.parametrize("nu", [0.3, 0.8, 1.2, 1.6, 1.9, 2.3, 2.8, 4.9])
def test_matern_where_the_series_of_bessel_functions_cancels(nu):
    """SciPy's K_nu is off by up to 300 units as its argument goes to 2."""
    distances = np.array([0.4, 0.6, 1.0, 1.3, 1.7, 1.9, 1.99, 2.0, 2.01]) / math.sqrt(2 * nu)
    found = Matern(nu)([[0.0]], distances[:, None])[0]
    expected = [matern(nu, d) for d in distances]
    np.testing.assert_allclose(found, expected, rtol=0, atol=20 * EPS)


@pytest.mark.parametrize("nu", [1e-3, 0.05, 0.3, 0.8, 0.95, 1.9, 19.0])
def test_matern_of_tiny_distances(nu):
    distances = np.array([1e-300, 1e-100, 1e-30, 1e-10, 1e-9, 3e-9])
    found = Matern(nu)([[0.0]], distances[:, None])[0]
    expected = np.array([matern(nu, d) for d in distances])
    stated = EPS / 2 * Matern(nu).rounding(np.zeros((1, 1)))
    assert np.abs(found - expected).max() <= stated


@pytest.mark.parametrize("nu", [20.0, 21.3, 40.0, 150.0, 171.0, 400.0])
def test_matern_of_many_derivatives(nu, xp):
    """K_nu overflows from nu = 150 on: the kernel was 0 between close points."""
    expected = [matern(nu, d) for d in DISTANCES]
    X = xp.asarray([[d] for d in DISTANCES], dtype=xp.float64)
    tile = Matern(nu)(X[:1, :], X)
    np.testing.assert_allclose(as_numpy(tile)[0], expected, rtol=0, atol=20 * EPS)


@pytest.mark.parametrize("nu", [1e17, 1e300, math.inf])
def test_matern_tends_to_rbf(nu):
    X = np.array([[d] for d in DISTANCES])
    np.testing.assert_allclose(Matern(nu, 2.0)(X), RBF(1 / 8)(X), rtol=0, atol=10 * EPS)


@pytest.mark.parametrize("alpha", [1e-3, 0.7, 1.0, 1e3, 1e6, 1e12])
def test_rational_quadratic(alpha):
    with mpmath.workdps(40):
        expected = [
            float((1 + mpmath.mpf(d) ** 2 / (2 * mpmath.mpf(alpha))) ** -mpmath.mpf(alpha))
            for d in DISTANCES
        ]
    found = RationalQuadratic(alpha)([[0.0]], [[d] for d in DISTANCES])[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=8 * EPS)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_periodic_far_away(dtype):
    """The period itself was rounded to single precision: 142 times the bound, 500 turns away."""
    kernel = Periodic(period=0.7, length_scale=0.5)
    X = np.array([[0.1], [350.25], [-1234.5], [1e4]], dtype=dtype)
    with mpmath.workdps(40):
        expected = [
            [
                float(
                    mpmath.exp(
                        -2
                        * (
                            mpmath.sin(
                                mpmath.pi
                                * (mpmath.mpf(float(x[0])) - mpmath.mpf(float(z[0])))
                                / mpmath.mpf(0.7)
                            )
                            / mpmath.mpf(0.5)
                        )
                        ** 2
                    )
                )
                for z in X
            ]
            for x in X
        ]
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(kernel(X), expected, rtol=0, atol=60 * EPS + 2 * eps)


@pytest.mark.parametrize("nu", [0.3, 0.5, 0.8, 1.5, 2.5, 40.0])
@pytest.mark.parametrize(("columns", "near"), [(2, 1e-3), (2, 2e-2), (1500, 1e-3), (1500, 2e-2)])
def test_rounding_of_close_points(nu, columns, near):
    """The certificate's unit for a kernel value: sqrt(columns) was missing, and close rows."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4, columns)) * 4
    S = (centres[:, None] * (1 + near * rng.normal(size=(1, 6, columns)))).reshape(-1, columns)
    scale = float(np.sqrt((S * S).sum(axis=1)).mean()) / 4
    kernel = Matern(nu, scale)
    found = kernel(S, S + 0.0)
    d = np.sqrt(((S.astype(np.longdouble)[:, None] - S[None]) ** 2).sum(axis=2)) / scale
    picked = rng.choice(d.size, 60 if nu < 10 else 12, replace=False)  # mpmath takes its time
    error = max(abs(found.ravel()[i] - matern(nu, float(d.ravel()[i]))) for i in picked)
    assert error <= EPS / 2 * kernel.rounding(S)


@pytest.mark.parametrize("length_scale", [0.8467130851537185, [0.8, 1.7, 1.1]])
def test_sparse_rows_far_from_the_origin(length_scale):
    """Their differences are taken before they are scaled: scaled rows have been rounded."""
    rng = np.random.default_rng(0)
    X = 1e3 * rng.normal(size=3) + rng.normal(size=(40, 3))
    kernel = Matern(0.5, length_scale)
    difference = X[:, None, :].astype(np.longdouble) - X[None, :, :]
    d = np.sqrt(((difference / np.asarray(length_scale, np.longdouble)) ** 2).sum(axis=2))
    found = kernel(scipy.sparse.csr_array(X))
    np.testing.assert_allclose(found, np.exp(-d).astype(float), rtol=0, atol=8 * EPS)
