"""RKHSFunction, and the geometry of the space: [MDS] 2.1, [NPT] Lemma 6, [EXACT] (26)."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

from every_kernel import EVERY_KERNEL, GRAM_KERNELS, PORTABLE_KERNELS, points_for
from mercer import RBF, FromFunction, KernelMap, Linear, Polynomial, Precomputed, RKHSFunction
from mercer.engine import tiles
from mercer.engine.arrays import as_numpy
from mercer.expansion import Expansion

EVALUABLE = [k for k in EVERY_KERNEL if k not in GRAM_KERNELS]


def as_array(x):
    return as_numpy(x)


@pytest.mark.parametrize("kernel", EVALUABLE, ids=repr)
def test_reproducing_property(kernel, rng, there):
    """<f, k(z, .)> = f(z): [MDS] Proposition 6."""
    X = points_for(kernel)
    bound = kernel.bind(X)
    f = there(RKHSFunction)(bound, X, rng.normal(size=len(X)))
    values = f(X)
    K = bound(X)
    assert_allclose(values, K @ f.coef, rtol=1e-12, atol=1e-12 * abs(K).max())
    scale = np.abs(as_array(f.coef)).sum() * abs(K).max()  # values may cancel
    for i in (0, 5):
        section = there(RKHSFunction)(bound, X[i : i + 1], [1.0])
        assert_allclose(f.inner(section), values[i], rtol=1e-12, atol=1e-13 * scale)


@pytest.mark.parametrize("kernel", [k for k in EVALUABLE if k.is_psd], ids=repr)
def test_cauchy_schwarz(kernel, rng, there):
    """|f(z)| <= |f| sqrt k(z, z): what makes evaluation continuous."""
    X = points_for(kernel)
    bound = kernel.bind(X)
    f = there(RKHSFunction)(bound, X, rng.normal(size=len(X)))
    bound_of_values = f.norm() * np.sqrt(bound.diag(X))
    scale = np.abs(f.coef).sum() * abs(bound(X)).max()
    assert np.all(np.abs(f(X)) <= bound_of_values + 1e-12 * scale)


@pytest.fixture
def pair(rng):
    kernel = RBF(0.5)
    f = RKHSFunction(kernel, rng.normal(size=(7, 3)), rng.normal(size=7))
    g = RKHSFunction(kernel, rng.normal(size=(4, 3)), rng.normal(size=4))
    return f, g


def test_inner_product_is_the_double_sum(pair):
    f, g = pair
    slow = sum(
        a * b * f.kernel([x], [y])[0, 0]
        for a, x in zip(f.coef, f.points)
        for b, y in zip(g.coef, g.points)
    )
    assert_allclose(f.inner(g), slow, rtol=1e-12)
    assert_allclose(g.inner(f), slow, rtol=1e-12)


def test_norm_is_the_quadratic_form(pair):
    f, _ = pair
    assert_allclose(f.norm() ** 2, f.coef @ f.kernel(f.points) @ f.coef, rtol=1e-12)


def test_space_is_linear(pair, rng):
    f, g = pair
    Z = rng.normal(size=(5, 3))
    h = 2.0 * f - g * 0.5 + (-f)
    assert_allclose(h(Z), f(Z) - 0.5 * g(Z), atol=1e-13)
    assert_allclose(h.inner(g), f.inner(g) - 0.5 * g.inner(g), rtol=1e-11)
    assert_allclose(sum([f, g])(Z), f(Z) + g(Z), rtol=1e-13)
    parallelogram = (f + g).norm() ** 2 + (f - g).norm() ** 2
    assert_allclose(parallelogram, 2 * f.norm() ** 2 + 2 * g.norm() ** 2, rtol=1e-11)


def test_a_difference_with_itself_has_norm_zero(pair):
    f, _ = pair
    assert (f - f).norm() < 1e-7 * f.norm()


def test_intercept_adds_to_values_and_not_to_the_norm(pair):
    f, g = pair
    shifted = RKHSFunction(f.kernel, f.points, f.coef, intercept=3.0)
    assert_allclose(shifted(g.points), f(g.points) + 3.0)
    assert shifted.norm() == f.norm()
    assert (shifted + shifted).intercept == 6.0
    assert (2 * shifted).intercept == 6.0


@pytest.mark.parametrize("kernel", PORTABLE_KERNELS[:12], ids=repr)
def test_values_in_every_namespace(kernel, xp, rng):
    X, a = points_for(kernel), rng.normal(size=13)
    kernel = kernel.bind(X)
    reference = RKHSFunction(kernel, X, a)
    f = RKHSFunction(kernel, xp.asarray(X), xp.asarray(a))
    values = f(xp.asarray(X))
    assert type(values) is type(xp.asarray(X))
    scale = np.abs(reference(X)).max()
    assert_allclose(as_array(values), reference(X), rtol=1e-11, atol=1e-11 * scale)
    assert_allclose(f.norm(), reference.norm(), rtol=1e-9)


def test_sparse_and_dense_points_meet(rng):
    dense = rng.normal(size=(6, 3)) * (rng.random((6, 3)) > 0.5)
    sparse = scipy.sparse.csr_array(dense)
    a = rng.normal(size=6)
    f, g = RKHSFunction(Linear(), dense, a), RKHSFunction(Linear(), sparse, a)
    assert_allclose(g(dense), f(dense), atol=1e-13)
    assert_allclose(f(sparse), f(dense), atol=1e-13)
    assert_allclose(f.inner(g), f.inner(f), rtol=1e-12)
    assert_allclose((g + f)(dense), 2 * f(dense), atol=1e-13)


def test_precisions_meet(rng):
    X = rng.normal(size=(6, 3))
    single = RKHSFunction(RBF(0.5), X.astype(np.float32), np.ones(6))
    double = RKHSFunction(RBF(0.5), X, np.ones(6))
    assert_allclose(double.inner(single), double.inner(double), rtol=1e-5)
    assert_allclose((double + single)(X), 2 * double(X), rtol=1e-5)


def test_a_sum_keeps_the_points_of_higher_precision():
    near = RKHSFunction(RBF(1e10), np.zeros((1, 1), dtype=np.float32), [1.0])
    far = RKHSFunction(RBF(1e10), [[1000.00001]], [1.0])
    for f in (near + far, far + near):
        assert_allclose(f([[1000.00001]]), 1.0)


@pytest.mark.parametrize("size", [1e-250, 1e250])
def test_norms_of_tiny_and_huge_coefficients(size):
    f = RKHSFunction(RBF(1.0), [[0.0], [1.0]], [1.0, 2.0])
    assert_allclose((size * f).norm(), size * f.norm())
    assert_allclose((size * f).inner(1 / size * f), f.inner(f))


def test_functions_on_words():
    common = FromFunction(lambda a, b: float(len(set(a) & set(b))))
    f = RKHSFunction(common, ["night", "nacht"], [1.0, 2.0])
    assert_allclose(f(["noch"]), [2 + 2 * 3])
    assert_allclose((f + f)(["noch"]), [16.0])


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ((RBF(1.0), [[0.0], [1.0]], [1.0]), ValueError, r"each of the 2 points, got shape \(1,\)"),
        ((Precomputed(), np.eye(2), [1.0, 1.0]), ValueError, "precomputed kernel cannot"),
        (("no such", [[0.0]], [1.0]), ValueError, "no such"),
    ],
)
def test_bad_construction(arguments, error, match):
    with pytest.raises(error, match=match):
        RKHSFunction(*arguments)


def test_bad_partners(pair):
    f, _ = pair
    other = RKHSFunction(RBF(0.6), f.points, f.coef)
    with pytest.raises(ValueError, match="different spaces"):
        f.inner(other)
    with pytest.raises(ValueError, match="different spaces"):
        f + other
    with pytest.raises(TypeError, match="expected an RKHSFunction, got int"):
        f.inner(3)
    with pytest.raises(TypeError):
        f * f
    with pytest.raises(ValueError, match="columns"):
        f([[1.0, 2.0]])


# --- functions and coordinates are one space: [NPT] Lemma 6, Corollary 7 --------------------------


@pytest.mark.parametrize("basis", ["cholesky", "eigen", "symmetric"])
@pytest.mark.parametrize("center", [False, True])
def test_coefficients_both_ways(basis, center, rng, there):
    X, Z = rng.normal(size=(30, 5)), rng.normal(size=(8, 5))
    kernel_map = there(KernelMap(RBF(0.4), basis=basis, center=center)).fit(X)
    Phi = kernel_map.transform(Z)
    b = rng.normal(size=Phi.shape[1])
    f = kernel_map.function(b, intercept=0.5)
    assert_allclose(f(Z), Phi @ b + 0.5, atol=1e-11)
    if not center:
        assert_allclose(f.norm(), np.linalg.norm(b), rtol=1e-11)  # the coordinates are isometric
        assert_allclose(kernel_map.coordinates(f), b, atol=1e-10)


def test_coordinates_of_a_combination_of_samples(rng, there):
    """w = sum_i a_i image(x_i) has coordinates F'a: [NPT] (3)."""
    X, a = rng.normal(size=(20, 5)), rng.normal(size=20)
    kernel_map = there(KernelMap(RBF(0.4))).fit(X)
    f = there(RKHSFunction)(kernel_map.kernel_, X, a)
    assert_allclose(kernel_map.coordinates(f), kernel_map.transform(X).T @ a, atol=1e-12)


@pytest.mark.parametrize("center", [False, True])
def test_functions_of_an_expansion(center, rng):
    """(k(z, S) W + b) A: the constant takes part."""
    X, Z = rng.normal(size=(30, 5)), rng.normal(size=(8, 5))
    feature_map = KernelMap(RBF(0.4), center=center).fit(X).map_
    expansion = feature_map.expand(rng.normal(size=(feature_map.width, 3)), rng.normal(size=3))
    A = rng.normal(size=(3, 2))
    assert np.abs(expansion.b).min() > 0
    assert_allclose((expansion @ A)(Z), expansion(Z) @ A, atol=1e-11)


def test_projection_onto_a_vector(rng, there):
    """b b'/(b'b) phi(z) is the nearest multiple of w: [NPT] Corollary 7, (4)."""
    X, Z = rng.normal(size=(20, 5)), rng.normal(size=(1, 5))
    kernel_map = there(KernelMap(RBF(0.4))).fit(X)
    b, phi = rng.normal(size=kernel_map.rank_), kernel_map.transform(Z)[0]
    w, section = kernel_map.function(b), there(RKHSFunction)(kernel_map.kernel_, Z, [1.0])
    share = section.inner(w) / w.norm() ** 2
    assert_allclose(kernel_map.coordinates(share * w), b * (b @ phi) / (b @ b), atol=1e-11)


# --- distances: [EXACT] (26) -------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [k for k in EVALUABLE if k.is_psd], ids=repr)
def test_distances_are_norms_of_differences(kernel, there):
    X = points_for(kernel)
    bound = kernel.bind(X)
    D = there(KernelMap(bound)).fit(X).distances(X)
    K = bound(X)
    for i, j in [(0, 1), (2, 7), (0, 12)]:
        f = there(RKHSFunction)(bound, X[i : i + 1], [1.0]) - there(RKHSFunction)(
            bound, X[j : j + 1], [1.0]
        )
        # A root of a difference: sqrt(eps) of the scale where points coincide.
        assert_allclose(D[i, j], f.norm(), rtol=1e-7, atol=1e-7 * abs(K).max() ** 0.5)
    assert np.all(np.diagonal(D) == 0)


@pytest.mark.parametrize("center", [False, True])
def test_distances_with_and_without_the_residual(center, rng, there):
    X, Z = rng.normal(size=(40, 3)), 2 * rng.normal(size=(9, 3))
    kernel = RBF(0.5)
    kernel_map = there(KernelMap(kernel, max_rank=15, center=center)).fit(X)
    true = np.sqrt(2 - 2 * kernel(Z, X))
    assert_allclose(kernel_map.distances(Z, X), true, rtol=1e-12)
    P, Q = kernel_map.transform(Z), kernel_map.transform(X)
    seen = np.linalg.norm(P[:, None] - Q[None], axis=2)
    assert_allclose(kernel_map.distances(Z, X, residual=False), seen, rtol=1e-9)
    assert np.all(seen <= true * (1 + 1e-12))  # a projection shortens
    assert np.max(true - seen) > 0.1


def test_distances_of_a_residual_map_are_exact_to_training_points(rng, there):
    """One of the two a training point: coordinates and residual tell the whole distance."""
    X, Z = rng.normal(size=(20, 3)), rng.normal(size=(6, 3))
    kernel_map = there(KernelMap(RBF(0.5), append_residual=True)).fit(X)
    P, Q = kernel_map.transform(Z), kernel_map.transform(X)
    full = np.linalg.norm(P[:, None] - Q[None], axis=2)
    assert_allclose(full, kernel_map.distances(Z, X), rtol=1e-7)


def test_euclidean_distances_are_those_of_the_linear_kernel(rng, there):
    X, Z = rng.normal(size=(12, 3)), rng.normal(size=(5, 3))
    D = there(KernelMap(Linear())).fit(X).distances(Z, X)
    assert_allclose(D, np.linalg.norm(Z[:, None] - X[None], axis=2), rtol=1e-9)


def test_distances_of_a_precomputed_kernel(rng, there):
    X, Z = rng.normal(size=(15, 4)), rng.normal(size=(6, 4))
    kernel = Polynomial(2)
    K, k_z = kernel(X), kernel(Z, X)
    given, known = there(KernelMap(Precomputed())).fit(K), there(KernelMap(kernel)).fit(X)
    assert_allclose(given.distances(K, diag=np.diagonal(K)), known.distances(X), atol=1e-6)
    assert_allclose(
        given.distances(k_z, K, residual=False), known.distances(Z, X, residual=False), atol=1e-6
    )
    with pytest.raises(ValueError, match="pass it as diag="):
        given.distances(k_z)
    with pytest.raises(ValueError, match="residual=False"):
        given.distances(k_z, K, diag=np.ones(6))


def test_distances_in_every_namespace(xp, rng):
    X = rng.normal(size=(10, 3))
    reference = KernelMap(RBF(0.5)).fit(X).distances(X)
    mine = xp.asarray(X)
    D = KernelMap(RBF(0.5)).fit(mine).distances(mine)
    assert type(D) is type(mine)
    assert_allclose(as_array(D), reference, atol=1e-7)


def test_products_leave_out_zeros_where_most_are(rng, monkeypatch):
    """Of many functions on few points each, as the machines of pairs of classes are."""
    S, X = rng.normal(size=(90, 3)), rng.normal(size=(40, 3))
    W = np.where(rng.random((90, 12)) < 0.05, rng.normal(size=(90, 12)), 0.0)
    b = rng.normal(size=12)
    kinds, multiply = [], tiles.multiply

    def noted(kernel, X, S, W):
        kinds.append(type(W))
        return multiply(kernel, X, S, W)

    monkeypatch.setattr(tiles, "multiply", noted)
    for coef, kind in ((W, scipy.sparse.csr_array), (W[:, :5], np.ndarray), (W + 1, np.ndarray)):
        got = Expansion(RBF(0.5), S, coef, b[: coef.shape[1]])(X)
        assert_allclose(got, RBF(0.5)(X, S) @ coef + b[: coef.shape[1]], rtol=1e-12, atol=1e-12)
        assert kinds.pop() is kind
