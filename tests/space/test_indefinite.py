"""Validity is judged at the precision of the values."""

import pickle

import numpy as np
import pytest

from mercer import (
    Kernel,
    KernelMap,
    Normalized,
    NotPSDError,
    Precomputed,
    Sigmoid,
    check_mercer,
)
from mercer.space.indefinite import check_symmetric, corrected, symmetrised, value_eps

EPS, SINGLE = (float(np.finfo(t).eps) for t in (np.float64, np.float32))


def test_the_precision_of_values(rng):
    K = rng.normal(size=(300, 300))
    assert value_eps(K, EPS) == EPS
    assert value_eps(K.astype(np.float32).astype(float), EPS) == SINGLE
    assert value_eps(K.astype(np.float32), SINGLE) == SINGLE
    assert value_eps(np.round(10 * K), EPS) == EPS  # counts are exact
    K = K.astype(np.float32).astype(float)
    K[299, 299] += 1e-12
    assert value_eps(K, EPS) == EPS


def test_asymmetry_is_located_in_any_block(rng):
    K = rng.normal(size=(600, 600))
    K = K + K.T
    assert not check_symmetric(Precomputed(), K, EPS)
    K[550, 10] += 1e-15
    assert check_symmetric(Precomputed(), K, EPS)
    average = (K + K.T) / 2
    np.testing.assert_array_equal(symmetrised(Precomputed(), K, EPS), average)
    K[550, 300] += 2.0
    with pytest.raises(ValueError, match="points 300 and 550, a difference of 2"):
        check_symmetric(Precomputed(), K, EPS)


@pytest.mark.parametrize("how", ["clip", "flip", "shift"])
def test_corrected_weights_and_coordinates_agree(rng, how):
    K = rng.normal(size=(20, 20))
    K = K + K.T
    F, W, _ = corrected(K, how)
    if how == "shift":
        np.testing.assert_allclose(F.T @ W, np.eye(F.shape[1]), atol=1e-12)
    else:
        np.testing.assert_allclose(K @ W, F, atol=1e-11)
    sizes = (F**2).sum(axis=0)
    assert np.all(np.diff(sizes) <= 1e-12)


def test_a_witness_of_landmarks_has_the_value_of_the_residual(rng):
    """Found by the partial algorithm, which sees the landmarks' columns alone."""
    X = rng.normal(size=(60, 2))

    def similarity(a, b):
        return float(np.exp(-(np.abs(a - b).max() ** 3)))

    K = np.array([[similarity(a, b) for b in X] for a in X])
    with pytest.raises(NotPSDError, match="only the landmarks' columns") as caught:
        KernelMap(similarity, max_rank=12).fit(X)
    a = caught.value.witness
    assert np.linalg.norm(a) == pytest.approx(1.0)
    assert a @ K @ a < 0
    # Orthogonal to the landmarks: only the point itself is left in a'Ka.
    slopes = np.sort(np.abs(K @ a)[a != 0])
    assert slopes[:-1].max() <= 1e-8 * slopes[-1]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_witness_where_every_k_of_a_point_with_itself_is_zero(sign):
    K = np.zeros((20, 20))
    K[3, 7] = K[7, 3] = 2.0 * sign
    with pytest.raises(NotPSDError, match="= 0 for every point") as caught:
        KernelMap("precomputed", max_rank=3).fit(K)
    a = caught.value.witness
    assert a @ K @ a == pytest.approx(-2.0)


def test_the_error_prints_the_witness(rng):
    K = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    with pytest.raises(NotPSDError, match=r"Witness: a'Ka < 0 with a\[[01]\] = ") as caught:
        KernelMap(Precomputed()).fit(K)
    error = caught.value
    assert error.witness @ K @ error.witness < 0
    assert "indefinite='clip'" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize("max_rank", [None, 5])
def test_a_matrix_of_distances_is_told_from_a_bad_similarity(max_rank, rng):
    X = rng.normal(size=(30, 2))
    D = np.linalg.norm(X[:, None] - X, axis=2)
    with pytest.raises(NotPSDError, match="ClassicalMDS") as caught:
        KernelMap(Precomputed(), max_rank=max_rank).fit(D)
    assert str(caught.value).index("ClassicalMDS") < str(caught.value).index("clip")
    with pytest.raises(NotPSDError, match="clip"):
        KernelMap(Precomputed(), max_rank=max_rank).fit(D - D.mean())


class Crooked(Kernel):
    """A kernel whose two methods do not agree."""

    def against(self, S):
        return lambda rows, columns=slice(None): np.exp(-((rows - S[columns].T) ** 2))

    def diagonal(self, X):
        return np.full(len(X), 0.5)


@pytest.mark.parametrize("options", [{}, {"max_rank": 5}])
def test_a_kernel_that_contradicts_itself_is_not_called_invalid(options, rng):
    X = rng.normal(size=(40, 1))
    with pytest.raises(ValueError, match=r"diagonal\(X\) gives k\(x, x\) = 0.5 and against"):
        KernelMap(Crooked(), **options).fit(X)
    with pytest.raises(ValueError, match="contradicts itself"):
        check_mercer(Crooked(), X)


def test_few_landmarks_do_not_hide_that_a_similarity_is_no_kernel():
    """Pairs beyond Cauchy's inequality, which residuals at one or two landmarks do not see: bounds
    of such maps were exceeded up to 5 times, and of kernel values by any factor."""
    similarity = Normalized(Sigmoid(0.1)).exp()
    rest = np.random.default_rng(0).normal(size=(20, 2))
    for far in (5.0, 8.0):
        pair = np.array([[far, 0.0], [0.3 / far, 0.1 / far]])
        X = np.concatenate([pair, 1.1 * pair, rest])
        for rank in (1, 2):
            with pytest.raises(NotPSDError) as caught:
                KernelMap(similarity, max_rank=rank).fit(np.repeat(X, 10, axis=0))
            K, a = similarity(np.repeat(X, 10, axis=0)), caught.value.witness
            assert a @ K @ a < 0
        kernel_map = KernelMap(similarity, max_rank=1).fit(X[:1])
        with pytest.raises(NotPSDError):
            kernel_map.error_bound(X)
        with pytest.raises(NotPSDError):
            kernel_map.error_bound(X[:1], X)
