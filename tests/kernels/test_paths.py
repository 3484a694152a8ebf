"""Signature: Chen's identity, areas, invariances, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oracles
from mercer import KernelMap, Signature
from mercer.kernels import paths


def walks(rng, n=6, channels=2):
    return [rng.normal(size=(rng.integers(1, 7), channels)) for _ in range(n)]


@pytest.mark.parametrize("time", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_coordinates_are_iterated_integrals(depth, time, rng):
    kernel = Signature(depth, time=time, length_scale=[0.5, 3.0])
    X = walks(rng)
    expected = np.array([oracles.iterated_integrals(kernel, path) for path in X], dtype=float)
    assert_allclose(kernel.explicit(X), expected, rtol=1e-12, atol=1e-13)
    assert kernel.explicit(X).shape[1] == kernel.explicit_dim(2)


def test_level_two_is_the_area_of_a_polygon(rng):
    x, y = rng.normal(size=(2, 9))
    F = Signature(2, time=False).explicit([np.column_stack([x, y])])[0]
    closed = np.append(np.arange(9), 0)
    area = 0.5 * np.sum(x[closed[:-1]] * y[closed[1:]] - x[closed[1:]] * y[closed[:-1]])
    assert_allclose((F[4] - F[5]) / 2, area, rtol=1e-12)  # the chord back to the start adds nothing


def test_a_path_there_and_back_is_nothing_without_time(rng):
    there = rng.normal(size=(5, 2))
    back = np.concatenate([there, there[::-1][1:]])
    F = Signature(3, time=False).explicit([back])[0]
    assert_allclose(F[1:], 0, atol=1e-12)
    assert np.abs(Signature(3).explicit([back])[0, 1:]).max() > 0.1


def test_shifts_and_added_points_on_a_line_change_nothing(rng):
    path = rng.normal(size=(4, 2))
    middles = (path[1:] + path[:-1]) / 2
    finer = np.insert(path, [1, 2, 3], middles, axis=0)
    F = Signature(4, time=False).explicit([path, path + 7.0, finer])
    assert_allclose(F[1], F[0], rtol=1e-12, atol=1e-13)
    assert_allclose(F[2], F[0], rtol=1e-12, atol=1e-13)


def test_blocks_and_lengths_do_not_change_the_result(monkeypatch, rng):
    X = walks(rng, 20)
    one_by_one = np.concatenate([Signature().explicit([x]) for x in X])
    assert_array_equal(Signature().explicit(X), one_by_one)
    monkeypatch.setattr(paths, "_BLOCK_VALUES", 100)
    assert_array_equal(Signature().explicit(X), one_by_one)


def test_forms_of_paths(rng):
    X = rng.normal(size=(5, 8))
    K = Signature()(X)  # each row a series of one channel
    assert_allclose(Signature()(X.tolist()), K, rtol=1e-13)
    assert_allclose(Signature()([x[:, None] for x in X]), K, rtol=1e-13)
    cube = rng.normal(size=(5, 8, 3))
    assert_allclose(Signature()(cube), Signature()(list(cube)), rtol=1e-13)


def test_the_map_in_its_own_coordinates(rng):
    X, Z = walks(rng, 30), walks(rng, 4)
    own = KernelMap(Signature(2), basis="closed").fit(X)
    assert own.rank_ == 13
    exact = Signature(2)(X, Z)
    assert_allclose(own.transform(X) @ own.transform(Z).T, exact, rtol=1e-12)
    assert_allclose(
        KernelMap(Signature(2)).fit(X).transform(X) @ KernelMap(Signature(2)).fit(X).transform(Z).T,
        exact,
        rtol=1e-9,
    )


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ([[1.0, 2.0], [np.nan, 0.0]], ValueError, r"X\[1\] has NaN or infinity at point \[1\]"),
        ([[1.0], [2.0]], ValueError, r"X\[1\] has 1 channels, X\[0\] has 2"),
        (np.zeros((0, 2)), ValueError, r"X\[1\] has shape \(0, 2\)"),
        (np.zeros((2, 2, 2)), ValueError, r"X\[1\] has shape \(2, 2, 2\)"),
        ("text", ValueError, r"X\[1\] is not a path"),
        ({}, TypeError, r"X\[1\] is not a path"),
    ],
)
def test_what_is_refused_is_named_by_its_position(bad, error, message):
    for call in (Signature(), Signature().diag, Signature().explicit):
        with pytest.raises(error, match=message):
            call([[[0.0, 0.0], [1.0, 1.0]], bad])


def test_other_refusals():
    with pytest.raises(ValueError, match="the same columns or channels"):
        Signature()([[1.0, 2.0]], [[[1.0, 2.0]]])
    with pytest.raises(ValueError, match="has 3 values for paths of 2 channels"):
        Signature(length_scale=[1.0, 2.0, 3.0])([[[1.0, 2.0]]])
    with pytest.raises(ValueError, match="overflows"):
        Signature(3)([np.array([0.0, 1e60])])
    for kernel in (Signature(0), Signature(1.5), Signature(time=2)):
        with pytest.raises(ValueError, match=r"Signature\((depth|time)\) must be"):
            kernel([[1.0]])
    with pytest.raises(ValueError, match=r"Signature\(length_scale\)"):
        Signature(length_scale=0.0)([[1.0]])
