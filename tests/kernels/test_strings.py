"""Spectrum: numbering, hashing, letters, and what it refuses."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import oracles
from mercer import KernelMap, Spectrum
from mercer.kernels import hashing, strings

texts = st.lists(st.text("abcdé☃", max_size=12), min_size=1, max_size=6)
settings = st.sampled_from(
    [
        Spectrum(1),
        Spectrum(4),
        Spectrum(range(1, 6)),
        Spectrum(2, gaps=1),
        Spectrum(3, gaps=3),
        Spectrum(5, gaps=2),
        Spectrum([2, 3], alphabet="abcdé☃"),
        Spectrum(2, mismatches=1, alphabet="abcdé☃"),
    ]
)


@given(settings, texts)
def test_counts_are_those_of_plain_loops(kernel, X):
    assert_array_equal(kernel(X), oracles.matrix(kernel, X, X))  # whole numbers: no rounding
    F = kernel.explicit(X)
    assert_array_equal((F @ F.T).toarray(), kernel(X))


@given(texts)
def test_exact_numbers_and_hashes_give_the_same_kernel(X):
    # Ten letters of an alphabet of six fit in 2^61 columns; of all letters they are hashed.
    exact, hashed = Spectrum(10, alphabet="abcdé☃"), Spectrum(10)
    assert exact.explicit_dim(None) == 6**10
    assert hashed.explicit_dim(None) == hashing.MOST_COLUMNS
    long = [x * 3 for x in X]
    assert_array_equal(exact(long), hashed(long))


def test_columns_are_numbered_in_the_order_of_the_alphabet():
    F = Spectrum(2, alphabet="TGCA").explicit(["TTTG"]).toarray()
    assert_array_equal(F[0, :3], [2, 1, 0])
    assert F.sum() == 3


def test_columns_do_not_depend_on_the_sample():
    for kernel in (Spectrum(3), Spectrum(8), Spectrum(4, gaps=1)):
        alone = kernel.explicit(["abracadabra"])
        among = kernel.explicit(["hocus pocus", "abracadabra", "simsalabim"])[[1]]
        assert_array_equal(alone.indices, among.indices)
        assert_array_equal(alone.data, among.data)


def test_columns_do_not_depend_on_the_process():
    code = "from mercer import Spectrum; print(Spectrum(8).explicit(['abracadabra']).indices.sum())"
    here = int(Spectrum(8).explicit(["abracadabra"]).indices.sum())
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == here


def test_no_two_of_many_substrings_share_a_column():
    rng = np.random.default_rng(0)
    long = "".join(rng.choice(list("ACGT"), size=200_000))
    different = len({long[i : i + 12] for i in range(len(long) - 11)})
    assert Spectrum(12).explicit([long]).nnz == different


def test_bytes_are_letters_of_the_same_number():
    assert Spectrum(2)([b"banana"], ["banana"])[0, 0] == Spectrum(2)(["banana"])[0, 0]
    assert Spectrum(2, alphabet=b"abn")([b"banana"])[0, 0] == 9


def test_short_strings_are_zero_and_stay_zero_when_normalized():
    K = Spectrum(3, normalize=True)(["ab", "", "abc"])
    assert_array_equal(K, [[0, 0, 0], [0, 0, 0], [0, 0, 1]])


def test_blocks_do_not_change_the_result(monkeypatch, rng):
    X = ["".join(rng.choice(list("ACGT"), size=rng.integers(30))) for _ in range(50)]
    for kernel in (Spectrum(3), Spectrum(2, mismatches=1, alphabet="ACGT"), Spectrum(2, gaps=2)):
        whole = kernel.explicit(X)
        with monkeypatch.context() as patch:
            patch.setattr(strings, "_WINDOWS", 40)
            cut = kernel.explicit(X)
        assert cut.shape == whole.shape
        assert_array_equal(cut.indptr, whole.indptr)
        assert_array_equal(cut.indices, whole.indices)


def test_coordinates_that_linear_models_take():
    F = Spectrum(3, alphabet="ACGT").explicit(["ACGTACGT"])
    assert F.shape == (1, 64)
    assert F.indices.dtype == np.int32  # scikit-learn's liblinear takes no other


@pytest.mark.parametrize(
    ("kernel", "X", "error", "message"),
    [
        (Spectrum(2, alphabet="ACGT"), ["ACG", "ACNT"], ValueError, r"X\[1\].*'N' at position 2"),
        (Spectrum(2), ["ab", 7], TypeError, r"X\[1\] is int 7"),
        (Spectrum(2), [["ab"]], TypeError, r"X\[0\] is list"),
        (Spectrum(2), "ab", TypeError, "Put a single object into a list"),
        (Spectrum(0), ["ab"], ValueError, r"length\) must be an integer >= 1"),
        (Spectrum([]), ["ab"], ValueError, r"length\) must be an integer >= 1"),
        (Spectrum([2, 2]), ["ab"], ValueError, "a length twice"),
        (Spectrum(2, mismatches=1), ["ab"], ValueError, "alphabet='ACGT' for DNA"),
        (Spectrum(2, mismatches=2, alphabet="ab"), ["ab"], ValueError, "smaller than the length 2"),
        (Spectrum(2, mismatches=1, gaps=1, alphabet="ab"), ["ab"], ValueError, "not both"),
        (Spectrum(2, gaps=-1), ["ab"], ValueError, r"gaps\) must be an integer from 0"),
        (Spectrum(2, alphabet="aba"), ["ab"], ValueError, r"names \['a'\] more than once"),
        (Spectrum(2, alphabet=4), ["ab"], ValueError, "must be a text of all letters"),
        (Spectrum(2, normalize="yes"), ["ab"], ValueError, "True or False"),
    ],
)
def test_what_is_refused(kernel, X, error, message):
    for call in (kernel, kernel.diag, kernel.explicit):
        with pytest.raises(error, match=message):
            call(X)


def test_the_position_is_that_in_the_whole_sample():
    X = ["ACGT"] * 3000
    X[2500] = "ACXT"
    kernel = Spectrum(2, alphabet="ACGT")
    with pytest.raises(ValueError, match=r"X\[2500\] has the letter 'X' at position 2"):
        kernel(X, X[:5])


def test_products_of_sparse_features_name_the_map_that_works():
    words = ["abcd", "bcde", "cdef"]
    with pytest.raises(TypeError, match="KernelMap\\(kernel\\), whose basis='cholesky'"):
        KernelMap(Spectrum(3) ** 2, basis="closed").fit(words)
    assert KernelMap(Spectrum(3) ** 2).fit(words).rank_ == 3


def test_numbers_of_many_lengths_do_not_overflow():
    # 5^27 fits in 63 bits, and the sum of all lengths does not.
    X = ["ACGTN" * 12, "NNACG" * 11]
    assert_array_equal(
        Spectrum(range(20, 28), alphabet="ACGTN")(X),
        sum(Spectrum(n, alphabet="ACGTN")(X) for n in range(20, 28)),
    )
