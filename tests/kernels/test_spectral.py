"""Fourier series on a box: densities, weights, and the bound, against the kernel itself."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

from mercer import (
    RBF,
    Constant,
    Laplacian,
    Linear,
    Matern,
    OnColumns,
    Periodic,
    Projected,
    RationalQuadratic,
)
from mercer.kernels.spectral import (
    GaussianForm,
    MaternForm,
    RationalForm,
    TooManyModesError,
)

CASES = [
    (RBF(20.0), 1),
    (RBF([30.0, 5.0]), 2),
    (RBF([30.0, 10.0, 3.0]), 3),
    (Matern(0.5, 1.0), 1),
    (Matern(0.3, 2.0), 1),
    (Matern(1.5, 0.3), 2),
    (Matern(2.5, [0.5, 2.0, 1.0]), 3),
    (Matern(7.3, 0.2), 2),
    (Matern(50.0, 0.2), 1),
    (Matern(np.inf, 0.2), 2),
    (RationalQuadratic(1.5, 0.1), 1),
    (RationalQuadratic(4.0, [0.3, 0.5]), 2),
    (RationalQuadratic(50.0, 0.2), 1),
    (RationalQuadratic(1e6, 0.2), 2),
    (Laplacian(0.5), 1),
    (Periodic(0.7, 0.3), 1),
    (Periodic([0.4, 0.5], [0.7, 2.0]), 2),
    (2.5 * RBF(5.0) + Periodic(1.0, 0.2), 1),
    (RBF(5.0) * Periodic(1.0, 0.2) + 1, 1),
    (Periodic(1.0, 0.2) + Periodic(1.0, 0.3), 1),
    (RBF(4.0) ** 3, 2),
    (OnColumns(Matern(2.5, 0.3), [1]) * OnColumns(RBF(3.0), [0]), 2),
    (OnColumns(RBF([3.0, 10.0]), [2, 0]) + 0.5 * OnColumns(Periodic(0.6, 0.4), 1), 3),
    (Constant(3.0), 2),
]


def direct(weights, periods, differences):
    """The sum itself, term by term."""
    j = np.argwhere(weights > 0) - np.array(weights.shape) // 2
    terms = np.cos(2 * np.pi * (differences / periods) @ j.T)
    return terms @ weights[weights > 0]


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize(("kernel", "d"), CASES, ids=[f"{k!r}, {d}" for k, d in CASES])
def test_the_series_is_the_kernel_up_to_its_bound(kernel, d, tol):
    rng = np.random.default_rng(0)
    extent = rng.uniform(0.5, 1.5, size=d)
    form = kernel.bind(np.zeros((1, d))).fourier_form()
    try:
        periods = form.periods(extent, tol)
        if np.prod(2.0 * form.modes(periods, tol) + 1) > 2e5:
            pytest.skip("a rough kernel with too many frequencies for the oracle")
    except TooManyModesError:
        pytest.skip("a rough kernel with too many frequencies for the oracle")
    series = form.series(periods, extent, tol)
    assert series.error <= tol * form.size
    assert np.all(series.weights >= 0)
    assert_allclose(series.weights, np.flip(series.weights), rtol=1e-12, atol=1e-18)
    differences = rng.uniform(-1, 1, size=(40, d)) * extent
    differences[0], differences[1] = extent, 0.0
    exact = np.array([kernel(np.zeros((1, d)), r[None, :])[0, 0] for r in differences])
    error = np.abs(direct(series.weights, periods, differences) - exact)
    assert np.all(error <= series.error + 1e-14 * form.size)
    # The bound says something: beyond the box, images come in.
    if tol == 1e-2 and isinstance(kernel, (RBF, RationalQuadratic)):
        assert abs(direct(series.weights, periods, periods[None, :])[0]) > 0.9


@pytest.mark.parametrize(
    ("density", "k"),
    [
        (GaussianForm(1.0).density, lambda r: np.exp(-(r**2))),
        (MaternForm(1.0, 0.5, None).density, lambda r: np.exp(-r)),
        (
            MaternForm(1.0, 1.5, None).density,
            lambda r: (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r),
        ),
        (RationalForm(1.0, 1.7).density, lambda r: (1 + r**2 / 3.4) ** -1.7),
    ],
    ids=["gaussian", "exponential", "matern", "rational"],
)
def test_densities_are_fourier_transforms(density, k):
    for xi in (0.0, 0.3, 1.1):
        exact = 2 * quad(k, 0, np.inf, weight="cos", wvar=2 * np.pi * xi, limlst=500)[0]
        assert_allclose(density(np.array([xi**2]), 1)[0], exact, rtol=1e-6)
    # In more columns they integrate to k(0) = 1.
    whole = quad(lambda x: 2 * np.pi * x * float(density(np.array([x**2]), 2)[0]), 0, np.inf)[0]
    assert_allclose(whole, 1.0, rtol=1e-6)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_images_are_bounded(d):
    """Against as many shells as it takes."""

    def added(k, first, step, shells=4000):
        s = np.arange(1.0, shells + 1)
        return float(((2 * s + 1) ** d - (2 * s - 1) ** d) @ k(first + (s - 1) * step))

    cases = [
        (GaussianForm(1.0).images, lambda r: np.exp(-(r**2))),
        (MaternForm(1.0, 0.5, lambda r: np.exp(-r)).images, lambda r: np.exp(-r)),
        (RationalForm(1.0, 2.5).images, lambda r: (1 + r**2 / 5) ** -2.5),
    ]
    for images, k in cases:
        for first, step in [(1.0, 1.0), (0.2, 3.0), (5.0, 6.0)]:
            assert images(first, step, d) >= added(k, first, step) * (1 - 1e-12)
        assert images(5.0, 6.0, d) < 1.3 * added(k, 5.0, 6.0) + 1e-3
        assert images(0.0, 1.0, d) == np.inf


def test_what_has_no_series():
    assert Linear().fourier_form() is None
    assert (RBF(1.0) + Linear()).fourier_form() is None
    assert (RBF(1.0) * Linear()).fourier_form() is None
    assert OnColumns(Linear(), [0]).fourier_form() is None
    assert Projected(RBF(1.0), [[1.0]]).fourier_form() is None
    form = (Periodic(1.0, 1.0) + Periodic(1.0, np.sqrt(2))).fourier_form()
    with pytest.raises(ValueError, match="no small common multiple"):
        form.periods(np.ones(1), 1e-6)
    with pytest.raises(TooManyModesError, match="decays so slowly"):
        RationalQuadratic(0.4).fourier_form().periods(np.ones(1), 1e-6)
