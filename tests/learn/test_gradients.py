"""Gradients in closed form against differences."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import (
    RBF,
    Constant,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    learn_kernel,
)
from mercer.learn.metric import average_outer_product
from mercer.learn.observations import Observations

KERNELS = [
    RBF(0.4),
    Matern(0.5, 2.0),
    Matern(1.5, 0.7),
    Matern(2.5, 1.5),
    Matern(3.5, 1.5),
    Matern(30.0, 1.5),
    RationalQuadratic(0.8, 1.3),
    Linear(),
    Polynomial(3, 0.5, 1.0),
    RBF(0.4) + 2.0 * Linear(),
    Matern(1.5) * Polynomial(2, 0.3),
    Linear() ** 2 + Constant(2.0),
    (0.2 * Linear()).exp(),
    RBF(0.2).polynomial([1.0, 2.0, 0.5]),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_slopes_are_differences(kernel, rng):
    Z, S, h = rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), 1e-5
    value, p, e = kernel.slopes(Z, S)
    assert_allclose(value, kernel(Z, S), rtol=1e-12)
    zero = np.zeros((4, 5))
    p, e = (zero if part is None else part for part in (p, e))
    gradient = p[:, :, None] * Z[:, None, :] + e[:, :, None] * S[None, :, :]
    for c in range(3):
        step = h * np.eye(3)[c]
        difference = (kernel(Z + step, S) - kernel(Z - step, S)) / (2 * h)
        assert_allclose(gradient[:, :, c], difference, rtol=1e-6, atol=1e-8)


def test_the_average_outer_product_is_the_mean_over_rows(rng, monkeypatch):
    import mercer.learn.metric as gradients

    monkeypatch.setattr(gradients, "_BLOCK_VALUES", 100)  # several blocks of rows
    kernel, h = Matern(1.5, 2.0), 1e-5
    Z, S, a = rng.normal(size=(40, 3)), rng.normal(size=(6, 3)), rng.normal(size=(6, 2))
    weights = rng.uniform(size=40)
    f = lambda X: kernel(X, S) @ a  # noqa: E731
    g = np.stack([(f(Z + h * e) - f(Z - h * e)) / (2 * h) for e in np.eye(3)], axis=2)
    expected = np.einsum("i,itc,itd->cd", weights, g, g) / weights.sum()
    assert_allclose(average_outer_product(kernel, Z, S, a, weights), expected, rtol=1e-5)


def test_what_has_no_gradient_says_so(rng):
    assert (RBF() + Linear()).has_slope
    for kernel in (Laplacian(), RBF([1.0, 2.0]), Matern(0.8), RBF() + Laplacian()):
        assert not kernel.has_slope


def test_columns_of_the_linear_part_count_among_importances(rng):
    X = rng.normal(size=(300, 4))
    learned = learn_kernel(X, 5 * X[:, 0] + np.sin(3 * X[:, 2]), metric="diagonal", random_state=0)
    assert set(np.argsort(-learned.importances)[:2]) == {0, 2}


def test_slopes_of_the_whole_function(rng):
    module = sys.modules[learn_kernel.__module__]
    X = rng.normal(size=(60, 3))
    T = np.column_stack([np.sin(X[:, 0]), X[:, 1]])
    stage = module._Stage(Observations.of(X, T), 20, None)
    for B in (np.array([0.5, 1.0, 0.2]), rng.normal(size=(3, 2))):
        trial = stage.judged(module._Trial(RBF(0.4), B, linear=0.3))
        a = stage._function(trial)[0]
        M, h = np.diag(B) if B.ndim == 1 else B, 1e-5
        f = lambda x: (RBF(0.4)(x @ M, X[:20] @ M) + 0.3 * x @ X[:20].T) @ a  # noqa: B023, E731
        slopes = [(f(X + h * e) - f(X - h * e)) / (2 * h) for e in np.eye(3)]
        expected = [np.mean((slope**2).sum(axis=1)) for slope in slopes]
        assert_allclose(stage.slopes(trial), expected, rtol=1e-5)
