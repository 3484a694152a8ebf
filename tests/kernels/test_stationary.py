import math

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise

from mercer import (
    RBF,
    Constant,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Normalized,
    OnColumns,
    OnFeatures,
    Periodic,
    Projected,
    RationalQuadratic,
    SetOf,
)
from mercer.engine.arrays import as_numpy
from mercer.kernels.parameters import _SAMPLED_PAIRS

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 4))
X[-1] = X[0]
Y = rng.normal(size=(9, 4))
Y[0] = X[3]
YEARS = np.array([0.0, 0.0, 2000.0, 0.0])
LENGTHS = [1.0, 2.0, 3.0, 0.5]


@pytest.mark.parametrize("offset", [0.0, YEARS], ids=["near", "years"])
@pytest.mark.parametrize(
    ("kernel", "peer"),
    [
        (RBF(0.3), lambda X, Y: pairwise.rbf_kernel(X - X[0], Y - X[0], gamma=0.3)),
        (RBF(1 / (2 * 0.7**2)), gp.RBF(0.7)),
        (RBF([1 / (2 * s**2) for s in LENGTHS]), gp.RBF(LENGTHS)),
        (Laplacian(0.3), lambda X, Y: pairwise.laplacian_kernel(X, Y, gamma=0.3)),
        (Matern(0.5, 1.3), gp.Matern(1.3, nu=0.5)),
        (Matern(1.5, 1.3), gp.Matern(1.3, nu=1.5)),
        (Matern(2.5, LENGTHS), gp.Matern(LENGTHS, nu=2.5)),
        (Matern(0.8, 1.3), gp.Matern(1.3, nu=0.8)),
        (Matern(3.7, 1.3), gp.Matern(1.3, nu=3.7)),
        (RationalQuadratic(0.7, 1.3), gp.RationalQuadratic(1.3, alpha=0.7)),
    ],
    ids=lambda v: repr(v) if isinstance(v, Kernel) else None,
)
def test_agrees_with_scikit_learn(kernel, peer, offset):
    # The peers of general nu evaluate at a small distance in place of zero.
    atol = 1e-12 if kernel.get_params().get("nu") != 0.8 else 1e-10
    assert_allclose(kernel(X + offset, Y + offset), peer(X + offset, Y + offset), atol=atol, rtol=0)
    assert_allclose(kernel(X + offset), peer(X + offset, X + offset), atol=atol, rtol=0)


def test_periodic_agrees_with_scikit_learn_on_one_column():
    peer = gp.ExpSineSquared(length_scale=1.3, periodicity=0.7)
    kernel = Periodic(length_scale=1.3, period=0.7)
    assert_allclose(kernel(X[:, :1], Y[:, :1]), peer(X[:, :1], Y[:, :1]), atol=1e-12, rtol=0)
    by_column = np.prod([kernel(X[:, [c]], Y[:, [c]]) for c in range(4)], axis=0)
    assert_allclose(kernel(X, Y), by_column, atol=1e-13, rtol=0)


def test_periodic_repeats():
    kernel = Periodic(length_scale=1.0, period=0.25)  # a power of two: shifts are exact
    assert_array_equal(np.diagonal(kernel(X, X + 0.5)), 1.0)
    assert_allclose(kernel(X + 1000.0, Y), kernel(X, Y), atol=1e-11)


def test_matern_tends_to_rbf():
    assert_allclose(Matern(200.0)(X, Y), RBF(0.5)(X, Y), atol=3e-3)


@pytest.mark.parametrize("nu", [0.1, 0.8, 3.7, 40.0])
def test_general_matern_is_one_at_zero_and_never_above(nu):
    Z = np.array([[0.0], [1e-300], [1e-160], [1e-12], [1e-6], [1e3], [1e6]])
    K = Matern(nu)(Z)
    assert np.isfinite(K).all()
    assert (K <= 1).all()
    assert_array_equal(np.diagonal(K), 1.0)
    assert K[0, 1] == pytest.approx(1.0, abs=1e-9) or nu < 0.5
    assert K[0, 6] == pytest.approx(0.0, abs=1e-12)


def test_general_matern_needs_numpy():
    strict = pytest.importorskip("array_api_strict")
    with pytest.raises(TypeError, match=r"Matern\(nu=0.8\) needs scipy.special and so NumPy"):
        Matern(0.8)(strict.asarray(X))


# --- gamma from data ------------------------------------------------------------------------------


def test_gamma_scale_is_that_of_svc():
    assert RBF().bind(X).gamma == pytest.approx(1 / (4 * X.var()))


def test_gamma_median():
    Z = X[:20]
    i, j = np.triu_indices(20, 1)
    median = np.median(((Z[i] - Z[j]) ** 2).sum(axis=1))
    assert RBF("median").bind(Z).gamma == pytest.approx(1 / (2 * median))
    median = np.median(np.abs(Z[i] - Z[j]).sum(axis=1))
    assert Laplacian("median").bind(Z).gamma == pytest.approx(1 / (2 * median))
    big = rng.normal(size=(3000, 4))
    assert RBF("median").bind(big) == RBF("median").bind(big)
    assert RBF("median").bind(big).gamma == pytest.approx(1 / (2 * 6.7), rel=0.15)


def test_laplacian_scale_is_the_mean_absolute_deviation():
    assert Laplacian().bind(X).gamma == pytest.approx(1 / (4 * np.abs(X - X.mean()).mean()))


@pytest.mark.parametrize(
    "kernel", [RBF(), RBF("median"), Laplacian(), Laplacian("median")], ids=repr
)
@pytest.mark.parametrize(
    "Z", [np.ones((5, 2)), np.array([[3.0, 4.0]])], ids=["constant", "one row"]
)
def test_no_spread_gives_one(kernel, Z):
    assert kernel.bind(Z).gamma == 1.0
    assert_array_equal(kernel(Z), 1.0)


def test_gamma_of_sparse_is_gamma_of_dense():
    import scipy.sparse

    Z = np.where(np.abs(X) < 0.8, 0.0, X)
    for kernel in (RBF(), RBF("median")):
        assert kernel.bind(scipy.sparse.csr_array(Z)).gamma == pytest.approx(kernel.bind(Z).gamma)


def test_gamma_is_taken_from_the_second_argument():
    """k(X, Y) is a block of what a map fitted on Y evaluates."""
    assert_array_equal(RBF()(X, Y), RBF().bind(Y)(X, Y))


# --- distances ------------------------------------------------------------------------------------

# -log of these kernels is the distance, squared or not.
DISTANCES = [RBF(1.0), Matern(0.5), Laplacian(1.0)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("offset", [0.0, 100.0, 2000.0, 1e6])
@pytest.mark.parametrize("kernel", DISTANCES, ids=repr)
def test_identical_rows_are_at_distance_zero(kernel, offset, dtype):
    Z = (rng.normal(size=(40, 3)) + offset).astype(dtype)
    Z[20:] = Z[:20]
    K = kernel(Z)
    assert_array_equal(K, K.T)
    assert (K <= 1).all()
    assert_array_equal(np.diagonal(K), 1)
    assert_array_equal(np.diagonal(K[:20, 20:]), 1)
    assert_array_equal(np.diagonal(kernel(Z[:20], Z[20:])), 1)


@pytest.mark.parametrize("offset", [0.0, 100.0, 2000.0])
def test_a_valid_kernel_looks_valid_far_from_the_origin(offset):
    Z = rng.normal(size=(200, 3)) + [0, 0, offset]
    assert np.linalg.eigvalsh(RBF(0.1)(Z))[0] > -1e-13
    single = RBF(0.1)(Z.astype(np.float32)).astype(float)
    assert np.linalg.eigvalsh(single)[0] > -1e-4


@pytest.mark.parametrize("offset", [0.0, 10.0, 1000.0])
def test_float32_distances_are_as_accurate_as_scikit_learn(offset):
    Z = (rng.normal(size=(60, 5)) + offset).astype(np.float32)
    exact = ((Z[:, None, :].astype(float) - Z[None, :, :].astype(float)) ** 2).sum(axis=2)
    ours = -np.log(RBF(0.01)(Z).astype(float)) / 0.01
    theirs = -np.log(pairwise.rbf_kernel(Z, gamma=0.01).astype(float)) / 0.01
    assert np.abs(ours - exact).max() <= 1.1 * np.abs(theirs - exact).max() + 1e-5


def test_close_points_keep_their_digits():
    """Matern-1/2 is exp(-d): d of close points must not be the root of rounding."""
    Z = np.array([[2000.0, 1.0], [2000.0, 1.0 + 1e-9], [2000.0, 5.0]])
    d = 1 - Matern(0.5)(Z)[0, 1]
    assert d == pytest.approx(1.0e-9, rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", [RBF(0.01), Matern(0.5, 8.0)], ids=repr)
def test_columns_in_which_all_points_agree(kernel, dtype, there):
    """The border of an image: products leave these columns out, distances do not."""
    S = np.full((38, 100), 0.1, dtype=dtype)
    S[:, ::2] = rng.normal(size=(38, 50))
    S[:, 3] = 1e9 / 3
    assert dtype == np.float32 or S[:, 3].mean() != S[0, 3]  # means round, and must not be seen
    S[19:] = S[:19]
    far = S[:15] + rng.normal(size=(15, 100)).astype(dtype)
    far[:, 3] = S[0, 3]
    near = S[:1].copy()
    near[0, 1] += 1e-3
    Z = np.vstack([S, far, near])
    d2 = cdist(Z.astype(float), S.astype(float), "sqeuclidean")
    exact = np.exp(-0.01 * d2) if isinstance(kernel, RBF) else np.exp(-np.sqrt(d2) / 8)
    K = there(kernel)(Z, S)
    assert_allclose(K, exact, atol=20 * np.finfo(dtype).eps)
    assert_array_equal(np.diagonal(K[:19, 19:]), 1)  # identical rows, exactly
    if dtype == np.float64:
        assert_allclose(1 - K[-1, 0], 1 - exact[-1, 0], rtol=1e-6)
    one = there(kernel)(Z, S[:1])  # one point agrees with itself in every column
    assert_allclose(one, exact[:, :1], atol=20 * np.finfo(dtype).eps)
    square = there(kernel)(S)
    assert_array_equal(square, square.T)
    assert_array_equal(np.diagonal(square), 1)


def test_an_alpha_beyond_single_precision_is_rbf():
    X = np.array([[0.0], [1.0], [2.0]], dtype=np.float32)
    assert_allclose(RationalQuadratic(1e300)(X), RBF(0.5)(X), rtol=1e-6)


@pytest.mark.parametrize("rule", ["scale", "median"])
def test_a_gamma_from_the_data(rule):
    """Where squares vanish there is no gamma; rows that are all the same have no spread."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    for small in (1e-200 * X, (1e-25 * X).astype(np.float32)):
        with pytest.raises(ValueError, match=r"cannot square.* for example X / ") as e:
            RBF(rule).bind(small)
        assert RBF(rule)(small / float(str(e.value).split("X / ")[1].split(",")[0])).std() > 0.1
        assert Laplacian(rule).bind(small.astype(float)).gamma > 1e20
    assert RBF(rule).bind(np.full((10, 3), 0.1)).gamma == 1.0  # their mean is not 0.1


@pytest.mark.parametrize("kernel", [RBF(1.0), Matern(), RationalQuadratic()], ids=repr)
def test_distances_that_overflow_are_refused(kernel):
    with pytest.raises(ValueError, match=r"squared distances overflow.*MaxAbsScaler"):
        kernel(np.array([[1e200], [1.0]]))
    single = kernel(np.array([[1e30], [1.0]], dtype=np.float32))
    assert_array_equal(single, np.eye(2))


def test_wide_and_tall_scales():
    Z = np.array([[1e-200, 0], [0, 1e-200], [1e150, 0.0]])
    K = RBF(1.0)(Z)
    assert_array_equal(K, [[1, 1, 0], [1, 1, 0], [0, 0, 1]])


# --- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (RBF(gamma=-1.0), ValueError, r"RBF\(gamma\) must be a positive number .*got -1.0"),
        (RBF(gamma=0), ValueError, "got 0"),
        (RBF(gamma=math.nan), ValueError, "all finite, got nan"),
        (RBF(gamma=None), ValueError, r"RBF\(gamma\) must be a positive number .*got None"),
        (RBF(gamma="auto"), ValueError, "RBF.gamma='auto'. is unknown; .* 'scale', 'median'"),
        (RBF(gamma=[1.0, 2.0]), ValueError, "2 per-column values were given for data with 4"),
        (RBF(gamma=[[1.0]]), ValueError, r"one per column, all finite, got \[\[1.0\]\]"),
        (RBF(gamma=[]), ValueError, "one per column"),
        (RBF(gamma=True), ValueError, "got True"),
        (RBF(gamma=["a", "b"]), TypeError, "must be a positive number"),
        (Laplacian(gamma=[1.0, -1.0]), ValueError, r"Laplacian\(gamma\)"),
        (Laplacian(gamma=[1.0, 1.0]), ValueError, "2 per-column values were given"),
        (Matern(nu=0), ValueError, r"Matern\(nu\) must be a positive number, got 0"),
        (Matern(nu="1.5"), ValueError, "got '1.5'"),
        (Matern(length_scale=0), ValueError, r"Matern\(length_scale\) must be a positive"),
        (RationalQuadratic(alpha=-1), ValueError, r"RationalQuadratic\(alpha\).* got -1"),
        (Periodic(period=0), ValueError, r"Periodic\(period\) must be a positive"),
        (Periodic(length_scale=[1, 2]), ValueError, "2 per-column values"),
    ],
)
def test_bad_parameters_are_named(kernel, error, message):
    with pytest.raises(error, match=message):
        kernel(X)


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_per_column_parameters_of_any_kind(kind):
    values = [0.1, 0.2, 0.3, 0.4]
    assert_array_equal(RBF(kind(values))(X), RBF(values)(X))
    assert RBF(kind(values)) == RBF(values)
    assert hash(RBF(kind(values))) == hash(RBF(values))


def test_per_column_parameters_on_torch():
    torch = pytest.importorskip("torch", reason="torch is not installed: make torch")
    kernel = RBF(torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64))
    assert_allclose(kernel(X), RBF([0.1, 0.2, 0.3, 0.4])(X), rtol=1e-12)
    assert_allclose(as_numpy(kernel(torch.asarray(X))), kernel(X), rtol=1e-12)


@pytest.mark.parametrize("rule", ["scale", "median"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", [RBF, Laplacian])
def test_rows_of_weight_w_bind_as_w_rows(kernel, sparse, rule, rng):
    X = np.round(rng.normal(size=(12, 3)), 1)
    X[X < -0.5] = 0.0
    w = rng.integers(0, 4, 12)
    repeated = np.repeat(X, w, axis=0)
    rows, again = (scipy.sparse.csr_array(A) for A in (X, repeated)) if sparse else (X, repeated)
    assert w.sum() * (w.sum() - 1) // 2 <= _SAMPLED_PAIRS  # else pairs are drawn at random
    for made in (kernel(rule), 2 * kernel(rule) + Constant(1.0), kernel(rule) ** 2):
        found = made.bind(rows, sample_weight=w).get_params(deep=True)
        expected = made.bind(again).get_params(deep=True)
        names = [name for name in found if name.endswith("gamma")]
        assert_allclose([found[n] for n in names], [expected[n] for n in names], rtol=1e-12)
        even = made.bind(rows, sample_weight=np.ones(12)).get_params(deep=True)
        plain = made.bind(rows).get_params(deep=True)
        assert [even[n] for n in names] == [plain[n] for n in names]


def test_weights_reach_the_kernels_inside(rng):
    X, w = rng.normal(size=(12, 3)), rng.integers(1, 4, 12)
    repeated = np.repeat(X, w, axis=0)
    for kernel in (
        OnColumns(RBF(), [0, 2]),
        OnFeatures(RBF(), np.abs),
        Projected(RBF(), np.eye(3)[:, :2]),
        Normalized(RBF() + Linear()),
    ):
        Z = rng.normal(size=(4, 3))
        bound, expected = kernel.bind(X, sample_weight=w), kernel.bind(repeated)
        assert_allclose(bound(Z), expected(Z), rtol=1e-12)
    sets = [X[:5], X[5:7], X[7:]]
    bound = SetOf(RBF()).bind(sets, sample_weight=[2, 1, 3])
    assert_allclose(
        bound.kernel.gamma, SetOf(RBF()).bind([sets[i] for i in (0, 0, 1, 2, 2, 2)]).kernel.gamma
    )


@pytest.mark.parametrize("bad", [[1.0, 2.0], [-1.0, 1, 1], [0, 0, 0], [np.nan, 1, 1], ["a", 1, 1]])
def test_bad_weights_are_refused(bad):
    with pytest.raises(ValueError, match="sample_weight"):
        RBF().bind(np.eye(3), sample_weight=bad)
