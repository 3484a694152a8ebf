"""Hashes that are stable, and sparse rows of any width."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from mercer import KernelMap, Spectrum
from mercer.kernels import hashing


def test_mixing_is_one_to_one_and_changes_half_of_the_bits(rng):
    x = rng.integers(2**63, size=100_000).astype(np.uint64)
    y = hashing.mixed(x)
    assert len(np.unique(y)) == len(np.unique(x))
    for bit in (0, 13, 40, 63):
        changed = y ^ hashing.mixed(x ^ np.uint64(1 << bit))
        share = np.mean([bin(int(c)).count("1") / 64 for c in changed[:2000]])
        assert 0.48 < share < 0.52


def test_known_hashes_never_change():
    # Files of saved models hold column numbers: these values are part of the format.
    keys = hashing.label_keys(["C", 6, 6.5, ("C", 1)])
    assert keys.tolist() == [
        13365168099191852923,
        13647215125184110592,
        11767704714408483143,
        14685520953367385333,
    ]
    columns = Spectrum(5).explicit(["mercer"]).indices
    assert columns.tolist() == [
        416595493309056989,
        433836821661300896,
    ]


def test_equal_labels_have_equal_keys_in_every_container():
    one = hashing.label_keys(np.array([1]))[0]
    for labels in ([1], [1.0], [True], (1,), np.array([1.0]), np.array([1], dtype=np.int8),
                   np.array([1], dtype=object), [np.int32(1)], np.array([True])):  # fmt: skip
        assert hashing.label_keys(labels)[0] == one
    assert hashing.label_keys(["1"])[0] != one
    assert hashing.label_keys(np.array(["a"]))[0] == hashing.label_keys(["a"])[0]
    assert hashing.label_keys([b"a"])[0] != hashing.label_keys(["a"])[0]


def rows(rng, n, width):
    dense = rng.integers(0, 3, size=(n, 6)).astype(float)
    columns = np.sort(rng.choice(width, size=6, replace=False))
    i, j = np.nonzero(dense)
    starts = np.searchsorted(i, np.arange(n + 1))
    return hashing.rows_of_entries(dense[i, j], columns[j], starts, width), dense


@pytest.mark.parametrize("width", [6, 1 << 40, hashing.MOST_COLUMNS])
def test_products_of_wide_rows(width, rng):
    F, dense = rows(rng, 7, width)
    assert_array_equal((F @ F.T).toarray(), dense @ dense.T)
    assert_array_equal((F[:3] @ F.T).toarray(), dense[:3] @ dense.T)
    assert_array_equal(hashing.squared_lengths(F), (dense**2).sum(axis=1))
    both = hashing.side_by_side(F, F)
    assert_array_equal((both @ both.T).toarray(), 2 * dense @ dense.T)
    pairs = hashing.row_products(F, F)
    assert_array_equal((pairs @ pairs.T).toarray(), (dense @ dense.T) ** 2)
    half = hashing.scaled_rows(F, np.full(7, 0.5))
    assert_allclose((half @ F.T).toarray(), 0.5 * dense @ dense.T)


def test_pairs_of_hashes_do_not_commute(rng):
    """Columns are hashes themselves: (hash of a, b) is another pair than (hash of b, a)."""
    a, b = rng.integers(0, 1 << 61, size=(2, 1000))
    keys = [hashing.paired(hashing.mixed(x), y) for x, y in ((a, b), (b, a))]
    assert len(np.unique(keys)) == 2000


def test_wide_rows_say_what_they_can_do(rng):
    F, _ = rows(rng, 3, hashing.MOST_COLUMNS)
    with pytest.raises(TypeError, match=r"F @ G.T.*basis='closed'"):
        F @ np.ones(3)


def test_columns_that_a_map_does_not_have_are_left_out():
    F = scipy.sparse.csr_array(np.array([[1.0, 2.0, 0.0, 3.0], [0.0, 0.0, 4.0, 0.0]]))
    assert_array_equal(hashing.numbered(F, np.array([1, 3, 9])).toarray(), [[2, 3, 0], [0, 0, 0]])
    assert hashing.numbered(F, np.array([], dtype=int)).shape == (2, 0)


@pytest.mark.parametrize("slots", [hashing._SLOTS, 1, 16, 256])
@pytest.mark.parametrize("largest", [0, 1, 50, 2**40, hashing.MOST_COLUMNS - 1, 2**63 - 1])
@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_places_among_the_distinct_numbers(largest, n, slots, rng, monkeypatch):
    monkeypatch.setattr(hashing, "_SLOTS", slots)  # few slots: many numbers share one
    numbers = np.append(rng.integers(largest, size=n, endpoint=True), [largest])
    numbers = np.concatenate([numbers, numbers[: n // 2]])
    columns, places = hashing.distinct_places(numbers)
    assert_array_equal(columns, np.unique(numbers))
    assert_array_equal(columns[places], numbers)


def test_numbers_that_differ_in_their_lowest_bits_alone(rng):
    numbers = (2**60 + rng.permutation(1000))[::-1]
    order, ordered = hashing._sorted_keys(numbers)
    assert_array_equal(ordered, np.sort(numbers))
    assert_array_equal(numbers[order], ordered)


@pytest.mark.parametrize(
    "estimator",
    [
        KMeans(2, n_init=1),
        TruncatedSVD(2),
        RandomForestClassifier(2),
        LogisticRegression(),
        RidgeClassifier(),
        SGDClassifier(),
        MultinomialNB(),
        KNeighborsClassifier(1),
        StandardScaler(with_mean=False),
        SVC(),
        LinearSVC(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_estimators_refuse_hashed_columns_and_take_numbered_ones(estimator):
    words, y = ["banana", "bandana", "candy", "dandy"], [0, 0, 1, 1]
    with pytest.raises(TypeError, match=r"KernelMap\(kernel, basis='closed'\)"):
        estimator.fit(Spectrum(3).explicit(words), y)
    estimator.fit(KernelMap(Spectrum(3), basis="closed").fit_transform(words), y)
