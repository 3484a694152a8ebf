"""Leading eigenpairs against a dense solver, and their residuals against their definition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import RBF, Linear
from mercer.engine.memory import MemoryLimitError
from mercer.space.krylov import krylov, leading_eigenpairs


@pytest.fixture
def X(rng):
    return rng.normal(size=(400, 6))


def centred(K):
    return K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("k", [1, 7, 40])
def test_equals_a_dense_solver(center, k, X, there):
    kernel = RBF(0.2)
    A = centred(kernel(X)) if center else kernel(X)
    exact = np.linalg.eigvalsh(A)[::-1][:k]
    pairs = there(leading_eigenpairs)(kernel, X, k, center=center)
    # An eigenvalue's error is of the order of the residual squared over the gap.
    assert_allclose(pairs.values, exact, rtol=1e-11, atol=1e-11 * exact[0])
    assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(k), atol=1e-12)
    true = np.linalg.norm(A @ pairs.vectors - pairs.vectors * pairs.values, axis=0)
    assert np.all(true <= pairs.residuals + 1e-12 * exact[0])
    assert pairs.residuals.max() <= 1e-7 * exact[0]


def test_tiles_in_place_of_a_stored_matrix(rng, there):
    X = rng.normal(size=(900, 6))
    stored = there(leading_eigenpairs)(RBF(0.2), X, 3)
    evaluated = there(leading_eigenpairs)(RBF(0.2), X, 3, memory_limit=8 * 900 * 900 - 1)
    assert_allclose(stored.values, evaluated.values, rtol=1e-12)


def test_a_basis_that_does_not_fit_is_refused_before_any_work(X):
    with pytest.raises(MemoryLimitError, match="max_rank"):
        leading_eigenpairs(RBF(0.2), X, 3, memory_limit="100kB")


def test_more_pairs_than_the_rank(X, there):
    pairs = there(leading_eigenpairs)(Linear(), X, 9)
    exact = np.linalg.eigvalsh(centred(X @ X.T))[::-1][:9]
    assert_allclose(pairs.values, exact, atol=1e-10 * exact[0])


def test_a_matrix_with_negative_eigenvalues_gives_the_largest_ones(rng):
    A = rng.normal(size=(300, 300))
    A = A + A.T
    pairs = krylov(lambda V: V @ A, 300, 5, np.empty((1, 1)), center=False, tol=1e-9)
    assert_allclose(pairs.values, np.linalg.eigvalsh(A)[::-1][:5], rtol=1e-10)


def test_the_same_seed_gives_the_same_bytes(X):
    first, second = (leading_eigenpairs(RBF(0.2), X, 4, random_state=1) for _ in range(2))
    assert first.vectors.tobytes() == second.vectors.tobytes()


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 2), (30, 30), (300, 40)])
def test_pairs_beyond_the_rank_are_zeros_with_orthonormal_vectors(n, k, center, rng):
    X = rng.normal(size=(n, 2))
    A = centred(X @ X.T) if center else X @ X.T
    pairs = leading_eigenpairs(Linear(), X, k, center=center)
    found = len(pairs.values)
    assert found >= min(k, n - center)  # all but the constant vector
    exact = np.linalg.eigvalsh(A)[::-1][:found]
    assert_allclose(pairs.values, exact, atol=1e-12 * n)
    assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(found), atol=1e-12)
