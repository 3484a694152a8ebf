"""KernelPCA: four forms and three solvers, one answer; and scikit-learn's."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_blobs, make_circles
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Reference
from sklearn.linear_model import Perceptron
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import (
    RBF,
    FromFunction,
    KernelMap,
    KernelPCA,
    Linear,
    Matern,
    NotPSDError,
    Polynomial,
    Sigmoid,
)
from mercer.engine.arrays import as_numpy
from mercer.estimators.base import kernel_of

FORMS = ("combined", "dual", "primal", "classical")
# [SLIDES]: four points worked by hand.
FOUR = np.array([[1.0, 1.0], [2.0, 4.0], [-1.0, 1.0], [-2.0, 4.0]])


def literal(form, K, K_new, k):
    """The equations of [EXACT] as printed, for a well conditioned K."""
    n = len(K)
    H = np.eye(n) - 1 / n
    if form == "classical":  # Appendix A: the centred kernel matrix of new points
        values, U = np.linalg.eigh(H @ K @ H)
        U, values = U[:, ::-1][:, :k], values[::-1][:k]
        centred = (K_new - K.mean(axis=0)) @ H
        return values, centred @ U / np.sqrt(values)
    values, a = np.linalg.eig(K @ H)  # (14), (21): one eigenproblem, not symmetric
    order = np.argsort(-values.real)[:k]
    values, a = values.real[order], a.real[:, order]
    if form == "primal":  # (15), (16)
        u = a / np.sqrt(np.einsum("ij,ij->j", a, np.linalg.solve(K, a)))
        return values, K_new @ np.linalg.solve(K, u) - u.mean(axis=0)
    a = a / np.sqrt(np.einsum("ij,ij->j", a, H @ K @ H @ a))  # (22)
    if form == "dual":  # (23)
        return values, (K_new - K.mean(axis=0)) @ H @ a
    return values, K_new @ (a - a.mean(axis=0)) - values * a.mean(axis=0)  # (25)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(80, 5)), rng.normal(size=(30, 5))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_its_printed_equation(form, data, there):
    X, Z = data
    kernel = Matern(nu=0.5, length_scale=2.0)  # well conditioned: inverses exist
    values, scores = literal(form, kernel(X), kernel(Z, X), 6)
    model = there(KernelPCA(6, kernel, form=form)).fit(X)
    assert_allclose(model.eigenvalues_, values, rtol=1e-10)
    assert_allclose(np.abs(model.transform(Z)), np.abs(scores), atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", [RBF(0.3), RBF(0.01), Polynomial(3)], ids=repr)
def test_forms_agree_with_scikit_learn(form, kernel, data, there):
    X, Z = data
    reference = Reference(20, kernel="precomputed").fit(kernel(X))
    model = there(KernelPCA(20, kernel, form=form))
    scores = model.fit_transform(X)
    expected = reference.transform(kernel(Z, X))
    size = np.sqrt(reference.eigenvalues_[0])
    assert_allclose(model.eigenvalues_, reference.eigenvalues_, atol=1e-12 * size**2)
    # A score is k_z'u / sqrt(value): rounding of k_z grows by sqrt(largest / smallest value).
    amplified = 1e-13 * size / np.sqrt(reference.eigenvalues_[-1])
    assert_allclose(np.abs(model.transform(Z)), np.abs(expected), atol=100 * size * amplified)
    assert_allclose(model.transform(X), scores, atol=100 * size * amplified)


@pytest.mark.parametrize("solver", ["dense", "factor", "krylov"])
def test_solvers_agree(solver, data, there):
    X, Z = data
    model = there(KernelPCA(7, RBF(0.1), solver=solver)).fit(X)
    reference = Reference(7, kernel="rbf", gamma=0.1, eigen_solver="dense").fit(X)
    assert_allclose(model.eigenvalues_, reference.eigenvalues_, rtol=1e-10)
    assert_allclose(np.abs(model.eigenvectors_), np.abs(reference.eigenvectors_), atol=1e-6)
    assert_allclose(np.abs(model.transform(Z)), np.abs(reference.transform(Z)), atol=1e-6)
    assert_allclose(
        model.explained_variance_ratio_,
        reference.eigenvalues_ / np.trace(reference._centerer.transform(RBF(0.1)(X))),
        rtol=1e-10,
    )


@pytest.mark.parametrize("solver", ["dense", "factor", "krylov"])
def test_the_worked_example(solver, there):
    model = there(KernelPCA(3, Polynomial(degree=2), solver=solver))
    scores = model.fit_transform(FOUR)
    assert_allclose(model.eigenvalues_, [277.9275172, 252.0, 2.0724828], atol=1e-6)
    expected = [
        [1.72801191, -7.93725393, -1.00696319],
        [11.66094908, 7.93725393, 0.14921979],
        [-1.72801191, -7.93725393, 1.00696319],
        [-11.66094908, 7.93725393, -0.14921979],
    ]
    assert_allclose(np.abs(scores), np.abs(expected), atol=1e-7)


def test_small_eigenvalues_keep_their_digits(there):
    # The re-centring of MATH.md section 3: all components of a smooth kernel, new points included.
    X = np.random.default_rng(0).normal(size=(300, 2))
    Z = np.random.default_rng(1).normal(size=(50, 2))
    model = there(KernelPCA(60, RBF(0.5), solver="dense")).fit(X)
    kernel_map = there(KernelMap(RBF(0.5), center=True)).fit(X)
    Phi, Psi = kernel_map.transform(X), kernel_map.transform(Z)
    inner = model.transform(X) @ model.transform(Z).T
    kept = PCA(60).fit(Phi)
    assert_allclose(inner, kept.transform(Phi) @ kept.transform(Psi).T, atol=1e-7)


def test_direct_pca_on_the_map_is_the_same(data, there):
    X, Z = data
    kernel_map = there(KernelMap(RBF(0.2))).fit(X)
    direct = PCA(4).fit(kernel_map.transform(X))
    model = there(KernelPCA(4, RBF(0.2))).fit(X)
    assert_allclose(model.eigenvalues_, direct.singular_values_**2, rtol=1e-10)
    expected = direct.transform(kernel_map.transform(Z))
    assert_allclose(np.abs(model.transform(Z)), np.abs(expected), atol=1e-9)


@pytest.mark.parametrize("basis", ["cholesky", "eigen", "symmetric", "closed"])
@pytest.mark.parametrize("options", [{}, {"center": True}, {"append_residual": True}], ids=str)
def test_every_basis_of_a_map_gives_the_same(basis, options, data, there):
    X, Z = data
    kernel = Polynomial(2, gamma=0.2)
    expected = there(KernelPCA(5, kernel)).fit(X)
    model = there(KernelPCA(5, KernelMap(kernel, basis=basis, **options))).fit(X)
    assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-10)
    assert_allclose(model.transform(Z), expected.transform(Z), atol=1e-9)


def test_a_truncated_map_uses_its_landmarks_only(data, there):
    X, _ = data
    model = there(KernelPCA(3, KernelMap(RBF(0.05), max_rank=30))).fit(X)
    assert model.kernel_map_.landmarks_.shape == (30, 5)
    assert not hasattr(model, "X_fit_")
    exact = there(KernelPCA(3, RBF(0.05))).fit(X)
    assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=0.02)


# --- how many components ------------------------------------------------------------------------


def test_a_share_of_the_variance(data, there):
    X, _ = data
    full = there(KernelPCA(kernel=RBF(0.1))).fit(X)
    for solver in ("dense", "factor"):
        model = there(KernelPCA(0.8, RBF(0.1), solver=solver)).fit(X)
        assert model.explained_variance_ratio_.sum() >= 0.8
        assert model.explained_variance_ratio_[:-1].sum() < 0.8
        assert_allclose(model.eigenvalues_, full.eigenvalues_[: model.n_components_], rtol=1e-10)
    assert_allclose(full.explained_variance_ratio_.sum(), 1.0)


def test_zero_eigenvalues_are_left_out(there):
    X = np.array([[1 - 1e-30, 1], [1, 1], [1, 1 - 1e-20]])
    assert there(KernelPCA(kernel="linear")).fit_transform(X).shape == (3, 0)
    assert there(KernelPCA(kernel="linear", solver="factor")).fit(X).transform(X).shape == (3, 0)


@pytest.mark.parametrize("solver", ["dense", "factor", "krylov"])
def test_more_components_than_the_rank_are_zeros_with_a_warning(solver):
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.warns(UserWarning, match="rank 3"):
        model = KernelPCA(5, Linear(), solver=solver).fit(X)
    scores = model.transform(X)
    assert scores.shape == (20, 5)
    assert_array_equal(scores[:, 3:], 0)
    assert_array_equal(model.eigenvalues_[3:], 0)
    with pytest.warns(UserWarning, match="rank 3"):
        assert_allclose(clone(model).fit_transform(X), scores, atol=1e-12)


def test_as_in_scikit_learn_there_are_no_more_columns_than_points(there):
    X = np.random.default_rng(0).normal(size=(5, 3))
    with pytest.warns(UserWarning, match="rank 4"):
        assert there(KernelPCA(10, RBF(1.0))).fit_transform(X).shape == (5, 5)
    assert Reference(10, kernel="rbf").fit_transform(X).shape == (5, 5)


def test_a_small_eigenvalue_that_is_rounding_is_zero():
    X = [[5, 1], [5 + 1e-8, 1e-8], [5 + 1e-8, 0]]
    with pytest.warns(UserWarning, match="rank 1"):
        assert KernelPCA(2, "linear").fit(X).eigenvalues_.min() == 0


# --- scikit-learn's own behaviours ----------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "cosine", "sigmoid"])
def test_fit_transform_is_fit_and_transform(kernel, there):
    rng = np.random.default_rng(0)
    X, Z = rng.random((6, 4)), rng.random((2, 4))
    model = there(KernelPCA(3, kernel))
    assert_allclose(model.fit_transform(X), model.transform(X), atol=1e-12)
    scores = model.transform(Z)
    assert scores.shape == (2, 3)
    assert model.inverse_transform(scores).shape == (2, 4)


def test_changes_of_the_data_after_fit_do_not_matter():
    X = np.random.default_rng(0).random((10, 10))
    for solver in ("dense", "factor"):
        A = X.copy()
        model = KernelPCA(solver=solver).fit(A)
        before = model.transform(X)
        A[:, 0] = 666
        assert_array_equal(model.transform(X), before)


@pytest.mark.parametrize("solver", ["dense", "factor", "krylov"])
def test_results_repeat(solver, there):
    X = np.random.default_rng(0).random((40, 10))
    first = there(KernelPCA(2, solver=solver, random_state=0)).fit_transform(X)
    for seed in range(3):
        again = there(KernelPCA(2, solver=solver, random_state=seed)).fit_transform(X)
        assert_allclose(again, first, atol=1e-6)  # signs too


def test_signs_make_the_largest_score_positive(data, there):
    scores = there(KernelPCA(6, RBF(0.1))).fit_transform(data[0])
    assert (scores.max(axis=0) >= -scores.min(axis=0)).all()


@pytest.mark.parametrize("container", [scipy.sparse.csr_matrix, scipy.sparse.csr_array])
@pytest.mark.parametrize("kernel", [Linear(), RBF(0.5), Polynomial(2)], ids=repr)
@pytest.mark.parametrize("solver", ["dense", "factor", "krylov"])
def test_sparse_rows(container, kernel, solver):
    X = np.random.default_rng(0).random((30, 4)) * (np.random.default_rng(1).random((30, 4)) > 0.5)
    dense = KernelPCA(3, kernel, solver=solver).fit(X)
    model = KernelPCA(3, kernel, solver=solver)
    assert_allclose(model.fit_transform(container(X)), dense.transform(X), atol=1e-9)
    assert_allclose(model.transform(container(X[:5])), dense.transform(X[:5]), atol=1e-9)


@pytest.mark.parametrize("n_features", [4, 10])
@pytest.mark.parametrize("solver", ["dense", "factor", "krylov"])
def test_a_linear_kernel_is_pca(solver, n_features, there):
    rng = np.random.default_rng(0)
    X, Z = rng.random((5, n_features)), rng.random((2, n_features))
    scores = there(KernelPCA(4, "linear", solver=solver)).fit(X).transform(Z)
    assert_allclose(np.abs(scores), np.abs(PCA(4).fit(X).transform(Z)), atol=1e-10)


@pytest.mark.parametrize("solver", ["dense", "factor", "krylov"])
def test_precomputed(solver):
    rng = np.random.default_rng(0)
    X, Z = rng.random((12, 4)), rng.random((2, 4))
    expected = KernelPCA(3, RBF(1.0)).fit(X)
    model = KernelPCA(3, "precomputed", solver=solver).fit(RBF(1.0)(X))
    assert_allclose(model.transform(RBF(1.0)(Z, X)), expected.transform(Z), atol=1e-10)
    assert model.__sklearn_tags__().input_tags.pairwise
    with pytest.raises(ValueError, match="square"):
        clone(model).fit(np.ones((3, 4)))
    assert not hasattr(model, "inverse_transform")  # the points are unknown


def test_asymmetry_that_centring_removes_is_accepted():
    model = KernelPCA(1, "precomputed").fit([[1, 2], [3, 40]])
    centred = KernelPCA(1, "precomputed").fit([[9, -9], [-9, 9]])
    assert_allclose(model.eigenvalues_, centred.eigenvalues_)
    assert_allclose(model.eigenvectors_, centred.eigenvectors_)
    with pytest.raises(ValueError, match="not symmetric"):
        KernelPCA(1, "precomputed").fit([[1.0, 2, 0], [3, 40, 1], [5, 0, 1]])


ISOMAP = [
    [4.48, -1.0, 8.07, 2.33, 2.33, 2.33, -5.76, -12.78],
    [-1.0, -6.48, 4.5, -1.24, -1.24, -1.24, -0.81, 7.49],
    [8.07, 4.5, 15.48, 2.09, 2.09, 2.09, -11.1, -23.23],
    [2.33, -1.24, 2.09, 4.0, -3.65, -3.65, 1.02, -0.9],
    [2.33, -1.24, 2.09, -3.65, 4.0, -3.65, 1.02, -0.9],
    [2.33, -1.24, 2.09, -3.65, -3.65, 4.0, 1.02, -0.9],
    [-5.76, -0.81, -11.1, 1.02, 1.02, 1.02, 4.86, 9.75],
    [-12.78, 7.49, -23.23, -0.9, -0.9, -0.9, 9.75, 21.46],
]


def test_negative_eigenvalues_are_refused_only_where_they_are_wanted():
    with pytest.raises(NotPSDError, match="significant negative eigenvalues") as caught:
        KernelPCA(7, "precomputed").fit(ISOMAP)
    witness = caught.value.witness
    assert witness @ np.array(ISOMAP) @ witness < 0
    with pytest.raises(NotPSDError, match="indefinite='clip'"):
        KernelPCA(kernel="precomputed").fit(ISOMAP)
    assert_allclose(KernelPCA(2, "precomputed").fit(ISOMAP).eigenvalues_, [52.72, 7.65], atol=0.01)
    clipped = KernelPCA(kernel=KernelMap("precomputed", indefinite="clip")).fit(ISOMAP)
    assert_allclose(clipped.eigenvalues_[:4], [52.72, 7.65, 7.65, 5.02], atol=0.01)


def test_nested_circles_become_separable():
    X, y = make_circles(n_samples=400, factor=0.3, noise=0.05, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the perceptron's five steps
        assert Perceptron(max_iter=5).fit(X, y).score(X, y) < 0.8
        scores = KernelPCA(2, RBF(2.0)).fit_transform(X)
        assert Perceptron(max_iter=5).fit(scores, y).score(scores, y) == 1.0


def test_grid_search_tunes_the_kernel():
    X, y = make_circles(n_samples=200, factor=0.3, noise=0.05, random_state=0)
    pipeline = make_pipeline(KernelPCA(2), Perceptron(max_iter=20, tol=None))
    grid = {"kernelpca__kernel__gamma": 2.0 ** np.arange(-2, 2)}
    assert GridSearchCV(pipeline, grid, cv=3).fit(X, y).best_score_ == 1
    precomputed = make_pipeline(KernelPCA(2, "precomputed"), Perceptron(max_iter=20, tol=None))
    grid = {"perceptron__alpha": [1e-4, 1e-3]}
    K = rbf_kernel(X, gamma=2.0)
    assert GridSearchCV(precomputed, grid, cv=3).fit(K, y).best_score_ == 1


def test_32_and_64_bits_find_the_same(there):
    X, _ = make_blobs(30, centers=[[0, 0, 0], [1, 1, 1]], random_state=0, cluster_std=0.1)
    X = StandardScaler().fit_transform(X)
    X -= X.min()
    for solver in ("dense", "factor"):
        model = there(KernelPCA(kernel="linear", solver=solver))
        double, single = model.fit_transform(X), model.fit_transform(X.astype(np.float32))
        assert single.dtype == np.float32
        assert single.shape == double.shape == (30, 3)
        assert_allclose(single, double, atol=1e-5 * np.abs(double).max())


def test_a_fit_in_double_precision_serves_single(data, there):
    X, Z = data
    model = there(KernelPCA(4, RBF(0.2))).fit(X)
    scores = model.transform(Z.astype(np.float32))
    assert scores.dtype == np.float32
    assert_allclose(scores, model.transform(Z), atol=1e-6)


def test_names_and_frames():
    X, _ = load_iris(as_frame=True, return_X_y=True)
    model = KernelPCA(2).set_output(transform="pandas")
    frame = model.fit_transform(X)
    assert list(frame.columns) == ["kernelpca0", "kernelpca1"]
    assert list(model.get_feature_names_out()) == ["kernelpca0", "kernelpca1"]
    assert list(model.feature_names_in_) == list(X.columns)


# --- arrays, objects, solvers' choice -------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "dense", "factor"])
@pytest.mark.parametrize("n_components", [3, None, 0.7])
def test_namespaces(xp, solver, n_components, data):
    X, Z = data
    expected = KernelPCA(n_components, RBF(0.3), solver=solver).fit(X)
    model = KernelPCA(n_components, RBF(0.3), solver=solver)
    scores = model.fit_transform(xp.asarray(X))
    assert isinstance(scores, type(xp.asarray(X)))
    assert_allclose(as_numpy(model.transform(xp.asarray(Z))), expected.transform(Z), atol=1e-9)
    assert_allclose(as_numpy(scores), expected.transform(X), atol=1e-9)
    back = model.inverse_transform(scores)
    assert_allclose(as_numpy(back), expected.inverse_transform(as_numpy(scores)), atol=1e-9)


def test_strings():
    words = ["ab", "abc", "bcd", "xyz", "xy", "abcd"]
    common = FromFunction(lambda s, t: float(len(set(s) & set(t))))
    scores = KernelPCA(2, common).fit(words).transform(["abx", "zz"])
    assert scores.shape == (2, 2)
    model = KernelPCA(2, common).fit(words)
    with pytest.raises(ValueError, match="not vectors"):
        model.inverse_transform(scores)


def test_the_solver_is_chosen_by_size_and_rank():
    rng = np.random.default_rng(0)
    wide, narrow = rng.normal(size=(600, 30)), rng.normal(size=(600, 2))

    def solver(model, X):
        return model._auto(kernel_of(model.kernel), X)

    assert solver(KernelPCA(5), wide[:100]) == "dense"
    assert solver(KernelPCA(5), wide) == "krylov"
    assert solver(KernelPCA(500), wide) == "dense"
    assert solver(KernelPCA(), wide) == "factor"
    assert solver(KernelPCA(5, KernelMap()), wide) == "factor"
    assert solver(KernelPCA(5, form="primal"), wide) == "factor"
    assert solver(KernelPCA(kernel=Sigmoid()), wide) == "dense"
    model = KernelPCA(5, RBF(0.02)).fit(narrow)
    assert model.kernel_map_.rank_ < 75  # low rank was found
    rough = KernelPCA(5, Matern(0.5, length_scale=0.1)).fit(narrow)
    assert not hasattr(rough, "kernel_map_")
    for fitted, X in ((model, narrow), (rough, narrow), (KernelPCA(5).fit(wide), wide)):
        dense = KernelPCA(5, fitted.kernel_, solver="dense").fit(X)
        assert_allclose(fitted.eigenvalues_, dense.eigenvalues_, rtol=1e-9)


def test_digits_as_scikit_learn(there):
    X = load_digits().data[:700]
    model = there(KernelPCA(10, RBF(1e-3))).fit(X[:600])
    reference = Reference(10, kernel="rbf", gamma=1e-3).fit(X[:600])
    assert_allclose(model.eigenvalues_, reference.eigenvalues_, rtol=1e-9)
    expected = reference.transform(X[600:])
    assert_allclose(np.abs(model.transform(X[600:])), np.abs(expected), atol=1e-5)


# --- bad input ----------------------------------------------------------------------------------


def test_unknown_arguments_are_python_errors():
    with pytest.raises(TypeError, match="unexpected keyword argument 'banana'"):
        KernelPCA(banana=1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "got 0"),
        ({"n_components": 1.5}, r"got 1\.5"),
        ({"n_components": "mle"}, "got 'mle'"),
        ({"n_components": True}, "got True"),
        ({"form": "dual form"}, "form must be one of"),
        ({"solver": "arpack"}, "solver must be one of"),
        ({"solver": "krylov"}, "n_components=None"),
        ({"form": "primal", "solver": "dense"}, "solver must be 'factor'"),
        ({"kernel": KernelMap(), "solver": "dense"}, "KernelMap means solver='factor'"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        KernelPCA(**parameters).fit(FOUR)


def test_a_failed_fit_changes_nothing(data):
    X, Z = data
    model = KernelPCA(2, RBF(0.1)).fit(X)
    before = model.transform(Z)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((5, 5), np.nan))
    assert_array_equal(model.transform(Z), before)


def test_constant_data_and_one_point():
    assert KernelPCA().fit_transform(np.ones((4, 2))).shape == (4, 0)
    assert KernelPCA().fit_transform([[1.0, 2.0]]).shape == (1, 0)
    assert KernelPCA(solver="factor").fit_transform([[1.0, 2.0]]).shape == (1, 0)
