"""Two vectors give a number, so that kernels work as scikit-learn's callables."""

import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import cluster, decomposition, kernel_approximation, kernel_ridge, svm
from sklearn.datasets import make_blobs
from sklearn.metrics import pairwise
from sklearn.model_selection import GridSearchCV

from every_kernel import EVERY_KERNEL
from mercer import (
    RBF,
    Chi2,
    Constant,
    FromFunction,
    KernelMap,
    KernelRidge,
    Laplacian,
    Linear,
    OnColumns,
    Polynomial,
    as_kernel,
)

KERNEL = RBF(0.3) + 0.5 * Polynomial(2)


@pytest.fixture(scope="module")
def data():
    X, y = make_blobs(30, n_features=3, centers=3, random_state=0)
    return X / 5, y.astype(float)


@pytest.mark.parametrize(
    "kernel", [k for k in EVERY_KERNEL if k.kind in ("vectors", "table")], ids=repr
)
def test_two_vectors_give_the_entry_of_the_matrix(kernel):
    X = np.abs(np.random.default_rng(0).normal(size=(4, 4)))
    kernel = kernel.bind(X)
    K = kernel(X)
    for i in range(4):
        for j in range(4):
            value = kernel(X[i], X[j])
            assert isinstance(value, float)
            assert value == pytest.approx(K[i, j], rel=1e-10, abs=1e-12)


def test_lists_and_foreign_arrays_too(xp):
    x, z = [1.0, 2.0], [0.5, 1.0]
    expected = float(RBF(0.3)([x], [z])[0, 0])
    assert RBF(0.3)(x, z) == pytest.approx(expected)
    assert RBF(0.3)(xp.asarray(x), xp.asarray(z)) == pytest.approx(expected)
    assert Constant(2.0)(np.array(x), np.array(z)) == 2.0


def test_kernels_on_objects_take_a_vector_for_a_batch():
    product = FromFunction(lambda a, b: a * b)
    assert_allclose(product(np.array([1.0, 2.0]), np.array([3.0])), [[3.0], [6.0]])
    assert Constant(2.0)([1, 2], [3]).shape == (2, 1)


@pytest.mark.parametrize("kernel", [RBF(), 2 * Laplacian("median") + Linear(), Linear() * RBF()])
def test_two_vectors_do_not_say_how_data_are_spread(kernel):
    with pytest.raises(ValueError, match=r"gamma='(scale|median)' from data.*kernel\.bind\(X\)"):
        kernel(np.ones(2), np.zeros(2))


def test_wrong_vectors_are_refused():
    with pytest.raises(ValueError, match="X has 2 columns and Y has 3"):
        RBF(1.0)(np.ones(2), np.ones(3))
    with pytest.raises(ValueError, match="NaN"):
        RBF(1.0)(np.array([np.nan, 1.0]), np.ones(2))
    with pytest.raises(ValueError, match="overflows"):
        Polynomial(3)(np.full(2, 1e200), np.ones(2))
    with pytest.raises(ValueError, match="Expected 2D array"):
        RBF(1.0)(np.ones(2))
    with pytest.raises(ValueError, match="gamma"):
        RBF(-1.0)(np.ones(2), np.ones(2))
    with pytest.raises(ValueError, match=r"non-negative|>= 0"):
        Chi2(1.0)(np.array([-1.0, 1.0]), np.ones(2))


# --- in scikit-learn's estimators -----------------------------------------------------------------


def test_pairwise_kernels(data):
    X, _ = data
    assert_allclose(pairwise.pairwise_kernels(X, metric=KERNEL), KERNEL(X), rtol=1e-12)
    assert_allclose(
        pairwise.pairwise_kernels(X, X[:4], metric=KERNEL), KERNEL(X, X[:4]), rtol=1e-12
    )
    named = OnColumns(RBF(0.3), [0, 2])
    assert_allclose(pairwise.pairwise_kernels(X, metric=named), named(X), rtol=1e-12)


def test_kernel_ridge(data):
    X, y = data
    ours = kernel_ridge.KernelRidge(kernel=KERNEL, alpha=0.1).fit(X, y)
    theirs = kernel_ridge.KernelRidge(kernel="precomputed", alpha=0.1).fit(KERNEL(X), y)
    assert_allclose(ours.predict(X), theirs.predict(KERNEL(X)), rtol=1e-8)


def test_kernel_pca(data):
    X, _ = data
    ours = decomposition.KernelPCA(3, kernel=KERNEL).fit(X)
    theirs = decomposition.KernelPCA(3, kernel="precomputed").fit(KERNEL(X))
    assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-10)
    assert_allclose(
        np.abs(ours.transform(X)), np.abs(theirs.transform(KERNEL(X))), rtol=1e-6, atol=1e-9
    )


def test_nystroem(data):
    X, _ = data
    model = kernel_approximation.Nystroem(kernel=KERNEL, n_components=30, random_state=0)
    Phi = model.fit_transform(X)
    assert_allclose(Phi @ Phi.T, KERNEL(X), rtol=1e-5, atol=1e-5)


def test_spectral_clustering(data):
    X, _ = data
    labels = cluster.SpectralClustering(3, affinity=RBF(0.3), random_state=0).fit_predict(X)
    expected = cluster.SpectralClustering(3, affinity="rbf", gamma=0.3, random_state=0)
    assert_allclose(labels, expected.fit_predict(X))


def test_svc_and_a_search_over_its_kernel(data):
    X, y = data
    search = GridSearchCV(
        svm.SVC(kernel=RBF(1.0)), {"kernel__gamma": [1e-9, 0.3]}, cv=3, error_score="raise"
    ).fit(X, y)
    assert search.best_params_ == {"kernel__gamma": 0.3}


# --- scikit-learn's functions as kernels here -----------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        pairwise.rbf_kernel,
        pairwise.polynomial_kernel,
        functools.partial(pairwise.laplacian_kernel, gamma=0.7),
    ],
    ids=["rbf_kernel", "polynomial_kernel", "partial"],
)
def test_scikit_learns_functions_are_kernels(data, function):
    X, _ = data
    assert as_kernel(function).vectorized
    Phi = KernelMap(function).fit_transform(X)
    assert_allclose(Phi @ Phi.T, function(X), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    "function",
    [pairwise.rbf_kernel, lambda X, Z: X @ Z.T, lambda X, Z: np.atleast_2d(X) @ np.atleast_2d(Z).T],
    ids=["of scikit-learn", "of two arrays", "of two arrays, always two-dimensional"],
)
def test_other_functions_of_two_arrays_are_told_how(data, function):
    """Functions of two vectors work (X @ Z.T is their inner product); for others the remedy."""
    X, _ = data
    try:
        KernelMap(FromFunction(function)).fit(X)
    except Exception as error:
        said = " ".join([str(error), *getattr(error, "__notes__", ())])
        assert "FromFunction(f, vectorized=True)" in said
    else:
        assert function(X[0], X[1]).ndim == 0


def test_ridge_with_a_function_of_scikit_learn(data):
    X, y = data
    ours = KernelRidge(0.1, pairwise.rbf_kernel).fit(X, y).predict(X)
    theirs = kernel_ridge.KernelRidge(alpha=0.1, kernel="rbf").fit(X, y).predict(X)
    assert_allclose(ours, theirs, rtol=1e-8)
