import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import pairwise

from mercer import Chi2, Intersection

rng = np.random.default_rng(0)
X = rng.poisson(2.0, size=(15, 6)).astype(float)
X[-1] = X[0]
Y = rng.poisson(2.0, size=(4, 6)).astype(float)


@pytest.mark.parametrize("offset", [0, 2000])
def test_chi2_agrees_with_scikit_learn(offset):
    A, B = X + [0, 0, offset, 0, 0, 0], Y
    assert_allclose(Chi2(0.3)(A, B), pairwise.chi2_kernel(A, B, gamma=0.3), rtol=1e-12, atol=1e-300)
    assert_allclose(Chi2(0.3)(A), pairwise.chi2_kernel(A, gamma=0.3), rtol=1e-12, atol=1e-300)


def test_intersection_is_what_is_common():
    assert_allclose(Intersection()([[1, 5, 0]], [[3, 2, 7], [1, 5, 0]]), [[3, 6]])


@pytest.mark.parametrize("kernel", [Chi2(), Intersection()], ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_zeros_and_huge_counts(kernel, dtype):
    Z = np.array([[0, 0], [0, 1], [1e30, 1e30]], dtype=dtype)
    K = kernel(Z)
    assert K.dtype == dtype
    assert np.isfinite(K).all()
    assert_allclose(np.diagonal(K), kernel.diag(Z))


@pytest.mark.parametrize("kernel", [Chi2(), Intersection()], ids=repr)
def test_negative_values_are_refused(kernel):
    message = r"needs values >= 0; the data contain -0\.5\. Shift or clip them"
    bad = np.array([[1.0, -0.5]])
    for call in (lambda: kernel(bad), lambda: kernel.diag(bad), lambda: kernel(bad, X[:, :2])):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(ValueError, match=message):
        kernel(X[:, :2], bad)


def test_bad_gamma():
    with pytest.raises(ValueError, match=r"Chi2\(gamma\) must be a positive number .* got 0"):
        Chi2(gamma=0)(X)
