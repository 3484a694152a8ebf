"""A kernel writes its formula once: a class of this file is all that a new kernel needs."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

from backends import BACKENDS
from mercer import (
    RBF,
    Constant,
    GramDisplay,
    KernelMap,
    KernelRidge,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    compare_kernels,
    learn_kernel,
    load,
    preimage,
    save,
    to_onnx,
    two_sample_test,
)
from mercer.engine.arrays import as_numpy
from mercer.explore.compare.tuning import _tunable_widths
from mercer.kernels.feature_kernels import ObjectKernel
from mercer.kernels.stationary import Stationary
from mercer.learn.families import tunable


class InverseMultiquadric(Stationary):
    """1 / sqrt(1 + d^2 / l^2)."""

    is_psd = True
    length_powers = {"length_scale": 1}

    def __init__(self, length_scale=1.0):
        self.length_scale = length_scale

    def scale(self):
        return 1 / np.asarray(self.length_scale)

    def formula(self, t, xp):
        return 1 / xp.sqrt(1 - t)

    def slope(self, t, xp):
        return 0.5 / ((1 - t) * xp.sqrt(1 - t))


KERNEL = InverseMultiquadric(1.5)


@pytest.fixture
def X(rng):
    return rng.normal(size=(60, 2))


@pytest.fixture
def y(X):
    return np.sin(2 * X[:, 0])


def oracle(X, Z=None):
    Z = X if Z is None else Z
    d2 = ((X[:, None] - Z[None]) ** 2).sum(axis=2)
    return 1 / np.sqrt(1 + d2 / 1.5**2)


def test_dense_and_sparse_values(X):
    assert_allclose(KERNEL(X), oracle(X), rtol=1e-13)
    assert_allclose(KERNEL(scipy.sparse.csr_array(X)), oracle(X), rtol=1e-13)


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_array_library(backend, X):
    xp = BACKENDS[backend]()
    assert_allclose(as_numpy(KERNEL(xp.asarray(X))), oracle(X), rtol=1e-13)


def test_maps_ridge_and_files(X, y, tmp_path):
    model = KernelRidge(0.1, KERNEL).fit(X, y)
    dual = np.linalg.solve(oracle(X) + 0.1 * np.eye(60), y)
    assert_allclose(model.predict(X[:5]), oracle(X[:5], X) @ dual, rtol=1e-8)
    Phi = KernelMap(KERNEL).fit_transform(X)
    assert_allclose(Phi @ Phi.T, oracle(X), atol=1e-10)
    quick = KernelRidge(0.1, KERNEL, form="iterative", tol=1e-8).fit(X, y)
    assert_allclose(quick.predict(X), model.predict(X), atol=1e-6)
    with pytest.warns(UserWarning, match="trusted"):
        save(model, tmp_path / "model")
    again = load(tmp_path / "model", trusted=[f"{KERNEL.__module__}.InverseMultiquadric"])
    assert_allclose(again.predict(X), model.predict(X))


def test_onnx(X, y):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    model = KernelRidge(0.1, 2 * KERNEL + RBF(0.1)).fit(X, y)
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    assert_allclose(session.run(None, {"X": X})[0], model.predict(X), atol=1e-9)


def test_learning_and_gradients(X, y):
    assert KERNEL.has_slope
    learned = learn_kernel(X, y, KERNEL, n_rounds=1, max_landmarks=40)
    assert "InverseMultiquadric" in repr(learned.kernel)


def test_pre_images(X):
    kernel_map = KernelMap(KERNEL).fit(X)
    back = preimage(kernel_map, kernel_map.transform(X[:4]), "fixed-point", max_iter=500)
    assert_allclose(back, X[:4], atol=1e-4)


def test_statistics_comparison_and_plots(X, y):
    result = two_sample_test(X[:30], X[30:] + 1.0, KERNEL, n_permutations=99, random_state=0)
    assert result.p_value < 0.05
    table = compare_kernels(X, y > 0, {"own": KERNEL, "rbf": RBF()}, cv=3, baselines=False).table
    assert "own" in set(table["kernel"])
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    GramDisplay.from_kernel(KERNEL, X).plot()


def test_its_width_is_tuned_like_those_of_other_kernels(X, y):
    assert (2 * KERNEL + Linear()).widths() == {"left__kernel__length_scale": 1}
    assert tunable(KERNEL) == ["length_scale"]
    assert _tunable_widths(InverseMultiquadric()) == ["length_scale"]
    assert _tunable_widths(KERNEL) == []  # given by the user


class Strides(ObjectKernel):
    """A kernel on paths: how far they go."""

    is_psd = True
    drawn_as = "paths"

    def against(self, S):
        ends = np.array([np.ptp(x) for x in S])
        return lambda rows, columns=slice(None): np.outer([np.ptp(x) for x in rows], ends[columns])

    def diagonal(self, X):
        return np.array([np.ptp(x) ** 2 for x in X])


def test_objects_of_a_new_kernel_are_drawn():
    pytest.importorskip("matplotlib")
    from mercer.explore.report.drawings import of_objects

    paths = [np.arange(4.0), np.arange(6.0)]
    drawings, texts = of_objects(2 * Strides(), paths)
    assert len(drawings) == len(texts) == 2


# --- the laws of formula and slope ----------------------------------------------------------------

WITH_SLOPE = [
    KERNEL,
    RBF(0.7),
    RationalQuadratic(0.8, 1.3),
    Matern(0.5, 0.8),
    Matern(1.2, 0.8),
    Matern(1.5, 0.8),
    Matern(2.5),
    Matern(4.0),
    Matern(30.0),
    Matern(np.inf),
    Linear(),
    Polynomial(3, 0.5, 0.7),
    Polynomial(1),
    Sigmoid(0.3, 0.2),
    2 * RBF(0.3) + Linear() * Matern(1.5),
    (0.2 * Linear()).exp() ** 2,
    RBF(0.4).polynomial([1.0, 0.5, 2.0]) + Constant(0.5),
]


@pytest.mark.parametrize("kernel", WITH_SLOPE, ids=repr)
def test_slopes_are_derivatives(kernel, rng):
    Z, S, step = rng.normal(size=(5, 3)), rng.normal(size=(4, 3)), 1e-6
    assert kernel.has_slope
    value, p, e = kernel.slopes(Z, S)
    assert_allclose(value, kernel(Z, S), rtol=1e-12)
    p, e = (0 * value if part is None else part for part in (p, e))
    gradient = p[:, :, None] * Z[:, None, :] + e[:, :, None] * S[None, :, :]
    for c in range(3):
        move = step * np.eye(3)[c]
        differences = (kernel(Z + move, S) - kernel(Z - move, S)) / (2 * step)
        assert_allclose(gradient[:, :, c], differences, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "kernel",
    [KERNEL, RBF([0.3, 1.0]), Matern(2.5, 0.7), Laplacian(), 2 * RBF() * RationalQuadratic() ** 2],
    ids=repr,
)
def test_rescaled_kernels_see_rescaled_points(kernel, X):
    bound = kernel.bind(X)
    assert_allclose(bound.rescaled(2.0)(X), bound(X / 2), rtol=1e-10)
    assert bound.rescaled(2.0).rescaled(0.5) == bound


def test_kernels_without_a_length_stay_as_they_are():
    kernel = Polynomial(2, 0.3) + Linear()
    assert kernel.rescaled(2.0) == kernel
    assert Matern(1.5, 3.0).length_parameters() == {"length_scale": 3.0}
    changed = (RBF(1.0) + kernel).rescaled(2.0)
    assert changed == RBF(0.25) + kernel
