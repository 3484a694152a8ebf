"""Inner products of maps: sparse columns in three groups against plain dense products."""

import numpy as np
import pytest
import scipy.sparse
import sklearn.utils.sparsefuncs
from numpy.testing import assert_allclose, assert_array_equal

from mercer import Signature, Spectrum
from mercer.engine import tiles
from mercer.kernels import feature_kernels, hashing
from mercer.kernels.feature_kernels import _Remembered, _SparseProducts

WIDTHS = [1200, hashing.MOST_COLUMNS]
# Columns of the test's maps: a few that most rows have, some that several have, many that one has.
SHARES = np.concatenate([np.full(10, 0.7), np.full(40, 0.05), np.full(300, 0.004)])


def sample(rng, n, width, values=(1, 2, 3, 4)):
    """Numbered rows as points, the map that looks them up, and the same map as a dense matrix."""
    dense = (rng.random((n, len(SHARES))) < SHARES) * rng.choice(values, (n, len(SHARES)))
    dense = dense[:, rng.permutation(np.arange(3 * len(SHARES)) % len(SHARES))]  # each three times
    # In the last third of the rows columns differ that are equal in all others.
    later = slice(2 * n // 3, n)
    dense[later] *= rng.random(dense[later].shape) < 0.7
    dense[n // 2] = 0
    dense[:, 7] = 0
    columns = np.sort(rng.choice(min(width, 2**40), size=dense.shape[1], replace=False))
    row, place = np.nonzero(dense)
    starts = np.searchsorted(row, np.arange(n + 1))
    F = hashing.rows_of_entries(dense[row, place].astype(float), columns[place], starts, width)
    return np.arange(n).astype(object), lambda rows: F[rows.astype(int)], dense.astype(float)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("values", [(1, 2, 3, 4), (-3, 1, 2), (-0.25, 0.5, 1.75)], ids=str)
def test_merged_columns_frequent_and_rare_make_one_product(rng, width, values):
    X, features, dense = sample(rng, 300, width, values)
    S, others, K = X[:200], X[200:], dense @ dense.T
    tile = feature_kernels.map_products(features, S)
    # Quarters are multiplied without error too, in double precision.
    assert 5 < tile.n_often < tile.n_columns - 5
    assert tile.n_columns <= np.unique(dense[:200], axis=1).shape[1]
    for columns in (slice(None), slice(0, 64), slice(50, 51), slice(60, 199), slice(9, 9)):
        assert_array_equal(tile(S[20:90], columns), K[20:90, :200][:, columns])
        assert_array_equal(tile(others, columns), K[200:, :200][:, columns])
        assert_array_equal(tile(S[:0], columns), np.zeros((0, len(S[columns]))))
        assert tile(others, columns).dtype == np.float64
        single = np.float32 if np.array(values).dtype.kind == "i" else np.float64
        assert tile.stored(others, columns).dtype == single


def test_equal_columns_have_one_number(rng):
    X, features, _ = sample(rng, 90, WIDTHS[0])
    F = features(X)
    G = F.toarray()
    merged, chosen = feature_kernels._equal_columns(F, F.indices, F.shape[1])
    assert_array_equal(G[:, chosen[merged]], G)
    assert len(chosen) == np.unique(G, axis=1).shape[1]


def test_tiles_of_its_own_shape(rng, monkeypatch):
    words = ["".join(rng.choice(list("abcd"), size=9)) for _ in range(120)]
    kernel, others = Spectrum([1, 2, 4]), words[:70]
    F = kernel.explicit(words)
    K = (F @ F.T).toarray()
    monkeypatch.setattr(_SparseProducts, "shape", (32, 25))
    assert_array_equal(kernel(words), K)
    assert_array_equal(kernel(words, others), K[:, :70])
    bound = kernel.bind(words)
    X, S, W = bound.points(words), bound.points(others), rng.integers(9, size=(70, 2)).astype(float)
    assert_array_equal(tiles.multiply(bound, X, S, W), K[:, :70] @ W)


@pytest.mark.parametrize("width", WIDTHS)
def test_counts_too_large_for_single_precision_are_multiplied_in_double(rng, width):
    X, features, dense = sample(rng, 60, width, values=(1, 5, 1_000_003))
    tile = _SparseProducts(features, X, features(X))
    assert tile.stored(X).dtype == np.float64
    assert_array_equal(tile(X), dense @ dense.T)
    # Small counts in S, large ones in the rows.
    X, features, dense = sample(rng, 60, width)
    dense[40:] *= 1_000_003
    large = lambda rows: hashing.scaled_rows(  # noqa: E731
        features(rows), np.where(rows.astype(int) < 40, 1.0, 1_000_003.0)
    )
    tile = _SparseProducts(large, X[:40], large(X[:40]))
    assert tile.stored(X[:40]).dtype == np.float32
    assert_array_equal(tile(X[40:]), dense[40:] @ dense[:40].T)
    # And the other way round.
    tile = _SparseProducts(large, X[40:], large(X[40:]))
    assert_array_equal(tile(X[:40]), dense[:40] @ dense[40:].T)


def test_an_older_scikit_learn_multiplies_through_a_sparse_product(rng, monkeypatch):
    X, features, dense = sample(rng, 200, WIDTHS[1])
    monkeypatch.delattr(sklearn.utils.sparsefuncs, "sparse_matmul_to_dense", raising=False)
    assert_array_equal(feature_kernels.map_products(features, X[:150])(X), dense @ dense[:150].T)


def test_values_that_are_not_counts(rng):
    X, features, dense = sample(rng, 80, WIDTHS[1])
    thirds = lambda rows: hashing.scaled_rows(features(rows), np.full(len(rows), 1 / 3))  # noqa: E731
    tile = _SparseProducts(thirds, X, thirds(X))
    assert_allclose(tile(X), dense @ dense.T / 9, rtol=1e-14)


def test_a_kernel_matrix_of_counts_is_exact(rng):
    words = ["".join(rng.choice(list("abcdefgh"), size=12)) for _ in range(400)]
    F = Spectrum([1, 3]).explicit(words)
    assert_array_equal(Spectrum([1, 3])(words), (F @ F.T).toarray())
    assert_array_equal(Spectrum([1, 3])(words[:9], words), (F[:9] @ F.T).toarray())
    product = Spectrum([1, 3]) * Spectrum(2)  # beyond single precision, whatever its factors are
    G = Spectrum(2).explicit(words)
    assert_array_equal(product(words), (F @ F.T).toarray() * (G @ G.T).toarray())


def test_dense_maps_of_two_widths_are_refused(rng):
    tile = feature_kernels.map_products(Signature(2).features, _paths(rng, 3, channels=2))
    assert not isinstance(tile, _SparseProducts)
    with pytest.raises(ValueError, match="two widths"):
        tile(_paths(rng, 2, channels=3))


def _paths(rng, n, channels):
    paths = np.empty(n, dtype=object)
    for i in range(n):
        paths[i] = rng.normal(size=(5, channels))
    return paths


def test_no_row_has_an_entry():
    nothing = lambda rows: scipy.sparse.csr_array((len(rows), 7))  # noqa: E731
    X = np.array(["a", "b", "c"], dtype=object)
    assert_array_equal(_SparseProducts(nothing, X, nothing(X))(X), np.zeros((3, 3)))


def test_rows_are_computed_once_and_parts_of_the_points_never():
    calls = []

    def compute(X):
        calls.append(len(X))
        return (np.array([len(x) for x in X]),)

    S = np.array(["a", "bb", "ccc", "dddd"], dtype=object)
    remembered = _Remembered(compute, S)
    assert remembered(S[1:3])[0].tolist() == [2, 3]
    assert calls == [4]
    other = np.array(["xx", "y", "zzz"], dtype=object)
    for _ in range(3):
        assert remembered(other[1:])[0].tolist() == [1, 3]
    assert remembered(other[:2])[0].tolist() == [2, 1]
    assert remembered(S[::2])[0].tolist() == [1, 3]
    assert calls == [4, 2, 2, 2]
