"""KernelMap as people use it: what goes in, what comes out, what is refused."""

import pickle
from functools import reduce

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from every_kernel import STRING_KERNELS, common_letters, points_for
from mercer import (
    RBF,
    FromFunction,
    KernelMap,
    Linear,
    NotPSDError,
    OnColumns,
    Polynomial,
    Precomputed,
    RKHSFunction,
    Sigmoid,
)
from mercer.engine.arrays import as_numpy

BASES = ["cholesky", "eigen", "symmetric"]
INDEFINITE = np.array([[0.0, 1.0], [1.0, 0.0]])


@pytest.fixture
def X(rng):
    return rng.normal(size=(60, 3))


@pytest.fixture
def Z(rng):
    return rng.normal(size=(25, 3)) + 0.1


# --- transform ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"center": True, "append_residual": True}, {"max_rank": 9}]
)
@pytest.mark.parametrize("basis", BASES)
def test_each_row_is_mapped_on_its_own(X, Z, basis, options, there):
    """To rounding, as far as K is well conditioned (gamma = 5)."""
    kernel_map = there(KernelMap(RBF(5.0), basis=basis, **options)).fit(X)
    together = kernel_map.transform(Z)
    alone = np.vstack([kernel_map.transform(z[None, :]) for z in Z])
    np.testing.assert_allclose(alone, together, atol=1e-7 if "residual" in options else 1e-12)
    np.testing.assert_allclose(kernel_map.transform(Z[::-1]), together[::-1], atol=1e-7)


def test_transform_streams_over_many_rows(X, rng, there):
    """More rows than one panel holds; kernel values are never stored as a whole."""
    Z = rng.normal(size=(70_000, 3))
    kernel_map = there(KernelMap(RBF(5.0))).fit(X)
    picked = [0, 4321, 69_999]
    np.testing.assert_allclose(
        kernel_map.transform(Z)[picked], kernel_map.transform(Z[picked]), atol=1e-12
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("basis", [*BASES, "closed"])
def test_dtype_is_kept(X, Z, dtype, basis, there):
    kernel_map = there(
        KernelMap(Polynomial(2), basis=basis, center=True, append_residual=basis != "closed")
    )
    assert kernel_map.fit_transform(X.astype(dtype)).dtype == dtype
    assert kernel_map.transform(Z.astype(dtype)).dtype == dtype
    assert kernel_map.residual(Z.astype(dtype)).dtype == dtype
    assert kernel_map.error_bound(Z.astype(dtype)).dtype == dtype


def test_precision_is_that_of_the_fit(rng, there):
    """A float64 map evaluated in float32 would be off by 10 in some coordinates."""
    X, Z = rng.normal(size=(300, 2)), rng.normal(size=(100, 2)).astype(np.float32)
    kernel_map = there(KernelMap(RBF(1.0))).fit(X)
    single = kernel_map.transform(Z)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, kernel_map.transform(Z.astype(float)), atol=1e-6)
    other = there(KernelMap(RBF(1.0))).fit(X.astype(np.float32))
    assert other.transform(Z.astype(float)).dtype == np.float64


def test_integers_and_lists_are_numbers(X):
    whole = np.round(3 * X).astype(int)
    expected = KernelMap(Linear()).fit_transform(whole.astype(float))
    np.testing.assert_array_equal(KernelMap(Linear()).fit_transform(whole), expected)
    np.testing.assert_array_equal(KernelMap(Linear()).fit_transform(whole.tolist()), expected)


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("options", [{}, {"max_rank": 10}, {"center": True}])
def test_inputs_are_only_read_and_outputs_are_ones_own(X, basis, options):
    before = X.copy()
    X.flags.writeable = False
    K = RBF(0.5)(X)
    K.flags.writeable = False
    gram = K.copy()
    kernel_map = KernelMap(RBF(0.5), basis=basis, **options)
    Phi = kernel_map.fit_transform(X)
    again = kernel_map.transform(X)
    Phi[:] = 7.0  # what came out is the caller's
    np.testing.assert_array_equal(kernel_map.transform(X), again)
    KernelMap(Precomputed(), basis=basis, **options).fit(K)
    KernelMap(Linear(), basis="closed").fit_transform(X)[:] = 7.0
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(K, gram)


@pytest.mark.parametrize("options", [{}, {"max_rank": 20}, {"pivots": "random", "max_rank": 20}])
def test_threads_do_not_change_a_byte(rng, options):
    X = rng.normal(size=(900, 3))
    one, two = (
        KernelMap(RBF(0.5), n_jobs=n, random_state=0, **options).fit_transform(X) for n in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("pivots", ["greedy", "random", "uniform"])
def test_a_seed_repeats_the_result(rng, pivots, there):
    X = rng.normal(size=(300, 2))

    def fitted(seed):
        return there(KernelMap(RBF(1.0), pivots=pivots, max_rank=30, random_state=seed)).fit(X)

    first, again, other = fitted(0), fitted(0), fitted(1)
    np.testing.assert_array_equal(first.transform(X), again.transform(X))
    assert first.rank_ == 30
    same = np.array_equal(first.landmark_indices_, other.landmark_indices_)
    assert same == (pivots == "greedy")


def test_pickled_maps_are_the_same(X, Z):
    for kernel_map in (
        KernelMap(RBF(0.5), center=True, append_residual=True).fit(X),
        KernelMap(Polynomial(2), basis="closed").fit(X),
        KernelMap(Sigmoid(1.0), indefinite="clip").fit(X),
    ):
        copy = pickle.loads(pickle.dumps(kernel_map))
        np.testing.assert_array_equal(copy.transform(Z), kernel_map.transform(Z))


# --- centring -----------------------------------------------------------------------------------


@pytest.mark.parametrize("basis", BASES)
def test_centring_is_that_of_the_kernel_matrix(X, Z, basis, there):
    """[NPT] (6), (7): K_c = H K H and k_c(z) = H (k_z - K1/n)."""
    K, k = RBF(0.5)(X), RBF(0.5)(Z, X)
    H = np.eye(60) - 1 / 60
    kernel_map = there(KernelMap(RBF(0.5), basis=basis, center=True))
    Phi = kernel_map.fit_transform(X)
    np.testing.assert_allclose(Phi.mean(axis=0), 0, atol=1e-13)
    np.testing.assert_allclose(Phi @ Phi.T, H @ K @ H, atol=1e-12)
    Psi = kernel_map.transform(Z)
    np.testing.assert_allclose(Psi @ Phi.T, (k - K.mean(axis=0)) @ H, atol=1e-7)


def test_the_centred_eigen_basis_holds_the_principal_components(X, there):
    kernel_map = there(KernelMap(RBF(0.5), basis="eigen", center=True))
    Phi = kernel_map.fit_transform(X)
    H = np.eye(60) - 1 / 60
    values = np.linalg.eigvalsh(H @ RBF(0.5)(X) @ H)[::-1]
    np.testing.assert_allclose(kernel_map.eigenvalues_, values[: kernel_map.rank_], atol=1e-12)
    scatter = Phi.T @ Phi
    np.testing.assert_allclose(scatter, np.diag(scatter.diagonal()), atol=1e-12)


# --- coefficients: [NPT] Lemma 6 and Corollary 7 ------------------------------------------------


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("basis", BASES)
def test_a_linear_function_is_a_sum_of_kernels(rng, basis, center, there):
    X, Z = rng.normal(size=(40, 20)), rng.normal(size=(10, 20))
    kernel_map = there(KernelMap(RBF(0.05), basis=basis, center=center)).fit(X)
    coef = rng.normal(size=kernel_map.transform(X).shape[1])
    function = kernel_map.function(coef, intercept=0.7)
    np.testing.assert_allclose(function(Z), kernel_map.transform(Z) @ coef + 0.7, atol=1e-10)
    matrix = rng.normal(size=(len(coef), 2))
    np.testing.assert_allclose(
        kernel_map.project(Z, matrix), kernel_map.transform(Z) @ matrix, atol=1e-10
    )


@pytest.mark.parametrize("basis", BASES)
def test_a_function_has_coordinates(rng, basis, there):
    X, Z = rng.normal(size=(40, 20)), rng.normal(size=(10, 20))
    kernel_map = there(KernelMap(RBF(0.05), basis=basis)).fit(X)
    f = there(RKHSFunction)(RBF(0.05), X[:7], rng.normal(size=7))
    b = kernel_map.coordinates(f)
    np.testing.assert_allclose(kernel_map.transform(Z) @ b, f(Z), atol=1e-10)
    np.testing.assert_allclose(b @ b, f.norm() ** 2, rtol=1e-10)
    back = kernel_map.function(b)
    np.testing.assert_allclose(back(Z), f(Z), atol=1e-10)


def test_functions_that_cannot_be(X):
    with pytest.raises(ValueError, match="expected an RKHSFunction"):
        KernelMap(RBF(0.5)).fit(X).coordinates(RKHSFunction(RBF(0.6), X, np.ones(60)))
    with pytest.raises(ValueError, match="each of the 60 coordinates"):
        KernelMap(RBF(5.0)).fit(X).function(np.ones(3))
    with pytest.raises(ValueError, match="no landmarks"):
        KernelMap(Linear(), basis="closed").fit(X).function(np.ones(3))
    gram = KernelMap(Precomputed()).fit(Linear()(X))
    with pytest.raises(ValueError, match="landmark_weights"):
        gram.function(np.ones(3))
    weights, _ = gram.landmark_weights(np.ones(3))
    expected = gram.transform(Linear()(X)) @ np.ones(3)
    np.testing.assert_allclose(
        Linear()(X)[:, gram.landmark_indices_] @ weights, expected, atol=1e-9
    )


# --- anything with a kernel ---------------------------------------------------------------------


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("kernel", STRING_KERNELS, ids=repr)
def test_strings(kernel, basis):
    words, new = points_for(kernel, 30), points_for(kernel, 8, seed=1)
    kernel_map = KernelMap(kernel, basis=basis)
    Phi, Psi = kernel_map.fit_transform(words), kernel_map.transform(new)
    K = kernel_map.kernel_(words, new)
    size = np.sqrt(np.outer(kernel.diag(words), kernel.diag(new)))
    assert np.all(np.abs(Phi @ Psi.T - K) <= 1e-7 * size)
    assert np.all(kernel_map.error_bound(words, new) >= np.abs(Phi @ Psi.T - K))
    assert kernel_map.transform(np.array(new)).shape == Psi.shape


def test_graphs_or_any_other_objects():
    graphs = [{(0, 1), (1, 2)}, {(0, 1)}, {(0, 1), (0, 2)}, {(5, 6)}]
    kernel = FromFunction(lambda a, b: float(len(a & b)))
    Phi = KernelMap(kernel).fit_transform(graphs)
    np.testing.assert_allclose(Phi @ Phi.T, kernel(graphs), atol=1e-12)


def test_columns_of_several_types():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"x": [0.1, 0.5, 2.0, 0.7], "name": ["ab", "b", "abc", "a"], "y": [1.0, 2.0, 3.0, 4.0]}
    )
    kernel = OnColumns(RBF(0.5), ["x", "y"])
    kernel_map = KernelMap(kernel).fit(frame)
    assert kernel_map.n_features_in_ == 3
    Phi = kernel_map.transform(frame)
    np.testing.assert_allclose(Phi @ Phi.T, RBF(0.5)(frame[["x", "y"]]), atol=1e-12)
    with pytest.raises(ValueError, match="feature names"):
        kernel_map.transform(frame[["y", "name", "x"]])


# --- array namespaces ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"center": True, "append_residual": True},
        {"basis": "eigen", "center": True},
        {"basis": "symmetric"},
        {"max_rank": 7},
        {"pivots": "random", "max_rank": 7, "random_state": 0},
        {"kernel": Polynomial(2)},
        {"kernel": Polynomial(2), "basis": "closed"},
        {"kernel": Linear(), "memory_limit": 10_000},
    ],
    ids=repr,
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_backend_gives_the_same(xp, X, Z, options, dtype):
    X, Z = X.astype(dtype), Z.astype(dtype)
    options = {"kernel": RBF(0.5)} | options
    expected = KernelMap(**options).fit(X)
    kernel_map = KernelMap(**options).fit(xp.asarray(X))
    Phi = kernel_map.transform(xp.asarray(Z))
    assert type(Phi) is type(xp.asarray(Z))
    assert Phi.dtype == getattr(xp, dtype)
    P, Q = as_numpy(Phi), expected.transform(Z)
    tolerance = (1e-6 if dtype == "float64" else 1e-2) * max(1, np.abs(Q @ Q.T).max())
    np.testing.assert_allclose(P @ P.T, Q @ Q.T, atol=tolerance)
    assert kernel_map.rank_ == pytest.approx(expected.rank_, abs=1)
    F = as_numpy(kernel_map.fit_transform(xp.asarray(X)))
    G = expected.fit_transform(X)
    np.testing.assert_allclose(F @ F.T, G @ G.T, atol=tolerance)
    for name in ("residual", "error_bound", "distances"):
        value = getattr(kernel_map, name)(xp.asarray(Z))
        assert type(value) is type(xp.asarray(Z))
        assert np.isfinite(as_numpy(value)).all()
    error = np.abs(P[:, : kernel_map.rank_] @ P[:, : kernel_map.rank_].T)
    assert error.shape == (25, 25)


def test_a_gram_matrix_of_any_backend(xp, X, Z):
    K, k = RBF(0.5)(X), RBF(0.5)(Z, X)
    kernel_map = KernelMap(Precomputed()).fit(xp.asarray(K))
    Phi = kernel_map.transform(xp.asarray(k))
    assert type(Phi) is type(xp.asarray(k))
    Q = KernelMap(Precomputed()).fit(K).transform(k)
    np.testing.assert_allclose(as_numpy(Phi) @ as_numpy(Phi).T, Q @ Q.T, atol=1e-7)
    corrected = KernelMap(Precomputed(), indefinite="clip").fit(xp.asarray(INDEFINITE))
    assert type(corrected.transform(xp.asarray(INDEFINITE))) is type(Phi)


def test_another_namespace_than_at_fit_is_refused(X):
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match="must use the same namespace"):
        KernelMap(RBF(0.5)).fit(X).transform(torch.asarray(X))
    with pytest.raises(ValueError, match="must use the same namespace"):
        KernelMap(RBF(0.5)).fit(torch.asarray(X)).transform(X)


# --- similarities that are no kernels -----------------------------------------------------------


def symmetric_noise(n=30, seed=0):
    A = np.random.default_rng(seed).normal(size=(n, n))
    return A + A.T


def test_an_indefinite_similarity_is_refused_with_a_witness(X):
    for kernel, data in (
        (Sigmoid(1.0, -1.0), X),
        (Precomputed(), symmetric_noise()),
        (Precomputed(), INDEFINITE),
        (Precomputed(), 1e-30 * INDEFINITE),
        (Precomputed(), np.array([[1.0, 2.0], [2.0, 1.0]])),
        (Precomputed(), -np.eye(3)),
        (FromFunction(lambda a, b: -abs(a - b)), [1.0, 2.0, 4.0]),
    ):
        with pytest.raises(NotPSDError, match="indefinite='clip'") as caught:
            KernelMap(kernel).fit(data)
        a, K = caught.value.witness, kernel(data)
        assert a @ K @ a < 0
    with pytest.raises(NotPSDError, match="k\\(x, x\\) = 0 for every point") as caught:
        KernelMap(Precomputed(), max_rank=1).fit(INDEFINITE)
    assert caught.value.witness @ INDEFINITE @ caught.value.witness < 0


@pytest.mark.parametrize("seed", range(8))
def test_a_slightly_negative_eigenvalue_is_seen(seed):
    """-5e-12 among 100 eigenvalues of order 1: MATH.md section 7."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(100, 100)))[0]
    for values in (rng.uniform(0.1, 1, 100), np.r_[np.ones(20), np.zeros(80)]):
        values[rng.integers(100)] = -5e-12
        K = (Q * values) @ Q.T
        K = (K + K.T) / 2
        with pytest.raises(NotPSDError, match="smallest eigenvalue") as caught:
            KernelMap(Precomputed()).fit(K)
        assert caught.value.witness @ K @ caught.value.witness < 0


def gram_matrices(rng, n):
    """Valid ones, with all that rounding does to them."""
    G, H = rng.normal(size=(n, max(1, n // 8))), np.eye(n) - 1 / n
    D = 10.0 ** rng.uniform(-8, 8, size=(n, 1))
    yield G @ G.T
    yield (D * G) @ (D * G).T
    yield (G @ G.T + 1) ** 3
    yield RBF(1.0)(rng.normal(size=(n, 2)))
    yield H @ RBF(0.1)(rng.normal(size=(n, 2))) @ H
    yield H @ (G[:, :2] @ G[:, :2].T) @ H
    yield np.round(G) @ np.round(G).T
    yield np.vstack([G, G]) @ np.vstack([G, G]).T
    yield np.zeros((n, n))


@pytest.mark.parametrize("options", [{}, {"max_rank": 5}, {"max_rank": 40}, {"tol": 1e-6}])
@pytest.mark.parametrize("seed", range(2))
def test_a_gram_matrix_is_never_refused(seed, options):
    rng = np.random.default_rng(seed)
    for n in (1, 2, 7, 50):
        for K in gram_matrices(rng, n):
            for given in (
                K,
                (K + K.T) / 2,
                K.astype(np.float32),
                K.astype(np.float32).astype(float),
            ):
                KernelMap(Precomputed(), **options).fit(given)


def test_a_gram_matrix_in_single_precision_is_certified_as_such(rng, there):
    X, Z = rng.normal(size=(60, 2)), rng.normal(size=(40, 2))
    K, k = (A.astype(np.float32).astype(float) for A in (RBF(1.0)(X), RBF(1.0)(Z, X)))
    kernel_map = there(KernelMap(Precomputed())).fit(K)
    error = np.abs(kernel_map.transform(K) @ kernel_map.transform(k).T - k.T)
    bound = kernel_map.error_bound(K, k, diag=np.ones(60), diag_Y=np.ones(40))
    assert np.all(error <= bound)


@pytest.mark.parametrize("how", ["clip", "flip", "shift"])
@pytest.mark.parametrize("basis", BASES)
def test_corrections_of_the_training_matrix(how, basis, there):
    K = symmetric_noise()
    values, U = np.linalg.eigh(K)
    new = {
        "clip": np.maximum(values, 0),
        "flip": np.abs(values),
        "shift": values - values[0],
    }[how]
    kernel_map = there(KernelMap(Precomputed(), basis=basis, indefinite=how))
    Phi = kernel_map.fit_transform(K)
    np.testing.assert_allclose(Phi @ Phi.T, (U * new) @ U.T, atol=1e-11)
    summary = kernel_map.correction_
    assert summary["method"] == how
    assert summary["n_negative"] == (values < 0).sum()
    np.testing.assert_allclose(summary["min_eigenvalue"], values[0])
    np.testing.assert_allclose(summary["share"], -values[values < 0].sum() / np.abs(values).sum())
    np.testing.assert_allclose(summary["shift"], -values[0] if how == "shift" else 0)


@pytest.mark.parametrize("how", ["clip", "flip", "shift"])
def test_what_new_points_get(rng, how, there):
    """clip and flip change k_z as they change K; shift leaves it as it is."""
    K, k = symmetric_noise(), rng.normal(size=(5, 30))
    values, U = np.linalg.eigh(K)
    kernel_map = there(KernelMap(Precomputed(), indefinite=how))
    Phi = kernel_map.fit_transform(K)
    inner = kernel_map.transform(k) @ Phi.T
    P = U[:, values > 0]
    expected = {"clip": k @ P @ P.T, "flip": k @ (U * np.sign(values)) @ U.T, "shift": k}[how]
    if how == "shift":  # the shifted matrix has lost its smallest direction
        expected = k @ U[:, 1:] @ U[:, 1:].T
    np.testing.assert_allclose(inner, expected, atol=1e-9)
    if how != "shift":
        np.testing.assert_allclose(kernel_map.transform(K), Phi, atol=1e-10)


def test_a_correction_truncates_its_smallest_part(there):
    K = symmetric_noise()
    kernel_map = there(KernelMap(Precomputed(), indefinite="flip", max_rank=4))
    Phi = kernel_map.fit_transform(K)
    values, U = np.linalg.eigh(K)
    kept = np.argsort(-np.abs(values))[:4]
    np.testing.assert_allclose(Phi @ Phi.T, (U[:, kept] * np.abs(values[kept])) @ U[:, kept].T)
    left = ((U * np.abs(values)) @ U.T - Phi @ Phi.T).diagonal()
    np.testing.assert_allclose(kernel_map.max_residual_, left.max())
    with pytest.raises(ValueError, match="no certificate"):
        kernel_map.error_bound(K, diag=np.ones(30))


@pytest.mark.parametrize("how", ["clip", "flip", "shift"])
def test_valid_kernels_are_not_corrected(X, how):
    kernel_map = KernelMap(Precomputed(), indefinite=how).fit(RBF(0.5)(X))
    assert kernel_map.correction_ is None
    assert KernelMap(RBF(0.5), indefinite=how).fit(X).correction_ is None


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"basis": "wavelets"}, "basis must be one of cholesky"),
        ({"pivots": "best"}, "pivots must be one of greedy"),
        ({"pivots": np.array(["greedy", "random"])}, "pivots must be one of greedy"),
        ({"indefinite": "ignore"}, "indefinite must be one of raise"),
        ({"max_rank": 0}, "max_rank must be a positive integer or None, got 0"),
        ({"max_rank": 2.5}, "max_rank must be a positive integer"),
        ({"max_rank": True}, "max_rank must be a positive integer"),
        ({"tol": "small"}, "tol must be a number from 0 to below 1 or None, got 'small'"),
        ({"tol": -1e-3}, "tol must be a number"),
        ({"tol": np.nan}, "tol must be a number"),
        ({"tol": 1.0}, "tol must be a number"),
        ({"kernel": "rbff"}, "Did you mean 'rbf'"),
        ({"kernel": RBF(-1.0)}, "gamma"),
        ({"basis": "closed"}, "no finite feature map"),
        ({"kernel": "precomputed", "append_residual": True}, "append_residual=True needs"),
    ],
    ids=repr,
)
def test_parameters_that_make_no_sense(X, options, message):
    with pytest.raises(ValueError, match=message):
        KernelMap(**options).fit(X)


def test_data_that_make_no_sense(X):
    kernel_map = KernelMap(RBF(0.5)).fit(X)
    with pytest.raises(ValueError, match="X has 2 features, but KernelMap is expecting 3"):
        kernel_map.transform(X[:, :2])
    bad = X.copy()
    bad[3, 1] = np.nan
    for call in (kernel_map.transform, KernelMap().fit, kernel_map.residual):
        with pytest.raises(ValueError, match="NaN"):
            call(bad)
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        KernelMap().fit(X[:0])
    with pytest.raises(NotFittedError, match="not fitted"):
        KernelMap().transform(X)
    with pytest.raises(ValueError, match="overflows"):
        KernelMap(Polynomial(9)).fit(1e60 * X)


def test_gram_matrices_that_are_none(X):
    K = RBF(0.5)(X)
    with pytest.raises(ValueError, match=r"square Gram matrix at fit, got shape \(60, 40\)"):
        KernelMap(Precomputed()).fit(K[:, :40])
    skewed = K.copy()
    skewed[4, 7] += 0.25
    for options in ({}, {"max_rank": 10}, {"indefinite": "clip"}):
        with pytest.raises(ValueError, match=r"points 4 and 7, a difference of 0\.25"):
            KernelMap(Precomputed(), **options).fit(skewed)
    fitted = KernelMap(Precomputed()).fit(K)
    with pytest.raises(ValueError, match="features"):
        fitted.transform(K[:, :40])


@pytest.mark.parametrize("bad", ["data", "kernel", "parameter"])
def test_a_failed_fit_leaves_everything_as_it_was(X, Z, bad):
    kernel_map = KernelMap(RBF(0.5), basis="eigen").fit(X)
    before = kernel_map.transform(Z)
    attributes = set(vars(kernel_map))
    data = X[:, :2]
    if bad == "data":
        data = np.full((4, 2), np.nan)
    elif bad == "kernel":
        kernel_map.set_params(kernel=Sigmoid(1.0, -1.0))
    else:
        kernel_map.set_params(max_rank=0)
    with pytest.raises(ValueError, match=r"NaN|positive semi-definite|max_rank"):
        kernel_map.fit(data)
    assert set(vars(kernel_map)) == attributes
    np.testing.assert_array_equal(kernel_map.transform(Z), before)
    unfitted = clone(kernel_map)
    with pytest.raises(ValueError, match=r"NaN|positive semi-definite|max_rank"):
        unfitted.fit(data)
    assert set(vars(unfitted)) == set(vars(clone(kernel_map)))


def test_fitting_again_forgets_the_first_fit(X):
    kernel_map = KernelMap(RBF(0.5), basis="eigen", center=True).fit(X)
    kernel_map.set_params(basis="cholesky", center=False, kernel=FromFunction(common_letters))
    kernel_map.fit(["ab", "b", "ca"])
    assert not hasattr(kernel_map, "eigenvalues_")
    assert not hasattr(kernel_map, "n_features_in_")
    assert kernel_map.mean_ is None
    assert kernel_map.transform(["a"]).shape == (1, kernel_map.rank_)


def test_attributes(X, there):
    kernel_map = there(KernelMap(max_rank=12)).fit(X)
    assert kernel_map.kernel_.gamma == pytest.approx(RBF().bind(X).gamma, rel=1e-14)
    assert kernel_map.rank_ == 12
    np.testing.assert_array_equal(kernel_map.landmarks_, X[kernel_map.landmark_indices_])
    assert 0 < kernel_map.max_residual_ < 1
    closed = there(KernelMap(Linear(), basis="closed")).fit(X)
    assert closed.landmarks_ is None
    assert closed.landmark_indices_ is None
    assert there(KernelMap(Linear(), basis="auto")).fit(X[:2]).landmarks_ is not None
    assert there(KernelMap(Linear(), basis="auto")).fit(X).landmarks_ is None


def test_progress_is_shown_when_asked_for(X, capsys):
    KernelMap(RBF(0.5), max_rank=5, verbose=True).fit(X)
    assert "landmarks" in capsys.readouterr().err
    KernelMap(RBF(0.5), max_rank=5).fit(X)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("how", ["clip", "flip", "shift"])
def test_a_corrected_similarity_is_not_extended(rng, how):
    X = rng.normal(size=(20, 3))
    kernel_map = KernelMap(Sigmoid(1.0, -1.0), indefinite=how).fit(X)
    with pytest.raises(AttributeError, match="'partial_fit'") as error:
        kernel_map.partial_fit(X)
    assert "partial_fit cannot correct Sigmoid" in str(error.value.__cause__)
    assert KernelMap(RBF(1.0), indefinite=how).partial_fit(X[:9]).partial_fit(X).rank_ == 20


def test_rows_that_come_later_can_refute_a_kernel():
    """Alone each row passes; with the landmarks it does not: [[1, 1.5], [1.5, 1]]."""
    X = np.arange(6.0)[:, None]
    for kernel in (FromFunction(lambda x, z: float(x[0] == z[0]) or 1.5), Sigmoid(0.1, 1.0)):
        kernel_map = KernelMap(kernel).partial_fit(X[:1])
        with pytest.raises(NotPSDError, match="not positive semi-definite"):
            reduce(KernelMap.partial_fit, [row[None, :] for row in X[1:]], kernel_map)
    valid = FromFunction(lambda x, z: float(np.exp(-((x - z) ** 2).sum())))
    rows = np.random.default_rng(0).normal(size=(60, 2))
    kernel_map = KernelMap(valid)
    for a in range(0, 60, 7):
        kernel_map.partial_fit(rows[a : a + 7])
    assert kernel_map.residual(rows).max() < 1e-7
