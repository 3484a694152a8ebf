import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mercer import (
    RBF,
    FromFunction,
    Kernel,
    KernelMap,
    Linear,
    MercerReport,
    NotPSDError,
    Polynomial,
    Precomputed,
    Sigmoid,
    check_mercer,
)

X = np.random.default_rng(0).normal(size=(60, 3))


def is_witness(report, K):
    a = report.witness
    return a @ K[np.ix_(report.indices, report.indices)] @ a < 0


def test_sigmoid_is_refuted():
    report = check_mercer(Sigmoid(gamma=1.0, coef0=-1.0), X)
    assert not report
    assert report.symmetric
    assert not report.psd
    assert report.min_eigenvalue < -0.1
    assert "refuted" in report.verdict
    assert is_witness(report, Sigmoid(1.0, -1.0)(X))
    assert report.witness_value < 0


def test_a_function_that_is_not_symmetric_is_refuted():
    report = check_mercer(FromFunction(lambda x, z: float(x[0] - z[0])), X)
    assert not report.symmetric
    assert report.asymmetry > 1
    assert "refuted" in report.verdict
    assert not report


def test_a_similarity_with_a_negative_eigenvalue_is_refuted():
    K = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]])
    report = check_mercer(Precomputed(), K)
    assert report.symmetric
    assert not report.psd
    assert report.min_eigenvalue == pytest.approx(1 - 0.9 * np.sqrt(2))
    assert is_witness(report, K)


def test_a_hollow_matrix_is_refuted():
    assert not check_mercer("precomputed", [[0.0, 1.0], [1.0, 0.0]]).psd


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_tolerances_are_relative(size):
    bad = size * np.array([[1.0, 1.001], [1.001, 1.0]])
    good = size * np.array([[1.0, 1.0], [1.0, 1.0]])
    assert not check_mercer("precomputed", bad).psd
    assert check_mercer("precomputed", good).psd


def test_the_smallest_refutable_eigenvalue():
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(50, 50)))[0]
    values = np.ones(50)
    values[0] = -1e-11
    K = (Q * values) @ Q.T
    assert not check_mercer("precomputed", (K + K.T) / 2).psd
    values[0] = 0
    K = (Q * values) @ Q.T
    report = check_mercer("precomputed", (K + K.T) / 2)
    assert report.psd
    assert report.rank == 49


def test_valid_by_construction_is_reported_as_such():
    report = check_mercer(RBF() * Linear() + 1, X)
    assert report
    assert report.psd
    assert report.witness is None
    assert report.verdict == "valid by construction; the data agree"


def test_a_sample_proves_nothing():
    report = check_mercer(FromFunction(lambda x, z: float(x @ z)), X)
    assert report
    assert report.verdict == "not refuted on this data (a sample cannot prove validity)"
    assert report.rank == 3


def test_rank():
    assert check_mercer(Linear(), X).rank == 3
    assert check_mercer(Polynomial(2), X).rank == 10
    assert check_mercer(Linear(), np.zeros((4, 2))).rank == 0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_year_column_does_not_refute(dtype):
    far = (X + [0, 0, 2000]).astype(dtype)
    assert check_mercer(FromFunction(lambda A, B: RBF(0.1)(A, B), vectorized=True), far).psd


def test_large_inputs_are_sampled_and_said_to_be():
    report = check_mercer(Linear(), X, max_points=20)
    assert (report.n_points, report.n_given) == (20, 60)
    assert "20 (sampled from 60)" in str(report)
    assert len(set(report.indices)) == 20
    again = check_mercer(Linear(), X, max_points=20)
    assert_array_equal(again.indices, report.indices)
    other = check_mercer(Linear(), X, max_points=20, random_state=1)
    assert set(other.indices) != set(report.indices)
    gram = check_mercer("precomputed", X @ X.T, max_points=20)
    assert gram.rank == 3


def test_gamma_is_bound_on_all_points_not_the_sample():
    assert check_mercer(RBF(), X, max_points=5).kernel == RBF().bind(X)


def test_text_and_html():
    report = check_mercer(Sigmoid(gamma=1.0, coef0=-1.0), X)
    text = str(report)
    assert text == repr(report)
    assert text.startswith("check_mercer(Sigmoid(coef0=-1.0))")
    for label in ("verdict:", "points:", "symmetric:", "eigenvalues:", "rank:", "witness:"):
        assert label in text
    assert "a'Ka = -" in text
    html = check_mercer(FromFunction(lambda x, z: float(x @ z)), X)._repr_html_()
    assert html.startswith("<table>")
    assert "&lt;lambda&gt;" in html
    assert "<lambda>" not in html


def test_names_functions_strings_and_torch_are_accepted():
    assert check_mercer("rbf", X).psd
    assert check_mercer(lambda a, b: float(a == b), ["x", "y", "x"]).rank == 2
    torch = pytest.importorskip("torch", reason="torch is not installed: make torch")
    assert check_mercer("rbf", torch.asarray(X)).psd


@pytest.mark.parametrize("bad", [1, 0, 2.5, "all", None, True])
def test_bad_max_points(bad):
    with pytest.raises(ValueError, match="max_points must be an integer of at least 2"):
        check_mercer(Linear(), X, max_points=bad)


def test_one_point():
    assert check_mercer(Linear(), X[:1]).rank == 1
    negative = check_mercer("precomputed", [[-1.0]])
    assert not negative.psd


def test_the_report_is_frozen_and_pickles():
    report = check_mercer(Linear(), X)
    with pytest.raises(AttributeError):
        report.psd = False
    assert isinstance(pickle.loads(pickle.dumps(report)), MercerReport)


def test_not_psd_error_keeps_its_witness():
    error = pickle.loads(pickle.dumps(NotPSDError("no", witness=np.array([1.0]))))
    assert str(error) == "no Witness: a'Ka < 0 with a[0] = +1."
    assert error.witness.tolist() == [1.0]
    assert isinstance(error, ValueError)


class Tanh(Kernel):
    """A user's class, which says that it is valid, and is not."""

    is_psd = True

    def against(self, S):
        return lambda rows, columns=slice(None): np.tanh(rows @ S[columns].T - 1)

    def diagonal(self, X):
        return np.tanh((X * X).sum(axis=1) - 1)


class Plain(Tanh):
    """A user's class that says nothing, and is valid."""

    is_psd = None

    def against(self, S):
        return lambda rows, columns=slice(None): rows @ S[columns].T

    def diagonal(self, X):
        return (X * X).sum(axis=1)


def test_a_class_that_says_nothing_is_not_believed():
    assert Kernel().is_psd is None
    assert RBF().is_psd is True
    assert (RBF() * Linear() + 1).is_proven
    assert not Tanh().is_proven
    assert not (RBF() + Tanh()).is_proven


@pytest.mark.parametrize("kernel", [Tanh(), RBF(0.01) + Tanh()], ids=["Tanh", "RBF + Tanh"])
def test_the_data_refute_what_a_class_says_of_itself(kernel):
    report = check_mercer(kernel, X)
    assert not report
    assert report.witness_value < 0
    assert report.verdict.startswith("refuted: Tanh says is_psd = True, and is wrong")
    with pytest.raises(NotPSDError, match="not positive semi-definite"):
        KernelMap(kernel).fit(X)


def test_a_valid_class_is_not_refuted():
    assert check_mercer(Plain(), X).verdict.startswith("not refuted")
    kernel_map = KernelMap(Plain()).fit(X)
    assert kernel_map.rank_ == 3
    assert kernel_map.error_bound(X).max() < 1e-10


def test_no_certificate_for_rows_that_refute_the_kernel():
    """Valid on the training rows; k(z, z) of a new row is below what the map sees of it."""
    kernel_map = KernelMap(FromFunction(lambda a, b: float(a @ b))).fit(X)
    assert kernel_map.error_bound(X).shape == (60, 60)
    far = np.array([[30.0, 0.0, 0.0]])
    assert kernel_map.error_bound(far, X).max() < 1e-9
    with pytest.raises(NotPSDError, match="no certificate holds"):
        kernel_map.error_bound(far, X, diag=[1.0])


def test_a_negative_eigenvalue_among_points_of_small_scale():
    """k(x, x) spans twelve orders; the similarity of the two small points is above 1."""
    scale = np.array([1e6, 1e6, 1.0, 1.0])
    N = np.eye(4)
    N[2, 3] = N[3, 2] = 1.0001
    index = np.arange(4.0)[:, None]
    values = N * np.outer(scale, scale)
    kernel = FromFunction(lambda a, b: float(values[int(a[0]), int(b[0])]))
    assert not check_mercer(kernel, index).psd
    with pytest.raises(NotPSDError, match="smallest eigenvalue of the normalised"):
        KernelMap(kernel).fit(index)


@pytest.mark.parametrize("shape", [(2, 3), (3, 2)])
def test_a_gram_matrix_is_square(shape):
    with pytest.raises(ValueError, match="needs a square Gram matrix at fit"):
        check_mercer(Precomputed(), np.ones(shape))
