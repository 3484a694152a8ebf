"""KernelPCAL1: the dispersion never falls, and outliers move it less than they move KernelPCA."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from mercer import (
    RBF,
    KernelMap,
    KernelPCA,
    KernelPCAL1,
    Linear,
    MemoryLimitError,
    Polynomial,
)
from mercer.engine.arrays import as_numpy
from mercer.estimators.pca_l1 import _most_dispersed


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(60, 4))


def printed_algorithm(Y, w):
    """PCA-L1 of [NPT] IV-D, one start, as printed (sign(0) = +1)."""
    w = w / np.linalg.norm(w)
    while True:
        p = np.where(Y @ w < 0, -1.0, 1.0)
        new = p @ Y
        new /= np.linalg.norm(new)
        if np.allclose(new, w, rtol=0, atol=1e-14):
            return w
        w = new


def brute_force(Y):
    """The largest |sum_i p_i y_i| over all signs: that is the largest dispersion."""
    n = len(Y)
    signs = 1 - 2 * ((np.arange(2 ** (n - 1))[:, None] >> np.arange(n)) & 1)
    return np.linalg.norm(signs @ Y, axis=1).max()


def test_it_is_the_printed_algorithm(X):
    Y = X - X.mean(axis=0)
    for seed in range(5):
        start = np.random.default_rng(seed).normal(size=4)
        signs = np.where(Y @ start < 0, -1.0, 1.0)[:, None]
        w, path, settled = _most_dispersed(Y, signs, 1000)
        assert settled
        assert_allclose(w, printed_algorithm(Y, start), atol=1e-12)
        assert_allclose(path[-1], np.abs(Y @ w).sum())


@pytest.mark.parametrize("seed", range(5))
def test_restarts_find_the_global_maximum_of_small_problems(seed, there):
    X = np.random.default_rng(seed).normal(size=(12, 3))
    model = there(KernelPCAL1(1, Linear(), n_init=20, random_state=0)).fit(X)
    assert_allclose(model.dispersions_[0], brute_force(X - X.mean(axis=0)))


@pytest.mark.parametrize("kernel", [Linear(), RBF(0.2), Polynomial(3)], ids=repr)
def test_the_dispersion_never_decreases(kernel, X, there):
    model = there(KernelPCAL1(4, kernel, random_state=0)).fit(X)
    for path in model.dispersion_paths_:
        assert (np.diff(path) >= -1e-12 * path[-1]).all()
    for seed in range(3):  # from any start, not only the best
        Y = there(KernelMap(kernel, center=True)).fit_transform(X)
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(60, 1))
        path = _most_dispersed(Y, signs, 1000)[1]
        assert len(path) >= 2
        assert (np.diff(path) >= -1e-12 * path[-1]).all()


@pytest.mark.parametrize("kernel", [Linear(), RBF(0.2), RBF(2.0), Polynomial(3)], ids=repr)
@pytest.mark.parametrize("n_init", [0, 5])
def test_the_first_dispersion_is_at_least_that_of_kernel_pca(kernel, n_init, X, there):
    model = there(KernelPCAL1(1, kernel, n_init=n_init, random_state=0)).fit(X)
    scores = there(KernelPCA(1, kernel)).fit_transform(X)
    assert model.dispersions_[0] >= np.abs(scores).sum() * (1 - 1e-12)


def test_components_are_orthonormal_and_scores_are_projections(X, there):
    model = there(KernelPCAL1(4, RBF(0.2), random_state=0))
    scores = model.fit_transform(X)
    assert_allclose(model.components_ @ model.components_.T, np.eye(4), atol=1e-12)
    assert_allclose(model.transform(X), scores, atol=1e-10)
    Y = there(KernelMap(RBF(0.2), center=True)).fit_transform(X)
    assert_allclose(scores, Y @ model.components_.T, atol=1e-10)
    assert_allclose(scores.sum(axis=0), 0, atol=1e-10)  # centred by definition
    # Deflation: the second dispersion is that of what the first left.
    assert_allclose(model.dispersions_, np.abs(scores).sum(axis=0), rtol=1e-10)


@pytest.mark.parametrize("basis", ["eigen", "symmetric", "closed"])
def test_the_basis_does_not_matter(basis, X, there):
    kernel = Polynomial(2)
    expected = there(KernelPCAL1(3, kernel, random_state=0)).fit(X)
    model = there(KernelPCAL1(3, KernelMap(kernel, basis=basis), random_state=0)).fit(X)
    assert_allclose(model.dispersions_, expected.dispersions_, rtol=1e-9)
    assert_allclose(model.transform(X[:5]), expected.transform(X[:5]), atol=1e-8)


def test_a_point_orthogonal_to_the_start_is_nudged():
    # From the first axis no sign flips, yet (1, 1) / sqrt 2 is better: 2.83 instead of 2.
    Y = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    start = np.array([[1.0], [-1.0], [1.0], [1.0]])
    w, path, settled = _most_dispersed(Y, start, 100)
    assert_allclose(path[0], 2.0)
    assert_allclose(path[-1], 2 * 2**0.5)
    assert settled
    assert_allclose(np.abs(w), [0.5**0.5, 0.5**0.5])


def test_zero_rows_do_not_loop_for_ever(there):
    X = np.zeros((30, 2))
    X[0, 0], X[1, 0] = 1.0, -1.0  # 28 rows are at the mean
    model = there(KernelPCAL1(1, Linear(), max_iter=20)).fit(X)
    assert_allclose(model.dispersions_, [2.0])


def test_outliers_move_it_less_on_a_line(there):
    X = np.zeros((41, 2))
    X[:, 0] = np.linspace(-1, 1, 41)
    X[20] = [0.0, 5.0]
    along = [
        np.abs(np.corrcoef(m.fit_transform(X)[:, 0], X[:, 0])[0, 1])
        for m in (there(KernelPCA(1, Linear())), there(KernelPCAL1(1, Linear(), random_state=0)))
    ]
    assert along[0] < 0.1
    assert along[1] > 0.8


def subspace(model, Phi):
    """An orthonormal basis of the span of a linear method's components."""
    scores = model.fit_transform(Phi)
    axes = np.linalg.lstsq(Phi - Phi.mean(axis=0), scores, rcond=None)[0]
    return np.linalg.qr(axes)[0]


REAL = {
    "wine": lambda: StandardScaler().fit_transform(load_wine().data),
    "breast cancer": lambda: StandardScaler().fit_transform(load_breast_cancer().data)[:300],
    "digits": lambda: load_digits().data[:300] / 16,
}


@pytest.mark.parametrize("name", REAL)
def test_outliers_in_real_data_move_it_less_than_kernel_pca(name):
    """5 % of the rows replaced by gross errors: how far does the plane of components turn?

    The kernel is k(x, z) = (x.z / d + 1)^2, and both planes live in the coordinates of one map, so
    that they can be compared: the largest angle between them.
    """
    X = REAL[name]()
    rng = np.random.default_rng(0)
    n, d = X.shape
    wrong = rng.choice(n, n // 20, replace=False)
    spoiled = X.copy()
    spoiled[wrong] = X.mean(axis=0) + rng.normal(size=(len(wrong), d)) * 4 * X.std()
    kernel_map = KernelMap(Polynomial(2, gamma=1 / d)).fit(np.concatenate([X, spoiled[wrong]]))
    clean, dirty = kernel_map.transform(X), kernel_map.transform(spoiled)
    moved = {}
    for method in (KernelPCA(2, Linear()), KernelPCAL1(2, Linear(), random_state=0)):
        P, Q = subspace(method, clean), subspace(method, dirty)
        overlap = np.linalg.svd(P.T @ Q, compute_uv=False)
        moved[type(method).__name__] = np.degrees(np.arccos(min(1.0, overlap.min())))
    assert moved["KernelPCAL1"] < 0.8 * moved["KernelPCA"]


def test_namespaces(xp, X):
    expected = KernelPCAL1(2, RBF(0.2), random_state=0).fit(X)
    model = KernelPCAL1(2, RBF(0.2), random_state=0).fit(xp.asarray(X))
    scores = model.transform(xp.asarray(X[:7]))
    assert isinstance(scores, type(xp.asarray(X)))
    assert_allclose(as_numpy(scores), expected.transform(X[:7]), atol=1e-9)


def test_single_precision(X, there):
    double = there(KernelPCAL1(2, Linear(), random_state=0)).fit(X)
    single = there(KernelPCAL1(2, Linear(), random_state=0))
    scores = single.fit_transform(X.astype(np.float32))
    assert scores.dtype == np.float32
    assert_allclose(single.dispersions_, double.dispersions_, rtol=1e-5)


def test_more_components_than_the_rank_are_zeros_with_a_warning(there):
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.warns(UserWarning, match="rank 2"):
        scores = there(KernelPCAL1(4, Linear())).fit_transform(X)
    assert scores.shape == (20, 4)
    assert_array_equal(scores[:, 2:], 0)


def test_too_few_steps_are_a_warning(X):
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        KernelPCAL1(1, RBF(0.2), max_iter=1, n_init=3, random_state=0).fit(X)


def test_a_seed_repeats_and_linear_scores_invert(X, there):
    first = there(KernelPCAL1(2, "rbf", random_state=3)).fit_transform(X)
    assert_array_equal(there(KernelPCAL1(2, "rbf", random_state=3)).fit_transform(X), first)
    model = there(KernelPCAL1(4, Linear(), random_state=0)).fit(X)
    assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-10)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components must be an integer of at least 1, got 0"),
        ({"n_components": 0.5}, r"got 0\.5"),
        ({"n_init": -1}, "n_init must be"),
        ({"max_iter": 0}, "max_iter must be"),
    ],
)
def test_bad_parameters_are_named(parameters, message, X):
    with pytest.raises(ValueError, match=message):
        KernelPCAL1(**parameters).fit(X)


def test_memory_is_refused_before_it_is_taken():
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    few = KernelMap(RBF(0.1), max_rank=30, memory_limit="20MB")
    with pytest.raises(MemoryLimitError, match=r"needs 3\d.* MB; memory_limit allows 20 MB"):
        KernelPCAL1(1, few).fit(X)


def test_the_mean_of_many_rows_keeps_its_digits_in_single_precision():
    X = np.full((200_000, 1), 0.1, dtype=np.float32)
    X[::2] += 1.0
    model = KernelPCAL1(1, KernelMap(Linear(), basis="closed"), n_init=1, max_iter=2).fit(X)
    assert_allclose(model.mean_, X.mean(axis=0, dtype=float), rtol=2e-7)
