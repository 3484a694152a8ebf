"""The certificate: never violated, and tight where tightness was promised."""

import warnings

import mpmath
import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from fuzz import certificates
from fuzz.certificates import value
from fuzz.search import search
from mercer import (
    RBF,
    Chi2,
    Constant,
    Cosine,
    KernelMap,
    KernelRidge,
    Laplacian,
    Linear,
    Matern,
    Normalized,
    OnColumns,
    OnFeatures,
    Periodic,
    Polynomial,
    Projected,
    QuadraticForm,
    RationalQuadratic,
    Rescaled,
    SetOf,
    Signature,
)
from mercer.space.certificate import Radii, bound
from test_exactness import digits_like, k1, k2

KERNELS = [
    RBF(1.0),
    RBF([0.1, 3.0]),
    Matern(0.5),
    Matern(2.5, 2.0),
    Laplacian(1.0),
    RationalQuadratic(),
    Periodic(),
    Polynomial(3),
    Polynomial(9, gamma=0.1, coef0=0.0),
    Linear(),
    Cosine(),
    RBF(1.0) + Linear(),
    RBF(0.3) * Polynomial(2),
    1e-8 * RBF(1.0),
    (0.1 * Linear()).exp(),
]


def centred(kernel, X, A, B):
    """k_c(a, b) of MATH.md section 2, in double precision from the plain formula."""
    K = kernel(X).astype(float)
    a, b = kernel(A, X).astype(float).mean(axis=1), kernel(B, X).astype(float).mean(axis=1)
    return kernel(A, B).astype(float) - a[:, None] - b[None, :] + K.mean()


def violations(kernel_map, points, truth):
    """Pairs whose error exceeds the bound, and how many pairs there were."""
    Phi = kernel_map.transform(points).astype(float)
    error = np.abs(Phi @ Phi.T - truth)
    return int((error > kernel_map.error_bound(points)).sum()), error.size


def everywhere(rng, X):
    """Training points, new ones like them, others far away, and some in between."""
    new, far = rng.normal(size=(150, X.shape[1])), 30 * rng.normal(size=(40, X.shape[1]))
    return np.vstack([X[:110], new, far, 4 * rng.normal(size=(60, X.shape[1]))])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_never_violated(rng, kernel, dtype, there):
    """15 kernels x 2 precisions x 3 maps x 360^2 pairs: 1.1e7 pairs, 5e6 of each precision."""
    X = rng.normal(size=(250, 2))
    points = everywhere(rng, X)
    if "exp" in repr(kernel):
        points = np.clip(points, -8, 8)
    X, points = X.astype(dtype), points.astype(dtype)
    truth = kernel(points.astype(float))
    for options in ({}, {"max_rank": 25}, {"tol": 1e-4, "basis": "eigen"}):
        kernel_map = there(KernelMap(kernel, **options)).fit(X)
        count, pairs = violations(kernel_map, points, truth)
        assert count == 0, f"{count} of {pairs} pairs with {options}"


@pytest.mark.parametrize("options", [{}, {"pivots": "random", "max_rank": 60}])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_never_violated_by_the_partial_algorithm(rng, options, dtype, there):
    X = rng.normal(size=(900, 2)).astype(dtype)
    points = everywhere(rng, X).astype(dtype)
    limit = int(1.8 * 900**2 * X.dtype.itemsize)  # K and F would need 2 n^2
    kernel_map = there(KernelMap(RBF(1.0), random_state=0, memory_limit=limit, **options))
    Phi = kernel_map.fit_transform(X).astype(float)
    assert violations(kernel_map, points, RBF(1.0)(points.astype(float)))[0] == 0
    # The coordinates that the fit itself returns are certified too.
    Psi = kernel_map.transform(points).astype(float)
    error = np.abs(Phi @ Psi.T - RBF(1.0)(X.astype(float), points.astype(float)))
    assert np.all(error <= kernel_map.error_bound(X, points))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("basis", ["cholesky", "eigen", "symmetric"])
def test_never_violated_in_many_dimensions(dtype, basis, there):
    """Well conditioned: nothing but rounding, and landmarks everywhere."""
    for kernel, X in ((k1(), digits_like(200)), k2(digits_like(200))):
        X, points = X[:120].astype(dtype), X[60:].astype(dtype)
        kernel_map = there(KernelMap(kernel, basis=basis)).fit(X)
        assert violations(kernel_map, points, kernel(points.astype(float)))[0] == 0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_never_violated_on_histograms_and_with_an_offset(rng, dtype, there):
    X = rng.gamma(1.0, size=(250, 3)).astype(dtype)
    assert (
        violations(there(KernelMap(Chi2(1.0))).fit(X[:150]), X, Chi2(1.0)(X.astype(float)))[0] == 0
    )
    X = (rng.normal(size=(250, 3)) + 2000).astype(dtype)
    assert violations(there(KernelMap(RBF(1.0))).fit(X[:150]), X, RBF(1.0)(X.astype(float)))[0] == 0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("options", [{}, {"max_rank": 25}, {"basis": "eigen"}])
@pytest.mark.parametrize("kernel", [RBF(1.0), Polynomial(3), Matern(0.5)], ids=repr)
def test_never_violated_by_a_centred_map(rng, kernel, options, dtype, there):
    X = rng.normal(size=(200, 2)).astype(dtype)
    points = everywhere(rng, X).astype(dtype)
    kernel_map = there(KernelMap(kernel, center=True, **options)).fit(X)
    truth = centred(kernel, X.astype(float), points.astype(float), points.astype(float))
    assert violations(kernel_map, points, truth)[0] == 0


def test_never_violated_by_a_closed_map(rng, there):
    X = rng.normal(size=(200, 3))
    for center in (False, True):
        kernel_map = there(KernelMap(Polynomial(3), basis="closed", center=center)).fit(X[:50])
        K = Polynomial(3)(X)
        truth = centred(Polynomial(3), X[:50], X, X) if center else K
        assert violations(kernel_map, X, truth)[0] == 0
        lengths = np.sqrt(np.outer(K.diagonal(), K.diagonal()))
        if not center:
            assert (kernel_map.error_bound(X) / lengths).max() <= 1e-13


def test_the_rounding_term_is_needed(rng, there):
    """rho(x) rho(z) alone is violated: a test that could not fail would prove nothing."""
    X, Z = rng.normal(size=(300, 2)), rng.normal(size=(200, 2))
    kernel_map = there(KernelMap(RBF(1.0))).fit(X)
    error = np.abs(kernel_map.transform(X) @ kernel_map.transform(Z).T - RBF(1.0)(X, Z))
    naive = np.sqrt(np.outer(kernel_map.residual(X), kernel_map.residual(Z)))
    assert (error > naive).mean() > 0.1


# --- tight --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_tight_where_K_is_singular(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(500, 2))
    kernel_map = KernelMap(RBF(1.0)).fit(X)
    for Z in (rng.normal(size=(400, 2)), 2 * rng.normal(size=(400, 2)), everywhere(rng, X)):
        assert kernel_map.error_bound(X, Z).max() <= 1e-5


def test_tight_where_K_is_well_conditioned(there):
    kernel, X = k2(digits_like(300))
    kernel_map = there(KernelMap(kernel)).fit(X[:200])
    bound = kernel_map.error_bound(X[:200], X[200:])
    assert bound.max() <= 1e-10
    np.testing.assert_allclose(bound, kernel_map.error_bound(X[200:], X[:200]).T, rtol=1e-12)


def test_tight_where_the_map_is_truncated(rng, there):
    """Cauchy-Schwarz is what is left: new pairs lose a factor, not orders of magnitude."""
    X, Z = rng.normal(size=(500, 2)), rng.normal(size=(300, 2))
    kernel_map = there(KernelMap(RBF(1.0), max_rank=40)).fit(X)
    residual = kernel_map.residual(Z)
    bound = kernel_map.error_bound(Z)
    np.testing.assert_array_less(bound, 1.01 * np.sqrt(np.outer(residual, residual)) + 1e-5)
    error = np.abs(kernel_map.transform(Z) @ kernel_map.transform(Z).T - RBF(1.0)(Z))
    assert np.median(bound / np.maximum(error, 1e-300)) < 400


@pytest.mark.parametrize(
    ("kernel", "columns", "ratio"),
    [(RBF(0.1), 2, 3.3), (Matern(0.5), 2, 2500), (RBF(1.0), 5, 2900), (Matern(1.5), 5, 180)],
    ids=repr,
)
def test_how_cautious_the_bound_is(kernel, columns, ratio):
    """The figures of docs/trust.md."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(400, columns)), rng.normal(size=(300, columns))
    kernel_map = KernelMap(kernel, max_rank=40).fit(X)
    error = np.abs(kernel_map.pair_residual(Z, X))
    found = np.median(kernel_map.error_bound(Z, X) / np.maximum(error, 1e-300))
    assert ratio / 1.5 < found < ratio * 1.5


# --- residual -----------------------------------------------------------------------------------


def test_residual_is_the_posterior_variance_without_noise(rng, there):
    X, Z = rng.normal(size=(60, 20)), rng.normal(size=(20, 20))
    kernel = RBF(0.05)
    k = kernel(Z, X)
    variance = 1 - (k * np.linalg.solve(kernel(X), k.T).T).sum(axis=1)
    np.testing.assert_allclose(there(KernelMap(kernel)).fit(X).residual(Z), variance, atol=1e-12)


def test_residual_of_training_points_is_nothing(rng, there):
    X = rng.normal(size=(100, 2))
    kernel_map = there(KernelMap(RBF(1.0))).fit(X)
    assert kernel_map.residual(X).max() <= 1e-12
    assert kernel_map.residual(X).min() >= 0
    assert kernel_map.max_residual_ <= 64 * np.finfo(float).eps
    cut = there(KernelMap(RBF(1.0), max_rank=10)).fit(X)
    np.testing.assert_allclose(cut.max_residual_, cut.residual(X).max(), rtol=1e-6)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("basis", ["cholesky", "eigen", "symmetric"])
def test_the_residual_coordinate_completes_the_norm(rng, basis, center, there):
    """[NPT] Lemma 5, for a centred map with the centred k(z, z) of MATH.md section 2."""
    X, Z = rng.normal(size=(50, 4)), rng.normal(size=(20, 4))
    kernel = RBF(0.3)
    kernel_map = there(KernelMap(kernel, basis=basis, center=center, append_residual=True))
    Phi, Psi = kernel_map.fit_transform(X), kernel_map.transform(Z)
    self_similarity = centred(kernel, X, Z, Z).diagonal() if center else kernel.diag(Z)
    np.testing.assert_allclose((Psi**2).sum(axis=1), self_similarity, atol=1e-7)
    np.testing.assert_allclose(Phi[:, -1], 0, atol=1e-7)
    np.testing.assert_allclose(Psi[:, -1] ** 2, kernel_map.residual(Z), atol=1e-12)


def test_the_residual_coordinate_of_a_truncated_map(rng, there):
    X = rng.normal(size=(80, 2))
    kernel_map = there(KernelMap(RBF(1.0), max_rank=10, append_residual=True))
    Phi = kernel_map.fit_transform(X)
    assert Phi[:, -1].max() > 0.01
    np.testing.assert_allclose((Phi**2).sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(kernel_map.transform(X), Phi, atol=1e-6)


# --- distances ----------------------------------------------------------------------------------


def test_distances_are_those_of_feature_space(rng, there):
    """[EXACT] (26)."""
    X, Z = rng.normal(size=(40, 3)), rng.normal(size=(15, 3))
    kernel_map = there(KernelMap(RBF(0.5), center=True)).fit(X)
    expected = np.sqrt(2 - 2 * RBF(0.5)(X, Z))
    np.testing.assert_allclose(kernel_map.distances(X, Z), expected, atol=1e-7)
    np.testing.assert_array_equal(kernel_map.distances(X).diagonal(), 0)
    P, Q = kernel_map.transform(X), kernel_map.transform(Z)
    plain = np.sqrt(((P[:, None] - Q[None]) ** 2).sum(-1))
    np.testing.assert_allclose(kernel_map.distances(X, Z, residual=False), plain, atol=1e-7)


def test_distances_of_a_gram_matrix(rng, there):
    X, Z = rng.normal(size=(30, 3)), rng.normal(size=(10, 3))
    kernel = RBF(0.5)
    kernel_map = there(KernelMap("precomputed")).fit(kernel(X))
    expected = np.sqrt(2 - 2 * kernel(X))
    np.testing.assert_allclose(
        kernel_map.distances(kernel(X), diag=kernel.diag(X)), expected, atol=1e-6
    )
    with pytest.raises(ValueError, match="residual=False"):
        kernel_map.distances(kernel(X), kernel(Z, X), diag=kernel.diag(X))
    with pytest.raises(ValueError, match="diag="):
        kernel_map.residual(kernel(Z, X))
    with pytest.raises(ValueError, match="each of the 10 rows"):
        kernel_map.residual(kernel(Z, X), diag=[1.0])


# --- what adversaries found ---------------------------------------------------------------------


def exceeded(kernel_map, kernel, A, B):
    """The largest error over its bound, against extended precision."""
    Phi, Psi = (kernel_map.transform(P).astype(np.longdouble) for P in (A, B))
    return float(np.max(np.abs(Phi @ Psi.T - value(kernel, A, B)) / kernel_map.error_bound(A, B)))


def test_coordinates_cast_to_single_precision_are_in_the_bound(rng):
    """Once 3.5e5 times the bound."""
    X = rng.normal(size=(60, 6))
    kernel_map = KernelMap(RBF(0.1)).fit(X)
    A = rng.normal(size=(30, 6)).astype(np.float32)
    assert exceeded(kernel_map, RBF(0.1), A, A) <= 1
    assert exceeded(kernel_map, RBF(0.1), A, X) <= 1


def test_a_map_in_single_precision_asked_in_double_far_from_the_origin(rng):
    """Rounded to single precision, the rows are other points: once 4.3 times the bound."""
    X = (rng.normal(size=(60, 2)) + 1e4).astype(np.float32)
    Z = rng.normal(size=(30, 2)) + 1e4
    kernel_map = KernelMap(RBF(0.5)).fit(X)
    assert exceeded(kernel_map, RBF(0.5), Z, Z) <= 1
    assert exceeded(kernel_map, RBF(0.5), X, Z) <= 1


@pytest.mark.parametrize("basis", ["closed", "cholesky"])
@pytest.mark.parametrize("condition", [1e5, 1e10, 1e14])
def test_an_ill_conditioned_quadratic_form(rng, condition, basis):
    """Points in the direction of the smallest eigenvalue: once 1e14 times the bound."""
    Q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    A = (Q * np.geomspace(1, 1 / condition, 4)) @ Q.T
    kernel = QuadraticForm((A + A.T) / 2)
    X = np.vstack([rng.normal(size=(30, 4)), Q[:, 3:].T * rng.normal(size=(10, 1))])
    kernel_map = KernelMap(kernel, basis=basis).fit(X)
    assert exceeded(kernel_map, kernel, X, X) <= 1


def test_the_appended_residual_is_in_the_bound(rng):
    """All residuals share one axis: two new points gain rho(x) rho(z)."""
    X, Z = rng.normal(size=(40, 3)), 2 * rng.normal(size=(30, 3))
    for max_rank in (10, None):
        kernel_map = KernelMap(RBF(1.0), max_rank=max_rank, append_residual=True).fit(X)
        assert exceeded(kernel_map, RBF(1.0), Z, Z) <= 1
        assert exceeded(kernel_map, RBF(1.0), X, Z) <= 1


def test_the_mean_of_many_rows_in_single_precision(rng):
    """Summed in single precision it was off by 81 times the bound."""
    X = (rng.normal(size=(20_000, 2)) + 5).astype(np.float32)
    kernel_map = KernelMap(Polynomial(2), basis="closed", center=True).fit(X)
    Z = X[:40]
    K = Polynomial(2)
    mean = Polynomial(2).explicit(X.astype(float)).mean(axis=0)
    F = K.explicit(Z.astype(float)) - mean
    Phi = kernel_map.transform(Z).astype(float)
    assert np.all(np.abs(Phi @ Phi.T - F @ F.T) <= kernel_map.error_bound(Z))


def test_the_residual_of_pairs_is_the_error_itself(rng):
    X, Z = rng.normal(size=(40, 3)), rng.normal(size=(20, 3))
    kernel_map = KernelMap(Matern(0.5), max_rank=15).fit(X)
    missed = kernel_map.pair_residual(Z, X)
    Phi, Psi = kernel_map.transform(Z), kernel_map.transform(X)
    np.testing.assert_allclose(Phi @ Psi.T + missed, Matern(0.5)(Z, X), atol=1e-12)
    assert np.all(np.abs(missed) <= kernel_map.error_bound(Z, X))


def test_random_search_for_violations():
    """Bounded here; `make fuzz-certificates` searches for an hour."""
    found = search(certificates.one, certificates.Found, range(120))
    assert (found.cases, found.findings) == (120, [])


def share_of_bound(kernel_map, A, B, truth):
    """The largest error as a share of its bound."""
    Phi, Psi = (np.asarray(kernel_map.transform(P), np.longdouble) for P in (A, B))
    return float(np.max(np.abs(Phi @ Psi.T - truth) / kernel_map.error_bound(A, B)))


@pytest.mark.parametrize("basis", ["cholesky", "closed"])
@pytest.mark.parametrize("times", [1, 50])
def test_a_stroke_there_and_back_is_nothing(times, basis, rng):
    """Without time k = 1, exactly; Chen's products cancel, once to 1e8 times the bound."""
    strokes = [1e3 * rng.normal(size=(6, 2)) for _ in range(8)]
    X = [np.concatenate([s, s[-2::-1]] * times) for s in strokes]
    kernel_map = KernelMap(Signature(4, time=False), basis=basis).fit(X)
    assert share_of_bound(kernel_map, X, X, 1.0) <= 1


def test_paths_far_from_the_origin(rng):
    """Steps were differences of scaled points: once 1.7e3 times the bound."""
    X = [np.round(rng.normal(size=(9, 2)) * 2**20) / 2**20 for _ in range(10)]
    far = [x + 2.0**20 for x in X]
    kernel = Signature(3, length_scale=0.3)
    assert np.array_equal(kernel.explicit(far), kernel.explicit(X))
    K = kernel(X)
    assert share_of_bound(KernelMap(kernel).fit(far), far, far, K) <= 1


def test_the_bound_of_a_noisy_series_is_tight(rng):
    X = [rng.normal(size=(400, 1)).cumsum(axis=0) for _ in range(6)]
    kernel_map = KernelMap(Signature(3, length_scale=10.0), basis="closed").fit(X)
    assert (kernel_map.error_bound(X) / kernel_map.kernel_(X).max()).max() < 1e-9


def test_centred_clouds(rng):
    """Means of values of both signs: 0.38 for -0.99999, with a bound of 3e-14."""
    halves = [1e8 * rng.normal(size=(5, 2)) for _ in range(6)]
    X = [np.concatenate([h, -h, rng.normal(size=(1, 2))]) for h in halves]
    means = np.array([x[-1] / len(x) for x in X], np.longdouble)
    for basis in ("cholesky", "closed"):
        kernel_map = KernelMap(SetOf(Linear()), basis=basis).fit(X)
        assert share_of_bound(kernel_map, X, X, means @ means.T) <= 1


@pytest.mark.parametrize("kernel", [RBF(0.5), Matern(0.5), Laplacian(0.5), Periodic(0.5, 3.0)])
@pytest.mark.parametrize("offset", [1e4, 1e6])
def test_a_projection_far_from_the_origin(kernel, offset, rng):
    """One landmark has no spread: once 89 times the bound; with Periodic 525 times."""
    A = rng.normal(size=(3, 1))
    X = rng.normal(size=(30, 3)) + offset
    projected = (X.astype(np.longdouble) - X[0]) @ A  # shifts change nothing
    for rank in (1, None):
        kernel_map = KernelMap(Projected(kernel, A), max_rank=rank).fit(X)
        assert share_of_bound(kernel_map, X, X, value(kernel, projected, projected)) <= 1
    # About a centre, values lose next to nothing.
    K = Projected(kernel, A)(X)
    np.testing.assert_allclose(K, value(kernel, projected, projected).astype(float), atol=1e-13)


@pytest.mark.parametrize("centre", [0.0, 0.123, 0.5, 0.75, -0.5, 17.3, -1e6])
@pytest.mark.parametrize("scale", [1e-3, 1e-5])
def test_a_short_piece_of_a_long_period(scale, centre, rng):
    """Cosines of a few points close by lose their digits: once 437 times the bound."""
    X = centre + scale * rng.normal(size=(30, 1))
    kernel = Periodic(6 * scale, 1.0)
    assert exceeded(KernelMap(kernel).fit(X), kernel, X, X) <= 1
    np.testing.assert_allclose(kernel(X), value(kernel, X, X).astype(float), atol=1e-14)


@pytest.mark.parametrize("source", ["rescaled", "on features", "on columns", "centred"])
def test_what_a_function_hides_of_an_ill_conditioned_form(source, rng):
    Q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    A = (Q * np.geomspace(1, 1e-12, 4)) @ Q.T
    form = QuadraticForm((A + A.T) / 2)
    X = np.vstack([rng.normal(size=(30, 4)), Q[:, 3:].T * rng.normal(size=(10, 1))])
    kernel = {
        "rescaled": Rescaled(form, lambda X: 2.0 + 0 * X[:, 0]),
        "on features": OnFeatures(form, lambda X: 2.0 * X),
        "on columns": 4.0 * OnColumns(form, [0, 1, 2, 3]),
        "centred": 4.0 * form,
    }[source]
    kernel_map = KernelMap(kernel, center=source == "centred").fit(X)
    truth = 4 * value(form, X, X)
    if source == "centred":
        truth = truth - truth.mean(axis=0) - truth.mean(axis=1)[:, None] + truth.mean()
    assert share_of_bound(kernel_map, X, X, truth) <= 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2, coef0=0.0), QuadraticForm(np.eye(3))])
def test_what_underflows_before_it_is_scaled(kernel, dtype, rng):
    """k(x, x) was 0, its rank 0 and the bound 1e-31, while the truth was 1e-20."""
    tiny = float(np.finfo(dtype).smallest_normal)
    scale = tiny**-0.75
    X = (tiny**0.6 * rng.normal(size=(20, 3))).astype(dtype)
    for scaled in (scale * kernel, Constant(scale) * kernel):
        kernel_map = KernelMap(scaled).fit(X)
        assert share_of_bound(kernel_map, X, X, value(scaled, X, X)) <= 1


def test_tiny_sparse_rows_have_angles(rng):
    """Their norms vanished."""
    X = rng.normal(size=(10, 4)) * (rng.random((10, 4)) < 0.6)
    for size in (1e-170, 1e-300, 1e170):
        found = Cosine()(scipy.sparse.csr_array(size * X))
        np.testing.assert_allclose(found, Cosine()(X), atol=1e-15)
    with pytest.raises(ValueError, match="underflows to 0"):
        Normalized(Linear())(scipy.sparse.csr_array(1e-170 * X))
    with pytest.raises(ValueError, match="underflows to 0"):
        Normalized(Linear())(1e-170 * X)


@pytest.mark.parametrize("size", [1e5, 1e6])
def test_ridge_knows_what_cancels(size, rng):
    """The bound of the iterative form is relative to the terms of k, as a map's is."""
    Q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    A = (Q * np.geomspace(1, 1e-14, 4)) @ Q.T
    A = (A + A.T) / 2
    X = size * (Q[:, 3:].T * rng.normal(size=(20, 1)) + 1e-8 * rng.normal(size=(20, 4)))
    t = rng.normal(size=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ridge = KernelRidge(1e-6, QuadraticForm(A), form="iterative").fit(X, t)
    with mpmath.workdps(60):
        K = mpmath.matrix(X) * mpmath.matrix(A) * mpmath.matrix(X).T
        exact = mpmath.lu_solve(K + mpmath.mpf(1e-6) * mpmath.eye(20), mpmath.matrix(t))
        d = mpmath.matrix(ridge.dual_coef_) - exact
        error = float(mpmath.sqrt((d.T * K * d)[0]))
    assert error <= ridge.error_norms_[0]


def test_a_bound_that_is_not_known_is_infinite_not_nan():
    """Where rounding of the kernel is not bounded, infinity times zero comes up."""
    one, no = np.ones(2), np.zeros(2, dtype=bool)
    known = Radii(np.array([1e-12, 0.0]), one, np.array([1.0, 0.0]), no)
    unknown = Radii(np.zeros(2), np.array([np.inf, np.nan]), one, no)
    with np.errstate(invalid="ignore"):
        bounds = bound(known, unknown, 1e-15)
    assert not np.isnan(bounds).any()
    assert np.isinf(bounds[:, 1]).all()  # what is not known is no bound
    assert np.isfinite(bound(known, known, 1e-15)).all()
