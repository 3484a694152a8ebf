"""The promise of the library: inner products of coordinates are kernel values.

Errors are relative to sqrt(k(x, x) k(z, z)). Bounds are those of MATH.md section 7: rounding where
K is well conditioned or both points are training points, sqrt(eps) where K is singular.
"""

import numpy as np
import pytest

from every_kernel import EVERY_KERNEL, points_for
from mercer import RBF, Constant, KernelMap, Linear, Matern, Polynomial, Precomputed

BASES = ["cholesky", "eigen", "symmetric"]


def relative_error(kernel, X, Z, Phi, Psi):
    """|k(x, z) - phi(x) . phi(z)| / sqrt(k(x, x) k(z, z)), at worst, in double precision."""
    inner = np.asarray(Phi, float) @ np.asarray(Psi, float).T
    K = np.asarray(kernel(X, Z), float)
    l, m = (np.sqrt(np.asarray(kernel.diag(points), float)) for points in (X, Z))
    lengths = np.outer(l, m)
    return (np.abs(inner - K) / np.where(lengths > 0, lengths, 1)).max()


def digits_like(n, seed=0):
    """Images with strokes of very different sizes, pixels in [0, 1]: like MNIST, drawn here."""
    rng = np.random.default_rng(seed)
    images = np.zeros((n, 784))
    for image in images:
        lit = rng.choice(784, size=rng.integers(35, 320), replace=False)
        image[lit] = rng.uniform(0.3, 1.0, size=len(lit))
    return images


def k1():
    """[EXACT]: <x, z>^9 with <x, z> = x.z / 784; self-similarities over eight orders."""
    return Polynomial(degree=9, gamma=1 / 784, coef0=0.0)


def k2(X):
    """[EXACT]: ((<2x-1, 2z-1> + 1) / 2)^9, on pixels already mapped to 2x - 1."""
    return Polynomial(degree=9, gamma=1 / (2 * 784), coef0=0.5), 2 * X - 1


# --- training points against training points ----------------------------------------------------


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("kernel", EVERY_KERNEL, ids=repr)
def test_training_points_are_exact_in_any_basis(kernel, basis, there):
    X = points_for(kernel, n=40)
    kernel_map = there(KernelMap(kernel, basis=basis, indefinite="clip"))
    Phi = kernel_map.fit_transform(X)
    if kernel_map.correction_ is not None:
        pytest.skip("not a kernel on this data: what is exact is the corrected matrix")
    K = np.asarray(kernel_map.kernel_(X), float)
    lengths = np.sqrt(np.outer(K.diagonal(), K.diagonal()))
    assert np.all(np.abs(Phi @ Phi.T - K) <= 1e-12 * lengths)


@pytest.mark.parametrize("basis", BASES)
def test_training_points_are_exact_where_K_is_singular(rng, basis, there):
    X = rng.normal(size=(500, 2))
    Phi = there(KernelMap(RBF(1.0), basis=basis)).fit_transform(X)
    assert relative_error(RBF(1.0), X, X, Phi, Phi) <= 1e-12


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2), Polynomial(3, 0.5, 0.0)], ids=repr)
def test_the_closed_map_is_exact_for_any_two_points(rng, kernel, there):
    X, Z = rng.normal(size=(40, 4)), 3 * rng.normal(size=(20, 4))
    kernel_map = there(KernelMap(kernel, basis="closed")).fit(X)
    assert relative_error(kernel, Z, Z, kernel_map.transform(Z), kernel_map.transform(Z)) <= 1e-12


# --- training points against new points ---------------------------------------------------------


@pytest.mark.parametrize("basis", BASES)
def test_new_points_are_exact_where_K_is_well_conditioned(basis, there):
    kernel, X = k2(digits_like(260))
    X, Z = X[:200], X[200:]
    kernel_map = there(KernelMap(kernel, basis=basis))
    Phi, Psi = kernel_map.fit_transform(X), kernel_map.transform(Z)
    assert kernel_map.rank_ == 200
    assert relative_error(kernel, X, Z, Phi, Psi) <= 1e-12
    assert relative_error(kernel, X, Z, kernel_map.transform(X), Psi) <= 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_new_points_where_K_is_singular_err_by_its_square_root(seed, there):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(500, 2)), rng.normal(size=(400, 2))
    kernel_map = there(KernelMap(RBF(1.0))).fit(X)
    Phi, Psi = kernel_map.transform(X), kernel_map.transform(Z)
    assert relative_error(RBF(1.0), X, Z, Phi, Psi) <= 5e-8
    assert np.all(np.abs(Phi @ Psi.T - RBF(1.0)(X, Z)) <= kernel_map.error_bound(X, Z))


@pytest.mark.parametrize("basis", BASES)
def test_transform_and_fit_transform_agree(rng, basis, there):
    X = rng.normal(size=(300, 2))
    kernel_map = there(KernelMap(RBF(1.0), basis=basis))
    Phi = kernel_map.fit_transform(X)
    # Through another solve: MATH.md section 7 measured 3e-8.
    assert np.abs(kernel_map.transform(X) - Phi).max() <= 1e-6
    X = rng.normal(size=(60, 30))
    Phi = kernel_map.fit_transform(X)
    assert np.abs(kernel_map.transform(X) - Phi).max() <= 1e-12


# --- bases --------------------------------------------------------------------------------------


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("basis", ["eigen", "symmetric", "closed", "auto"])
def test_every_basis_is_a_rotation_of_the_first(rng, basis, center, there):
    kernel, X, Z = Polynomial(2), rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
    reference = there(KernelMap(kernel, center=center)).fit(X)
    other = there(KernelMap(kernel, basis=basis, center=center)).fit(X)
    P, Q = reference.transform(Z), other.transform(Z)
    size = np.sqrt(np.outer((P**2).sum(1), (P**2).sum(1))).max()
    np.testing.assert_allclose(P @ P.T, Q @ Q.T, atol=1e-11 * size)
    U, _, Vt = np.linalg.svd(reference.transform(X).T @ other.transform(X), full_matrices=False)
    np.testing.assert_allclose(P @ (U @ Vt), Q, atol=1e-9 * np.sqrt(size))


def test_the_eigen_basis_is_that_of_the_document(rng, there):
    """[NPT] Theorem 2: L^-1/2 U' k_z, columns by eigenvalue."""
    X, Z = rng.normal(size=(40, 20)), rng.normal(size=(10, 20))
    kernel_map = there(KernelMap(RBF(0.05), basis="eigen"))
    Phi = kernel_map.fit_transform(X)
    values, U = np.linalg.eigh(RBF(0.05)(X))
    values, U = values[::-1], U[:, ::-1]
    np.testing.assert_allclose(kernel_map.eigenvalues_, values, rtol=1e-10)
    np.testing.assert_allclose((Phi**2).sum(axis=0), values, rtol=1e-10)
    np.testing.assert_allclose(np.abs(Phi), np.abs(U * np.sqrt(values)), atol=1e-10)
    oracle = RBF(0.05)(Z, X) @ U / np.sqrt(values)
    np.testing.assert_allclose(np.abs(kernel_map.transform(Z)), np.abs(oracle), atol=1e-10)


def test_the_symmetric_basis_is_that_of_the_document(rng, there):
    """[EXACT] (4): K^-1/2 k_z, so that training coordinates are the root of K."""
    X, Z = rng.normal(size=(40, 20)), rng.normal(size=(10, 20))
    kernel_map = there(KernelMap(RBF(0.05), basis="symmetric"))
    Phi = kernel_map.fit_transform(X)
    values, U = np.linalg.eigh(RBF(0.05)(X))
    np.testing.assert_allclose(Phi, (U * np.sqrt(values)) @ U.T, atol=1e-12)
    oracle = RBF(0.05)(Z, X) @ (U / np.sqrt(values)) @ U.T
    np.testing.assert_allclose(kernel_map.transform(Z), oracle, atol=1e-11)


def test_the_symmetric_basis_takes_the_pseudo_inverse_where_K_is_singular(rng, there):
    X = rng.normal(size=(30, 3))
    kernel_map = there(KernelMap(Linear(), basis="symmetric"))
    Phi = kernel_map.fit_transform(X)
    assert Phi.shape == (30, 30)
    assert kernel_map.rank_ == 3
    values, U = np.linalg.eigh(X @ X.T)
    root = (U[:, -3:] * np.sqrt(values[-3:])) @ U[:, -3:].T
    np.testing.assert_allclose(Phi, root, atol=1e-12 * np.abs(root).max())


# --- rank ---------------------------------------------------------------------------------------


def test_rank_is_found(rng, there):
    X = rng.normal(size=(50, 3))
    assert there(KernelMap(Linear())).fit(X).rank_ == 3
    assert there(KernelMap(Polynomial(2))).fit(X).rank_ == 10  # [SLIDES] Q2
    assert there(KernelMap(Polynomial(2), max_rank=7)).fit(X).rank_ == 7
    assert there(KernelMap(Polynomial(2), max_rank=1000)).fit(X).rank_ == 10
    assert there(KernelMap(RBF(5.0))).fit(X).rank_ == 50


@pytest.mark.parametrize("memory_limit", [None, "8MB"])
def test_every_training_point_is_explained_to_tol(rng, memory_limit, there):
    X = rng.normal(size=(900, 2))
    ranks = []
    for tol in (1e-2, 1e-5, 1e-8, 1e-11):
        kernel_map = there(KernelMap(RBF(1.0), tol=tol, memory_limit=memory_limit)).fit(X)
        assert kernel_map.residual(X).max() <= 1.01 * tol + 1e-13
        assert kernel_map.max_residual_ <= tol
        ranks.append(kernel_map.rank_)
    assert ranks == sorted(set(ranks))


@pytest.mark.parametrize("memory_limit", [None, "8MB"])
def test_tolerance_is_relative_to_each_points_own_similarity(memory_limit, there):
    X = digits_like(400)
    kernel_map = there(KernelMap(k1(), tol=1e-3, memory_limit=memory_limit)).fit(X)
    share = kernel_map.residual(X) / k1().diag(X)
    assert share.max() <= 1.1e-3
    assert kernel_map.max_residual_ <= 1e-3 * k1().diag(X).max()


# --- ordinary inputs that break absolute tolerances ---------------------------------------------


def test_k1_with_similarities_over_eight_orders_of_magnitude(there):
    X = digits_like(260)
    X, Z = X[:200], X[200:]
    diagonal = k1().diag(X)
    assert diagonal.max() / diagonal.min() > 1e7
    kernel_map = there(KernelMap(k1()))
    Phi = kernel_map.fit_transform(X)
    assert relative_error(k1(), X, X, Phi, Phi) <= 1e-12
    assert relative_error(k1(), X, Z, Phi, kernel_map.transform(Z)) <= 1e-12
    single = there(KernelMap(k1()))
    Phi = single.fit_transform(X.astype(np.float32))
    assert Phi.dtype == np.float32
    Psi = single.transform(Z.astype(np.float32))
    assert relative_error(k1(), X, X, Phi, Phi) <= 1e-4
    assert relative_error(k1(), X, Z, Phi, Psi) <= 1e-4


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_offset_does_not_matter(rng, dtype, there):
    X = rng.normal(size=(300, 2)).astype(dtype)
    plain = there(KernelMap(RBF(1.0))).fit(X)
    Y = (X.astype(float) + 2000).astype(dtype)
    moved = there(KernelMap(RBF(1.0))).fit(Y)
    assert abs(moved.rank_ - plain.rank_) <= 0.05 * plain.rank_
    Phi = moved.transform(Y)
    Y = Y.astype(float)
    error = relative_error(RBF(1.0), Y, Y, Phi, Phi)
    assert error <= (1e-12 if dtype is np.float64 else 1e-4)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("basis", BASES)
def test_the_scale_of_a_kernel_does_not_matter(rng, scale, dtype, basis, there):
    X, Z = rng.normal(size=(100, 3)).astype(dtype), rng.normal(size=(30, 3)).astype(dtype)
    plain = there(KernelMap(RBF(0.5), basis=basis)).fit(X)
    scaled = there(KernelMap(scale * RBF(0.5), basis=basis)).fit(X)
    assert scaled.rank_ == plain.rank_
    tight, loose = (1e-12, 5e-8) if dtype is np.float64 else (1e-5, 1e-2)
    Phi = scaled.fit_transform(X)
    assert relative_error(scale * RBF(0.5), X, X, Phi, Phi) <= tight
    assert relative_error(scale * RBF(0.5), X, Z, Phi, scaled.transform(Z)) <= loose
    bound = scaled.error_bound(X, Z)
    np.testing.assert_allclose(bound / scale, plain.error_bound(X, Z), rtol=1e-2)


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("kernel", [RBF(0.5), Linear(), Matern(0.5), Polynomial(3)], ids=repr)
def test_duplicates_constant_columns_and_one_row(rng, kernel, basis, there):
    X = rng.normal(size=(20, 2))
    for data, rank in (
        (np.vstack([X, X, X[:5]]), None),
        (np.column_stack([X, np.full(20, 7.0)]), None),
        (X[:1], 1),
        (np.repeat(X[:1], 9, axis=0), 1),
    ):
        kernel_map = there(KernelMap(kernel, basis=basis))
        Phi = kernel_map.fit_transform(data)
        assert relative_error(kernel, data, data, Phi, Phi) <= 1e-12
        assert rank is None or kernel_map.rank_ == rank
        assert np.abs(kernel_map.transform(data) - Phi).max() <= 1e-6 * np.abs(Phi).max()
    np.testing.assert_array_equal(
        *there(KernelMap(kernel)).fit(np.vstack([X, X])).transform(X[[3, 3]])[:, None]
    )


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("partial", [False, True])
def test_points_at_the_origin_of_feature_space(rng, basis, partial, there):
    X = rng.normal(size=(10, 3))
    X[[2, 5]] = 0.0
    # Bytes for three columns of ten points, and less than the whole matrix takes.
    memory_limit = (3200 if basis == "symmetric" else 2300) if partial else None
    kernel_map = there(KernelMap(Linear(), basis=basis, memory_limit=memory_limit))
    Phi = kernel_map.fit_transform(X)
    assert kernel_map.rank_ == 3
    assert not np.isin([2, 5], kernel_map.landmark_indices_).any()
    np.testing.assert_array_equal(Phi[[2, 5]], 0)
    assert np.isfinite(kernel_map.error_bound(X)).all()


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize(
    "options", [{}, {"center": True}, {"append_residual": True}, {"max_rank": 3}]
)
def test_nothing_but_zeros(basis, options, there):
    X = np.zeros((6, 3))
    kernel_map = there(KernelMap(Linear(), basis=basis, **options))
    Phi = kernel_map.fit_transform(X)
    assert kernel_map.rank_ == 0
    assert not Phi.any()
    assert kernel_map.transform(X + 1).shape == Phi.shape
    np.testing.assert_allclose(kernel_map.residual(X + 1), 3.0)
    assert np.all(kernel_map.error_bound(X + 1) >= 3.0 - 1e-12)


def test_the_constant_kernel_has_one_dimension(rng, there):
    X = rng.normal(size=(10, 3))
    for basis in ("cholesky", "eigen", "closed", "auto"):
        kernel_map = there(KernelMap(Constant(4.0), basis=basis))
        np.testing.assert_allclose(np.abs(kernel_map.fit_transform(X)), 2.0)
        assert kernel_map.rank_ == 1


# --- a Gram matrix is a kernel too --------------------------------------------------------------


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("max_rank", [None, 20])
def test_precomputed_is_the_kernel_that_was_computed(rng, basis, max_rank, there):
    X, Z = rng.normal(size=(60, 2)), rng.normal(size=(15, 2))
    kernel = RBF(0.7)
    direct = there(KernelMap(kernel, basis=basis, max_rank=max_rank)).fit(X)
    given = there(KernelMap(Precomputed(), basis=basis, max_rank=max_rank)).fit(kernel(X))
    np.testing.assert_array_equal(given.landmark_indices_, direct.landmark_indices_)
    P, Q = direct.transform(Z), given.transform(kernel(Z, X))
    np.testing.assert_allclose(P @ P.T, Q @ Q.T, atol=1e-7)
    np.testing.assert_allclose(
        given.residual(kernel(Z, X), diag=kernel.diag(Z)), direct.residual(Z), atol=1e-7
    )
    error = np.abs(given.transform(kernel(X)) @ Q.T - kernel(X, Z))
    bound = given.error_bound(kernel(X), kernel(Z, X), diag=kernel.diag(X), diag_Y=kernel.diag(Z))
    assert np.all(error <= bound)
