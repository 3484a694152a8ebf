"""scikit-learn's Gaussian-process kernels as the kernel of every method."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import KernelPCA as Reference
from sklearn.gaussian_process import kernels as gp
from sklearn.linear_model import Ridge

from mercer import (
    KernelDiscriminant,
    Kernelized,
    KernelMap,
    KernelPCA,
    KernelPCAL1,
    KernelRidge,
    KernelRidgeCV,
    Polynomial,
    two_sample_test,
)

CUBIC = gp.Exponentiation(gp.DotProduct(sigma_0=1.0), 3)
SAME = Polynomial(3, gamma=1.0, coef0=1.0)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    return X, (X[:, 0] > 0).astype(int), rng.normal(size=(10, 3))


@pytest.mark.parametrize("solver", ["auto", "factor", "dense"])
def test_pca_keeps_the_exponent(data, solver):
    X, _, Z = data
    model = KernelPCA(3, CUBIC, solver=solver).fit(X)
    reference = Reference(3, kernel="precomputed").fit(CUBIC(X))
    assert_allclose(model.eigenvalues_, reference.eigenvalues_, rtol=1e-8)
    assert_allclose(
        np.abs(model.transform(Z)), np.abs(reference.transform(CUBIC(Z, X))), rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        (KernelDiscriminant, "decision_function"),
        (KernelRidge, "predict"),
        (KernelRidgeCV, "predict"),
    ],
)
@pytest.mark.parametrize("inside", [lambda k: k, KernelMap], ids=["plain", "in a map"])
def test_methods_agree_with_the_same_kernel_of_mercer(data, method, answer, inside):
    X, y, Z = data
    ours, theirs = (
        getattr(method(kernel=inside(kernel)).fit(X, y), answer)(Z) for kernel in (SAME, CUBIC)
    )
    assert_allclose(theirs, ours, rtol=1e-5, atol=1e-7)


def test_pca_l1_keeps_the_exponent(data):
    """Rounding can lead its local search to another local optimum, of much the same dispersion."""
    X = data[0]
    ours, theirs = (
        np.abs(KernelPCAL1(1, kernel).fit_transform(X)).sum() for kernel in (SAME, CUBIC)
    )
    assert theirs == pytest.approx(ours, rel=0.2)


def test_only_a_map_is_looked_into(data):
    """An object with an attribute `kernel` is not a map for that."""

    class Doubled:
        kernel = "linear"

        def __call__(self, x, z):
            return 2.0 * float(np.dot(x, z))

    X = data[0]
    once, twice = (
        KernelPCA(2, k, solver="dense").fit(X).eigenvalues_ for k in ("linear", Doubled())
    )
    assert_allclose(twice, 2 * once, rtol=1e-10)


@pytest.mark.parametrize("other", [KernelRidge(), KernelPCA(2, CUBIC), Kernelized(Ridge())])
@pytest.mark.parametrize("method", [KernelPCA, KernelPCAL1, KernelRidge, KernelRidgeCV, KernelMap])
def test_another_method_is_not_a_kernel(data, method, other):
    """It has a kernel, which would be used without its method."""
    X, y, _ = data
    with pytest.raises(TypeError, match=f"must be a kernel.*got {type(other).__name__}"):
        method(kernel=other).fit(X, y)


def test_statistics_take_maps_and_no_other_method(data):
    X, _, Z = data
    plain = two_sample_test(X, Z, CUBIC, random_state=0)
    assert two_sample_test(X, Z, KernelMap(CUBIC), random_state=0).p_value == plain.p_value
    with pytest.raises(TypeError, match="got KernelRidge"):
        two_sample_test(X, Z, KernelRidge(kernel=CUBIC))


@pytest.mark.parametrize("model", [KernelMap, KernelPCA])
def test_values_that_are_not_numbers_are_refused(model):
    """A root of a negative number: kernel PCA went on with NaN."""
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match=r"\*\* 1.5\) returned NaN or infinity"):
        model(kernel=gp.DotProduct(0.0) ** 1.5).fit(X)
