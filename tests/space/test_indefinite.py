"""Validity is judged at the precision of the values."""

import numpy as np
import pytest

from mercer import Precomputed
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
