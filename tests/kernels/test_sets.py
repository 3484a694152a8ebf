"""SetOf: means over pairs, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer import (
    RBF,
    KernelMap,
    Linear,
    Normalized,
    OnColumns,
    Polynomial,
    Precomputed,
    SetOf,
    Spectrum,
    check_mercer,
)
from mercer.kernels import sets


def clouds(rng, n=9):
    return [rng.normal(size=(rng.integers(0, 6), 3)) for _ in range(n)]


def pair_means(kernel, A, B):
    return np.array([[kernel(a, b).mean() if len(a) and len(b) else 0.0 for b in B] for a in A])


@pytest.mark.parametrize(
    "inner", [RBF(0.3), Linear(), Polynomial(2), RBF(0.3) * Linear()], ids=repr
)
def test_means_over_all_pairs(inner, rng, monkeypatch):
    A, B = clouds(rng), clouds(rng, 5)
    expected = pair_means(inner, A, B)
    assert_allclose(SetOf(inner)(A, B), expected, rtol=1e-12, atol=1e-14)
    assert_allclose(SetOf(inner).diag(A), np.diagonal(pair_means(inner, A, A)), atol=1e-13)
    monkeypatch.setattr(sets, "_SHORT", 0)  # over pairs, also where there is a map
    monkeypatch.setattr(sets, "_INNER_VALUES", 7)  # a few pairs at a time
    assert_allclose(SetOf(inner)(A, B), expected, rtol=1e-12, atol=1e-14)
    assert_allclose(SetOf(inner).diag(A), np.diagonal(pair_means(inner, A, A)), atol=1e-13)


def test_the_map_is_the_mean_of_rows(rng):
    A = [rng.normal(size=(4, 3)), rng.normal(size=(2, 3)), np.zeros((0, 3))]
    F = SetOf(Polynomial(2)).explicit(A)
    assert_allclose(F[0], Polynomial(2).explicit(A[0]).mean(axis=0), rtol=1e-14)
    assert_array_equal(F[2], 0)


def test_sets_of_strings_are_sparse():
    bags = [["banana", "band"], ["dandy"], []]
    kernel = SetOf(Spectrum(2))
    expected = np.array(
        [[Spectrum(2)(a, b).mean() if a and b else 0.0 for b in bags] for a in bags]
    )
    assert_allclose(kernel(bags), expected, rtol=1e-14)
    F = kernel.explicit(bags)
    assert_allclose((F @ F.T).toarray(), expected, rtol=1e-14)


def test_data_dependent_parameters_come_from_all_members(rng):
    A = clouds(rng)
    assert SetOf(RBF("scale")).bind(A).kernel == RBF("scale").bind(np.concatenate(A))


def test_numbers_lists_and_sets_are_sets_of_points():
    kernel = SetOf(RBF(0.5))
    K = kernel([[1.0, 2.0], np.array([[1.0], [2.0]]), {2.0, 1.0}, (2.0, 1.0)])
    assert_allclose(K, np.full((4, 4), K[0, 0]), rtol=1e-14)


def test_two_samples_of_one_distribution_are_near(rng):
    same = [rng.normal(size=(300, 2)) for _ in range(4)]
    other = [rng.normal(1.0, size=(300, 2)) for _ in range(4)]
    distances = KernelMap(SetOf(RBF(0.5))).fit(same + other).distances(same + other)
    assert distances[:4, :4].max() < 0.5 * distances[:4, 4:].min()


def test_valid_by_construction_and_on_data(rng):
    report = check_mercer(SetOf(RBF(0.5)), clouds(rng, 40))
    assert report.verdict == "valid by construction; the data agree"
    assert SetOf(lambda a, b: 1.0) is not None  # refused when used, not when made
    assert SetOf(Polynomial(2, coef0=-1.0)).is_psd is None


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (np.zeros((2, 4)), ValueError, r"X\[1\] have 4 columns, those before it 3"),
        (np.full((2, 3), np.nan), ValueError, r"X\[1\] has NaN or infinity at point \[0\]"),
        (np.zeros((2, 3, 3)), ValueError, r"X\[1\] has shape \(2, 3, 3\)"),
        ("text", ValueError, r"X\[1\] is not an array of numbers"),
        ([[1.0, 2.0], [3.0]], ValueError, r"X\[1\] is not an array of numbers"),
    ],
)
def test_what_is_refused_is_named_by_its_position(bad, error, message):
    for call in (SetOf(RBF(1.0)), SetOf(RBF(1.0)).diag):
        with pytest.raises(error, match=message):
            call([np.zeros((2, 3)), bad])


def test_a_string_is_not_a_set_of_strings():
    with pytest.raises(TypeError, match=r"X\[1\] is str 'dandy', not a collection"):
        SetOf(Spectrum(2))([["banana"], "dandy"])


def test_widths_of_two_samples_must_agree():
    with pytest.raises(ValueError, match="columns"):
        SetOf(RBF(1.0))([np.zeros((2, 3))], [np.zeros((2, 2))])
    with pytest.raises(ValueError, match="the same columns"):
        SetOf(Linear())([np.zeros((2, 3))], [np.zeros((2, 2))])


def test_a_gram_matrix_has_no_members():
    with pytest.raises(ValueError, match="has no meaning"):
        SetOf(Precomputed())([np.zeros((2, 3))])


@pytest.mark.parametrize(
    "inner", [Spectrum(2) ** 2, Spectrum(1, alphabet="ab") ** 2, OnColumns(RBF(0.3), [1])], ids=repr
)
def test_inner_kernels_whose_map_is_not_written_out(inner, rng):
    """Products of sparse maps, and kernels that must know how many columns there are."""
    if inner.kernel.kind == "objects":
        A = [["ab", "aab"], ["b", "abba", "ba"], [], ["aa"]]
    else:
        A = [rng.normal(size=(n, 2)) for n in (2, 3, 0, 1)]
    K = pair_means(inner, A, A)
    assert_allclose(SetOf(inner)(A), K, rtol=1e-12)
    Phi = KernelMap(SetOf(inner), basis="auto").fit_transform(A)
    assert_allclose(Phi @ Phi.T, K, atol=1e-7 * K.max())


def test_powers_of_counts_of_few_things():
    words = ["aab", "abba", "b", "", "aaaa", "bb"]
    for kernel in (
        Spectrum(1, alphabet="ab") ** 2,
        Spectrum(1, alphabet="ab").polynomial([1, 0, 2]),
    ):
        F = kernel.explicit(words)
        assert_allclose(F @ F.T, kernel(words))
        assert F.shape[1] == kernel.explicit_dim(None)
        Phi = KernelMap(kernel, basis="auto").fit_transform(words)
        assert_allclose(Phi @ Phi.T, kernel(words), rtol=1e-9, atol=1e-9)


def test_a_sum_of_many_hashed_maps():
    """Twelve maps of 2^61 columns each have more columns than 63 bits can number."""
    words = ["abcabcabcabc", "abdabdabcdbd", "aaaaaaaa", ""]
    kernel = sum((Spectrum(n) for n in range(5, 8)), Spectrum(4))
    kernel = 2.0 * kernel + (kernel + Normalized(kernel))
    F, K = kernel.explicit(words), kernel(words)
    assert_allclose((F @ F.T).toarray(), K)
    assert F.shape[1] == kernel.explicit_dim(None) < 2**63
    assert_allclose(SetOf(kernel)([words[:3], words])[0, 1], K[:3].sum() / 12)
