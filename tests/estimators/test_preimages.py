"""Pre-images: exact for linear kernels, learned or iterated for others; digits denoised."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.datasets import load_digits, make_blobs
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Reference
from sklearn.exceptions import NotFittedError

from mercer import (
    RBF,
    Chi2,
    FromFunction,
    Kernelized,
    KernelMap,
    KernelPCA,
    KernelPCAL1,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    QuadraticForm,
    RationalQuadratic,
    preimage,
)
from mercer.engine.arrays import as_numpy
from mercer.estimators.preimages import _steepness, preimage_data


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(60, 3))


@pytest.fixture(scope="module")
def Z():
    return np.random.default_rng(1).normal(size=(9, 3)) / 2


BASES = ["cholesky", "eigen", "symmetric", "closed"]


# --- exact ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("kernel", [Linear(), 2.5 * Linear(), QuadraticForm(np.diag([1.0, 2, 3]))])
def test_linear_maps_invert_exactly(basis, center, kernel, X, Z, there):
    kernel_map = there(KernelMap(kernel, basis=basis, center=center)).fit(X)
    assert_allclose(kernel_map.inverse_transform(kernel_map.transform(Z)), Z, atol=1e-12)


@pytest.mark.parametrize("solver", ["dense", "factor", "krylov"])
def test_a_linear_kernel_reconstructs_as_pca(solver, X, Z, there):
    X = X + 10  # scikit-learn's KernelPCA loses the mean; PCA does not
    for k in (1, 2, 3):
        model, pca = there(KernelPCA(k, Linear(), solver=solver)).fit(X), PCA(k).fit(X)
        expected = pca.inverse_transform(pca.transform(Z))
        assert_allclose(model.inverse_transform(model.transform(Z)), expected, atol=1e-10)
        assert_allclose(
            there(preimage)(model, model.transform(Z), "fixed-point"), expected, atol=1e-10
        )


def test_sparse_points_come_back_dense(X):
    S = scipy.sparse.csr_array(np.where(X > 0, X, 0))
    for kernel in (Linear(), RBF(0.3)):
        model, dense = KernelPCA(3, kernel).fit(S), KernelPCA(3, kernel).fit(S.toarray())
        scores = model.transform(S)
        back = model.inverse_transform(scores)
        assert_allclose(back, dense.inverse_transform(scores), atol=1e-9)
    kernel_map = KernelMap(RBF(0.3)).fit(S)
    back = kernel_map.inverse_transform(kernel_map.transform(S))
    assert_allclose(back, S.toarray(), atol=1e-2)


# --- ridge ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "poly", "cosine"])
@pytest.mark.parametrize("alpha", [1.0, 0.01])
def test_ridge_is_that_of_scikit_learn(kernel, alpha, X, Z, there):
    reference = Reference(4, kernel=kernel, gamma=0.3, fit_inverse_transform=True, alpha=alpha)
    ours = {
        "rbf": RBF(0.3),
        "poly": Polynomial(gamma=0.3),
        "cosine": "cosine",
    }[kernel]
    if kernel == "cosine":  # four directions of three columns: one fewer
        reference.set_params(n_components=2)
    reference.fit(X)
    model = there(KernelPCA(reference.n_components, ours)).fit(X)
    sign = np.sign((model.transform(X) * reference.transform(X)).sum(axis=0))
    scores = reference.transform(Z)
    # Kernels of distances and products do not see a common sign of columns.
    expected = reference.inverse_transform(scores)
    assert_allclose(there(preimage)(model, scores * sign, alpha=alpha), expected, atol=1e-8)
    if alpha == 1.0:
        assert_allclose(model.inverse_transform(scores * sign), expected, atol=1e-8)


def test_blobs_are_reconstructed(there):
    X, _ = make_blobs(n_samples=100, n_features=4, random_state=0)
    model = there(KernelPCA(20, RBF(1 / 4))).fit(X)
    back = there(preimage)(model, model.transform(X), alpha=1e-3)
    assert np.linalg.norm(X - back) < 0.1 * np.linalg.norm(X)


@pytest.mark.parametrize("basis", ["cholesky", "eigen", "symmetric"])
@pytest.mark.parametrize("options", [{}, {"center": True}, {"append_residual": True}], ids=str)
@pytest.mark.parametrize("kernel", [RBF(0.2), Polynomial(2), Matern(1.5), Laplacian(0.2)], ids=repr)
def test_maps_lead_back_to_their_landmarks(basis, options, kernel, X, there):
    kernel_map = there(KernelMap(kernel, basis=basis, **options)).fit(X)
    S = kernel_map.landmarks_
    assert_allclose(kernel_map.inverse_transform(kernel_map.transform(S)), S, atol=0.01)


def test_maps_lead_new_points_back(there):
    X = load_digits().data / 16
    kernel_map = there(KernelMap(RBF("median"))).fit(X[:500])
    new = X[500:700]
    error = kernel_map.inverse_transform(kernel_map.transform(new)) - new
    # Measured: 0.04; a ridge of alpha = 1 leaves 0.2.
    assert np.linalg.norm(error) < 0.08 * np.linalg.norm(new - new.mean(axis=0))


def test_ridge_is_learned_once_and_anew_after_a_fit(X, Z):
    model = KernelPCA(2, RBF(0.2)).fit(X)
    scores = model.transform(Z)
    first = model.inverse_transform(scores)
    learned = model.preimage_ridge_
    assert_array_equal(model.inverse_transform(scores), first)
    assert model.preimage_ridge_ is learned
    assert not np.allclose(preimage(model, scores, alpha=0.1), first)
    assert_array_equal(model.inverse_transform(scores), first)
    model.fit(2 * X)
    assert_allclose(
        model.inverse_transform(scores),
        KernelPCA(2, RBF(0.2)).fit(2 * X).inverse_transform(scores),
    )
    kernel_map = KernelMap(RBF(0.2)).fit(X)
    kernel_map.inverse_transform(kernel_map.transform(Z))
    kernel_map.fit(X + 5)
    assert_allclose(kernel_map.inverse_transform(kernel_map.transform(Z + 5)), Z + 5, atol=0.1)


def test_kernels_that_cannot_compare_scores_give_way_to_rbf(there):
    X = np.random.default_rng(0).random((50, 4))
    for kernel in (Chi2(1.0), RBF([1.0, 2.0, 3.0, 4.0])):
        model = there(KernelPCA(10, kernel)).fit(X)
        back = there(preimage)(model, model.transform(X), alpha=1e-3)
        assert np.linalg.norm(back - X) < 0.2 * np.linalg.norm(X - X.mean(axis=0))


# --- fixed point ----------------------------------------------------------------------------------

SMOOTH = [
    RBF(0.3),
    RBF([0.1, 0.3, 0.5]),
    3.0 * RBF(0.3),
    RationalQuadratic(0.7, 1.5),
    Matern(1.5, 2.0),
    Matern(2.5, [1.0, 2.0, 3.0]),
]


@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
def test_the_slope_is_the_derivative(kernel):
    """-dk/d(d^2) by differences, up to one factor for all distances."""
    d = np.linspace(0.3, 3, 8)
    zero, step = np.zeros((1, 3)), 1e-6

    def value(distance):
        return kernel(zero, np.stack([distance, 0 * distance, 0 * distance], axis=1))[0]

    derivative = -(value(np.sqrt(d**2 + step)) - value(np.sqrt(d**2 - step))) / (2 * step)
    points = np.stack([d, 0 * d, 0 * d], axis=1)
    ratio = derivative / _steepness(kernel, points)(zero)[0]
    assert_allclose(ratio, ratio[0], rtol=1e-6)
    assert ratio[0] > 0


@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
def test_images_of_points_lead_back_to_them(kernel, X, Z, there):
    kernel_map = there(KernelMap(kernel)).fit(X)
    back = there(preimage)(kernel_map, kernel_map.transform(Z), "fixed-point", max_iter=2000)
    image = kernel_map.transform(back)
    nearest = np.linalg.norm(
        kernel_map.transform(Z)[:, None] - kernel_map.transform(X)[None], axis=2
    ).min(axis=1)
    assert (np.linalg.norm(image - kernel_map.transform(Z), axis=1) < 0.6 * nearest).all()


def test_it_is_the_minimum_of_the_distance(X, Z):
    """|image(x) - p|^2 by a general optimiser from the same start."""
    model = KernelPCA(3, RBF(0.2)).fit(X)
    scores = model.transform(Z)
    W, kernel = preimage_data(model).weights(scores), model.kernel_
    found = preimage(model, scores, "fixed-point", max_iter=5000, tol=1e-12)
    for w, x in zip(W, found):

        def distance(x, w=w):
            return -2 * float(w @ kernel(x[None], X)[0])  # up to a constant: k(x, x) = 1

        better = minimize(distance, x)
        assert distance(x) <= better.fun + 1e-8
        assert_allclose(x, better.x, atol=1e-3)


def test_the_basis_does_not_matter(X, Z, there):
    expected = None
    for basis in ("cholesky", "eigen", "symmetric"):
        kernel_map = there(KernelMap(RBF(0.3), basis=basis, center=True)).fit(X)
        back = there(preimage)(kernel_map, kernel_map.transform(Z), "fixed-point")
        expected = back if expected is None else expected
        assert_allclose(back, expected, atol=1e-4)


def test_far_coordinates_never_give_nan(X, there):
    model = there(KernelPCA(3, RBF(5.0))).fit(X)
    scores = np.array([[1e6, -1e6, 0.0], [0.0, 0.0, 0.0], [-5.0, 5.0, 5.0]])
    back = there(preimage)(model, scores, "fixed-point")
    assert np.isfinite(back).all()


# --- digits ---------------------------------------------------------------------------------------


def test_digits_are_denoised_better_than_by_pca():
    """Gain in dB over the noisy digits, at equal numbers of components.

    Measured at 32 components: PCA 2.6, ridge 5.1, fixed point 5.2; the best number for PCA (16)
    reaches 3.5.
    """
    X = load_digits().data / 16
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    train, clean = X[order[:600]], X[order[600:800]]
    noisy = clean + 0.25 * rng.normal(size=clean.shape)

    def gain(denoised):
        return 10 * np.log10(np.mean((noisy - clean) ** 2) / np.mean((denoised - clean) ** 2))

    for k in (16, 32):
        pca, model = PCA(k).fit(train), KernelPCA(k, RBF(0.05)).fit(train)
        plain = gain(pca.inverse_transform(pca.transform(noisy)))
        scores = model.transform(noisy)
        assert gain(preimage(model, scores, alpha=0.1)) > plain + 0.5
        assert gain(preimage(model, scores, "fixed-point")) > plain + 0.5
    best = max(
        gain(pca.inverse_transform(pca.transform(noisy)))
        for pca in (PCA(k).fit(train) for k in range(4, 64, 4))
    )
    assert gain(preimage(model, scores, "fixed-point")) > best + 1


# --- arrays and bad input -------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["ridge", "fixed-point"])
def test_namespaces(xp, method, X, Z):
    for make in (lambda: KernelMap(RBF(0.3)), lambda: KernelPCA(3, RBF(0.3))):
        expected = make().fit(X)
        model = make().fit(xp.asarray(X))
        scores = model.transform(xp.asarray(Z))
        back = preimage(model, scores, method)
        assert isinstance(back, type(xp.asarray(X)))
        assert_allclose(
            as_numpy(back), preimage(expected, expected.transform(Z), method), atol=1e-4
        )


def test_single_precision(X, there):
    model = there(KernelPCA(2, RBF(0.3)))
    scores = model.fit_transform(X.astype(np.float32))
    assert model.inverse_transform(scores).dtype == np.float32


def test_points_that_are_no_vectors():
    words = ["ab", "abc", "bcd", "xyz"]
    common = FromFunction(lambda s, t: float(len(set(s) & set(t))))
    for model in (KernelMap(common), KernelPCA(1, common)):
        scores = model.fit_transform(words)
        with pytest.raises(ValueError, match="not vectors of numbers"):
            model.inverse_transform(scores)


def test_precomputed_kernels(X):
    for model in (
        KernelMap("precomputed"),
        KernelPCA(2, "precomputed"),
        KernelPCAL1(2, KernelMap("precomputed")),
    ):
        scores = model.fit_transform(RBF(0.1)(X))
        with pytest.raises(AttributeError, match="inverse_transform") as caught:
            _ = model.inverse_transform
        assert "precomputed kernel: the points behind it are unknown" in str(caught.value.__cause__)
        with pytest.raises(ValueError, match="precomputed kernel"):
            preimage(model, scores)
    assert not hasattr(Kernelized(PCA(2), "precomputed"), "inverse_transform")
    assert hasattr(Kernelized(PCA(2), "rbf"), "inverse_transform")


def test_closed_maps_say_what_to_do(X):
    for kernel, basis in ((Polynomial(2), "closed"), (RBF(0.1), "fourier")):
        kernel_map = KernelMap(kernel, basis=basis, tol=1e-2).fit(X[:, :1])
        with pytest.raises(ValueError, match=r"'closed' and 'fourier' keep no .*basis='cholesky'"):
            kernel_map.inverse_transform(kernel_map.transform(X[:5, :1]))


def test_kernels_without_a_fixed_point(X):
    for kernel in (Polynomial(2), Laplacian(0.2), Matern(0.5)):
        model = KernelPCA(2, kernel).fit(X)
        with pytest.raises(ValueError, match="method='ridge'"):
            preimage(model, model.transform(X), "fixed-point")


def test_bad_arguments_are_named(X):
    model = KernelPCA(2, RBF(0.1)).fit(X)
    with pytest.raises(ValueError, match="got 'magic'"):
        preimage(model, np.zeros((1, 2)), "magic")
    with pytest.raises(ValueError, match="alpha must be a positive number, got 0"):
        preimage(model, np.zeros((1, 2)), alpha=0)
    with pytest.raises(ValueError, match=r"shape \(n, 2\), got \(1, 3\)"):
        model.inverse_transform(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="NaN"):
        model.inverse_transform([[np.nan, 0.0]])
    with pytest.raises(NotFittedError):
        KernelPCA().inverse_transform(np.zeros((1, 2)))
