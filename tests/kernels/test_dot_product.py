import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise

from mercer import Cosine, FromFeatures, Kernel, Linear, Polynomial, QuadraticForm, Sigmoid

rng = np.random.default_rng(0)
X = rng.normal(size=(20, 5))
X[-1] = X[0]
Y = rng.normal(size=(7, 5))
FAR = X + [0, 0, 2000, 0, 0]

FOUR_POINTS = np.array([[1.0, 1.0], [2.0, 4.0], [-1.0, 1.0], [-2.0, 4.0]])


@pytest.mark.parametrize("data", [X, FAR], ids=["near", "far"])
@pytest.mark.parametrize(
    ("kernel", "peer"),
    [
        (Linear(), pairwise.linear_kernel),
        (Polynomial(2, 0.3, 0.7), lambda X, Y: pairwise.polynomial_kernel(X, Y, 2, 0.3, 0.7)),
        (Polynomial(9, 0.1, 1.0), lambda X, Y: pairwise.polynomial_kernel(X, Y, 9, 0.1, 1.0)),
        (Cosine(), pairwise.cosine_similarity),
        (Sigmoid(0.02, 0.1), lambda X, Y: pairwise.sigmoid_kernel(X, Y, 0.02, 0.1)),
        (Linear() + 1, lambda X, Y: gp.DotProduct(sigma_0=1.0)(X, Y)),
        ((Linear() + 4) ** 2, lambda X, Y: (gp.DotProduct(sigma_0=2.0) ** 2)(X, Y)),
    ],
    ids=lambda v: repr(v) if isinstance(v, Kernel) else None,
)
def test_agrees_with_scikit_learn(kernel, peer, data):
    K = kernel(data, Y)
    size = np.sqrt(np.abs(np.outer(kernel.diag(data), kernel.diag(Y))))
    assert (np.abs(K - peer(data, Y)) <= 1e-12 * size).all()
    K = kernel(data)
    size = np.sqrt(np.abs(np.outer(kernel.diag(data), kernel.diag(data))))
    assert (np.abs(K - peer(data, data)) <= 1e-12 * size).all()


def test_worked_example_of_the_slides():
    """MATH.md section 3: every entry is an integer, so equality is exact."""
    K = Polynomial(degree=2)(FOUR_POINTS)
    assert_array_equal(K, [[9, 49, 1, 9], [49, 441, 9, 169], [1, 9, 9, 49], [9, 169, 49, 441]])
    H = np.eye(4) - 1 / 4
    centred = [[67, -43, 59, -83], [-43, 199, -83, -73], [59, -83, 67, -43], [-83, -73, -43, 199]]
    assert_allclose(H @ K @ H, centred, atol=1e-12)
    J = np.full((4, 4), 1 / 4)
    assert_allclose(K - J @ K - K @ J + J @ K @ J, centred, atol=1e-12)  # as printed
    n_lambda = [277.9275172, 252, 2.0724828, 0]
    assert_allclose(np.linalg.eigvalsh(H @ K @ H)[::-1], n_lambda, atol=5e-8)
    F = Polynomial(degree=2).explicit(FOUR_POINTS)
    assert_allclose((F - F.mean(axis=0)) @ (F - F.mean(axis=0)).T, centred, atol=1e-12)


def test_question_1_the_plane_goes_to_six_dimensions():
    """[SLIDES] question 1: more principal components than columns; [KERNELS] (1)."""
    assert Polynomial(2).explicit_dim(2) == 6
    points = rng.normal(size=(1000, 2))
    F = Polynomial(2).explicit(points)
    assert np.linalg.matrix_rank(F) == 6
    assert_allclose(F @ F[:9].T, (1 + points @ points[:9].T) ** 2, atol=1e-11)
    x1, x2 = 3.0, 5.0
    expected = [1, math.sqrt(2) * x1, math.sqrt(2) * x2, x1**2, x2**2, math.sqrt(2) * x1 * x2]
    assert_allclose(sorted(Polynomial(2).explicit([[x1, x2]])[0]), sorted(expected))


def test_question_2_three_dimensions_go_to_ten():
    assert Polynomial(2).explicit_dim(3) == 10
    assert np.linalg.matrix_rank(Polynomial(2)(rng.normal(size=(200, 3)))) == 10


def test_question_3_a_feature_map_makes_the_kernel():
    """[SLIDES] question 3, option c."""
    kernel = FromFeatures(
        lambda X: np.column_stack(
            [np.ones(len(X)), math.sqrt(2) * X[:, 0] ** 2, math.sqrt(2) * X[:, 1] ** 2]
        )
    )
    x, y = rng.normal(size=(2, 1, 2))
    expected = 1 + 2 * x[0, 0] ** 2 * y[0, 0] ** 2 + 2 * x[0, 1] ** 2 * y[0, 1] ** 2
    assert kernel(x, y)[0, 0] == pytest.approx(expected)
    assert kernel.explicit_dim(2) == 3


@pytest.mark.parametrize("d", [1, 2, 3, 7])
@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_dimension_of_polynomial_spaces(d, p):
    """MATH.md section 5: C(d+p, p) with a constant, C(d+p-1, p) without."""
    assert Polynomial(p, coef0=1.0).explicit_dim(d) == math.comb(d + p, p)
    assert Polynomial(p, coef0=0.0).explicit_dim(d) == math.comb(d + p - 1, p)
    Z = rng.normal(size=(3, d))
    assert Polynomial(p).explicit(Z).shape == (3, math.comb(d + p, p))


def test_the_mnist_kernels_of_exact():
    """[EXACT]: k1 = <x,z>^9 and k2 = ((<2x-1, 2z-1> + 1)/2)^9 with <x,z> = x.z/784."""
    pixels = np.random.default_rng(1).uniform(size=(5, 784))
    k1 = Polynomial(9, gamma=1 / 784, coef0=0.0)
    assert_allclose(k1(pixels), (pixels @ pixels.T / 784) ** 9, rtol=1e-12)
    signs = 2 * pixels - 1
    k2 = Polynomial(9, gamma=0.5 / 784, coef0=0.5)
    assert_allclose(k2(signs), ((signs @ signs.T / 784 + 1) / 2) ** 9, rtol=1e-12)


def test_cosine_of_zero_tiny_and_huge_rows():
    Z = np.array([[0.0, 0.0], [1e-200, 0.0], [1e200, 1e200], [1.0, 1.0]])
    half = math.sqrt(0.5)
    expected = [[0, 0, 0, 0], [0, 1, half, half], [0, half, 1, 1], [0, half, 1, 1]]
    assert_allclose(Cosine()(Z), expected, atol=1e-15)
    assert_allclose(Cosine().diag(Z), [0, 1, 1, 1], atol=1e-15)


def test_quadratic_form_of_a_product():
    B = rng.normal(size=(3, 5))
    kernel = QuadraticForm(B.T @ B)
    assert_allclose(kernel(X, Y), (X @ B.T) @ (Y @ B.T).T, atol=1e-12)
    assert kernel.explicit_dim(5) == 3
    assert kernel.explicit(X).shape == (20, 3)


@pytest.mark.parametrize(
    ("A", "message"),
    [
        ([[1.0, 2.0], [0.0, 1.0]], r"symmetric A; \|A - A'\| reaches 2"),
        ([[1.0, 2.0], [2.0, 1.0]], "smallest eigenvalue is -1"),
        ([[1.0, 2.0]], r"square matrix, got shape \(1, 2\)"),
        ([1.0, 2.0], r"square matrix, got shape \(2,\)"),
        ([[np.nan]], "A contains NaN or infinity"),
        ("identity", "square matrix of numbers, got 'identity'"),
        ([["a"]], "square matrix of numbers"),
    ],
)
def test_quadratic_form_checks_its_matrix(A, message):
    with pytest.raises(ValueError, match=message):
        QuadraticForm(A)(np.ones((3, 2)))


def test_quadratic_form_names_both_sizes():
    with pytest.raises(ValueError, match="A is 2 x 2 and X has 3 columns"):
        QuadraticForm(np.eye(2))(np.ones((4, 3)))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Polynomial(degree=0), r"integer >= 1, got 0"),
        (Polynomial(degree=2.5), r"integer >= 1, got 2.5"),
        (Polynomial(degree=np.nan), r"integer >= 1, got nan"),
        (Polynomial(degree="3"), r"integer >= 1, got '3'"),
        (Polynomial(gamma=-1.0), r"Polynomial\(gamma\) must be a positive number"),
        (Polynomial(gamma="scale"), r"Polynomial\(gamma='scale'\) is unknown; use a number"),
        (Polynomial(coef0=np.inf), r"coef0\) must be a finite number, got inf"),
        (Polynomial(coef0=None), r"coef0\) must be a finite number, got None"),
        (Polynomial(gamma=[1.0, 2.0]), "2 per-column values were given for data with 5 columns"),
        (Sigmoid(gamma=np.nan), r"Sigmoid\(gamma\) must be a number"),
        (Sigmoid(coef0="x"), r"Sigmoid\(coef0\) must be a finite number, got 'x'"),
    ],
)
def test_bad_parameters_are_named(kernel, message):
    with pytest.raises((ValueError, TypeError), match=message):
        kernel(X)


def test_negative_coef0_is_not_a_kernel():
    kernel = Polynomial(2, coef0=-1.0)
    assert kernel.is_psd is False
    assert kernel.explicit_dim(3) is None
    with pytest.raises(ValueError, match="coef0 < 0"):
        kernel.explicit(X)


def test_linear_is_a_plain_product():
    assert Linear().explicit(X) is X
    assert_array_equal(Linear()(X, Y), X @ Y.T)


def test_sigmoid_beyond_the_largest_number_is_refused():
    """inf - inf would be NaN."""
    X = [[2.0, 1.0], [-1.0, 3.0]]
    for kernel in (Sigmoid(1e308, 1e308), Sigmoid(1e308, -1e308), Sigmoid([1e308, 1e308], 0.0)):
        with pytest.raises(ValueError, match="overflows float64"):
            kernel(X)
    assert np.isfinite(Sigmoid(1e300, 1.0)(X)).all()
