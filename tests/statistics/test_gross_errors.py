"""Error codes, heavy tails and columns far apart must not hide a difference: level and power.

benchmarks.levels_of_tests has the long simulations.
"""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

from mercer import RBF, Chi2, DriftDetector, Laplacian, OnFeatures, independence_test
from mercer import two_sample_test as compare
from mercer.statistics.bulk import bound_to_bulk

SETS = 12
FEW = {"n_permutations": 39}


def with_error_codes(rng, X):
    """One cell in a hundred is -9999."""
    return np.where(rng.random(X.shape) < 0.01, -9999.0, X)


def shifted(rng, n=120):
    X, Y = rng.normal(size=(n, 4)), rng.normal(size=(n, 4)) + [0.8, 0, 0, 0]
    return with_error_codes(rng, X), with_error_codes(rng, Y)


def in_frames(rng):
    return [pd.DataFrame(A).add_prefix("c") for A in shifted(rng)]


def one_column_of_a_frame(rng):
    """The column with error codes is the one that has moved."""
    X, Y = rng.normal(size=(120, 4)), rng.normal(size=(120, 4)) + [0.8, 0, 0, 0]
    X[:2, 0] = Y[:1, 0] = -9999
    return [pd.DataFrame(A).add_prefix("c") for A in (X, Y)]


def heavy_tails(rng):
    return rng.standard_cauchy(size=(200, 3)), rng.standard_cauchy(size=(200, 3)) + [1.0, 0, 0]


def far_apart(rng):
    """One column is a year."""
    X, Y = shifted(rng)
    return X + [0, 2000, 0, 0], Y + [0, 2000, 0, 0]


def a_constant_column(rng):
    """Constant but for error codes."""
    X, Y = shifted(rng)
    X[:, 3] = Y[:, 3] = 0.0
    X[:3, 3] = Y[:3, 3] = -9999
    return X, Y


@pytest.mark.parametrize(
    "samples",
    [shifted, in_frames, one_column_of_a_frame, heavy_tails, far_apart, a_constant_column],
)
def test_power_of_two_samples(samples):
    found = 0
    for seed in range(SETS):
        X, Y = samples(np.random.default_rng(seed))
        found += compare(X, Y, random_state=seed, **FEW).differs
    assert found >= SETS - 1


def test_power_of_independence():
    found = 0
    for seed in range(SETS):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(150, 2))
        y = np.cos(2 * x[:, :1]) + 0.4 * rng.normal(size=(150, 1))
        x, y = with_error_codes(rng, x), with_error_codes(rng, y)
        found += independence_test(x, y, random_state=seed, **FEW).differs
    assert found >= SETS - 1


@pytest.mark.parametrize("frames", [False, True])
def test_power_of_a_drift_detector(frames):
    found = 0
    for seed in range(SETS):
        X, Y = shifted(np.random.default_rng(seed), 300)
        if frames:
            X, Y = (pd.DataFrame(A).add_prefix("c") for A in (X, Y))
        found += DriftDetector(random_state=seed, **FEW).fit(X).test(Y[:100]).differs
    assert found >= SETS - 1


def test_level_with_error_codes():
    alarms = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        X, Y = (with_error_codes(rng, rng.normal(size=(n, 3))) for n in (30, 25))
        options = {"scales": [0.5, 2.0], "n_permutations": 19, "level": 0.2}
        alarms += compare(X, Y, random_state=seed, **options).differs
    assert 11 <= alarms <= 49  # 30 are expected; 4 standard deviations


def test_clean_columns_around_zero_keep_their_scale(rng):
    X = rng.normal(size=(300, 3))
    for kernel in (RBF(), RBF("median"), Laplacian()):
        middle = np.median(X, axis=0)
        assert bound_to_bulk(kernel, X) == kernel.bind(X - middle)
    assert bound_to_bulk(RBF(0.3), X) == RBF(0.3)
    ones = (rng.random((300, 4)) < 0.02).astype(float)
    found = bound_to_bulk(RBF(), ones).gamma
    assert_allclose(found, RBF().bind(ones).gamma)


def test_functions_and_histograms_see_values_such_as_they_are_made_for(rng):
    X = 5 + rng.random(size=(100, 2))
    X[0, 0] = 1e9
    on_logs = bound_to_bulk(OnFeatures(RBF(), np.log), X)
    assert np.isfinite(on_logs.kernel.gamma)
    assert on_logs.kernel.gamma > 1
    assert bound_to_bulk(Chi2() * RBF(), X).right.gamma > 0.1


def test_sparse_rows(rng):
    X = scipy.sparse.random(200, 30, 0.1, format="csr", random_state=0)
    dirty = X.copy()
    dirty.data[:3] = -9999
    clean = bound_to_bulk(RBF(), X).gamma
    assert_allclose(bound_to_bulk(RBF(), dirty).gamma, clean, rtol=0.3)
    assert bound_to_bulk(RBF(), 0 * X).gamma == 1.0
