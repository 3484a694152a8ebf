"""Leading eigenpairs against a dense solver, and their residuals against their definition."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

from fuzz import eigenproblems
from fuzz.search import search
from mercer import RBF, KernelPCA, Linear, Polynomial
from mercer.engine import MemoryLimitError, using
from mercer.space.spectra import Eigenpairs, _krylov


@pytest.fixture
def X(rng):
    return rng.normal(size=(400, 6))


def centred(K):
    return K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()


@pytest.mark.parametrize("k", [1, 7, 40])
def test_equals_a_dense_solver(k, X, there):
    kernel = RBF(0.2)
    A = centred(kernel(X))
    exact = np.linalg.eigvalsh(A)[::-1][:k]
    pairs = there(Eigenpairs.leading)(kernel, X, k)
    # An eigenvalue's error is of the order of the residual squared over the gap.
    assert_allclose(pairs.values, exact, rtol=1e-11, atol=1e-11 * exact[0])
    assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(k), atol=1e-12)
    true = np.linalg.norm(A @ pairs.vectors - pairs.vectors * pairs.values, axis=0)
    assert np.all(true <= pairs.residuals + 1e-12 * exact[0])
    assert pairs.residuals.max() <= 1e-7 * exact[0]


def test_tiles_in_place_of_a_stored_matrix(rng, there):
    X = rng.normal(size=(900, 6))
    stored = there(Eigenpairs.leading)(RBF(0.2), X, 3)
    with using(memory_limit=8 * 900 * 900 - 1):
        evaluated = there(Eigenpairs.leading)(RBF(0.2), X, 3)
    assert_allclose(stored.values, evaluated.values, rtol=1e-12)


def test_a_basis_that_does_not_fit_is_refused_before_any_work(X):
    with using(memory_limit="100kB"), pytest.raises(MemoryLimitError, match="max_rank"):
        Eigenpairs.leading(RBF(0.2), X, 3)


def test_more_pairs_than_the_rank(X, there):
    pairs = there(Eigenpairs.leading)(Linear(), X, 9)
    exact = np.linalg.eigvalsh(centred(X @ X.T))[::-1][:9]
    assert_allclose(pairs.values, exact, atol=1e-10 * exact[0])


def test_a_matrix_with_negative_eigenvalues_gives_the_largest_ones(rng):
    A = rng.normal(size=(300, 300))
    A = A + A.T
    pairs = _krylov(lambda V: V @ A, 300, 5, np.empty((1, 1)), tol=1e-9)
    assert_allclose(pairs.values, np.linalg.eigvalsh(centred(A))[::-1][:5], rtol=1e-10)


def test_the_same_seed_gives_the_same_bytes(X):
    first, second = (Eigenpairs.leading(RBF(0.2), X, 4, random_state=1) for _ in range(2))
    assert first.vectors.tobytes() == second.vectors.tobytes()


@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 2), (30, 30), (300, 40)])
def test_pairs_beyond_the_rank_are_zeros_with_orthonormal_vectors(n, k, rng):
    X = rng.normal(size=(n, 2))
    A = centred(X @ X.T)
    pairs = Eigenpairs.leading(Linear(), X, k)
    found = len(pairs.values)
    assert found >= min(k, n - 1)  # all but the constant vector
    exact = np.linalg.eigvalsh(A)[::-1][:found]
    assert_allclose(pairs.values, exact, atol=1e-12 * n)
    assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(found), atol=1e-12)


# --- repeated eigenvalues: a block of 16 finds 16 copies, and nothing says that there are more ----


def one_hot(levels, columns):
    rows = itertools.product(range(levels), repeat=columns)
    return np.array([np.concatenate([np.eye(levels)[i] for i in row]) for row in rows])


REPEATED = {
    "one-hot rows": (Polynomial(2), one_hot(7, 3), 40),
    "a hypercube": (RBF(0.1), np.array(list(itertools.product([-1.0, 1.0], repeat=8))), 60),
    "rows repeated": (
        RBF(0.01),
        np.repeat(np.random.default_rng(0).normal(size=(60, 20)), 6, axis=0),
        59,
    ),
    "an identity": (RBF(1e4), np.random.default_rng(1).normal(size=(200, 4)), 50),
}


@pytest.mark.parametrize("name", REPEATED)
def test_repeated_eigenvalues_are_all_found(name):
    kernel, X, k = REPEATED[name]
    exact = np.linalg.eigvalsh(centred(kernel(X)))[::-1][:k]
    pca = KernelPCA(k, kernel, solver="krylov").fit(X)
    assert_allclose(pca.eigenvalues_, exact, rtol=0, atol=1e-10 * exact[0])


@pytest.mark.parametrize("n", range(1, 13))
def test_few_points(n):
    X = np.random.default_rng(n).normal(size=(n, 3))
    for k in range(1, n):
        exact = np.linalg.eigvalsh(centred(RBF(0.5)(X)))[::-1][:k]
        pairs = Eigenpairs.leading(RBF(0.5), X, k)
        assert_allclose(pairs.values, exact, atol=1e-12)
        assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(k), atol=1e-12)


def test_random_search_for_lost_eigenvalues():
    """Bounded here; `make fuzz-eigen` searches longer."""
    found = search(eigenproblems.one, eigenproblems.Found, range(60))
    assert (found.cases, found.findings) == (60, [])


def test_an_exactly_symmetric_matrix_is_symmetric():
    """Rounding is relative to the matrix, not to what centring leaves of it."""
    Z = load_iris().data + 100.0
    K = Z @ Z.T
    assert np.array_equal(K, K.T)
    pca = KernelPCA(2, "precomputed", solver="dense").fit(K)
    assert_allclose(pca.eigenvalues_, KernelPCA(2, "linear").fit(Z).eigenvalues_, rtol=1e-6)
    K[0, 1] += 1.0
    with pytest.raises(ValueError, match="not symmetric"):
        KernelPCA(2, "precomputed", solver="dense").fit(K)


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e300])
def test_kernels_of_any_size(size, X):
    """Squares of images overflowed at 1e160."""
    exact = Eigenpairs.leading(RBF(0.2), X, 7)
    pairs = Eigenpairs.leading(size * RBF(0.2), X, 7)
    assert_allclose(pairs.values / size, exact.values, rtol=1e-10)
    assert_allclose(pairs.residuals / size, exact.residuals, rtol=0.1, atol=1e-9)
    few = _krylov(lambda V: size * V, 30, 20, np.empty((1, 1)))  # one value, 29 times
    assert_allclose(few.values / size, 1)


@pytest.mark.parametrize("solver", ["krylov", "dense"])
@pytest.mark.parametrize("size", [1e-160, 1e160])
def test_components_of_kernels_of_any_size(size, solver, X):
    scores = KernelPCA(3, RBF(0.2), solver=solver).fit_transform(X)
    scaled = KernelPCA(3, size * RBF(0.2), solver=solver).fit(X)
    assert_allclose(scaled.transform(X) / size**0.5, scores, atol=1e-5)
