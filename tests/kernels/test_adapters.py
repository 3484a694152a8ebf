import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.gaussian_process import kernels as gp

from mercer import (
    RBF,
    Chi2,
    Cosine,
    FromFeatures,
    FromFunction,
    KernelMap,
    Laplacian,
    Linear,
    NotPSDError,
    Polynomial,
    Precomputed,
    Sigmoid,
    as_kernel,
)
from mercer.engine.arrays import as_numpy

X = np.random.default_rng(0).normal(size=(6, 3))
WORDS = ["apple", "pear", "grape", "apple pear"]


def shared_letters(a, b):
    return len(set(a) & set(b))


# --- as_kernel ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("linear", Linear()),
        ("poly", Polynomial()),
        ("polynomial", Polynomial()),
        ("rbf", RBF()),
        ("RBF", RBF()),
        ("laplacian", Laplacian()),
        ("cosine", Cosine()),
        ("sigmoid", Sigmoid()),
        ("chi2", Chi2()),
        ("precomputed", Precomputed()),
    ],
)
def test_names_as_in_scikit_learn(name, kernel):
    assert as_kernel(name) == kernel


@pytest.mark.parametrize(
    ("name", "nearest"), [("rfb", "rbf"), ("lapalcian", "laplacian"), ("polly", "poly")]
)
def test_unknown_names_get_the_nearest_known_one(name, nearest):
    with pytest.raises(
        ValueError, match=f"unknown kernel '{name}'. Did you mean '{nearest}'.*Known"
    ):
        as_kernel(name)


def test_as_kernel_takes_kernels_functions_and_gp_kernels():
    k = RBF()
    assert as_kernel(k) is k
    assert as_kernel(shared_letters) == FromFunction(shared_letters)
    peer = gp.ConstantKernel(2.0) * gp.RBF(0.7) + gp.DotProduct(0.5)
    kernel = as_kernel(peer)
    assert_allclose(kernel(X), peer(X))
    assert_allclose(kernel(X, X[:2]), peer(X, X[:2]))
    assert_allclose(kernel.diag(X), peer.diag(X))
    assert kernel.is_psd is True
    assert kernel(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (3, TypeError, "kernel must be a kernel, a name such as 'rbf'.*got int"),
        (None, TypeError, "got NoneType"),
        (RBF, TypeError, r"kernel is the class RBF; make one: RBF\(\)"),
        (gp.RBF, TypeError, r"kernel is the class RBF; make one: RBF\(\)"),
    ],
)
def test_what_is_no_kernel(bad, error, message):
    with pytest.raises(error, match=message):
        as_kernel(bad)


def test_noise_is_not_similarity():
    with pytest.raises(ValueError, match="WhiteKernel is noise, not similarity"):
        as_kernel(gp.RBF() + gp.WhiteKernel())(X)


class Negated(gp.RBF):
    """A class of one's own, which inherits nothing that would make it valid."""

    def __call__(self, X, Y=None, eval_gradient=False):
        return -super().__call__(X, Y)

    def diag(self, X):
        return -super().diag(X)


def test_compound_gp_kernels_are_refused():
    with pytest.raises(ValueError, match="CompoundKernel holds several kernels"):
        as_kernel(gp.CompoundKernel([gp.RBF()]))(X)


@pytest.mark.parametrize(
    "peer", [gp.PairwiseKernel(metric="sigmoid"), gp.RBF() ** 0.5, gp.ExpSineSquared(), Negated()]
)
def test_gp_kernels_of_unknown_validity(peer):
    assert as_kernel(peer).is_psd is None


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # printing ConstantKernel(-1)
@pytest.mark.parametrize(
    "peer",
    [
        gp.ExpSineSquared(),
        gp.RBF() + 3.0 * gp.ExpSineSquared(),
        gp.ConstantKernel(-1.0) * gp.RBF(),
        gp.RationalQuadratic(alpha=-1.0),
        Negated(),
    ],
    ids=["periodic", "inside a sum", "negative constant", "negative alpha", "own class"],
)
def test_invalid_gp_kernels_are_refused(peer):
    """ExpSineSquared takes the sine of one distance over three columns."""
    points = np.random.default_rng(0).normal(size=(30, 3))
    assert np.linalg.eigvalsh(peer(points)).min() < -0.1
    with pytest.raises(NotPSDError):
        KernelMap(peer).fit(points)


def test_a_periodic_gp_kernel_of_one_column_is_tested_and_used():
    points = np.random.default_rng(0).normal(size=(30, 1))
    Phi = KernelMap(gp.ExpSineSquared()).fit_transform(points)
    assert_allclose(Phi @ Phi.T, gp.ExpSineSquared()(points), atol=1e-7)


def test_gp_kernels_need_numpy():
    strict = pytest.importorskip("array_api_strict")
    with pytest.raises(TypeError, match="dense NumPy arrays only"):
        as_kernel(gp.RBF())(strict.asarray(X))
    with pytest.raises(TypeError, match="dense NumPy arrays only"):
        as_kernel(gp.RBF())(scipy.sparse.csr_array(X))


# --- FromFunction ---------------------------------------------------------------------------------


@pytest.mark.parametrize("container", [list, tuple, np.array, lambda w: np.array(w, dtype=object)])
def test_objects_in_any_container(container):
    expected = [[shared_letters(a, b) for b in WORDS] for a in WORDS]
    kernel = FromFunction(shared_letters)
    assert_array_equal(kernel(container(WORDS)), expected)
    assert_array_equal(kernel(container(WORDS), WORDS[:2]), np.array(expected)[:, :2])
    assert_array_equal(kernel.diag(container(WORDS)), np.diagonal(expected))


def test_objects_of_any_kind():
    sets = [{1, 2}, {2, 3}, set()]
    assert_array_equal(
        FromFunction(lambda a, b: len(a & b))(sets), [[2, 1, 0], [1, 2, 0], [0, 0, 0]]
    )
    ragged = [[1, 2], [3], [4, 5, 6]]
    assert_array_equal(FromFunction(lambda a, b: len(a) * len(b))(ragged)[0], [4, 2, 6])
    even = [[1, 2], [3, 4]]  # looks like a matrix: rows are the objects all the same
    assert_array_equal(FromFunction(lambda a, b: sum(a) * sum(b))(even), [[9, 21], [21, 49]])
    graphs = [{"nodes": 3}, {"nodes": 4}]
    assert FromFunction(lambda a, b: a["nodes"] * b["nodes"])(graphs)[0, 1] == 12


def test_rows_of_arrays_are_objects():
    kernel = FromFunction(lambda x, z: float(x @ z))
    assert_allclose(kernel(X), X @ X.T)
    assert_allclose(FromFunction(lambda X, Z: X @ Z.T, vectorized=True)(X, X[:2]), X @ X[:2].T)


def test_vectorized_on_torch():
    torch = pytest.importorskip("torch", reason="torch is not installed: make torch")
    K = FromFunction(lambda X, Z: X @ Z.T, vectorized=True)(torch.asarray(X))
    assert isinstance(K, torch.Tensor)
    assert_allclose(as_numpy(K), X @ X.T)


def test_vectorized_functions_of_strings_get_lists():
    def lengths(a, b):
        assert isinstance(a, list)
        return np.outer([len(w) for w in a], [len(w) for w in b])

    assert FromFunction(lengths, vectorized=True)(WORDS)[0, 1] == 20


@pytest.mark.parametrize(
    ("f", "vectorized", "error", "message"),
    [
        (lambda a, b: 1j, False, TypeError, "returned the complex number 1j; kernels are real"),
        (lambda a, b: np.complex128(1j), False, TypeError, "returned the complex number"),
        (lambda a, b: "much", False, TypeError, "must return one number for two points, got str"),
        (lambda a, b: [1, 2], False, TypeError, "must return one number for two points, got list"),
        (
            lambda a, b: None,
            False,
            TypeError,
            "must return one number for two points, got NoneType",
        ),
        (lambda a, b: float("nan"), False, ValueError, "returned NaN or infinity"),
        (lambda a, b: np.ones(3), True, ValueError, r"values of shape \(3,\), expected \(4, 4\)"),
        (lambda a, b: np.ones((4, 4)) * 1j, True, TypeError, "returned complex numbers"),
        (lambda a, b: [["a"] * 4] * 4, True, TypeError, "must return numbers, got dtype"),
        ("rbf", False, TypeError, r"FromFunction\(f\) must be a function, got 'rbf'"),
    ],
)
def test_what_functions_return_is_checked(f, vectorized, error, message):
    with pytest.raises(error, match=message):
        FromFunction(f, vectorized=vectorized)(WORDS)


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (
            "apple",
            TypeError,
            r"sequence of objects, got str: 'apple'.*Put a single object into a list",
        ),
        (3, TypeError, "sequence of objects, got int: 3"),
        ([], ValueError, "X is empty; a kernel needs a point"),
    ],
)
def test_bad_sequences(bad, error, message):
    with pytest.raises(error, match=message):
        FromFunction(shared_letters)(bad)


def test_errors_of_user_code_come_through():
    def broken(a, b):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        FromFunction(broken)(WORDS)


# --- FromFeatures ---------------------------------------------------------------------------------


def test_text_features_stay_sparse():
    count = CountVectorizer().fit(WORDS)
    kernel = FromFeatures(count.transform)
    C = count.transform(WORDS).toarray()
    assert_allclose(kernel(WORDS), C @ C.T)
    assert_allclose(kernel.diag(WORDS), np.diagonal(C @ C.T))
    assert_allclose(kernel.explicit(WORDS), C)


@pytest.mark.parametrize(
    ("g", "error", "message"),
    [
        (lambda words: [1, 2, 3, 4], ValueError, r"one row of features for each of the 4.*\(4,\)"),
        (lambda words: np.ones((3, 2)), ValueError, r"each of the 4 points, got shape \(3, 2\)"),
        (lambda words: np.ones((4, 2)) * 1j, ValueError, r"g\(X\) has dtype complex128"),
        (lambda words: np.full((4, 2), np.nan), ValueError, r"g\(X\) contains NaN"),
        (None, TypeError, r"FromFeatures\(g\) must be a function"),
    ],
)
def test_what_feature_functions_return_is_checked(g, error, message):
    with pytest.raises(error, match=message):
        FromFeatures(g)(WORDS)


# --- Precomputed ----------------------------------------------------------------------------------


def test_precomputed_gives_back_the_matrix():
    K = X @ X.T
    assert_array_equal(Precomputed()(K), K)
    assert_array_equal(Precomputed().diag(K), np.diagonal(K))


def test_precomputed_refuses():
    with pytest.raises(ValueError, match=r"square Gram matrix here, got shape \(2, 6\)"):
        Precomputed()(np.ones((2, 6)))
    with pytest.raises(ValueError, match=r"does not know k\(z, z\) of new points.*diag="):
        Precomputed().diag(np.ones((2, 6)))
    with pytest.raises(TypeError, match="holds kernel values already"):
        Precomputed()(np.eye(2), np.eye(2))
    with pytest.raises(TypeError, match="holds kernel values already"):
        (2 * Precomputed())(np.eye(2), np.eye(2))
    with pytest.raises(ValueError, match="contains NaN"):
        Precomputed()(np.full((2, 2), np.nan))


def test_precomputed_against_landmarks():
    kernel = Precomputed()
    K = X @ X.T
    tile = kernel.against(kernel.landmarks(K, np.array([4, 1])))
    assert_array_equal(tile(K[:3]), K[:3][:, [4, 1]])
    with pytest.raises(ValueError, match="against the 6 training points, got 5 columns"):
        tile(np.ones((2, 5)))
