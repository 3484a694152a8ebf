"""Tanimoto: binary, counts and real values, dense and sparse."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

import oracles
from mercer import KernelMap, Tanimoto, check_mercer


def fingerprints(rng, n=40, d=30, kind="binary"):
    X = (rng.random((n, d)) < 0.2).astype(float)
    if kind == "counts":
        X *= rng.integers(1, 6, size=X.shape)
    elif kind == "real":
        X *= rng.random(X.shape)
    elif kind == "large":
        X *= rng.integers(1, 1000, size=X.shape)
    return X


every_kind = pytest.mark.parametrize("kind", ["binary", "counts", "real", "large"])


@every_kind
def test_dense_and_sparse_are_the_formula(kind, rng):
    X, Z = fingerprints(rng, kind=kind), fingerprints(rng, n=7, kind=kind)
    X[3] = 0
    expected = oracles.matrix(Tanimoto(), Z, X)
    assert_allclose(Tanimoto()(Z, X), expected, rtol=1e-14)
    sparse = Tanimoto()(scipy.sparse.csr_array(Z), scipy.sparse.csr_array(X))
    assert_allclose(sparse, expected, rtol=1e-14)


def test_it_is_one_minus_the_jaccard_distance(rng):
    X = fingerprints(rng)
    assert_allclose(Tanimoto()(X), 1 - cdist(X > 0, X > 0, "jaccard"), rtol=1e-14)


@pytest.mark.parametrize("pair", [("binary", "counts"), ("counts", "real"), ("real", "binary")])
def test_rows_and_landmarks_of_two_kinds(pair, rng):
    X, Z = (fingerprints(rng, kind=kind) for kind in pair)
    expected = oracles.matrix(Tanimoto(), X, Z)
    assert_allclose(Tanimoto()(X, Z), expected, rtol=1e-14)
    sparse = Tanimoto()(scipy.sparse.csr_array(X), scipy.sparse.csr_array(Z))
    assert_allclose(sparse, expected, rtol=1e-14)


@every_kind
def test_valid_on_data(kind, rng):
    report = check_mercer(Tanimoto(), fingerprints(rng, n=120, d=12, kind=kind))
    assert report.verdict == "valid by construction; the data agree"
    assert report.min_eigenvalue > -1e-12


def test_molecules_without_any_bit_are_alike():
    assert_array_equal(Tanimoto()([[0, 0], [1, 0]]), [[1, 0], [0, 1]])
    assert_array_equal(Tanimoto()(scipy.sparse.csr_array([[0.0, 0.0], [1.0, 0.0]])), np.eye(2))


def test_the_exact_map_of_sparse_rows(rng):
    X = scipy.sparse.csr_array(fingerprints(rng, kind="counts"))
    Phi = KernelMap(Tanimoto()).fit_transform(X)
    assert_allclose(Phi @ Phi.T, Tanimoto()(X), atol=1e-12)


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array])
def test_negative_values_are_refused(make):
    X = make(np.array([[1.0, -2.0]]))
    for call in (Tanimoto(), Tanimoto().diag, KernelMap(Tanimoto()).fit):
        with pytest.raises(ValueError, match=r"Negative values in data: Tanimoto.*contain -2"):
            call(X)


def test_sums_that_overflow_are_refused():
    with pytest.raises(ValueError, match=r"Tanimoto\(\) overflows float64"):
        Tanimoto()(np.full((2, 2), 1.5e308))
    with pytest.raises(ValueError, match=r"Tanimoto\(\) overflows float64"):
        Tanimoto()(np.array([[9e307]]))  # the sums of two rows would overflow
